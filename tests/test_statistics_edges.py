"""Intervals at their limits, against the distributions they are taken from."""

from __future__ import annotations

import math
import statistics as standard

import pytest

from ddprobe.statistics import Interval, bootstrap, proportion_interval, quantile, ratio, rule_of_three

BLOCK = (1.0, 8.0)


def within(point: float, degrees: int) -> float:
    """P(|T| < point) of Student's distribution, by its finite series (Abramowitz and Stegun, 26.7.3 and 26.7.4)."""
    angle = math.atan(point / math.sqrt(degrees))
    odd = degrees % 2
    term, total = (math.cos(angle), 0.0) if odd else (1.0, 0.0)
    for step in range(2 + odd, degrees + 1, 2):
        total += term
        term *= math.cos(angle) ** 2 * (step - 1) / step
    if odd:
        return 2 / math.pi * (angle + math.sin(angle) * total)
    return math.sin(angle) * total


def test_the_series_itself() -> None:
    """One degree is Cauchy's distribution; many are nearly the normal one."""
    assert within(1.0, 1) == pytest.approx(0.5)
    assert within(math.sqrt(2), 2) == pytest.approx(math.sqrt(0.5))
    assert within(1.959964, 10_000) == pytest.approx(0.95, abs=1e-4)


@pytest.mark.parametrize("groups", [*range(2, 24), 40, 100, 1000])
def test_an_interval_over_groups_has_95_percent_of_students_distribution(groups: int) -> None:
    values = [float(value % 7) for value in range(groups)]
    found = ratio([(value, 1) for value in values])
    assert found is not None
    errors = found.half_width / (standard.stdev(values) / math.sqrt(groups))
    assert within(errors, groups - 1) == pytest.approx(0.95, abs=1e-4)


def test_a_group_without_values_counts_for_none() -> None:
    full = [(30.0, 10), (50.0, 10)]
    assert ratio([*full, (0.0, 0)]) == ratio(full)
    assert bootstrap([[1.0, 4.0], []]) == bootstrap([[1.0, 4.0]])


def test_a_group_of_one_value_counts() -> None:
    found = ratio([(2.0, 1), (4.0, 1)])
    assert found is not None
    assert found.mean == 3.0


def test_two_groups_are_enough_to_scatter() -> None:
    assert ratio([(3.0, 1)]) is None
    assert ratio([(3.0, 1), (3.0, 1)]) == Interval(3.0, 3.0, 3.0)


def test_equal_values_that_have_no_exact_sum_have_no_width() -> None:
    found = bootstrap([[0.1] * 10] * 3)
    assert found is not None
    assert (found.low, found.high) == (0.1, 0.1)


def test_ends_stay_within_the_bounds_and_around_the_mean() -> None:
    # 3 / 20 of what is left to a bound, whichever is nearer: the grain or the bound.
    found = ratio([(75, 10), (75, 10)], bounds=BLOCK, grain=1.0)
    assert found == Interval(7.5, 7.5 - 3 / 20, 7.5 + 3 / 20 * 0.5)
    found = ratio([(12, 10), (12, 10)], bounds=BLOCK, grain=1.0)
    assert found is not None
    assert found.low == pytest.approx(1.2 - 3 / 20 * 0.2)
    assert found.high == pytest.approx(1.2 + 3 / 20)


def test_a_mean_past_its_bounds_is_no_reason_to_turn_an_interval_over() -> None:
    assert ratio([(90, 10), (90, 10)], bounds=BLOCK) == Interval(9.0, 9.0, 9.0)
    assert ratio([(5, 10), (5, 10)], bounds=BLOCK) == Interval(0.5, 0.5, 0.5)


def test_blocks_are_the_cube_root_of_the_values_long() -> None:
    # 27 values, blocks of 3: as with 3 by hand; 64 with 4.
    for size, block in ((27, 3), (64, 4)):
        values = [float(value % 5) for value in range(size)]
        assert bootstrap([values]) == bootstrap([values], block=block)
        assert bootstrap([values]) != bootstrap([values], block=block - 1)
        assert bootstrap([values]) != bootstrap([values], block=block + 1)


def test_a_block_is_no_longer_than_its_group_and_no_shorter_than_a_value() -> None:
    values = [1.0, 2.0, 4.0]
    assert bootstrap([values], block=99) == bootstrap([values], block=3)
    assert bootstrap([values], block=0) == bootstrap([values], block=1)


def test_a_block_of_a_whole_group_leaves_only_groups_to_draw() -> None:
    # Blocks wrap around, so each holds all three values: the mean of a draw is that of the group.
    found = bootstrap([[1.0, 2.0, 6.0]], block=3, bounds=(3.0, 3.0))
    assert found == Interval(3.0, 3.0, 3.0)


def test_the_ends_are_those_of_the_middle_95_percent() -> None:
    """One value of two, 0 or 1: a quarter of the draws has mean 0 and a quarter has 1, so both ends are reached."""
    found = bootstrap([[0.0, 1.0]], block=1)
    assert found is not None
    assert (found.mean, found.low, found.high) == (0.5, 0.0, 1.0)
    # Eight coins: no head has a chance of 1/256, one or none 9/256 = 3.5 %, more than 2.5 %.
    found = bootstrap([[0.0, 1.0] * 4], block=1, bounds=(0.4, 0.6))
    assert found is not None
    assert (found.low, found.high) == (0.125, 0.875)
    # Three heads of eight: no head at all has a chance of (5/8)^8 = 2.33 %, less than 2.5 %.
    found = bootstrap(
        [[1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]], block=1, bounds=(0.375, 0.375), resamples=40_000
    )
    assert found is not None
    assert found.low == 0.125


def test_what_was_not_seen_has_a_share_of_three_over_the_size() -> None:
    assert [rule_of_three(size) for size in (1, 3, 4, 300)] == [1.0, 1.0, 0.75, 0.01]
    assert rule_of_three(-1) == 1.0


def test_a_share_of_one_try() -> None:
    z = 1.959964**2
    none, one = proportion_interval(0, 1), proportion_interval(1, 1)
    assert none is not None
    assert one is not None
    assert (none.mean, none.low) == (0.0, 0.0)
    assert none.high == pytest.approx(z / (1 + z))
    assert (one.mean, one.high) == (1.0, 1.0)
    assert one.low == pytest.approx(1 / (1 + z))


def test_a_share_never_leaves_zero_to_one() -> None:
    for size in range(1, 300):
        none, every = proportion_interval(0, size), proportion_interval(size, size)
        assert none is not None
        assert every is not None
        assert none.low == 0.0
        assert every.high == 1.0


def test_a_quantile_between_two_values() -> None:
    assert quantile([10.0, 20.0], 0.5) == 15.0
    assert quantile([10.0, 20.0], 1.0) == 20.0
    assert quantile([30.0, 10.0, 20.0], 0.75) == 25.0
    assert quantile([5.0], 0.0) == 5.0
