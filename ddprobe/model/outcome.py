"""How anything turned out, in one order."""

from __future__ import annotations

import enum
from collections.abc import Iterable


class Outcome(enum.IntEnum):
    """How a finding turned out, in one order: no answer is worse than a warning."""

    SKIP = 0
    INFO = 1
    PASS = 2
    WARN = 3
    UNKNOWN = 4
    FAIL = 5

    @property
    def label(self) -> str:
        return self.name.lower()

    @classmethod
    def worst(cls, outcomes: Iterable[Outcome]) -> Outcome:
        """The highest of them; worst of nothing is *unknown*: silence is not a pass."""
        return max(outcomes, default=cls.UNKNOWN)
