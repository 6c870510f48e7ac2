"""Least squares against textbook values, intervals against their own promise, comparisons of laws, runs."""

from __future__ import annotations

import math
import random

import pytest

from ddprobe import fitting


@pytest.mark.parametrize(
    ("dof", "quantile"),
    [
        (1, 12.706),
        (2, 4.303),
        (3, 3.182),
        (5, 2.571),
        (10, 2.228),
        (30, 2.042),
        (120, 1.980),
        (10_000, 1.960),
    ],
)
def test_students_quantiles_are_those_of_the_tables(dof: int, quantile: float) -> None:
    assert fitting.student_quantile(0.975, dof) == pytest.approx(quantile, abs=6e-4)
    assert fitting.student_tail(quantile, dof) == pytest.approx(0.05, abs=1e-4)


def test_students_tail_begins_at_one() -> None:
    assert fitting.student_tail(0.0, 4) == 1.0
    assert fitting.student_tail(1e9, 4) < 1e-20


def test_a_line_by_hand() -> None:
    """x 1…5, y 1.1 1.9 3.2 3.9 5.1: Sxx 10, Sxy 10, so slope 1 and intercept 0.04; residuals² sum to 0.072."""
    fit = fitting.least_squares([[1.0] * 5, [1.0, 2, 3, 4, 5]], [1.1, 1.9, 3.2, 3.9, 5.1])
    assert fit is not None
    assert fit.coefficients == pytest.approx((0.04, 1.0))
    assert fit.chi2 == pytest.approx(0.072)
    assert fit.dof == 3
    assert fit.scale == pytest.approx(math.sqrt(0.024))
    # Standard error of the slope: sqrt(0.024 / 10); t with 3 degrees of freedom is 3.182.
    assert fit.interval(1) == pytest.approx((1 - 3.1824 * 0.04899, 1 + 3.1824 * 0.04899), rel=1e-4)
    # Of the intercept: sqrt(0.024 · (1/5 + 9/10)).
    assert fit.error(0) == pytest.approx(math.sqrt(0.024 * 1.1))


def test_weights_pull_the_line_to_what_is_sure() -> None:
    """The weighted mean of 1 ± 1 and 4 ± 2 is (1 + 4/4) / (1 + 1/4) = 1.6, its error 1 / sqrt(1.25)."""
    fit = fitting.least_squares([[1.0, 1.0]], [1.0, 4.0], [1.0, 2.0])
    assert fit is not None
    assert fit.coefficients == pytest.approx((1.6,))
    assert fit.chi2 == pytest.approx(0.36 + 1.44)
    assert fit.error(0) == pytest.approx(math.sqrt(1.8 / 1.25))


def test_stated_errors_never_shrink_by_luck() -> None:
    fit = fitting.least_squares([[1.0] * 4], [10.0, 10.0, 10.0, 10.0], [1.0] * 4)
    assert fit is not None
    assert fit.scale == 1.0
    assert fit.error(0) == pytest.approx(0.5)


def test_without_a_residual_to_spare_nothing_is_sure_unless_errors_are_stated() -> None:
    columns = [[1.0, 1.0], [1.0, 3.0]]
    bare = fitting.least_squares(columns, [1.0, 5.0])
    stated = fitting.least_squares(columns, [1.0, 5.0], [0.1, 0.1])
    assert bare is not None
    assert stated is not None
    assert bare.coefficients == pytest.approx((-1.0, 2.0))
    assert bare.interval(0) is None
    assert bare.p(1) is None
    # Slope: (y1 − y0) / 2, so its error is 0.1 · √2 / 2.
    assert stated.interval(1) == pytest.approx((2 - 1.96 * 0.0707107, 2 + 1.96 * 0.0707107), abs=1e-3)


@pytest.mark.parametrize(
    ("columns", "values"),
    [
        ([[1.0, 1.0], [2.0, 2.0]], [1.0, 2.0]),
        ([[1.0], [2.0]], [1.0]),
        ([[0.0, 0.0]], [1.0, 2.0]),
        ([], [1.0]),
    ],
    ids=["columns that say the same", "fewer values", "nothing", "no columns"],
)
def test_no_fit(columns: list[list[float]], values: list[float]) -> None:
    assert fitting.least_squares(columns, values) is None


def test_columns_of_very_different_size_are_told_apart() -> None:
    xs = [1000.0, 4000.0, 16000.0, 64000.0, 256000.0]
    fit = fitting.least_squares(
        [[1.0] * 5, xs, [x * x for x in xs]], [5 + 2e-3 * x + 3e-9 * x * x for x in xs]
    )
    assert fit is not None
    assert fit.coefficients == pytest.approx((5.0, 2e-3, 3e-9), rel=1e-6)


def test_intervals_keep_their_promise() -> None:
    """400 samples of 6 points: 95 % intervals hold the truth in 95 % of them, give or take three errors of 1.1 %."""
    xs = [1.0, 2, 3, 5, 8, 13]
    held = [0, 0]
    for seed in range(400):
        draw = random.Random(seed)
        fit = fitting.least_squares([[1.0] * 6, xs], [7 + 0.5 * x + draw.gauss(0, 0.3) for x in xs])
        assert fit is not None
        for index, truth in enumerate((7.0, 0.5)):
            low, high = fit.interval(index) or (0.0, 0.0)
            held[index] += low <= truth <= high
    assert all(367 <= count <= 393 for count in held), held


def test_a_factor_on_some_of_the_values_is_found() -> None:
    xs = [1.0, 2, 4, 8, 16, 1, 4, 16]
    late = [0.0, 0, 0, 1, 1, 1, 1, 1]
    values = [(3 + 2 * x) * (1.6 if m else 1.0) for x, m in zip(xs, late, strict=True)]
    fit = fitting.scaled_by([[1.0] * 8, xs], values, None, late, 0.1)
    assert fit is not None
    assert fit.coefficients == pytest.approx((3.0, 2.0, 0.6))
    assert fit.dof == 5
    assert fit.chi2 == pytest.approx(0.0, abs=1e-12)


def test_a_richer_law_must_pay() -> None:
    """F with 1 and n degrees of freedom is Student's t squared, so both tests of one more term agree."""
    xs = [1.0, 2, 3, 4, 5, 6]
    ys = [1.0, 4.1, 8.8, 16.2, 24.9, 36.1]
    line = fitting.least_squares([[1.0] * 6, xs], ys)
    curve = fitting.least_squares([[1.0] * 6, xs, [x * x for x in xs]], ys)
    assert line is not None
    assert curve is not None
    assert fitting.better(line, curve) == pytest.approx(curve.p(2), rel=1e-6)
    assert fitting.better(line, curve) < 0.001
    assert fitting.better(line, line) == 1.0


@pytest.mark.parametrize(
    ("signs", "odds"),
    [
        ("+++---", 2 / 20),  # 2 of the 20 orders have two runs
        ("+-+-+-", 1.0),
        (
            "++--++",
            6 / 15,
        ),  # of 15 orders: 2 with two runs; 3 with the two minus inside, 1 with them at the ends
        ("++++", None),
        ("+---", None),
    ],
)
def test_runs_by_counting_orders(signs: str, odds: float | None) -> None:
    found = fitting.runs([1.0 if sign == "+" else -1.0 for sign in signs])
    assert found == (None if odds is None else pytest.approx(odds))


def test_residuals_of_zero_have_no_sign() -> None:
    assert fitting.runs([1, 0, 1, 0, 1, -1, 0, -1, -1]) == pytest.approx(0.1)
