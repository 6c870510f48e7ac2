"""Intervals that cover what they should, and never claim more than the numbers say."""

from __future__ import annotations

import random

import pytest

from ddprobe import statistics
from ddprobe.statistics import Interval, bootstrap, proportion_interval, quantile, ratio, rule_of_three

BLOCK = (1.0, 8.0)


def test_the_mean_is_that_of_all_values_whatever_their_groups() -> None:
    found = bootstrap([[1, 2, 3], [6]])
    assert found is not None
    assert found.mean == 3.0
    assert found.low <= 3.0 <= found.high


def test_without_values_there_is_no_interval() -> None:
    assert bootstrap([]) is None
    assert bootstrap([[], []]) is None
    assert bootstrap([[], [2.0]]) == Interval(2.0, 2.0, 2.0)


def test_the_same_seed_gives_the_same_interval() -> None:
    values = [[1, 3, 2, 5, 8, 1], [2, 2, 4, 1, 1, 6]]
    assert bootstrap(values, seed=7) == bootstrap(values, seed=7)
    assert bootstrap(values, seed=7) != bootstrap(values, seed=8)


def test_constant_values_have_no_width_of_their_own() -> None:
    assert bootstrap([[8] * 16] * 4) == Interval(8.0, 8.0, 8.0)


def test_constant_values_are_no_certainty() -> None:
    # 64 values: what was not seen has a share below 3/64, and differs by one at least.
    found = bootstrap([[8] * 16] * 4, bounds=BLOCK, grain=1.0)
    assert found == Interval(8.0, 8.0 - 3 / 64, 8.0)
    assert bootstrap([[1] * 64], bounds=BLOCK, grain=1.0) == Interval(1.0, 1.0, 1.0 + 3 / 64)
    assert bootstrap([[4, 4]], bounds=BLOCK, grain=1.0) == Interval(4.0, 3.0, 5.0)


def test_a_value_that_was_seen_far_off_could_have_come_more_often() -> None:
    # Mean 505/64; the 1 lies 6.890625 away and could make up 3/64 more.
    found = bootstrap([[8] * 63 + [1]], bounds=BLOCK, grain=1.0)
    assert found is not None
    assert found.mean == 505 / 64
    assert found.low <= 505 / 64 - 3 / 64 * 6.890625
    assert found.high <= 8.0


def test_values_that_depend_on_their_neighbours_make_the_interval_wider() -> None:
    runs = [[1] * 8 + [8] * 8] * 4
    mixed = [[1, 8] * 8] * 4
    wide, narrow = bootstrap(runs, block=4), bootstrap(mixed, block=4)
    assert wide is not None
    assert narrow is not None
    # Of the 16 blocks of the first, 5 hold four 1s, 5 four 8s, 6 some of both: variance 49 × 2.75 / 16 a block.
    assert wide.half_width == pytest.approx(1.96 * (49 * 2.75 / 16 / 16) ** 0.5, rel=0.06)
    # Every block of the second is alike: only the unseen is left.
    assert narrow.half_width == 3 / 64 * 3.5


def test_groups_that_differ_make_the_interval_wider() -> None:
    found = bootstrap([[2] * 16, [2] * 16, [6] * 16, [6] * 16])
    assert found is not None
    # All four of one kind comes with probability 1/16, more often than 2.5 %.
    assert (found.mean, found.low, found.high) == (4.0, 2.0, 6.0)


def test_one_group_is_judged_by_its_blocks_alone() -> None:
    found = bootstrap([[1, 2] * 32], block=1)
    assert found is not None
    # 64 independent draws of 1 or 2: standard error 1/16, 95 % is ± 0.1225.
    assert found.half_width == pytest.approx(0.1225, abs=0.016)


# Half-widths for 64 values of a geometric law cut at 8, by theory: mean → ±.
THEORY = {1.11: 0.08, 1.43: 0.19, 2.0: 0.33, 3.1: 0.54, 4.9: 0.66, 6.7: 0.55}


@pytest.mark.parametrize("stick", [0.0, 0.3])
@pytest.mark.parametrize("mean", THEORY)
def test_the_interval_covers_the_truth(mean: float, stick: float) -> None:
    draw = random.Random(f"{mean} {stick}")
    chance = _chance(mean)
    covered, widths = 0, []
    for seed in range(120):
        groups = [_series(draw, chance, stick) for _ in range(4)]
        found = bootstrap(groups, bounds=BLOCK, grain=1.0, seed=seed, resamples=400)
        assert found is not None
        covered += found.low <= mean <= found.high
        widths.append(found.half_width)
    assert covered >= 0.88 * 120
    # A value is its predecessor with probability s: the variance of the mean grows by (1 + s) / (1 - s).
    expected = THEORY[mean] * ((1 + stick) / (1 - stick)) ** 0.5
    assert 0.8 * expected < sum(widths) / 120 < 1.5 * expected


def _chance(mean: float) -> float:
    """The acceptance per token for which 1 + p + … + p^7 is that mean."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(middle**j for j in range(8)) < mean else (low, middle)
    return low


def _series(draw: random.Random, chance: float, stick: float) -> list[int]:
    values: list[int] = []
    for _ in range(16):
        if values and draw.random() < stick:
            values.append(values[-1])
            continue
        accepted = 0
        while accepted < 7 and draw.random() < chance:
            accepted += 1
        values.append(accepted + 1)
    return values


def test_sums_alone_give_an_interval_over_groups() -> None:
    # Means 3 and 5 over 10 each: mean 4, residues ± 10, error √(2/1 · 200) / 20 = 1, times 12.706.
    found = ratio([(30, 10), (50, 10)])
    assert found is not None
    assert found.mean == 4.0
    assert found.half_width == pytest.approx(12.706)
    within = ratio([(30, 10), (50, 10)], bounds=BLOCK, grain=1.0)
    assert within == Interval(4.0, 1.0, 8.0)


def test_one_sum_says_nothing_of_how_values_scatter() -> None:
    assert ratio([(30, 10)]) is None
    assert ratio([(30, 10), (0, 0)]) is None
    assert ratio([]) is None


def test_equal_sums_are_no_certainty() -> None:
    assert ratio([(80, 10), (80, 10)], bounds=BLOCK, grain=1.0) == Interval(8.0, 8.0 - 3 / 20, 8.0)


def test_the_rule_of_three() -> None:
    assert rule_of_three(64) == pytest.approx(0.046875)
    assert rule_of_three(2) == 1.0
    assert rule_of_three(0) == 1.0


def test_a_share_has_an_interval_after_wilson() -> None:
    # 10 of 100: centre (0.1 + 0.0192) / 1.0384, the textbook's 0.0552 to 0.1744.
    found = proportion_interval(10, 100)
    assert found is not None
    assert (found.mean, round(found.low, 4), round(found.high, 4)) == (0.1, 0.0552, 0.1744)
    none = proportion_interval(0, 64)
    assert none is not None
    assert none.low == 0.0
    # z² / (n + z²)
    assert none.high == pytest.approx(3.8415 / 67.8415, abs=1e-4)
    every = proportion_interval(5, 5)
    assert every is not None
    assert every.high == 1.0
    assert proportion_interval(0, 0) is None


def test_quantiles_lie_between_neighbours() -> None:
    assert quantile([4, 1, 3, 2], 0.5) == 2.5
    assert quantile([10, 20, 30, 40, 50], 0.1) == 14.0
    assert quantile([7], 0.9) == 7
    assert quantile([], 0.5) is None
    assert statistics.median([3, 1, 2]) == 2
    assert statistics.median([]) is None
    assert statistics.mean([]) is None
    assert statistics.mean([1, 2]) == 1.5


@pytest.mark.parametrize(
    ("size", "ends"),
    # Ranks of the textbook's table of 95 % intervals for a median (binomial, p = 0.5).
    [(6, (1, 6)), (8, (1, 8)), (9, (2, 8)), (10, (2, 9)), (20, (6, 15)), (50, (18, 33)), (64, (24, 41))],
)
def test_a_median_lies_between_the_ranks_of_the_table(size: int, ends: tuple[int, int]) -> None:
    values = [float(value) for value in range(size, 0, -1)]
    assert statistics.median_interval(values) == ends


def test_of_too_few_values_the_median_has_no_interval() -> None:
    assert statistics.median_interval([1.0, 2.0, 3.0, 4.0, 5.0]) is None
    assert statistics.median_interval([]) is None


@pytest.mark.parametrize(
    ("size", "rank"), [(100, 40), (1000, 469), (1001, 469), (2500, 1201), (100_000, 49690)]
)
def test_the_rank_of_a_medians_interval_for_many_thousand_values(size: int, rank: int) -> None:
    """(n - 1.96 √n) / 2, as tables of the sign test have it: 100 values give the 40th and the 61st."""
    low, high = statistics.median_interval([float(n) for n in range(1, size + 1)]) or (0.0, 0.0)
    assert (low, high) == (rank, size + 1 - rank)
