"""Would the server be faster without speculation?"""

from __future__ import annotations

from collections.abc import Sequence

from ddprobe.facts import CommitPoint
from ddprobe.model import Verdict
from ddprobe.parsing import sizes
from ddprobe.verdicts import standing, thresholds, words
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.ladder import arm_of
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
    setup = case.setup
    if setup is None or not setup.baseline or setup.speculating is False or standing.drafted_nothing(case):
        return "", []
    arm = next((a for a in (*ORDINARY, "repeat") if _timed(case, a)), "")
    pairs = ((point, _without(setup.baseline, point)) for point in (_timed(case, arm) if arm else ()))
    return arm, [(point, plain) for point, plain in pairs if plain is not None]


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
    sure = worst.commit_high is not None and _speedup(worst, plain, worst.commit_high) < 1
    need = (worst.step_ms or 0.0) / plain
    reasons = [
        f"{words.commits([worst], standing.ceiling(case))}, and a step takes {words.steps_of(worst)}: without speculation "
        f"a token takes {plain:.3g} ms, so a step must commit {need:.2f} to pay",
        f"speculation makes it {1 / _speedup(worst, plain):.2f} times slower {words.at(worst)}",
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
                "the time of a step: `ddprobe commit-probe` at five lengths shows whether attention is what grows",
            ),
        ),
        explains=1 / _speedup(worst, plain),
    )


def _timed(case: Case, arm: str) -> list[CommitPoint]:
    """Points of the arm with enough steps, all of them timed."""
    return [
        point
        for point in sorted(case.points, key=lambda p: (p.context_tokens, p.arm))
        if arm_of(point.arm) == arm
        and point.commit_mean is not None
        and point.step_ms
        and point.steps >= thresholds.MIN_STEPS
        and point.timed_steps >= thresholds.MIN_TIMED_STEPS
    ]


def _without(baseline: Sequence[tuple[int, float]], point: CommitPoint) -> float | None:
    """Milliseconds per token without speculation at this length: measured nearby, or between two; never beyond them."""
    context = point.context_tokens or point.prompt_tokens or 0
    known = sorted(baseline)
    near = min(known, key=lambda pair: (abs(pair[0] - context), pair[0]))
    if abs(near[0] - context) <= NEAR * context:
        return near[1] if near[1] > 0 else None
    below = [pair for pair in known if pair[0] < context]
    above = [pair for pair in known if pair[0] > context]
    if not below or not above:
        return None
    (x0, y0), (x1, y1) = below[-1], above[0]
    between = y0 + (y1 - y0) * (context - x0) / (x1 - x0)
    return between if between > 0 else None


def _speedup(point: CommitPoint, plain: float, commit: float | None = None) -> float:
    """Commit × time per token without speculation ÷ time per step."""
    tokens = commit if commit is not None else point.commit_mean or 1.0
    return tokens * plain / (point.step_ms or plain)
