"""Two tiny models whose greedy output is known exactly: `make_models.py DIR`.

Random layers under an output matrix that makes each token's greedy successor a fixed one. The eight words of the phrase
follow each other in a circle, and so do all other printable tokens in a long random one: repeated text is fully
predictable, random words are not. `tiny-bigram-bad` has two wrong successors in the phrase.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

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


def model(following: dict[int, int]) -> LlamaForCausalLM:
    """The same random layers each time; the head answers each token's embedding with its successor."""
    torch.manual_seed(1234)
    made = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=VOCABULARY,
            hidden_size=HIDDEN,
            intermediate_size=2 * HIDDEN,
            num_hidden_layers=LAYERS,
            num_attention_heads=HIDDEN // HEAD,
            num_key_value_heads=HIDDEN // HEAD,
            head_dim=HEAD,
            max_position_embeddings=CONTEXT,
            rope_theta=1e6,
            tie_word_embeddings=False,
            bos_token_id=0,
            eos_token_id=1,
        )
    )
    with torch.no_grad():
        embeddings = torch.randn(VOCABULARY, HIDDEN)
        head = torch.zeros(VOCABULARY, HIDDEN)
        for token, successor in following.items():
            head[successor] += embeddings[token]
        made.model.embed_tokens.weight.copy_(embeddings)
        made.lm_head.weight.copy_(head / HIDDEN * 30)
    made.generation_config.do_sample = False
    return made.to(torch.bfloat16)


def main() -> None:
    folder = Path(sys.argv[1])
    words = made_up_words(600)
    tokenizer = trained_tokenizer(words)
    phrase = tokenizer.encode(PHRASE).ids
    assert len(set(phrase)) == len(phrase) == 8
    assert tokenizer.encode(PHRASE * 3).ids == phrase * 3
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<|bos|>", eos_token="<|eos|>", model_max_length=CONTEXT
    )
    fast.chat_template = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
    good, bad = successors(tokenizer, phrase)
    for name, following in (("tiny-bigram", good), ("tiny-bigram-bad", bad)):
        model(following).save_pretrained(folder / name)
        fast.save_pretrained(folder / name)
    known = {"phrase": PHRASE, "ids": phrase, "words": words}
    (folder / "phrase.json").write_text(json.dumps(known), encoding="utf-8")


main()
