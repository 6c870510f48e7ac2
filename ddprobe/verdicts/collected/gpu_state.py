"""Did a step take another time although nothing else changed?"""

from __future__ import annotations

import re

from ddprobe.facts import CommitPoint
from ddprobe.model import Verdict
from ddprobe.verdicts import thresholds, words
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.collected import figures
from ddprobe.verdicts.collected.figures import mean, step_time
from ddprobe.verdicts.ruling import Ruling


def judge(case: Case) -> Ruling | None:
    """One text at one length, measured again: the same commit, and another time a step."""
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
