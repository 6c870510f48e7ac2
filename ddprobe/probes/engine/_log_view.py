"""What a person sees of logs: each log, what its server said at start and of trouble, then acceptance and throughput."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from ddprobe.blocks import Block, Heading, Pairs, Paragraph, Plot, Series, Spread, Table
from ddprobe.facts import (
    Acceptance,
    Claim,
    DecodeBin,
    DecodeSeries,
    LogEvent,
    LogFile,
    LogTimeline,
    LogWindow,
)
from ddprobe.facts.logs import GIVEN
from ddprobe.model import Fact
from ddprobe.parsing import sizes
from ddprobe.probes.engine import _log_timeline
from ddprobe.probes.engine import _log_words as words

MOST_EVENTS = 40
MOST_PLACES = 40
"""Of a plot over time, with those of which no line is."""


def blocks(facts: Sequence[Fact]) -> Iterator[Block]:
    """One log after the other: facts stand behind their log's."""
    for own in _by_log(facts):
        yield from _one(own)


def _by_log(facts: Sequence[Fact]) -> list[list[Fact]]:
    logs: list[list[Fact]] = []
    for fact in facts:
        if isinstance(fact, LogFile):
            logs.append([])
        if logs:
            logs[-1].append(fact)
    return logs


def _one(facts: Sequence[Fact]) -> Iterator[Block]:
    for log in (fact for fact in facts if isinstance(fact, LogFile)):
        yield Heading(log.path)
        if about := _about(log):
            yield Pairs(about)
        yield from (Paragraph(note, "warn") for note in log.notes)
    events = [fact for fact in facts if isinstance(fact, LogEvent)]
    if events:
        yield _events(events)
    for timeline in (fact for fact in facts if isinstance(fact, LogTimeline)):
        yield from _timeline(timeline)
    for series in (fact for fact in facts if isinstance(fact, DecodeSeries)):
        yield from _series(series)
    yield from _claims([fact for fact in facts if isinstance(fact, Claim)])
    yield from _acceptance([fact for fact in facts if isinstance(fact, Acceptance)])


def _about(log: LogFile) -> tuple[tuple[str, str], ...]:
    span = (
        f"{log.first} to {log.last}"
        if log.first
        else "none since then"
        if log.since
        else "its lines tell no time"
    )
    if log.origin == GIVEN:
        return ()  # the table of files has its size, and nobody looked for times
    named = (
        ("server", log.server),
        ("found as", log.origin),
        ("size", words.length(log.size)),
        ("read", log.read),
        ("last written", words.ago(log.age_seconds)),
        ("lines of", span),
        ("asked for since", log.since),
        ("lines about decoding, in all", f"{log.decode_lines:,}" if log.decode_lines is not None else ""),
    )
    return tuple((name, value) for name, value in named if value)


def _events(events: Sequence[LogEvent]) -> Table:
    shown = events[:MOST_EVENTS]
    left = len(events) - len(shown)
    return Table(
        ("first at\nline", "times", "what", "line"),
        tuple(
            (
                str(event.line) if event.line else "recent",
                str(event.count),
                event.kind.replace("_", " "),
                words.cut(event.text),
            )
            for event in shown
        ),
        "Start-up facts and warnings, each at its first line",
        f"{left} more are in the report" if left else "",
    )


def _timeline(timeline: LogTimeline) -> Iterator[Block]:
    left = f"; {timeline.left_out} windows before these are left out" if timeline.left_out else ""
    columns = (
        "from",
        "lines",
        "running",
        "tokens per\nrequest",
        "accept len\ntokens",
        "lowest–\nhighest",
        "accept\nrate",
        "tok/s",
    )
    yield Table(
        columns,
        tuple(
            (
                window.start,
                str(window.lines),
                words.span(window.running_low, window.running_high),
                words.span(window.tokens_low, window.tokens_high),
                words.number(window.commit_mean),
                words.span(window.commit_low, window.commit_high),
                words.percent(window.rate_mean),
                words.speed(window.tok_s),
            )
            for window in timeline.windows
        ),
        f"Over time, {timeline.every} a row",
        "Accept len: tokens per verify step, bonus included; mean of the lines. tok/s: median, of the whole server. The "
        f"accept rate is as the server writes it. A stretch without such a line has no row{left}.",
        spare=(6, 5, 1),
    )
    if sum(window.commit_mean is not None for window in timeline.windows) > 2:
        yield _plot(timeline)


def _plot(timeline: LogTimeline) -> Plot:
    windows = _in_their_places(timeline)
    starts = tuple(windows)
    days = {start.partition(" ")[0] for start in starts}
    return Plot(
        "Accept length over time",
        tuple(words.short(start, dated=len(days) > 2) for start in starts),
        (
            Series(
                "accept len",
                tuple(None if window is None else _spread(window) for window in windows.values()),
            ),
        ),
        axis=f"from, {timeline.every} a place",
        least=1.0,
        interval="lowest and highest line",
    )


def _in_their_places(timeline: LogTimeline) -> dict[str, LogWindow | None]:
    """The windows by their start, and the stretches between them of which no line is: time is drawn to scale."""
    known: dict[str, LogWindow | None] = {window.start: window for window in timeline.windows}
    seconds = _log_timeline.seconds(timeline.every)
    try:
        first, end = (datetime.fromisoformat(timeline.windows[at].start) for at in (0, -1))
    except ValueError:
        return known
    if seconds is None or (end - first).total_seconds() > seconds * MOST_PLACES:
        return known
    places = (
        first + timedelta(seconds=seconds * n)
        for n in range(int((end - first).total_seconds() // seconds) + 1)
    )
    return dict.fromkeys(map(str, places)) | known


def _spread(window: LogWindow) -> Spread | None:
    if window.commit_mean is None:
        return None
    return Spread(window.commit_mean, window.commit_low, window.commit_high)


def _series(series: DecodeSeries) -> Iterator[Block]:
    if series.bins:
        yield Table(
            (
                "tokens per\nrequest",
                "running",
                "lines",
                "accept len\ntokens",
                "lowest–\nhighest",
                "accept\nrate",
                "tok/s per\nrequest",
                "graph",
            ),
            tuple(_bin(each) for each in series.bins),
            "By context and number of running requests",
            _caption(series),
            spare=(7, 5, 4),
        )
    if series.trend:
        yield Paragraph(f"{series.trend[0].upper()}{series.trend[1:]}.")
    if series.off_lines:
        yield Paragraph(
            f"{series.off_lines:,} of {series.lines:,} lines about decoding state no acceptance.", "warn"
        )
    if series.unreadable_lines:
        yield Paragraph(
            f"{series.unreadable_lines:,} of {series.lines:,} lines about decoding state one that is no number, or cannot be.",
            "warn",
        )


def _bin(each: DecodeBin) -> tuple[str, ...]:
    return (
        f"{sizes.short(each.low)}–{sizes.short(each.high)}",
        str(each.running),
        str(each.lines),
        words.number(each.commit_mean),
        words.span(each.commit_low, each.commit_high),
        words.percent(each.rate_mean),
        words.speed(each.tok_s),
        words.percent(each.graph_share),
    )


def _caption(series: DecodeSeries) -> str:
    said = []
    if series.rate_definition:
        said.append(
            f"Accept rate: drafts that were right, (len − 1) / K; the log's own figure is {series.rate_definition}"
        )
    if series.draft_tokens is not None:
        said.append(f"K = {series.draft_tokens} drafted tokens per step")
    return "; ".join(said) + "." if said else ""


def _claims(claims: Sequence[Claim]) -> Iterator[Block]:
    rows = tuple(
        (
            claim.what,
            f"{claim.value:.4g}" if claim.value >= 1000 else f"{claim.value:.2f}",
            str(claim.samples) if claim.samples else "unknown",
            claim.window,
            claim.origin,
        )
        for claim in claims
    )
    if rows:
        yield Table(
            ("number", "value", "steps", "over", "where"),
            rows,
            "What it states of its speculation",
            spare=(3,),
        )


def _acceptance(figures: Sequence[Acceptance]) -> Iterator[Block]:
    rows = tuple(
        (
            each.origin,
            each.window or "unknown",
            words.number(each.commit),
            words.percent(each.rate),
            f"{each.steps:,}" if each.steps is not None else "unknown",
            str(each.draft_tokens) if each.draft_tokens is not None else "unknown",
        )
        for each in figures
    )
    if rows:
        yield Table(
            ("where", "over", "tokens per\nverify step", "of the drafts\nright", "steps", "K"),
            rows[:MOST_EVENTS],
            "Acceptance, in the two numbers that can be compared",
            f"{len(rows) - MOST_EVENTS} more are in the report" if len(rows) > MOST_EVENTS else "",
        )
