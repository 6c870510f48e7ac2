"""Does speculation work, as far as points of others show?"""

from __future__ import annotations

from ddprobe.model import Verdict
from ddprobe.verdicts import words
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.collected import attention_kernel_bottleneck, causes, far_copy, figures
from ddprobe.verdicts.collected.figures import Line, mean
from ddprobe.verdicts.ruling import Ruling


def judge(case: Case) -> Ruling | None:
    """Repeated text is drafted well at every length, two at least, and no error speaks against it."""
    easy = figures.easy(case)
    if easy is None or len(easy.points) < 2 or not easy.works or not easy.level or figures.looks_up(case):
        return None
    others = figures.ordinary(case)
    wrong = (*causes.wiring(case), *causes.length(case))
    reasons = [f"{figures.told(figures.ends(easy), easy.ceiling)}: level, and well drafted"]
    if others:
        texts = ", ".join(f"{line.label} {mean(line.worst):.2f}" for line in others[:4])
        reasons.append(f"other texts commit less, as texts do: {texts}")
    if slower := attention_kernel_bottleneck.told(case):
        reasons.append(f"{slower}: what the drafter does holds, and this is another matter")
    afar = far_copy.holds(case)
    if afar is not None:
        reasons.append(f"{figures.told([afar], easy.ceiling)}: what stands far back is seen")
    reasons += [f"still, {text}" for text in causes.named(wrong)[:2]]
    return Ruling(
        Verdict(
            name="healthy",
            confidence="low" if wrong else "high" if _looked_through(case, easy) else "medium",
            reasons=tuple(reasons),
            cites=words.cites(*easy.points),
            ruled_out=(f"a dead drafter: {figures.told([easy.short], easy.ceiling)}",),
            missing=(
                *figures.few(easy.points),
                *(
                    ()
                    if _read(case)
                    else ("the server's arguments and both config.json: an error there may show elsewhere",)
                ),
                *far_copy.missing(case),
                *(() if others else ("ordinary text (arm prose): easy text does not show how it fares",)),
            ),
            next=("keep these numbers to compare with after an upgrade",),
        )
    )


def _looked_through(case: Case, easy: Line) -> bool:
    """Measured at sizes that count, and everything that configures it was read and holds no error."""
    return figures.sure(easy.points) == "high" and _read(case)


def _read(case: Case) -> bool:
    served = figures.server(case)
    if served is None or not served.arguments_known or served.target is None:
        return False
    return served.drafter is not None or served.drafts_with_own_layers
