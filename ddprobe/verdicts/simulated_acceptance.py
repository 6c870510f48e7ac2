"""Is the acceptance made up by a switch, so that no number says anything of the drafter?"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ddprobe.facts import CommitPoint, CommitRequest
from ddprobe.model import Outcome, Verdict
from ddprobe.verdicts import standing, thresholds, words
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.ladder import COPYING, arm_of
from ddprobe.verdicts.ruling import Ruling

UNRELATED = ("prose", "random", "code", "chat")
"""Texts that no drafter takes like a repeated one."""


def judge(case: Case) -> Ruling | None:
    """A switch that forges it is seen, or every text gives the same histogram."""
    switch, value = standing.simulates(case)
    lints = case.found(Outcome.FAIL, "EN01")
    same = _same_everywhere(case)
    alike = () if same else _same_requests(case)
    if not switch and not lints and not same and not alike:
        return None
    reasons = [finding.summary for finding in lints]
    if switch and not lints:
        reasons.append(f"{switch} is {value}: every accept length is forged")
    measured = [point for point in case.points if point.commit_mean is not None]
    if same:
        told = "; ".join(f"{point.arm} {words.at(point)}: {_bins(point)}" for point in same[:4])
        reasons.append(f"texts that nothing has in common give the same few accept lengths: {told}")
        reasons += _constant(case)
    elif alike:
        lengths = sorted(request.context_tokens for request in alike)
        reasons.append(
            f"{words.count(len(alike), 'request')} of {lengths[0]} to {lengths[-1]} tokens give the same few accept lengths: "
            f"{_told(alike[0].acceptance_histogram or ())}"
        )
    elif measured:
        reasons.append(f"{words.commits(measured[:1], standing.ceiling(case))}: not the drafter's own")
    seen = bool(switch or lints)
    return Ruling(
        Verdict(
            name="simulated_acceptance",
            kind="switch" if seen else "histogram",
            confidence="high" if seen or _constant(case) else "medium",
            reasons=tuple(reasons),
            cites=words.cites(*same, *alike[:4], *case.processes)
            + tuple(cite for finding in lints for cite in finding.cites),
            missing=() if seen else (f"the server's environment: is {standing.SIMULATION} set?",),
            next=(
                f"unset {switch or standing.SIMULATION} and restart the server",
                "then measure again: nothing measured with it counts",
            ),
        ),
        explains=math.inf,
        voids=True,
    )


def _same_everywhere(case: Case) -> tuple[CommitPoint, ...]:
    """Points whose histograms are the same one or two neighbouring bins; empty unless easy and other texts share them.

    Nothing right in any step is a dead drafter, and everything right may be a drafter that is the target itself:
    neither is a sign of forgery.
    """
    enough = [p for p in case.points if p.histogram and sum(p.histogram) >= thresholds.MIN_STEPS]
    arms = {arm_of(point.arm) for point in enough}
    most = standing.ceiling(case)
    if most is None or not arms & set(COPYING) or not arms & set(UNRELATED):
        return ()
    return tuple(enough) if _same([point.histogram or () for point in enough], most) else ()


def _same_requests(case: Case) -> tuple[CommitRequest, ...]:
    """The same of requests that somebody recorded: of what text nobody says, but of lengths far apart."""
    if case.setup is not None or case.points:
        return ()
    told = [r for r in case.requests if r.acceptance_histogram and not r.error]
    enough = [r for r in told if sum(r.acceptance_histogram or ()) >= thresholds.MIN_TIMED_STEPS]
    lengths = sorted(request.context_tokens for request in enough)
    if len(enough) < thresholds.SAME_REQUESTS or lengths[-1] < thresholds.FAR_APART * max(lengths[0], 1):
        return ()
    histograms = [request.acceptance_histogram or () for request in enough]
    most = standing.ceiling(case) or max(map(len, histograms))
    return tuple(enough) if _same(histograms, most) else ()


def _same(histograms: Sequence[tuple[int, ...]], most: int) -> bool:
    used = {bin for histogram in histograms for bin, steps in enumerate(histogram) if steps}
    if not used or max(used) - min(used) > 1 or min(used) < 1 or max(used) >= most - 1:
        return False
    shares = [histogram[min(used)] / sum(histogram) for histogram in histograms]
    return max(shares) - min(shares) <= thresholds.SAME_SHARES


def _bins(point: CommitPoint) -> str:
    return _told(point.histogram or ())


def _told(histogram: tuple[int, ...]) -> str:
    told = [f"{right} right in {steps}" for right, steps in enumerate(histogram) if steps]
    return f"{' and '.join(told)} of {words.count(sum(histogram), 'step')}"


def _constant(case: Case) -> list[str]:
    """That the output repeats one token, where it should not."""
    looping = [r for r in case.requests if r.loop.startswith("1 token") and arm_of(r.arm) in UNRELATED]
    others = [r for r in case.requests if arm_of(r.arm) in UNRELATED and not r.error]
    if not looping or len(looping) < len(others):
        return []
    return [
        f"the output is one token over and over in {words.count(len(looping), 'request')} ({looping[0].loop})"
    ]
