"""Arm `repeat`: one short sentence over and over, the easiest text there is."""

from __future__ import annotations

from typing import ClassVar

from ddprobe.arms import texts
from ddprobe.arms.base import Arm, Needs, Script
from ddprobe.arms.tiled import Tiled


class Repeat(Arm):
    """Tiles the founding sentence, or the user's text."""

    name: ClassVar[str] = "repeat"
    about: ClassVar[str] = "a short sentence tiled: the local path of drafting, verifying and committing"

    def scripts(self, needs: Needs) -> tuple[Script, ...]:
        name, text = ("text", needs.text) if needs.text else ("repeat", texts.read("repeat"))
        return (Tiled(label=self.name, name=name, text=text, variants=needs.variants),)
