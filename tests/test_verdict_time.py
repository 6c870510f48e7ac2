"""Verdicts on time at their limits: how a step grows, what reading the cache takes, what speculation costs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ddprobe.facts import CommitPoint, ModelConfig, ServerArgs
from ddprobe.model import Fact, Outcome
from ddprobe.verdicts import attention_kernel_bottleneck, gpu_state, growth, spec_net_loss
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.growth import Growth, Roofline
from tests.test_verdicts import (
    EASY,
    FAR,
    FINE,
    LONG,
    MIDDLE,
    NEAR,
    SERVER,
    SHORT,
    check,
    facts,
    judged,
    lint,
    only,
    point,
    setup,
)

TARGET = ModelConfig(
    role="target", path="/t", num_hidden_layers=32, num_key_value_heads=8, num_attention_heads=32, head_dim=128, dtype="bfloat16"
)  # fmt: skip
"""131072 bytes of keys and values a token: 0.131 µs at 1000 GB/s."""


def clock(point: CommitPoint, ms: float, spread: float = 0.01, steps: int = 90) -> CommitPoint:
    return replace(
        point, step_ms=ms, step_ms_low=ms * (1 - spread), step_ms_high=ms * (1 + spread), timed_steps=steps
    )


def steps(
    *times: float, arm: str = "repeat", lengths: tuple[int, ...] = (SHORT, MIDDLE, LONG), **other: Any
) -> tuple[CommitPoint, ...]:
    return tuple(
        replace(clock(point(arm, length, 7.9), ms), **other)
        for length, ms in zip(lengths, times, strict=False)
    )  # fmt: skip


def args(**values: Any) -> ServerArgs:
    return ServerArgs(engine="sglang", origin="command line", values=tuple(values.items()))


# --- the line ---------------------------------------------------------------------------------------------


def grown(*pairs: tuple[int, float]) -> Growth:
    """Steps of these lengths and times."""
    points = tuple(
        clock(replace(point("repeat", length, 7.9), prompt_tokens=None), ms) for length, ms in pairs
    )
    return Growth(points, None, ())


def test_a_curve_is_no_straight_line() -> None:
    """1, 2 and 4 ms over 1, 2 and 3 tokens: least squares give 1.5 x - 2/3, and 1/6 of 14/3 stays unexplained."""
    line = grown((1, 1.0), (2, 2.0), (3, 4.0)).line
    assert line.slope == pytest.approx(1.5)
    assert line.intercept == pytest.approx(-2 / 3)
    assert line.r_squared == pytest.approx(1 - (1 / 6) / (14 / 3))


def test_times_that_do_not_move_lie_on_no_line() -> None:
    """R² of a constant is not defined; it explains nothing."""
    line = grown((1000, 5.0), (2000, 5.0), (3000, 5.0)).line
    assert (line.slope, line.intercept, line.r_squared) == (0.0, 5.0, 0.0)


def test_one_length_measured_twice_has_no_slope() -> None:
    line = grown((1000, 4.0), (1000, 6.0)).line
    assert (line.slope, line.intercept, line.r_squared) == (0.0, 5.0, 0.0)


def test_a_line_goes_over_the_tokens_that_were_sent() -> None:
    """The prompt as the server counted it, not the length that was asked for."""
    points = tuple(
        clock(replace(point("repeat", asked, 7.9), prompt_tokens=sent), ms)
        for asked, sent, ms in ((1000, 500, 5.0), (2000, 1500, 15.0))
    )
    assert Growth(points, None, ()).line.slope == pytest.approx(0.01)
    assert Growth(points, None, ()).line.intercept == pytest.approx(0.0)


@pytest.mark.parametrize(
    ("slope", "told"),
    [
        (0.002, "accounts for 50% of that growth"), (0.001, "accounts for 100%"), (0.0005, "accounts for 100%"), (0.0, ""), (-0.001, ""),
    ],
)  # fmt: skip
def test_reading_the_cache_explains_all_of_it_at_most(slope: float, told: str) -> None:
    """1 MB a token at 1000 GB/s is 1 µs a token. Times that do not grow need no explanation."""
    line = tuple((n, 10 + slope * n) for n in (1000, 2000, 3000))
    found = replace(grown(*line), roofline=Roofline(1e6, 1000.0, True))
    assert told in found.explained
    assert bool(found.explained) == bool(told)


def test_a_bandwidth_that_is_guessed_bounds_what_memory_explains() -> None:
    """The slowest card needs the most time: this one's reading explains no more than that."""
    line = tuple((n, 10 + 0.002 * n) for n in (1000, 2000, 3000))
    assert "up to 50%" in replace(grown(*line), roofline=Roofline(1e6, 1000.0, False)).explained
    assert grown(*line).explained == ""


@pytest.mark.parametrize(("slope", "beyond"), [(0.625, True), (0.624, False)])
def test_five_times_the_roofline_is_beyond_memory(slope: float, beyond: bool) -> None:
    """125 MB a token at 1000 GB/s are 0.125 ms."""
    line = grown(*((n, 16 + slope * n) for n in (1024, 2048, 3072, 4096)))
    found = replace(line, roofline=Roofline(1.25e8, 1000.0, True))
    assert found.beyond_memory is beyond
    assert not line.beyond_memory


# --- which points -----------------------------------------------------------------------------------------


def timed(*points: CommitPoint) -> list[tuple[str, int]]:
    return [(p.arm, p.context_tokens) for p in growth.timed(Case(points))]


def test_the_text_at_most_lengths_is_timed() -> None:
    two, three = steps(8.0, 9.0), steps(8.0, 9.0, 10.0, arm="prose")
    assert timed(*two, *three) == [("prose", SHORT), ("prose", MIDDLE), ("prose", LONG)]


def test_repeated_text_is_timed_rather_than_another_at_as_many_lengths() -> None:
    assert timed(*steps(8.0, 9.0, arm="code"), *steps(8.0, 9.0, arm="repeat-wide"))[0][0] == "repeat-wide"
    assert timed(*steps(8.0, 9.0, arm="prose"), *steps(8.0, 9.0, arm="code"))[0][0] == "code"


def test_what_has_no_length_or_no_time_is_not_timed() -> None:
    whole = steps(8.0, 9.0, 10.0)
    verbatim = clock(point("repeat", 0, 7.9), 8.0)
    untimed = replace(point("repeat", 4096, 7.9), timed_steps=90)
    assert timed(*reversed(whole), verbatim, untimed) == [("repeat", n) for n in (SHORT, MIDDLE, LONG)]


@pytest.mark.parametrize(
    ("short", "long", "apart"),
    [
        pytest.param((7.9, 8.1), (9.9, 10.1), True, id="the bulk is apart"),
        pytest.param((7.9, 9.9), (9.9, 10.1), False, id="the bulk touches"),
        pytest.param((None, None), (10.1, 10.3), True, id="a pace grew by more than a quarter"),
        pytest.param((None, None), (10.0, 10.3), False, id="a pace grew by a quarter"),
        pytest.param((7.9, 8.1), (None, None), True, id="the later one is a pace: 11 / 1.25 is 8.8"),
        pytest.param((7.9, 8.8), (None, None), False, id="that meets what was before"),
    ],
)
def test_steps_that_take_longer_are_apart_from_those_before(
    short: tuple[float | None, ...], long: tuple[float | None, ...], apart: bool
) -> None:
    first = replace(clock(point("repeat", SHORT, 7.9), 8.0), step_ms_low=short[0], step_ms_high=short[1])
    last = replace(clock(point("repeat", LONG, 7.9), 11.0), step_ms_low=long[0], step_ms_high=long[1])
    assert (growth.growth(Case((first, last))) is not None) is apart


def test_one_length_does_not_grow() -> None:
    assert growth.growth(Case(steps(8.0))) is None


@pytest.mark.parametrize(("shortest", "longest", "lengths"), [
    (1024, 131072, [1024, 3328, 11520, 38912, 131072]), (100, 200, [100, 200, 256]), (1, 200, [1, 200]), (25600, 409600, [25600, 51200, 102400, 204800, 409600]),
])  # fmt: skip
def test_five_lengths_lie_the_same_factor_apart(shortest: int, longest: int, lengths: list[int]) -> None:
    """In whole 256 tokens: 1024 × 128^(1/4) is 3444, half way 11585, three quarters 38968. None of them is 0."""
    assert growth.five(shortest, longest) == lengths


# --- what is missing --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("known", "bandwidth", "missing"),
    [
        pytest.param((TARGET,), 1000.0, [], id="all is known"),
        pytest.param((TARGET,), None, ["the GPU's bandwidth"], id="no bandwidth"),
        pytest.param((), 1000.0, ["the target's config.json"], id="no configuration"),
        pytest.param((replace(TARGET, num_hidden_layers=None),), 1000.0, ["the target's config.json"], id="no layers"),
        pytest.param((), None, ["the target's config.json", "the GPU's bandwidth"], id="neither"),
        pytest.param((args(device="cpu"),), None, [], id="a CPU has neither"),
        pytest.param((args(device="cuda"),), None, ["the target's config.json", "the GPU's bandwidth"], id="a GPU"),
    ],
)  # fmt: skip
def test_what_it_takes_to_judge_growth(
    known: tuple[Fact, ...], bandwidth: float | None, missing: list[str]
) -> None:
    found = growth.growth(Case((*steps(8.0, 16.0, 64.0), *known), gpu_bandwidth=bandwidth))
    assert found is not None
    assert [text.split(" (")[0] for text in found.missing] == missing


@pytest.mark.parametrize(
    ("version", "gpu"), [("0.5.23+cpu", False), ("1.0-cpu", False), ("0.5.23", True), ("0.5.23+cpux", True)]
)
def test_a_build_for_the_cpu_reads_no_gpu_memory(version: str, gpu: bool) -> None:
    case = Case((setup((), version=version), replace(TARGET, server=SERVER)))
    assert (growth.roofline(case) is not None) is gpu


@pytest.mark.parametrize(
    ("bandwidth", "taken", "known"), [(None, 864.0, False), (0.0, 864.0, False), (1792.0, 1792.0, True)]
)
def test_without_the_cards_own_bandwidth_the_slowest_is_taken(
    bandwidth: float | None, taken: float, known: bool
) -> None:
    found = growth.roofline(Case((TARGET,), gpu_bandwidth=bandwidth))
    assert found == Roofline(131072.0, taken, known)


# --- bytes of the cache -----------------------------------------------------------------------------------

MLA = replace(TARGET, kv_lora_rank=512, qk_rope_head_dim=64)


@pytest.mark.parametrize(
    ("config", "values", "size"),
    [
        pytest.param(TARGET, {}, 131072.0, id="32 layers × 8 heads × 128 × 2 × 2 bytes"),
        pytest.param(TARGET, {"tp_size": 4}, 32768.0, id="two heads on each of four ranks"),
        pytest.param(TARGET, {"tp_size": 16}, 16384.0, id="a rank holds a whole head at least"),
        pytest.param(TARGET, {"tp_size": 1}, 131072.0, id="one rank"),
        pytest.param(TARGET, {"tp_size": 0}, 131072.0, id="no rank is none"),
        pytest.param(TARGET, {"tp_size": -2}, 131072.0, id="nor is a negative one"),
        pytest.param(TARGET, {"tp_size": True}, 131072.0, id="nor a switch"),
        pytest.param(TARGET, {"tp_size": "4"}, 131072.0, id="nor a text"),
        pytest.param(TARGET, {"kv_cache_dtype": "fp8_e4m3"}, 65536.0, id="fp8"),
        pytest.param(TARGET, {"kv_cache_dtype": "FP8_E5M2"}, 65536.0, id="in capitals"),
        pytest.param(TARGET, {"kv_cache_dtype": "int8"}, 65536.0, id="int8"),
        pytest.param(TARGET, {"kv_cache_dtype": "float32"}, 262144.0, id="float32"),
        pytest.param(TARGET, {"kv_cache_dtype": "fp32"}, 262144.0, id="fp32"),
        pytest.param(TARGET, {"kv_cache_dtype": "bf16"}, 131072.0, id="bf16"),
        pytest.param(TARGET, {"kv_cache_dtype": "bfloat16"}, 131072.0, id="bfloat16"),
        pytest.param(TARGET, {"kv_cache_dtype": "fp16"}, 131072.0, id="fp16"),
        pytest.param(TARGET, {"kv_cache_dtype": "float16"}, 131072.0, id="float16"),
        pytest.param(TARGET, {"kv_cache_dtype": "half"}, 131072.0, id="half"),
        pytest.param(TARGET, {"kv_cache_dtype": "auto"}, 131072.0, id="auto is the model's own"),
        pytest.param(TARGET, {"kv_cache_dtype": ""}, 131072.0, id="so is nothing"),
        pytest.param(TARGET, {"kv_cache_dtype": "nvfp4"}, 36864.0, id="nvfp4: 4 bits and a byte of scale for 16"),
        pytest.param(TARGET, {"kv_cache_dtype": "mystery"}, None, id="a type that is not known"),
        pytest.param(replace(TARGET, dtype="torch.float32"), {}, 262144.0, id="as PyTorch calls it"),
        pytest.param(replace(TARGET, dtype="Float16"), {}, 131072.0, id="dtype in capitals"),
        pytest.param(replace(TARGET, dtype="mystery"), {}, None, id="dtype that is not known"),
        pytest.param(replace(TARGET, dtype=""), {}, 131072.0, id="two bytes where nothing is said"),
        pytest.param(MLA, {}, 36864.0, id="MLA: 32 × (512 + 64) × 2"),
        pytest.param(MLA, {"tp_size": 8}, 36864.0, id="each rank reads the whole latent"),
        pytest.param(replace(MLA, qk_rope_head_dim=None), {}, 32768.0, id="a latent without a rotated part"),
        pytest.param(replace(TARGET, head_dim=None, hidden_size=8192), {}, 262144.0, id="8192 / 32 heads are 256"),
        pytest.param(replace(TARGET, head_dim=None), {}, None, id="neither head nor hidden size"),
        pytest.param(replace(TARGET, head_dim=None, hidden_size=8192, num_attention_heads=None), {}, None, id="hidden size alone"),
        pytest.param(replace(TARGET, num_key_value_heads=None, num_attention_heads=None), {}, None, id="no heads"),
        pytest.param(replace(TARGET, layer_types=("sliding_attention",) * 32), {}, None, id="no layer that grows"),
        pytest.param(replace(TARGET, num_hidden_layers=None, layer_types=("full_attention",) * 2), {}, 8192.0, id="layers counted by type"),
    ],
)  # fmt: skip
def test_bytes_of_the_cache_that_a_gpu_reads_per_token(
    config: ModelConfig, values: dict[str, Any], size: float | None
) -> None:
    known: tuple[Fact, ...] = (config, args(**values)) if values else (config,)
    found = growth.roofline(Case(known))
    assert (found.bytes_per_token if found else None) == size


# --- the attention kernel ---------------------------------------------------------------------------------


def attended(
    *times: float,
    lengths: tuple[int, ...] = (SHORT, MIDDLE, 65536, LONG),
    controls: tuple[Fact, ...] = (),
    **other: Any,
) -> Any:
    points = steps(*times, lengths=lengths, **other)
    ruling = attention_kernel_bottleneck.judge(Case((*points, TARGET, *controls), gpu_bandwidth=1000.0))
    return None if ruling is None else ruling.verdict  # fmt: skip


def rising(*lengths: int, base: float = 20.0, slope: float = 0.01) -> tuple[float, ...]:
    return tuple(base + slope * length for length in lengths)


FIVE = (1024, 4096, 16384, 65536, 131072)


def test_a_line_needs_three_lengths_and_is_measured_by_five() -> None:
    for count, told in ((3, True), (4, True), (5, False)):
        verdict = attended(*rising(*FIVE[:count]), lengths=FIVE[:count])
        assert any("do not tell a line from a curve" in text for text in verdict.missing) is told
    assert attended(*rising(*FIVE[:2]), lengths=FIVE[:2]) is None


@pytest.mark.parametrize(
    ("times", "controls", "confidence", "below"),
    [
        pytest.param(rising(*FIVE), (check("first-again"),), "medium", False, id="a line, on a steady machine"),
        pytest.param(rising(*FIVE), (), "low", False, id="nobody looked whether it is steady"),
        pytest.param(rising(*FIVE), (check("first-again", None),), "low", False, id="it could not be told"),
        pytest.param(rising(*FIVE), (check("first-again", False),), "low", False, id="it is not"),
        pytest.param((8.0, 32.0, 128.0, 512.0), (check("first-again"),), "medium", False, id="a line from nought"),
        pytest.param((5.0, 5.0, 10.0, 20.0, 1300.0), (check("first-again"),), "low", True, id="a curve"),
        pytest.param(rising(*FIVE, base=-8.0), (check("first-again"),), "low", True, id="a line from below nought"),
        pytest.param(rising(*FIVE, base=-0.5), (check("first-again"),), "low", True, id="just below nought"),
        pytest.param((20.0, 20.0, 500.0, 520.0, 530.0), (check("first-again"),), "low", False, id="a step, no line"),
    ],
)  # fmt: skip
def test_how_sure_a_slope_is(
    times: tuple[float, ...], controls: tuple[Fact, ...], confidence: str, below: bool
) -> None:
    verdict = attended(*times, lengths=FIVE[: len(times)], controls=controls)
    assert verdict.confidence == confidence
    assert any("begins below zero" in text for text in verdict.missing) is below


def test_the_slope_is_told_in_microseconds_beside_the_cache() -> None:
    """10 µs a token against 131072 bytes at 1000 GB/s, 0.131 µs: 76 times as much, 1.3 % of the roofline."""
    (told,) = [text for text in attended(*rising(*FIVE), lengths=FIVE).reasons if "µs per token" in text]
    assert told.startswith(
        "that is 10 µs per token of context; reading 131072 bytes of KV per token takes 0.131 µs"
    )
    assert told.endswith("76 times as much, 1.3% of the roofline")


def test_a_lint_on_the_kernel_names_it() -> None:
    points = steps(*rising(*FIVE), lengths=FIVE)
    for outcome, kind in (
        (Outcome.FAIL, "serial_prefix"),
        (Outcome.WARN, "serial_prefix"),
        (Outcome.PASS, ""),
    ):
        found = attention_kernel_bottleneck.judge(Case((*points, TARGET), (lint("SA01", outcome),), 1000.0))
        assert found is not None
        assert found.verdict.kind == kind
        assert ("SA01: SA01 says so" in found.verdict.reasons) is bool(kind)
        assert found.explains == pytest.approx((20 + 1310.72) / (20 + 10.24))


# --- the machine ------------------------------------------------------------------------------------------


def twice(first: CommitPoint, again: CommitPoint, *known: Fact) -> Any:
    return gpu_state.judge(Case((first, replace(again, purpose="again"), *known)))


@pytest.mark.parametrize(
    ("ms", "kind"),
    [
        (111.0, "slower"),
        (110.0, None),
        (109.0, None),
        (100.0, None),
        (91.0, None),
        (90.0, None),
        (89.0, "faster"),
    ],
)
def test_a_machine_has_changed_by_more_than_a_tenth(ms: float, kind: str | None) -> None:
    found = twice(clock(EASY[0], 100.0, 0.001), clock(EASY[0], ms, 0.001))
    assert (found.verdict.kind if found else None) == kind
    if found:
        assert found.explains == pytest.approx(max(ms / 100, 100 / ms))


@pytest.mark.parametrize(
    ("first", "again", "changed"),
    [
        ((95.0, 105.0), (118.0, 122.0), True), ((95.0, 118.0), (118.0, 122.0), False), ((95.0, 117.9), (118.0, 122.0), True),
        ((None, 105.0), (118.0, 122.0), False), ((95.0, None), (118.0, 122.0), False), ((95.0, 105.0), (None, 122.0), False),
        ((95.0, 105.0), (118.0, None), False),
    ],
)  # fmt: skip
def test_the_bulk_of_the_steps_must_have_moved(
    first: tuple[float | None, float | None], again: tuple[float | None, float | None], changed: bool
) -> None:
    low, high = clock(EASY[0], 100.0), clock(EASY[0], 120.0)
    low = replace(low, step_ms_low=first[0], step_ms_high=first[1])
    high = replace(high, step_ms_low=again[0], step_ms_high=again[1])
    assert (twice(low, high) is not None) is changed
    assert (twice(high, low) is not None) is changed


@pytest.mark.parametrize(("before", "after", "counts"), [(32, 32, True), (31, 90, False), (90, 31, False)])
def test_both_step_times_need_32_steps(before: int, after: int, counts: bool) -> None:
    found = twice(clock(EASY[0], 100.0, steps=before), clock(EASY[0], 150.0, steps=after))
    assert (found is not None) is counts


def test_a_step_time_that_is_not_known_did_not_change() -> None:
    whole, none = clock(EASY[0], 100.0), EASY[0]
    assert twice(whole, none) is twice(none, whole) is twice(clock(EASY[0], 0.0), whole) is None
    assert gpu_state.judge(Case((whole,))) is None
    assert twice(clock(EASY[1], 50.0), whole) is None


def test_what_commits_otherwise_too_is_no_matter_of_the_machine() -> None:
    other = clock(point("repeat", SHORT, 2.0), 150.0)
    assert twice(clock(EASY[0], 100.0), other, check("first-again", False, 7.9, 2.0)) is None
    assert twice(clock(EASY[0], 100.0), other, check("first-again")) is not None


# --- a loss -----------------------------------------------------------------------------------------------


def spent(arm: str, commit: float, ms: float, context: int = SHORT, **other: Any) -> CommitPoint:
    return replace(clock(point(arm, context, commit), ms), **other)


def loss(
    *points: CommitPoint,
    baseline: tuple[tuple[int, float], ...] = ((SHORT, 10.0), (LONG, 10.0)),
    **of_setup: Any,
) -> Any:
    return spec_net_loss.judge(Case((setup(points, baseline=baseline, **of_setup), *points)))  # fmt: skip


def test_ordinary_text_counts_before_repeated_text() -> None:
    """Prose loses (2 tokens in 30 ms against 10 ms each), repeated text gains: people send prose."""
    found = loss(spent("repeat", 7.9, 30.0), spent("prose", 2.0, 30.0))
    assert found.verdict.reasons[1] == "speculation makes it 1.50 times slower at 1k"
    assert "so a step must commit 3.00 to pay" in found.verdict.reasons[0]
    assert found.explains == pytest.approx(1.5)
    assert found.verdict.missing == ()
    assert loss(spent("repeat", 2.0, 30.0), spent("prose", 4.0, 30.0)) is None


def test_repeated_text_alone_is_less_sure() -> None:
    found = loss(spent("repeat", 2.0, 30.0))
    assert found.verdict.confidence == "medium"
    assert found.verdict.missing == ("ordinary text (arm prose): repeated text is the best case",)


@pytest.mark.parametrize(("high", "confidence"), [(2.99, "high"), (3.0, "low"), (3.2, "low"), (None, "low")])
def test_a_loss_is_sure_when_its_whole_interval_loses(high: float | None, confidence: str) -> None:
    assert loss(spent("prose", 2.0, 30.0, commit_high=high)).verdict.confidence == confidence


def test_where_it_begins_not_to_pay() -> None:
    points = (spent("prose", 4.0, 20.0), spent("prose", 4.0, 25.0, MIDDLE), spent("prose", 2.0, 40.0, LONG))
    verdict = loss(*points).verdict
    assert verdict.kind == "beyond_a_length"
    assert verdict.reasons[-1] == "up to 16k it pays (1.60 times faster), from 128k on it does not"
    assert verdict.next[0].startswith("switch speculation off from 128k on")
    early = loss(spent("prose", 2.0, 40.0), points[1], points[2]).verdict
    assert (early.kind, early.next[0].startswith("switch speculation off, or")) == ("", True)
    same = loss(spent("prose", 4.0, 20.0), spent("prose", 2.0, 40.0)).verdict
    assert same.kind == ""


def test_the_greatest_loss_is_told_first() -> None:
    points = (spent("prose", 2.0, 30.0), spent("prose", 2.0, 60.0, MIDDLE), spent("prose", 2.0, 40.0, LONG))
    verdict = loss(*points).verdict
    assert verdict.reasons[1] == "speculation makes it 3.00 times slower at 16k"


@pytest.mark.parametrize(
    ("of_setup", "drafted"), [({"speculating": False}, 100), ({"baseline": ()}, 100), ({}, 0)]
)
def test_what_does_not_speculate_loses_nothing_by_it(of_setup: dict[str, Any], drafted: int) -> None:
    slow = spent("prose", 1.0, 30.0, drafted_steps=drafted)
    assert loss(slow, **of_setup) is None
    assert loss(spent("prose", 1.0, 30.0)) is not None
    assert spec_net_loss.judge(Case((slow,))) is None


@pytest.mark.parametrize(
    ("context", "prompt", "plain"),
    [
        pytest.param(0, 2048, 10.0, id="as sent: by its prompt"),
        pytest.param(0, None, None, id="of no length at all"),
        pytest.param(4096, None, 12.0, id="half way between 2048 and 6144"),
    ],
)
def test_the_baseline_of_a_text_as_it_was_sent(context: int, prompt: int | None, plain: float | None) -> None:
    sent = replace(point("verbatim", context, 2.0), prompt_tokens=prompt)
    assert spec_net_loss._without(((2048, 10.0), (6144, 14.0)), sent) == plain


@pytest.mark.parametrize(
    ("baseline", "context", "plain"),
    [
        pytest.param(((1800, 10.0),), 2000, 10.0, id="a tenth shorter"),
        pytest.param(((1799, 10.0),), 2000, None, id="more than a tenth"),
        pytest.param(((2048, 0.5),), 2048, 0.5, id="half a millisecond"),
        pytest.param(((65536, 500.0), (8192, 20.0), (2048, 10.0), (1024, 1.0)), 5120, 15.0, id="between its neighbours"),
    ],
)  # fmt: skip
def test_the_nearest_baselines_count(
    baseline: tuple[tuple[int, float], ...], context: int, plain: float | None
) -> None:
    assert spec_net_loss._without(baseline, point("prose", context, 2.0)) == plain


def test_a_baseline_of_no_time_says_nothing() -> None:
    at = point("prose", 2048, 2.0)
    assert spec_net_loss._without(((2048, 0.0),), at) is None
    assert spec_net_loss._without(((1024, 0.0), (3072, 0.0)), at) is None
    assert spec_net_loss._without(((1024, 0.5), (3072, 0.5)), at) == 0.5


def test_of_two_baselines_as_near_the_shorter_counts() -> None:
    assert spec_net_loss._without(((2000, 10.0), (2100, 20.0)), point("prose", 2050, 2.0)) == 10.0


def test_the_gain_of_one_length_is_told_once() -> None:
    points = (spent("prose", 4.0, 20.0),)
    told = spec_net_loss.gain(Case((setup(points, baseline=((SHORT, 10.0),)), *points)))
    assert told == "against the baseline, speculation makes prose 2.00 times as fast at 1k"


def test_step_times_do_not_hide_a_healthy_drafter() -> None:
    """Growth beyond memory lowers the confidence; growth that nobody can judge, less so."""
    points = (*(clock(p, ms) for p, ms in zip(EASY, (20.0, 140.0, 1030.0), strict=True)), *NEAR, *FAR, *FINE)
    assert only(facts(*points)).confidence == "medium"
    assert [verdict.name for verdict in judged(facts(*points, extra=(replace(TARGET, server=SERVER),)))] == [
        "attention_kernel_bottleneck"
    ]
