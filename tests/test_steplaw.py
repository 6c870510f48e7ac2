"""Laws with known numbers are recovered from noisy medians; what is no law, or one of two regimes, is said."""

from __future__ import annotations

import functools
import math
import random
import statistics as plain
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from ddprobe import fitting, statistics, steplaw
from ddprobe.facts import CommitPoint, CommitRequest, Estimate, GpuWindow, Limit, StepFit

LADDER = (1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072)
TWICE = (1024, 16384, 131072)
STEPS = 64
SEEDS = range(100)
Law = Callable[[float], float]


def point(context: int, ms: float, *, purpose: str = "step-time", spread: float | None = None) -> CommitPoint:
    low, high = (None, None) if spread is None else (ms - 1.96 * spread, ms + 1.96 * spread)
    return CommitPoint(
        arm="repeat", context_tokens=context, purpose=purpose, step_ms=ms, step_ms_from=low, step_ms_to=high,
        timed_steps=STEPS, timed_context=float(context),
    )  # fmt: skip


def measured(
    law: Law, seed: int, *, noise: float = 0.03, drop: float = 1.0
) -> tuple[list[CommitPoint], list[CommitRequest]]:
    """Medians of 64 noisy steps a length, lengths shuffled, three of them again; from some moment on `drop` times as long."""
    draw = random.Random(seed)
    order = list(LADDER)
    draw.shuffle(order)
    places = [("step-time", c) for c in order] + [("step-time again", c) for c in order if c in TWICE]
    falls = draw.randrange(2, len(places) - 3) if drop != 1 else len(places)
    points, requests = [], []
    for number, (purpose, context) in enumerate(places):
        factor = drop if number >= falls else 1.0
        steps = [law(context) * factor * (1 + draw.gauss(0, noise)) for _ in range(STEPS)]
        low, high = statistics.median_interval(steps) or (0.0, 0.0)
        found = point(context, plain.median(steps), purpose=purpose)
        points.append(replace(found, step_ms_from=low, step_ms_to=high))
        requests.append(
            CommitRequest(key=f"q{number}", purpose=purpose, arm="repeat", context_tokens=context, prompt=0)
        )
    return points, requests


def textbook(law: Law, columns: Sequence[Law], noise: float, drop: bool) -> list[float]:
    """Full widths of 95 % intervals for medians of that many steps, their errors known: 1.2533 σ / √n, and Student's t."""
    places = [*LADDER, *TWICE]
    errors = [1.2533 * noise * law(c) / math.sqrt(STEPS) for c in places]
    fit = fitting.least_squares(
        [[column(c) for c in places] for column in columns], [law(c) for c in places], errors
    )
    assert fit is not None
    reach = fitting.student_quantile(0.975, fit.dof - drop)
    return [2 * reach * math.sqrt(fit.covariance[i][i]) for i in range(len(columns))]


ONE, X, SQUARE = (lambda _: 1.0), (lambda x: x), (lambda x: x * x)
KNEE = 12_000
LAWS: dict[str, tuple[Law, tuple[Law, ...], str, dict[str, float], float, float]] = {
    # law, its columns, form, what must be found, noise, drop
    "linear": (lambda x: 10 + 2e-3 * x, (ONE, X), "linear", {"a": 10, "b": 2e-3}, 0.03, 1.0),
    "noise": (lambda x: 10 + 2e-3 * x, (ONE, X), "linear", {"a": 10, "b": 2e-3}, 0.15, 1.0),
    "quadratic": (
        lambda x: 10 + 2e-3 * x + 3e-8 * x * x, (ONE, X, SQUARE), "quadratic", {"a": 10, "b": 2e-3, "c": 3e-8}, 0.03, 1.0,
    ),
    "knee": (
        lambda x: 10 + 5e-4 * x + 30 * (x >= KNEE), (ONE, X, lambda x: float(x >= KNEE)), "knee",
        {"a": 10, "b": 5e-4, "knee": 30}, 0.03, 1.0,
    ),
    "flat": (lambda _: 10.0, (ONE, X), "flat", {"a": 10, "b": 0.0}, 0.03, 1.0),
    "clock drop": (lambda x: 10 + 2e-3 * x, (ONE, X), "linear", {"a": 10, "b": 2e-3, "shift": 1.6}, 0.03, 1.6),
    "clock drop, quadratic": (
        lambda x: 10 + 2e-3 * x + 3e-8 * x * x, (ONE, X, SQUARE), "quadratic",
        {"a": 10, "b": 2e-3, "c": 3e-8, "shift": 2.0}, 0.03, 2.0,
    ),
    "clock drop, flat": (lambda _: 10.0, (ONE, X), "flat", {"a": 10, "b": 0.0, "shift": 1.6}, 0.03, 1.6),
}  # fmt: skip


@functools.cache
def fits(name: str) -> tuple[StepFit, ...]:
    law, _, _, _, noise, drop = LAWS[name]
    found = []
    for seed in SEEDS:
        points, requests = measured(law, seed, noise=noise, drop=drop)
        fit = steplaw.fit(points, requests=requests)
        assert fit is not None
        found.append(fit)
    return tuple(found)


@pytest.mark.parametrize("name", LAWS)
def test_the_form_is_found(name: str) -> None:
    """A curve or a jump is taken at 1 in 100, so of 100 straight laws a few may be called one."""
    form, drop = LAWS[name][2], LAWS[name][5]
    assert sum(fit.form == form for fit in fits(name)) >= 95
    assert sum((fit.shift is not None) == (drop != 1) for fit in fits(name)) >= 97


@pytest.mark.parametrize("name", LAWS)
def test_intervals_hold_the_truth(name: str) -> None:
    for parameter, truth in LAWS[name][3].items():
        held = 0
        for fit in fits(name):
            estimate = getattr(fit, parameter)
            if isinstance(estimate, Estimate) and estimate.low is not None and estimate.high is not None:
                held += estimate.low <= truth <= estimate.high
        assert held >= 89, f"{parameter}: {held} of 100"


@pytest.mark.parametrize("name", LAWS)
def test_intervals_are_no_wider_than_the_sample_justifies(name: str) -> None:
    """On average below twice the textbook's, which knows every error beforehand."""
    law, columns, form, truths, noise, drop = LAWS[name]
    widths = textbook(law, columns, noise, drop != 1)
    # A shift is one coefficient more to tell from the others: what it costs is no fault of the intervals.
    room = 2.0 if drop == 1 else 3.0
    for parameter, width in zip([p for p in truths if p != "shift"], widths, strict=True):
        found = [getattr(fit, parameter) for fit in fits(name) if fit.form == form]
        mean = plain.mean(estimate.high - estimate.low for estimate in found)
        assert width / 3 < mean < room * width, f"{parameter}: {mean} beside {width}"


def test_the_knee_is_placed_between_its_neighbours() -> None:
    assert all((fit.knee_after, fit.knee_before) == (8192, 16384) for fit in fits("knee"))


# --- exact laws ---------------------------------------------------------------------------------------------


def ladder(law: Law, contexts: Sequence[int] = LADDER, spread: float | None = None) -> list[CommitPoint]:
    return [point(c, law(c), spread=spread) for c in contexts]


def fitted(points: Sequence[CommitPoint], **other: object) -> StepFit:
    fit = steplaw.fit(points, **other)  # type: ignore[arg-type]
    assert fit is not None
    return fit


def test_points_of_others_without_intervals_are_fitted_by_their_scatter() -> None:
    fit = fitted(ladder(lambda x: 8 + 1e-3 * x + (0.1 if x in (1024, 16384) else -0.1)))
    assert not fit.weighted
    assert fit.form == "linear"
    assert fit.b.value == pytest.approx(1e-3, rel=0.01)
    assert fit.a.low is not None
    assert fit.a.low < 8 < (fit.a.high or 0)
    assert fit.points == 8
    assert fit.steps == 8 * STEPS
    assert fit.r_squared == pytest.approx(1.0, abs=1e-4)


def test_one_length_is_no_law() -> None:
    assert steplaw.fit([point(1024, 8.0), point(1024, 8.1, purpose="step-time again")]) is None
    assert steplaw.fit([]) is None
    assert steplaw.fit([replace(point(1024, 8.0), step_ms=None), point(2048, 8.0)]) is None


def test_two_points_are_called_what_they_are() -> None:
    """The founding numbers: 8 ms at 1.4k, 1430 ms at 185k. 1422 / 183600 = 7.745 µs; 8 − 1400 · 0.007745 = −2.84 ms."""
    fit = fitted(ladder(lambda x: {1400: 8.0, 185_000: 1430.0}[int(x)], (1400, 185_000)))
    assert fit.b.value == pytest.approx(7.745e-3, rel=1e-4)
    assert fit.a.value == pytest.approx(-2.843, abs=1e-3)
    assert fit.b.low is None
    assert "no fit" in fit.remark("two_points")
    assert "begins at -2.84 ms" in fit.remark("negative_intercept")
    # log(1430 / 8) / log(185000 / 1400)
    assert fit.exponents == pytest.approx((1.0619,), abs=1e-4)


@pytest.mark.parametrize(("count", "told"), [(3, True), (4, True), (5, False)])
def test_fewer_than_five_lengths_do_not_tell_a_line_from_a_curve(count: int, told: bool) -> None:
    fit = fitted(ladder(lambda x: 8 + 1e-3 * x, LADDER[:count], 0.01))
    assert bool(fit.remark("few_contexts")) is told


@pytest.mark.parametrize(("growth", "form"), [(1.05, "flat"), (1.06, "linear")])
def test_growth_of_a_twentieth_is_flat(growth: float, form: str) -> None:
    top = LADDER[-1] - LADDER[0]
    fit = fitted(ladder(lambda x: 10 + 10 * (growth - 1) * (x - LADDER[0]) / top, spread=1e-3))
    assert fit.form == form


def test_a_sample_too_noisy_to_exclude_growth_is_not_called_flat() -> None:
    wild = {1024: 6.0, 4096: 15.0, 16384: 7.0, 65536: 16.0, 131072: 9.0}
    fit = fitted(ladder(lambda x: wild[int(x)], tuple(wild)))
    assert fit.form == "linear"
    assert "neither shows growth nor excludes it" in fit.remark("unclear")


def test_a_curve_is_called_one() -> None:
    fit = fitted(ladder(lambda x: 5 + 1e-3 * x + 2e-8 * x * x, spread=0.01))
    assert fit.form == "quadratic"
    assert fit.c is not None
    assert fit.c.value == pytest.approx(2e-8, rel=1e-3)
    assert fit.curvature_p is not None
    assert fit.curvature_p < 1e-6
    assert "faster" in fit.remark("curved")
    assert fit.at(100_000) == pytest.approx(5 + 100 + 200, rel=1e-3)


def test_a_straight_line_says_how_little_it_bends() -> None:
    fit = fitted(ladder(lambda x: 5 + 1e-3 * x, spread=0.05))
    assert fit.c is None
    assert fit.curvature is not None
    assert fit.curvature.low is not None
    assert fit.curvature.low < 0 < (fit.curvature.high or 0)
    assert fit.curvature_p is not None
    assert fit.curvature_p > 0.5
    assert fit.remarks == ()


def test_a_knee_names_the_limit_that_lies_in_it() -> None:
    limits = (
        Limit(8192, "chunked_prefill_size", "chunk_boundary"),
        Limit(9000, "cuda_graph_max_len", "graph"),
    )
    fit = fitted(ladder(lambda x: 10 + 5e-4 * x + 30 * (x > 8192), spread=0.05), limits=limits)
    assert fit.form == "knee"
    assert fit.knee is not None
    assert fit.knee.value == pytest.approx(30.0)
    said = fit.remark("knee")
    assert "+30 ms at once" in said
    assert "cuda_graph_max_len (9000)" in said
    assert "chunked_prefill_size" not in said
    assert fit.at(4096) == pytest.approx(12.048)
    assert fit.at(65536) == pytest.approx(10 + 32.768 + 30)


def test_residuals_that_follow_the_context_are_told() -> None:
    """A dent in the middle, too round for a jump and too high at the ends for a curve alone."""
    xs = tuple(range(1000, 17000, 1000))
    fit = fitted(ladder(lambda x: 10 + 1e-3 * x + math.sin(x / 16000 * 2 * math.pi), xs, 0.02))
    assert fit.runs_p is not None
    assert fit.runs_p < 0.01
    assert fit.remark("patterned")


# --- time ---------------------------------------------------------------------------------------------------


def test_a_shift_without_an_order_leaves_the_repetitions_out() -> None:
    points = ladder(lambda x: 10 + 2e-3 * x, spread=0.05)
    late = [point(c, 1.5 * (10 + 2e-3 * c), purpose="step-time again", spread=0.05) for c in TWICE]
    fit = fitted(points + late)
    assert fit.shift is not None
    assert fit.shift.value == pytest.approx(1.5, rel=0.01)
    assert "nothing tells which" in fit.remark("shift_unplaced")
    assert fit.points == 8
    assert fit.b.value == pytest.approx(2e-3, rel=1e-3)


@pytest.mark.parametrize(("factor", "shifted"), [(1.02, False), (1.10, True)])
def test_a_repetition_within_three_percent_is_no_shift(factor: float, shifted: bool) -> None:
    points = ladder(lambda x: 10 + 2e-3 * x, spread=0.01)
    late = [point(c, factor * (10 + 2e-3 * c), purpose="step-time again", spread=0.01) for c in TWICE]
    assert (fitted(points + late).shift is not None) is shifted


def test_a_short_step_that_moved_by_next_to_nothing_is_no_shift() -> None:
    """The shortest takes half as long again, which is a hundredth of the longest: a busy laptop, and no clock."""
    points = ladder(lambda x: 2 + 2e-3 * x, spread=0.02)
    late = [
        point(c, 2 + 2e-3 * c + (2.5 if c == 1024 else 0), purpose="step-time again", spread=0.02)
        for c in TWICE
    ]
    fit = fitted(points + late)
    assert fit.shift is None
    assert fit.b.value == pytest.approx(2e-3, rel=0.01)


def windows(clocks: dict[int, float]) -> list[GpuWindow]:
    return [
        GpuWindow(index=0, purpose="step-time", arm="repeat", context_tokens=c, samples=5, sm_clock_mhz=mhz)
        for c, mhz in clocks.items()
    ]


def test_clocks_take_the_place_of_an_order() -> None:
    """The four longest lengths at half the clock: by context alone that is a knee and twice the slope."""
    clocks = {c: 2400.0 if c < 16384 else 1200.0 for c in LADDER}
    points = [point(c, (10 + 2e-3 * c) * 2400 / clocks[c], spread=0.05) for c in LADDER]
    without, beside = fitted(points), fitted(points, windows=windows(clocks))
    assert without.b.value > 3e-3
    assert beside.form == "linear"
    assert beside.a.value == pytest.approx(10.0, rel=1e-3)
    assert beside.b.value == pytest.approx(2e-3, rel=1e-3)
    assert beside.shift is not None
    assert beside.shift.value == pytest.approx(2.0, rel=1e-3)
    assert "clock fell to 50%" in beside.remark("shift")


def test_the_clock_of_an_idle_card_is_none_that_steps_were_made_at() -> None:
    """Short contexts were over between two samples, which then show the clock that a card rests at."""
    points = ladder(lambda x: 10 + 2e-3 * x, spread=0.05)
    seen = [
        replace(w, utilization_high=0.0, sm_clock_mhz=345.0) if at < 3 else replace(w, utilization_high=100.0)
        for at, w in enumerate(windows(dict.fromkeys(LADDER, 2400.0)))
    ]
    fit = fitted(points, windows=seen)
    assert (fit.form, fit.shift) == ("linear", None)
    assert fit.b.value == pytest.approx(2e-3, rel=1e-3)


def test_a_lower_clock_makes_nothing_faster() -> None:
    clocks = {c: 1200.0 if c < 4096 else 2400.0 for c in LADDER}
    points = [point(c, (10 + 2e-3 * c) * (0.5 if c < 4096 else 1), spread=0.05) for c in LADDER]
    shift = fitted(points, windows=windows(clocks)).shift
    assert shift is None or shift.value > 1


def test_clocks_that_stay_within_a_twentieth_say_nothing() -> None:
    clocks = {c: 2400.0 - 10 * i for i, c in enumerate(LADDER)}
    fit = fitted(ladder(lambda x: 10 + 2e-3 * x, spread=0.05), windows=windows(clocks))
    assert fit.shift is None


def test_a_clock_that_is_not_known_everywhere_is_not_used() -> None:
    clocks = {c: 2400.0 if c < 16384 else 1200.0 for c in LADDER[1:]}
    fit = fitted(ladder(lambda x: 10 + 2e-3 * x, spread=0.05), windows=windows(clocks))
    assert fit.shift is None


# --- which points -------------------------------------------------------------------------------------------


def test_one_server_and_one_text_make_a_law() -> None:
    mine = [replace(point(c, 10 + 1e-3 * c), base="http://a") for c in LADDER]
    others = [replace(point(c, 99.0), base="http://b") for c in LADDER[:5]]
    prose = [replace(point(c, 77.0), base="http://a", arm="prose") for c in LADDER[:4]]
    fit = fitted([*others, *prose, *mine])
    assert (fit.base, fit.arm, fit.points) == ("http://a", "repeat", 8)


def test_of_facts_takes_one_purpose() -> None:
    mine = ladder(lambda x: 10 + 1e-3 * x)
    without = [replace(p, purpose="plain", step_ms=5.0) for p in mine]
    law, flat = steplaw.of_facts([*mine, *without]), steplaw.of_facts([*mine, *without], "plain")
    assert law is not None
    assert flat is not None
    assert (law.form, law.purpose) == ("linear", "step-time")
    assert (flat.form, flat.purpose) == ("flat", "plain")
    assert steplaw.of_facts(mine, "plain") is None


@pytest.mark.parametrize("ms", [float("nan"), float("inf"), -5.0, 0.0, 1e308, 1e300, 1e-320, -1e300])
@pytest.mark.parametrize("places", [(4096,), (1024, 131072), LADDER], ids=["one", "the ends", "all"])
def test_a_time_that_no_clock_tells_is_left_out(ms: float, places: Sequence[int]) -> None:
    good = [point(c, 8 + c / 1000, spread=0.01) for c in LADDER if c not in places]
    found = steplaw.fit([*(point(c, ms) for c in places), *good])
    if not good:
        assert found is None
        return
    assert found is not None
    assert found.contexts == tuple(float(p.context_tokens) for p in good)
    assert (found.a.value, found.b.value) == pytest.approx((8.0, 0.001))


@pytest.mark.parametrize("context", [-4096, 0, 10**30])
def test_a_length_that_no_prompt_has_is_left_out(context: int) -> None:
    found = steplaw.fit([point(context, 8.0), *ladder(lambda c: 8 + c / 1000)])
    assert found is not None
    assert found.contexts == tuple(map(float, LADDER))


@pytest.mark.parametrize(
    ("low", "high"), [(9.0, 1.0), (float("nan"), float("nan")), (0.0, float("inf")), (-1.0, 20.0)]
)
def test_an_interval_that_is_none_counts_as_unknown(low: float, high: float) -> None:
    points = [replace(p, step_ms_from=low, step_ms_to=high) for p in ladder(lambda c: 8 + c / 1000)]
    found = steplaw.fit(points)
    assert found is not None
    assert not found.weighted
    assert found.form == "linear"
    assert found.b.value == pytest.approx(0.001)


@pytest.mark.parametrize("mhz", [0.0, -5.0, float("nan"), float("inf")])
def test_a_clock_that_no_card_has_is_not_used(mhz: float) -> None:
    clocks = dict.fromkeys(LADDER, 2000.0)
    found = steplaw.fit(ladder(lambda c: 8 + c / 1000), windows=windows({**clocks, LADDER[-1]: mhz}))
    assert found is not None
    assert (found.form, found.shift) == ("linear", None)
