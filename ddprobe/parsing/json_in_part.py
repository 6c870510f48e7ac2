"""Reads the fields of a JSON object whose end is missing: those that stand whole before the cut."""

from __future__ import annotations

import json
import re
from typing import Any

from ddprobe.parsing.bounded_json import too_deep

MOST = 10_000
"""Fields that are read."""
_SPACE = re.compile(r"[ \t\r\n]*")


def fields(text: str) -> dict[str, Any] | None:
    """The fields before the cut, in their order; None where the text is no such object, or where it ends as one should.

    Of a number that stands at the very end nobody knows whether it is all there: it is left out.
    """
    decoder = json.JSONDecoder()
    at = _past(text, 0 if not text.startswith("\ufeff") else 1)
    if text[at : at + 1] != "{":
        return None
    found: dict[str, Any] = {}
    at = _past(text, at + 1)
    while len(found) < MOST:
        try:
            name, colon = decoder.raw_decode(text, at)
            colon = _past(text, colon)
            if not isinstance(name, str) or text[colon : colon + 1] != ":":
                break
            value, end = decoder.raw_decode(text, _past(text, colon + 1))
        except (ValueError, RecursionError):
            break
        if too_deep(value):
            break
        end = _past(text, end)
        if text[end : end + 1] == "}":
            return None
        if text[end : end + 1] != ",":
            if end >= len(text) and not isinstance(value, int | float):
                found[name] = value
            break
        found[name] = value
        at = _past(text, end + 1)
    return found or None


def _past(text: str, at: int) -> int:
    """The first place from there on that holds no space."""
    space = _SPACE.match(text, at)
    return space.end() if space else at
