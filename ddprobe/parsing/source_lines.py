"""Reads lines of an engine's source as `grep -n` and its kin print them.

/opt/engine/models/draft_model.py:118:        theta = getattr(cfg, "rope_theta", 10000.0)
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

MOST = 5000
_HIT = re.compile(
    r"^(?P<path>[^\s:][^:\n]{0,400}\.(?:py|cu|cuh|cpp|h|hpp|rs))[:-](?P<line>\d{1,7})[:-](?P<text>.*)$"
)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a file."""

    path: str
    line: int
    text: str


def of_lines(lines: Iterable[str]) -> tuple[Line, ...]:
    """The lines of source among these, at most `MOST`."""
    found = []
    for text in lines:
        if match := _HIT.match(text):
            found.append(Line(match["path"], int(match["line"]), match["text"][:500]))
        if len(found) == MOST:
            break
    return tuple(found)
