"""Arm `far-copy`: a passage that stands far back is begun again, and the rest of it can only be copied from there.

The passages are odd enough that nothing else predicts them. `near` has the source 512 tokens back, inside any usual
sliding window; `far` has it at the very start, so that the distance is almost the whole context. The two use different
passages, so that nothing remembered of one helps with the other. Only their difference says something: the target's
hidden states may give away some tokens even to a drafter that cannot look far back.
"""

from __future__ import annotations

import abc
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ddprobe.arms import texts
from ddprobe.arms.base import Arm, Ids, Needs, Script
from ddprobe.arms.filler import take
from ddprobe.arms.tailed import BREAK
from ddprobe.errors import Unanswered

PASSAGES = tuple(f"far-copy-{number}" for number in range(1, 9))
EACH = len(PASSAGES) // 2
CUE = 40
NEAR = 512
LEAST_NEAR = 16
STEPS = 16
"""Verify steps per prompt for which a passage should hold enough to be copied."""
LEAST_PASSAGE = 200
"""Short enough for four of them to fit into a context of 1k."""
MOST_PASSAGE = 300


class FarCopy(Arm):
    """One script per distance."""

    name: ClassVar[str] = "far-copy"
    about: ClassVar[str] = "an odd passage begun again, its source near (512 tokens) and far (the very start)"

    def scripts(self, needs: Needs) -> tuple[Script, ...]:
        wanted = CUE + STEPS * (needs.ceiling or 0)
        size = min(max(wanted, LEAST_PASSAGE), MOST_PASSAGE)
        distance = max(LEAST_NEAR, min(NEAR, needs.window // 2 if needs.window else NEAR))
        order = _shuffled(PASSAGES, needs.seed)
        count = min(needs.variants, EACH)
        near = tuple((name, texts.read(name)) for name in order[:count])
        far = tuple((name, texts.read(name)) for name in order[EACH : EACH + count])
        return (
            Near(
                passages=near, variants=needs.variants, size=min(size, distance * 3 // 5), distance=distance
            ),
            Far(passages=far, variants=needs.variants, size=size),
        )


def _shuffled(names: tuple[str, ...], seed: int) -> tuple[str, ...]:
    # Only `random()` promises the same numbers for a seed in every version of Python.
    draw = random.Random(f"{seed}/far-copy").random
    return tuple(name for _, name in sorted((draw(), name) for name in names))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Copy(Script):
    """What both distances share: passages of one length, and which part of which one is the cue.

    Where there are more variants than passages, a passage is used again with a cue from further inside.
    """

    passages: tuple[tuple[str, str], ...]
    variants: int
    size: int
    """Tokens of a passage, its paragraph break included, at most."""
    copies: bool = True

    def pieces(self) -> Mapping[str, str]:
        return {BREAK: "\n\n", **dict(self.passages)}

    def filler(self, length: int) -> int:
        return length

    def build(self, tokens: Mapping[str, Ids], length: int, variant: int) -> Ids:
        prompt, _ = self._laid(tokens, length, variant)
        return prompt

    def expected(self, tokens: Mapping[str, Ids], length: int, variant: int, count: int) -> Ids:
        """The rest of the passage. What a target writes after its end is no matter of copying."""
        prompt, start = self._laid(tokens, length, variant)
        size = len(self._sources(tokens)[0])
        _, offset, cue = self._cue(size, variant)
        return prompt[start : start + min(count, size - offset - cue)]

    @abc.abstractmethod
    def _laid(self, tokens: Mapping[str, Ids], length: int, variant: int) -> tuple[Ids, int]:
        """The prompt, and where in it that stands which comes next."""

    def _sources(self, tokens: Mapping[str, Ids]) -> list[Ids]:
        whole = [tokens[BREAK] + tokens[name] for name, _ in self.passages]
        size = min(self.size, *(len(ids) for ids in whole))
        if size <= self._rounds() + 1:
            raise Unanswered(self.label, f"its passages have only {size} tokens")
        return [ids[:size] for ids in whole]

    def _rounds(self) -> int:
        """How often the same passage is used."""
        return -(-self.variants // len(self.passages))

    def _cue(self, size: int, variant: int) -> tuple[int, int, int]:
        """Which passage, where in it the cue begins, how long the cue is."""
        cue = max(1, min(CUE, size // 4))
        turn, number = divmod(variant, len(self.passages))
        step = max(1, min(cue, (size - cue) // self._rounds()))
        return number, turn * step, cue


@dataclass(frozen=True, slots=True, kw_only=True)
class Near(_Copy):
    """Filler, the passage, filler up to the distance, the cue."""

    distance: int
    """From a token of the source to the place where it is to be written."""
    label: str = "far-copy near"

    def shortest(self, tokens: Mapping[str, Ids]) -> int:
        size = len(self._sources(tokens)[0])
        _, offset, cue = self._cue(size, self.variants - 1)
        return self.distance + offset + cue

    def _laid(self, tokens: Mapping[str, Ids], length: int, variant: int) -> tuple[Ids, int]:
        sources = self._sources(tokens)
        size = len(sources[0])
        number, offset, cue = self._cue(size, variant)
        prose = take(tokens, length - size - cue)
        between = self.distance - size + offset
        start = len(prose) - between
        prompt = prose[:start] + sources[number] + prose[start:] + sources[number][offset : offset + cue]
        return prompt, start + offset + cue


@dataclass(frozen=True, slots=True, kw_only=True)
class Far(_Copy):
    """All passages, filler, the cue of one of them."""

    label: str = "far-copy far"

    def shortest(self, tokens: Mapping[str, Ids]) -> int:
        sources = self._sources(tokens)
        _, _, cue = self._cue(len(sources[0]), 0)
        # Some filler, or the last passage would not be far at all.
        return sum(len(ids) for ids in sources) + 2 * cue

    def _laid(self, tokens: Mapping[str, Ids], length: int, variant: int) -> tuple[Ids, int]:
        sources = self._sources(tokens)
        size = len(sources[0])
        number, offset, cue = self._cue(size, variant)
        head = tuple(token for ids in sources for token in ids)
        prose = take(tokens, length - len(head) - cue)
        prompt = head + prose + sources[number][offset : offset + cue]
        return prompt, number * size + offset + cue
