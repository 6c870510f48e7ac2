"""Step times alone: how they grow, whether memory explains it, and that nothing was asked of the drafter."""

from __future__ import annotations

from ddprobe.facts import StepFit
from ddprobe.model import Verdict
from ddprobe.verdicts import bandwidth, thresholds, words
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.excluded import excluded
from ddprobe.verdicts.growth import CONTEXTS, growth, law, on_cpu, timed
from ddprobe.verdicts.ruling import Ruling

NEXT = "ddprobe commit-probe --arms repeat,far-copy,prose (are the drafts right, near and far?)"


def judge(case: Case) -> Ruling:
    """What the times say where no verdict on them holds."""
    points, found, grown = timed(case), law(case), growth(case)
    reasons: list[str] = []
    missing: list[str] = []
    if not points:
        reasons.append("no length has a step time of enough steps")
        missing.append(f"{thresholds.MIN_TIMED_STEPS} timed steps a length (--steps)")
    elif found is None:
        reasons.append(f"a step takes {words.steps_of(points[0])}; one length tells nothing of its growth")
        missing.append("a second length (--contexts)")
    else:
        ends = f"{words.steps_of(points[0])} and {words.steps_of(points[-1])}"
        reasons.append(
            f"a step takes {ends}: {_form(found)} ({words.count(found.points, 'median')} at "
            f"{words.count(len(found.contexts), 'length')})"
        )
        reached = bandwidth.reached(case, found)
        if reached is not None:
            achieved, line = reached
            slope = bandwidth.slope(achieved, line)
            reasons += [slope] if slope else []
            if achieved.slope_ratio is not None and achieved.slope_ratio.value < thresholds.ROOFLINE:
                reasons.append(
                    f"a slope below {thresholds.ROOFLINE:g} times that speaks for the kernel, as far as these lengths go"
                )
        elif on_cpu(case):
            reasons.append("the server runs on a CPU, whose bandwidth ddprobe does not know")
        reasons += [text for _, text in found.remarks]
        if grown is not None:
            missing += grown.missing
        if len(points) < CONTEXTS:
            missing.append(f"step times at {CONTEXTS} lengths or more")
    missing.append("commit lengths on texts that tell a broken drafter from hard text (commit-probe)")
    return Ruling(
        Verdict(
            name="inconclusive",
            kind="times_only",
            confidence="low",
            reasons=tuple(reasons),
            cites=words.cites(case.setup, *points),
            ruled_out=excluded(case),
            missing=tuple(dict.fromkeys(missing)),
            next=(NEXT,),
        )
    )


def _form(law: StepFit) -> str:
    if law.form == "linear" and law.b.value < 0:
        return "it falls in a straight line, which no attention does: measured otherwise at short lengths, or noise"
    return _FORMS.get(law.form, law.form)


_FORMS = {
    "flat": "flat, as far as the sample tells",
    "linear": "it grows in a straight line",
    "quadratic": "it grows faster and faster, or ever more slowly",
    "knee": "a line that jumps between two lengths",
}
