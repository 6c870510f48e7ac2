"""Does speculation work, as far as it was measured?"""

from __future__ import annotations

from ddprobe.facts import CommitPoint
from ddprobe.model import Verdict
from ddprobe.parsing import sizes
from ddprobe.verdicts import spec_net_loss, standing, thresholds, words
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.excluded import excluded
from ddprobe.verdicts.growth import Growth, five, growth
from ddprobe.verdicts.ladder import arm_of, mean
from ddprobe.verdicts.reach import Reach, reach
from ddprobe.verdicts.ruling import Ruling, weakest


def judge(case: Case) -> Ruling | None:
    """Easy text is drafted well at every planned length, and so is text that leaves the window: far copies, or prose."""
    prose, found = standing.control(case), reach(case)
    if not standing.easy_works(case) or prose.easy is None or (found.far is not None and _far_bad(found)):
        return None
    sound = (
        prose.whole
        and prose.kept
        and all(prose.fine(p) for p in (prose.ladder.points if prose.ladder is not None else ()))
    )
    hard = prose.whole and not sound
    known = case.setup is not None and case.setup.drafter == "model"
    if not (found.works and known) and not sound:
        return None
    most = standing.ceiling(case)
    easy = prose.easy.points
    longest = easy[-1].context_tokens
    reasons = [words.commits(_ends(easy), most)]
    if found.works and found.far is not None:
        reasons.append(words.commits([found.far.points[-1]], most))
    if prose.ladder is not None and prose.ladder.points:
        reasons.append(words.commits(_ends(prose.ladder.points), most))
    reasons.append(f"this holds up to {sizes.short(longest)}, the longest prompt that was measured")
    tops = [(point, thresholds.ceiling_of(point, most)) for point in easy]
    weak = [point for point, top in tops if top is not None and mean(point) < thresholds.EXPECTED * top]
    if weak:
        reasons.append(
            f"repeated text stays below {thresholds.EXPECTED:.0%} of the ceiling, which the better drafters reach: this "
            "one works, and is not among them"
        )
    reasons += [told] if (told := spec_net_loss.gain(case)) else []
    slower = growth(case)
    if slower is not None:
        reasons.append(f"{slower.told}: what the drafter does holds, and this is another matter")
        reasons += [slower.explained] if slower.explained else []
    full = found.works and sound and known and not weak and not hard
    left_out = case.setup.left_out if case.setup is not None else ()
    return Ruling(
        Verdict(
            name="healthy",
            confidence=weakest(
                "high" if full and len(easy) > 1 else "medium", _sure(slower), standing.certainty(case)
            ),
            reasons=tuple(reasons),
            cites=words.cites(*_ends(easy), *(found.far.points[-1:] if found.far is not None else ())),
            ruled_out=excluded(case),
            missing=(
                *standing.controls_missing(case),
                *(
                    ()
                    if found.works
                    else ("a far copy (arm far-copy): does the drafter see what stands far back?",)
                ),
                *(() if prose.whole else ("ordinary text (arm prose): easy arms do not show how it fares",)),
                *(
                    ()
                    if known
                    else ("what kind of drafter it is: looking up repeated text passes easy arms trivially",)
                ),
                *(slower.missing if slower is not None else ()),
                *left_out[:4],
            ),
            next=(
                *_timed(case, slower),
                "keep this report to compare with after an upgrade",
            ),
        )
    )


def _sure(slower: Growth | None) -> str:
    """How far steps that take longer and longer let one call it healthy."""
    if slower is None:
        return "high"
    if slower.beyond_memory:
        return "low"
    return "high" if slower.explained else "medium"


def _timed(case: Case, slower: Growth | None) -> tuple[str, ...]:
    """How to learn whether the step time grows as it must."""
    if slower is None or not slower.missing:
        return ()
    short, long = slower.short.context_tokens, slower.long.context_tokens
    return (
        "whether the step time grows as it must: five lengths, with the target's config and `gpu_bandwidth` known: "
        + words.command(case, [arm_of(slower.short.arm)], five(short, long)),
    )


def _ends(points: tuple[CommitPoint, ...]) -> tuple[CommitPoint, ...]:
    return tuple(dict.fromkeys((points[0], points[-1])))


def _far_bad(found: Reach) -> bool:
    """The far copy counts and speaks against, or was planned and is not there: it might."""
    lines = [ladder for ladder in (found.near, found.far) if ladder is not None]
    return bool(found.lost) or any(ladder.missing or ladder.fall() is not None for ladder in lines)
