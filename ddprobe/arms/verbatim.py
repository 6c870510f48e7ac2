"""Arm `verbatim`: the user's text, sent as it is."""

from __future__ import annotations

from typing import ClassVar

from ddprobe.arms.base import Arm, Needs, Script


class Verbatim(Arm):
    """No ids of ours, no nonce, no tiling, no ladder of lengths: it has no scripts, the text itself is the prompt."""

    name: ClassVar[str] = "verbatim"
    about: ClassVar[str] = "the text of --text, byte for byte, at no other length than its own"
    ladder: ClassVar[bool] = False

    def scripts(self, needs: Needs) -> tuple[Script, ...]:
        return ()
