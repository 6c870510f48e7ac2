"""Reads a model's config.json: DFlash, DSpark, EAGLE-3 and speculators drafters, and any target.

    {"architectures": ["DFlashDraftModel"], "num_hidden_layers": 6, "rope_scaling": {"rope_type": "yarn", "factor": 64.0},
     "dflash_config": {"target_layer_ids": [1, 12, 24, 35, 47, 58], "mask_token_id": 163838}}

Where a field may stand in several places, the order is that of SGLang 0.5.23 and transformers 5: the language model's
own section before the file's top level; `dflash_config` before the top level, even when it says null; `rope_scaling`
before `rope_parameters`. Values of a wrong type are read where their meaning is plain, and noted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ddprobe.parsing.config_fields import LARGEST, MAX_LIST, Fields, Scope, kind_of, plain

SECTIONS = ("llm_config", "language_config", "text_config")
_LENGTHS = (
    "max_sequence_length",
    "seq_length",
    "max_seq_len",
    "model_max_length",
    "max_position_embeddings",
)
_ROPE_NUMBERS = (
    ("factor", "factor"),
    ("beta_fast", "beta_fast"),
    ("beta_slow", "beta_slow"),
    ("mscale", "mscale"),
    ("mscale_all_dim", "mscale_all_dim"),
    ("attn_factor", "attn_factor"),
    ("attention_factor", "attention_factor"),
)
_MAX_NOTES = 24
_OWN_SECTIONS = ("dflash_config", "dspark_config", "eagle_config", "speculators_config")
_IGNORED = ("ignore", "exclude_modules", "modules_to_not_convert", "ignored_layers")
_NEXTN = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_layers", "n_predict")
_EXPERTS = ("n_routed_experts", "num_experts", "num_local_experts")
_CHOSEN = ("num_experts_per_tok", "moe_topk", "num_experts_per_token")
_WIDTHS = (("fp8", 8.0), ("int8", 8.0), ("fp4", 4.0), ("int4", 4.0))
"""Widths that a method's name tells."""
_EXTRA = (
    "sample_from_anchor",
    "sliding_window_non_causal",
    "projector_type",
    "speculators_model_type",
    "num_nextn_predict_layers",
    "mtp_num_hidden_layers",
    "markov_rank",
    "dspark_markov_rank",
    "has_embed_tokens",
    "has_lm_head",
    "is_neox_style",
    "full_attention_interval",
)


@dataclass(frozen=True, slots=True)
class Read:
    """What stands in a config.json, under the names of `facts.ModelConfig` and `facts.Rope`."""

    fields: dict[str, Any]
    rope: dict[str, Any]


def read(config: Mapping[str, Any], overrides: Mapping[str, Any] | None = None) -> Read:
    """The fields of a config.json, with `--json-model-override-args` laid over it as SGLang does."""
    root, replaced = overlay(config, overrides or {})
    reader = _Reader(root)
    rope = reader.rope()
    fields = {**reader.shape(), **reader.attention(), **reader.speculation(), **reader.tokens()}
    fields |= {
        "context_length": reader.context_length(rope),
        "overridden": replaced,
        "extra": reader.extra(),
        "places": tuple(sorted(reader.places.items())),
        "notes": tuple(reader.notes)[:_MAX_NOTES],
    }
    return Read(fields, rope)


def overlay(
    config: Mapping[str, Any], overrides: Mapping[str, Any]
) -> tuple[Mapping[str, Any], tuple[tuple[str, Any], ...]]:
    """The file with the overrides over it, and each replaced field with what the file itself says."""
    root = dict(config)
    replaced: list[tuple[str, Any]] = []
    for key, value in overrides.items():
        current = root.get(key)
        replaced.append((key, plain(current)))
        if key in ("rope_scaling", "rope_parameters") and isinstance(value, Mapping):
            # transformers keeps one dictionary under both names, and SGLang merges into it.
            both = root.pop("rope_scaling", None) or root.pop("rope_parameters", None)
            root.pop("rope_parameters", None)
            root["rope_scaling"] = {**(both if isinstance(both, Mapping) else {}), **value}
        elif key in SECTIONS and isinstance(value, Mapping) and isinstance(current, Mapping):
            replaced[-1:] = [(f"{key}.{name}", plain(current.get(name))) for name in value]
            root[key] = {**current, **value}
        else:
            root[key] = value
    return root, tuple(replaced)


class _Reader(Fields):
    """A config.json, section by section."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        super().__init__(root)
        self.model = self._model_section()
        self.own = {name: self.section(self.top, name) for name in _OWN_SECTIONS}

    def _model_section(self) -> Scope:
        """The section that describes the language model; the file's top level when it has none."""
        thinker = self.section(self.top, "thinker_config")
        inner = self.section(thinker, "text_config")
        for scope in (inner, thinker, *(self.section(self.top, name) for name in SECTIONS)):
            if scope[0]:
                return scope
        layers = self.section(self.top, "transformer_layer_config")
        if layers[0]:
            self.note(
                "the layers are described in $.transformer_layer_config (speculators' dialect), "
                "which SGLang does not read"
            )
            return layers
        return self.top

    def shape(self) -> dict[str, Any]:
        """Sizes, heads, types of numbers."""
        root = self.top[0]
        names = root.get("architectures")
        if isinstance(names, str):
            self.note("$.architectures is a text, not a list of texts; read as a list of one")
            names = [names]
        auto_map = root.get("auto_map")
        dtype, _ = self.find("dtype", "dtype")
        if dtype is None:
            dtype, _ = self.find("dtype", "torch_dtype")
        integers = (
            "num_hidden_layers", "hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads",
            "head_dim", "q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim",
            "vocab_size", "draft_vocab_size", "num_loops", "target_hidden_size",
        )  # fmt: skip
        return {
            "architectures": self.texts(names, "$.architectures") or (),
            "model_type": self.text("model_type"),
            "custom_code": isinstance(auto_map, Mapping) and "AutoConfig" in auto_map,
            "dtype": dtype.removeprefix("torch.")[:40] if isinstance(dtype, str) else "",
            "quantization": self._quantization(),
            "quantization_ignore": self._quantization_ignore(),
            "quantization_bits": self._quantization_bits(),
            "n_routed_experts": self._first("n_routed_experts", _EXPERTS),
            "num_experts_per_tok": self._first("num_experts_per_tok", _CHOSEN),
            "n_shared_experts": self.integer("n_shared_experts"),
            "moe_intermediate_size": self.integer("moe_intermediate_size"),
            "first_k_dense_replace": self.integer("first_k_dense_replace"),
            "nextn_layers": self._nextn_layers(),
            "tie_word_embeddings": self.boolean("tie_word_embeddings"),
            **{name: self.integer(name) for name in integers},
        }

    def _quantization(self) -> str:
        value, path = self.find("quantization", "quantization_config", self.top, self.model)
        if value is None:
            value, path = self.find("quantization", "compression_config", self.top, self.model)
        if isinstance(value, str):
            return value[:60]
        if not isinstance(value, Mapping):
            if value is not None:
                self.note(f"{path} is {kind_of(value)}, not an object; ignored")
            return ""
        inner = value.get("quantization")
        found = {**(inner if isinstance(inner, Mapping) else {}), **value}
        parts = [found.get(name) for name in ("quant_method", "quant_algo", "format", "fmt")]
        words = [part for part in dict.fromkeys(parts) if isinstance(part, str) and part]
        bits = found.get("bits")
        if isinstance(bits, int):
            words.append(f"{bits} bit")
        return " ".join(words)[:80] or "a quantization_config without a method"

    def _quantization_ignore(self) -> tuple[str, ...] | None:
        scopes = (
            self.section(self.top, "quantization_config"),
            self.section(self.model, "quantization_config"),
        )
        for name in _IGNORED:
            for section, path in scopes:
                inner = section.get("quantization")
                for found in (section, inner if isinstance(inner, Mapping) else {}):
                    if isinstance(found.get(name), list):
                        return self.texts([str(each) for each in found[name]], f"{path}.{name}")
        return None

    def _quantization_bits(self) -> float | None:
        """Bits of one quantised weight, by number or by the name of the method."""
        for scope in (self.top, self.model):
            section, _ = self.section(scope, "quantization_config")
            groups = section.get("config_groups")
            weights = [
                group["weights"]
                for group in (groups.values() if isinstance(groups, Mapping) else ())
                if isinstance(group, Mapping) and isinstance(group.get("weights"), Mapping)
            ]
            told = [section.get("bits"), section.get("w_bit"), *(each.get("num_bits") for each in weights)]
            known = [
                bits
                for bits in told
                if isinstance(bits, int) and not isinstance(bits, bool) and 0 < bits <= 32
            ]
            if known:
                return float(known[0])
        method = self._quantization().lower()
        return next((bits for name, bits in _WIDTHS if name in method), None)

    def _nextn_layers(self) -> int | None:
        return self._first("nextn_layers", _NEXTN)

    def _first(self, field: str, names: tuple[str, ...]) -> int | None:
        """The first of these names that is there."""
        for name in names:
            value, path = self.find(field, name)
            if value is not None:
                return self.as_int(value, path)
        return None

    def attention(self) -> dict[str, Any]:
        """Layer types, windows, causality."""
        types, path = self.find("layer_types", "layer_types")
        return {
            "layer_types": self.texts(types, path),
            "sliding_window": self.integer("sliding_window"),
            "use_sliding_window": self.boolean("use_sliding_window"),
            "max_window_layers": self.integer("max_window_layers"),
            "is_causal": self.boolean("is_causal"),
            "max_position_embeddings": self.integer("max_position_embeddings"),
        }

    def rope(self) -> dict[str, Any]:
        """Rotary embedding parameters from rope_scaling, rope_parameters or flat fields."""
        section, path = self._rope_dictionary()
        named = "rope_type" in section or "type" in section
        nested = {name: value for name, value in section.items() if isinstance(value, Mapping)}
        per_layer_type = bool(nested) and not named
        if per_layer_type:
            name = "full_attention" if "full_attention" in nested else next(iter(nested))
            section, path = nested[name], f"{path}.{name[:100]}"
        own: Scope = (section, path)
        kind = self.text("rope_type", own, field="rope.kind")
        legacy = self.text("type", own, field="" if kind else "rope.kind")
        if kind and legacy and kind != legacy:
            self.note(f"{path} says rope_type {kind!r} and type {legacy!r}; rope_type counts")
        if section and not (kind or legacy):
            self.note(f"{path} has no rope_type: transformers 5 reads it as default and drops its factor")
        theta, at = self.find("rope.theta", "rope_theta", own, self.model, self.top)
        partial, partial_at = self.find(
            "rope.partial_rotary_factor", "partial_rotary_factor", own, self.model, self.top
        )
        found: dict[str, Any] = {
            "theta": self.as_float(theta, at),
            "kind": kind or legacy or ("default" if section else ""),
            "original_max_position": self.integer(
                "original_max_position_embeddings", own, field="rope.original_max_position"
            ),
            "partial_rotary_factor": self.as_float(partial, partial_at),
            "mrope_section": self.integers(*self.find("rope.mrope_section", "mrope_section", own)),
            "per_layer_type": per_layer_type,
        }
        for field, name in _ROPE_NUMBERS:
            found[field] = self.as_float(*self.find(f"rope.{field}", name, own))
        return found

    def _rope_dictionary(self) -> Scope:
        found = []
        for name in ("rope_scaling", "rope_parameters"):
            value, path = self.find(f"rope.{name}", name)
            self.places.pop(f"rope.{name}", None)
            if isinstance(value, Mapping) and value:
                found.append((value, path))
            elif value is not None and not isinstance(value, Mapping):
                self.note(f"{path} is {kind_of(value)}, not an object; ignored")
        if len(found) == 2 and found[0][0] != found[1][0]:
            self.note(f"{found[0][1]} and {found[1][1]} differ: transformers 5 takes rope_scaling")
        chosen: Scope = found[0] if found else ({}, f"{self.model[1]}.rope_scaling")
        if found:
            self.places["rope"] = chosen[1]
        return chosen

    def context_length(self, rope: Mapping[str, Any]) -> int | None:
        """As SGLang derives it: the first length field, times the factor unless the original length is stated."""
        factor = rope.get("factor") or 1.0
        if rope.get("original_max_position") is not None or rope.get("kind") == "llama3":
            factor = 1.0
        for name in _LENGTHS:
            length = self.integer(name, self.model, field="context_length")
            if length is not None:
                scaled = length * factor
                return int(scaled) if abs(scaled) <= LARGEST else None
        return None

    def speculation(self) -> dict[str, Any]:
        """What makes it a drafter."""
        dflash, dspark = self.own["dflash_config"], self.own["dspark_config"]
        is_dspark = self._is_dspark()
        block = self.as_int(*self.stated("block_size", "block_size", dflash))
        prefixed = self.integer("dspark_block_size", self.top, field="block_size")
        block = prefixed if prefixed is not None else block
        ids = self.integers(*self.find("target_layer_ids", "dspark_target_layer_ids", self.top))
        if ids is None:
            ids = self.integers(*self.stated("target_layer_ids", "target_layer_ids", dflash))
        aux_scopes = (self.top, dflash, self.own["eagle_config"])
        aux, aux_path = self.find("aux_hidden_state_layer_ids", "aux_hidden_state_layer_ids", *aux_scopes)
        if aux is None:
            aux, aux_path = self.find(
                "aux_hidden_state_layer_ids", "eagle_aux_hidden_state_layer_ids", *aux_scopes
            )
        return {
            "block_size": block,
            "block_size_places": self._block_sizes(dflash, dspark),
            "mask_token_id": self._mask_token_id(is_dspark),
            "mask_token": self._mask_token(dflash),
            "target_layer_ids": ids,
            "aux_hidden_state_layer_ids": self.integers(aux, aux_path),
            "num_target_layers": self.as_int(*self.stated("num_target_layers", "num_target_layers", dflash)),
            "dspark_gamma": block if is_dspark else None,
        }

    def _is_dspark(self) -> bool:
        root = self.top[0]
        names = root.get("architectures")
        return (
            any("dspark" in str(name).lower() for name in (names if isinstance(names, list) else [names]))
            or isinstance(root.get("dspark_config"), Mapping)
            or any(root.get(f"dspark_{name}") is not None for name in ("block_size", "markov_rank"))
        )

    def _block_sizes(self, dflash: Scope, dspark: Scope) -> tuple[tuple[str, int], ...]:
        stated = [
            (f"{path}.{name}", self.as_int(scope.get(name), f"{path}.{name}"))
            for (scope, path), name in (
                (self.top, "dspark_block_size"),
                (dflash, "block_size"),
                (dspark, "block_size"),
                (self.top, "block_size"),
            )
        ]
        return tuple((path, value) for path, value in stated if value is not None)

    def _mask_token_id(self, is_dspark: bool) -> int | None:
        dflash, dspark = self.own["dflash_config"], self.own["dspark_config"]
        if is_dspark:
            noise = self.integer("dspark_noise_token_id", self.top, field="mask_token_id")
            if noise is not None:
                return noise
            return self.integer("mask_token_id", dspark, dflash, self.model, self.top)
        return self.as_int(*self.stated("mask_token_id", "mask_token_id", dflash))

    def _mask_token(self, dflash: Scope) -> str:
        value, _ = self.stated("mask_token", "mask_token", dflash)
        if isinstance(value, Mapping):
            value = value.get("content")
        return value[:80] if isinstance(value, str) else ""

    def tokens(self) -> dict[str, Any]:
        """Ids of special tokens that the model's config names."""
        value, path = self.find("eos_token_ids", "eos_token_id")
        eos = self.integers(value if isinstance(value, list) else [value] if value is not None else [], path)
        return {
            "pad_token_id": self.integer("pad_token_id"),
            "bos_token_id": self.integer("bos_token_id"),
            "eos_token_ids": eos or (),
        }

    def extra(self) -> tuple[tuple[str, Any], ...]:
        """The drafter's own fields that have no field of ours."""
        known = {"target_layer_ids", "mask_token_id", "mask_token", "block_size", "num_target_layers"}
        known |= {"aux_hidden_state_layer_ids", "eagle_aux_hidden_state_layer_ids"}
        found = {name: self.top[0][name] for name in _EXTRA if name in self.top[0]}
        for name, (section, _) in self.own.items():
            found |= {f"{name}.{key}": value for key, value in section.items() if key not in known}
        rope, path = self._rope_dictionary()
        for key in ("mrope_section", "rope_dim"):
            if key in rope:
                found[f"{path.removeprefix('$.')}.{key}"] = rope[key]
        return tuple((key[:100], plain(value)) for key, value in sorted(found.items())[:60])


def special_ids(tokenizer_config: Mapping[str, Any]) -> tuple[int, ...] | None:
    """Ids that a tokenizer_config.json adds or marks as special; None when it lists none."""
    added = tokenizer_config.get("added_tokens_decoder")
    if not isinstance(added, Mapping):
        return None
    ids = sorted({int(key) for key in added if isinstance(key, str) and key.isdecimal() and len(key) < 12})
    return tuple(ids[:MAX_LIST]) or None
