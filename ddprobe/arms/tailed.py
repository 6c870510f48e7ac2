"""Text that is to be continued: long filler, and behind it a passage that stays the same at every length."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ddprobe.arms.base import Ids, Script
from ddprobe.arms.filler import take
from ddprobe.arms.phases import drop, least
from ddprobe.errors import Unanswered

BREAK = "paragraph-break"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tailed(Script):
    """Filler, a paragraph break, a passage. Variants end in other passages of the same length; where there are more
    variants than passages, a passage is used again with its end dropped."""

    label: str
    passages: tuple[tuple[str, str], ...]
    """(name, text)."""
    variants: int
    most: int | None = None
    """Tokens of a passage, at most; None takes the whole."""
    copies: bool = False

    def pieces(self) -> Mapping[str, str]:
        return {BREAK: "\n\n", **dict(self.passages)}

    def _passage(self, tokens: Mapping[str, Ids], variant: int) -> Ids:
        every = [tokens[name] for name, _ in self.passages]
        size = min(len(ids) for ids in every)
        if not size:
            raise Unanswered(self.label, "the passage at the end has no tokens")
        return tokens[BREAK] + every[variant % len(every)][:size][: self.most]

    def _rounds(self) -> int:
        """How often the same passage is used."""
        return -(-self.variants // len(self.passages))

    def shortest(self, tokens: Mapping[str, Ids]) -> int:
        return max(len(self._passage(tokens, 0)), least(self._rounds()))

    def filler(self, length: int) -> int:
        return length

    def build(self, tokens: Mapping[str, Ids], length: int, variant: int) -> Ids:
        passage = self._passage(tokens, variant)
        whole = take(tokens, length - len(passage)) + passage
        turn = variant // len(self.passages)
        return whole[: length - drop(length, len(passage) // 2, turn, self._rounds())]
