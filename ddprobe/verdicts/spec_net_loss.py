"""Would the server be faster without speculation?"""

from __future__ import annotations

from collections.abc import Sequence

from ddprobe import statistics
from ddprobe.facts import CommitPoint, CommitSetup, SpeculationGain
from ddprobe.model import Verdict
from ddprobe.parsing import sizes
from ddprobe.verdicts import standing, thresholds, words
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.ladder import arm_of, mean
from ddprobe.verdicts.ruling import Ruling, weakest

ORDINARY = ("prose", "chat", "code", "verbatim")
"""Text as people send it, in the order in which it counts. Repeated text is a drafter's best case."""
NEAR = 0.1
"""A baseline this close to a context (as a share of it) is that context's."""


def gain(case: Case) -> str:
    """How much faster the server is with speculation, where a baseline says how fast it is without; else empty."""
    arm, found = _compared(case)
    if not found:
        return ""
    ends = list(dict.fromkeys((found[0], found[-1])))
    told = [f"{_speedup(point, plain):.2f} times as fast {words.at(point)}" for point, plain in ends]
    return f"against the baseline, speculation makes {arm} {words.listed(told)}"


def _compared(case: Case) -> tuple[str, list[tuple[CommitPoint, float]]]:
    """The kind of text that counts most, and its points with the time of a token without speculation."""
    setup, known = case.setup, _baseline(case)
    if setup is None or not known or setup.speculating is False or standing.drafted_nothing(case):
        return "", []
    arm = next((a for a in (*ORDINARY, "repeat") if _timed(case, a)), "")
    pairs = ((point, _without(known, point)) for point in (_timed(case, arm) if arm else ()))
    return arm, [(point, plain) for point, plain in pairs if plain is not None]


def _baseline(case: Case) -> tuple[tuple[int, float], ...]:
    """(context, milliseconds per token without speculation), of whichever measurement has them."""
    every = (case.setup, *case.every(CommitSetup))
    return next((setup.baseline for setup in every if setup is not None and setup.baseline), ())


def judge(case: Case) -> Ruling | None:
    """Tokens per step × time per token without speculation stay below the step's own time."""
    setup, (arm, found) = case.setup, _compared(case)
    lost = [(point, plain) for point, plain in found if _speedup(point, plain) < 1]
    if not lost:
        return None
    worst, plain = min(lost, key=lambda pair: (_speedup(*pair), pair[0].context_tokens))
    first = min(point.context_tokens for point, _ in lost)
    gains = [pair for pair in found if pair not in lost]
    beyond = bool(gains) and first > max(point.context_tokens for point, _ in gains)
    sure, ends = _sure(case, worst, plain)
    need = mean(worst) / _speedup(worst, plain)
    reasons = [
        f"{words.commits([worst], standing.ceiling(case))}, and a step takes {words.steps_of(worst)}: without speculation "
        f"a token takes {plain:.3g} ms, so a step must commit {need:.2f} to pay",
        f"speculation makes it {1 / _speedup(worst, plain):.2f} times slower {words.at(worst)}{ends}",
    ]
    if beyond:
        best, its = max(gains, key=lambda pair: pair[0].context_tokens)
        reasons.append(
            f"up to {sizes.short(best.context_tokens)} it pays ({_speedup(best, its):.2f} times faster), from "
            f"{sizes.short(first)} on it does not"
        )
    return Ruling(
        Verdict(
            name="spec_net_loss",
            kind="beyond_a_length" if beyond else "",
            confidence=weakest("high" if sure else "low", "medium" if arm == "repeat" else "high"),
            reasons=tuple(reasons),
            cites=words.cites(setup, *(point for point, _ in lost)),
            missing=() if arm != "repeat" else ("ordinary text (arm prose): repeated text is the best case",),
            next=(
                f"switch speculation off{f' from {sizes.short(first)} on' if beyond else ''}, or try a shorter draft",
                f"{_flags(case)}; put it back to undo it, and compare tok/s at the same lengths",
                "the time of a step: `ddprobe commit-probe` at five lengths shows whether attention is what grows",
            ),
        ),
        explains=1 / _speedup(worst, plain),
    )


def _sure(case: Case, point: CommitPoint, plain: float) -> tuple[bool, str]:
    """Whether it loses whatever the sample's error, and the interval of that in words, where both times have one."""
    for found in case.every(SpeculationGain):
        low, high = found.gain_low, found.gain_high
        mine = point.purpose == "step-time" and (found.arm, found.context_tokens) == (
            point.arm,
            point.context_tokens,
        )
        if mine and low and high:
            return high < 1, f" (95 % {1 / high:.2f}–{1 / low:.2f})"
    return point.commit_high is not None and _speedup(point, plain, point.commit_high) < 1, ""


def _flags(case: Case) -> str:
    vllm = case.setup is not None and case.setup.engine == "vllm"
    llama = case.setup is not None and case.setup.engine == "llamacpp"
    off = "--speculative-config" if vllm else "--spec-type and -md" if llama else "--speculative-algorithm"
    shorter = (
        "num_speculative_tokens"
        if vllm
        else "--spec-draft-n-max"
        if llama
        else "--speculative-num-draft-tokens"
    )
    return f"off: start without {off}; shorter: a smaller {shorter}"


def _timed(case: Case, arm: str) -> list[CommitPoint]:
    """Points of the arm with enough steps, all of them timed."""
    return [
        point
        for point in sorted(case.points or case.step_times, key=lambda p: (p.context_tokens, p.arm))
        if arm_of(point.arm) == arm
        and point.commit_mean is not None
        and point.step_ms
        and point.steps >= thresholds.MIN_STEPS
        and point.timed_steps >= thresholds.MIN_TIMED_STEPS
    ]


def _without(baseline: Sequence[tuple[int, float]], point: CommitPoint) -> float | None:
    """Milliseconds per token without speculation at this length: measured nearby, or between two; never beyond them."""
    context = point.context_tokens or point.prompt_tokens
    if not context:
        return None
    found = statistics.between(baseline, context, NEAR)
    return found if found is not None and found > 0 else None


def _speedup(point: CommitPoint, plain: float, commit: float | None = None) -> float:
    """Commit × time per token without speculation ÷ time per step."""
    assert point.step_ms is not None
    return (mean(point) if commit is None else commit) * plain / point.step_ms
