"""What evidence of others leaves open, and what would settle it."""

from __future__ import annotations

from ddprobe.facts import CommitPoint
from ddprobe.model import Fact, Verdict
from ddprobe.verdicts import thresholds, words
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.collected import causes, figures
from ddprobe.verdicts.collected.figures import mean
from ddprobe.verdicts.ruling import Ruling

MOST = 8
LADDER = "ddprobe commit-probe --arms repeat,far-copy,prose --contexts 1k,16k,64k,128k"


def judge(case: Case) -> Ruling:
    """Everything that is known in a few sentences, and the point or file that would decide."""
    wrong = causes.length(case)
    kind, reasons, missing = _found(case)
    reasons += causes.named(wrong)
    if not reasons:
        kind = "no_measurement"
        reasons = ["nothing here says how many tokens a step commits"]
    facts: list[Fact] = [*case.every(CommitPoint), *figures.figures(case), *case.logs, *case.configs]
    return Ruling(
        Verdict(
            name="inconclusive",
            kind=kind,
            confidence="low",
            reasons=tuple(reasons[:MOST]),
            cites=words.cites(*facts) + causes.cites(wrong),
            ruled_out=_alive(case),
            missing=tuple(dict.fromkeys([*missing, *_absent(case)]))[:MOST],
            next=(*causes.advice(wrong)[:3], LADDER),
        )
    )


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
        if easy.ceiling is None:
            return "", told, ["how many tokens a step drafts at most: without it no mean is high or low"]
        first = easy.share(easy.short) or 0.0
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
    if figures.easy(case) is None:
        told.append("the same text at two lengths: nearly every report of a fall with length changes both")
    if served is None or served.drafter is None:
        told.append("the drafter's config.json")
        told.append("whether the target is the one that the drafter was trained on, or a fine-tune of it")
    if served is None or not served.arguments_known:
        told.append("the server's arguments")
    if not any(point.step_ms for point in points):
        told.append("step times: without them a slow kernel and rejected drafts look alike")
    if not any(point.context_tokens for point in points) and not case.logs:
        told.append("the context length of each number")
    return told


def _alive(case: Case) -> tuple[str, ...]:
    """A drafter whose first position is right often is not dead."""
    for figure in figures.figures(case):
        first = figure.per_position[0] if figure.per_position else 0.0
        if first >= thresholds.LIVING_FIRST:
            return (
                f"a dead drafter: the first draft is right in {first:.0%} of the steps ({figure.origin})",
            )
    return ()
