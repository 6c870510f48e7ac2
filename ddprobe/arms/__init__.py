"""Kinds of text that a commit probe sends, one a file. See `base` for what an arm is."""

from __future__ import annotations

from collections.abc import Iterable

from ddprobe.arms.base import Arm, Needs, Script
from ddprobe.arms.chat import Chat
from ddprobe.arms.code import Code
from ddprobe.arms.far_copy import FarCopy
from ddprobe.arms.prose import Prose
from ddprobe.arms.random_words import RandomWords
from ddprobe.arms.repeat import Repeat
from ddprobe.arms.repeat_long import RepeatLong
from ddprobe.arms.repeat_wide import RepeatWide
from ddprobe.arms.verbatim import Verbatim

ARMS: dict[str, Arm] = {
    arm.name: arm
    for arm in (
        Repeat(), RepeatWide(), RepeatLong(), FarCopy(), Code(), Chat(), Prose(), RandomWords(), Verbatim(),
    )
}  # fmt: skip
"""By name, from the easiest text to the hardest."""

DEFAULT = ("repeat", "far-copy", "prose")


def scripts(names: Iterable[str], needs: Needs) -> tuple[Script, ...]:
    """The texts of these arms, in order; an arm named twice counts once."""
    return tuple(script for name in dict.fromkeys(names) for script in ARMS[name].scripts(needs))


def digests(used: Iterable[Script]) -> tuple[tuple[str, str], ...]:
    """Name and SHA-256 of each text that these are made of, the user's own and the drawn ones included."""
    from ddprobe.arms.texts import sha256

    every = {name: text for script in used for name, text in script.pieces().items()}
    return tuple((name, sha256(text)) for name, text in every.items())
