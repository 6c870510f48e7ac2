"""Did a step take another time although nothing else changed?"""

from __future__ import annotations

import re

from ddprobe.facts import CommitPoint, DecodeBin
from ddprobe.model import Outcome, Verdict
from ddprobe.parsing import sizes
from ddprobe.verdicts import thresholds, words
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.collected import figures
from ddprobe.verdicts.collected.figures import mean, step_time
from ddprobe.verdicts.ruling import Ruling

HELD = ("GP01", "GP02", "GP03")
"""Lints on what holds a card's clock down."""
SLOWED = 1.5
"""A log whose first lines are this many times as fast as its last has slowed down; lines alone differ by less."""
STEADY = 1.25
"""Its highest line commits at most this many times what its lowest does."""


def judge(case: Case) -> Ruling | None:
    """One text at one length takes another time a step later on; or a log slows down while a card is held down."""
    return _again(case) or _held(case)


def _held(case: Case) -> Ruling | None:
    """At one commit, context and number of requests a log gets slower, and a card's clock is held down.

    Slower alone is no sign of the card: whatever else the machine does slows a server, too.
    """
    faults = (*case.found(Outcome.FAIL, *HELD), *case.found(Outcome.WARN, *HELD))
    slowed = [(log, bin) for log in case.logs for bin in figures.speaking(log) if _slows(bin)]
    if not faults or not slowed:
        return None
    log, bin = max(slowed, key=lambda pair: _fall(pair[1]))
    running = words.count(bin.running, "running request")
    return Ruling(
        Verdict(
            name="gpu_state",
            kind="throttled",
            confidence="medium",
            reasons=(
                f"with {running} at about {sizes.short(round(figures.middle(bin)))} tokens the log begins at "
                f"{words.short(bin.tok_s_first or 0)} tok/s and ends at {words.short(bin.tok_s_last or 0)}, and commits the same "
                f"({figures.bin_mean(bin):.2f}, {bin.lines} lines)",
                *(f"{finding.id}: {finding.summary}" for finding in faults[:4]),
            ),
            cites=words.cites(log) + tuple(cite for finding in faults for cite in finding.cites),
            ruled_out=("the drafter: what it commits did not change",),
            missing=("samples of the GPU while the log was written (ddprobe step-time takes them)",),
            next=(
                *dict.fromkeys(finding.advice for finding in faults if finding.advice),
                "step times of this log cannot be compared: measure again once the machine is steady",
            ),
        ),
        explains=_fall(bin),
    )


def _fall(bin: DecodeBin) -> float:
    """How many times faster its first lines are than its last; 1 where that is not known."""
    return bin.tok_s_first / bin.tok_s_last if bin.tok_s_first and bin.tok_s_last else 1.0


def _slows(bin: DecodeBin) -> bool:
    low, high = bin.commit_low, bin.commit_high
    steady = low is not None and high is not None and high <= STEADY * low
    return steady and _fall(bin) >= SLOWED


def _again(case: Case) -> Ruling | None:
    found = [pair for pair in _twice(case) if _moved(*pair)]
    if not found:
        return None
    first, again = max(found, key=lambda pair: _ratio(*pair))
    return Ruling(
        Verdict(
            name="gpu_state",
            kind="slower" if step_time(again) > step_time(first) else "faster",  # equivalent: they differ
            confidence="medium",
            reasons=(
                f"{first.arm}{figures.place(first)} takes {words.short(step_time(first))} ms a step at first and "
                f"{words.short(step_time(again))} ms another time, and commits the same ({mean(first):.2f} and "
                f"{mean(again):.2f})",
            ),
            cites=words.cites(first, again),
            ruled_out=("the drafter: what it commits did not change",),
            missing=("the GPU's clocks, power and temperature at both times",),
            next=(
                "ddprobe gpu (clocks and the reasons that hold them down, power limit, other processes)",
                "step times of these points cannot be compared: measure again once the machine is steady",
            ),
        ),
        explains=_ratio(first, again),
    )


def _twice(case: Case) -> list[tuple[CommitPoint, CommitPoint]]:
    """Points of one text and length, each with the next; those from a cache aside."""
    every: dict[tuple[str, int], list[CommitPoint]] = {}
    for point in case.every(CommitPoint):
        if point.context_tokens and point.commit_mean and point.step_ms and not figures.cached(point):
            every.setdefault((_text(point), point.context_tokens), []).append(point)
    return [(first, later) for first, *others in every.values() for later in others]


def _text(point: CommitPoint) -> str:
    """Its text: a second series of the same is numbered."""
    return re.sub(r" #\d+\Z", "", point.arm)


def _ratio(first: CommitPoint, again: CommitPoint) -> float:
    low, high = sorted((step_time(first), step_time(again)))
    return high / low


def _moved(first: CommitPoint, again: CommitPoint) -> bool:
    low, high = sorted((mean(first), mean(again)))
    return low >= (1 - thresholds.DRIFT) * high and _ratio(first, again) > 1 + thresholds.DRIFT
