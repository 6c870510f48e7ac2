"""Tables in text, in whatever form people paste them: a line of headings, and rows with as many cells.

    | context | accept len |      context,accept_len      context;accept len      context   accept_len
    |---------|------------|      1024,4.1                1024;4,1                1024      4.1
    | 1k      | 4.1        |

Also as programs draw them, with │ ┃ and rules of ─ ━ =, and with an index in front of each row, as pandas prints them.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

MOST_ROWS = 200
LONGEST_LINE = 2000
"""Characters of a line that may be one of a table."""
MOST_CELLS = 40
_RULE = re.compile(r"[\s|+:=\-_─━═┄┈│┃║┼╋╪╇╈┿├┤┝┥┠┨╞╡╠╣┡┩┢┪┌┐└┘┏┓┗┛╔╗╚╝╭╮╰╯┬┴┳┻╤╧╦╩╒╕╘╛]*[-=─━═][\s|+:=\-_─━═┄┈│┃║┼╋╪╇╈┿├┤┝┥┠┨╞╡╠╣┡┩┢┪┌┐└┘┏┓┗┛╔╗╚╝╭╮╰╯┬┴┳┻╤╧╦╩╒╕╘╛]*")  # fmt: skip
_DRAWN = str.maketrans("│┃║", "|||")
_NUMBER = re.compile(
    r"[~≈]?\s*(\d{1,3}(?:,\d{3})+(?:\.\d{1,6})?|\d{1,9}(?:[.,]\d{1,6})?)\s*(%|x|ms|tok/s|t/s)?"
)
_SIZE = re.compile(r"[~≈]?\s*(\d{1,4}(?:[.,]\d{1,3})?\s?[kKmM]?|\d{1,8})(?:\s*(?:tok(?:en)?s?))?")
_FACTORS = {"k": 1024, "m": 1024**2}


@dataclass(frozen=True, slots=True)
class Table:
    """Headings and rows of as many cells, and the number of each row's line, from 1."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    lines: tuple[int, ...]


def tables(text: str, known: Callable[[Sequence[str]], bool]) -> Iterator[Table]:
    """Every table whose headings are `known`."""
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        found = _table(lines, at, known)
        if found is None:
            at += 1
            continue
        table, at = found
        yield table


def _table(lines: Sequence[str], at: int, known: Callable[[Sequence[str]], bool]) -> tuple[Table, int] | None:
    """The table that begins on this line, and the line behind it."""
    for split in (_bars, _commas, _semicolons, _tabs, _gaps, _blanks):
        head = split(lines[at])
        if len(head) < 2 or not known(head):
            continue
        rows: list[tuple[str, ...]] = []
        numbers: list[int] = []
        index = at + 1
        while index < len(lines) and len(rows) < MOST_ROWS:
            if not _RULE.fullmatch(lines[index]) or len(lines[index]) > LONGEST_LINE:
                cells = _fitted(split(lines[index]), head, split)
                if cells is None:
                    break
                rows.append(cells)
                numbers.append(index + 1)
            index += 1
        if rows:
            return Table(tuple(head), tuple(rows), tuple(numbers)), index
    return None


def _fitted(
    cells: list[str], head: Sequence[str], split: Callable[[str], list[str]]
) -> tuple[str, ...] | None:
    if len(cells) == len(head):
        return tuple(cells)
    indexed = split in (_gaps, _blanks) and len(cells) == len(head) + 1 and cells[0].isdecimal()
    return tuple(cells[1:]) if indexed else None


def _bars(line: str) -> list[str]:
    line = line[:LONGEST_LINE].translate(_DRAWN).strip()
    return _clean(line.strip("|").split("|")) if "|" in line else []


def _commas(line: str) -> list[str]:
    return _separated(line, ",")


def _semicolons(line: str) -> list[str]:
    return _separated(line, ";")


def _tabs(line: str) -> list[str]:
    return _separated(line, "\t")


def _separated(line: str, by: str) -> list[str]:
    if by not in line or len(line) > LONGEST_LINE:
        return []
    try:
        return _clean(next(csv.reader([line.strip("\r\n")], delimiter=by), []))
    except csv.Error:
        return []


def _gaps(line: str) -> list[str]:
    line = line[:LONGEST_LINE].strip()
    return _clean(re.split(r"\s{2,}|\t", line)) if line else []


def _blanks(line: str) -> list[str]:
    return _clean(line[:LONGEST_LINE].split())


def _clean(cells: Sequence[str]) -> list[str]:
    return [cell.strip().strip("*`_ ") for cell in cells] if len(cells) <= MOST_CELLS else []


def number(cell: str) -> float | None:
    """The number in a cell, `%` as a share; None where it holds another thing. `1,024.5` and `4,1` are read as people write."""
    found = _NUMBER.fullmatch(cell)
    if found is None:
        return None
    digits = found[1]
    grouped = re.fullmatch(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?", digits)
    value = float(digits.replace(",", "") if grouped else digits.replace(",", "."))
    return value / (100 if found[2] == "%" else 1)


def size(cell: str) -> int | None:
    """Tokens: `1024`, `1,024`, `1k`, `1.4K tokens`."""
    found = _SIZE.fullmatch(cell)
    if found is None:
        return None
    text = re.sub(r",(?=\d{3}\Z)", "", found[1].replace(" ", "").lower()).replace(",", ".")
    factor = _FACTORS.get(text[-1], 1)
    return round(float(text.rstrip("km")) * factor)
