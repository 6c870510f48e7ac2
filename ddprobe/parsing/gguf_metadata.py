"""Reads what a GGUF file says of its model, from a dump as JSON, from `gguf-dump`, or from llama.cpp's loader log.

    {"general.architecture": "dflash", "dflash.block_count": 5, "dflash.attention.sliding_window": 4096}
          4: UINT32     |        1 | dflash.block_count = 5
    llama_model_loader: - kv   4:       dflash.block_count u32              = 5

Keys are `<architecture>.<field>`; fields are said in the words of a config.json where both mean the same. Tapped layers
are not among them: GGUF writers count them from 0 or from 1, and the file does not say which.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

ARCHITECTURE = "general.architecture"
_DUMP = re.compile(r"^\s*\d+: [A-Z0-9\[\],]+\s*\|\s*\d+\s*\| (?P<key>[\w.\-]+)\s*= (?P<value>.*)$")
_LOADER = re.compile(r"\bkv\s+\d+:\s+(?P<key>[\w.\-]+) (?:[a-z]+\d*|arr\[[^]]*\])\s+= (?P<value>.*)$")
_FIELDS = {
    "block_count": "num_hidden_layers",
    "embedding_length": "hidden_size",
    "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim",
    "attention.sliding_window": "sliding_window",
    "context_length": "max_position_embeddings",
    "vocab_size": "vocab_size",
    "block_size": "block_size",
    "mask_token_id": "mask_token_id",
    "nextn_predict_layers": "num_nextn_predict_layers",
}
_TOKENS = {
    "tokenizer.ggml.bos_token_id": "bos_token_id",
    "tokenizer.ggml.eos_token_id": "eos_token_id",
    "tokenizer.ggml.padding_token_id": "pad_token_id",
    "tokenizer.ggml.mask_token_id": "mask_token_id",
}
_ROPE = {
    "rope.freq_base": "rope_theta",
    "rope.scaling.type": "rope_type",
    "rope.scaling.factor": "factor",
    "rope.scaling.original_context_length": "original_max_position_embeddings",
    "rope.dimension_sections": "mrope_section",
}
_DRAFTERS = re.compile(r"dflash|dspark|eagle|draft|medusa", re.IGNORECASE)


def of_lines(lines: Iterable[str]) -> dict[str, Any]:
    """Keys and values of a `gguf-dump` or of a loader's log; of a key that stands twice, the first."""
    found: dict[str, Any] = {}
    for line in lines:
        if (match := _DUMP.match(line) or _LOADER.search(line)) and len(found) < 4096:
            found.setdefault(match["key"], _value(match["value"].strip()))
    return found


def of_json(value: Mapping[str, Any]) -> dict[str, Any]:
    """Keys and values of a dump as JSON: flat, or each with its type beside it as `gguf-dump --json` writes them."""
    inner = value.get("metadata")
    if isinstance(inner, Mapping) and ARCHITECTURE in inner:
        value = inner
    return {
        str(key): each["value"] if isinstance(each, Mapping) and "value" in each else each
        for key, each in value.items()
    }


def is_drafter(metadata: Mapping[str, Any]) -> bool:
    """True when the architecture is one of a drafter."""
    return bool(_DRAFTERS.search(str(metadata.get(ARCHITECTURE, ""))))


def as_config(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata as a config.json would say it; what has no counterpart there is left out."""
    architecture = str(metadata.get(ARCHITECTURE, ""))
    config: dict[str, Any] = {"architectures": [architecture], "model_type": architecture}
    rope: dict[str, Any] = {}
    for key, value in metadata.items():
        field = key.partition(".")[2]
        if key in _TOKENS:
            config.setdefault(_TOKENS[key], value)
        elif field in _FIELDS and not key.startswith(("general.", "tokenizer.")):
            config[_FIELDS[field]] = value
        elif field in _ROPE:
            rope[_ROPE[field]] = value
    if rope:
        rope.setdefault("rope_type", "default")
        config["rope_parameters"] = rope
    return config


def _value(text: str) -> Any:
    if re.fullmatch(r"[+-]?\d{1,18}", text):
        return int(text)
    if re.fullmatch(r"[+-]?\d+\.\d*(e[+-]?\d+)?", text):
        return float(text)
    if text[:1] == "[" and text[-1:] == "]" and re.fullmatch(r"[\d,\s\-]*", text[1:-1]):
        return [int(each) for each in re.findall(r"-?\d{1,18}", text)]
    return {"true": True, "false": False}.get(text, text.strip("'\"")[:400])
