"""What is said of a law: its estimates, and what a person should know of them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

from ddprobe import fitting
from ddprobe.facts import Estimate, Limit
from ddprobe.fitting import Fit
from ddprobe.parsing import sizes
from ddprobe.steplaw.laws import CLOCKS, FEW, SURE, Law, Unplaced
from ddprobe.steplaw.observed import Observed


def estimate(found: Fit, index: int) -> Estimate:
    ends = found.interval(index)
    return Estimate(found.coefficients[index], *(ends or (None, None)))


def shift(law: Law, seen: Sequence[Observed], unplaced: Unplaced | None) -> Estimate | None:
    """Times as long as at full clock that the slowest steps took."""
    if unplaced is not None:
        return unplaced.factor
    if not law.shifted:
        return None
    clocks = [one.clock for one in seen if one.clock is not None]
    reach = 1 / min(clocks) - 1 if clocks and min(clocks) < 1 - CLOCKS else 1.0
    found = estimate(law.fit, len(law.fit.coefficients) - 1)
    low, high = found.low, found.high
    return Estimate(
        1 + found.value * reach,
        None if low is None else 1 + low * reach,
        None if high is None else 1 + high * reach,
    )


def in_order(law: Law, seen: Sequence[Observed]) -> list[float]:
    """Residuals by context."""
    pairs = sorted(
        zip(seen, law.fit.residuals, strict=True), key=lambda each: (each[0].context, each[0].again)
    )
    return [residual for _, residual in pairs]


def r_squared(found: Fit, values: Sequence[float]) -> float | None:
    middle = math.fsum(values) / len(values)
    whole = math.fsum((value - middle) ** 2 for value in values)
    return 1 - math.fsum(r * r for r in found.residuals) / whole if whole else None


def exponents(places: Sequence[float], ms: Mapping[float, float]) -> Iterator[float]:
    for before, after in itertools.pairwise(places):
        yield math.log(ms[after] / ms[before]) / math.log(after / before)


def remarks(
    law: Law, seen: Sequence[Observed], places: Sequence[float], limits: Sequence[Limit]
) -> list[tuple[str, str]]:
    told: list[tuple[str, str]] = []
    a = law.fit.coefficients[0]
    if len(places) == 2:
        told.append(
            ("two_points", "two lengths make a line whatever the law is: it is no fit, and proves no growth")
        )
    elif len(places) < FEW:
        told.append(("few_contexts", f"{len(places)} lengths do not tell a line from a curve: {FEW} do"))
    if a < 0 and law.form != "quadratic":
        ends = law.fit.interval(0)
        sure = ends is not None and ends[1] < 0
        told.append(
            (
                "negative_intercept",
                f"the line begins at {a:.3g} ms, and no step takes less than nothing: "
                + ("" if sure or ends is None else "by chance, or ")
                + "the time grows faster than the context, or short lengths took another path or were timed otherwise",
            )
        )
    if law.form == "quadratic":
        c = law.fit.coefficients[2]
        bends = "faster" if c > 0 else "more slowly"
        told.append(
            (
                "curved",
                f"the time grows {bends} the longer the context, which no attention kernel alone does: work of the host over "
                "the whole context, paging, or several regimes",
            )
        )
    if law.jump is not None:
        jump, (after, before) = law.fit.coefficients[2], law.jump
        named = [f"{limit.name} ({limit.tokens})" for limit in limits if after < limit.tokens <= before]
        told.append(
            (
                "knee",
                f"between {_length(after)} and {_length(before)} a step takes {jump:+.3g} ms at once"
                + (f", where {' and '.join(named)} lies" if named else "")
                + ": CUDA graphs captured up to a length, a chunk's boundary, or another kernel; these are two regimes",
            )
        )
    moved = shift(law, seen, None)
    if moved is not None:
        clocks = [one.clock for one in seen if one.clock is not None]
        how = (
            f"the GPU's clock fell to {min(clocks):.0%} of its highest"
            if clocks and min(clocks) < 1 - CLOCKS
            else "by lengths measured again, and the order of measuring"
        )
        told.append(("shift", f"steps took {moved.value:.2f} times as long later in the run ({how})"))
    if law.form == "linear" and (ends := law.fit.interval(1)) is not None and ends[0] <= 0 <= ends[1]:
        told.append(("unclear", "the sample neither shows growth nor excludes it"))
    odds = fitting.runs(in_order(law, seen))
    if odds is not None and odds < SURE and len(places) >= FEW:
        told.append(
            ("patterned", "what is left beside the law follows the context: another law would fit better")
        )
    return told


def _length(tokens: float) -> str:
    return sizes.short(round(tokens))
