"""Bytes by hand: KV caches of every kind, weights of a verify step, cards, and the founding numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ddprobe import gpu_cards, roofline, steplaw
from ddprobe.facts import CommitPoint, Estimate, ModelConfig, Roofline, ServerArgs
from ddprobe.parsing import model_config

KIMI_TEXT: dict[str, Any] = {
    "hidden_size": 7168, "num_hidden_layers": 61, "num_attention_heads": 64, "num_key_value_heads": 64, "q_lora_rank": 1536,
    "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "n_routed_experts": 384,
    "num_experts_per_tok": 8, "n_shared_experts": 1, "moe_intermediate_size": 2048, "first_k_dense_replace": 1,
    "intermediate_size": 18432, "vocab_size": 163840, "dtype": "bfloat16",
    "quantization_config": {
        "quant_method": "compressed-tensors", "ignore": ["lm_head", "re:.*self_attn.*", "re:.*shared_experts.*",
        "re:.*mlp\\.(gate|up|down)_proj.*"], "config_groups": {"group_0": {"weights": {"num_bits": 4, "group_size": 32}}},
    },
}  # fmt: skip
_READ = model_config.read({"model_type": "kimi_k25", "text_config": KIMI_TEXT})
KIMI = ModelConfig.of(_READ.fields, _READ.rope, role="target", path="config.json")
DENSE = ModelConfig(
    role="target", path="config.json", dtype="bfloat16", num_hidden_layers=32, hidden_size=4096, intermediate_size=14336,
    num_attention_heads=32, num_key_value_heads=8, head_dim=128, vocab_size=128256,
)  # fmt: skip
RTX = ("NVIDIA RTX PRO 6000 Blackwell Server Edition",) * 8


def args(**values: Any) -> tuple[ServerArgs, ...]:
    return (ServerArgs(engine="sglang", origin="command line", values=tuple(values.items())),)


DFLASH: dict[str, Any] = {"tp_size": 8, "speculative_algorithm": "DFLASH", "speculative_num_draft_tokens": 8}


def of(target: ModelConfig, gpus: tuple[str, ...] = RTX, **values: Any) -> Roofline:
    found = roofline.of(target, args(**values), gpus)
    assert found is not None
    return found


# --- Kimi K2.6 on 8 RTX PRO 6000 ----------------------------------------------------------------------------


def test_mla_is_whole_on_every_rank() -> None:
    """61 layers · (512 + 64) · 2 bytes = 70272, at TP 8 as at TP 1; 70272 / 1792 GB/s = 39.2 ns."""
    eight = of(KIMI, **DFLASH)
    assert eight.kv_bytes_per_token == of(KIMI, tp_size=1).kv_bytes_per_token == 70272
    assert eight.ms_per_token * 1e6 == pytest.approx(39.21, abs=0.01)
    assert eight.ranks == 8
    assert any("whole on every GPU" in said for said in eight.assumptions)


@pytest.mark.parametrize(
    ("values", "size"),
    [
        ({"kv_cache_dtype": "fp8_e4m3"}, 35136),
        ({"kv_cache_dtype": "auto"}, 70272),
        ({"kv_cache_dtype": "bf16"}, 70272),
        ({"dcp_size": 8}, 8784),
        ({"enable_dp_attention": True, "dp_size": 8}, 70272),
    ],
)
def test_what_changes_the_latent(values: dict[str, Any], size: float) -> None:
    assert of(KIMI, tp_size=8, **values).kv_bytes_per_token == size


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("fp8_e5m2", 1.0), ("fp8_ds_mla", 1.0), ("int8", 1.0), ("q8_0", 1.0), ("fp4_e2m1", 0.5625), ("nvfp4", 0.5625),
        ("q4_0", 0.5625), ("f16", 2.0), ("f32", 4.0), ("fp32", 4.0), ("torch.bfloat16", 2.0),
    ],
)  # fmt: skip
def test_the_width_of_a_cached_number(name: str, size: float) -> None:
    """61 · 576 numbers a token; of 4 bits each half a byte, and a byte of scale for 16 of them."""
    assert of(KIMI, tp_size=8, kv_cache_dtype=name).kv_bytes_per_token == pytest.approx(35136 * size)


@pytest.mark.parametrize("name", ["bogus", "turbo3", "\x1b[31m"])
def test_a_width_that_is_not_known_gives_no_roofline(name: str) -> None:
    assert roofline.of(KIMI, args(tp_size=8, kv_cache_dtype=name), RTX) is None


@pytest.mark.parametrize("value", [0, -1, -512])
@pytest.mark.parametrize("field", ["kv_lora_rank", "num_hidden_layers"])
def test_sizes_that_no_model_has_give_no_roofline(field: str, value: int) -> None:
    changed: dict[str, Any] = {field: value}
    assert roofline.of(replace(KIMI, **changed), args(**DFLASH), RTX) is None


def test_a_window_below_nothing_is_none() -> None:
    types = ("sliding_attention", "full_attention") * 16
    found = of(replace(DENSE, layer_types=types, sliding_window=-5), tp_size=1)
    assert (found.kv_bytes_fixed, found.window) == (0, None)
    assert found.kv_bytes_per_token == 16 * 8 * 128 * 2 * 2


@pytest.mark.parametrize("value", [0, -8, 10**30, True, "8", 1.5])
def test_a_number_of_gpus_that_no_host_has_counts_as_one(value: Any) -> None:
    assert of(KIMI, tp_size=8, dcp_size=value).kv_bytes_per_token == 70272


@pytest.mark.parametrize("value", [0.0, -1.0, 1e300, float("inf"), float("nan")])
def test_a_bandwidth_that_no_gpu_has_is_not_taken(value: float) -> None:
    found = roofline.of(KIMI, args(**DFLASH), RTX, bandwidth=value)
    assert found is not None
    assert found.bandwidth == 1792


def test_attention_over_groups_keeps_its_weights_on_each() -> None:
    """DENSE's attention: 2 · 4096 · 4096 + 2 · 4096 · 1024 = 41.94e6 weights a layer, 2.684 GB in 32 layers. With TP 8 an eighth
    of all 15.009 GB is read on each GPU; with DP attention 8 the whole 2.684 GB and an eighth of the other 12.325."""
    spread = of(DENSE, tp_size=8)
    grouped = of(DENSE, tp_size=8, dp_size=8, enable_dp_attention=True)
    assert spread.weight_bytes == pytest.approx(15.009e9 / 8, rel=1e-3)
    assert grouped.weight_bytes == pytest.approx(2.684e9 + 12.325e9 / 8, rel=1e-3)


def test_weights_of_a_verify_step_of_eight_tokens() -> None:
    """Experts touched: 384 · (1 − (376/384)^8) = 59.52 a layer, 60 layers, 3 · 7168 · 2048 weights of 4.5 bits:
    59.52 · 60 · 44.04e6 · 0.5625 / 8 = 11.06 GB; attention, shared experts, the dense layer and the head: 2.6 GB. 7.6 ms."""
    found = of(KIMI, **DFLASH)
    assert found.verify_width == 8
    assert found.weight_bytes is not None
    assert found.weight_bytes == pytest.approx(13.65e9, rel=0.002)
    assert found.weights_ms == pytest.approx(7.62, abs=0.01)
    assert any("experts as chosen by chance for 8 tokens" in said for said in found.assumptions)


def test_weights_of_one_token() -> None:
    """8 experts a layer: 1.49 GB, and the same 2.6: 2.3 ms."""
    found = of(KIMI, tp_size=8)
    assert found.verify_width is None
    assert found.weights_ms == pytest.approx(2.28, abs=0.01)


FOUNDING = tuple(
    CommitPoint(arm="repeat", context_tokens=context, step_ms=ms)
    for context, ms in ((1400, 8.0), (185_000, 1430.0))
)


def test_the_founding_numbers() -> None:
    """70272 · 185000 = 13.0 GB in 1.43 s: 9.09 GB/s, 0.507 % of 1792; slope 7.745 µs over 39.2 ns: 197.5 times."""
    fit = steplaw.fit(FOUNDING)
    assert fit is not None
    found = roofline.achieved(fit, of(KIMI, **DFLASH))
    assert found.kv_bytes == 13_000_320_000
    assert found.gb_s == pytest.approx(9.091, abs=1e-3)
    assert found.share == pytest.approx(0.00507, abs=1e-5)
    assert found.slope_ratio is not None
    assert found.slope_ratio.value == pytest.approx(197.5, abs=0.1)
    assert found.slope_ratio.low is None
    assert found.fixed_ratio is None


# --- other caches -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "size"),
    [
        # 32 layers · 8 heads · 128 · (K and V) · 2 bytes = 131072.
        ({}, 131072),
        ({"tp_size": 4}, 32768),
        ({"tp_size": 8}, 16384),
        # More ranks than heads: each keeps one whole head.
        ({"tp_size": 16}, 16384),
        ({"tp_size": 8, "enable_dp_attention": True, "dp_size": 8}, 131072),
        ({"tp_size": 8, "enable_dp_attention": True, "dp_size": 4}, 65536),
        ({"tp_size": 8, "dp_size": 4}, 16384),
        ({"tp_size": 4, "kv_cache_dtype": "fp8_e5m2"}, 16384),
        ({"pp_size": 2}, 131072),
    ],
)
def test_grouped_heads(values: dict[str, Any], size: float) -> None:
    assert of(DENSE, **values).kv_bytes_per_token == size


def test_one_head_for_all_is_kept_by_every_rank() -> None:
    """MQA: 32 · 1 · 128 · 2 · 2 = 16384, however many ranks."""
    one = replace(DENSE, num_key_value_heads=1)
    assert of(one).kv_bytes_per_token == of(one, tp_size=8).kv_bytes_per_token == 16384


def test_without_a_head_size_it_is_the_width_over_the_heads() -> None:
    assert of(replace(DENSE, head_dim=None)).kv_bytes_per_token == 131072


def test_sliding_layers_read_their_window() -> None:
    """4 of 32 layers full: 4 · 4096 = 16384 a token; 28 · 4096 · 1024 tokens of window stay."""
    types = ("sliding_attention",) * 28 + ("full_attention",) * 4
    found = of(replace(DENSE, layer_types=types, sliding_window=1024))
    assert found.kv_bytes_per_token == 16384
    assert found.kv_bytes_fixed == 117_440_512
    assert found.kv_bytes(10_000) == 163_840_000 + 117_440_512
    assert found.kv_bytes(512) == 16384 * 512 + 117_440_512 / 2
    assert any("28 of 32 layers read 1024 tokens" in said for said in found.assumptions)


def test_linear_layers_keep_a_state() -> None:
    found = of(replace(DENSE, layer_types=("linear_attention",) * 24 + ("full_attention",) * 8))
    assert found.kv_bytes_per_token == 32768
    assert found.kv_bytes_fixed == 0
    by_interval = of(replace(DENSE, extra=(("full_attention_interval", 4),)))
    assert by_interval.kv_bytes_per_token == 32768


def test_a_window_without_layer_types_counts_as_the_whole_context() -> None:
    """That makes the roofline higher, and any excess smaller."""
    found = of(replace(DENSE, sliding_window=4096))
    assert found.kv_bytes_per_token == 131072
    assert any("no layer_types" in said for said in found.assumptions)


@pytest.mark.parametrize("missing", ["num_hidden_layers", "num_attention_heads"])
def test_a_configuration_that_does_not_tell_gives_none(missing: str) -> None:
    gone: dict[str, Any] = {missing: None, "num_key_value_heads": None, "head_dim": None}
    bare = replace(DENSE, **gone)
    assert roofline.of(bare, args(), RTX) is None
    assert roofline.of(None, args(), RTX) is None


# --- weights ------------------------------------------------------------------------------------------------


def test_weights_of_a_dense_model() -> None:
    """Attention 2 · 4096 · 4096 + 2 · 4096 · 1024, MLP 3 · 4096 · 14336, 32 layers, head 128256 · 4096; 2 bytes each."""
    assert of(DENSE).weight_bytes == 2 * (32 * (41_943_040 + 176_160_768) + 525_336_576)
    assert of(DENSE, tp_size=4).weight_bytes == pytest.approx((of(DENSE).weight_bytes or 0) / 4)


def test_quantised_weights_are_narrower_the_head_is_not() -> None:
    """4 bits with 16 for each 32 weights: 4.5. fp8 has 8."""
    four = replace(DENSE, quantization="awq 4 bit", quantization_bits=4.0)
    assert of(four).weight_bytes == 0.5625 * 32 * (41_943_040 + 176_160_768) + 2 * 525_336_576
    eight = replace(DENSE, quantization="fp8", quantization_bits=8.0, quantization_ignore=("model.*.attn",))
    assert of(eight).weight_bytes == 32 * (2 * 41_943_040 + 176_160_768) + 2 * 525_336_576


def test_experts_of_unknown_number_have_no_floor() -> None:
    assert of(replace(KIMI, num_experts_per_tok=None), **DFLASH).weight_bytes is None
    assert of(replace(KIMI, num_experts_per_tok=None), **DFLASH).weights_ms is None


@pytest.mark.parametrize(
    ("section", "bits"),
    [
        ({"quant_method": "gptq", "bits": 4}, 4.0),
        ({"quant_method": "fp8"}, 8.0),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, 4.0),
        ({"quant_method": "mxfp4"}, 4.0),
        ({"quant_method": "compressed-tensors", "config_groups": {"g": {"weights": {"num_bits": 8}}}}, 8.0),
        ({"quant_method": "bitsandbytes"}, None),
        ({"quant_method": "awq", "bits": True}, None),
    ],
)
def test_bits_of_a_quantised_weight(section: dict[str, Any], bits: float | None) -> None:
    assert model_config.read({"quantization_config": section}).fields["quantization_bits"] == bits


# --- cards --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "bandwidth"),
    [
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", 1792),
        ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", 1792),
        ("NVIDIA H100 80GB HBM3", 3350),
        ("NVIDIA H100 PCIe", 2000),
        ("NVIDIA H200", 4800),
        ("NVIDIA GH200 480GB", 4000),
        ("NVIDIA GH200 144G HBM3e", 4900),
        ("NVIDIA B200", 8000),
        ("NVIDIA GB200", 8000),
        ("NVIDIA A100-SXM4-80GB", 2039),
        ("NVIDIA A100-SXM4-40GB", 1555),
        ("NVIDIA A100 80GB PCIe", 1935),
        ("NVIDIA A800-SXM4-80GB", 2039),
        ("NVIDIA A800 80GB PCIe", 1935),
        ("NVIDIA H800", 3350),
        ("NVIDIA H800 PCIe", 2000),
        ("NVIDIA A30", 933),
        ("NVIDIA A10G", 600),
        ("NVIDIA A10", 600),
        ("NVIDIA L20", 864),
        ("Tesla V100-SXM2-32GB", 900),
        ("NVIDIA L40S", 864),
        ("NVIDIA L4", 300),
        ("Tesla T4", 320),
        ("AMD Instinct MI300X OAM", 5300),
        ("NVIDIA GeForce RTX 4090", 1008),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", None),
        ("NVIDIA GeForce RTX 4090 D", None),
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", None),
        ("llvmpipe", None),
        ("", None),
    ],
)  # fmt: skip
def test_cards_by_name(name: str, bandwidth: float | None) -> None:
    found = gpu_cards.card(name)
    assert (found.bandwidth if found else None) == bandwidth


@pytest.mark.parametrize(
    ("name", "is_it"),
    [("NVIDIA RTX PRO 6000 Blackwell", True), ("NVIDIA GeForce RTX 5090", True), ("NVIDIA B200", False), ("RTX A6000", False)],
)  # fmt: skip
def test_workstation_blackwells(name: str, is_it: bool) -> None:
    assert gpu_cards.sm120(name) is is_it


def test_an_unknown_card_makes_the_roofline_high() -> None:
    found = of(KIMI, (), **DFLASH)
    assert (found.bandwidth, found.known) == (864.0, False)
    one_unknown = of(KIMI, ("NVIDIA H200", "something"), **DFLASH)
    assert one_unknown.known is False


def test_the_slowest_of_several_cards_counts() -> None:
    found = of(KIMI, ("NVIDIA H200", "NVIDIA L40S"), **DFLASH)
    assert (found.bandwidth, found.gpu, found.known) == (864.0, "NVIDIA L40S", True)


def test_a_given_bandwidth_counts_before_the_table() -> None:
    found = roofline.of(KIMI, args(**DFLASH), RTX, bandwidth=1500.0, memory_clock=0.5)
    assert found is not None
    assert (found.bandwidth, found.bandwidth_source, found.known) == (
        1500.0,
        "the host's gpu_bandwidth",
        True,
    )


def test_a_memory_clock_below_its_highest_lowers_the_bandwidth() -> None:
    found = roofline.of(KIMI, args(**DFLASH), RTX, memory_clock=0.5)
    assert found is not None
    assert found.bandwidth == 896.0
    assert "50% of its clock" in found.bandwidth_source


# --- laws beside it -----------------------------------------------------------------------------------------


def test_a_law_at_the_roofline_is_once_the_roofline() -> None:
    line = of(DENSE, ("NVIDIA H100 80GB HBM3",))
    points = [
        CommitPoint(
            arm="repeat", context_tokens=c, step_ms=line.at(c), step_ms_from=0.999 * line.at(c), step_ms_to=1.001 * line.at(c)
        )
        for c in (1024, 4096, 16384, 65536, 131072)
    ]  # fmt: skip
    fit = steplaw.fit(points)
    assert fit is not None
    found = roofline.achieved(fit, line)
    assert found.slope_ratio is not None
    assert found.slope_ratio.value == pytest.approx(1.0, rel=1e-6)
    assert found.slope_ratio.low is not None
    assert found.slope_ratio.low < 1 < (found.slope_ratio.high or 0)
    assert found.slope_gb_s is not None
    assert found.slope_gb_s.value == pytest.approx(3350.0)
    assert found.slope_gb_s.low is not None
    assert found.slope_gb_s.low < 3350 < (found.slope_gb_s.high or 0)
    assert found.fixed_ratio is not None
    assert found.fixed_ratio.value == pytest.approx(1.0, rel=1e-6)


def test_a_flat_law_has_no_slope_to_compare() -> None:
    points = [CommitPoint(arm="repeat", context_tokens=c, step_ms=10.0) for c in (1024, 4096, 16384)]
    fit = steplaw.fit(points)
    assert fit is not None
    assert roofline.achieved(fit, of(DENSE)).slope_ratio is None


def test_a_curve_counts_with_its_mean_slope() -> None:
    """b + c · (first + last): 1e-3 + 1e-8 · 132096 = 2.321e-3 ms; 131072 bytes at 3350 GB/s are 3.913e-5 ms: 59.3 times."""
    points = [
        CommitPoint(arm="repeat", context_tokens=c, step_ms=5 + 1e-3 * c + 1e-8 * c * c)
        for c in (1024, 8192, 32768, 65536, 131072)
    ]
    fit = steplaw.fit(points)
    assert fit is not None
    assert fit.form == "quadratic"
    found = roofline.achieved(fit, of(DENSE, ("NVIDIA H100 80GB HBM3",)))
    assert found.slope_ratio == Estimate(pytest.approx(59.32, abs=0.01))  # type: ignore[arg-type]
