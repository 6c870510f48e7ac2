"""Medians of one server's steps on one text: by context, with errors, clocks and the order in which they were measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ddprobe import statistics
from ddprobe.facts import CommitPoint, CommitRequest, GpuWindow

LADDERS = (("step-time", "step-time again"), ("plain", "plain again"), ("point", "again"))
"""Purposes of points: the ladder, and what was measured of it once more."""
RESOLUTION = 1e-4
"""Least relative error of a median: clocks tell no more."""
SHORTEST, LONGEST = 1e-6, 1e9
"""ms of a step: what lies outside was never timed."""
MOST_TOKENS = 1e12
_Z = 2 * statistics.Z95


@dataclass(frozen=True, slots=True)
class Observed:
    """One median."""

    context: float
    ms: float
    error: float | None
    steps: int
    order: int | None
    """Its place in the order of measuring; None where that is not known."""
    again: bool
    clock: float | None = None
    """MHz of the slowest GPU's cores meanwhile, over the fastest point's: 1 and below."""


def one_text(points: Sequence[CommitPoint]) -> list[CommitPoint]:
    """The server, text and ladder with most lengths among the points, its repetitions behind it."""
    groups: dict[tuple[str, str, int], list[CommitPoint]] = {}
    for point in points:
        ladder = next((i for i, pair in enumerate(LADDERS) if point.purpose in pair), None)
        if ladder is not None and _timed(point):
            groups.setdefault((point.base, point.arm, ladder), []).append(point)
    if not groups:
        return []
    key = max(groups, key=lambda key: (len({context_of(p) for p in groups[key]}), -key[2]))
    first = LADDERS[key[2]][0]
    return sorted(groups[key], key=lambda p: (p.purpose != first, context_of(p)))


def _timed(point: CommitPoint) -> bool:
    """Whether its step time and its context are numbers that a clock and a prompt can have."""
    return SHORTEST <= (point.step_ms or 0.0) <= LONGEST and 0 < context_of(point) <= MOST_TOKENS


def context_of(point: CommitPoint) -> float:
    """Tokens that its steps' attention read, as far as it says."""
    return point.timed_context or float(point.prompt_tokens or point.context_tokens)


def observed(
    points: Sequence[CommitPoint], requests: Sequence[CommitRequest], windows: Sequence[GpuWindow]
) -> tuple[Observed, ...]:
    order = _order(requests)
    clocks = _clocks(points, windows)
    errors = _errors(points)
    # A length that was measured twice is one length, though prompts may differ by a few tokens.
    lengths: dict[int, float] = {}
    for point in points:
        lengths.setdefault(point.context_tokens, context_of(point))
    return tuple(
        Observed(
            context=lengths[point.context_tokens] if point.context_tokens else context_of(point),
            ms=point.step_ms or 0.0,
            error=error,
            steps=point.timed_steps,
            order=order.get((point.purpose, point.context_tokens)),
            again=point.purpose.endswith("again"),
            clock=clock,
        )
        for point, error, clock in zip(points, errors, clocks, strict=True)
    )


def _order(requests: Sequence[CommitRequest]) -> dict[tuple[str, int], int]:
    found: dict[tuple[str, int], int] = {}
    for request in requests:
        found.setdefault((request.purpose, request.context_tokens), len(found))
    return found


def _clocks(points: Sequence[CommitPoint], windows: Sequence[GpuWindow]) -> list[float | None]:
    """The slowest card's clock at each point, over the highest of them all; None for all where one is missing."""
    found: list[float | None] = []
    for point in points:
        mine = [
            w.working_clock_mhz
            for w in windows
            if (w.purpose, w.arm, w.context_tokens) == (point.purpose, point.arm, point.context_tokens)
            and w.base in ("", point.base)
            and w.working_clock_mhz
            and 0 < w.working_clock_mhz < math.inf
        ]
        found.append(min(mine) if mine else None)
    known = [clock for clock in found if clock is not None]
    if len(known) < len(found) or not known:
        return [None] * len(found)
    return [clock / max(known) for clock in known]


def _errors(points: Sequence[CommitPoint]) -> list[float | None]:
    """Each median's standard error, by its interval; None for all where most have no interval.

    Intervals by rank are coarse: none counts for less than a quarter of what is usual among them, in proportion.
    """
    told = [_share(point) for point in points]
    shares = [share for share in told if share is not None]
    if not shares or len(shares) * 2 <= len(points):
        return [None] * len(points)
    usual = statistics.median(shares) or 0.0
    found: list[float | None] = []
    for point, share in zip(points, told, strict=True):
        found.append(max(usual if share is None else share, usual / 4, RESOLUTION) * (point.step_ms or 0.0))
    return found


def _share(point: CommitPoint) -> float | None:
    """Its standard error over its median; None where it has no interval, or one that is none."""
    low, high = point.step_ms_from, point.step_ms_to
    if low is None or high is None or not 0 <= low <= high <= LONGEST or not point.step_ms:
        return None
    return (high - low) / _Z / point.step_ms
