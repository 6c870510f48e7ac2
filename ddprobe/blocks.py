"""What a probe shows, free of any medium: terminal, Markdown and HTML each draw these few blocks their own way.

All text in them comes from a host and is hostile: a view escapes it and strips control characters.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Heading:
    text: str


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A sentence or two. `tone` is `plain`, `dim`, `good`, `warn` or `bad`; or `command`: one to be copied whole."""

    text: str
    tone: str = "plain"


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells. A cell may hold several lines. `emphasis` marks rows (by index) that need a look.

    `spare` are columns (by index) that a narrow screen leaves out, the first of them first.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    title: str = ""
    caption: str = ""
    emphasis: tuple[int, ...] = ()
    spare: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Code:
    """Source lines with their numbers. `marked` are line numbers to point at (a grep's hits)."""

    path: str
    lines: tuple[tuple[int, str], ...]
    language: str = "python"
    title: str = ""
    note: str = ""
    marked: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Pairs:
    """Name and value, one a line."""

    rows: tuple[tuple[str, str], ...]
    title: str = ""


@dataclass(frozen=True, slots=True)
class Spread:
    """A measured value and the ends of its interval, where that is known."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Series:
    """One line of a plot: a value for each of the plot's places, None where there is none."""

    name: str
    values: tuple[Spread | None, ...]


@dataclass(frozen=True, slots=True)
class Plot:
    """Series over the same places (contexts), which stand side by side in equal steps."""

    title: str
    places: tuple[str, ...]
    series: tuple[Series, ...]
    axis: str = ""
    """What the places are, with the unit."""
    least: float = 0.0
    """Where the scale begins: a value that none can be below."""
    ceiling: float | None = None
    """A value that none can exceed, drawn as a line."""
    interval: str = ""
    """What the ends of the intervals are: `95 % interval`."""
    logarithmic: bool = False
    """Equal ratios take equal room, up and down, and among the places where `at` is given. What is not above 0 is left out."""
    at: tuple[float, ...] = ()
    """The number that each place stands for: its distance to the others. Empty: equal steps."""


Block = Heading | Paragraph | Table | Code | Pairs | Plot
