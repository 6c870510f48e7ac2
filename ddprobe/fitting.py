"""Weighted least squares with Student's intervals, comparisons of laws, a runs test. No word of what is fitted."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

Column = Sequence[float]


@dataclass(frozen=True, slots=True)
class Fit:
    """Coefficients of the columns, and how sure they are."""

    coefficients: tuple[float, ...]
    covariance: tuple[tuple[float, ...], ...]
    """For errors as they were stated; where none were, for errors of 1."""
    chi2: float
    """Sum of squared residuals, each over its error."""
    residuals: tuple[float, ...]
    dof: int
    """Observations less coefficients."""
    errors_known: bool

    @property
    def scale(self) -> float:
        """By what the errors are multiplied: observations that scatter more than their errors say tell of more error; those
        that scatter less were lucky. Where no error is known, the scatter is all there is."""
        found = math.sqrt(self.chi2 / self.dof) if self.dof > 0 else 0.0
        return max(1.0, found) if self.errors_known else found

    def error(self, index: int) -> float | None:
        """Standard error of a coefficient; None where neither errors nor scatter are known."""
        if self.dof <= 0 and not self.errors_known:
            return None
        return self.scale * math.sqrt(max(0.0, self.covariance[index][index]))

    def interval(self, index: int) -> tuple[float, float] | None:
        """Ends of the coefficient's 95 % interval. Without a residual to spare, by the stated errors alone."""
        error = self.error(index)
        if error is None:
            return None
        reach = student_quantile(0.975, self.dof) if self.dof > 0 else student_quantile(0.975, 10_000)
        middle = self.coefficients[index]
        return middle - reach * error, middle + reach * error

    def p(self, index: int) -> float | None:
        """How likely a coefficient so far from 0 is where it is 0; None where its error is not known."""
        error = self.error(index)
        if error is None:
            return None
        if not error:
            return 0.0 if self.coefficients[index] else 1.0
        # Without a residual to spare the stated errors are taken as exact.
        return student_tail(abs(self.coefficients[index]) / error, self.dof if self.dof > 0 else 10_000)


def least_squares(
    columns: Sequence[Column], values: Sequence[float], errors: Sequence[float] | None = None
) -> Fit | None:
    """The linear combination of columns nearest to the values, each weighted by 1 / error².

    None for fewer values than columns, and for columns that say the same.
    """
    size, count = len(values), len(columns)
    if size < count or not count:
        return None
    weights = [1.0] * size if errors is None else [1 / (error * error) for error in errors]
    # Columns of like size keep the numbers of the matrix within reach of each other.
    units = [max((abs(v) for v in column), default=0.0) or 1.0 for column in columns]
    scaled = [[value / unit for value in column] for column, unit in zip(columns, units, strict=True)]
    normal = [
        [math.fsum(w * p * q for w, p, q in zip(weights, a, b, strict=True)) for b in scaled] for a in scaled
    ]
    right = [math.fsum(w * p * y for w, p, y in zip(weights, a, values, strict=True)) for a in scaled]
    inverse = _inverted(normal)
    if inverse is None:
        return None
    solved = [math.fsum(m * r for m, r in zip(row, right, strict=True)) for row in inverse]
    residuals = tuple(
        value - math.fsum(c * column[at] for c, column in zip(solved, scaled, strict=True))
        for at, value in enumerate(values)
    )
    return Fit(
        coefficients=tuple(c / unit for c, unit in zip(solved, units, strict=True)),
        covariance=tuple(
            tuple(inverse[i][j] / (units[i] * units[j]) for j in range(count)) for i in range(count)
        ),
        chi2=math.fsum(w * r * r for w, r in zip(weights, residuals, strict=True)),
        residuals=residuals,
        dof=size - count,
        errors_known=errors is not None,
    )


def _inverted(matrix: Sequence[Sequence[float]]) -> list[list[float]] | None:
    """By Gauss and Jordan with the largest pivot; None where rows say the same."""
    size = len(matrix)
    rows = [list(row) + [float(i == j) for j in range(size)] for i, row in enumerate(matrix)]
    largest = max(abs(value) for row in matrix for value in row)
    for at in range(size):
        pivot = max(range(at, size), key=lambda r: abs(rows[r][at]))
        if not abs(rows[pivot][at]) > 1e-13 * largest:
            return None
        rows[at], rows[pivot] = rows[pivot], rows[at]
        lead = rows[at][at]
        rows[at] = [value / lead for value in rows[at]]
        for other in range(size):
            if other != at and rows[other][at]:
                factor = rows[other][at]
                rows[other] = [v - factor * w for v, w in zip(rows[other], rows[at], strict=True)]
    return [row[size:] for row in rows]


def scaled_by(
    columns: Sequence[Column],
    values: Sequence[float],
    errors: Sequence[float] | None,
    moved: Sequence[float],
    start: float,
    rounds: int = 40,
) -> Fit | None:
    """The same with one coefficient more, behind the others: value = combination · (1 + d · moved), begun at d = `start`.

    By Gauss and Newton: each round fits the tangent. None where it does not settle.
    """
    factor = start
    for _ in range(rounds):
        stretched = [[v * (1 + factor * m) for v, m in zip(column, moved, strict=True)] for column in columns]
        inner = least_squares(stretched, values, errors)
        if inner is None:
            return None
        plain = [
            math.fsum(c * column[at] for c, column in zip(inner.coefficients, columns, strict=True))
            for at in range(len(values))
        ]
        tangent = [p * m for p, m in zip(plain, moved, strict=True)]
        # Of the tangent's own coefficient the value before is taken away, so that it is the change of d.
        step = least_squares([*stretched, tangent], values, errors)
        if step is None:
            return None
        change = step.coefficients[-1]
        factor = max(-0.95, factor + change)
        if abs(change) <= 1e-7 * (1 + abs(factor)):
            return Fit(
                coefficients=(*inner.coefficients, factor),
                covariance=step.covariance,
                chi2=inner.chi2,
                residuals=inner.residuals,
                dof=step.dof,
                errors_known=step.errors_known,
            )
    return None


def better(simple: Fit, richer: Fit) -> float:
    """How likely so much better a fit is where the simple law holds: F over the richer law's own scatter."""
    more = simple.dof - richer.dof
    if more <= 0 or richer.dof <= 0:
        return 1.0
    gained = max(0.0, simple.chi2 - richer.chi2) / more
    spread = richer.scale**2
    if not spread:
        return 0.0 if gained else 1.0
    ratio = gained / spread
    return _beta(richer.dof / 2, more / 2, richer.dof / (richer.dof + more * ratio))


def runs(residuals: Sequence[float]) -> float | None:
    """How likely so few runs of one sign are where signs know no order: exact. None for fewer than two of either sign."""
    signs = [value > 0 for value in residuals if value]
    up, down = sum(signs), len(signs) - sum(signs)
    if min(up, down) < 2:
        return None
    seen = 1 + sum(a != b for a, b in itertools.pairwise(signs))
    ways = 0
    for count in range(2, seen + 1):
        half = count // 2
        if count % 2:
            ways += math.comb(up - 1, half) * math.comb(down - 1, half - 1)
            ways += math.comb(up - 1, half - 1) * math.comb(down - 1, half)
        else:
            ways += 2 * math.comb(up - 1, half - 1) * math.comb(down - 1, half - 1)
    return ways / math.comb(up + down, up)


# --- Student's distribution --------------------------------------------------------------------------------


def student_tail(t: float, dof: int) -> float:
    """The share of Student's distribution beyond ± t."""
    return _beta(dof / 2, 0.5, dof / (dof + t * t))


def student_quantile(share: float, dof: int) -> float:
    """The value below which that share of Student's distribution lies; shares from 0.5 to below 1."""
    low, high = 0.0, 1.0
    while 1 - student_tail(high, dof) / 2 < share:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        if 1 - student_tail(middle, dof) / 2 < share:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function, by Lentz's continued fraction."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta(b, a, 1 - x)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    tiny = 1e-300
    c, d = 1.0, 1 / ((1 - (a + b) * x / (a + 1)) or tiny)
    found = d
    for m in range(1, 500):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / ((1 + term * d) or tiny)
            c = (1 + term / c) or tiny
            found *= c * d
        if abs(c * d - 1) < 1e-14:
            break
    return front * found / a
