"""What is lost of text that lies far back, and whether the drafter was built to lose it."""

from __future__ import annotations

from dataclasses import dataclass

from ddprobe.engines.sglang_reading import SLIDING
from ddprobe.facts import CommitPoint
from ddprobe.model import Finding, Outcome
from ddprobe.verdicts import standing
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.ladder import EASY, WIDE, ladders, mean

TRIMMED = "SA04"
"""The lint on a draft window that cuts the full-attention layer too."""


@dataclass(frozen=True, slots=True)
class FarLoss:
    """A far passage that is not drafted where a near one is."""

    far: CommitPoint
    near: CommitPoint | None
    """The near one at the same length."""
    short: CommitPoint | None
    """The same far text at the shortest length, where it still lay close."""
    window: int | None

    @property
    def ratio(self) -> float:
        good = self.near or self.short
        return mean(good) / mean(self.far) if good is not None else 1.0


def far_loss(case: Case) -> FarLoss | None:
    """The worst loss beyond the window; None where easy text falls too, or where the far text is weak inside it as well."""
    easy = ladders(case, *EASY, WIDE)
    if any(ladder.fall() is not None for ladder in easy):
        return None
    reach = standing.reach(case)
    if reach.far is None or not reach.far.points:
        return None
    if any(reach.inside(far) for _, far in reach.lost):
        # It is so within the window too: the texts differ, not the distance.
        return None
    lost = [FarLoss(far, near, _short(reach, far), reach.window) for near, far in reach.lost]
    fall = reach.far.fall()
    if fall is not None and fall.recovers is None and not lost:
        near = reach.near.at(fall.worst.context_tokens) if reach.near is not None else None
        if near is None and not reach.inside(fall.worst):
            lost.append(FarLoss(fall.worst, None, fall.short, reach.window))
    return max(lost, key=lambda loss: (loss.ratio, loss.far.context_tokens), default=None)


def _short(reach: standing.Reach, far: CommitPoint) -> CommitPoint | None:
    first = reach.far.points[0] if reach.far is not None else far
    return first if first is not far else None


def by_design(case: Case) -> str:
    """Why this drafter cannot see beyond its window; empty when it should."""
    config = case.config("drafter")
    if config is not None and config.layer_types and set(config.layer_types) == {SLIDING}:
        return f"all {len(config.layer_types)} layers of the drafter slide: it was built to see its window only"
    trims = trimming(case)
    return trims[0].summary if trims else ""


def trimming(case: Case) -> tuple[Finding, ...]:
    """Lints that say that a launch argument cuts what the drafter's full layers see."""
    return (*case.found(Outcome.FAIL, TRIMMED), *case.found(Outcome.WARN, TRIMMED))
