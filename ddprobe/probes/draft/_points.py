"""The requests of one arm at one context, taken together: mean commit with its interval, positions, step time."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from ddprobe import statistics
from ddprobe.facts import CommitPoint, CommitRequest
from ddprobe.statistics import Interval

SETTLING = 2
"""First steps of a request whose times say nothing of the rest."""
LEAST_FOR_BURSTS = 8
BURST = 0.2
"""A step that came so much faster than the mean waited for the one before it."""
BURST_SHARE = 0.08
"""Share of such steps from which on single times mean nothing."""


LEAST_PREFILL = 256
"""Tokens to compute from which on the time to the first token tells how fast a prompt is computed."""


def point(
    requests: Sequence[CommitRequest],
    *,
    ceiling: int | None,
    purpose: str = "point",
    seed: int = 0,
    base: str = "",
) -> CommitPoint:
    """One point from its requests, of which there is at least one. What they do not say stays None."""
    measured = [request for request in requests if not request.error]
    series = [found for request in measured if (found := _series(request)) is not None]
    commit = _commit(series, ceiling, seed)
    mean = commit.mean if commit is not None else None
    drafted = _sum([request.num_spec_steps for request in measured])
    accepted = _sum([request.num_accepted_draft_tokens for request in measured])
    proposed = _sum([request.num_draft_tokens for request in measured])
    histogram = _histogram(measured)
    bursts = any(map(_in_bursts, measured))
    times = [ms for request in measured for ms in (request.step_ms[SETTLING:] if bursts else _times(request))]
    mean_ms = statistics.mean(times)
    ends = _mean_ends(measured, seed) if bursts else statistics.median_interval(times)
    first = _first(measured)
    new = _computed(first) if first is not None else None
    return CommitPoint(
        arm=requests[0].arm,
        context_tokens=requests[0].context_tokens,
        purpose=purpose,
        base=base,
        requests=len(requests),
        failed=len(requests) - len(measured),
        prompt_tokens=max((r.prompt_tokens for r in measured if r.prompt_tokens is not None), default=None),
        cached_tokens=_rounded([r.cached_tokens for r in measured if r.cached_tokens is not None]),
        steps=sum(each.count for each in series),
        drafted_steps=drafted,
        commit_mean=mean,
        commit_low=commit.low if commit is not None else None,
        commit_high=commit.high if commit is not None else None,
        drafted_commit_mean=1 + accepted / drafted if drafted and accepted is not None else None,
        ceiling=ceiling,
        share_of_ceiling=(mean - 1) / (ceiling - 1) if mean is not None and ceiling and ceiling > 1 else None,
        saturated=ceiling is not None and ceiling > 1 and _saturated(measured, ceiling),
        accept_rate=accepted / proposed if proposed and accepted is not None else None,
        histogram=histogram,
        per_position=_per_position(histogram, ceiling),
        conditional=_conditional(histogram, ceiling),
        step_ms=mean_ms if bursts else statistics.median(times),
        step_ms_low=None if bursts else statistics.quantile(times, 0.1),
        step_ms_high=None if bursts else statistics.quantile(times, 0.9),
        step_ms_from=ends[0] if ends is not None else None,
        step_ms_to=ends[1] if ends is not None else None,
        timed_steps=len(times),
        timed_context=_timed_context(measured, bursts),
        first_token_ms=first.first_token_ms if first is not None else None,
        prefill_tokens=new,
        prefill_tok_s=new / first.first_token_ms * 1000
        if first is not None and first.first_token_ms and new is not None and new >= LEAST_PREFILL
        else None,
        tok_s=mean / mean_ms * 1000 if mean is not None and mean_ms else None,
        copied=statistics.mean([r.copied for r in measured if r.copied is not None]),
        loops=sum(bool(request.loop) for request in measured),
        origin=" + ".join(dict.fromkeys(request.origin for request in measured if request.origin)),
        source=tuple(dict.fromkeys(cite for request in requests for cite in request.source)),
    )


# --- commit ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Series:
    """Tokens committed by the decode steps of one request."""

    total: int
    count: int
    values: tuple[int, ...] = ()
    """One by one; empty when only the sum is known."""
    ordered: bool = False


@dataclass(frozen=True, slots=True)
class _Commit:
    mean: float
    low: float | None
    high: float | None


def _series(request: CommitRequest) -> _Series | None:
    """All decode steps of a request; None when they are not known, or there are none."""
    if request.step_commits:
        values = request.step_commits
        return _Series(sum(values), len(values), values, ordered=True)
    drafted, accepted, undrafted = (
        request.num_spec_steps,
        request.num_accepted_draft_tokens,
        request.undrafted_steps,
    )
    # Without the number of steps that had no draft, the mean over those that had one would pass for the whole.
    if drafted is None or undrafted is None or drafted + undrafted == 0:
        return None
    histogram = request.acceptance_histogram if drafted else ()
    if histogram is not None:
        values = tuple(k + 1 for k, many in enumerate(histogram) for _ in range(many)) + (1,) * undrafted
        return _Series(sum(values), len(values), values)
    if accepted is None:
        return None
    return _Series(drafted + accepted + undrafted, drafted + undrafted)


def _commit(series: Sequence[_Series], ceiling: int | None, seed: int) -> _Commit | None:
    """The mean over all steps, and its interval where anything tells how steps or requests scatter."""
    if not series:
        return None
    mean = sum(each.total for each in series) / sum(each.count for each in series)
    bounds = (1.0, float(ceiling) if ceiling is not None else statistics.ANYWHERE[1])
    interval: Interval | None
    if all(each.values for each in series):
        block = None if all(each.ordered for each in series) else 1
        values = [each.values for each in series]
        interval = statistics.bootstrap(values, bounds=bounds, grain=1.0, block=block, seed=seed)
    else:
        interval = statistics.ratio([(each.total, each.count) for each in series], bounds=bounds, grain=1.0)
    return _Commit(mean, interval.low, interval.high) if interval is not None else _Commit(mean, None, None)


def _saturated(requests: Sequence[CommitRequest], ceiling: int) -> bool:
    """Whether every step of every request, its first aside, reached the ceiling."""
    told = [_full(request, ceiling) for request in requests]
    return bool(told) and all(told)


def _full(request: CommitRequest, ceiling: int) -> bool:
    if request.step_commits:
        rest = request.step_commits[1:]
        return bool(rest) and min(rest) >= ceiling
    steps, accepted = request.num_spec_steps, request.num_accepted_draft_tokens
    if request.undrafted_steps or not steps or steps < 2 or accepted is None:
        return False
    if request.acceptance_histogram is not None:
        return sum(request.acceptance_histogram[ceiling - 1 :]) >= steps - 1
    return accepted == steps * (ceiling - 1)


# --- positions ---------------------------------------------------------------------------------------------


def _histogram(requests: Sequence[CommitRequest]) -> tuple[int, ...] | None:
    """Their histograms added up; None unless every request that drafted has one."""
    if any(request.num_spec_steps is None for request in requests):
        return None
    found = [request.acceptance_histogram for request in requests if request.num_spec_steps]
    held = [histogram for histogram in found if histogram is not None]
    if not held or len(held) < len(found):
        return None
    longest = max(len(histogram) for histogram in held)
    return tuple(sum(h[k] for h in held if k < len(h)) for k in range(longest))


def _reaching(histogram: tuple[int, ...] | None, ceiling: int | None) -> list[int]:
    """Steps in which at least the first 0, 1, 2, … drafts were right."""
    if histogram is None or not sum(histogram):
        return []
    deepest = max(len(histogram), ceiling or 0)
    return [sum(histogram[k:]) for k in range(deepest)]


def _per_position(histogram: tuple[int, ...] | None, ceiling: int | None) -> tuple[float, ...] | None:
    reaching = _reaching(histogram, ceiling)
    return tuple(many / reaching[0] for many in reaching[1:]) if len(reaching) > 1 else None


def _conditional(histogram: tuple[int, ...] | None, ceiling: int | None) -> tuple[float | None, ...] | None:
    reaching = _reaching(histogram, ceiling)
    if len(reaching) < 2:
        return None
    pairs = zip(reaching[1:], reaching, strict=False)
    return tuple(many / before if before else None for many, before in pairs)


# --- time --------------------------------------------------------------------------------------------------


def _times(request: CommitRequest) -> list[float]:
    """Milliseconds of the settled steps. Of steps that came in one piece none is timed: the first holds them all."""
    return [request.step_ms[at] for at in _timed(request)]


def _timed(request: CommitRequest) -> list[int]:
    """Which steps these are."""
    ms = request.step_ms
    empty = {at for at, taken in enumerate(ms) if taken <= 0}
    return [at for at in range(SETTLING, len(ms)) if not {at, at + 1} & empty]


def _timed_context(requests: Sequence[CommitRequest], bursts: bool) -> float | None:
    """Mean number of tokens before a timed step; None where what earlier steps committed is not known of all."""
    found: list[int] = []
    for request in requests:
        steps = range(SETTLING, len(request.step_ms)) if bursts else _timed(request)
        if not steps:
            continue
        if request.prompt_tokens is None or len(request.step_commits) < len(request.step_ms):
            return None
        # The token that the prefill gave is in the step's own block.
        before = list(itertools.accumulate(request.step_commits, initial=request.prompt_tokens))
        found += [before[at] for at in steps]
    return statistics.mean(found)


def _mean_ends(requests: Sequence[CommitRequest], seed: int) -> tuple[float, float] | None:
    """Ends of the interval of the mean step time."""
    found = statistics.bootstrap(
        [request.step_ms[SETTLING:] for request in requests], bounds=(0.0, statistics.ANYWHERE[1]), seed=seed
    )
    return (found.low, found.high) if found is not None else None


def _computed(request: CommitRequest) -> int | None:
    """Tokens of the prompt that no cache served."""
    if request.prompt_tokens is None or request.cached_tokens is None:
        return None
    return request.prompt_tokens - request.cached_tokens


def _first(requests: Sequence[CommitRequest]) -> CommitRequest | None:
    """The request with the most to compute; the first where nobody says what a cache served."""
    timed = [request for request in requests if request.first_token_ms is not None]
    return max(timed, key=lambda request: _computed(request) or 0, default=None)


def _in_bursts(request: CommitRequest) -> bool:
    """Whether steps arrived several at once, in pieces of their own: then only their mean pace means something."""
    ms = request.step_ms[SETTLING:]
    pace = statistics.mean(ms)
    if len(ms) < LEAST_FOR_BURSTS or not pace:
        return False
    return sum(0 < each < BURST * pace for each in ms) > BURST_SHARE * len(ms)


def _sum(values: Sequence[int | None]) -> int | None:
    """Their sum; None when one of them is not known, or there are none."""
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None


def _rounded(values: Sequence[int]) -> int | None:
    mean = statistics.mean(values)
    return round(mean) if mean is not None else None
