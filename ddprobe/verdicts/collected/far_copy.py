"""Does what stands far back lose its drafts, while what stands near keeps them? By points of others."""

from __future__ import annotations

from dataclasses import dataclass

from ddprobe.facts import CommitPoint
from ddprobe.model import Finding, Verdict
from ddprobe.verdicts import thresholds, words
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.collected import figures
from ddprobe.verdicts.collected.figures import Line, mean
from ddprobe.verdicts.ladder import FAR, NEAR
from ddprobe.verdicts.long_context_bug import CONTROLS
from ddprobe.verdicts.reach import by_design, trimming
from ddprobe.verdicts.ruling import Ruling


@dataclass(frozen=True, slots=True)
class Loss:
    """A far copy beside what it should be like: the near one at its length, else itself at the shortest length."""

    far: CommitPoint
    good: CommitPoint
    near: bool


def judge(case: Case) -> Ruling | None:
    """A far copy collapses where a near one, or repeated text, does not; by design where the drafter has a window only."""
    loss = lost(case)
    if loss is None:
        return None
    design = by_design(case)
    trims = trimming(case) if design else ()
    return Ruling(
        Verdict(
            name="long_context_decay" if design else "long_context_bug",
            kind="window_by_design" if design else "far_kv",
            confidence="medium" if figures.sure([loss.good, loss.far]) == "high" else "low",
            reasons=_reasons(case, loss, design),
            cites=words.cites(loss.good, loss.far)
            + tuple(cite for finding in trims for cite in finding.cites),
            ruled_out=("hard text: the passage stands word for word in the prompt",),
            missing=_missing(case, loss),
            next=(*_advice(trims), words.command(case, [FAR]), *_then(design, trims)),
        ),
        explains=mean(loss.good) / mean(loss.far),
    )


def lost(case: Case) -> Loss | None:
    """The loss at the longest length; None where easy text falls too, or the far copy is as good again at a greater length."""
    easy = figures.easy(case)
    if easy is not None and not (easy.works and easy.level):
        return None
    lines = {line.label: line for line in figures.lines(case)}
    far, near = lines.get(FAR), lines.get(NEAR)
    if far is None:
        return None
    good = _good(far, near)
    if good is None or mean(good) <= thresholds.DEAD:
        return None
    share = far.share(good)
    alive = share is None or share >= thresholds.ALIVE_SHARE
    collapsed = mean(far.long) - 1 < thresholds.HALVED * (mean(good) - 1)
    return Loss(far.long, good, near is not None and good in near.points) if alive and collapsed else None


def _good(far: Line, near: Line | None) -> CommitPoint | None:
    length = far.long.context_tokens
    beside = next((p for p in near.points if p.context_tokens == length), None) if near is not None else None
    return beside or (far.short if far.short is not far.long else None)


def holds(case: Case) -> CommitPoint | None:
    """The far copy at its greatest length, where that was measured at two lengths and keeps what it had."""
    line = next((line for line in figures.lines(case) if line.label == FAR), None)
    return line.long if line is not None and len(line.points) > 1 and line.level else None


def _reasons(case: Case, loss: Loss, design: str) -> tuple[str, ...]:
    easy, most = figures.easy(case), figures.ceiling(case)
    shown = [loss.far] if loss.near else [loss.good, loss.far]
    return tuple(
        filter(
            None,
            (
                figures.told(shown, most),
                figures.told([loss.good], most) if loss.near else "",
                figures.told(figures.ends(easy), easy.ceiling) if easy is not None else "",
                design or "what stands near is drafted and what stands far back is not",
            ),
        )
    )


def _missing(case: Case, loss: Loss) -> tuple[str, ...]:
    served = figures.server(case)
    config = served.drafter if served is not None else None
    told = list(figures.few([loss.good, loss.far]))
    if config is None or config.layer_types is None:
        told.append("the drafter's layer_types: with a window on every layer, losing far text is by design")
    if not loss.near:
        told.append("the near copy at the same length (arm far-copy near)")
    return tuple(told)


def _advice(trims: tuple[Finding, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(finding.advice for finding in trims if finding.advice))


def _then(design: str, trims: tuple[Finding, ...]) -> tuple[str, ...]:
    if trims:
        return ()
    return ("a drafter with a full-attention layer would see far text",) if design else (CONTROLS["far_kv"],)


NOT_MEASURED = "a far copy (arm far-copy): text that is repeated nearby says nothing of what stands far back"


def missing(case: Case) -> tuple[str, ...]:
    """What is said where no far copy, or none that holds, was measured."""
    return () if holds(case) is not None else (NOT_MEASURED,)
