"""Two tiny models whose greedy output is known exactly: `make_models.py DIR`.

Random layers under an output matrix that makes each token's greedy successor a fixed one. The eight words of the phrase
follow each other in a circle, and so do all other printable tokens in a long random one: repeated text is fully
predictable, random words are not. `tiny-bigram-bad` has two wrong successors in the phrase.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

PHRASE = " red blue green gold black white pink gray"
VOCABULARY, HIDDEN, LAYERS, HEAD = 1024, 128, 2, 64
CONTEXT = 40960


def made_up_words(count: int) -> list[str]:
    draw = random.Random(7)
    found: list[str] = []
    while len(found) < count:
        syllables = draw.choice((2, 2, 3))
        word = "".join(draw.choice("bdfgklmnprstvz") + draw.choice("aeiou") for _ in range(syllables))
        if word not in found:
            found.append(word)
    return found


def trained_tokenizer(words: list[str]) -> Any:
    """Byte-level BPE for which each word of the phrase is one token."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    texts = [PHRASE * 2000, *(" " + " ".join(random.Random(seed).sample(words, 300)) for seed in range(40))]
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=["<|bos|>", "<|eos|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    assert tokenizer.get_vocab_size() == VOCABULARY
    return tokenizer


def successors(tokenizer: Any, phrase: list[int]) -> tuple[dict[int, int], dict[int, int]]:
    """Each token's successor for the target, and for the bad drafter."""
    following = {here: phrase[(place + 1) % len(phrase)] for place, here in enumerate(phrase)}
    others = [
        token
        for token in range(2, VOCABULARY)
        if token not in following and _prints(tokenizer.decode([token]))
    ]
    random.Random(99).shuffle(others)
    following |= dict(zip(others, [*others[1:], others[0]], strict=True))
    for token in range(VOCABULARY):
        following.setdefault(token, others[token % len(others)])
    return following, following | {phrase[0]: others[0], phrase[4]: others[0]}


def _prints(text: str) -> bool:
    return bool(text.strip()) and "\ufffd" not in text


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
