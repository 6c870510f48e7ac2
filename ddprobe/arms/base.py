"""What an arm is: a kind of text, and how prompts of any length are made of it.

An arm works on token ids: its pieces of text are tokenised once by the server itself, and prompts are put together
from the ids. Prompts of one script nest: but for the tail, a shorter one is the beginning of a longer one, so that a
prefix cache computes the whole ladder once.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

Ids = tuple[int, ...]
FILLER = "filler"
"""The piece that every arm may ask for in any length: unrelated prose, the same for all arms of a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What a script may depend on."""

    seed: int
    variants: int = 4
    """Prompts per point."""
    ceiling: int | None = None
    """Most tokens that a verify step commits: a period should be longer than that, where it matters."""
    window: int | None = None
    """The drafter's sliding window in tokens."""
    text: str = ""
    """The user's own (`--text`), byte for byte; empty takes the shipped one."""


class Script(abc.ABC):
    """One text of an arm: what is measured at every context under one name."""

    label: str
    """As in a point's `arm`: the arm's name, or the name and a detail (`far-copy 512`)."""
    copies: bool
    """True when a target that copies writes what `expected` says."""

    @abc.abstractmethod
    def pieces(self) -> Mapping[str, str]:
        """Name → text to be tokenised. `FILLER` is not among them."""

    @abc.abstractmethod
    def shortest(self, tokens: Mapping[str, Ids]) -> int:
        """The least length, head and nonce not counted, at which `build` works."""

    def head(self, tokens: Mapping[str, Ids]) -> Ids:
        """What stands before the nonce: most texts have nothing there."""
        return ()

    def filler(self, length: int) -> int:
        """How many ids of filler `build` takes for that length, at most; 0 for none."""
        return 0

    @abc.abstractmethod
    def build(self, tokens: Mapping[str, Ids], length: int, variant: int) -> Ids:
        """The prompt after head and nonce: `length` ids (variants may be shorter by up to an eighth, where their tails
        are phases of a period). Every variant ends differently; all share the beginning."""

    def expected(self, tokens: Mapping[str, Ids], length: int, variant: int, count: int) -> Ids:
        """The `count` ids that a copying target writes after that prompt; empty when nothing is to be copied."""
        return ()


class Arm(abc.ABC):
    """A kind of text."""

    name: ClassVar[str]
    about: ClassVar[str]
    """One line: what it exercises."""
    ladder: ClassVar[bool] = True
    """False for a text that is sent as it is, at no length but its own."""

    @abc.abstractmethod
    def scripts(self, needs: Needs) -> tuple[Script, ...]:
        """Its texts. Most arms have one; `far-copy` has one per distance."""
