"""What logs and counters of an inference server say of its speculation, each number with its definition and sample."""

from __future__ import annotations

from dataclasses import dataclass

from ddprobe.model import Fact


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance(Fact):
    """An acceptance figure somebody states, brought to the two canonical numbers."""

    commit: float | None = None
    """Tokens per verify step, the bonus token included. None: it does not follow from what is stated."""
    rate: float | None = None
    """Drafted tokens that were right, as a share of those drafted; no bonus token on either side."""
    draft_tokens: int | None = None
    """K: tokens drafted per step, where it is known or follows."""
    definition: str = ""
    """The formula the stated figure used, in words: `(correct + steps) / steps`, `completion_tokens / verify_ct`, …"""
    window: str = ""
    """`lifetime`, `last 40 steps`, `one request`, `the whole log`, …"""
    steps: int | None = None
    """Verify steps behind it; None where nobody says."""
    origin: str = ""
    """`decode log`, `meta_info`, `/metrics`, `SpecDecoding metrics line`, …"""
    context_tokens: int | None = None
    per_position: tuple[float, ...] | None = None
    """Share of steps in which at least the first j drafts were right."""
    text: str = ""
    """The kind of text, where the evidence says it: `repeat`, `prose`, …"""
    run: str = ""
    """What tells one run from another (a file, a build): only figures of one run should agree."""


@dataclass(frozen=True, slots=True)
class DecodeBin:
    """Decode log lines of one range of context and of running requests, both by powers of two, and of one graph state."""

    low: int
    high: int
    """Tokens in use per running request, from `#token` and `#running-req`: `low` up to below `high`."""
    running: int
    """Requests that ran: this many, up to below twice as many."""
    lines: int
    commit_mean: float | None
    commit_low: float | None
    commit_high: float | None
    """Lowest and highest line."""
    rate_mean: float | None
    """Share of drafts that were right, whatever formula the log's own rate follows; None: it does not follow."""
    tok_s: float | None
    """Median generation throughput per running request; the first line after an idle gap left out."""
    graph_share: float | None
    """1 for lines that say `cuda graph: True`, 0 for those that say `False`."""
    tok_s_first: float | None = None
    tok_s_last: float | None = None
    """The same of the first and of the last third of its lines in time; None of fewer than six."""
    tokens: float | None = None
    """Mean over its lines of the tokens in use per running request; of a long log, over a sample of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeSeries(Fact):
    """A decode log as a whole."""

    engine: str
    lines: int
    seconds: float | None = None
    """From the first line's time to the last one's."""
    bins: tuple[DecodeBin, ...] = ()
    rate_definition: str = ""
    """The formula that its accept rates follow: `(len - 1) / K`, `len / (K + 1)`, `len / K` (may exceed 1), or empty:
    none fits, or no rate is stated."""
    draft_tokens: int | None = None
    off_lines: int = 0
    """Lines without any acceptance figure."""
    unreadable_lines: int = 0
    """Lines that state one, and it is no number (`nan`, `-1.00`): something was drafted, nobody knows with what success."""
    trend: str = ""
    """In a sentence: how commit and throughput change with context at a fixed number of running requests."""
    ranks: tuple[tuple[str, int, float], ...] = ()
    """Of each data-parallel rank its name, decode lines and mean commit; empty where lines name no several ranks."""
    run: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEvent(Fact):
    """A line that matters: a start-up fact, a warning, the first sign of a problem."""

    kind: str
    """`skipped_weights`, `fallback_backend`, `length_overridden`, `block_mismatch`, `mask_embedding_merged`, `crash`, …"""
    text: str
    """The line, at most 500 characters."""
    line: int = 0
    count: int = 1
    """How many lines say it."""
    values: tuple[tuple[str, str], ...] = ()
    run: str = ""


GIVEN = "given"
"""The origin of a log that somebody handed over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFile(Fact):
    """A log of a server: where it is, and how much of it was read."""

    path: str
    """As its host has it; for a journal its unit: `sglang.service`."""
    origin: str
    """How it was found, in words: `stderr of pid 4711`."""
    server: str = ""
    """The `name` of the process that writes it; empty when only the path is known."""
    size: int | None = None
    """In bytes."""
    read: str = ""
    """In words: `whole`, `its first 256 KiB and last 4 MiB, and what grep found in all of it`."""
    age_seconds: float | None = None
    """Since it was last written."""
    first: str = ""
    last: str = ""
    """Times of the first and last line read that has one, as the log writes them (its own clock)."""
    since: str = ""
    """Where reading began because only the time since then was asked for, on the log's own clock."""
    decode_lines: int | None = None
    """Lines about decoding in all of it, where they were counted."""
    notes: tuple[str, ...] = ()
    """What a person should know of it: rotated away, still growing, followed for so long."""


@dataclass(frozen=True, slots=True)
class LogWindow:
    """Decode log lines of one stretch of time."""

    start: str
    """On the log's own clock; where its lines have no time, the number of the first line read."""
    lines: int
    running_low: int | None = None
    running_high: int | None = None
    tokens_low: int | None = None
    tokens_high: int | None = None
    """Tokens in use per running request."""
    commit_mean: float | None = None
    commit_low: float | None = None
    commit_high: float | None = None
    """Mean of its lines, lowest and highest line."""
    rate_mean: float | None = None
    tok_s: float | None = None
    """Median generation throughput of the server as a whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogTimeline(Fact):
    """Acceptance and throughput over time."""

    path: str
    every: str
    """How long one window is: `10 min`; or `40 lines`."""
    windows: tuple[LogWindow, ...] = ()
    left_out: int = 0
    """Windows before these."""
