"""How the view of logs puts numbers, sizes and times into words."""

from __future__ import annotations

from ddprobe.model import MIB

DASH = "–"
"""For what is unknown."""
LONG = 200
"""Characters of a log's line that are shown."""


def cut(text: str) -> str:
    """A line's beginning, marked where it was cut."""
    return text if len(text) <= LONG else f"{text[:LONG]}…"


def short(start: str, *, dated: bool) -> str:
    """The time of day, of several days the date: a plot's places are narrow."""
    if not start[:1].isdecimal():
        return start.removeprefix("line ")
    date, _, time = start.partition(" ")
    return date[5:] if dated else time if time[6:] not in ("", "00") else time[:5]


def span(low: float | None, high: float | None) -> str:
    """`1.00–3.50`; one number where both are the same."""
    if low is None or high is None:
        return DASH
    ends = [f"{value:,}" if isinstance(value, int) else f"{value:.2f}" for value in (low, high)]
    return "–".join(dict.fromkeys(ends))


def number(value: float | None) -> str:
    """`2.87`, `1,204`."""
    return DASH if value is None else f"{value:.2f}" if value < 100 else f"{value:,.0f}"


def speed(value: float | None) -> str:
    """Tokens per second, in three digits: `0.70`, `52.2`, `118`."""
    return f"{value:.1f}" if value is not None and 10 <= value < 100 else number(value)


def percent(value: float | None) -> str:
    """`62 %`."""
    return DASH if value is None else f"{100 * value:.0f} %"


def length(size: int | None) -> str:
    """`3.2 KiB`; nothing where it is not known."""
    if size is None:
        return ""
    for unit, length in (("GiB", 1024 * MIB), ("MiB", MIB), ("KiB", 1024)):
        if size >= length:
            return f"{size / length:.1f} {unit}"
    return f"{size} bytes"


def ago(seconds: float | None) -> str:
    """`5 minutes ago`; nothing where it is not known."""
    if seconds is None:
        return ""
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit} ago"
    return f"{seconds:.0f} s ago"
