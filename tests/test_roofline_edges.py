"""The roofline at its limits: what is zero, absent, or told by one of two; who is asked first; what is assumed aloud."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from ddprobe import roofline
from ddprobe.facts import Achieved, Estimate, Roofline, ServerArgs, StepFit
from tests.test_roofline import DENSE, KIMI, RTX, args, of

HEAD = 2 * 128256 * 4096
"""Bytes of DENSE's head."""
ATTENTION, MLP = 41_943_040, 176_160_768
"""Weights of one layer of DENSE."""


# --- who is asked --------------------------------------------------------------------------------------------


def test_what_the_server_resolved_counts_before_what_it_was_given() -> None:
    given = args(tp_size=2)
    resolved = (ServerArgs(engine="sglang", origin="/server_info", values=(("tp_size", 4),), resolved=True),)
    for order in ((*given, *resolved), (*resolved, *given)):
        found = roofline.of(DENSE, order, RTX)
        assert found is not None
        assert found.ranks == 4


@pytest.mark.parametrize(
    ("size", "ranks"),
    [(1, 1), (2, 2), (4096, 4096), (4097, 1), (0, 1), (-8, 1), (True, 1), ("8", 1), (None, 1)],
)
def test_a_number_of_ranks_is_a_whole_number_above_zero(size: Any, ranks: int) -> None:
    assert of(DENSE, tp_size=size).ranks == ranks


@pytest.mark.parametrize(
    ("values", "width"),
    [
        ({"speculative_algorithm": "DFLASH", "speculative_num_draft_tokens": 8}, 8),
        ({"speculative_algorithm": "DFLASH", "speculative_num_draft_tokens": 1}, 1),
        ({"speculative_algorithm": "DFLASH", "speculative_num_draft_tokens": 0}, None),
        ({"speculative_algorithm": "DFLASH", "speculative_num_draft_tokens": True}, None),
        ({"speculative_algorithm": "DFLASH"}, None),
        ({"speculative_num_draft_tokens": 8}, None),
    ],
)
def test_tokens_of_a_verify_step(values: dict[str, Any], width: int | None) -> None:
    assert of(DENSE, **values).verify_width == width


# --- the KV cache --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "size"), [("float32", 4), ("fp32", 4), ("bfloat16", 2), ("bf16", 2), ("float16", 2), ("fp16", 2), ("half", 2)]
)  # fmt: skip
def test_bytes_of_a_number_by_its_name(dtype: str, size: int) -> None:
    """32 layers · 8 heads · 128 · K and V; a layer's weights and the head as wide."""
    for name in (dtype, dtype.upper()):
        found = of(replace(DENSE, dtype=name))
        assert found.kv_bytes_per_token == 65536 * size
        assert found.weight_bytes == size * (32 * (ATTENTION + MLP) + 128256 * 4096)
    assert of(DENSE, kv_cache_dtype=dtype).kv_bytes_per_token == 65536 * size


@pytest.mark.parametrize("dtype", ["fp8_e4m3", "int8", "nvfp8", "q8_0"])
def test_a_byte_a_number(dtype: str) -> None:
    assert of(DENSE, kv_cache_dtype=dtype).kv_bytes_per_token == 65536


def test_without_a_type_it_is_sixteen_bit_and_said() -> None:
    found = of(replace(DENSE, dtype=""))
    assert found.kv_bytes_per_token == 131072
    assert any("16 bit, which nobody says" in said for said in found.assumptions)
    assert of(DENSE, kv_cache_dtype="auto").kv_bytes_per_token == 131072
    assert of(DENSE, kv_cache_dtype="").kv_bytes_per_token == 131072


def test_a_latent_without_a_rope_part_is_the_latent() -> None:
    """61 · 512 · 2."""
    assert of(replace(KIMI, qk_rope_head_dim=None)).kv_bytes_per_token == 62464


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"num_key_value_heads": None, "num_attention_heads": None}, False),
        ({"head_dim": None, "hidden_size": None}, False),
        ({"head_dim": None, "num_attention_heads": None}, False),
        ({"num_key_value_heads": None}, True),
        ({"head_dim": None}, True),
    ],
)
def test_heads_and_their_width_are_both_needed(fields: dict[str, None], told: bool) -> None:
    assert (roofline.of(replace(DENSE, **fields), (), RTX) is not None) is told  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("window", "used", "guessed"),
    [(None, True, False), (4096, None, True), (4096, True, True), (4096, False, False)],
)  # fmt: skip
def test_a_window_that_is_not_used_is_none(window: int | None, used: bool | None, guessed: bool) -> None:
    found = of(replace(DENSE, sliding_window=window, use_sliding_window=used))
    assert found.kv_bytes_per_token == 131072
    assert (found.kv_bytes_fixed, found.window) == (0, None)
    assert any("no layer_types" in said for said in found.assumptions) is guessed


def test_sliding_layers_without_a_window_keep_nothing_that_is_known() -> None:
    types = ("sliding_attention",) * 24 + ("full_attention",) * 8
    found = of(replace(DENSE, layer_types=types))
    assert (found.kv_bytes_per_token, found.kv_bytes_fixed) == (32768, 0)
    assert any("24 layers keep a state of fixed size" in said for said in found.assumptions)


def test_a_model_of_sliding_layers_alone_has_a_roofline_that_is_fixed() -> None:
    found = of(replace(DENSE, layer_types=("sliding_attention",) * 32, sliding_window=1024))
    assert (found.kv_bytes_per_token, found.kv_bytes_fixed) == (0, 32 * 4096 * 1024)
    assert roofline.of(replace(DENSE, layer_types=("linear_attention",) * 32), (), RTX) is None


@pytest.mark.parametrize(("interval", "full"), [(1, 32), (2, 16), (4, 8), (0, 32), (-4, 32), ("4", 32)])
def test_full_layers_by_their_interval(interval: Any, full: int) -> None:
    found = of(replace(DENSE, extra=(("full_attention_interval", interval),)))
    assert found.kv_bytes_per_token == full * 4096


@pytest.mark.parametrize(
    "fields", [{"num_hidden_layers": -32}, {"num_hidden_layers": 0}, {"head_dim": 0}, {"head_dim": -128}]
)
def test_a_cache_of_no_size_is_none(fields: dict[str, int]) -> None:
    assert roofline.of(replace(DENSE, **fields), (), RTX) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(("window", "sliding"), [(1, 24), (0, 0), (-1, 0)])
def test_a_window_has_a_token_at_the_least(window: int, sliding: int) -> None:
    types = ("sliding_attention",) * 24 + ("full_attention",) * 8
    found = of(replace(DENSE, layer_types=types, sliding_window=window))
    assert found.kv_bytes_fixed == sliding * 4096


@pytest.mark.parametrize(("rank", "told"), [(1, True), (0, False), (-1, False)])
def test_a_latent_has_a_number_at_the_least(rank: int, told: bool) -> None:
    assert (roofline.of(replace(KIMI, kv_lora_rank=rank), (), RTX) is not None) is told


# --- weights -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fields",
    [
        {"hidden_size": None, "head_dim": 128},
        {"num_attention_heads": None, "num_key_value_heads": 8},
        {"intermediate_size": None},
        {"n_routed_experts": 8},
        {"n_routed_experts": 8, "num_experts_per_tok": 2},
    ],
)
def test_weights_need_every_part(fields: dict[str, Any]) -> None:
    found = of(replace(DENSE, **fields))
    assert found.weight_bytes is None
    assert not any("weights of a step" in said for said in found.assumptions)


def test_as_many_heads_of_keys_as_of_queries_where_nobody_says() -> None:
    """Attention 4 · 4096 · 4096."""
    assert (
        of(replace(DENSE, num_key_value_heads=None)).weight_bytes == 2 * 32 * (4 * 4096 * 4096 + MLP) + HEAD
    )


def test_without_a_vocabulary_there_is_no_head() -> None:
    assert of(replace(DENSE, vocab_size=None)).weight_bytes == 2 * 32 * (ATTENTION + MLP)


MOE = replace(
    DENSE, n_routed_experts=64, num_experts_per_tok=8, moe_intermediate_size=1408, vocab_size=None, intermediate_size=None
)  # fmt: skip
ONE = 3 * 4096 * 1408


@pytest.mark.parametrize(
    ("width", "touched"),
    [(1, 8.0), (2, 64 * (1 - (7 / 8) ** 2)), (8, 64 * (1 - (7 / 8) ** 8))],
)
def test_experts_touched_by_chance(width: int, touched: float) -> None:
    found = roofline.of(MOE, (), RTX, verify_width=width)
    assert found is not None
    assert found.weight_bytes == pytest.approx(2 * 32 * (ATTENTION + touched * ONE))


def test_shared_experts_and_dense_layers() -> None:
    both = replace(MOE, n_shared_experts=2, first_k_dense_replace=3, intermediate_size=14336)
    assert of(both).weight_bytes == pytest.approx(2 * (32 * ATTENTION + 29 * (8 + 2) * ONE + 3 * MLP))
    # Dense layers whose width nobody says have no floor; nor are there more of them than layers.
    assert of(replace(both, intermediate_size=None)).weight_bytes is None
    assert of(replace(both, first_k_dense_replace=40)).weight_bytes == 2 * 32 * (ATTENTION + MLP)


def test_latent_attention_by_hand() -> None:
    """h 4096, 32 heads of 64 + 128 and 128, latent 512: asked 4096 · 32 · 192, or over rank 1536: 4096 · 1536 + 1536 · 32 · 192;
    latent 4096 · 576 + 512 · 32 · 256; out 32 · 128 · 4096."""
    mla = replace(
        DENSE, kv_lora_rank=512, qk_rope_head_dim=64, qk_nope_head_dim=128, v_head_dim=128, vocab_size=None
    )
    rest = 4096 * 576 + 512 * 32 * 256 + 32 * 128 * 4096
    assert of(mla).weight_bytes == 2 * 32 * (4096 * 32 * 192 + rest + MLP)
    low = replace(mla, q_lora_rank=1536)
    assert of(low).weight_bytes == 2 * 32 * (4096 * 1536 + 1536 * 32 * 192 + rest + MLP)
    bare = replace(mla, qk_rope_head_dim=None, qk_nope_head_dim=None, v_head_dim=None)
    assert of(bare).weight_bytes == 2 * 32 * (4096 * 512 + MLP)


@pytest.mark.parametrize(
    ("ignored", "attention", "mlp"),
    [(None, 1, 1), (("re:.*self_attn.*",), 2, 1), (("re:.*mlp.*",), 1, 2), (("lm_head",), 1, 1)],
)
def test_what_the_quantisation_leaves_out_is_wide(
    ignored: tuple[str, ...] | None, attention: int, mlp: int
) -> None:
    eight = replace(DENSE, quantization="fp8", quantization_bits=8.0, quantization_ignore=ignored)
    assert of(eight).weight_bytes == 32 * (attention * ATTENTION + mlp * MLP) + HEAD


@pytest.mark.parametrize(
    ("quantization", "bits", "said"), [("", None, False), ("bitsandbytes", None, True), ("fp8", 8.0, False)]
)
def test_an_unknown_width_of_weights_is_told(quantization: str, bits: float | None, said: bool) -> None:
    found = of(replace(DENSE, quantization=quantization, quantization_bits=bits))
    assert any("is not known: taken as if not quantised" in text for text in found.assumptions) is said
    if said:
        assert found.weight_bytes == of(DENSE).weight_bytes


def test_bits_without_a_quantisation_are_none() -> None:
    assert of(replace(DENSE, quantization_bits=4.0)).weight_bytes == of(DENSE).weight_bytes


# --- the card ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("clock", "bandwidth"), [(0.0, 1792.0), (0.5, 896.0), (0.999, 1790.208), (1.0, 1792.0), (1.5, 1792.0), (-0.5, 1792.0)]
)  # fmt: skip
def test_a_memory_clock_counts_between_0_and_1(clock: float, bandwidth: float) -> None:
    found = roofline.of(DENSE, (), RTX, memory_clock=clock)
    assert found is not None
    assert found.bandwidth == pytest.approx(bandwidth)
    assert ("of its clock" in found.bandwidth_source) is (0 < clock < 1)


def test_of_two_cards_the_slower_one_is_named_whatever_the_order() -> None:
    for order in (("NVIDIA L40S", "NVIDIA H200"), ("NVIDIA H200", "NVIDIA L40S")):
        found = of(DENSE, order)
        assert (found.bandwidth, found.gpu) == (864.0, "NVIDIA L40S")


def test_a_card_that_is_not_known_is_named_all_the_same() -> None:
    assert (of(DENSE, ("something",)).gpu, of(DENSE, ()).gpu) == ("something", "")


@pytest.mark.parametrize(
    ("given", "taken"),
    [(0.0, 1792.0), (-1.0, 1792.0), (0.5, 0.5), (1e9, 1e9), (1.001e9, 1792.0), (math.inf, 1792.0)],
)
def test_a_bandwidth_that_no_card_has_is_not_given(given: float, taken: float) -> None:
    found = roofline.of(DENSE, (), RTX, bandwidth=given)
    assert found is not None
    assert found.bandwidth == taken


def test_without_a_clock_of_its_memory_a_card_is_as_fast_as_its_sheet() -> None:
    assert of(DENSE).bandwidth_source.endswith("are not confirmed")


# --- said aloud ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "values", "words"),
    [
        (KIMI, {"tp_size": 1}, "MLA's latent in bfloat16, on one GPU"),
        (KIMI, {"tp_size": 8}, "whole on every GPU"),
        (KIMI, {"tp_size": 8, "dcp_size": 2}, "spread over 2 GPUs (dcp_size)"),
        (DENSE, {}, "8 KV heads in bfloat16, over 1 GPU"),
        (DENSE, {"tp_size": 2}, "8 KV heads in bfloat16, over 2 GPUs"),
        (replace(DENSE, num_key_value_heads=None), {}, "32 KV heads in bfloat16, over 1 GPU"),
        (DENSE, {}, "weights of a step of 1 token"),
        (DENSE, {"tp_size": 1}, "spread evenly over 1 GPU"),
        (DENSE, {"tp_size": 2}, "spread evenly over 2 GPUs"),
        (DENSE, {"pp_size": 2}, "stages of the pipeline run one after another"),
    ],
)
def test_assumptions(target: Any, values: dict[str, Any], words: str) -> None:
    said = of(target, **values).assumptions
    (one,) = [text for text in said if words in text]
    if words.endswith("GPU"):
        assert one.endswith(words)


@pytest.mark.parametrize("values", [{}, {"pp_size": 1}])
def test_one_stage_is_no_pipeline(values: dict[str, Any]) -> None:
    assert not any("pipeline" in text for text in of(DENSE, **values).assumptions)
    assert not any("window" in text or "state" in text for text in of(DENSE, **values).assumptions)


# --- a law beside it -----------------------------------------------------------------------------------------

LINE = Roofline(kv_bytes_per_token=131072.0, bandwidth=1000.0, weight_bytes=10e9)
"""0.131072 µs a token; 10 ms of weights."""


def achieved(a: Estimate, b: Estimate, line: Roofline = LINE, form: str = "linear", c: Estimate | None = None) -> Achieved:  # fmt: skip
    fit = StepFit(
        arm="repeat", form=form, a=a, b=b, c=c, points=2, steps=64, contexts=(1000.0, 100_000.0), step_ms=(11.0, 131.072)
    )  # fmt: skip
    return roofline.achieved(fit, line)


def test_speed_and_ratios_by_hand() -> None:
    """131072 · 100000 bytes in 131.072 ms are 100 GB/s, a tenth; 1.31072 µs a token are ten times; 20 ms are twice."""
    found = achieved(Estimate(20.0, 10.0, 30.0), Estimate(1.31072e-3, 0.65536e-3, 2.62144e-3))
    assert (found.context, found.step_ms) == (100_000.0, 131.072)
    assert (found.gb_s, found.share) == pytest.approx((100.0, 0.1))
    ratio, speed, fixed = found.slope_ratio, found.slope_gb_s, found.fixed_ratio
    assert ratio is not None
    assert (ratio.value, ratio.low, ratio.high) == pytest.approx((10.0, 5.0, 20.0))
    assert speed is not None
    assert (speed.value, speed.low, speed.high) == pytest.approx((100.0, 50.0, 200.0))
    assert fixed is not None
    assert (fixed.value, fixed.low, fixed.high) == pytest.approx((2.0, 1.0, 3.0))


def test_an_end_that_is_not_above_zero_gives_no_speed() -> None:
    for low in (0.0, -1e-3):
        speed = achieved(Estimate(20.0), Estimate(1e-3, low, 2e-3)).slope_gb_s
        assert speed is not None
        assert speed.low == pytest.approx(65.536)
        assert speed.high is None


def test_an_estimate_without_ends_gives_none() -> None:
    found = achieved(Estimate(20.0), Estimate(1e-3))
    for one in (found.slope_ratio, found.slope_gb_s, found.fixed_ratio):
        assert one is not None
        assert (one.low, one.high) == (None, None)


@pytest.mark.parametrize(
    ("slope", "form", "line", "grows"),
    [
        (1e-9, "linear", LINE, True),
        (0.0, "linear", LINE, False),
        (-1e-3, "linear", LINE, False),
        (1e-3, "flat", LINE, False),
        (1e-3, "linear", replace(LINE, kv_bytes_per_token=0.0), False),
    ],
)
def test_what_does_not_grow_has_no_ratio(slope: float, form: str, line: Roofline, grows: bool) -> None:
    found = achieved(Estimate(20.0), Estimate(slope), line, form)
    assert (found.slope_ratio is not None) is grows
    assert (found.slope_gb_s is not None) is grows


@pytest.mark.parametrize(
    ("a", "weights", "told"), [(1e-9, 10e9, True), (0.0, 10e9, False), (-2.8, 10e9, False), (20.0, None, False), (20.0, 0.0, False)]
)  # fmt: skip
def test_a_constant_part_beside_the_weights(a: float, weights: float | None, told: bool) -> None:
    found = achieved(Estimate(a), Estimate(1e-3), replace(LINE, weight_bytes=weights))
    assert (found.fixed_ratio is not None) is told


def test_a_curve_counts_by_the_slope_between_its_ends() -> None:
    """b + c · (1000 + 100000) = 1.31072e-3: half of it by either."""
    found = achieved(
        Estimate(20.0),
        Estimate(0.65536e-3, 0.5e-3, 0.8e-3),
        form="quadratic",
        c=Estimate(0.65536e-3 / 101_000),
    )
    assert found.slope_ratio == Estimate(pytest.approx(10.0))  # type: ignore[arg-type]


def test_a_window_is_full_at_its_length() -> None:
    line = Roofline(kv_bytes_per_token=10.0, kv_bytes_fixed=1000.0, window=100, bandwidth=1.0)
    assert [line.kv_bytes(c) for c in (50, 99, 100, 101)] == [1000.0, 1980.0, 2000.0, 2010.0]
    assert math.isclose(line.at(100), 2000 * 1e-6)
