"""Files that somebody collected, and what became of an old report that was judged again."""

from __future__ import annotations

from dataclasses import dataclass

from ddprobe.model import Fact

FILES = "evidence.file"
"""What stands in place of a probe's name in the step of a file that was given."""
AGAIN = "evidence.report"
"""And in the step that says how an old report fared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceFile(Fact):
    """A file that was given to be analysed."""

    name: str
    """As a person knows it; within an archive `logs.tar.gz/run/server.log`."""
    size: int
    """In bytes, unpacked, before secrets were masked."""
    sha256: str = ""
    """Of those bytes; empty where they were not read whole."""
    recognised: tuple[str, ...] = ()
    """What it was recognised as; empty: nothing that ddprobe knows."""
    kept: bool = True
    """False for a log too large to be copied: of it only the lines beside the decode log are kept."""
    order: int = 0
    """Its place among others when they are judged together: by what it is and holds, whatever it is called."""
    same_as: str = ""
    """Another file with the same bytes, which counts in its place."""
    trouble: str = ""
    """Why it was not read, or not read whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejudged(Fact):
    """An old report of this host, judged again: what changed against what it says itself."""

    report: str
    """The name of its folder."""
    version: str
    """Of the ddprobe that wrote it."""
    version_now: str
    same: bool
    """Every finding and verdict is what it was, to the letter."""
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    """Findings and verdicts, each in words: `DC20 warn: drafter and target`."""
