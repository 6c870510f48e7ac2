"""Text made to fit a column: broken between words; a long path, option or class name where its parts meet."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

MIN_WIDTH = 6

_SEAM = re.compile(r"(?<=[/_.=,:;|-])(?![/_.=,:;|-])|(?<=[a-z])(?=[A-Z])")


def widths(natural: Sequence[int], room: int) -> list[int]:
    """How wide each column may be: the widest give way first, and all by the same limit."""
    limit = max(natural, default=0)
    while limit > MIN_WIDTH and sum(min(width, limit) for width in natural) > room:
        limit -= 1
    return [min(width, limit) for width in natural]


def fit(text: str, width: int) -> str:
    """The text in lines of at most this many cells."""
    return "\n".join(part for line in text.expandtabs(8).split("\n") for part in _lines(line, max(width, 1)))


def _lines(text: str, width: int) -> Iterator[str]:
    from rich.cells import cell_len

    if cell_len(text) <= width:
        yield text
        return
    now = text[: len(text) - len(text.lstrip())][: width // 2]
    for word in text.split():
        gap = " " if now.strip() else ""
        if cell_len(now + gap + word) <= width:
            now += gap + word
        elif cell_len(word) <= width:
            yield now
            now = word
        else:
            if now.strip():
                yield now
                now = ""
            *whole, now = _broken(word, width)
            yield from whole
    yield now


def _broken(word: str, width: int) -> Iterator[str]:
    """A word wider than the column, at its seams where that leaves no line half empty."""
    from rich.cells import cell_len, chop_cells

    now = ""
    for piece in _SEAM.split(word):
        if cell_len(now + piece) <= width:
            now += piece
        elif cell_len(piece) <= width and cell_len(now) * 2 >= width:
            yield now
            now = piece
        else:
            *whole, now = chop_cells(now + piece, width)
            yield from whole
    yield now
