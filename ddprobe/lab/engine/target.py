"""The lab's target model: copies what it has seen, and otherwise speaks a language of its own.

Where the last tokens stood before, it goes on as it went on there; elsewhere the next token is that of a table, looked
up by the last three. Both are certain, so greedy output is the same whatever is drafted.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from ddprobe.lab.engine.context import Context
from ddprobe.lab.engine.tokenizer import BYTES

ROWS = 8192


class Language:
    """A successor table: what comes after three tokens."""

    def __init__(self, seed: int, ordinary: int) -> None:
        """`ordinary`: its words have ids below this."""
        draw = random.Random(seed)
        self.words = tuple(draw.sample(range(BYTES, ordinary), ROWS))
        self.table = tuple(draw.choices(self.words, k=ROWS))

    @staticmethod
    def row(last: Sequence[int]) -> int:
        """Which row of the table these tokens lead to."""
        return hash(tuple(last[-3:])) % ROWS


class Target:
    """One model. `following` is a forward pass: the token after a context, and after more that is supposed."""

    def __init__(self, language: Language) -> None:
        self.language = language

    def following(self, context: Context, ahead: Sequence[int] = ()) -> int:
        place = context.earlier(ahead)
        if place is not None:
            return context.ids[place]
        last = ahead if len(ahead) >= 3 else [*context.ids[-3:], *ahead]
        return self.language.table[Language.row(last)]


class Continuation:
    """What the target says after a context, token by token, computed only as far as somebody asks."""

    def __init__(self, target: Target, context: Context) -> None:
        self.target = target
        self.context = context
        self.said: list[int] = []

    def __getitem__(self, place: int) -> int:
        while len(self.said) <= place:
            self.said.append(self.target.following(self.context, self.said))
        return self.said[place]
