"""What a person sees of logs: each log, what its server said at start and of trouble, then acceptance and throughput."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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
from ddprobe.model import MIB, Fact
from ddprobe.parsing import sizes

MOST_EVENTS = 40
_LONG = 200
_DASH = "–"


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
        yield Pairs(_about(log))
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
    span = f"{log.first} to {log.last}" if log.first else "its lines tell no time"
    named = (
        ("server", log.server),
        ("found as", log.origin),
        ("size", _size(log.size)),
        ("read", log.read),
        ("last written", _ago(log.age_seconds)),
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
                _cut(event.text),
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
                _range(window.running_low, window.running_high),
                _range(window.tokens_low, window.tokens_high),
                _number(window.commit_mean),
                _range(window.commit_low, window.commit_high),
                _percent(window.rate_mean),
                _number(window.tok_s),
            )
            for window in timeline.windows
        ),
        f"Over time, {timeline.every} a row",
        "Accept len: tokens per verify step, bonus included; mean of the lines. tok/s: median, of the whole server. The "
        f"accept rate is as the server writes it{left}.",
        spare=(6, 5, 1),
    )
    if sum(window.commit_mean is not None for window in timeline.windows) > 2:
        yield _plot(timeline)


def _plot(timeline: LogTimeline) -> Plot:
    return Plot(
        "Accept length over time",
        tuple(_short(window.start) for window in timeline.windows),
        (Series("accept len", tuple(_spread(window) for window in timeline.windows)),),
        axis="from",
        least=1.0,
        interval="lowest and highest line",
    )


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


def _bin(each: DecodeBin) -> tuple[str, ...]:
    return (
        f"{sizes.short(each.low)}–{sizes.short(each.high)}",
        str(each.running),
        str(each.lines),
        _number(each.commit_mean),
        _range(each.commit_low, each.commit_high),
        _percent(each.rate_mean),
        _number(each.tok_s),
        _percent(each.graph_share),
    )


def _caption(series: DecodeSeries) -> str:
    said = []
    if series.rate_definition:
        said.append(f"The accept rate is {series.rate_definition}")
    if series.draft_tokens is not None:
        said.append(f"K = {series.draft_tokens} drafted tokens per step")
    return "; ".join(said) + "." if said else ""


def _claims(claims: Sequence[Claim]) -> Iterator[Block]:
    rows = tuple(
        (
            claim.what,
            f"{claim.value:g}",
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
            _number(each.commit),
            _percent(each.rate),
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


def _cut(text: str) -> str:
    return text if len(text) <= _LONG else f"{text[:_LONG]}…"


def _short(start: str) -> str:
    """Without the date: a plot's places are narrow."""
    return start.partition(" ")[2][:5] if start[:1].isdecimal() else start.removeprefix("line ")


def _range(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return _DASH
    ends = [f"{value:,}" if isinstance(value, int) else f"{value:.2f}" for value in (low, high)]
    return "–".join(dict.fromkeys(ends))


def _number(value: float | None) -> str:
    return _DASH if value is None else f"{value:.2f}" if value < 100 else f"{value:,.0f}"


def _percent(value: float | None) -> str:
    return _DASH if value is None else f"{value:.0%}"


def _size(size: int | None) -> str:
    if size is None:
        return ""
    for unit, length in (("GiB", 1024 * MIB), ("MiB", MIB), ("KiB", 1024)):
        if size >= length:
            return f"{size / length:.1f} {unit}"
    return f"{size} bytes"


def _ago(seconds: float | None) -> str:
    if seconds is None:
        return ""
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit} ago"
    return f"{seconds:.0f} s ago"
