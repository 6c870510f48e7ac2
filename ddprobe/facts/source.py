"""The installed engine's source: what was searched, found and read."""

from __future__ import annotations

from dataclasses import dataclass

from ddprobe.model import Fact


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcePackage(Fact):
    """The installed engine that `grep` and `read` look at."""

    engine: str
    path: str
    version: str
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSearch(Fact):
    """What a search covered."""

    pattern: str
    glob: str
    package: str
    version: str
    host: str
    files: int
    """Files that the glob names; `files_searched` are those that grep got through."""
    files_searched: int
    files_hit: int
    hits: int
    cut: bool
    """True when more hits exist than are listed."""
    proposals: tuple[str, ...] = ()
    """Arguments for `read`: `srt/speculative/dflash_worker_v2.py:212-219`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceHit(Fact):
    """A line that matches, with the innermost function or class around it."""

    path: str
    line: int
    text: str
    within: str
    """`DFlashWorkerV2._commit`, or empty at module level."""
    context: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRange(Fact):
    """One range of a file, with its own status."""

    path: str
    first: int
    last: int
    """As asked; after `--symbol`, as resolved. 0-0 when the file itself could not be read."""
    total: int | None
    """Lines in the whole file; None when unknown."""
    status: str
    """`complete`, `cut`, `past_end`, `missing`, `denied`, `binary`, `directory` or `ambiguous`."""
    text: str
    """Raw lines without numbers."""
    symbol: str = ""
    note: str = ""
    """The status in a sentence: where it was cut, the nearest names on the host."""
    focus: tuple[int, ...] = ()
    """Line numbers that were asked for when `--context` widened the range."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyPath(Fact):
    """The kernel that a verify step's attention takes in one backend of the installed engine, by its source."""

    version: str = ""
    backend: str = ""
    """The attention backend that this holds for: `triton`."""
    kernel: str = ""
    """The function that is called: `extend_attention_fwd`."""
    split_kv: bool | None = None
    """Whether a long prefix is split over thread blocks on an NVIDIA GPU; None where the source does not tell."""
    told: str = ""
    """All of it in a sentence, with files and lines."""
