"""Laws at their limits: which points count, what errors they have, when a shift, a curve or a jump is taken, what is said."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from ddprobe import steplaw
from ddprobe.facts import CommitPoint, CommitRequest, Estimate, GpuWindow, Limit, ModelConfig, StepFit
from ddprobe.fitting import Fit
from ddprobe.steplaw import laws, told
from ddprobe.steplaw.laws import Law, Unplaced
from ddprobe.steplaw.observed import Observed, context_of, observed, one_text

LADDER = (1024, 4096, 16384, 32768, 65536, 131072)


def point(
    context: int = 1024, ms: float | None = 10.0, half: float | None = None, **fields: Any
) -> CommitPoint:
    """`half` of its 95 % interval."""
    ends = (None, None) if half is None or ms is None else (ms - half, ms + half)
    known: dict[str, Any] = {
        "arm": "repeat",
        "purpose": "step-time",
        "timed_steps": 64,
        "timed_context": float(context),
    }
    return CommitPoint(
        context_tokens=context, step_ms=ms, step_ms_from=ends[0], step_ms_to=ends[1], **{**known, **fields}
    )  # fmt: skip


def seen(
    values: Sequence[float], contexts: Sequence[float] = LADDER, *, error: float | None = 0.01, again: Sequence[int] = (),
    clocks: Sequence[float] | None = None, order: Sequence[int] | None = None,
) -> tuple[Observed, ...]:  # fmt: skip
    return tuple(
        Observed(
            context=float(context), ms=ms, error=error, steps=64, order=None if order is None else order[at], again=at in again,
            clock=None if clocks is None else clocks[at],
        )
        for at, (context, ms) in enumerate(zip(contexts, values, strict=True))
    )  # fmt: skip


def law(
    *coefficients: float, form: str = "linear", variance: float = 0.0, dof: int = 4, residuals: Sequence[float] = (), known: bool = True,
    **fields: Any,
) -> Law:  # fmt: skip
    """With chi2 of as many as degrees of freedom: a scale of 1."""
    size = len(coefficients)
    covariance = tuple(tuple(variance * (i == j) for j in range(size)) for i in range(size))
    return Law(form, Fit(coefficients, covariance, float(dof), tuple(residuals), dof, known), **fields)


def fitted(points: Sequence[CommitPoint], **other: Any) -> StepFit:
    found = steplaw.fit(points, **other)
    assert found is not None
    return found


# --- which points count --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ms", "counts"),
    [
        (None, False), (0.0, False), (-1.0, False), (0.9e-6, False), (1e-6, True), (1.1e-6, True), (10.0, True), (0.99e9, True),
        (1e9, True), (1.01e9, False), (math.inf, False), (math.nan, False),
    ],
)  # fmt: skip
def test_a_step_time_that_a_clock_can_show(ms: float | None, counts: bool) -> None:
    assert bool(one_text([point(ms=ms)])) is counts


@pytest.mark.parametrize(
    ("tokens", "counts"), [(0.5, True), (1.0, True), (0.99e12, True), (1e12, True), (1.01e12, False), (math.inf, False), (-1.0, False)]
)  # fmt: skip
def test_a_context_that_a_prompt_can_have(tokens: float, counts: bool) -> None:
    assert bool(one_text([point(timed_context=tokens)])) is counts
    assert one_text([point(0, timed_context=None)]) == []


def test_what_steps_read_counts_before_what_was_sent_before_what_was_asked() -> None:
    assert context_of(point(1024, timed_context=1100.0, prompt_tokens=1000)) == 1100.0
    assert context_of(point(1024, timed_context=None, prompt_tokens=1000)) == 1000.0
    assert context_of(point(1024, timed_context=None, prompt_tokens=None)) == 1024.0


def test_the_ladder_comes_first_and_its_repetitions_behind_it() -> None:
    late = [point(c, purpose="step-time again") for c in (1024, 65536)]
    ladder = [point(c) for c in (65536, 4096, 1024)]
    found = one_text([*late, *ladder, point(4096, purpose="claim")])
    assert [(p.purpose, p.context_tokens) for p in found] == [
        ("step-time", 1024), ("step-time", 4096), ("step-time", 65536), ("step-time again", 1024), ("step-time again", 65536),
    ]  # fmt: skip


def test_of_ladders_of_as_many_lengths_that_for_times_counts() -> None:
    commits = [point(c, purpose="point") for c in LADDER[:2]]
    plain = [point(c, purpose="plain") for c in LADDER[:2]]
    times = [point(c) for c in LADDER[:2]]
    for order in ((*commits, *plain, *times), (*times, *plain, *commits)):
        assert {p.purpose for p in one_text(order)} == {"step-time"}
    more = [point(c, purpose="point") for c in LADDER[:3]]
    assert {p.purpose for p in one_text([*times, *more])} == {"point"}


# --- errors --------------------------------------------------------------------------------------------------

Z = 1.959964


def errors(*points: CommitPoint) -> list[float | None]:
    return [one.error for one in observed(points, (), ())]


def test_an_error_is_half_an_interval_over_196() -> None:
    assert errors(point(half=Z), point(4096, 20.0, half=2 * Z)) == pytest.approx([1.0, 2.0])


@pytest.mark.parametrize(
    ("known", "total", "told_of"), [(1, 2, False), (2, 3, True), (2, 4, False), (3, 5, True), (0, 2, False)]
)
def test_most_medians_must_have_an_interval(known: int, total: int, told_of: bool) -> None:
    """The others then have the usual error, in proportion: 1 of 10 ms."""
    points = [point(LADDER[at], 10.0, half=Z if at < known else None) for at in range(total)]
    assert errors(*points) == (pytest.approx([1.0] * total) if told_of else [None] * total)


def test_no_error_is_below_a_quarter_of_the_usual() -> None:
    """Shares of a tenth; 0.024 is taken for 0.025, 0.026 stays."""
    points = [point(LADDER[at], 10.0, half=Z * error) for at, error in enumerate((1.0, 1.0, 1.0, 0.24, 0.26))]
    assert errors(*points) == pytest.approx([1.0, 1.0, 1.0, 0.25, 0.26])


def test_no_clock_tells_more_than_a_ten_thousandth() -> None:
    assert errors(point(half=0.0), point(4096, half=0.0)) == pytest.approx([1e-3, 1e-3])
    assert errors(point(half=Z * 0.9e-3), point(4096, half=Z * 0.9e-3)) == pytest.approx([1e-3, 1e-3])
    assert errors(point(half=Z * 1.1e-3), point(4096, half=Z * 1.1e-3)) == pytest.approx([1.1e-3, 1.1e-3])


@pytest.mark.parametrize(
    ("low", "high", "counts"),
    [
        (0.0, 20.0, True), (-0.1, 20.0, False), (10.0, 10.0, True), (10.1, 10.0, False), (5.0, 1e9, True), (5.0, 1.01e9, False),
        (None, 11.0, False), (9.0, None, False), (math.nan, 11.0, False),
    ],
)  # fmt: skip
def test_an_interval_that_is_one(low: float | None, high: float | None, counts: bool) -> None:
    (error,) = errors(replace(point(), step_ms_from=low, step_ms_to=high))
    assert (error is not None) is counts


# --- order and clocks ----------------------------------------------------------------------------------------


def request(context: int, purpose: str = "step-time") -> CommitRequest:
    return CommitRequest(
        key=f"{purpose}{context}", purpose=purpose, arm="repeat", context_tokens=context, prompt=0
    )


def test_the_order_is_that_of_the_first_request_of_a_length() -> None:
    sent = [request(4096), request(1024), request(4096), request(1024, "step-time again")]
    points = [point(1024), point(4096), point(16384), point(1024, purpose="step-time again")]
    assert [(one.order, one.again) for one in observed(points, sent, ())] == [
        (1, False), (0, False), (None, False), (2, True),
    ]  # fmt: skip


def test_a_length_that_was_measured_twice_is_one() -> None:
    points = [point(1024, timed_context=1100.0), point(1024, timed_context=1104.0, purpose="step-time again")]
    assert [one.context for one in observed(points, (), ())] == [1100.0, 1100.0]


def window(context: int, mhz: float | None, **fields: Any) -> GpuWindow:
    known: dict[str, Any] = {"index": 0, "purpose": "step-time", "arm": "repeat", "samples": 5}
    return GpuWindow(context_tokens=context, sm_clock_mhz=mhz, **{**known, **fields})


def clocks(*windows: GpuWindow) -> list[float | None]:
    points = [replace(point(c), base="http://a") for c in (1024, 4096)]
    return [one.clock for one in observed(points, (), windows)]


def test_the_slowest_card_of_a_point_over_the_fastest_point() -> None:
    found = clocks(window(1024, 2000.0), window(1024, 1500.0, index=1), window(4096, 1000.0))
    assert found == pytest.approx([1.0, 2 / 3])


@pytest.mark.parametrize(
    "other",
    [
        window(4096, None), window(4096, 0.0), window(4096, -1.0), window(4096, math.inf), window(4096, 1000.0, arm="prose"),
        window(4096, 1000.0, purpose="plain"), window(4096, 1000.0, base="http://b"), window(16384, 1000.0),
        window(4096, 345.0, utilization_high=0.0),
    ],
)  # fmt: skip
def test_where_one_point_has_no_clock_none_has(other: GpuWindow) -> None:
    assert clocks(window(1024, 2000.0), other) == [None, None]


@pytest.mark.parametrize("mhz", [0.5, 1.0, 1000.0])
def test_a_window_of_the_points_own_server_counts(mhz: float) -> None:
    assert clocks(window(1024, 2 * mhz, base="http://a"), window(4096, mhz)) == [1.0, 0.5]


# --- flat ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "b", "variance", "flat"),
    [
        (100.0, 0.05, 0.0, True),  # 105 at 100
        (100.0, 0.0501, 0.0, False),
        (105.0, -0.05, 0.0, True),
        (105.2, -0.0502, 0.0, False),
        (0.0, 0.0, 0.0, False),
        (-1.0, 0.0, 0.0, False),
        (-1.0, 0.05, 0.0, False),
        (1.0, -0.02, 0.0, False),
        (0.5, 0.0, 0.0, True),  # steps of half a millisecond
        (0.01, 0.00001, 0.0, False),
    ],
)
def test_a_twentieth_is_flat(a: float, b: float, variance: float, flat: bool) -> None:
    assert laws.level(law(a, b, variance=variance), (0.0, 50.0, 100.0)) is flat


@pytest.mark.parametrize(
    ("b", "reach", "flat"),
    [
        (0.1, 0.1001, True),  # from 0 to 0.2: 105 + 0.2 · 50 = 115 of 100
        (0.1, 0.0999, False),  # zero is excluded
        (-0.1, 0.1001, True),
        (-0.1, 0.0999, False),
        (0.15, 0.19, True),  # 107.5 + 0.34 · 50 = 124.5
        (0.15, 0.21, False),  # 107.5 + 0.36 · 50 = 125.5: a quarter more is not excluded
    ],
)
def test_growth_that_the_sample_does_not_show_and_excludes(b: float, reach: float, flat: bool) -> None:
    """With 4 degrees of freedom the interval is 2.77645 errors wide to either side."""
    one = law(100.0, b, variance=(reach / 2.776445) ** 2)
    assert laws.level(one, (0.0, 100.0)) is flat


def test_growth_of_which_nobody_knows_the_error_is_growth() -> None:
    assert laws.level(law(100.0, 0.1, dof=0, known=False), (0.0, 100.0)) is False


# --- a shift -------------------------------------------------------------------------------------------------

TWICE = (1024, 4096, 131072)


def repeated(
    factor: float, *, at: Sequence[int] = TWICE, error: float | None = 0.01, base: float = 100.0
) -> tuple[Observed, ...]:
    """Steps of that many ms at every length, and some of them again."""
    contexts = (*LADDER, *at)
    values = [base] * len(LADDER) + [base * factor] * len(at)
    return seen(values, contexts, error=error, again=range(len(LADDER), len(contexts)))


@pytest.mark.parametrize(
    ("factor", "found"), [(math.exp(0.0301), True), (math.exp(0.0299), False), (math.exp(-0.0301), True), (math.exp(-0.0299), False)]
)  # fmt: skip
def test_three_percent_are_a_shift(factor: float, found: bool) -> None:
    moved = laws._moved(repeated(factor))
    assert (moved is not None) is found
    if moved is not None:
        assert moved.value == pytest.approx(factor)


def test_one_repetition_that_moved_thrice_as_much_counts_alone() -> None:
    """The middle one stays; the third moved by exp(0.091) or exp(0.089)."""
    for log, found in ((0.091, True), (0.089, False)):
        values = [100.0] * 6 + [100.0, 100.0, 100.0 * math.exp(log)]
        moved = laws._moved(seen(values, (*LADDER, *TWICE), again=(6, 7, 8)))
        assert (moved is not None) is found


@pytest.mark.parametrize(("short", "found"), [(2.01, True), (1.99, False)])
def test_a_shift_is_a_fiftieth_of_the_longest_step(short: float, found: bool) -> None:
    """Of 100 ms; the shortest step of 4 ms took that much more."""
    values = [4.0, 20.0, 40.0, 60.0, 80.0, 100.0, 4.0 + short]
    assert (laws._moved(seen(values, (*LADDER, 1024), again=(6,))) is not None) is found


@pytest.mark.parametrize(("error", "found"), [(1.75, True), (1.9, False)])
def test_a_shift_is_four_of_its_errors(error: float, found: bool) -> None:
    """exp(0.1): 100 and 110.5 ms, each ± error: √(0.0175² + 0.0158²) · 4 = 0.0944; with 1.9 ms 0.1024."""
    moved = laws._moved(repeated(math.exp(0.1), error=error))
    assert (moved is not None) is found
    if moved is not None:
        spread = 1.959964 * math.hypot(error / 100, error / (100 * math.exp(0.1)))
        assert moved.low == pytest.approx(math.exp(0.1 - spread))
        assert moved.high == pytest.approx(math.exp(0.1 + spread))


def test_without_errors_a_shift_has_no_interval() -> None:
    assert laws._moved(repeated(1.05, error=None)) == Estimate(pytest.approx(1.05), None, None)  # type: ignore[arg-type]


def test_what_was_never_repeated_did_not_move() -> None:
    assert laws._moved(seen([100.0] * 6)) is None
    alone = seen([100.0] * 6 + [200.0], (*LADDER, 2048), again=(6,))
    assert laws._moved(alone) is None


def test_the_repetition_that_moved_most_tells_the_factor() -> None:
    values = [100.0] * 6 + [150.0, 160.0, 100.0]
    moved = laws._moved(seen(values, (*LADDER, *TWICE), again=(6, 7, 8)))
    assert moved is not None
    assert moved.value == pytest.approx(1.6)


@pytest.mark.parametrize(("low", "shift"), [(0.5, 2.0), (0.94, 1 / 0.94), (0.951, None), (1.0, None)])
def test_a_clock_a_twentieth_lower_shifts_what_it_slows(low: float, shift: float | None) -> None:
    """10 + 1 µs a token, the last three lengths at the lower clock."""
    at = [1.0, 1.0, 1.0, low, low, low]
    values = [(10 + 1e-3 * c) / clock for c, clock in zip(LADDER, at, strict=True)]
    chosen, used, unplaced = laws.chosen(seen(values, clocks=at))
    assert chosen is not None
    assert (chosen.shifted, unplaced, len(used)) == (shift is not None, None, 6)
    if shift is not None:
        found = told.shift(chosen, used, None)
        assert found is not None
        assert found.value == pytest.approx(shift, rel=1e-6)
        assert chosen.fit.coefficients[:2] == pytest.approx((10.0, 1e-3))


def test_a_lower_clock_that_made_steps_faster_is_left_aside() -> None:
    at = [1.0, 1.0, 1.0, 0.5, 0.5, 0.5]
    values = [(10 + 1e-3 * c) * (0.9 if clock < 1 else 1.0) for c, clock in zip(LADDER, at, strict=True)]
    chosen, _, _ = laws.chosen(seen(values, clocks=at))
    assert chosen is not None
    assert not chosen.shifted


@pytest.mark.parametrize(
    ("effect", "shifted"), [(0.0, False), (0.029, False), (0.031, True), (0.5, True), (1.0, True)]
)
def test_a_clock_that_slowed_nothing_is_no_shift(effect: float, shifted: bool) -> None:
    """The last three lengths at half the clock: steps took `effect` of their time on top."""
    at = [1.0, 1.0, 1.0, 0.5, 0.5, 0.5]
    values = [
        (10 + 1e-3 * c) * (1 + effect if clock < 1 else 1.0) for c, clock in zip(LADDER, at, strict=True)
    ]
    chosen, _, _ = laws.chosen(seen(values, clocks=at))
    assert chosen is not None
    assert chosen.shifted is shifted


def in_time(
    factor: float, order: Sequence[int], falls: int, *, again: Sequence[int] = TWICE
) -> tuple[Law, StepFit]:
    """10 + 1 µs a token; what was measured from that place on takes `factor` times as long."""
    contexts = (*LADDER, *again)
    values = [
        (10 + 1e-3 * c) * (factor if place >= falls else 1.0)
        for c, place in zip(contexts, order, strict=True)
    ]
    found = seen(values, contexts, again=range(6, len(contexts)), order=order)
    chosen, used, unplaced = laws.chosen(found)
    assert chosen is not None
    assert unplaced is None
    return chosen, StepFit(
        arm="", form=chosen.form, a=told.estimate(chosen.fit, 0), b=told.estimate(chosen.fit, 1), points=len(used), steps=0,
        contexts=(), step_ms=(), shift=told.shift(chosen, used, None),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("order", "falls"),
    [
        ((0, 1, 2, 3, 4, 5, 6, 7, 8), 6),
        ((0, 1, 2, 3, 4, 5, 6, 7, 8), 3),
        ((5, 4, 3, 2, 1, 0, 6, 7, 8), 2),
        ((2, 0, 4, 1, 5, 3, 6, 7, 8), 4),
        ((0, 1, 2, 3, 4, 5, 6, 7, 8), 1),
    ],
)
def test_a_shift_is_placed_by_the_order_of_measuring(order: tuple[int, ...], falls: int) -> None:
    chosen, found = in_time(1.6, order, falls)
    assert (chosen.form, chosen.shifted) == ("linear", True)
    assert (found.a.value, found.b.value) == pytest.approx((10.0, 1e-3), rel=1e-6)
    assert found.shift is not None
    assert found.shift.value == pytest.approx(1.6)
    assert found.points == 9


def test_a_length_that_was_under_way_is_of_neither_side() -> None:
    """At the third of the lengths the clock fell: half its steps were slow."""
    contexts = (*LADDER, *TWICE)
    factor = (1.0, 1.0, 1.3, 1.6, 1.6, 1.6, 1.6, 1.6, 1.6)
    values = [(10 + 1e-3 * c) * f for c, f in zip(contexts, factor, strict=True)]
    chosen, used, _ = laws.chosen(seen(values, contexts, again=(6, 7, 8), order=range(9)))
    assert chosen is not None
    assert [one.context for one in used] == [c for at, c in enumerate(contexts) if at != 2]
    assert chosen.fit.coefficients == pytest.approx((10.0, 1e-3, 0.6), rel=1e-6)


def test_two_lengths_and_their_repetitions_show_a_shift() -> None:
    values = [11.0, 141.0, 17.6, 225.6]
    found = seen(values, (1000, 131_000, 1000, 131_000), again=(2, 3), order=range(4))
    chosen, used, _ = laws.chosen(found)
    assert chosen is not None
    assert (chosen.shifted, len(used)) == (True, 4)
    assert chosen.fit.coefficients == pytest.approx((10.0, 1e-3, 0.6), rel=1e-6)


def test_a_jump_is_found_beside_a_shift() -> None:
    """30 ms more beyond 8k, and from the fifth measurement on all 1.6 times as long."""
    contexts = (65536, 1024, 16384, 4096, 131072, 32768, 1024, 16384, 65536)
    values = [
        (10 + 1e-3 * c + (30 if c > 8192 else 0)) * (1.6 if at >= 4 else 1.0) for at, c in enumerate(contexts)
    ]
    chosen, used, _ = laws.chosen(seen(values, contexts, again=(6, 7, 8), order=range(9)))
    assert chosen is not None
    assert (chosen.form, chosen.jump, len(used)) == ("knee", (4096.0, 16384.0), 9)
    assert chosen.fit.coefficients == pytest.approx((10.0, 1e-3, 30.0, 0.6), rel=1e-5)


@pytest.mark.parametrize(("misfit", "count"), [(7.0, 9), (9.5, 8)])
def test_a_length_is_left_out_for_a_misfit_of_eight(misfit: float, count: int) -> None:
    """The first one after the shift is off by what makes chi² 7 or 9.5; without it the law is exact."""

    def measured(off: float) -> tuple[Observed, ...]:
        contexts = (*LADDER, *TWICE)
        values = [(10 + 1e-3 * c) * (1.6 if at >= 2 else 1.0) for at, c in enumerate(contexts)]
        values[2] += off
        return seen(values, contexts, again=(6, 7, 8), order=range(9))

    whole = laws._cut(measured(1e-3), 2, 0.6)
    assert whole is not None
    off = 1e-3 * math.sqrt(misfit / whole.fit.chi2)
    _, used, _ = laws.chosen(measured(off))
    assert len(used) == count


def test_a_shift_that_no_repetition_shows_is_taken_where_nothing_else_explains_the_scatter() -> None:
    """All that was repeated had been measured after it, in no order of length."""
    contexts = (4096, 32768, 1024, 131072, 16384, 65536, 1024, 131072)
    values = [(10 + 1e-3 * c) * (1.0 if at < 2 else 1.5) for at, c in enumerate(contexts)]
    found = seen(values, contexts, again=(6, 7), order=range(8))
    chosen, used, unplaced = laws.chosen(found)
    assert chosen is not None
    assert (chosen.shifted, unplaced, len(used)) == (True, None, 8)
    assert chosen.fit.coefficients == pytest.approx((10.0, 1e-3, 0.5), rel=1e-6)
    # Where one place in the order is missing, or errors are, nobody can tell.
    for other in (replace(found[0], order=None), replace(found[0], error=None)):
        plain, _, _ = laws.chosen((other, *found[1:]))
        assert plain is not None
        assert not plain.shifted


@pytest.mark.parametrize(("shift", "chi2", "scale_dof", "sure"), [
    (0.031, 0.9, 4, True), (0.029, 0.9, 4, False), (-0.031, 0.9, 4, True), (0.03, 0.9, 4, False), (0.5, 1.0, 4, False), (0.5, 1.01, 4, False), (0.5, 0.99, 4, True),
])  # fmt: skip
def test_what_makes_a_hidden_shift_sure(shift: float, chi2: float, scale_dof: int, sure: bool) -> None:
    """Of 100 before, less than 1 is left."""
    plain = Law("linear", Fit((10.0, 1e-3), (), 100.0, (), 5, True))
    beside = Law("linear", Fit((10.0, 1e-3, shift), (), chi2, (), scale_dof, True), shifted=True)
    assert laws._surely(plain, beside) is sure


@pytest.mark.parametrize(("chi2", "sure"), [(3.99, True), (4.0, False), (4.01, False)])
def test_a_hidden_shift_leaves_less_than_twice_the_scatter(chi2: float, sure: bool) -> None:
    """With one degree of freedom 4 is a scale of 2."""
    plain = Law("linear", Fit((10.0, 1e-3), (), 1e6, (), 2, True))
    beside = Law("linear", Fit((10.0, 1e-3, 0.5), (), chi2, (), 1, True), shifted=True)
    assert laws._surely(plain, beside) is sure


def test_a_shift_without_a_place_leaves_repetitions_out() -> None:
    found = repeated(1.5)
    chosen, used, unplaced = laws.chosen(found)
    assert chosen is not None
    assert unplaced is not None
    assert unplaced.factor.value == pytest.approx(1.5)
    assert "took 1.50 times as long" in unplaced.remark[1]
    assert used == list(found[:6])


# --- a line, a curve, a jump ---------------------------------------------------------------------------------


def curve(c: float) -> list[float]:
    return [10 + 1e-3 * x + c * x * x for x in LADDER]


def jump(size: float, beyond: float = 8192) -> list[float]:
    return [10 + 1e-3 * x + (size if x > beyond else 0.0) for x in LADDER]


@pytest.mark.parametrize(
    ("values", "form"),
    [
        (curve(0.0), "linear"),
        (curve(1e-9), "quadratic"),
        (curve(-1e-9), "quadratic"),
        (jump(5.0), "knee"),
        (jump(-5.0), "knee"),
        (jump(5.0, 20_000), "knee"),
        (jump(5.0, 40_000), "knee"),
    ],
)
def test_the_simplest_law_that_explains_it(values: list[float], form: str) -> None:
    found = laws.best(seen(values))
    assert found is not None
    assert found.form == form


@pytest.mark.parametrize(
    ("beyond", "between"), [(8192, (4096, 16384)), (20_000, (16384, 32768)), (40_000, (32768, 65536))]
)
def test_a_jump_lies_between_its_neighbours(beyond: float, between: tuple[float, float]) -> None:
    found = laws.best(seen(jump(5.0, beyond)))
    assert found is not None
    assert found.jump == between
    assert found.fit.coefficients == pytest.approx((10.0, 1e-3, 5.0))


@pytest.mark.parametrize("beyond", [2000, 100_000])
def test_a_jump_has_two_lengths_on_either_side(beyond: float) -> None:
    found = laws.best(seen(jump(5.0, beyond)))
    assert found is not None
    assert found.jump is None or found.jump[0] > 1024
    assert found.jump is None or found.jump[1] < 131072


@pytest.mark.parametrize(("count", "form"), [(3, "linear"), (4, "quadratic"), (5, "quadratic")])
def test_a_curve_needs_four_lengths(count: int, form: str) -> None:
    values = [v + (0.001 if at % 2 else -0.001) for at, v in enumerate(curve(1e-7))][:count]
    found = laws.best(seen(values, LADDER[:count]))
    assert found is not None
    assert found.form == form


def test_three_lengths_make_no_curve_however_often_they_were_measured() -> None:
    contexts = (1024, 32768, 131072) * 4
    values = [10 + 1e-3 * c + 1e-7 * c * c + (0.01 if at % 2 else -0.01) for at, c in enumerate(contexts)]
    found = laws.best(seen(values, contexts))
    assert found is not None
    assert found.form == "linear"


def test_a_jump_needs_five_lengths() -> None:
    """Two levels; of four lengths a curve is the most that is said."""
    for count, form in ((4, {"linear", "quadratic"}), (5, {"knee"}), (6, {"knee"})):
        values = [(10.0 if c < 8192 else 30.0) + 1e-5 * c for c in LADDER[:count]]
        found = laws.best(seen(values, LADDER[:count]))
        assert found is not None
        assert found.form in form
    without = laws.best(seen(jump(5.0)), jumps=False)
    assert without is not None
    assert without.form != "knee"


def test_a_square_term_is_told_of_four_lengths_of_one_clock() -> None:
    line = laws.best(seen(curve(0.0)))
    assert line is not None
    for count, told_of in ((3, False), (4, True)):
        found = laws.square(seen(curve(0.0)[:count], LADDER[:count]), line)
        assert (found is not None) is told_of
    assert laws.square(seen(curve(0.0)), replace(line, shifted=True)) is None
    bent = laws.best(seen(curve(1e-7)))
    assert bent is not None
    assert laws.square((), bent) is bent.fit


@pytest.mark.parametrize(
    ("known", "jumped", "score"),
    [
        (True, False, 8.0),
        (True, True, 10.0),
        (False, False, 6 * math.log(4 / 6) + 4),
        (False, True, 6 * math.log(4 / 6) + 6),
    ],
)
def test_a_coefficient_costs_two(known: bool, jumped: bool, score: float) -> None:
    """chi2 is 4, of 6 observations; without errors it is n · ln(chi2 / n)."""
    one = law(10.0, 1e-3, known=known, jump=(1.0, 2.0) if jumped else None)
    assert laws._score(one, 6) == pytest.approx(score)


def test_a_perfect_fit_has_a_score() -> None:
    perfect = Law("linear", Fit((1.0, 2.0), (), 0.0, (), 4, False))
    assert laws._score(perfect, 6) == pytest.approx(6 * math.log(1e-12 / 6) + 4)


# --- what is told --------------------------------------------------------------------------------------------


def test_an_estimate_without_an_interval_has_no_ends() -> None:
    assert told.estimate(law(10.0, 1e-3, dof=0, known=False).fit, 0) == Estimate(10.0)
    ends = told.estimate(law(10.0, 1e-3, variance=1.0).fit, 0)
    assert (ends.low, ends.high) == pytest.approx((10 - 2.776445, 10 + 2.776445))


@pytest.mark.parametrize(
    ("lowest", "factor"),
    [
        (None, 1.6),
        (1.0, 1.6),
        (0.95, 1.6),
        (0.94, 1 + 0.6 * (1 / 0.94 - 1)),
        (0.8, 1.15),
        (0.5, 1.6),
        (0.25, 2.8),
    ],
)
def test_a_shift_reaches_as_far_as_the_lowest_clock(lowest: float | None, factor: float) -> None:
    """Of a coefficient of 0.6 ± 0.1: by time alone 1.6; at half the clock as much, at a quarter three times as much."""
    at = None if lowest is None else [1.0, 1.0, lowest]
    one = law(10.0, 1e-3, 0.6, variance=(0.1 / 2.776445) ** 2, shifted=True)
    found = told.shift(one, seen([10.0] * 3, LADDER[:3], clocks=at), None)
    assert found is not None
    reach = (factor - 1) / 0.6
    assert (found.value, found.low, found.high) == pytest.approx(
        (factor, 1 + 0.5 * reach, 1 + 0.7 * reach), rel=1e-5
    )
    bare = told.shift(law(10.0, 1e-3, 0.6, dof=0, known=False, shifted=True), (), None)
    assert bare == Estimate(1.6)


def test_what_is_not_shifted_has_no_shift() -> None:
    assert told.shift(law(10.0, 1e-3), (), None) is None
    assert told.shift(law(10.0, 1e-3), (), Unplaced(Estimate(1.5))) == Estimate(1.5)


def test_residuals_stand_by_context_and_repetitions_behind() -> None:
    found = seen([0.0] * 4, (4096, 1024, 1024, 4096), again=(0, 1))
    assert told.in_order(law(1.0, residuals=(1.0, 2.0, 3.0, 4.0)), found) == [3.0, 2.0, 4.0, 1.0]


def test_r_squared_by_hand() -> None:
    """Values 1, 2, 3, 6 about 3: 14; residuals 1 and −1 leave 2."""
    one = law(1.0, residuals=(1.0, 0.0, -1.0, 0.0))
    assert told.r_squared(one.fit, [1.0, 2.0, 3.0, 6.0]) == pytest.approx(1 - 2 / 14)
    assert told.r_squared(one.fit, [2.0, 2.0]) is None


def test_exponents_by_hand() -> None:
    """Twice the context: as long, twice and four times as long."""
    places = [1.0, 2.0, 4.0, 8.0]
    assert list(told.exponents(places, {1.0: 5.0, 2.0: 5.0, 4.0: 10.0, 8.0: 40.0})) == pytest.approx(
        [0, 1, 2]
    )


def remarks(
    one: Law, count: int = 6, limits: Sequence[Limit] = (), at: Sequence[float] | None = None
) -> dict[str, str]:
    contexts = LADDER[:count]
    residuals = one.fit.residuals or (0.0,) * count
    one = replace(one, fit=replace(one.fit, residuals=tuple(residuals)))
    return dict(told.remarks(one, seen([10.0] * count, contexts, clocks=at), contexts, limits))


@pytest.mark.parametrize(
    ("count", "kinds"),
    [(2, {"two_points"}), (3, {"few_contexts"}), (4, {"few_contexts"}), (5, set()), (6, set())],
)
def test_remarks_on_the_number_of_lengths(count: int, kinds: set[str]) -> None:
    assert set(remarks(law(10.0, 1e-3), count)) == kinds


@pytest.mark.parametrize(
    ("a", "reach", "form", "chance"),
    [
        (-0.5, 0.4, "linear", False),
        (-0.5, 0.6, "linear", True),
        (-0.5, 0.0, "flat", False),
        (-0.5, 0.4, "quadratic", None),
        (0.0, 0.4, "linear", None),
        (0.5, 0.4, "linear", None),
        (1.5, 1.4, "linear", None),
    ],
)
def test_a_line_that_begins_below_nothing(a: float, reach: float, form: str, chance: bool | None) -> None:
    found = remarks(law(a, 1e-3, 1e-9, form=form, variance=(reach / 2.776445) ** 2))
    assert ("negative_intercept" in found) is (chance is not None)
    assert ("by chance, or " in found.get("negative_intercept", "")) is (chance is True)


def test_without_an_interval_nobody_speaks_of_chance() -> None:
    found = remarks(law(-0.5, 1e-3, dof=0, known=False))
    assert found["negative_intercept"].startswith("the line begins at -0.5 ms")
    assert "by chance" not in found["negative_intercept"]


@pytest.mark.parametrize(("c", "word"), [(1e-9, "grows faster the"), (-1e-9, "grows more slowly the")])
def test_which_way_a_curve_bends(c: float, word: str) -> None:
    assert word in remarks(law(10.0, 5.0, c, form="quadratic"))["curved"]


@pytest.mark.parametrize(
    ("tokens", "named"), [(4095, False), (4096, False), (4097, True), (16384, True), (16385, False)]
)
def test_a_limit_within_the_jump_is_named(tokens: int, named: bool) -> None:
    one = law(10.0, 1e-3, 30.0, form="knee", jump=(4096.0, 16384.0))
    found = remarks(one, limits=(Limit(tokens, "graph_max", "graph"),))["knee"]
    assert found.startswith("between 4k and 16k a step takes +30 ms at once")
    assert (f"where graph_max ({tokens}) lies" in found) is named


@pytest.mark.parametrize(
    ("lowest", "how"),
    [(0.94, "clock fell to 94%"), (0.95, "by lengths measured again"), (None, "by lengths")],
)
def test_how_a_shift_was_seen(lowest: float | None, how: str) -> None:
    at = None if lowest is None else [1.0] * 5 + [lowest]
    assert how in remarks(law(10.0, 1e-3, 0.6, shifted=True), at=at)["shift"]


@pytest.mark.parametrize(
    ("b", "reach", "form", "unclear"),
    [
        (0.0, 0.0, "linear", True),
        (1e-3, 1.01e-3, "linear", True),
        (1e-3, 0.99e-3, "linear", False),
        (-1e-3, 1.01e-3, "linear", True),
        (-1e-3, 0.99e-3, "linear", False),
        (0.0, 0.0, "flat", False),
    ],
)
def test_a_slope_that_may_be_none(b: float, reach: float, form: str, unclear: bool) -> None:
    found = remarks(law(10.0, b, form=form, variance=(reach / 2.776445) ** 2))
    assert ("unclear" in found) is unclear


@pytest.mark.parametrize(
    ("signs", "places", "patterned"),
    [
        ("+++++-----", 5, True),  # 2 of 252 orders
        ("+++++----", 5, False),  # 2 of 126
        ("+++++-----", 4, False),
        ("+-+-+-+-+-", 5, False),
    ],
)
def test_a_pattern_in_what_is_left(signs: str, places: int, patterned: bool) -> None:
    contexts = [float(1024 * (1 + at * places // len(signs))) for at in range(len(signs))]
    one = law(10.0, 1e-3, residuals=[1.0 if sign == "+" else -1.0 for sign in signs])
    found = dict(told.remarks(one, seen([10.0] * len(signs), contexts), sorted(set(contexts)), ()))
    assert len(set(contexts)) == places
    assert ("patterned" in found) is patterned


# --- the whole -----------------------------------------------------------------------------------------------


def test_two_lengths_are_the_least() -> None:
    assert steplaw.fit([point(1024), point(4096)]) is not None
    assert steplaw.fit([point(1024), point(1024, purpose="step-time again")]) is None


def test_a_jump_is_told_with_its_places_and_by_no_square() -> None:
    found = fitted([point(c, 10 + 1e-3 * c + (30 if c > 8192 else 0), 0.01) for c in LADDER])
    assert (found.form, found.knee_after, found.knee_before, found.c) == ("knee", 4096.0, 16384.0, None)
    assert found.knee is not None
    assert found.knee.value == pytest.approx(30.0)
    assert (found.a.value, found.b.value) == pytest.approx((10.0, 1e-3))


def test_a_curve_is_told_with_its_square_and_no_jump() -> None:
    found = fitted([point(c, 10 + 1e-3 * c + 1e-7 * c * c, 0.01) for c in LADDER])
    assert (found.form, found.knee, found.knee_after, found.knee_before) == ("quadratic", None, None, None)
    assert found.c is not None
    assert found.c.value == pytest.approx(1e-7)
    assert found.curvature == found.c


def test_each_length_is_told_as_measured_first() -> None:
    late = [point(c, 10.2, 0.1, purpose="step-time again") for c in (1024, 131072)]
    found = fitted([*late, *(point(c, 10.0, 0.1) for c in LADDER)])
    assert (found.form, found.points, found.steps) == ("flat", 8, 8 * 64)
    assert found.step_ms == (10.0,) * 6
    assert found.contexts == tuple(map(float, LADDER))
    assert found.exponents == (0.0,) * 5
    assert found.weighted


def test_facts_of_a_purpose_and_its_repetitions_make_its_law() -> None:
    facts = (
        *(point(c, 10.0, 0.05, purpose="plain") for c in LADDER),
        *(point(c, 15.0, 0.05, purpose="plain again") for c in (1024, 131072)),
        *(point(c, 99.0, 0.05) for c in LADDER),
        *(request(c, "plain") for c in LADDER),
        *(request(c, "plain again") for c in (1024, 131072)),
    )
    found = steplaw.of_facts(facts, "plain")
    assert found is not None
    assert (found.purpose, found.points) == ("plain", 8)
    assert found.shift is not None
    assert found.shift.value == pytest.approx(1.5)
    assert found.remark("shift_unplaced") == ""


def test_of_all_facts_the_ladders_own_windows_tell_the_clock() -> None:
    """Half the clock from 32k on, by the windows of these points; those of others say another thing."""
    own = [window(c, 2000.0 if c < 20_000 else 1000.0) for c in LADDER]
    others = [window(c, 1000.0 if c < 20_000 else 2000.0, purpose="plain") for c in LADDER]
    points = [point(c, (10 + 1e-3 * c) * (1 if c < 20_000 else 2), 0.01) for c in LADDER]
    found = steplaw.of_facts([ModelConfig(role="target", path="config.json"), *others, *points, *own])
    assert found is not None
    assert found.shift is not None
    assert found.shift.value == pytest.approx(2.0)
    assert (found.a.value, found.b.value) == pytest.approx((10.0, 1e-3))
    without = steplaw.of_facts([*others, *points])
    assert without is not None
    assert without.shift is None


def test_a_constant_part_is_that_of_the_law() -> None:
    found = fitted([point(c, 10 + 1e-3 * c, 0.01) for c in LADDER])
    assert (found.a.value, found.b.value) == pytest.approx((10.0, 1e-3))
    assert found.a.low is not None
    assert found.a.low < 10.0 < (found.a.high or 0.0) < 10.1


def test_a_law_is_named_after_its_ladder_and_not_after_what_repeats_it() -> None:
    found = fitted([point(4096, 20.0, purpose="step-time again"), point(1024)])
    assert (found.purpose, found.contexts) == ("step-time", (1024.0, 4096.0))
