"""A drafter's or target's configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ddprobe.model import Fact


@dataclass(frozen=True, slots=True, kw_only=True)
class Rope:
    """Rotary embedding parameters, whichever of `rope_parameters`, `rope_scaling` or flat fields they came from."""

    theta: float | None = None
    kind: str = ""
    """`default`, `yarn`, `deepseek_yarn`, `linear`, `dynamic`, `llama3`, … ; empty when nothing is said."""
    factor: float | None = None
    original_max_position: int | None = None
    beta_fast: float | None = None
    beta_slow: float | None = None
    mscale: float | None = None
    mscale_all_dim: float | None = None
    attn_factor: float | None = None
    attention_factor: float | None = None
    """Hugging Face's name; SGLang reads `attn_factor` only."""
    partial_rotary_factor: float | None = None
    mrope_section: tuple[int, ...] | None = None
    """Sections of a rotary embedding with several axes (time, height, width)."""
    per_layer_type: bool = False
    """The dictionary is nested per layer type; the values here are those of full attention."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig(Fact):
    """A drafter's or target's `config.json`, read into the field's standard terms.

    A field holds what stands in the file (with the server's `--json-model-override-args` laid over it), not what an
    engine makes of it: `engines/sglang_reading.py` says that.
    """

    role: str
    """`drafter` or `target`."""
    path: str
    server: str = ""
    """The `name` of the process that uses it; empty when it was named by hand."""
    reference: str = ""
    """As named by the server: a hub id or a folder."""
    revision: str = ""
    architectures: tuple[str, ...] = ()
    model_type: str = ""
    custom_code: bool = False
    """`auto_map` names a configuration class of the checkpoint's own."""
    num_hidden_layers: int | None = None
    hidden_size: int | None = None
    intermediate_size: int | None = None
    num_attention_heads: int | None = None
    num_key_value_heads: int | None = None
    head_dim: int | None = None
    q_lora_rank: int | None = None
    kv_lora_rank: int | None = None
    qk_nope_head_dim: int | None = None
    qk_rope_head_dim: int | None = None
    v_head_dim: int | None = None
    vocab_size: int | None = None
    draft_vocab_size: int | None = None
    num_loops: int | None = None
    dtype: str = ""
    quantization: str = ""
    quantization_ignore: tuple[str, ...] | None = None
    """Modules that the quantisation leaves out, as patterns of the file's own; None when it lists none."""
    quantization_bits: float | None = None
    """Bits of one weight where it is quantised; None when the file does not tell."""
    n_routed_experts: int | None = None
    num_experts_per_tok: int | None = None
    n_shared_experts: int | None = None
    moe_intermediate_size: int | None = None
    first_k_dense_replace: int | None = None
    """Layers at the beginning that have no experts."""
    nextn_layers: int | None = None
    """Next-token (MTP) layers that a target announces for its own drafting."""
    layer_types: tuple[str, ...] | None = None
    sliding_window: int | None = None
    use_sliding_window: bool | None = None
    max_window_layers: int | None = None
    is_causal: bool | None = None
    max_position_embeddings: int | None = None
    context_length: int | None = None
    """The length an engine derives from this file: the first of several length fields, times the RoPE factor."""
    rope: Rope = Rope()
    tie_word_embeddings: bool | None = None
    # Speculative decoding
    block_size: int | None = None
    block_size_places: tuple[tuple[str, int], ...] = ()
    """Every place that states a block size, with its value."""
    mask_token_id: int | None = None
    mask_token: str = ""
    target_layer_ids: tuple[int, ...] | None = None
    aux_hidden_state_layer_ids: tuple[int, ...] | None = None
    """vLLM's dialect: SGLang's ids + 1."""
    num_target_layers: int | None = None
    target_hidden_size: int | None = None
    dspark_gamma: int | None = None
    pad_token_id: int | None = None
    eos_token_ids: tuple[int, ...] = ()
    bos_token_id: int | None = None
    special_token_ids: tuple[int, ...] | None = None
    """From `tokenizer_config.json` (`added_tokens_decoder`); None when that was not read."""
    fc_weight_shape: tuple[int, ...] | None = None
    """From the safetensors header; None when that was not read."""
    tensors: tuple[str, ...] | None = None
    """Names of all tensors in the weights; None when they were not read whole."""
    files: tuple[str, ...] = ()
    """Names beside config.json (`mask_embedding.pt`, …)."""
    extra: tuple[tuple[str, Any], ...] = ()
    """Fields of the drafter's own dialect that have no field here, by dotted name."""
    places: tuple[tuple[str, str], ...] = ()
    """Field here → where it stands in the file: `sliding_window` → `$.text_config.sliding_window`."""
    overridden: tuple[tuple[str, Any], ...] = ()
    """Fields that `--json-model-override-args` replaced → what the file itself says."""
    notes: tuple[str, ...] = ()
    """What a person should know of the file: values of a wrong type, duplicate keys, comments."""

    @classmethod
    def of(cls, fields: Mapping[str, Any], rope: Mapping[str, Any], **known: Any) -> ModelConfig:
        """From the fields that `parsing.model_config.read` found, and what else is known."""
        return cls(**{**fields, "rope": Rope(**rope), **known})

    def place(self, field: str) -> str:
        """Where a field stands in the file, or where it would."""
        known = dict(self.places)
        if field not in known and field.startswith("rope."):
            return f"{known.get('rope', '$.rope_scaling')}.{field.removeprefix('rope.')}"
        return known.get(field, f"$.{field}")


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightNames(Fact):
    """Tensors of a checkpoint, from an index, a header or a listing: not yet known whose they are."""

    names: tuple[str, ...]
    fc_weight_shape: tuple[int, ...] | None = None
    whole: bool = True
    """False where the listing was cut."""
