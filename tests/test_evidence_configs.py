"""Model configurations, GGUF metadata, tensor names and source lines among collected files."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ddprobe import lints
from ddprobe.evidence import configs, source_lines
from ddprobe.evidence.document import Found, of_bytes
from ddprobe.facts import ModelConfig, ServerArgs, ServerProcess, SourceHit, WeightNames
from ddprobe.model import Fact, Outcome

DRAFTER: dict[str, Any] = {
    "architectures": ["DFlashDraftModel"],
    "model_type": "qwen3",
    "num_hidden_layers": 5,
    "hidden_size": 4096,
    "vocab_size": 151936,
    "block_size": 16,
    "dflash_config": {"mask_token_id": 151669, "target_layer_ids": [1, 9, 17, 25, 33]},
}
TARGET: dict[str, Any] = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "num_hidden_layers": 36,
    "hidden_size": 4096,
    "vocab_size": 151936,
    "max_position_embeddings": 40960,
}


def look(content: Any, key: str = "a") -> Found | None:
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    document = of_bytes(key, data)
    return configs.recognise(document, document.sample())


def facts(*contents: Any) -> list[Fact]:
    found = [look(content, f"file {n}") for n, content in enumerate(contents)]
    return [fact for each in found if each is not None for fact in each.facts]


def config(*contents: Any, role: str = "drafter") -> ModelConfig:
    (one,) = [f for f in configs.merge(facts(*contents)) if isinstance(f, ModelConfig) and f.role == role]
    return one


# --- which role --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "role"),
    [
        (DRAFTER, "drafter"),
        (TARGET, "target"),
        (
            {"architectures": ["Qwen3_5ForConditionalGeneration"], "text_config": {"hidden_size": 5120}},
            "target",
        ),
        (
            {"architectures": ["LlamaForCausalLMEagle3"], "hidden_size": 4096, "draft_vocab_size": 32000},
            "drafter",
        ),
        ({"architectures": ["Qwen3DSparkModel"], "hidden_size": 4096, "dspark_block_size": 7}, "drafter"),
        ({"architectures": ["DeepseekV3ForCausalLMNextN"], "hidden_size": 7168}, "drafter"),
        ({"model_type": "llama", "num_hidden_layers": 32, "num_nextn_predict_layers": 1}, "target"),
        (
            {
                "architectures": ["Eagle3Speculator"],
                "speculators_config": {"algorithm": "eagle3"},
                "transformer_layer_config": {"hidden_size": 4096, "num_hidden_layers": 1},
            },
            "drafter",
        ),
        ({"architectures": ["Qwen3ForCausalLM"], "hidden_size": 8, "target_layer_ids": [1, 2]}, "drafter"),
    ],
)
def test_the_role_is_told_by_content(content: dict[str, Any], role: str) -> None:
    (fact,) = facts(content)
    assert isinstance(fact, ModelConfig)
    assert fact.role == role


@pytest.mark.parametrize(
    "content",
    [
        {"tokenizer_class": "Qwen2Tokenizer", "added_tokens_decoder": {}},
        {"eos_token_id": 1, "temperature": 0.6, "transformers_version": "5.0"},
        {"schema": "case-points/1", "points": []},
        [DRAFTER],
        b"{",
        b"{not json at all",
        b"",
        b"Decode batch, accept len: 1.00",
    ],
)
def test_anything_else_is_left_alone(content: Any) -> None:
    assert look(content) is None


def test_a_speculators_file_gives_its_layers_and_its_shifted_taps() -> None:
    one = config(
        {
            "architectures": ["DFlashDraftModel"],
            "speculators_config": {"algorithm": "dflash"},
            "transformer_layer_config": {"hidden_size": 2048, "num_hidden_layers": 5},
            "aux_hidden_state_layer_ids": [2, 10, 18],
            "block_size": 16,
        }
    )
    assert (one.hidden_size, one.num_hidden_layers) == (2048, 5)
    assert one.aux_hidden_state_layer_ids == (2, 10, 18)
    assert one.target_layer_ids is None


def test_next_token_layers_and_what_is_left_plain_are_read() -> None:
    inner = {"num_hidden_layers": 64, "hidden_size": 5120, "mtp_num_hidden_layers": 1}
    one = config(
        {
            "architectures": ["Qwen3_5ForConditionalGeneration"],
            "text_config": inner,
            "quantization_config": {
                "quant_method": "compressed-tensors",
                "ignore": ["lm_head", "re:.*mtp.*"],
            },
        },
        role="target",
    )
    assert one.nextn_layers == 1
    assert one.place("nextn_layers") == "$.text_config.mtp_num_hidden_layers"
    assert one.quantization_ignore == ("lm_head", "re:.*mtp.*")


# --- GGUF --------------------------------------------------------------------------------------------------

GGUF_DUMP = b"""* Loading: draft.gguf
      1: UINT32     |        1 | GGUF.version = 3
      4: STRING     |        1 | general.architecture = 'dflash'
      5: UINT32     |        1 | dflash.block_count = 5
      6: UINT32     |        1 | dflash.embedding_length = 5120
      7: UINT32     |        1 | dflash.attention.sliding_window = 4096
      8: FLOAT32    |        1 | dflash.rope.freq_base = 10000000.0
      9: UINT32     |        1 | dflash.context_length = 8192
"""
LOADER = b"""llama_model_loader: - kv   0:                       general.architecture str              = qwen3
llama_model_loader: - kv   1:                          qwen3.block_count u32              = 36
llama_model_loader: - kv   2:                     qwen3.embedding_length u32              = 4096
llama_model_loader: - kv   3:              qwen3.rope.scaling.type str              = yarn
llama_model_loader: - kv   4:              qwen3.rope.scaling.factor f32              = 4.000000
"""


def test_gguf_metadata_is_read_from_a_flat_dump() -> None:
    one = config(
        {
            "general.architecture": "dflash-draft",
            "dflash.block_count": 5,
            "dflash.block_size": 16,
            "dflash.attention.sliding_window": 4096,
            "dflash.context_length": 4096,
        }
    )
    assert (one.num_hidden_layers, one.block_size, one.sliding_window, one.context_length) == (
        5,
        16,
        4096,
        4096,
    )


def test_gguf_metadata_is_read_from_a_typed_dump() -> None:
    values = {"general.architecture": "qwen3", "qwen3.block_count": 36}
    typed = {"metadata": {key: {"index": 1, "type": "X", "value": value} for key, value in values.items()}}
    one = config(typed, role="target")
    assert one.num_hidden_layers == 36


def test_gguf_metadata_is_read_from_gguf_dump() -> None:
    one = config(GGUF_DUMP)
    assert (one.hidden_size, one.sliding_window, one.rope.theta) == (5120, 4096, 10000000.0)
    assert one.context_length == 8192


def test_gguf_metadata_is_read_from_the_loaders_log() -> None:
    one = config(LOADER, role="target")
    assert (one.num_hidden_layers, one.hidden_size) == (36, 4096)
    assert (one.rope.kind, one.rope.factor) == ("yarn", 4.0)


# --- tensors -----------------------------------------------------------------------------------------------


def header(tensors: dict[str, Any]) -> bytes:
    text = json.dumps(tensors).encode()
    return len(text).to_bytes(8, "little") + text + b"\xff\x00" * 40


def test_an_index_goes_to_the_configuration_with_as_many_layers() -> None:
    index = {"weight_map": {f"model.layers.{n}.self_attn.o_proj.weight": "a.safetensors" for n in range(36)}}
    assert config(DRAFTER, TARGET, index, role="target").tensors is not None
    assert config(DRAFTER, TARGET, index).tensors is None


def test_a_safetensors_file_gives_names_and_the_shape_of_fc() -> None:
    tensors = {
        "fc.weight": {"dtype": "BF16", "shape": [4096, 20480], "data_offsets": [0, 1]},
        "layers.4.mlp.up_proj.weight": {"dtype": "BF16", "shape": [1, 1], "data_offsets": [1, 2]},
    }
    one = config(header(tensors), TARGET, DRAFTER)
    assert one.fc_weight_shape == (4096, 20480)
    assert one.tensors == ("fc.weight", "layers.4.mlp.up_proj.weight")
    assert [f.outcome for f in lints.judge([one]) if f.id == "DC06"] == [Outcome.PASS]


def test_a_header_as_json_and_a_listing_in_text_say_the_same() -> None:
    as_json = {"fc.weight": {"dtype": "BF16", "shape": [4096, 20480]}, "norm.weight": {"shape": [4096]}}
    listing = b"fc.weight  BF16  [4096, 20480]\nnorm.weight torch.Size([4096]) torch.bfloat16\n"
    for content in (as_json, listing):
        (fact,) = facts(content)
        assert isinstance(fact, WeightNames)
        assert fact.names == ("fc.weight", "norm.weight")
        assert fact.fc_weight_shape == (4096, 20480)


def test_tensors_that_fit_two_models_go_to_none() -> None:
    index = {"weight_map": {"model.embed_tokens.weight": "a.safetensors"}}
    merged = configs.merge(facts(TARGET, {**TARGET, "hidden_size": 2048}, index))
    assert all(f.tensors is None for f in merged if isinstance(f, ModelConfig))
    assert not [f for f in merged if isinstance(f, WeightNames)]


def test_a_drafters_tensors_never_go_to_a_target() -> None:
    index = {"weight_map": {"fc.weight": "a.safetensors", "layers.35.mlp.up_proj.weight": "a.safetensors"}}
    assert config(TARGET, index, role="target").tensors is None


# --- joining -----------------------------------------------------------------------------------------------


def args(**values: Any) -> ServerArgs:
    return ServerArgs(engine="sglang", origin="log", values=tuple(values.items()))


def test_of_two_plain_models_the_smaller_drafts_where_a_server_has_a_draft_model() -> None:
    small = {**TARGET, "num_hidden_layers": 28, "hidden_size": 1024}
    both = facts(TARGET, small)
    roles = {f.hidden_size: f.role for f in configs.merge(both) if isinstance(f, ModelConfig)}
    assert roles == {4096: "target", 1024: "target"}
    merged = configs.merge([*both, args(speculative_draft_model_path="/models/small")])
    assert {f.hidden_size: f.role for f in merged if isinstance(f, ModelConfig)} == {
        4096: "target",
        1024: "drafter",
    }


def test_a_configuration_belongs_to_the_only_server() -> None:
    process = ServerProcess(engine="sglang", pid=0, argv=("python",))
    merged = configs.merge([process, *facts(DRAFTER)])
    assert [f.server for f in merged if isinstance(f, ModelConfig)] == [process.name]
    other = ServerProcess(engine="sglang", pid=7, argv=("python",))
    merged = configs.merge([process, other, *facts(DRAFTER)])
    assert [f.server for f in merged if isinstance(f, ModelConfig)] == [""]


def test_overrides_of_the_launch_are_laid_over_the_file() -> None:
    sliding = {**DRAFTER, "layer_types": ["sliding_attention"] * 5, "sliding_window": 2048}
    override = {"layer_types": ["full_attention"] * 5, "rope_scaling": {"rope_type": "yarn", "factor": 4.0}}
    merged = configs.merge([args(json_model_override_args=override), *facts(sliding)])
    (one,) = [f for f in merged if isinstance(f, ModelConfig)]
    assert one.layer_types == ("full_attention",) * 5
    assert one.sliding_window == 2048
    assert (one.rope.kind, one.rope.factor) == ("yarn", 4.0)
    assert dict(one.overridden)["layer_types"] == ("sliding_attention",) * 5


def test_a_file_that_was_collected_twice_counts_once() -> None:
    assert len(configs.merge(facts(DRAFTER, DRAFTER))) == 1


def test_facts_of_others_are_left_as_they_are() -> None:
    others: list[Fact] = [args(hf_overrides={"a": 1}), args(hf_overrides={"a": 1})]
    assert configs.merge(others) == tuple(others)


# --- source lines ------------------------------------------------------------------------------------------


def test_grepped_lines_are_read() -> None:
    text = b'/opt/models/draft_model.py:118:        theta = getattr(cfg, "rope_theta", 10000.0)\nnoise\n'
    document = of_bytes("g", text)
    found = source_lines.recognise(document, document.sample())
    assert found is not None
    (hit,) = found.facts
    assert isinstance(hit, SourceHit)
    assert (hit.path, hit.line) == ("/opt/models/draft_model.py", 118)


@pytest.mark.parametrize("text", [b"", b"2026-01-01 10:00:00 server.log: 12 lines", b"https://x.py/a: 1"])
def test_other_lines_are_none(text: bytes) -> None:
    document = of_bytes("g", text)
    assert source_lines.recognise(document, document.sample()) is None
