"""One thing that `doctor` looked at."""

from __future__ import annotations

from dataclasses import dataclass

from ddprobe.model import Outcome


@dataclass(frozen=True, slots=True)
class Check:
    """How it is, and what would fail because of it."""

    outcome: Outcome
    subject: str
    says: str
    advice: str = ""
