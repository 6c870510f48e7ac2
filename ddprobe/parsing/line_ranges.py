"""Line ranges as a person types them: `1395-1450,1580-1620`, `212+7`, `40`.

A-B    lines A to B, both included
A+N    line A and the N lines after it, as `sed -n 'A,+Np'` has it
A      line A alone
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ddprobe.errors import UsageError

MAX_LINE = 999_999_999
MAX_RANGES = 200

_RANGE = re.compile(r"(\d+)(?:([-+])(\d+))?\Z", re.ASCII)
_FORMS = "a range is A-B, A+N (A and the N lines after it) or A; several are separated by commas"


@dataclass(frozen=True, slots=True)
class LineRange:
    """Lines `first` to `last`, both included, counted from 1."""

    first: int
    last: int

    def __str__(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


def parse(text: str) -> tuple[LineRange, ...]:
    """The ranges in the order given; none for an empty text. Raises `UsageError` with what was meant to stand there."""
    if not text.strip():
        return ()
    ranges = tuple(_one(part.strip()) for part in text.split(","))
    if len(ranges) > MAX_RANGES:
        raise UsageError(f"{len(ranges)} ranges are asked for", f"ask for at most {MAX_RANGES} at once")
    return ranges


def _one(part: str) -> LineRange:
    match = _RANGE.match(part)
    if match is None:
        raise UsageError(f"{part!r} is not a range of lines", _FORMS)
    first = _line(match[1])
    last = first
    if match[2] == "-":
        last = _line(match[3])
    elif match[2] == "+":
        last = first + _line(match[3], least=0)
    if last < first:
        raise UsageError(f"the range {part!r} ends before it begins", f"did you mean {last}-{first}?")
    return LineRange(first, last)


def _line(digits: str, least: int = 1) -> int:
    # Compared by length first: int() of a huge digit string is refused by Python itself.
    digits = digits.lstrip("0") or "0"
    if len(digits) > len(str(MAX_LINE)):
        raise UsageError(f"{digits[:20]}… is no line number", f"the highest is {MAX_LINE}")
    number = int(digits)
    if number < least:
        raise UsageError("there is no line 0", "lines are counted from 1")
    return number


def split_target(target: str) -> tuple[str, str]:
    """`FILE[:RANGES]` in its two parts. Raises `UsageError` when what stands after the colon is no range."""
    file, colon, ranges = target.rpartition(":")
    if not colon:
        return target, ""
    if not file:
        raise UsageError(f"{target!r} names no file", "write FILE:RANGES, as in scheduler.py:10-20")
    if not ranges.strip():
        raise UsageError(f"no range stands after the colon of {target!r}", _FORMS)
    parse(ranges)
    return file, ranges


def merge(ranges: tuple[LineRange, ...], near: int) -> tuple[LineRange, ...]:
    """The ranges in order of lines, those that overlap or lie at most `near` lines apart made one."""
    merged: list[LineRange] = []
    for each in sorted(ranges, key=lambda r: (r.first, r.last)):
        if merged and each.first - merged[-1].last - 1 <= near:
            merged[-1] = LineRange(merged[-1].first, max(merged[-1].last, each.last))
        else:
            merged.append(each)
    return tuple(merged)


def spell(ranges: tuple[LineRange, ...]) -> str:
    """The ranges as `read` takes them."""
    return ",".join(str(each) for each in ranges)
