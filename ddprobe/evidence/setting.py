"""What a document of points says of where they were measured: the target, the server's arguments, the cards.

    {"model": "Kimi-K2.6", "gpus": "8 x RTX PRO 6000", "engine": "sglang", "server_args": {"tp_size": 8, …}, "points": […]}

`target_config` holds a config.json whole; a model's name alone stands for its published configuration, where that is known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ddprobe.engines.base import mapping, text
from ddprobe.facts import GpuSample, ModelConfig, ServerArgs
from ddprobe.model import Cite, Fact
from ddprobe.parsing import model_config

MOST_CARDS = 64
MOST_ARGUMENTS = 400
ENGINES = ("sglang", "vllm", "llamacpp")
_COUNTED = re.compile(r"\s*(\d{1,2})\s*[x×*]\s*(\S.*)", re.IGNORECASE)

PUBLISHED: tuple[tuple[re.Pattern[str], str, Mapping[str, Any]], ...] = (
    (
        re.compile(r"\bkimi[-_ ]?k2\.[56]\b", re.IGNORECASE),
        "Kimi K2.5 and K2.6",
        {
            "architectures": ["KimiK25ForConditionalGeneration"],
            "model_type": "kimi_k25",
            "text_config": {
                "model_type": "kimi_k2",
                "hidden_size": 7168,
                "num_hidden_layers": 61,
                "num_attention_heads": 64,
                "q_lora_rank": 1536,
                "kv_lora_rank": 512,
                "qk_nope_head_dim": 128,
                "qk_rope_head_dim": 64,
                "v_head_dim": 128,
                "n_routed_experts": 384,
                "num_experts_per_tok": 8,
                "n_shared_experts": 1,
                "moe_intermediate_size": 2048,
                "first_k_dense_replace": 1,
                "intermediate_size": 18432,
                "vocab_size": 163840,
                "max_position_embeddings": 262144,
                "dtype": "bfloat16",
                "quantization_config": {
                    "quant_method": "compressed-tensors",
                    "config_groups": {"group_0": {"weights": {"num_bits": 4, "group_size": 32}}},
                    "ignore": ["lm_head", "self_attn", "shared_experts", "mlp.gate_proj"],
                },
            },
        },
    ),
)
"""Targets by name → what the makers publish as their configuration, as far as a roofline needs it."""


def facts(key: str, whole: Mapping[str, Any]) -> Iterator[Fact]:
    """The target's configuration, the arguments and the cards, as far as the document tells."""
    yield from _target(key, whole)
    yield from _arguments(key, whole)
    yield from _cards(key, whole)


def _target(key: str, whole: Mapping[str, Any]) -> Iterator[ModelConfig]:
    given, name = mapping(whole.get("target_config")), text(whole.get("model"))
    if given:
        yield _config(key, "$.target_config", given, key, ())
        return
    for pattern, label, published in PUBLISHED:
        if pattern.search(name):
            note = f"the published configuration of {label}, by the model's name: the file that is served was not read"
            yield _config(key, "$.model", published, name[:200], (note,))
            return


def _config(key: str, at: str, value: Mapping[str, Any], path: str, notes: tuple[str, ...]) -> ModelConfig:
    read = model_config.read(value)
    return ModelConfig.of(
        {**read.fields, "notes": (*notes, *read.fields["notes"])},
        read.rope,
        role="target",
        path=path,
        source=(Cite(key, at),),
    )


def _arguments(key: str, whole: Mapping[str, Any]) -> Iterator[ServerArgs]:
    from ddprobe import engines

    named = text(whole.get("engine")).lower()
    engine = engines.TABLE[named if named in ENGINES else "sglang"]
    given = {
        name.lstrip("-").replace("-", "_"): value
        for name, value in list(mapping(whole.get("server_args")).items())[:MOST_ARGUMENTS]
        if isinstance(name, str)
    }
    aliases = {name.replace("-", "_"): own for name, own in engine.dialect.aliases.items()}
    own = {aliases.get(name, name): value for name, value in given.items()}
    plain = tuple(
        (name, value)
        for name, value in engine.canonical(own).items()
        if isinstance(value, str | int | float | bool)
    )
    if plain:
        yield ServerArgs(
            engine=engine.name,
            origin="points",
            version=text(whole.get("version"))[:40],
            values=plain,
            # Who writes points down names the arguments that seem to matter: in force, and not all.
            resolved=True,
            cut=True,
            source=(Cite(key, "$.server_args"),),
        )


def _cards(key: str, whole: Mapping[str, Any]) -> Iterator[GpuSample]:
    told = whole.get("gpus", whole.get("gpu"))
    names = [name for name in told if isinstance(name, str)] if isinstance(told, list) else []
    if isinstance(told, str) and (counted := _COUNTED.fullmatch(told)):
        names = [counted.group(2)] * int(counted.group(1))
    elif isinstance(told, str) and told.strip():
        names = [told.strip()]
    for index, name in enumerate(names[:MOST_CARDS]):
        yield GpuSample(index=index, name=name[:120], source=(Cite(key, "$.gpus"),))
