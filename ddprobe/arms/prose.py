"""Arm `prose`: natural text to be continued. Hard for every drafter, at any length."""

from __future__ import annotations

from typing import ClassVar

from ddprobe.arms import texts
from ddprobe.arms.base import Arm, Needs, Script
from ddprobe.arms.tailed import Tailed

PASSAGES = ("prose-1", "prose-2", "prose-3", "prose-4")
TOKENS = 200


class Prose(Arm):
    """Ends in one of four passages, or in the user's text."""

    name: ClassVar[str] = "prose"
    about: ClassVar[str] = "natural prose continued: hard text, the same passages at every length"

    def scripts(self, needs: Needs) -> tuple[Script, ...]:
        if needs.text:
            own = (("text", needs.text),)
            return (Tailed(label=self.name, passages=own, variants=needs.variants),)
        shipped = tuple((name, texts.read(name)) for name in PASSAGES)
        return (Tailed(label=self.name, passages=shipped, variants=needs.variants, most=TOKENS),)
