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
    """Rows of cells. A cell may hold several lines. `emphasis` marks rows (by index) that need a look."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    title: str = ""
    caption: str = ""
    emphasis: tuple[int, ...] = ()


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


Block = Heading | Paragraph | Table | Code | Pairs
