"""Arm `random`: common words in no order. Nobody can predict them: the floor."""

from __future__ import annotations

import random
from typing import ClassVar

from ddprobe.arms import texts
from ddprobe.arms.base import Arm, Needs, Script
from ddprobe.arms.tailed import Tailed

TOKENS = 200


class RandomWords(Arm):
    """Ends in words drawn uniformly, other ones for every variant and seed."""

    name: ClassVar[str] = "random"
    about: ClassVar[str] = "common words in random order: the floor, about one token per step"

    def scripts(self, needs: Needs) -> tuple[Script, ...]:
        passages = tuple(
            (f"random-{number}", _words(f"{needs.seed}/random-{number}", TOKENS))
            for number in range(1, needs.variants + 1)
        )
        return (Tailed(label=self.name, passages=passages, variants=needs.variants, most=TOKENS),)


def _words(seed: str, count: int) -> str:
    words = texts.read("words").split()
    # Only `random()` promises the same numbers for a seed in every version of Python.
    draw = random.Random(seed).random
    return " ".join(words[int(draw() * len(words))] for _ in range(count))
