"""Is the text hard, or the output broken, rather than the drafter, by points and logs of others?"""

from __future__ import annotations

from ddprobe.facts import CommitPoint
from ddprobe.model import Verdict
from ddprobe.verdicts import thresholds, words
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.collected import attention_kernel_bottleneck, far_copy, figures
from ddprobe.verdicts.collected.figures import Line, mean
from ddprobe.verdicts.ruling import Ruling

MODES = ("thinking", "no-thinking", "plain")
"""Words in a series' name that tell in which mode of the chat template it was asked."""


def judge(case: Case) -> Ruling | None:
    """Repeated text works at every length and another text is far below it; or only a broken output does better."""
    return _beside_repeats(case) or _broken_output(case)


def _beside_repeats(case: Case) -> Ruling | None:
    easy = figures.easy(case)
    if easy is None or not easy.works or not easy.level:
        return None
    hard = [line for line in figures.ordinary(case) if _far_below(line, easy)]
    # A figure below that of repeated text is as it must be. Somebody asks, or it is hard at every length.
    asked = bool(figures.statements(case)) or any(_hard_everywhere(line) for line in hard)
    if not hard or not asked or any(_fades(line) for line in hard):
        return None
    worst = min(hard, key=lambda line: (mean(line.worst), line.label))
    others = [line for line in figures.ordinary(case) if line not in hard]
    modes = _modes(case, worst)
    held = len(worst.points) > 1 and figures.sure(worst.points) == "high"
    sure = figures.sure(easy.points) == "high" and (held or modes is not None)
    reasons = [
        f"{figures.told(figures.ends(worst), worst.ceiling)}",
        f"{figures.told(figures.ends(easy), easy.ceiling)}: the same drafter and server",
        *(f"{figures.told(figures.ends(line), line.ceiling)}" for line in others[:2]),
    ]
    if modes is not None:
        reasons.insert(0, _told(*modes))
    if len(worst.points) > 1:
        reasons.append("with the text held, the commit does not depend on the length")
    if slower := attention_kernel_bottleneck.told(case):
        reasons.append(f"beside it, {slower}")
    shown = (*figures.ends(worst), *figures.ends(easy))
    return Ruling(
        Verdict(
            name="text_difficulty",
            kind="template_mode" if modes is not None else "",
            # Held is what makes it sure: the text over lengths, or the text and the length over modes of the template.
            confidence="high" if sure else "medium",
            reasons=tuple(reasons),
            cites=words.cites(*shown),
            ruled_out=(
                f"a dead drafter: {figures.told([easy.short], easy.ceiling)}",
                f"a limit on length up to {easy.long.context_tokens} tokens: repeated text holds, as far as text that stays "
                "near tells",
            ),
            missing=(
                *figures.few(worst.points),
                *(
                    ("chat_template_kwargs of each run: which mode do its users ask for?",)
                    if modes is not None
                    else ()
                ),
                "the kind of prompt, template and temperature behind each stated number",
                *far_copy.missing(case),
            ),
            next=(
                *(
                    ("compare only runs of the same mode, and state it beside every figure",)
                    if modes is not None
                    else ()
                ),
                "measure your own text at two lengths: ddprobe commit-probe --arms prose --text FILE",
                "a shorter draft costs less where most of it is rejected",
            ),
        ),
        explains=mean(easy.short) / mean(worst.worst),
    )


def _far_below(line: Line, easy: Line) -> bool:
    return any(mean(point) < thresholds.BESIDE * mean(easy.worst) for point in line.points)


def _hard_everywhere(line: Line) -> bool:
    return len(line.points) > 1 and all(mean(point) <= thresholds.HARD * 1.1 for point in line.points)


def _fades(line: Line) -> bool:
    return mean(line.long) < thresholds.SAME * mean(line.short)


def _modes(case: Case, hard: Line) -> tuple[Line, Line] | None:
    """The hard text in one mode of the chat template, and the same in the other, in which far more is right."""
    text = _without_mode(hard.label)
    if text == hard.label:
        return None
    same = [
        line
        for line in figures.ordinary(case)
        if line.label != hard.label and _without_mode(line.label) == text
    ]
    other = max(same, key=lambda line: (mean(line.worst), line.label), default=None)
    if other is None or mean(hard.worst) >= thresholds.COLLAPSE * mean(other.worst):
        return None
    return hard, other


def _without_mode(label: str) -> str:
    return " ".join(word for word in label.split() if word not in MODES)


def _told(hard: Line, other: Line) -> str:
    return (
        f"the mode of thinking decides: of one text on one server, {hard.label} commits {mean(hard.worst):.2f} and "
        f"{other.label} {mean(other.worst):.2f}"
    )


# --- broken output ----------------------------------------------------------------------------------------


def _broken_output(case: Case) -> Ruling | None:
    """A target that goes in a circle beats the one that writes: its number is of the easiest text there is."""
    loops = [point for point in case.every(CommitPoint) if figures.looping(point) and point.commit_mean]
    sound = [point for line in figures.ordinary(case) for point in line.points]
    if not loops or not sound:
        return None
    loop, real = max(loops, key=mean), max(sound, key=mean)
    if mean(real) <= thresholds.DEAD or mean(loop) <= mean(real):
        return None
    most = figures.ceiling(case)
    return Ruling(
        Verdict(
            name="text_difficulty",
            kind="degenerate_output",
            confidence="high" if loop.loops and most else "medium",
            reasons=(
                f"{figures.told([loop], most)}, and its output goes in a circle: what repeats itself is the easiest text "
                "to draft, so this is no better drafter but a broken output",
                f"{figures.told([real], most)} where the output does not: that is the drafter's figure on this text",
            ),
            cites=words.cites(loop, real),
            ruled_out=("a dead drafter: text that does not loop is drafted, too",),
            missing=("repeated text (arm repeat) on both, and the output beside every number",),
            next=(
                "find out why the target loops (quantisation, template, sampling) before comparing speeds",
                "compare only numbers whose outputs were read",
            ),
        ),
        explains=mean(loop) / mean(real),
    )
