"""Is the drafter no help even for text that any drafter must manage?"""

from __future__ import annotations

from ddprobe.facts import CommitPoint
from ddprobe.model import Finding, Outcome, Verdict
from ddprobe.verdicts import standing, thresholds, words
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.excluded import excluded
from ddprobe.verdicts.ladder import ladders, mean
from ddprobe.verdicts.ruling import Ruling, weakest

WIRING = (
    "DC01", "DC02", "DC03", "DC04", "DC05", "DC06", "DC07", "DC08", "DC09", "DC10", "DC11", "DC12", "DC32", "DC33", "DC43", "DC45",
)  # fmt: skip
"""Lints on how the drafter is fed and built."""
HALF_WIRED = ("DC01", "DC03", "DC04", "DC10", "DC32", "DC33")
"""Those that leave it working in part."""


def judge(case: Case) -> Ruling | None:
    """Repeated text at a short length commits next to nothing; or, with a lint that says why, far too little."""
    point = standing.short_point(case)
    if point is None or point.context_tokens > thresholds.SHORT or point.drafted_steps == 0:
        return None
    most = thresholds.ceiling_of(point, standing.ceiling(case))
    if mean(point) <= thresholds.dead_below(most):
        return _dead(case, point, most)
    if most is not None and mean(point) < thresholds.works_from(most):
        return _half_wired(case, point, most)
    return None


def _dead(case: Case, point: CommitPoint, most: int | None) -> Ruling | None:
    limit = thresholds.dead_below(most)
    alive = [p for ladder in ladders(case) for p in ladder.points if _above(p, limit)]
    if alive:
        return None
    sure = point.commit_high is not None and point.commit_high <= limit and point.drafted_steps is not None
    reasons = [
        f"{words.commits([point], most)}: {limit:g} or less on text that any drafter must manage, and the target did "
        f"copy it ({point.copied or 0:.0%})"
    ]
    kind, told = _position(point)
    reasons += [told] if told else []
    longer = [p for ladder in ladders(case) for p in ladder.points if p is not point]
    if longer:
        best = max(longer, key=lambda p: (mean(p), p.arm, p.context_tokens))
        reasons.append(
            f"no text does better: of {words.count(len(longer), 'other point')} the best is this: {words.commits([best], most)}"
        )
    causes = [*case.found(Outcome.FAIL, *WIRING), *case.found(Outcome.WARN, *WIRING)]
    return Ruling(
        Verdict(
            name="drafter_dead",
            kind=kind,
            confidence=weakest("high" if sure else "medium", standing.certainty(case)),
            reasons=(*reasons, *_named(causes)),
            cites=words.cites(point, *longer) + tuple(cite for f in causes for cite in f.cites),
            ruled_out=(
                "hard text: repeated text is the easiest there is",
                "context: it is so at the shortest length",
                *excluded(case, "drafter_dead"),
            ),
            missing=_missing(case, causes),
            next=_next(causes),
        ),
        explains=_lost(point, most),
    )


def _half_wired(case: Case, point: CommitPoint, most: int) -> Ruling | None:
    """Only a lint tells half-wired from weak: without one there is no verdict."""
    fails, warns = case.found(Outcome.FAIL, *HALF_WIRED), case.found(Outcome.WARN, *HALF_WIRED)
    known = [share for share in point.conditional or () if share is not None]
    if not (fails or warns) or len(known) < 2 or max(known) - min(known) > thresholds.FLAT:
        return None
    curve = " ".join(f"{share:.2f}" for share in known)
    return Ruling(
        Verdict(
            name="drafter_dead",
            kind="miswired",
            confidence="medium" if fails else "low",
            reasons=(
                f"{words.commits([point], most)}: alive, and below {thresholds.works_from(most):.2f}, which repeated text "
                "should reach",
                f"each position is accepted about alike once those before it are ({curve}): weak all over, no single "
                "position is wrong",
                *_named([*fails, *warns]),
            ),
            cites=words.cites(point) + tuple(cite for f in (*fails, *warns) for cite in f.cites),
            ruled_out=excluded(case, "drafter_dead"),
            missing=_missing(case, [*fails, *warns]),
            next=_next([*fails, *warns]),
        ),
        explains=_lost(point, most),
    )


def _above(point: CommitPoint, limit: float) -> bool:
    return (point.commit_low if point.commit_low is not None else mean(point)) > limit


def _lost(point: CommitPoint, most: int | None) -> float:
    """How many times faster a sound drafter would be on this text."""
    return 1.0 if most is None else thresholds.EXPECTED * most / mean(point)


def _position(point: CommitPoint) -> tuple[str, str]:
    """At which position of the draft it ends, as a kind and in words."""
    if not point.per_position or not point.drafted_steps:
        return "", ""
    first, rest = point.per_position[0], point.per_position[1:]
    if first == 0:
        below = 3 / point.drafted_steps
        return "first_position", (
            f"not one first draft was right in {words.count(point.drafted_steps, 'step')}: its acceptance is below "
            f"{below:.1%}; the anchor, the mask token or the verify mask is wrong, or nothing was loaded"
        )
    if rest and max(rest) == 0:
        return "after_first", (
            f"the first draft is right in {first:.0%} of {words.count(point.drafted_steps, 'step')}, and none after it: "
            "positions or masks within the block are wrong"
        )
    return "", ""


def _named(causes: list[Finding]) -> tuple[str, ...]:
    return tuple(f"{finding.id}: {finding.summary}" for finding in causes[:4])


def _missing(case: Case, causes: list[Finding]) -> tuple[str, ...]:
    missing = list(standing.controls_missing(case))
    if case.config("drafter") is None:
        missing.append("the drafter's config.json: is it fed and built as it was trained?")
    elif not causes:
        missing.append("the cause: no lint on the drafter's configuration and weights finds one")
    return tuple(missing)


def _next(causes: list[Finding]) -> tuple[str, ...]:
    advice = [finding.advice for finding in causes if finding.advice]
    return (
        *dict.fromkeys(advice),
        "ddprobe inspect-config (taps, mask token, block size, weights), and the start-up log for skipped weights",
        "until it is found: switch speculation off, every draft costs and none counts",
    )
