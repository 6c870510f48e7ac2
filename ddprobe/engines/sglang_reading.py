"""What SGLang makes of a drafter's config.json, by way of transformers: layers, window, lengths, RoPE amplitude.

Read in SGLang 0.5.12 and 0.5.23 with the transformers they pin (5.6.0, 5.19.0). What stands in the file is in
`facts.ModelConfig`; what comes of it is here, with its origin in words.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ddprobe.facts import ModelConfig, Rope
from ddprobe.parsing.version import before

FULL, SLIDING = "full_attention", "sliding_attention"
LAYER_TYPES_SINCE = "0.5.14"
AMPLITUDE_RATIO_SINCE = "0.5.16"
OLD_WINDOW_FLAG_UNTIL = "0.5.20"
DEFAULT_BLOCK_SIZE = 16
DEFAULT_DSPARK_GAMMA = 7
DEFAULT_MASK_TOKEN = "<|MASK|>"
DEFAULT_THETA = 10000.0
DRAFT_BACKENDS = ("flashinfer", "fa3", "fa4", "triton", "ascend", "trtllm_mha", "intel_xpu")
"""Attention backends that the DFLASH draft worker takes; any other falls back to flashinfer."""

_DROPS_WINDOW = frozenset(
    {"qwen2", "qwen2_vl", "qwen2_vl_text", "qwen2_5_vl", "qwen2_5_vl_text", "qwen3", "qwen3_moe"}
)
"""Model types whose configuration class sets sliding_window to None unless use_sliding_window is true."""
_FILLS_LAYER_TYPES = frozenset({"qwen2", "qwen3"})
_DEFAULT_WINDOW, _DEFAULT_MAX_WINDOW_LAYERS = 4096, 28


@dataclass(frozen=True, slots=True)
class Layers:
    """The attention layers of a drafter as the engine runs them."""

    types: tuple[str, ...] | None
    """None when the number of layers is unknown."""
    window: int | None
    """The window of its sliding layers; None when the engine sees none."""
    origin: str
    """Whose word the types are."""


def reads_by_class(config: ModelConfig) -> bool:
    """True when transformers' own class reads the file, and drops a window that is not switched on."""
    return config.model_type in _DROPS_WINDOW and not config.custom_code


def layers(config: ModelConfig, version: str = "") -> Layers:
    """Layer types and window as SGLang sees them. An unknown version counts as a recent one."""
    count = config.num_hidden_layers
    dropped = reads_by_class(config) and not config.use_sliding_window
    if "sliding_window" in dict(config.overridden):
        dropped = False
    window = None if dropped else config.sliding_window
    if window is None and _is_nemotron(config):
        own = dict(config.extra).get("dflash_config.swa_window_size")
        window = own if isinstance(own, int) else None
    if before(version, LAYER_TYPES_SINCE):
        old = (FULL,) * count if count is not None else None
        return Layers(old, None, f"SGLang before {LAYER_TYPES_SINCE}, which runs every layer full")
    if config.layer_types is not None:
        return Layers(config.layer_types, window, "layer_types")
    if config.model_type in _FILLS_LAYER_TYPES and not config.custom_code and config.use_sliding_window:
        window = config.sliding_window if "sliding_window" in dict(config.places) else _DEFAULT_WINDOW
        first = (
            config.max_window_layers if config.max_window_layers is not None else _DEFAULT_MAX_WINDOW_LAYERS
        )
        filled = (
            tuple(SLIDING if at >= first else FULL for at in range(min(count, 4096)))
            if count is not None
            else None
        )
        return Layers(
            filled, window, f"transformers, which makes layers sliding from max_window_layers={first} on"
        )
    full = (FULL,) * count if count is not None else None
    return Layers(full, window, "SGLang's default: every layer full")


def _is_nemotron(config: ModelConfig) -> bool:
    """The published Nemotron 3.5 drafters: the only ones whose own `swa_window_size` SGLang reads."""
    own = dict(config.extra)
    ids, aux = config.target_layer_ids or (), config.aux_hidden_state_layer_ids or ()
    return (
        bool({"DFlashDraftModel", "Qwen3DSparkModel"} & set(config.architectures))
        and own.get("has_embed_tokens") is True
        and not own.get("has_lm_head")
        and "W4A16_NVFP4" in config.quantization
        and bool(ids)
        and tuple(each + 1 for each in ids) == aux
        and own.get("dflash_config.sample_from_anchor", own.get("sample_from_anchor")) is False
    )


def fallback_layer_ids(target_layers: int, draft_layers: int) -> tuple[int, ...] | None:
    """The ids SGLang makes up when a drafter states none; None where it raises instead."""
    if draft_layers == 1:
        return (target_layers // 2,)
    first, last = 1, target_layers - 3
    if draft_layers < 1 or last < first or draft_layers > 4096:
        return None
    return tuple(round(first + at * (last - first) / (draft_layers - 1)) for at in range(draft_layers))


def amplitude(rope: Rope, version: str) -> float | None:
    """The factor on cos and sin of a YaRN table; None when it depends on a version that is unknown."""
    factor = rope.factor or 1.0
    own = rope.attn_factor if rope.attn_factor is not None else 1.0
    if rope.kind == "deepseek_yarn":
        return own * _ratio(factor, _or(rope.mscale, 1.0), _or(rope.mscale_all_dim, 0.0))
    simple = own * _mscale(factor, 1.0)
    if rope.mscale is None or rope.mscale_all_dim is None:
        return simple
    ratio = own * _ratio(factor, rope.mscale, rope.mscale_all_dim)
    if math.isclose(simple, ratio, rel_tol=0.005):
        return ratio
    old = before(version, AMPLITUDE_RATIO_SINCE)
    return None if old is None else simple if old else ratio


def amplitudes(rope: Rope) -> tuple[float, float]:
    """A YaRN table's amplitude before and since the release that took mscale's ratio."""
    return amplitude(rope, "0.5.12") or 1.0, amplitude(rope, "0.5.23") or 1.0


def _or(value: float | None, default: float) -> float:
    return default if value is None else value


def _mscale(factor: float, mscale: float) -> float:
    return 1.0 if factor <= 1 else 0.1 * mscale * math.log(factor) + 1.0


def _ratio(factor: float, mscale: float, mscale_all_dim: float) -> float:
    below = _mscale(factor, mscale_all_dim)
    return _mscale(factor, mscale) / below if below else 1.0
