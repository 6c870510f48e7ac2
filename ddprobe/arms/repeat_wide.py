"""Arm `repeat-wide`: repetition whose period is longer than a draft, so that no draft holds the same words twice.

Some prompt-lookup drafters propose nothing when the period is shorter than what they draft, and a drafter that only
knows "what stood one line above" passes `repeat` by luck of the period.
"""

from __future__ import annotations

from typing import ClassVar

from ddprobe.arms import texts
from ddprobe.arms.base import Arm, Needs, Script
from ddprobe.arms.tiled import Tiled

BLOCKS = 3
SHORTEST_PERIOD = 24
"""Longer than the founding sentence's period, too."""
UNKNOWN_CEILING = 16


class RepeatWide(Arm):
    """Tiles the first three draft blocks of a text in which hardly a word comes twice."""

    name: ClassVar[str] = "repeat-wide"
    about: ClassVar[str] = "tiled, with a period of three draft blocks: copying from beyond the block"

    def scripts(self, needs: Needs) -> tuple[Script, ...]:
        period = max(SHORTEST_PERIOD, BLOCKS * (needs.ceiling or UNKNOWN_CEILING))
        text = texts.read("repeat-wide")
        return (Tiled(label=self.name, name="repeat-wide", text=text, variants=needs.variants, most=period),)
