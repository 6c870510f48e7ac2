"""A plot drawn with characters, for a terminal and for Markdown alike: places side by side, one column a series.

An own drawing, since places are few and named (contexts), intervals matter, and a report in a ticket shows the same.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ddprobe import render
from ddprobe.blocks import Plot, Spread
from ddprobe.render.scales import Ratios, Scale

Segment = tuple[str, int]
"""Text, and whose it is: a series' number, `FRAME` or `CEILING`."""
FRAME, CEILING = -1, -2
MARKERS = "●○◆◇▲△■□▼▽"
WIDEST_PLACE = 16
MAX_NAME = 40
LARGEST = 1e300
LEAST_RATIO = 1e-300
"""What is smaller has no place on a scale of ratios."""


def lines(plot: Plot, width: int) -> Iterator[tuple[Segment, ...]]:
    """The plot line by line, at most that wide as far as names allow; the title is not among them."""
    series = [
        (render.line(one.name)[:MAX_NAME], [_sound(value, plot.logarithmic) for value in one.values])
        for one in plot.series[: len(MARKERS)]
    ]
    known = [value for _, values in series for value in values if value is not None]
    if not known:
        yield (("nothing was measured that could be drawn", FRAME),)
        return
    ceiling = plot.ceiling if plot.ceiling is not None and _drawable(plot.ceiling) else None
    if plot.logarithmic:
        ceiling = ceiling if ceiling is not None and ceiling > 0 else None
    scale = Ratios.over(known, ceiling) if plot.logarithmic else Scale.over(plot.least, known, ceiling)
    labels = [_number(value) for value in scale.ticks]
    margin = max(map(len, labels)) + 2
    room = max(width - margin, len(MARKERS))
    places = [render.line(place)[:MAX_NAME] for place in plot.places[:room]]
    slot = min(WIDEST_PLACE, max(1, room // max(1, len(places))))
    canvas = _Canvas(slot * len(places), scale, {})
    starts = _starts(plot, len(places), slot)
    if ceiling is not None:
        canvas.level(ceiling)
    for number, (_, values) in enumerate(series):
        offset = _offset(number, len(series), slot)
        columns = [start + offset for start in starts]
        canvas.draw(number, columns, values[: len(places)])
    named = dict(zip(scale.tick_rows, labels, strict=True))
    for row in range(scale.height):
        label = f"{named[row]:>{margin - 2}} ┤" if row in named else " " * (margin - 1) + "│"
        yield ((label, FRAME), *canvas.row(row))
    yield ((" " * (margin - 1) + "└" + "─" * (slot * len(places)), FRAME),)
    yield ((" " * margin + _spaced(places, starts, slot), FRAME),)
    if plot.axis:
        yield ((" " * margin + render.line(plot.axis), FRAME),)
    yield from _legend(plot, [name for name, _ in series], known, ceiling, width)
    left = (len(plot.places) - len(places), "place"), (len(plot.series) - len(series), "series")
    for more, noun in left:
        if more:
            yield ((f"not drawn for want of room: {more} more {noun}", FRAME),)


def _drawable(value: float) -> bool:
    """Whether it is a number, and one whose distance to any other is a number, too."""
    return abs(value) <= LARGEST


def _starts(plot: Plot, many: int, slot: int) -> list[int]:
    """The column at which each place begins: one slot after the other, or as far apart as their numbers are."""
    at = plot.at[:many]
    if len(at) < max(2, many) or not all(map(_drawable, at)) or (plot.logarithmic and min(at) <= 0):
        return [place * slot for place in range(many)]
    along = [math.log(each) for each in at] if plot.logarithmic else list(at)
    span = max(along) - min(along)
    return [round((each - min(along)) / span * (many - 1) * slot) if span else 0 for each in along]


def _sound(spread: Spread | None, logarithmic: bool = False) -> Spread | None:
    """The value, unless it is none; its interval only where both ends are numbers around it."""
    least = LEAST_RATIO if logarithmic else -LARGEST
    if spread is None or not _drawable(spread.value) or spread.value < least:
        return None
    low, high = spread.low, spread.high
    if low is None or high is None or not (_drawable(low) and _drawable(high)) or min(low, high) < least:
        return Spread(spread.value)
    return Spread(spread.value, min(low, spread.value), max(high, spread.value))


@dataclass(frozen=True, slots=True)
class _Canvas:
    width: int
    scale: Scale | Ratios
    cells: dict[tuple[int, int], tuple[str, int]] = field(default_factory=dict)

    def level(self, value: float) -> None:
        row = self.scale.row(value)
        for column in range(self.width):
            self.cells[row, column] = ("╌", CEILING)

    def draw(self, who: int, columns: Sequence[int], values: Sequence[Spread | None]) -> None:
        """Intervals and markers of a series; neighbours are joined by dots where nothing else stands."""
        places = list(zip(columns, values, strict=False))
        for (start, one), (end, other) in itertools.pairwise(places):
            if one is None or other is None:
                continue
            for column in range(start + 2, end - 1, 2):
                share = (column - start) / (end - start)
                row = self.scale.row(self.scale.between(one.value, other.value, share))
                self.cells.setdefault((row, column), ("·", who))
        for column, value in places:
            if value is None:
                continue
            if value.low is not None and value.high is not None:
                for row in range(self.scale.row(value.high), self.scale.row(value.low) + 1):
                    self.cells[row, column] = ("│", who)
            self.cells[self.scale.row(value.value), column] = (MARKERS[who], who)

    def row(self, row: int) -> tuple[Segment, ...]:
        cells = [self.cells.get((row, column), (" ", FRAME)) for column in range(self.width)]
        while cells and cells[-1][0] == " ":
            cells.pop()
        segments: list[Segment] = []
        for text, who in cells:
            if segments and segments[-1][1] == who:
                segments[-1] = (segments[-1][0] + text, who)
            else:
                segments.append((text, who))
        return tuple(segments)


def _offset(number: int, count: int, slot: int) -> int:
    """Where in its place a series stands: side by side where there is room, else over each other."""
    apart = 2 if slot > 2 * count else 1 if slot > count else 0
    return max(0, min(slot - 1, slot // 2 + (2 * number - count + 1) * apart // 2))


def _spaced(places: Sequence[str], starts: Sequence[int], slot: int) -> str:
    """The names below their places; one for which there is no room is left out."""
    text = ""
    for begin, name in zip(starts, places, strict=True):
        start = max(0, begin + slot // 2 - len(name) // 2)
        if not text or start > len(text):
            text = text.ljust(start) + name
    return text


def _legend(
    plot: Plot, names: Sequence[str], known: Sequence[Spread], ceiling: float | None, width: int
) -> Iterator[tuple[Segment, ...]]:
    entries: list[Segment] = [(f"{MARKERS[number]} {name}", number) for number, name in enumerate(names)]
    if ceiling is not None:
        entries.append((f"╌ ceiling {_number(ceiling)}", CEILING))
    if plot.interval and any(value.low is not None and value.high is not None for value in known):
        entries.append((f"│ {render.line(plot.interval)}", FRAME))
    now: list[Segment] = []
    for text, who in entries:
        if now and sum(len(part) + 3 for part, _ in now) + len(text) > width:
            yield tuple(now)
            now = []
        now += [(("   " if now else "") + text, who)]
    yield tuple(now)


def _number(value: float) -> str:
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e9 else f"{value:.4g}"
