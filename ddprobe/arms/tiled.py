"""Text that repeats: one period of token ids, laid end to end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ddprobe.arms.base import Ids, Script
from ddprobe.arms.phases import drop, least
from ddprobe.errors import Unanswered

CUE = 64
"""Tokens of a second round that a prompt holds at least, so that there is something to go on with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiled(Script):
    """Tiles a text. Variants stop at different phases of the period; each is the beginning of the longest."""

    label: str
    name: str
    text: str
    variants: int
    most: int | None = None
    """Longest period in tokens: a longer text is cut to it."""
    copies: bool = True

    def pieces(self) -> Mapping[str, str]:
        return {self.name: self.text}

    def _period(self, tokens: Mapping[str, Ids]) -> Ids:
        period = tokens[self.name][: self.most]
        if not period:
            raise Unanswered(self.name, "the text to be repeated has no tokens")
        return period

    def shortest(self, tokens: Mapping[str, Ids]) -> int:
        period = len(self._period(tokens))
        seen = period + min(period, CUE)
        # What is left after an eighth was dropped must still hold them.
        return max(-(-seen * 8 // 7), least(self.variants))

    def build(self, tokens: Mapping[str, Ids], length: int, variant: int) -> Ids:
        period = self._period(tokens)
        return _tile(period, 0, length - drop(length, len(period), variant, self.variants))

    def expected(self, tokens: Mapping[str, Ids], length: int, variant: int, count: int) -> Ids:
        period = self._period(tokens)
        return _tile(period, length - drop(length, len(period), variant, self.variants), count)


def _tile(period: Ids, start: int, count: int) -> Ids:
    """`count` ids of the endless repetition, from `start` on."""
    start %= len(period)
    return (period * (-(-(start + count) // len(period))))[start : start + count]
