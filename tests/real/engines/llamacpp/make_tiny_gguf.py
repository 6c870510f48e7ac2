"""Two tiny models whose greedy output is known exactly: `make_tiny_gguf.py DIR`.

Random layers under an output matrix that makes each token's greedy successor a fixed one. The eight words of the phrase
follow each other in a circle, and so do all other printable tokens in a long random one: repeated text is fully
predictable, random words are not. `tiny-bigram-bad` has two wrong successors in the phrase. Drafting for `tiny-bigram`
it is right three times out of every four tokens, so that a verify step commits exactly 4 of a draft of 5.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import gguf
import numpy

sys.path.insert(0, str(Path(__file__).parent.parent))
from tiny_language import (
    CONTEXT,
    HEAD,
    HIDDEN,
    LAYERS,
    PHRASE,
    VOCABULARY,
    made_up_words,
    successors,
    trained_tokenizer,
)

FEED_FORWARD = 256


def write(path: Path, tokenizer: Any, tensors: dict[str, Any]) -> None:
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_name(path.stem)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HIDDEN // HEAD)
    writer.add_head_count_kv(HIDDEN // HEAD)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(1e6)
    writer.add_rope_dimension_count(HEAD)
    writer.add_vocab_size(VOCABULARY)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([tokenizer.id_to_token(token) for token in range(VOCABULARY)])
    kinds = [gguf.TokenType.CONTROL if token < 2 else gguf.TokenType.NORMAL for token in range(VOCABULARY)]
    writer.add_token_types([int(kind) for kind in kinds])
    merges = json.loads(tokenizer.to_str())["model"]["merges"]
    writer.add_token_merges([merge if isinstance(merge, str) else " ".join(merge) for merge in merges])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    writer.add_add_bos_token(False)
    writer.add_chat_template("{% for m in messages %}{{ m['content'] }}{% endfor %}")
    for name, tensor in tensors.items():
        writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    words = made_up_words(600)
    tokenizer = trained_tokenizer(words)
    twice = tokenizer.encode(PHRASE * 2).ids
    phrase = twice[: len(twice) // 2]
    assert twice == phrase * 2
    assert len(set(phrase)) == len(phrase)

    draw = numpy.random.default_rng(1234)
    embedding = draw.standard_normal((VOCABULARY, HIDDEN)).astype(numpy.float32)
    shapes = {
        "attn_q": (HIDDEN, HIDDEN),
        "attn_k": (HIDDEN, HIDDEN),
        "attn_v": (HIDDEN, HIDDEN),
        "attn_output": (HIDDEN, HIDDEN),
        "ffn_gate": (FEED_FORWARD, HIDDEN),
        "ffn_up": (FEED_FORWARD, HIDDEN),
        "ffn_down": (HIDDEN, FEED_FORWARD),
    }
    ones = numpy.ones(HIDDEN, numpy.float32)
    layers: dict[str, Any] = {}
    for layer in range(LAYERS):
        for name, shape in shapes.items():
            weights = (draw.standard_normal(shape) * 0.02).astype(numpy.float16)
            layers[f"blk.{layer}.{name}.weight"] = weights
        layers |= {f"blk.{layer}.{name}.weight": ones for name in ("attn_norm", "ffn_norm")}

    for name, following in zip(
        ("tiny-bigram", "tiny-bigram-bad"), successors(tokenizer, phrase), strict=True
    ):
        output = numpy.zeros((VOCABULARY, HIDDEN), numpy.float32)
        for token, successor in following.items():
            output[successor] += embedding[token]
        tensors = {
            "token_embd.weight": embedding.astype(numpy.float16),
            "output.weight": (output / HIDDEN * 30).astype(numpy.float16),
            "output_norm.weight": ones,
            **layers,
        }
        write(folder / f"{name}.gguf", tokenizer, tensors)
    known = {"phrase": PHRASE, "ids": phrase, "words": words, "period": len(phrase)}
    (folder / "phrase.json").write_text(json.dumps(known), encoding="utf-8")


if __name__ == "__main__":
    main()
