"""Acceptance and throughput over time: the recent lines about decoding, in windows of one length."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from ddprobe.facts import LogTimeline, LogWindow
from ddprobe.model import Cite
from ddprobe.parsing import acceptance_lines, decode_log, log_lines
from ddprobe.probes.engine._log_content import Part

MOST_WINDOWS = 24
"""Windows that are kept; of more, the last."""
_WANTED = 12
_LENGTHS = (
    (10, "10 s"), (30, "30 s"), (60, "1 min"), (120, "2 min"), (300, "5 min"), (600, "10 min"), (1800, "30 min"),
    (3600, "1 h"), (7200, "2 h"), (21600, "6 h"), (86400, "1 day"), (7 * 86400, "7 days"),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spoken:
    """What one line says, and when."""

    number: int
    source: str
    """Whose line it is: those of a tree drafter's worker repeat what the decode line says."""
    running: int | None = None
    tokens: float | None = None
    commit: float | None = None
    rate: float | None = None
    tok_s: float | None = None
    at: datetime | None = None


def of(path: str, part: Part) -> LogTimeline | None:
    """The timeline of a log's recent lines; None where none is about decoding."""
    numbers = part.numbers if all(part.numbers) else range(1, len(part.lines) + 1)
    read = [
        (line, said)
        for line, number in zip(part.lines, numbers, strict=True)
        if (said := _read(log_lines.unwrapped(line), number)) is not None
    ]
    when = log_lines.moments([line for line, _ in read], part.year)
    sources = {said.source for _, said in read}
    spoken = [
        replace(said, at=at)
        for (_, said), at in zip(read, when, strict=True)
        if said.source != "tree" or sources == {"tree"}
    ]
    if not spoken:
        return None
    timed = all(each.at for each in spoken)
    windows, every = _by_time(spoken) if timed else _by_line(spoken)
    return LogTimeline(
        path=path,
        every=every,
        windows=tuple(windows[-MOST_WINDOWS:]),
        left_out=max(0, len(windows) - MOST_WINDOWS),
        source=(Cite(part.key),),
    )


def last(part: Part) -> datetime | None:
    """When the last line about decoding was written; None where there is none, or none that tells."""
    for line in reversed(part.lines):
        if _read(log_lines.unwrapped(line), 0) is not None:
            return log_lines.moments([line], part.year)[0]
    return None


def seconds(every: str) -> int | None:
    """How long a window is; None where it is one of lines."""
    return next((length for length, name in _LENGTHS if name == every), None)


def _read(line: str, number: int) -> _Spoken | None:
    if (decode := decode_log.decode_line(line)) is not None:
        running, tokens = decode.running, decode.tokens
        return _Spoken(
            number=number,
            source="decode",
            running=running,
            tokens=tokens / running if tokens is not None and running else None,
            commit=decode.commit,
            rate=decode.rate,
            tok_s=decode.throughput,
        )
    counts = acceptance_lines.vllm_line(line) or acceptance_lines.llamacpp_line(line)
    if counts is not None:
        rate = counts.accepted / counts.drafted if counts.drafted else None
        return _Spoken(number=number, source="counts", commit=counts.commit, rate=rate)
    if (speed := acceptance_lines.vllm_generated(line)) is not None:
        return _Spoken(number=number, source="counts", tok_s=speed)
    if "avg_commit_len" in line and (tree := acceptance_lines.tree_line(line)) is not None:
        return _Spoken(number=number, source="tree", commit=tree.commit)
    return None


def _by_time(spoken: Sequence[_Spoken]) -> tuple[list[LogWindow], str]:
    moments = [each.at for each in spoken if each.at]
    span = (max(moments) - min(moments)).total_seconds()
    seconds, name = next((each for each in _LENGTHS if span <= each[0] * _WANTED), _LENGTHS[-1])
    groups: dict[datetime, list[_Spoken]] = {}
    for each in spoken:
        if each.at:
            midnight = datetime.combine(min(moments).date(), datetime.min.time())
            place = int((each.at - midnight).total_seconds() // seconds)
            groups.setdefault(midnight + timedelta(seconds=place * seconds), []).append(each)
    return [_window(str(start), group) for start, group in sorted(groups.items())], name


def _by_line(spoken: Sequence[_Spoken]) -> tuple[list[LogWindow], str]:
    each = max(1, -(-len(spoken) // _WANTED))
    groups = [spoken[start : start + each] for start in range(0, len(spoken), each)]
    return [_window(f"line {group[0].number}", group) for group in groups], f"{each} lines"


def _window(start: str, group: Sequence[_Spoken]) -> LogWindow:
    running = [each.running for each in group if each.running is not None]
    tokens = [round(each.tokens) for each in group if each.tokens is not None]
    commits = [each.commit for each in group if each.commit is not None]
    rates = [each.rate for each in group if each.rate is not None]
    speeds = [each.tok_s for each in group if each.tok_s is not None]
    return LogWindow(
        start=start,
        lines=len(group),
        running_low=min(running, default=None),
        running_high=max(running, default=None),
        tokens_low=min(tokens, default=None),
        tokens_high=max(tokens, default=None),
        commit_mean=statistics.fmean(commits) if commits else None,
        commit_low=min(commits, default=None),
        commit_high=max(commits, default=None),
        rate_mean=statistics.fmean(rates) if rates else None,
        tok_s=statistics.median(speeds) if speeds else None,
    )
