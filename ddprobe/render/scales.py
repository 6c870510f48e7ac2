"""The scale of a plot: which row a value stands in, and where the ticks are. Rows count from the top."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ddprobe.blocks import Spread

ROWS = 16
MOST_TICKS = 8
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True, slots=True)
class Scale:
    """Rows from the top, for values from `least` up in equal steps."""

    least: float
    step: float
    ticks: tuple[float, ...]
    """From the top down."""
    rows: int
    """From one tick to the next."""

    @classmethod
    def over(cls, least: float, known: Sequence[Spread], ceiling: float | None) -> Scale:
        ends = [end for value in known for end in (value.low, value.value, value.high) if end is not None]
        low = min(least, *ends)
        high = max([*ends, *([ceiling] if ceiling is not None else [])])
        # A span that vanishes beside its own values is drawn as one step.
        span = high - low if high - low > abs(low) * 1e-9 else 1.0
        size = 10 ** math.floor(math.log10(span / MOST_TICKS))
        step = next(s * size for s in _STEPS if s * size * MOST_TICKS >= span * (1 - 1e-9))
        count = max(1, math.ceil(span / step - 1e-9))
        ticks = tuple(low + step * number for number in range(count, -1, -1))
        return cls(low, step, ticks, max(1, ROWS // count))

    @property
    def height(self) -> int:
        return (len(self.ticks) - 1) * self.rows + 1

    @property
    def tick_rows(self) -> tuple[int, ...]:
        return tuple(range(0, self.height, self.rows))

    def row(self, value: float) -> int:
        up = round((value - self.least) / self.step * self.rows)
        return min(self.height - 1, max(0, self.height - 1 - up))

    def between(self, one: float, other: float, share: float) -> float:
        """The value at that share of the way."""
        return one + (other - one) * share


@dataclass(frozen=True, slots=True)
class Ratios:
    """Rows from the top, for values from the lowest tick up in equal ratios."""

    ticks: tuple[float, ...]
    """From the top down: powers of ten; where that would be few, twice and five times one too."""
    height: int

    @classmethod
    def over(cls, known: Sequence[Spread], ceiling: float | None) -> Ratios:
        ends = [end for value in known for end in (value.low, value.value, value.high) if end is not None]
        ends += [ceiling] if ceiling is not None else []
        ticks = _fine(min(ends), max(ends)) or _decades(min(ends), max(ends))
        return cls(tuple(reversed(ticks)), ROWS + 1)

    @property
    def tick_rows(self) -> tuple[int, ...]:
        return tuple(map(self.row, self.ticks))

    def row(self, value: float) -> int:
        low, high = math.log10(self.ticks[-1]), math.log10(self.ticks[0])
        up = round((math.log10(value) - low) / (high - low) * (self.height - 1)) if value > 0 else 0
        return min(self.height - 1, max(0, self.height - 1 - up))

    def between(self, one: float, other: float, share: float) -> float:
        """The value at that share of the way, which is a straight line here."""
        return math.exp(math.log(one) + (math.log(other) - math.log(one)) * share)


def _fine(low: float, high: float) -> list[float]:
    """1, 2, 5, 10, … from at or below the lowest value to at or above the highest; none where that are too many."""
    first, last = math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1
    if last - first > MOST_TICKS:
        return []
    every = [float(f"{digit}e{power}") for power in range(first, last + 1) for digit in (1, 2, 5)]
    start = max(number for number, tick in enumerate(every) if tick <= low * (1 + 1e-9))
    end = next(number for number, tick in enumerate(every) if tick >= high * (1 - 1e-9))
    ticks = every[start : max(end, start + 1) + 1]
    return ticks if len(ticks) <= MOST_TICKS else []


def _decades(low: float, high: float) -> list[float]:
    """Powers of ten around both ends, as many apart as keeps them few."""
    first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
    step = max(1, math.ceil((last - first) / MOST_TICKS))
    count = max(1, math.ceil((last - first) / step))
    return [10.0 ** (first + step * number) for number in range(count + 1)]
