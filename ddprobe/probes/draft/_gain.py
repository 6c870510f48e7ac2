"""Where speculation pays: the commit that a step needs at each length, against the time of a token without it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ddprobe import statistics
from ddprobe.facts import CommitPoint, SpeculationGain

NEAR = 0.1
"""A length without speculation this close, as a share, is the same one."""
Pairs = Sequence[tuple[float, float]]


def gains(
    points: Sequence[CommitPoint], baseline: Sequence[tuple[int, float]], plain: Sequence[CommitPoint] = ()
) -> Iterator[SpeculationGain]:
    """One for each timed point at whose length, or around it, the time without speculation is known.

    `baseline`: (context, milliseconds per token). `plain`: the points that it is from, where they were measured beside.
    """
    low = [(p.context_tokens, _per_token(p, p.step_ms_from)) for p in plain if p.step_ms_from is not None]
    high = [(p.context_tokens, _per_token(p, p.step_ms_to)) for p in plain if p.step_ms_to is not None]
    for point in points:
        ms = statistics.between(baseline, point.context_tokens, NEAR)
        if ms is None or ms <= 0 or not point.step_ms:
            continue
        yield _gain(point, ms, (_at(low, point) or ms, _at(high, point) or ms), plain)


def _gain(
    point: CommitPoint, ms: float, ends: tuple[float, float], plain: Sequence[CommitPoint]
) -> SpeculationGain:
    assert point.step_ms
    least = point.step_ms_from / ends[1] if point.step_ms_from is not None else None
    most = point.step_ms_to / ends[0] if point.step_ms_to is not None else None
    need = point.step_ms / ms
    return SpeculationGain(
        arm=point.arm,
        context_tokens=point.context_tokens,
        plain_ms=ms,
        break_even=need,
        break_even_low=least,
        break_even_high=most,
        commit_mean=point.commit_mean,
        gain=point.commit_mean / need if point.commit_mean is not None else None,
        gain_low=point.commit_low / most if point.commit_low is not None and most else None,
        gain_high=point.commit_high / least if point.commit_high is not None and least else None,
        base=plain[0].base if plain else "",
        source=(*point.source, *(cite for each in plain for cite in each.source)),
    )


def loses_from(found: Sequence[SpeculationGain]) -> int | None:
    """The length from which on speculation surely loses, at every length measured; None where there is none."""
    ladder = sorted(found, key=lambda each: each.context_tokens)
    lost = [each.gain_high is not None and each.gain_high < 1 for each in ladder]
    first = next((at for at in range(len(ladder)) if all(lost[at:])), None)
    return ladder[first].context_tokens if first is not None else None


def _per_token(point: CommitPoint, step_ms: float) -> float:
    return step_ms / (point.commit_mean or 1.0)


def _at(pairs: Pairs, point: CommitPoint) -> float | None:
    return statistics.between(pairs, point.context_tokens, NEAR)
