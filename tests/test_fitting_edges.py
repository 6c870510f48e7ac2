"""Fits against closed forms, and where they end: no scatter, no residual to spare, columns nearly alike, no settling."""

from __future__ import annotations

import math

import pytest

from ddprobe import fitting
from ddprobe.fitting import Fit


def fit(
    chi2: float, dof: int, *, coefficient: float = 1.0, variance: float = 1.0, known: bool = False
) -> Fit:
    return Fit((coefficient,), ((variance,),), chi2, (), dof, known)


def exact(columns: list[list[float]], values: list[float], errors: list[float] | None = None) -> Fit:
    found = fitting.least_squares(columns, values, errors)
    assert found is not None
    return found


# --- Student's distribution ----------------------------------------------------------------------------------


@pytest.mark.parametrize("t", [0.01, 0.3, 1.0, 1.7320508, 4.0, 60.0])
def test_the_tail_with_one_and_two_degrees_of_freedom_has_a_closed_form(t: float) -> None:
    assert fitting.student_tail(t, 1) == pytest.approx(1 - 2 / math.pi * math.atan(t), rel=1e-9)
    assert fitting.student_tail(t, 2) == pytest.approx(1 - t / math.sqrt(2 + t * t), rel=1e-9)


@pytest.mark.parametrize("share", [0.5, 0.75, 0.9, 0.975, 0.9995])
def test_the_quantile_with_one_and_two_degrees_of_freedom_has_a_closed_form(share: float) -> None:
    wide = 2 * share - 1
    assert fitting.student_quantile(share, 1) == pytest.approx(math.tan(math.pi * wide / 2), abs=1e-9)
    assert fitting.student_quantile(share, 2) == pytest.approx(
        wide * math.sqrt(2 / (1 - wide * wide)), abs=1e-9
    )


@pytest.mark.parametrize("x", [0.001, 0.2, 0.5, 0.8, 0.999])
@pytest.mark.parametrize("a", [0.5, 1.0, 3.0, 5000.0])
def test_the_beta_function_with_a_parameter_of_one_is_a_power(a: float, x: float) -> None:
    assert fitting._beta(a, 1.0, x) == pytest.approx(x**a, rel=1e-8, abs=1e-300)
    assert fitting._beta(1.0, a, x) == pytest.approx(1 - (1 - x) ** a, rel=1e-8)


@pytest.mark.parametrize(("x", "found"), [(-0.1, 0.0), (0.0, 0.0), (1.0, 1.0), (1.1, 1.0)])
def test_the_beta_function_ends_at_0_and_1(x: float, found: float) -> None:
    assert fitting._beta(2.0, 3.0, x) == found


# --- how sure a coefficient is -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("chi2", "dof", "known", "scale"),
    [
        (8.0, 2, False, 2.0),
        (0.5, 2, False, 0.5),
        (0.5, 1, False, math.sqrt(0.5)),
        (0.5, 2, True, 1.0),
        (8.0, 2, True, 2.0),
        (8.0, 0, True, 1.0),
        (8.0, 0, False, 0.0),
    ],
)
def test_scatter_widens_errors_and_never_narrows_stated_ones(
    chi2: float, dof: int, known: bool, scale: float
) -> None:
    assert fit(chi2, dof, known=known).scale == pytest.approx(scale)


@pytest.mark.parametrize(("dof", "reach"), [(1, 12.7062), (2, 4.30265)])
def test_the_first_residual_to_spare_gives_an_interval(dof: int, reach: float) -> None:
    """chi2 of as many as degrees of freedom: a scale of 1."""
    low, high = fit(dof, dof, coefficient=5.0, variance=4.0).interval(0) or (0.0, 0.0)
    assert (low, high) == pytest.approx((5 - 2 * reach, 5 + 2 * reach), rel=1e-5)


def test_of_stated_errors_alone_the_normal_distribution_tells() -> None:
    """1.95996 standard errors are 5 %."""
    stated = fit(0.0, 0, coefficient=1.95996 * 2, variance=4.0, known=True)
    assert stated.p(0) == pytest.approx(0.05, abs=1e-4)
    low, high = stated.interval(0) or (0.0, 0.0)
    assert (low, high) == pytest.approx((0.0, 2 * 3.91992), abs=1e-3)


def test_a_variance_that_rounding_made_negative_is_none() -> None:
    assert fit(4.0, 1, variance=-1e-30).error(0) == 0.0


def test_p_is_that_of_students_t() -> None:
    """t = 2 with 2 degrees of freedom: 1 − 2 / √6, with 1: 1 − 2/π · atan 2; below zero as above."""
    assert fit(1.0, 1, coefficient=2.0).p(0) == pytest.approx(1 - 2 / math.pi * math.atan(2), rel=1e-9)
    expected = pytest.approx(1 - 2 / math.sqrt(6), rel=1e-6)
    assert fit(2.0, 2, coefficient=2.0).p(0) == expected
    assert fit(2.0, 2, coefficient=-2.0).p(0) == expected


def test_without_scatter_a_coefficient_is_certain() -> None:
    assert fit(0.0, 3, coefficient=0.1).p(0) == 0.0
    assert fit(0.0, 3, coefficient=0.0).p(0) == 1.0


# --- least squares -------------------------------------------------------------------------------------------


def test_as_many_values_as_columns_are_enough() -> None:
    found = exact([[1.0, 1.0], [0.0, 2.0]], [3.0, 7.0])
    assert found.coefficients == pytest.approx((3.0, 2.0))
    assert found.dof == 0


@pytest.mark.parametrize("apart", [1e-4, 1e-5])
def test_columns_nearly_alike_are_told_apart(apart: float) -> None:
    """y = x + 2 · (x + apart at the last): 1 and 2."""
    xs = [1.0, 1.0, 1.0, 1.0]
    other = [1.0, 1.0, 1.0, 1.0 + apart]
    found = exact([xs, other], [a + 2 * b for a, b in zip(xs, other, strict=True)])
    assert found.coefficients == pytest.approx((1.0, 2.0), rel=1e-3)


def test_columns_alike_but_for_rounding_are_one() -> None:
    assert fitting.least_squares([[1.0] * 3, [1.0, 1.0, 1.0 + 1e-8]], [1.0, 2.0, 3.0]) is None


def test_a_column_that_begins_at_zero_needs_a_change_of_rows() -> None:
    found = exact([[0.0, 0.0, 1.0], [1.0, 2.0, 0.0]], [3.0, 6.0, 5.0])
    assert found.coefficients == pytest.approx((5.0, 3.0))


def test_covariance_is_in_the_units_of_the_columns() -> None:
    """Of x = 0, 1000 with errors of 1: the slope's variance is 2 / 1000², the two vary against each other by −1 / 1000."""
    found = exact([[1.0, 1.0], [0.0, 1000.0]], [0.0, 5.0], [1.0, 1.0])
    assert found.covariance[0] == pytest.approx((1.0, -1e-3))
    assert found.covariance[1] == pytest.approx((-1e-3, 2e-6))


# --- a factor ------------------------------------------------------------------------------------------------

XS = [1.0, 2.0, 4.0, 8.0, 16.0, 1.0, 4.0, 16.0]
LATE = [0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0]


def shifted(factor: float, start: float) -> Fit | None:
    values = [(3 + 2 * x) * (factor if late else 1.0) for x, late in zip(XS, LATE, strict=True)]
    return fitting.scaled_by([[1.0] * 8, XS], values, [0.1] * 8, LATE, start)


@pytest.mark.parametrize(("factor", "start"), [(3.0, 0.0), (0.1, 0.0), (0.06, -0.9), (1.0, 1.0), (1.6, 0.6)])
def test_a_factor_is_found_from_afar(factor: float, start: float) -> None:
    found = shifted(factor, start)
    assert found is not None
    assert found.coefficients == pytest.approx((3.0, 2.0, factor - 1), rel=1e-5, abs=1e-5)
    assert (found.dof, found.errors_known) == (5, True)


def test_steps_that_all_but_vanish_settle_nowhere() -> None:
    """A fiftieth is below the twentieth at which it ends."""
    assert shifted(0.02, 0.0) is None


def test_a_factor_that_nothing_tells_from_the_law_is_none() -> None:
    assert fitting.scaled_by([[1.0] * 4], [1.0, 2.0, 3.0, 4.0], None, [1.0] * 4, 0.5) is None


# --- comparisons ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("simple", "richer", "dof"), [(20.0, 4.0, 4), (9.0, 3.0, 3), (5.0, 4.0, 1)])
def test_with_two_terms_more_f_has_a_closed_form(simple: float, richer: float, dof: int) -> None:
    """P(F > f) with 2 and n degrees of freedom is (1 + 2 f / n) to the power of −n / 2."""
    f = (simple - richer) / 2 / (richer / dof)
    found = fitting.better(fit(simple, dof + 2), fit(richer, dof))
    assert found == pytest.approx((1 + 2 * f / dof) ** (-dof / 2), rel=1e-9)


@pytest.mark.parametrize(
    ("simple", "richer", "odds"),
    [
        (fit(9.0, 3), fit(0.0, 2), 0.0),  # nothing is left of it
        (fit(0.0, 3), fit(0.0, 2), 1.0),  # nor was before
        (fit(1.0, 3), fit(2.0, 2), 1.0),  # worse
        (fit(9.0, 3), fit(1.0, 3), 1.0),  # no term more
        (fit(9.0, 3), fit(1.0, 4), 1.0),  # fewer
        (fit(9.0, 1), fit(1.0, 0), 1.0),  # no residual to spare
    ],
)
def test_where_laws_cannot_be_compared(simple: Fit, richer: Fit, odds: float) -> None:
    assert fitting.better(simple, richer) == odds


def test_one_residual_to_spare_is_enough_to_compare() -> None:
    """F with 1 and 1: t = √8, so 1 − 2/π · atan √8."""
    expected = 1 - 2 / math.pi * math.atan(math.sqrt(8.0))
    assert fitting.better(fit(9.0, 2), fit(1.0, 1)) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("signs", "odds"),
    [
        # Of the 10 orders of three and two: 2 have two runs, 3 three, 4 four and 1 five.
        ("+++--", 2 / 10),
        ("++--+", 5 / 10),
        ("-+++-", 5 / 10),
        ("++-+-", 9 / 10),
        ("+-+-+", 1.0),
        ("++--", 2 / 6),
        ("+--", None),
        ("", None),
    ],
)
def test_runs_of_unlike_many(signs: str, odds: float | None) -> None:
    found = fitting.runs([1.0 if sign == "+" else -1.0 for sign in signs])
    assert found == (None if odds is None else pytest.approx(odds))
