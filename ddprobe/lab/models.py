"""The models in a made-up host's Hugging Face cache: configurations as published, weights as headers only."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping
from typing import Any

from ddprobe.lab.tree import File, Link, Tree

Json = Mapping[str, Any]

KIMI_TARGET: Json = {
    "architectures": ["KimiK25ForConditionalGeneration"],
    "model_type": "kimi_k25",
    "dtype": "bfloat16",
    "bos_token_id": 163584,
    "eos_token_id": 163586,
    "pad_token_id": 163839,
    "text_config": {
        "architectures": ["DeepseekV3ForCausalLM"],
        "model_type": "kimi_k2",
        "dtype": "bfloat16",
        "hidden_size": 7168,
        "intermediate_size": 18432,
        "moe_intermediate_size": 2048,
        "num_hidden_layers": 61,
        "first_k_dense_replace": 1,
        "num_attention_heads": 64,
        "num_key_value_heads": 64,
        "q_lora_rank": 1536,
        "kv_lora_rank": 512,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
        "n_routed_experts": 384,
        "n_shared_experts": 1,
        "num_experts_per_tok": 8,
        "vocab_size": 163840,
        "max_position_embeddings": 262144,
        "rope_theta": 50000.0,
        "rope_scaling": {
            "type": "yarn",
            "factor": 64.0,
            "original_max_position_embeddings": 4096,
            "beta_fast": 32.0,
            "beta_slow": 1.0,
            "mscale": 1.0,
            "mscale_all_dim": 1.0,
        },
        "tie_word_embeddings": False,
        "quantization_config": {
            "quant_method": "compressed-tensors",
            "format": "pack-quantized",
            "config_groups": {
                "group_0": {
                    "targets": ["Linear"],
                    "weights": {"num_bits": 4, "group_size": 32, "type": "int"},
                }
            },
            "ignore": ["lm_head", "re:.*self_attn.*", "re:.*shared_experts.*"],
        },
    },
}

KIMI_DRAFTER: Json = {
    "architectures": ["DFlashDraftModel"],
    "model_type": "qwen3",
    "dtype": "bfloat16",
    "hidden_size": 7168,
    "intermediate_size": 18432,
    "num_hidden_layers": 6,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 163840,
    "rms_norm_eps": 1e-05,
    "num_target_layers": 61,
    "block_size": 8,
    "max_position_embeddings": 262144,
    "layer_types": ["sliding_attention"] * 5 + ["full_attention"],
    "sliding_window": 2048,
    "use_sliding_window": True,
    "rope_parameters": {
        "rope_type": "deepseek_yarn",
        "rope_theta": 50000.0,
        "factor": 64.0,
        "original_max_position_embeddings": 4096,
        "beta_fast": 32.0,
        "beta_slow": 1.0,
        "mscale": 1.0,
        "mscale_all_dim": 1.0,
    },
    "tie_word_embeddings": False,
    "dflash_config": {"mask_token_id": 163838, "target_layer_ids": [1, 12, 24, 35, 47, 58]},
}

QWEN_TARGET: Json = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "dtype": "bfloat16",
    "bos_token_id": 151643,
    "eos_token_id": 151645,
    "hidden_size": 2560,
    "intermediate_size": 9728,
    "num_hidden_layers": 36,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 151936,
    "max_position_embeddings": 262144,
    "rope_theta": 5000000,
    "rope_scaling": None,
    "sliding_window": None,
    "use_sliding_window": False,
    "max_window_layers": 36,
    "tie_word_embeddings": True,
}

QWEN_DRAFTER: Json = {
    "architectures": ["DFlashDraftModel"],
    "model_type": "qwen3",
    "dtype": "bfloat16",
    "hidden_size": 2560,
    "intermediate_size": 9728,
    "num_hidden_layers": 5,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 151936,
    "rms_norm_eps": 1e-06,
    "num_target_layers": 36,
    "block_size": 16,
    "max_position_embeddings": 262144,
    "rope_theta": 5000000,
    "rope_scaling": None,
    "layer_types": ["sliding_attention"] * 4 + ["full_attention"],
    "sliding_window": 2048,
    "use_sliding_window": True,
    "tie_word_embeddings": True,
    "dflash_config": {"mask_token_id": 151669, "target_layer_ids": [1, 9, 17, 25, 33]},
}


def tokenizer_config(special: Mapping[int, str]) -> Json:
    """The tokens that are no ordinary text."""
    return {
        "added_tokens_decoder": {
            str(number): {"content": text, "special": True} for number, text in special.items()
        },
        "model_max_length": 1000000000000000019884624838656,
    }


KIMI_TOKENS = tokenizer_config(
    {163584: "[BOS]", 163585: "[EOS]", 163586: "<|im_end|>", 163838: "[UNK]", 163839: "[PAD]"}
)
QWEN_TOKENS = tokenizer_config(
    {151643: "<|endoftext|>", 151644: "<|im_start|>", 151645: "<|im_end|>", 151669: "<|MASK|>"}
)


def special_name(files: Mapping[str, File], number: int) -> str:
    """What a model's tokenizer calls a special token; empty when it has none there."""
    tokens = json.loads(files["tokenizer_config.json"].content)["added_tokens_decoder"]
    return str(tokens.get(str(number), {}).get("content", ""))


def drafter_weights(config: Json, *, without: tuple[str, ...] = ()) -> File:
    """A safetensors file of a drafter in this shape: the whole header, no numbers.

    Parameters whose names begin as one of `without` are left out, as by a conversion that went wrong.
    """
    hidden, wide, head = config["hidden_size"], config["intermediate_size"], config["head_dim"]
    queries, keys = config["num_attention_heads"] * head, config["num_key_value_heads"] * head
    taps = len(config["dflash_config"]["target_layer_ids"])
    shapes = {"fc.weight": (hidden, taps * hidden), "hidden_norm.weight": (hidden,), "norm.weight": (hidden,)}
    for number in range(config["num_hidden_layers"]):
        at = f"layers.{number}"
        shapes |= {
            f"{at}.input_layernorm.weight": (hidden,),
            f"{at}.post_attention_layernorm.weight": (hidden,),
            f"{at}.self_attn.q_proj.weight": (queries, hidden),
            f"{at}.self_attn.k_proj.weight": (keys, hidden),
            f"{at}.self_attn.v_proj.weight": (keys, hidden),
            f"{at}.self_attn.o_proj.weight": (hidden, queries),
            f"{at}.self_attn.q_norm.weight": (head,),
            f"{at}.self_attn.k_norm.weight": (head,),
            f"{at}.mlp.gate_proj.weight": (wide, hidden),
            f"{at}.mlp.up_proj.weight": (wide, hidden),
            f"{at}.mlp.down_proj.weight": (hidden, wide),
        }
    return _safetensors({name: shape for name, shape in shapes.items() if not name.startswith(without)})


def _safetensors(shapes: Mapping[str, tuple[int, ...]]) -> File:
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, shape in shapes.items():
        size = 2
        for length in shape:
            size *= length
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return File(content=struct.pack("<Q", len(text)) + text, size=8 + len(text) + end)


def shards(count: int, gigabytes: float) -> dict[str, File]:
    """A large model's weight files, with empty headers."""
    names = (f"model-{number:05d}-of-{count:06d}.safetensors" for number in range(1, count + 1))
    return {
        name: File(content=struct.pack("<Q", 8) + b"{}      ", size=int(gigabytes * 1e9)) for name in names
    }


def document(value: Json) -> File:
    return File(content=(json.dumps(value, indent=2) + "\n").encode())


def add_to_cache(
    tree: Tree, cache: str, repository: str, files: Mapping[str, File], *, uid: int, now: int
) -> str:
    """Lay a model out as huggingface_hub does: blobs, a snapshot of links to them, and the name `main` for it."""
    folder = f"{cache}/models--{repository.replace('/', '--')}"
    revision = hashlib.sha1(f"ddprobe lab {repository}".encode(), usedforsecurity=False).hexdigest()
    for name, file in files.items():
        blob = hashlib.sha256(f"{repository} {name} ".encode() + file.content).hexdigest()
        blob = blob if name.endswith(".safetensors") else blob[:40]
        tree.add(f"{folder}/blobs/{blob}", File(content=file.content, size=file.size, uid=uid, modified=now))
        link = Link(target=f"../../blobs/{blob}", uid=uid, modified=now)
        tree.add(f"{folder}/snapshots/{revision}/{name}", link)
    tree.add(f"{folder}/refs/main", File(content=revision.encode(), uid=uid, modified=now))
    return f"{folder}/snapshots/{revision}"
