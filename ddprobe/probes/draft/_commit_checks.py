"""Controls that the probe runs on itself and on the server, each as one sentence with both numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from ddprobe.facts import CommitCheck, CommitRequest
from ddprobe.probes.draft._points import point

LEAST_GAP = 0.15
"""Two means that differ by less than this share are taken for the same: greedy steps are not identical on a GPU."""
ERRORS = 3.0
"""… and so are means that differ by fewer standard errors than this."""
STEP_TIME_GAP = 1.25
"""Ratio of two step times at the same point from which on something else changed, …"""
LEAST_DRIFT_MS = 0.5
"""… if they are further apart than this."""


def cold_cached(pairs: Sequence[tuple[CommitRequest, CommitRequest]]) -> CommitCheck:
    """The same prompt computed whole and from the cache. Told apart only if every pair says so."""
    cold, cached = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    check = _check("cold-cached", [request for pair in pairs for request in pair])
    if any(request.error for pair in pairs for request in pair):
        return replace(check, text="whether the prefix cache changes the answer is unknown: a request failed")
    served = cached[-1].cached_tokens
    if served is not None and (not served or served < (cached[-1].prompt_tokens or 0) // 2):
        return replace(
            check,
            text=f"the prefix cache served {served} of {cached[-1].prompt_tokens} tokens of a prompt sent a moment before: "
            "it is off or full, and every prompt costs its whole prefill",
        )
    first, second, differ = compare(cold, cached)
    if first is None or second is None:
        text = "whether the prefix cache changes the answer is unknown: no commit length could be read"
        return replace(check, text=text)
    steps = sum(len(r.step_commits) or (r.num_spec_steps or 0) for pair in pairs for r in pair)
    claim = "from the cache" + (f" ({served} tokens)" if served is not None else "")
    worse = differ and second < first and all(compare([a], [b])[2] for a, b in pairs)
    text = (
        f"{check.arm} at {check.context_tokens} tokens commits {first:.2f} per step computed whole and {second:.2f} {claim} "
        f"({steps} steps): the prefix cache {'changes the answer' if worse else 'does not change it'}"
    )
    return replace(check, agrees=not worse, text=text, first=first, second=second, steps=steps)


def same_prompt(first: CommitRequest, second: CommitRequest) -> CommitCheck:
    """Greedy output of one prompt, twice."""
    known = bool(first.output_hash and second.output_hash) and not (first.error or second.error)
    agrees = first.output_hash == second.output_hash if known else None
    text = {
        True: f"the same prompt gave the same {first.output_tokens} greedy tokens twice",
        False: "the same prompt gave two different greedy outputs: kernels are not deterministic here, or the output depends "
        "on state",
        None: "whether greedy output repeats is unknown",
    }[agrees]
    return replace(_check("same-prompt", (first, second)), agrees=agrees, text=text)


def first_again(first: Sequence[CommitRequest], again: Sequence[CommitRequest]) -> CommitCheck:
    """The first point, measured once more at the end: does it commit what it did?"""
    first = _beside(first, again)
    check = _check("first-again", (*first, *again))
    a, b, differ = compare(first, again)
    if a is None or b is None:
        text = "whether the first point still reads the same is unknown: no commit length could be read"
        return replace(check, text=text)
    steps = sum(len(request.step_commits) for request in (*first, *again))
    outcome = "the server's state changed meanwhile" if differ else "the same"
    text = f"{_prompts(check)} committed {a:.2f} per step at the start and {b:.2f} at the end: {outcome}"
    return replace(check, agrees=not differ, text=text, first=a, second=b, steps=steps)


def step_time_again(first: Sequence[CommitRequest], again: Sequence[CommitRequest]) -> CommitCheck:
    """The same of the time that a step takes."""
    first = _beside(first, again)
    check = _check("step-time-again", (*first, *again))
    a, b = (point(part, ceiling=None).step_ms for part in (first, again))
    if not a or not b:
        return replace(check, text="whether a step still takes the same time is unknown: no step was timed")
    apart = abs(b - a) > LEAST_DRIFT_MS and not 1 / STEP_TIME_GAP < b / a < STEP_TIME_GAP
    outcome = "the step time drifted" if apart else f"no drift{_within(first, again, a, b)}"
    text = f"a step of {_prompts(check)} took {a:.3g} ms at the start and {b:.3g} ms at the end: {outcome}"
    steps = sum(len(request.step_ms) for request in (*first, *again))
    return replace(check, agrees=not apart, text=text, first=a, second=b, steps=steps)


def _within(first: Sequence[CommitRequest], again: Sequence[CommitRequest], a: float, b: float) -> str:
    """What two times that differ are within: the spread of their steps, or else what is taken for the same."""
    if f"{a:.3g}" == f"{b:.3g}":
        return ""
    low, high = min(a, b), max(a, b)
    for part in (point(first, ceiling=None), point(again, ceiling=None)):
        at_least, at_most = part.step_ms_low, part.step_ms_high
        if at_least is not None and at_most is not None and at_least <= low and high <= at_most:
            return f", within the spread of the steps (10–90 %: {at_least:.3g}–{at_most:.3g} ms)"
    if high - low <= LEAST_DRIFT_MS:
        return f", less than {LEAST_DRIFT_MS:g} ms apart"
    return f", less than {STEP_TIME_GAP:g} times as long"


def _beside(first: Sequence[CommitRequest], again: Sequence[CommitRequest]) -> Sequence[CommitRequest]:
    """Those of the first requests that were sent again: prompts differ among themselves."""
    repeated = {request.prompt for request in again}
    return [request for request in first if request.prompt in repeated] or first


def _prompts(check: CommitCheck) -> str:
    return f"the same prompts of {check.arm} at {check.context_tokens} tokens"


def prompt_length(record: CommitRequest, sent: int) -> CommitCheck:
    """The server counted another prompt than was sent."""
    return CommitCheck(
        name="prompt-length",
        agrees=False,
        text=f"{sent} ids were sent and the server counted {record.prompt_tokens} prompt tokens: it adds or drops some",
        arm=record.arm,
        context_tokens=record.context_tokens,
        first=float(sent),
        second=float(record.prompt_tokens or 0),
        source=record.source,
    )


def compare(
    first: Sequence[CommitRequest], second: Sequence[CommitRequest]
) -> tuple[float | None, float | None, bool]:
    """Mean commit per step of each, and whether they differ by more than chance and kernels explain."""
    a, b = _values(first), _values(second)
    if not a or not b:
        return None, None, False
    mean_a, mean_b = sum(a) / len(a), sum(b) / len(b)
    error = math.sqrt(_variance(a) / len(a) + _variance(b) / len(b))
    gap = abs(mean_a - mean_b)
    return mean_a, mean_b, gap > max(LEAST_GAP * max(mean_a, mean_b), ERRORS * error)


def _values(requests: Sequence[CommitRequest]) -> list[float]:
    values: list[float] = []
    for request in requests:
        if request.step_commits:
            values += request.step_commits
        elif request.acceptance_histogram is not None:
            for accepted, steps in enumerate(request.acceptance_histogram):
                values += [1.0 + accepted] * steps
        elif request.mean_acceptance_length is not None and request.num_spec_steps:
            values += [request.mean_acceptance_length] * request.num_spec_steps
    return values


def _variance(values: Sequence[float]) -> float:
    mean = sum(values) / len(values)
    return sum((value - mean) ** 2 for value in values) / max(1, len(values) - 1)


def _check(name: str, requests: Sequence[CommitRequest]) -> CommitCheck:
    """A check that has not been decided yet."""
    return CommitCheck(
        name=name,
        agrees=None,
        text="",
        arm=requests[0].arm,
        context_tokens=requests[0].context_tokens,
        source=tuple(cite for request in requests for cite in request.source),
    )
