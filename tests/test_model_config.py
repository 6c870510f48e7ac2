"""config.json of every dialect, and of none: what is read, in which order, and what is noted."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest

from ddprobe.engines import sglang_reading
from ddprobe.facts import ModelConfig
from ddprobe.parsing import model_config, safetensors
from ddprobe.parsing.safetensors import NotSafetensors
from ddprobe.parsing.version import before, release


def read(config: dict[str, Any], overrides: dict[str, Any] | None = None) -> ModelConfig:
    found = model_config.read(config, overrides)
    return ModelConfig.of(found.fields, found.rope, role="drafter", path="/x/config.json")


# --- dialects ----------------------------------------------------------------------------------------------


def test_dflash_as_published_for_kimi() -> None:
    config = read(
        {
            "architectures": ["DFlashDraftModel"],
            "model_type": "qwen3",
            "hidden_size": 7168,
            "num_hidden_layers": 6,
            "num_attention_heads": 64,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "vocab_size": 163840,
            "num_target_layers": 61,
            "block_size": 8,
            "max_position_embeddings": 262144,
            "rope_theta": 50000.0,
            "rope_scaling": {
                "rope_type": "yarn",
                "factor": 64.0,
                "original_max_position_embeddings": 4096,
                "beta_fast": 32.0,
                "beta_slow": 1.0,
                "mscale": 1.0,
                "mscale_all_dim": 1.0,
            },
            "dflash_config": {"mask_token_id": 163838, "target_layer_ids": [1, 12, 24, 35, 47, 58]},
        }
    )
    assert config.target_layer_ids == (1, 12, 24, 35, 47, 58)
    assert (config.mask_token_id, config.block_size, config.num_target_layers) == (163838, 8, 61)
    assert config.rope.kind == "yarn"
    assert (config.rope.theta, config.rope.factor, config.rope.original_max_position) == (50000.0, 64.0, 4096)
    assert config.context_length == 262144
    assert config.dspark_gamma is None
    assert config.place("target_layer_ids") == "$.dflash_config.target_layer_ids"
    assert config.place("rope.factor") == "$.rope_scaling.factor"
    assert config.place("rope.attn_factor") == "$.rope_scaling.attn_factor"
    assert config.notes == ()


def test_a_target_with_a_section_for_its_language_model() -> None:
    config = read(
        {
            "architectures": ["KimiK25ForConditionalGeneration"],
            "model_type": "kimi_k25",
            "eos_token_id": [163585, 163586],
            "text_config": {
                "model_type": "kimi_k2",
                "hidden_size": 7168,
                "num_hidden_layers": 61,
                "kv_lora_rank": 512,
                "vocab_size": 163840,
                "rope_scaling": {"type": "yarn", "factor": 64.0, "original_max_position_embeddings": 4096},
                "quantization_config": {"quant_method": "compressed-tensors", "format": "pack-quantized"},
            },
        }
    )
    assert config.architectures == ("KimiK25ForConditionalGeneration",)
    assert (config.hidden_size, config.num_hidden_layers, config.kv_lora_rank) == (7168, 61, 512)
    assert config.rope.kind == "yarn"
    assert config.eos_token_ids == (163585, 163586)
    assert config.quantization == "compressed-tensors pack-quantized"
    assert config.place("hidden_size") == "$.text_config.hidden_size"


def test_dflash_config_comes_before_the_top_level_even_as_null() -> None:
    config = read(
        {
            "block_size": 16,
            "target_layer_ids": [1, 2],
            "dflash_config": {"block_size": 8, "target_layer_ids": None},
        }
    )
    assert config.block_size == 8
    assert config.block_size_places == (("$.dflash_config.block_size", 8), ("$.block_size", 16))
    assert config.target_layer_ids is None


def test_dspark_prefixed_and_nested() -> None:
    config = read(
        {"dspark_block_size": 5, "dspark_markov_rank": 8, "dspark_noise_token_id": 77, "block_size": 9}
    )
    assert (config.dspark_gamma, config.mask_token_id) == (5, 77)
    config = read(
        {"architectures": ["Qwen3DSparkModel"], "block_size": 7, "dflash_config": {"mask_token_id": 3}}
    )
    assert (config.dspark_gamma, config.mask_token_id) == (7, 3)


def test_eagle3_and_speculators() -> None:
    config = read(
        {
            "architectures": ["LlamaForCausalLMEagle3"],
            "hidden_size": 4096,
            "target_hidden_size": 7168,
            "draft_vocab_size": 32000,
            "eagle_config": {"eagle_aux_hidden_state_layer_ids": [2, 18, 33], "use_aux_hidden_state": True},
        }
    )
    assert (config.target_hidden_size, config.draft_vocab_size) == (7168, 32000)
    assert config.aux_hidden_state_layer_ids == (2, 18, 33)
    assert ("eagle_config.use_aux_hidden_state", True) in config.extra
    config = read(
        {
            "speculators_model_type": "dflash",
            "aux_hidden_state_layer_ids": [2, 10, 18],
            "mask_token_id": 151669,
            "transformer_layer_config": {"hidden_size": 4096, "num_hidden_layers": 5, "rope_theta": 1e6},
        }
    )
    assert (config.hidden_size, config.num_hidden_layers, config.mask_token_id) == (4096, 5, 151669)
    assert "SGLang does not read" in config.notes[0]
    assert ("speculators_model_type", "dflash") in config.extra


# --- RoPE --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "theta", "kind"),
    [
        ({}, None, ""),
        ({"rope_theta": 1000000, "rope_scaling": None}, 1000000.0, ""),
        (
            {"rope_parameters": {"rope_theta": 5e6, "rope_type": "default"}, "rope_scaling": None},
            5e6,
            "default",
        ),
        ({"rope_theta": 1, "rope_parameters": {"rope_theta": 2, "rope_type": "default"}}, 2.0, "default"),
        ({"rope_theta": 3, "rope_scaling": {"type": "linear", "factor": 2}}, 3.0, "linear"),
        ({"rope_scaling": {"rope_type": "yarn"}, "rope_parameters": {"rope_type": "default"}}, None, "yarn"),
    ],
)
def test_rope_reading_order(config: dict[str, Any], theta: float | None, kind: str) -> None:
    rope = read(config).rope
    assert (rope.theta, rope.kind) == (theta, kind)


def test_rope_notes() -> None:
    both = read({"rope_scaling": {"rope_type": "yarn"}, "rope_parameters": {"rope_type": "default"}})
    assert "transformers 5 takes rope_scaling" in both.notes[0]
    assert "drops its factor" in read({"rope_scaling": {"factor": 4.0}}).notes[0]
    assert "rope_type counts" in read({"rope_scaling": {"rope_type": "yarn", "type": "su"}}).notes[0]
    assert "not an object; ignored" in read({"rope_scaling": "yarn"}).notes[0]


def test_rope_nested_per_layer_type() -> None:
    nested = {
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
        "full_attention": {"rope_type": "yarn", "factor": 4},
    }
    config = read({"rope_parameters": nested})
    assert config.rope.per_layer_type
    assert (config.rope.kind, config.rope.factor) == ("yarn", 4.0)
    assert config.place("rope.factor") == "$.rope_parameters.full_attention.factor"


@pytest.mark.parametrize(
    ("config", "length"),
    [
        ({"max_position_embeddings": 4096}, 4096),
        ({"max_position_embeddings": 4096, "rope_scaling": {"rope_type": "yarn", "factor": 4.0}}, 16384),
        ({"max_position_embeddings": 4096, "rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, 4096),
        (
            {
                "max_position_embeddings": 4096,
                "rope_scaling": {"type": "yarn", "factor": 4, "original_max_position_embeddings": 1024},
            },
            4096,
        ),
        ({"max_position_embeddings": 4096, "model_max_length": 1024}, 1024),
        ({}, None),
    ],
)
def test_context_length_is_derived_as_sglang_does(config: dict[str, Any], length: int | None) -> None:
    assert read(config).context_length == length


# --- wrong types and nonsense ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "expected", "noted"),
    [
        (2048, 2048, ""),
        ("2048", 2048, "the text '2048', not a whole number; read as 2048"),
        (2048.0, 2048, "the number 2048.0, not a whole number; read as 2048"),
        (2048.5, None, "ignored"),
        (None, None, ""),
        (True, None, "true, not a whole number; ignored"),
        ([2048], None, "a list of 1, not a whole number; ignored"),
        ({"a": 1}, None, "an object, not a whole number; ignored"),
        ("many", None, "ignored"),
        ("٢٠٤٨", None, "ignored"),
        (float("nan"), None, "ignored"),
        (float("inf"), None, "ignored"),
    ],
)
def test_whole_numbers_of_a_wrong_type(value: Any, expected: int | None, noted: str) -> None:
    config = read({"sliding_window": value})
    assert config.sliding_window == expected
    assert noted in "; ".join(config.notes)
    assert bool(config.notes) == bool(noted)


def test_other_wrong_types() -> None:
    config = read(
        {
            "architectures": "DFlashDraftModel",
            "use_sliding_window": "true",
            "is_causal": 7,
            "layer_types": "sliding_attention",
            "rope_theta": "1e6",
            "model_type": 5,
            "text_config": [],
            "dflash_config": "x",
            "quantization_config": 3,
            "target_layer_ids": ["1", 2.0, None],
            "eos_token_id": "x",
        }
    )
    assert config.architectures == ("DFlashDraftModel",)
    assert config.use_sliding_window is True
    assert config.is_causal is None
    assert config.layer_types is None
    assert config.rope.theta == 1e6
    assert config.target_layer_ids is None
    assert len(config.notes) >= 9
    assert read({"target_layer_ids": ["1", 2.0]}).target_layer_ids == (1, 2)


@pytest.mark.parametrize("value", [None, 1, "x", [], {}, [[]], {"a": {}}, True, float("nan"), 10**400])
def test_any_value_in_any_field_is_survived(value: Any) -> None:
    names = [
        "architectures", "model_type", "auto_map", "text_config", "llm_config", "thinker_config", "dflash_config",
        "dspark_config", "eagle_config", "speculators_config", "transformer_layer_config", "rope_scaling",
        "rope_parameters", "rope_theta", "quantization_config", "layer_types", "target_layer_ids", "block_size",
        "mask_token", "mask_token_id", "eos_token_id", "num_hidden_layers", "dtype", "max_position_embeddings",
        "aux_hidden_state_layer_ids", "partial_rotary_factor", "dspark_block_size", "dspark_target_layer_ids",
    ]  # fmt: skip
    for name in names:
        read({name: value})
        read({"dflash_config": {name: value}, "text_config": {name: value, "hidden_size": 1}})
        read({"rope_scaling": {"rope_type": value, "type": value, "factor": value, name: value}})
    read(dict.fromkeys(names, value))


def test_hostile_sizes_stay_small() -> None:
    config = read(
        {
            "layer_types": ["full_attention"] * 100_000,
            "dflash_config": {f"k{n}" * 100: "v" * 10_000 for n in range(1000)},
            "architectures": ["A" * 10_000],
        }
    )
    assert len(config.layer_types or ()) == 4096
    assert "more than 4096 entries" in config.notes[0]
    assert len(config.extra) == 60
    assert all(len(name) <= 100 and len(str(value)) <= 201 for name, value in config.extra)


# --- overrides ---------------------------------------------------------------------------------------------


def test_overrides_are_laid_over_the_file_as_sglang_does() -> None:
    config = read(
        {
            "layer_types": ["sliding_attention", "full_attention"],
            "rope_scaling": {"rope_type": "yarn", "factor": 4.0},
            "text_config": {"hidden_size": 1024, "vocab_size": 7},
        },
        {
            "layer_types": ["full_attention"] * 2,
            "rope_scaling": {"factor": 8.0},
            "text_config": {"hidden_size": 2048},
        },
    )
    assert config.layer_types == ("full_attention", "full_attention")
    assert (config.rope.kind, config.rope.factor) == ("yarn", 8.0)
    assert (config.hidden_size, config.vocab_size) == (2048, 7)
    assert dict(config.overridden)["layer_types"] == ("sliding_attention", "full_attention")
    assert dict(config.overridden)["text_config.hidden_size"] == 1024


# --- what SGLang makes of it -------------------------------------------------------------------------------

SLIDING = ["sliding_attention"] * 5 + ["full_attention"]


@pytest.mark.parametrize(
    ("config", "version", "types", "window"),
    [
        (
            {"layer_types": SLIDING, "sliding_window": 2048, "use_sliding_window": True},
            "0.5.23",
            (*SLIDING,),
            2048,
        ),
        ({"layer_types": SLIDING, "sliding_window": 2048}, "0.5.23", (*SLIDING,), None),
        (
            {"layer_types": SLIDING, "sliding_window": 2048, "model_type": "other"},
            "0.5.23",
            (*SLIDING,),
            2048,
        ),
        (
            {"layer_types": SLIDING, "sliding_window": 2048, "auto_map": {"AutoConfig": "own.Config"}},
            "0.5.23",
            (*SLIDING,),
            2048,
        ),
        (
            {"layer_types": SLIDING, "sliding_window": 2048, "use_sliding_window": True},
            "0.5.12",
            ("full_attention",) * 6,
            None,
        ),
        ({"sliding_window": 2048}, "0.5.23", ("full_attention",) * 6, None),
        (
            {"use_sliding_window": True, "max_window_layers": 4},
            "0.5.23",
            ("full_attention",) * 4 + ("sliding_attention",) * 2,
            4096,
        ),
        ({"use_sliding_window": True, "sliding_window": 512}, "0.5.23", ("full_attention",) * 6, 512),
    ],
)
def test_layers_as_sglang_runs_them(
    config: dict[str, Any], version: str, types: tuple[str, ...], window: int | None
) -> None:
    drafter = read({"model_type": "qwen3", "num_hidden_layers": 6, **config})
    layers = sglang_reading.layers(drafter, version)
    assert layers.types == types
    assert layers.window == window


@pytest.mark.parametrize(
    ("target", "draft", "ids"),
    [
        (61, 6, (1, 12, 24, 35, 47, 58)),
        (36, 5, (1, 9, 17, 25, 33)),
        (64, 5, (1, 16, 31, 46, 61)),
        (10, 1, (5,)),
        (3, 2, None),
    ],
)
def test_layer_ids_that_sglang_makes_up(target: int, draft: int, ids: tuple[int, ...] | None) -> None:
    assert sglang_reading.fallback_layer_ids(target, draft) == ids


@pytest.mark.parametrize(
    ("rope", "version", "amplitude"),
    [
        ({"rope_type": "yarn", "factor": 64, "mscale": 1, "mscale_all_dim": 1}, "0.5.15", 1.4159),
        ({"rope_type": "yarn", "factor": 64, "mscale": 1, "mscale_all_dim": 1}, "0.5.16", 1.0),
        ({"rope_type": "yarn", "factor": 64, "mscale": 1, "mscale_all_dim": 1}, "", None),
        ({"rope_type": "yarn", "factor": 64}, "", 1.4159),
        (
            {"rope_type": "yarn", "factor": 64, "mscale": 1, "mscale_all_dim": 1, "attn_factor": 1.4159},
            "0.5.23",
            1.4159,
        ),
        ({"rope_type": "deepseek_yarn", "factor": 64, "mscale": 1, "mscale_all_dim": 1}, "0.5.12", 1.0),
        ({"rope_type": "deepseek_yarn", "factor": 64}, "0.5.12", 1.4159),
        ({"rope_type": "yarn", "factor": 1}, "", 1.0),
    ],
)
def test_amplitude_of_yarn(rope: dict[str, Any], version: str, amplitude: float | None) -> None:
    found = sglang_reading.amplitude(read({"rope_scaling": rope}).rope, version)
    assert found == (pytest.approx(amplitude, abs=1e-4) if amplitude is not None else None)


# --- versions ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "boundary", "answer"),
    [
        ("0.5.12", "0.5.14", True),
        ("0.5.14", "0.5.14", False),
        ("v0.5.23", "0.5.14", False),
        ("0.5.9", "0.5.14", True),
        ("0.6", "0.5.14", False),
        ("0.5.13.post1", "0.5.14", True),
        ("0.5.14.post1+cu129", "0.5.14", False),
        ("0.5.14rc1", "0.5.14", None),
        ("0.5.14.dev5+gabc123", "0.5.14", None),
        ("0.5.13.post1.dev5+gabc", "0.5.14", None),
        ("0.5.13.dev5", "0.5.14", True),
        ("0.5.15.dev5", "0.5.14", False),
        ("0.0.0.dev0", "0.5.14", None),
        ("main", "0.5.14", None),
        ("fc1fee5", "0.5.14", None),
        ("", "0.5.14", None),
    ],
)
def test_versions(version: str, boundary: str, answer: bool | None) -> None:
    assert before(version, boundary) is answer


def test_release_numbers() -> None:
    assert release("0.5") == (0, 5, 0)
    assert release("0.4.10.post2") == (0, 4, 10)
    assert release("0.0.0") is None


# --- safetensors -------------------------------------------------------------------------------------------


def header(value: Any) -> bytes:
    text = json.dumps(value).encode()
    return struct.pack("<Q", len(text)) + text + b"\0" * 16


def test_safetensors_header() -> None:
    head = header(
        {
            "__metadata__": {"format": "pt"},
            "fc.weight": {"dtype": "BF16", "shape": [7168, 43008], "data_offsets": [0, 8]},
            "odd": {"shape": "none"},
            "odder": 5,
        }
    )
    assert [(t.name, t.shape) for t in safetensors.tensors(head)] == [
        ("fc.weight", (7168, 43008)),
        ("odd", ()),
        ("odder", ()),
    ]
    assert safetensors.header_size(head[:9]) == len(head) - 24


@pytest.mark.parametrize(
    ("head", "sentence"),
    [
        (b"", "too short"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 9\n", "git-lfs pointer"),
        (b"<!DOCTYPE html>", "no header length"),
        (b"\xff" * 64, "no header length"),
        (struct.pack("<Q", 100) + b"{" + b" " * 10, "was cut within its header (11 of 100 bytes)"),
        (struct.pack("<Q", 4) + b"{nop", "its header is not JSON"),
        (struct.pack("<Q", 100_000) + b"{" * 100_000, "its header is not JSON"),
    ],
)
def test_what_is_no_safetensors_header(head: bytes, sentence: str) -> None:
    with pytest.raises(NotSafetensors, match=sentence.replace("(", r"\(").replace(")", r"\)")):
        safetensors.tensors(head)


def test_special_ids() -> None:
    config = {"added_tokens_decoder": {"163585": {"content": "[EOS]"}, "163584": {}, "x": {}, "9" * 40: {}}}
    assert model_config.special_ids(config) == (163584, 163585)
    assert model_config.special_ids({}) is None
    assert model_config.special_ids({"added_tokens_decoder": []}) is None
