"""Controls that the probe runs on itself and on the server, each as one sentence with both numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from ddprobe.facts import CommitCheck, CommitRequest

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
    """The first point, measured once more at the end: each prompt beside itself, for prompts differ among themselves."""
    repeated = {request.prompt for request in again}
    first = [request for request in first if request.prompt in repeated] or first
    check = _check("first-again", (*first, *again))
    a, b, differ = compare(first, again)
    slow = _median(first), _median(again)
    if a is None or b is None:
        text = "whether the first point still reads the same is unknown: no commit length could be read"
        return replace(check, text=text)
    text = (
        f"the same prompt of {check.arm} at {check.context_tokens} tokens committed {a:.2f} per step at the start and {b:.2f} "
        "at the end"
    )
    drift = ""
    if slow[0] and slow[1]:
        text += f"; a step took {slow[0]:.1f} ms and {slow[1]:.1f} ms"
        apart = (
            abs(slow[1] - slow[0]) > LEAST_DRIFT_MS
            and not 1 / STEP_TIME_GAP < slow[1] / slow[0] < STEP_TIME_GAP
        )
        drift = "step time drifted" if apart else ""
    steps = sum(len(request.step_commits) for request in (*first, *again))
    outcome = "the server's state changed meanwhile" if differ else drift or "nothing drifted"
    return replace(check, agrees=not differ, text=f"{text}: {outcome}", first=a, second=b, steps=steps)


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


def _median(requests: Sequence[CommitRequest]) -> float | None:
    values = sorted(ms for request in requests for ms in request.step_ms[2:])
    return values[len(values) // 2] if values else None


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
