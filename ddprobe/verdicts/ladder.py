"""One text at several lengths: which of its points count as evidence, and where they fall."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

from ddprobe.facts import CommitPoint, PlannedPoint
from ddprobe.parsing import sizes
from ddprobe.verdicts import thresholds
from ddprobe.verdicts.case import Case

EASY = ("repeat", "repeat-wide")
"""Text whose next tokens stand within the last few: what any drafter must manage."""
WIDE = "repeat-long"
FAR = "far-copy"
NEAR = "far-copy near"
PROSE = "prose"
NO_LADDER = ("verbatim", "controls")
"""What is sent at one length only, and what the plan counts for the probe's own controls."""
COPYING = (*EASY, WIDE, FAR)


def arm_of(label: str) -> str:
    """The arm that a point's label begins with."""
    return label.partition(" ")[0]


def doubt(case: Case, point: CommitPoint) -> str:
    """Why this point is no evidence of what the drafter can do; empty when it is."""
    arm = arm_of(point.arm)
    if point.commit_mean is None:
        return "no request gave a measurement"
    if point.steps < thresholds.MIN_STEPS:
        return f"{point.steps} steps, {thresholds.MIN_STEPS} are needed"
    if arm in COPYING and point.copied is None:
        return "whether the target copied the text is not known"
    if arm in COPYING and point.copied is not None and point.copied < thresholds.COPIES:
        return f"the target copied {point.copied:.1%} of the text only, {thresholds.COPIES:.0%} are needed"
    if arm not in COPYING and point.loops:
        return f"the output of {point.loops} of {point.requests} requests goes in a circle"
    if arm == PROSE and point.saturated:
        return "prose that reaches the ceiling in every step is no prose: a loop, or a replay"
    if _served_from_cache(case, point):
        return "its prompt came from the prefix cache, which changes what is accepted here"
    return ""


def _served_from_cache(case: Case, point: CommitPoint) -> bool:
    """Whether the prefix cache, known to change the answer, may have served it."""
    check = case.check("cold-cached")
    if check is None or check.agrees is not False or (case.setup is not None and case.setup.cold):
        return False
    if point.cached_tokens is None or not point.prompt_tokens:
        return True
    return point.cached_tokens > thresholds.FROM_CACHE * point.prompt_tokens


@dataclass(frozen=True, slots=True)
class Fall:
    """Where the commit of one text collapses with length."""

    short: CommitPoint
    """The shortest length: what it is compared with."""
    good: CommitPoint
    """The last length before the edge."""
    bad: CommitPoint
    """The first one after it."""
    worst: CommitPoint
    recovers: CommitPoint | None
    """A greater length at which all is well again."""
    edge: bool
    """The fall happens between two neighbouring lengths; False: it slopes."""

    @property
    def ratio(self) -> float:
        return mean(self.short) / mean(self.worst)


@dataclass(frozen=True, slots=True)
class Ladder:
    """The points of one label that count, by context, and those that do not, with the reason."""

    label: str
    points: tuple[CommitPoint, ...]
    refused: tuple[tuple[CommitPoint, str], ...]
    missing: tuple[PlannedPoint, ...]
    """Planned, and not measured at all."""

    @property
    def arm(self) -> str:
        return arm_of(self.label)

    @property
    def whole(self) -> bool:
        """Every length that was planned counts."""
        return bool(self.points) and not self.refused and not self.missing

    @property
    def troubles(self) -> tuple[str, ...]:
        """What is missing of it, in words."""
        return tuple(
            f"{self.label} at {sizes.short(point.context_tokens)}: {reason}" for point, reason in self.refused
        ) + tuple(f"{self.label} at {sizes.short(p.context_tokens)}: not measured" for p in self.missing)

    def at(self, context: int) -> CommitPoint | None:
        return next((point for point in self.points if point.context_tokens == context), None)

    @property
    def level(self) -> bool:
        """It holds from the shortest length to the longest."""
        return all(holds(self.points[0], point) for point in self.points)

    @property
    def unclear(self) -> tuple[CommitPoint, ...]:
        """Points that neither hold nor collapse, as far as the samples tell."""
        first = self.points[0] if self.points else None
        return tuple(
            p for p in self.points if first is not None and not holds(first, p) and not collapsed(first, p)
        )

    def fall(self) -> Fall | None:
        """The first collapse against the shortest length; None when there is none."""
        if not self.points:
            return None
        short = self.points[0]
        fallen = [point for point in self.points if collapsed(short, point)]
        if not fallen:
            return None
        bad = fallen[0]
        good = self.points[self.points.index(bad) - 1]
        after = self.points[self.points.index(bad) :]
        worst = min(fallen, key=lambda point: (mean(point), point.context_tokens))
        lost = mean(short) - mean(worst)
        steepest = max(mean(a) - mean(b) for a, b in itertools.pairwise(self.points))
        return Fall(
            short=short,
            good=good,
            bad=bad,
            worst=worst,
            recovers=next((point for point in after if not collapsed(short, point)), None),
            edge=steepest >= thresholds.ONE_STEP * lost,
        )


def mean(point: CommitPoint) -> float:
    """The mean commit of a point that counts."""
    assert point.commit_mean is not None
    return point.commit_mean


def apart(higher: CommitPoint, lower: CommitPoint) -> bool:
    """Whether their 95 % intervals do not meet. Without intervals that is not known."""
    if higher.commit_low is None or lower.commit_high is None:
        return False
    return higher.commit_low > lower.commit_high


def holds(before: CommitPoint, after: CommitPoint) -> bool:
    """Whether it is no collapse by its means alone. Neither this nor `collapsed`: the samples do not tell."""
    return mean(after) >= thresholds.COLLAPSE * mean(before)


def collapsed(before: CommitPoint, after: CommitPoint) -> bool:
    return apart(before, after) and not holds(before, after)


def ladders(case: Case, *arms: str) -> tuple[Ladder, ...]:
    """Every text of these arms (of all arms where none is named), in the order of their labels."""
    planned = case.setup.points if case.setup is not None else ()
    measured = {point.arm for point in case.points}
    labels = sorted(measured | {plan.arm for plan in planned})
    return tuple(
        _ladder(case, label, planned)
        for label in labels
        if (not arms or arm_of(label) in arms) and arm_of(label) not in NO_LADDER
    )


def _ladder(case: Case, label: str, planned: Iterable[PlannedPoint]) -> Ladder:
    mine = sorted((p for p in case.points if p.arm == label), key=lambda point: point.context_tokens)
    told = [(point, doubt(case, point)) for point in mine]
    known = {point.context_tokens for point in mine}
    return Ladder(
        label=label,
        points=tuple(point for point, reason in told if not reason),
        refused=tuple((point, reason) for point, reason in told if reason),
        missing=tuple(plan for plan in planned if plan.arm == label and plan.context_tokens not in known),
    )
