"""What comes of a path that was named: an old report, a file, or why it is not read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ddprobe.store import EVENTS, REPORT

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class OldReport:
    """The folder of a report."""

    folder: Path
    name: str


@dataclass(frozen=True, slots=True)
class Taken:
    """A regular file on this disk."""

    name: str
    """As a person knows it."""
    path: Path


@dataclass(frozen=True, slots=True)
class Closed:
    """Something that is not read, and why."""

    name: str
    why: str
    lost: bool = True
    """False where nothing can be missing: it holds nothing."""


Opened = OldReport | Taken | Closed


def is_report(folder: Path) -> bool:
    """Whether the folder is that of a report; one that may not be looked into is none."""
    try:
        return (folder / EVENTS).is_file() or ((folder / REPORT).is_file() and (folder / "evidence").is_dir())
    except OSError:
        return False


def shown(name: str) -> str:
    """A name as it can be shown anywhere: on one line, what is no character to read written as its number."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)
