"""A tiny language: a phrase of eight words in a circle, made-up words, and for each token the one that follows it.

Both engines' tiny models speak it: repeated text is fully predictable, random words are not. The bad drafter has two
wrong successors in the phrase.
"""

from __future__ import annotations

import random
from typing import Any

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

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
    following.update(zip(others, others[1:] + others[:1], strict=True))
    for token in range(VOCABULARY):
        following.setdefault(token, others[token % len(others)])
    return following, {**following, phrase[0]: others[0], phrase[4]: others[0]}


def _prints(text: str) -> bool:
    return text.isprintable() and bool(text.strip()) and "\ufffd" not in text
