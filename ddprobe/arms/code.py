"""Arm `code`: source code to be continued. Between copying and prose in difficulty."""

from __future__ import annotations

from typing import ClassVar

from ddprobe.arms import texts
from ddprobe.arms.base import Arm, Needs, Script
from ddprobe.arms.tailed import Tailed

PASSAGES = ("code-1", "code-2", "code-3", "code-4")
TOKENS = 300


class Code(Arm):
    """Ends in the opening of one of four Python modules."""

    name: ClassVar[str] = "code"
    about: ClassVar[str] = "Python source continued: text of medium difficulty"

    def scripts(self, needs: Needs) -> tuple[Script, ...]:
        shipped = tuple((name, texts.read(name)) for name in PASSAGES)
        return (Tailed(label=self.name, passages=shipped, variants=needs.variants, most=TOKENS),)
