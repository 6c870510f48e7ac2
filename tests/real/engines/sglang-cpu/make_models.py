"""Makes the tiny models: a random Qwen3 target, a twin as draft model, a DFlash drafter, a byte-level tokenizer.

How often the DFlash drafter is right is under control. Its input is the embedding of the mask token, which the target
never reads: set to what makes the drafter say the token that the target repeats after `Hello`, it is right in every
position there (block 4: 4.0 tokens a step), and in none after `The quick brown fox` (1.0), at temperature 0.
"""

import json
import shutil
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

OUT = Path(sys.argv[1])
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|mask|>")
VOCABULARY = {piece: at for at, piece in enumerate((*sorted(pre_tokenizers.ByteLevel.alphabet()), *SPECIAL))}
END, MASK = VOCABULARY["<|endoftext|>"], VOCABULARY["<|mask|>"]
CONTEXT = 512
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{m['role']}}\n{{m['content']}}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def tokenizer():
    """One token per byte."""
    bytelevel = Tokenizer(models.BPE(vocab=VOCABULARY, merges=[]))
    bytelevel.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bytelevel.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=bytelevel,
        eos_token=SPECIAL[0],
        pad_token=SPECIAL[0],
        additional_special_tokens=list(SPECIAL[1:]),
        model_max_length=CONTEXT,
    )
    fast.chat_template = TEMPLATE
    return fast


def qwen3():
    """The same random weights every time."""
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=320,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=4,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=32,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=END,
        pad_token_id=END,
    )
    return Qwen3ForCausalLM(config).to(torch.bfloat16)


def draft_what_hello_repeats(target, fast):
    """Point the mask token's embedding at the token that the target repeats after `Hello`."""
    with torch.no_grad():
        prompt = torch.tensor([fast.encode("Hello")])
        said = target.generate(prompt, max_new_tokens=48, do_sample=False, eos_token_id=None)
        target.model.embed_tokens.weight[MASK] = target.lm_head.weight[int(said[0, -1])] * 8


def dflash(folder, config):
    """A DFlash drafter of one layer with random weights."""
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    heads, shared, width = config["num_attention_heads"], config["num_key_value_heads"], config["head_dim"]
    generator = torch.Generator().manual_seed(1)

    def random(*shape):
        return (torch.randn(*shape, generator=generator) * 0.02).to(torch.bfloat16)

    def ones(size):
        return torch.ones(size, dtype=torch.bfloat16)

    layer = "layers.0."
    weights = {
        "fc.weight": random(hidden, 2 * hidden),
        "hidden_norm.weight": ones(hidden),
        "norm.weight": ones(hidden),
        f"{layer}self_attn.q_proj.weight": random(heads * width, hidden),
        f"{layer}self_attn.k_proj.weight": random(shared * width, hidden),
        f"{layer}self_attn.v_proj.weight": random(shared * width, hidden),
        f"{layer}self_attn.o_proj.weight": random(hidden, heads * width),
        f"{layer}self_attn.q_norm.weight": ones(width),
        f"{layer}self_attn.k_norm.weight": ones(width),
        f"{layer}mlp.gate_proj.weight": random(inner, hidden),
        f"{layer}mlp.up_proj.weight": random(inner, hidden),
        f"{layer}mlp.down_proj.weight": random(hidden, inner),
        f"{layer}input_layernorm.weight": ones(hidden),
        f"{layer}post_attention_layernorm.weight": ones(hidden),
    }
    config |= {
        "architectures": ["DFlashDraftModel"],
        "num_hidden_layers": 1,
        "layer_types": ["full_attention"],
        "block_size": 4,
        "num_target_layers": 4,
        "dflash_config": {"mask_token_id": MASK, "target_layer_ids": [0, 2]},
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def main():
    target, draft, block = (OUT / name for name in ("tiny-qwen3", "tiny-qwen3-draft", "tiny-dflash"))
    fast, model = tokenizer(), qwen3()
    model.save_pretrained(draft)
    draft_what_hello_repeats(model, fast)
    model.save_pretrained(target)
    for folder in (target, draft):
        fast.save_pretrained(folder)
    dflash(block, json.loads((target / "config.json").read_text()))
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(target / name, block)


main()
