"""Does the drafter get weaker with length, as one trained on short text does?"""

from __future__ import annotations

import itertools

from ddprobe.facts import CommitPoint
from ddprobe.model import Verdict
from ddprobe.verdicts import standing, thresholds, words
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.excluded import excluded
from ddprobe.verdicts.ladder import EASY, FAR, WIDE, Ladder, apart, ladders, mean
from ddprobe.verdicts.reach import by_design, far_loss, reach, trimming
from ddprobe.verdicts.ruling import Ruling, weakest


def judge(case: Case) -> Ruling | None:
    """Prose fades while easy and far text hold; or easy text itself fades without an edge; or a window is by design."""
    if any(ladder.fall() is not None for ladder in ladders(case, *EASY, WIDE)):
        return None
    return _designed(case) or _prose(case) or _easy(case)


def _prose(case: Case) -> Ruling | None:
    prose = standing.control(case)
    if prose.ladder is None or prose.ends is None or prose.kept or not prose.whole:
        return None
    if not (standing.easy_works(case) and reach(case).works):
        return None
    return _ruling(case, prose.ladder, "while text that is to be copied holds, near and far")


def _easy(case: Case) -> Ruling | None:
    """Repeated text fades a little with each length: no collapse, and no more than its intervals tell."""
    fading = [ladder for ladder in ladders(case, *EASY) if ladder.whole and _fades(ladder)]
    short = standing.short_point(case)
    found = reach(case)
    if not fading or short is None or not standing.works(case, short) or found.lost:
        return None
    return _ruling(case, fading[0], "and repeated text is the easiest there is")


def _fades(ladder: Ladder) -> bool:
    short, long = ladder.points[0], ladder.points[-1]
    return apart(short, long) and mean(long) < thresholds.SAME * mean(short)


def _ruling(case: Case, ladder: Ladder, beside: str) -> Ruling:
    short, long = ladder.points[0], ladder.points[-1]
    kept = mean(long) / mean(short)
    spread = smooth(ladder.points)
    steep = kept < thresholds.STEEP
    missing = list(standing.controls_missing(case))
    if spread is not True:
        missing.append(
            "lengths in between: three or more tell a slope from an edge"
            if spread is None
            else "why most of it is lost in one step: lengths around it, and the limits configured there"
        )
    if case.config("drafter") is None:
        missing.append("the drafter's config.json: for which length was it trained?")
    sure = spread is True and not steep
    return Ruling(
        Verdict(
            name="long_context_decay",
            kind="steep" if steep else "",
            confidence=weakest("medium" if sure else "low", standing.certainty(case)),
            reasons=(
                f"{words.commits(ladder.points, standing.ceiling(case))}: {kept:.0%} of the commit is left, {beside}",
                "no single step of the ladder holds most of the loss"
                if spread
                else "where it is lost is not resolved",
            ),
            cites=words.cites(*ladder.points),
            ruled_out=excluded(case),
            missing=tuple(missing),
            next=(
                words.command(case, [ladder.arm], _between(ladder)),
                "a drafter trained on longer text, or a shorter draft at these lengths",
            ),
        ),
        explains=1 / kept,
    )


def _designed(case: Case) -> Ruling | None:
    """Far text is lost because the drafter, or a launch argument, keeps nothing beyond a window."""
    loss, design = far_loss(case), by_design(case)
    if loss is None or not design:
        return None
    most = standing.ceiling(case)
    shown = [point for point in (loss.short, loss.far) if point is not None]
    beside = (words.commits([loss.near], most),) if loss.near is not None else ()
    return Ruling(
        Verdict(
            name="long_context_decay",
            kind="window_by_design",
            confidence=weakest("high" if loss.near is not None else "medium", standing.certainty(case)),
            reasons=(words.commits(shown, most), *beside, design),
            cites=words.cites(*shown, loss.near, case.config("drafter"))
            + tuple(c for f in trimming(case) for c in f.cites),
            ruled_out=excluded(case, "far_kv"),
            missing=standing.controls_missing(case),
            next=(
                *dict.fromkeys(finding.advice for finding in trimming(case) if finding.advice),
                words.command(case, [FAR]),
                "a drafter with a full-attention layer would see far text",
            ),
        ),
        explains=loss.ratio,
    )


def smooth(points: tuple[CommitPoint, ...]) -> bool | None:
    """Whether the loss is spread over the ladder; None where two lengths cannot tell."""
    if len(points) < 3:
        return None
    lost = mean(points[0]) - mean(points[-1])
    steps = [mean(a) - mean(b) for a, b in itertools.pairwise(points)]
    return max(steps) < thresholds.ONE_STEP * lost


def _between(ladder: Ladder) -> list[int]:
    """The ladder's lengths and one between each two."""
    known = [point.context_tokens for point in ladder.points]
    middles = [round((a * b) ** 0.5 / 256) * 256 for a, b in itertools.pairwise(known)]
    return [length for length in {*known, *middles} if length]
