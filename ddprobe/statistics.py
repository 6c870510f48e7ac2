"""Means with intervals, quantiles and shares. Pure numbers: no word of what they measure."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

Z95 = 1.959964
"""Two-sided 95 % point of the normal distribution."""
T95 = (
    12.706,
    4.303,
    3.182,
    2.776,
    2.571,
    2.447,
    2.365,
    2.306,
    2.262,
    2.228,
    2.201,
    2.179,
    2.160,
    2.145,
    2.131,
)
"""Two-sided 95 % points of Student's distribution with 1, 2, … degrees of freedom."""

EXACT = 1000
"""Values up to which a rank is counted out; beyond, binomial coefficients leave the range of floats, and the normal
distribution gives the same rank."""
ANYWHERE = (-math.inf, math.inf)


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean and the ends of its 95 % interval."""

    mean: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        return (self.high - self.low) / 2


def bootstrap(
    groups: Sequence[Sequence[float]],
    *,
    bounds: tuple[float, float] = ANYWHERE,
    grain: float = 0.0,  # equivalent: none
    block: int | None = None,
    seed: int = 0,  # equivalent: any
    resamples: int = 2000,  # equivalent: one more or less
) -> Interval | None:
    """The mean over all values and its interval: groups are drawn anew, then blocks of neighbours within each.

    Values of a group depend on each other, so blocks of about n^(1/3) of them stay together; blocks wrap around, so
    that each value counts alike. Both draws together make the interval rather too wide than too narrow, which makes
    up for there being few groups. One group: only blocks are drawn, and what differs between groups stays unseen.

    Constant values have an interval of width 0 by that alone, however few they are, and that is no certainty. So no
    interval ends closer to the mean than the unseen may still move it: in a share of `rule_of_three(n)` values could
    differ by as much as the farthest that was seen, and by `grain`, the least by which two values differ, at the
    least; never past `bounds`, between which all values lie. None without values.
    """
    full = [group for group in groups if group]
    if not full:
        return None
    total = sum(len(group) for group in full)
    mean = math.fsum(itertools.chain.from_iterable(full)) / total
    low, high = _resampled(full, block, seed, resamples)
    farthest = max(abs(value - mean) for group in full for value in group)
    # Rounding alone must not move an end past the mean.
    return _unseen(Interval(mean, min(low, mean), max(high, mean)), total, max(farthest, grain), bounds)


def _resampled(
    groups: Sequence[Sequence[float]], block: int | None, seed: int, resamples: int
) -> tuple[float, float]:
    """2.5 % and 97.5 % of the means of resampled groups."""
    first = groups[0][0]  # equivalent: any of them
    if all(value == first for group in groups for value in group):
        return first, first
    draw = random.Random(seed)
    blocks = [_blocks(group, block) for group in groups]
    means = []
    for _ in range(resamples):
        amount = 0.0
        count = 0
        for sums, length, picks in draw.choices(blocks, k=len(blocks)):
            amount += sum(draw.choices(sums, k=picks))
            count += picks * length
        means.append(amount / count)
    means.sort()
    return _at(means, 0.025), _at(means, 0.975)


def _blocks(values: Sequence[float], block: int | None) -> tuple[list[float], int, int]:
    """The sum of every block of neighbours, how long one is, and how many make up the group."""
    size = len(values)
    length = max(1, min(size, block if block is not None else round(size ** (1 / 3))))
    around = itertools.chain(values, values[: length - 1])
    reach = list(itertools.accumulate(around, initial=0.0))  # equivalent: only differences are taken
    return [reach[at + length] - reach[at] for at in range(size)], length, math.ceil(size / length)


def ratio(
    groups: Sequence[tuple[float, int]],
    *,
    bounds: tuple[float, float] = ANYWHERE,
    grain: float = 0.0,  # equivalent: none
) -> Interval | None:
    """The same for groups of which only sum and count are known: Student's interval over the groups.

    None without values; and for fewer than two groups, where nothing says how values scatter.
    """
    full = [(amount, count) for amount, count in groups if count > 0]
    if len(full) < 2:
        return None
    total = sum(count for _, count in full)
    mean = math.fsum(amount for amount, _ in full) / total
    size = len(full)
    residue = math.fsum((amount - mean * count) ** 2 for amount, count in full)
    error = math.sqrt(size / (size - 1) * residue) / total
    spread = (T95[size - 2] if size - 2 < len(T95) else Z95 + 2.4 / (size - 2)) * error
    low, high = max(mean - spread, min(bounds[0], mean)), min(mean + spread, max(bounds[1], mean))
    return _unseen(Interval(mean, low, high), total, grain, bounds)


def _unseen(interval: Interval, size: int, farthest: float, bounds: tuple[float, float]) -> Interval:
    """The interval, at least as wide as what `size` values cannot exclude."""
    share = rule_of_three(size)
    down = min(farthest, interval.mean - bounds[0])
    up = min(farthest, bounds[1] - interval.mean)
    return Interval(
        interval.mean,
        min(interval.low, interval.mean - share * down),
        max(interval.high, interval.mean + share * up),
    )


def rule_of_three(size: int) -> float:
    """What was not seen in `size` independent tries has, with 95 % confidence, a probability below this."""
    return 3 / max(size, 3)


def proportion_interval(hits: int, size: int) -> Interval | None:
    """The share of hits and its interval after Wilson; None without tries."""
    if size <= 0:
        return None
    share = hits / size
    weight = Z95**2 / size
    middle = (share + weight / 2) / (1 + weight)
    spread = Z95 * math.sqrt((share * (1 - share) + weight / 4) / size) / (1 + weight)
    return Interval(share, max(0.0, min(middle - spread, share)), min(1.0, max(middle + spread, share)))


def mean(values: Sequence[float]) -> float | None:
    """The arithmetic mean; None without values."""
    return math.fsum(values) / len(values) if values else None


def median(values: Sequence[float]) -> float | None:
    """The middle value; None without values."""
    return quantile(values, 0.5)


def median_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """The ends of the median's 95 % interval: values of such rank that the binomial distribution leaves at most 2.5 % out
    on either side. It takes no shape for granted, and values to be independent. None for fewer than six.
    """
    size = len(values)
    rank = _outer_rank(size)
    if not rank:
        return None
    ordered = sorted(values)
    return ordered[rank - 1], ordered[size - rank]


def _outer_rank(size: int) -> int:
    """The rank from either end at which the median's interval ends; 0 for fewer than six values."""
    if size > EXACT:
        return math.floor((size - Z95 * math.sqrt(size)) / 2)
    outside, rank = 0.5**size, 0
    while outside <= 0.025:
        rank += 1
        outside += math.comb(size, rank) * 0.5**size
    return rank


def between(pairs: Sequence[tuple[float, float]], place: float, near: float = 0.0) -> float | None:
    """The value at a place: of the nearest pair (place, value) if that is nearer than this share of the place, else on the
    straight line between its two neighbours; None beyond the outermost.
    """
    known = sorted(pairs)
    if not known:
        return None
    closest = min(known, key=lambda pair: abs(pair[0] - place))
    if abs(closest[0] - place) <= near * place:
        return closest[1]
    below = [pair for pair in known if pair[0] <= place]
    above = [pair for pair in known if pair[0] >= place]
    if not below or not above:
        return None
    (x0, y0), (x1, y1) = below[-1], above[0]
    return y0 + (y1 - y0) * (place - x0) / (x1 - x0) if x1 > x0 else y0


def quantile(values: Sequence[float], share: float) -> float | None:
    """The value below which that share lies, neighbours interpolated; None without values."""
    return _at(sorted(values), share) if values else None


def _at(ordered: Sequence[float], share: float) -> float:
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)
