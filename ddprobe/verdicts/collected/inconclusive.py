"""What evidence of others leaves open, and what would settle it."""

from __future__ import annotations

from ddprobe.facts import CommitPoint, CommitRequest
from ddprobe.model import Fact, Finding, Verdict
from ddprobe.parsing import sizes
from ddprobe.verdicts import thresholds, words
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.collected import causes, figures, stated
from ddprobe.verdicts.collected.figures import mean
from ddprobe.verdicts.ruling import Ruling
from ddprobe.verdicts.startup_incompatible import RAISES

UNMEASURED = "no_measurement"
"""The kind where nothing is told of what a step commits."""
MOST_ADVICE = 4
LADDER = "ddprobe commit-probe --arms repeat,far-copy,prose --contexts 1k,16k,64k,128k"

_START = "then start it and run ddprobe analyse on its log: it says whether the server comes up"


def judge(case: Case) -> Ruling:
    """Everything that is known in a few sentences, and the point or file that would decide."""
    wrong = causes.length(case)
    kind, reasons, missing = _found(case)
    reasons += causes.named(wrong)
    if not reasons:
        kind = UNMEASURED
        reasons = ["nothing here says how many tokens a step commits"]
    every = causes.failed(case)
    reasons += [text for text in (*causes.named(every), *stated.told(case)) if text not in reasons]
    raises = _raises(case)
    if raises:
        ids = words.listed([finding.id for finding in raises])
        reasons.insert(
            0, f"by {ids} this server raises at its start, and nothing here shows that it ever served"
        )
    facts: list[Fact] = [*case.every(CommitPoint), *figures.figures(case), *case.logs, *case.configs]
    return Ruling(
        Verdict(
            name="inconclusive",
            kind=kind,
            confidence=_sure(case, wrong),
            reasons=tuple(reasons[:8]),
            cites=words.cites(*facts) + causes.cites(every),
            ruled_out=_alive(case),
            missing=tuple(dict.fromkeys([*missing, *_absent(case)]))[:8],
            next=(*causes.advice(every)[:MOST_ADVICE], _START if raises else LADDER),
        )
    )


def _raises(case: Case) -> tuple[Finding, ...]:
    """Errors that a server does not come up with; none where anything shows that it did."""
    if case.every(CommitPoint) or case.logs or figures.figures(case) or case.every(CommitRequest):
        return ()
    if any(event.kind == "ready" for event in case.events):
        return ()
    return tuple(finding for finding in causes.failed(case) if finding.id in RAISES)


def _sure(case: Case, wrong: tuple[Finding, ...]) -> str:
    """How sure it is that this settles nothing.

    Sure where a drafter that lives was counted over enough steps, on texts that nobody held: hard text, and a drafter
    of another target, look just so. Unsure where nothing was counted, where an error may be the cause, or where
    repeated text was measured and is no answer by itself.
    """
    texts = figures.ordinary(case)
    counted = figures.figures(case)
    if wrong or figures.easy(case) is not None or not (texts or counted):
        return "low"
    steps = sum(point.steps for line in texts for point in line.points) + sum(f.steps or 0 for f in counted)
    best = max(
        [mean(point) for line in texts for point in line.points] + [figures.commit(f) for f in counted]
    )
    return "high" if steps >= thresholds.MIN_STEPS and best > thresholds.DEAD else "medium"


def _found(case: Case) -> tuple[str, list[str], list[str]]:
    easy = figures.easy(case)
    if figures.looks_up(case):
        return (
            "lookup",
            ["the drafter looks repeated text up: easy text is trivial to it, and says nothing of a drafter"],
            ["your own text: how often it repeats itself decides what looking it up is worth"],
        )
    if easy is not None:
        told = [figures.told(easy.points, easy.ceiling)]
        first = easy.share(easy.short)
        if first is None:
            return "", told, ["how many tokens a step drafts at most: without it no mean is high or low"]
        if len(easy.points) == 1 and first < thresholds.DEAD_SHARE:
            told.append("dead, or broken by the length alone: no short prompt was measured")
            return "", told, [f"repeated text at {thresholds.SHORT} tokens or fewer"]
        if easy.level and not easy.works:
            told.append(
                f"that is alive, and below {thresholds.ALIVE_SHARE:.0%} of the drafts, which repeated text should reach: weak "
                "and half wired look alike"
            )
            return (
                "weak_drafter",
                told,
                ["an error in the drafter's configuration, or a server where it works"],
            )
        if len(easy.points) == 1:
            return "", told, ["repeated text at a second, greater length"]
        return "", told, []
    if figures.far_only(case) and all(map(figures.gets_nothing, case.logs)):
        least = sizes.short(figures.shortest(case) or 0)
        return (
            "",
            [
                f"nothing in the log is right, and all of it is of {least} tokens and more: dead, or broken by the length alone"
            ],
            [f"log lines, or repeated text, of prompts at {thresholds.SHORT} tokens or fewer"],
        )
    loops = [p for p in case.every(CommitPoint) if figures.looping(p) and p.commit_mean]
    told = [
        f"{point.arm} commits {mean(point):.2f}, and its output goes in a circle: that is no figure of a drafter"
        for point in loops[:2]
    ]
    told += [figures.told(figures.ends(line), line.ceiling) for line in figures.ordinary(case)[:4]]
    for figure in figures.figures(case)[:3]:
        steps = f"{figure.steps} steps" if figure.steps else "nobody says of how many steps"
        told.append(
            f"{figure.origin} states {figure.commit:.2f} tokens per step ({figure.window or 'no window'}, {steps})"
        )
    for log in case.logs[:2]:
        if log.trend:
            told.append(log.trend)
    return (
        "degenerate_output" if loops else "",
        told,
        ["repeated text (arm repeat): it tells a broken drafter from hard text"],
    )


def _absent(case: Case) -> list[str]:
    """What would help and is not here."""
    told = []
    served = figures.server(case)
    points = case.every(CommitPoint)
    lengths = [
        line
        for line in figures.ordinary(case)
        if len({p.context_tokens for p in line.points if p.context_tokens}) > 1
    ]
    if lengths and all(point.arm == "text" for line in lengths for point in line.points):
        told.append(
            "whether the text was the same at each length: nearly every report of a fall changes both"
        )
    elif figures.easy(case) is None and not lengths:
        told.append("the same text at two lengths: nearly every report of a fall with length changes both")
    told += figures.unknown_models(case)
    if stated.cut(case):
        told.append("the rest of the server's arguments: they are not whole")
    elif served is None or not (served.arguments_known or served.algorithm):
        told.append("the server's arguments")
    timed = any(figures.step_ms(bin) for log in case.logs for bin in figures.speaking(log))
    if not timed and not any(point.step_ms for point in points):
        told.append("step times: without them a slow kernel and rejected drafts look alike")
    lengths_told = [p.context_tokens for p in points] + [r.context_tokens for r in case.every(CommitRequest)]
    if not any(lengths_told) and not case.logs:
        told.append("the context length of each number")
    return told


def _alive(case: Case) -> tuple[str, ...]:
    """A drafter whose first position is right often is not dead."""
    for figure in figures.figures(case):
        if figure.per_position and figure.per_position[0] >= thresholds.LIVING_FIRST:
            first = f"the first draft is right in {figure.per_position[0]:.0%} of the steps"
            return (f"a dead drafter: {first} ({figure.origin})",)
    return ()
