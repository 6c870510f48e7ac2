"""Arm `repeat-long`: repetition with a period of some 600 tokens, copied from within the drafter's window."""

from __future__ import annotations

from typing import ClassVar

from ddprobe.arms import texts
from ddprobe.arms.base import Arm, Needs, Script
from ddprobe.arms.tiled import Tiled

LEAST_PERIOD = 16


class RepeatLong(Arm):
    """Tiles a long paragraph, cut to three quarters of the drafter's window where that is shorter."""

    name: ClassVar[str] = "repeat-long"
    about: ClassVar[str] = "a long paragraph tiled: copying over some 600 tokens, inside a sliding window"

    def scripts(self, needs: Needs) -> tuple[Script, ...]:
        most = max(LEAST_PERIOD, needs.window * 3 // 4) if needs.window else None
        text = texts.read("repeat-long")
        return (Tiled(label=self.name, name="repeat-long", text=text, variants=needs.variants, most=most),)
