"""JSON that a program wrote, refused where it is nested so deep that what walks it could run out of stack."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

MAX_DEPTH = 256
"""Deeper nesting is refused: Python's own reader takes nearly as much as its stack allows, and leaves nothing."""


def loads(text: str, object_pairs_hook: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    """The value. Raises `ValueError` for what is no JSON, or is nested too deep."""
    try:
        value = json.loads(text, object_pairs_hook=object_pairs_hook)
    except RecursionError:
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels") from None
    # Where so few brackets stand, nothing can be too deep; this spares nearly every value the walk.
    if text.count("[") + text.count("{") > MAX_DEPTH and too_deep(value):
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
    return value


def too_deep(value: Any) -> bool:
    """Whether it is nested deeper than is read."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [
            inner
            for each in level
            if isinstance(each, dict | list)
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return False
    return True
