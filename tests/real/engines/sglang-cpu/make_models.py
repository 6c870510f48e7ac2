"""Makes the tiny models: a Qwen3 target, a twin as draft model, a DFlash drafter, a byte-level tokenizer.

What they write is known. The target writes, whatever came before it, the token that follows its last one in a fixed
order: `e` after `e` and after `o`, and from every other byte round a circle without either. The DFlash drafter says `e`
in every position. So at any length it is always right after `Hello` (block 4: 4.0 tokens a step), and never after
`The quick brown fox` (1.0).
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
CONTEXT, SIZE = 512, 320
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


def successors():
    """Byte → the byte that the target writes after it."""
    repeated, entry = VOCABULARY["e"], VOCABULARY["o"]
    specials = {VOCABULARY[piece] for piece in SPECIAL}
    circle = [token for token in VOCABULARY.values() if token not in {repeated, entry} | specials]
    return {repeated: repeated, entry: repeated} | dict(zip(circle, circle[1:] + circle[:1], strict=True))


def qwen3():
    """The same weights every time: those of the layers are random, and too small to change what is written."""
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=SIZE,
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
    model = Qwen3ForCausalLM(config)
    with torch.no_grad():
        embedded = torch.nn.functional.normalize(torch.randn(SIZE, config.hidden_size), dim=1)
        model.model.embed_tokens.weight.copy_(embedded * config.hidden_size**0.5)
        model.lm_head.weight.zero_()
        for token, following in successors().items():
            model.lm_head.weight[following] += 2 * embedded[token]
    return model.to(torch.bfloat16)


def draft_the_repeated_token(target):
    """A DFlash drafter reads the mask token's embedding, which the target never does: let it say `e`."""
    with torch.no_grad():
        said = torch.nn.functional.normalize(target.lm_head.weight[VOCABULARY["e"]].float(), dim=0)
        target.model.embed_tokens.weight[MASK] = said * target.config.hidden_size**0.5


def check(target, fast):
    """Greedy decoding writes what the order says, up to the end of the context."""
    follows = successors()
    for prompt in ("Hello", "The quick brown fox"):
        ids = fast.encode(prompt)
        wanted = [ids[-1]]
        for _ in range(CONTEXT - len(ids)):
            wanted.append(follows[wanted[-1]])
        with torch.no_grad():
            said = target(torch.tensor([[*ids, *wanted[1:]]])).logits[0, len(ids) - 1 : -1].argmax(-1)
        if said.tolist() != wanted[1:]:
            raise SystemExit(f"after {prompt!r} the target does not write what it should")


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
    draft_the_repeated_token(model)
    check(model, fast)
    model.save_pretrained(target)
    for folder in (target, draft):
        fast.save_pretrained(folder)
    dflash(block, json.loads((target / "config.json").read_text()))
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(target / name, block)


main()
