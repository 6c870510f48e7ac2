"""How far back the drafter sees: the far copy beside the near one, and whether a loss is by design."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from ddprobe.engines.sglang_reading import SLIDING
from ddprobe.facts import CommitPoint
from ddprobe.model import Finding, Outcome
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.ladder import EASY, FAR, NEAR, WIDE, Ladder, collapsed, holds, ladders, mean

TRIMMED = "SA04"
"""The lint on a draft window that cuts the full-attention layer too."""


@dataclass(frozen=True, slots=True)
class Reach:
    """The far copy: the same kind of passage from nearby and from the beginning of the prompt."""

    near: Ladder | None
    far: Ladder | None
    window: int | None

    @property
    def whole(self) -> bool:
        return (
            self.near is not None
            and self.far is not None
            and self.near.whole
            and self.far.whole
            and self.pairs != ()
        )

    @property
    def pairs(self) -> tuple[tuple[CommitPoint, CommitPoint], ...]:
        """(near, far) at the same length."""
        if self.near is None or self.far is None:
            return ()
        found = ((self.near.at(point.context_tokens), point) for point in self.far.points)
        return tuple((near, far) for near, far in found if near is not None)

    def inside(self, point: CommitPoint) -> bool:
        """Whether the far passage still lies in the drafter's window."""
        return self.window is not None and point.context_tokens <= self.window

    @property
    def lost(self) -> tuple[tuple[CommitPoint, CommitPoint], ...]:
        """Pairs in which the far passage collapses beside the near one."""
        return tuple((near, far) for near, far in self.pairs if collapsed(near, far))

    @property
    def kept(self) -> tuple[tuple[CommitPoint, CommitPoint], ...]:
        """Those of them beyond which the far passage is not drafted as well as the near one again."""
        beyond = itertools.takewhile(lambda pair: not holds(*pair), reversed(self.pairs))
        return tuple(pair for pair in reversed(tuple(beyond)) if collapsed(*pair))

    @property
    def works(self) -> bool:
        ladders = [ladder for ladder in (self.near, self.far) if ladder is not None]
        return (
            self.whole
            and all(holds(near, far) for near, far in self.pairs)
            and all(ladder.level for ladder in ladders)
        )


def reach(case: Case) -> Reach:
    found = ladders(case, FAR)
    return Reach(
        near=next((ladder for ladder in found if ladder.label == NEAR), None),
        far=next((ladder for ladder in found if ladder.label != NEAR), None),
        window=case.setup.window if case.setup is not None else None,
    )


def beyond(case: Case) -> tuple[tuple[int, str], ...] | None:
    """Lengths from beyond which a copy must come before it shows far positions; None where nothing tells them.

    Within the window or the length that the drafter was trained on, every distance is one that it always had.
    """
    config = case.config("drafter")
    window = case.setup.window if case.setup is not None else None
    original = None
    if config is not None:
        window = window or (config.sliding_window if config.use_sliding_window is not False else None)
        original = config.rope.original_max_position
    named = ((window, "the drafter's window"), (original, "its original length"))
    found = tuple((tokens, name) for tokens, name in named if tokens)
    return found if found or config is not None else None


def held_afar(case: Case) -> CommitPoint | None:
    """The far copy at the longest length, where it holds and comes from beyond all of these."""
    found, lengths = reach(case), beyond(case)
    if lengths is None or found.far is None or not found.works:
        return None
    longest = found.far.points[-1]
    return longest if all(longest.context_tokens > tokens for tokens, _ in lengths) else None


@dataclass(frozen=True, slots=True)
class FarLoss:
    """A far passage that is not drafted where a near one is."""

    far: CommitPoint
    near: CommitPoint | None
    """The near one at the same length."""
    short: CommitPoint | None
    """The same far text at the shortest length, where it still lay close; known where there is no near one."""
    window: int | None

    @property
    def ratio(self) -> float:
        good = self.near or self.short
        assert good is not None
        return mean(good) / mean(self.far)


def far_loss(case: Case) -> FarLoss | None:
    """The worst loss beyond the window; None where easy text falls too, or where the far text is weak inside it as well.

    Nor is a loss that is none any more at a greater length: whoever cannot see far does not see farther. Several lengths
    are compared, and one of them differs by chance more often than all that follow.
    """
    easy = ladders(case, *EASY, WIDE)
    if any(ladder.fall() is not None for ladder in easy):
        return None
    found = reach(case)
    if found.far is None or not found.far.points:
        return None
    if any(found.inside(far) for _, far in found.lost):
        # It is so within the window too: the texts differ, not the distance.
        return None
    if found.window is None and len(found.lost) == len(found.pairs) > 0:
        return None
    lost = [FarLoss(far, near, _short(found, far), found.window) for near, far in found.kept]
    fall = found.far.fall()
    if fall is not None and fall.recovers is None and not lost:
        near = found.near.at(fall.worst.context_tokens) if found.near is not None else None
        if near is None and not found.inside(fall.worst):
            lost.append(FarLoss(fall.worst, None, fall.short, found.window))
    return max(lost, key=lambda loss: (loss.ratio, loss.far.context_tokens), default=None)


def _short(found: Reach, far: CommitPoint) -> CommitPoint | None:
    first = found.far.points[0] if found.far is not None else far
    return first if first is not far else None


def by_design(case: Case) -> str:
    """Why this drafter cannot see beyond its window; empty when it should."""
    config = case.config("drafter")
    if config is not None and config.layer_types and set(config.layer_types) == {SLIDING}:
        return (
            f"all {len(config.layer_types)} layers of the drafter slide: it was built to see its window only"
        )
    trims = trimming(case)
    return trims[0].summary if trims else ""


def trimming(case: Case) -> tuple[Finding, ...]:
    """Lints that say that a launch argument cuts what the drafter's full layers see."""
    return (*case.found(Outcome.FAIL, TRIMMED), *case.found(Outcome.WARN, TRIMMED))
