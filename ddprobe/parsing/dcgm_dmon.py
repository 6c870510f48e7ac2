"""Reads what `dcgmi dmon` prints: a heading, and in each round a line for each card.

#Entity   SMACT        DRAMA        TENSO        POWER
ID                                               W
GPU 1     0.043        0.312        0.001        231.440
GPU 0     0.041        0.308        0.001        229.872
GPU 1     N/A          0.305        0.001        230.101
"""

from __future__ import annotations

import re
from collections.abc import Iterator

FIELDS = {"SMACT": 1002, "TENSO": 1004, "DRAMA": 1005, "POWER": 155}
"""Its headings, and the numbers of the fields that they stand for."""
_HEAD = re.compile(r"#\s?Entity\b\s*(.*)\Z")
_ROW = re.compile(r"\s*GPU (\d{1,3})\s+(.*)\Z")


def rounds(text: str) -> tuple[dict[int, dict[int, float]], ...]:
    """Each round's values by card and field number, in the order of printing. What is `N/A` is missing.

    A last line without its end is left out.
    """
    found: list[dict[int, dict[int, float]]] = []
    for card, values in _rows(text):
        # A card that comes again opens the next round.
        if not found or card in found[-1]:
            found.append({})
        found[-1][card] = values
    return tuple(found)


def _rows(text: str) -> Iterator[tuple[int, dict[int, float]]]:
    columns: list[int | None] = []
    for line in text.split("\n")[:-1]:
        if head := _HEAD.match(line.strip()):
            columns = [FIELDS.get(word) for word in head[1].split()]
        elif row := _ROW.match(line):
            cells = row[2].split()
            if len(cells) == len(columns):
                pairs = zip(columns, map(_number, cells), strict=True)
                yield int(row[1]), {field: v for field, v in pairs if field is not None and v is not None}


def _number(cell: str) -> float | None:
    return float(cell) if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", cell) else None
