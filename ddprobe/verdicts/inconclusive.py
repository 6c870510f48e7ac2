"""What is missing for a verdict, and what would settle it."""

from __future__ import annotations

from collections.abc import Sequence

from ddprobe.facts import CommitPoint, CommitSetup
from ddprobe.model import Outcome, Verdict
from ddprobe.verdicts import standing, thresholds, words
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.excluded import excluded
from ddprobe.verdicts.ladder import COPYING, FAR, PROSE, arm_of, ladders, mean
from ddprobe.verdicts.reach import reach
from ddprobe.verdicts.ruling import Ruling

MOST = 8
MOST_ADVICE = 4
"""Sentences of one kind that a person still reads."""


def judge(case: Case) -> Ruling:
    """The first of the things that stand in the way, everything measured, and how to go on."""
    setup = case.setup
    if not any(point.commit_mean is not None for point in case.points):
        return _nothing(case)
    if (told := standing.drifted(case)) and setup is not None:
        return _state(case, told)
    length = case.check("prompt-length")
    if length is not None and length.agrees is False:
        return _ruling(
            case,
            "prompt_length",
            [length.text, "lengths that are not what was asked for cannot be compared"],
            ["prompts of the exact length: the server's own tokenizer must answer"],
            [words.command(case, _arms(setup))],
        )
    if setup is not None and setup.drafter == "lookup":
        return _lookup(case, setup)
    return _weak(case) or _short_of(case, setup)


def _ruling(case: Case, kind: str, reasons: list[str], missing: list[str], todo: list[str]) -> Ruling:
    return Ruling(
        Verdict(
            name="inconclusive",
            kind=kind,
            confidence="low",
            reasons=tuple(reasons[:MOST]),
            cites=words.cites(case.setup, *(p for p in case.points if p.commit_mean is not None)),
            ruled_out=excluded(case),
            missing=tuple(dict.fromkeys(missing))[:MOST],
            next=tuple(dict.fromkeys([*_advice(case), *todo])),
        )
    )


def _advice(case: Case) -> list[str]:
    """What lints that fail advise: it comes before measuring again."""
    return [f.advice for f in case.findings if f.outcome is Outcome.FAIL and f.advice][:MOST_ADVICE]


def _nothing(case: Case) -> Ruling:
    errors = sorted({request.error for request in case.requests if request.error})
    reasons = ["no request gave a measurement", *errors[:3]]
    if case.setup is not None and case.setup.speculating is False:
        reasons.append("the server says that it does not speculate")
    todo = ["ddprobe server (is it up, and what does it say?)", words.command(case, _arms(case.setup))]
    return _ruling(case, "no_measurement", reasons, ["requests that the server answers whole"], todo)


def _state(case: Case, told: str) -> Ruling:
    reasons = [
        told,
        "what is committed depends on what was sent before: a fall over the ladder is then none with context",
    ]
    if standing.looks_up(case):
        reasons.append(
            "a drafter that looks text up keeps a memory of earlier requests, and that alone can do this"
        )
    return _ruling(
        case,
        "state_effect",
        [*reasons, *_measured(case)],
        ["a run in which the first point comes out the same at the end"],
        [
            f"restart the server and measure one length alone: {words.command(case, ['repeat'], _shortest(case))}",
            "the same again with another --seed: what stays the same is not a state",
        ],
    )


def _lookup(case: Case, setup: CommitSetup) -> Ruling:
    nothing = standing.drafted_nothing(case)
    method = f"{setup.method} " if setup.method else ""
    reasons = [
        f"the drafter {method}looks repeated text up: easy arms are trivial to it, and say nothing of a drafter",
        *(["it found nothing to draft in these texts"] if nothing else []),
        *_measured(case),
    ]
    return _ruling(
        case,
        "nothing_to_look_up" if nothing else "lookup",
        reasons,
        [
            "a text whose period is longer than its draft: some methods draft nothing for short periods"
            if nothing
            else "your own text: how often it repeats itself decides what looking it up is worth",
        ],
        [
            words.command(case, ["repeat-long"] if nothing else ["prose", "code"]),
            "measure a request as your users send it: ddprobe commit-probe --arms verbatim --text FILE",
        ],
    )


def _weak(case: Case) -> Ruling | None:
    """Repeated text is neither dead nor drafted well, or dead against other evidence."""
    point = standing.short_point(case)
    most = standing.ceiling(case)
    if point is None or most is None or standing.works(case, point):
        return None
    limit = thresholds.dead_below(most)
    reasons = [words.commits([point], most)]
    missing = [*standing.controls_missing(case)]
    if mean(point) <= limit:
        better = [p for ladder in ladders(case) for p in ladder.points if mean(p) > limit]
        if point.drafted_steps == 0:
            reasons.append("nothing was drafted for it, which is not the same as a draft that is wrong")
        elif better:
            best = max(better, key=lambda p: (mean(p), p.arm, p.context_tokens))
            reasons.append(f"so the drafter would be dead, but {words.commits([best], most)}")
        else:
            reasons.append("so it is dead, or broken by the length alone: no short prompt was measured")
        missing.append(f"repeated text at {thresholds.SHORT} tokens or fewer")
        todo = [words.command(case, ["repeat", "repeat-wide", "code"], [512, 1024])]
        return _ruling(case, "", reasons, missing, todo)
    reasons.append(
        f"that is alive, and below {thresholds.works_from(most):.2f}, which repeated text should reach"
    )
    known = [share for share in point.conditional or () if share is not None]
    if known:
        curve = " ".join(f"{share:.2f}" for share in known)
        reasons.append(f"acceptance of each position once those before it are right: {curve}")
    missing.append(
        "a finding on how the drafter is wired (taps, RoPE, mask token): without one, weak and half wired look alike"
    )
    return _ruling(
        case,
        "weak_drafter",
        reasons,
        missing,
        [
            "ddprobe inspect-config (taps, RoPE scaling, mask token, block size)",
            "the same command on a server that is known to work, with the same drafter",
        ],
    )


def _short_of(case: Case, setup: CommitSetup | None) -> Ruling:
    """Nothing speaks against the drafter; what is missing to speak for it."""
    measured = ladders(case)
    troubles = [trouble for ladder in measured for trouble in ladder.troubles]
    arms = {ladder.arm for ladder in measured if ladder.points}
    reasons = _measured(case) + [f"does not count: {trouble}" for trouble in troubles]
    reasons += _contradicting(case)
    missing, wanted = [*troubles], []
    unclear = [point for ladder in measured if ladder.arm in COPYING for point in ladder.unclear]
    for point in unclear:
        reasons.append(
            f"{point.arm} {words.at(point)} may hold or not: its interval meets that of the shortest length"
        )
    if unclear:
        missing.append("more steps: the intervals are too wide to tell")
        wanted += [arm for arm in COPYING if any(arm_of(point.arm) == arm for point in unclear)]
    if standing.ceiling(case) is None:
        missing.append("how many tokens a step drafts at most: without it no mean is high or low")
    if "repeat" not in arms:
        missing.append("repeated text (arm repeat): it tells a broken drafter from hard text")
        wanted.append("repeat")
    found, prose = reach(case), standing.control(case)
    if not found.works:
        if FAR not in arms and any(arm.startswith("repeat") for arm in arms):
            reasons.append(
                "text that is repeated nearby never leaves a drafter's window: it says nothing of long contexts"
            )
        missing.append("a far copy that counts (arm far-copy): does the drafter see what stands far back?")
        wanted.append(FAR)
    if not prose.whole or prose.ends is None:
        missing.append("the same prose at two lengths (arm prose): is the text hard, at both alike?")
        wanted.append(PROSE)
    if setup is not None and not setup.drafter:
        missing.append("what kind of drafter it is: looking up repeated text passes easy arms trivially")
    if setup is not None and setup.speculating is None and all(p.drafted_steps is None for p in case.points):
        missing.append("whether the server speculates at all: no source speaks of a draft")
    missing += standing.controls_missing(case)
    todo = words.command(case, dict.fromkeys(wanted or _arms(setup))) + _steps(case, unclear)
    return _ruling(case, "", reasons, missing, [todo])


def _steps(case: Case, unclear: Sequence[CommitPoint]) -> str:
    """The option that asks for more steps, where there were too few to tell."""
    if unclear:
        return f" --steps {4 * max(thresholds.MIN_STEPS, *(point.steps for point in unclear))}"
    steps = [point.steps for point in case.points if point.commit_mean is not None]
    few = min(steps, default=thresholds.MIN_STEPS) < thresholds.MIN_STEPS
    return f" --steps {thresholds.MIN_STEPS}" if few else ""


def _contradicting(case: Case) -> list[str]:
    """What falls, and is no limit on length."""
    told = []
    for ladder in ladders(case):
        fall = ladder.fall()
        if fall is not None and fall.recovers is not None:
            dip = words.commits([fall.bad, fall.recovers], standing.ceiling(case))
            told.append(f"{dip}: a length beyond which all is well again is no limit on length")
    found = reach(case)
    passing = [pair for pair in found.lost if pair not in found.kept]
    if passing:
        near, far = passing[0]
        told.append(
            f"{words.commits([far])}; {words.commits([near])}: and at a greater length both are alike again, so distance is "
            "not why"
        )
    weak = [far for _, far in found.lost if found.inside(far)]
    if weak or (found.window is None and len(found.lost) == len(found.pairs) > 0):
        far = (weak or [far for _, far in found.lost])[0]
        told.append(
            f"{words.commits([far])}: weaker than the near copy even where it lies close, so distance is not why"
        )
    return told


def _measured(case: Case) -> list[str]:
    """What each text that counts did, from end to end."""
    most = standing.ceiling(case)
    told = []
    for ladder in ladders(case):
        if ladder.points:
            ends = list(dict.fromkeys([ladder.points[0], ladder.points[-1]]))
            told.append(words.commits(ends, most))
    return told


def _arms(setup: CommitSetup | None) -> tuple[str, ...]:
    return setup.arms if setup is not None and setup.arms else ("repeat", FAR, PROSE)


def _shortest(case: Case) -> list[int]:
    lengths = [point.context_tokens for point in case.points if point.context_tokens]
    return [min(lengths)] if lengths else []
