"""What a verdict's file gives: the verdict, and how much of the lost speed it explains."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ddprobe.model import Verdict
from ddprobe.verdicts.case import Case

LEVELS = ("low", "medium", "high")


@dataclass(frozen=True, slots=True)
class Ruling:
    """A verdict with its weight among others."""

    verdict: Verdict
    explains: float = 1.0
    """The factor in speed that it explains (commit ratio × step-time ratio); 1 explains nothing."""
    voids: bool = False
    """Measured commits say nothing of the drafter while this holds."""


Judge = Callable[[Case], Ruling | None]


def weakest(*levels: str) -> str:
    """The least of these confidences."""
    return min(levels, key=LEVELS.index)
