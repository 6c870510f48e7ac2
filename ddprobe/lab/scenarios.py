"""The made-up hosts one can connect to: each a mechanism with its traces, never a result."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ddprobe.errors import UsageError

if TYPE_CHECKING:
    from ddprobe.lab.machine import Machine

DEFAULT = "founding-story"


@dataclass(frozen=True, slots=True)
class Scenario:
    name: str
    about: str
    build: Callable[[], Machine]


def _founding_story() -> Machine:
    from ddprobe.lab.hosts import founding_story

    return founding_story()


def _healthy() -> Machine:
    from ddprobe.lab.hosts import healthy

    return healthy()


SCENARIOS = (
    Scenario(
        "founding-story",
        "Kimi K2.6 with a DFlash drafter on 8 RTX PRO 6000: slow at long context, a commit length of 1.00",
        _founding_story,
    ),
    Scenario("healthy", "Qwen3-4B with its DFlash drafter on one GPU: nothing is wrong", _healthy),
)


def scenario(name: str) -> Scenario:
    """The scenario of this name. Raises `UsageError`."""
    for one in SCENARIOS:
        if one.name == name:
            return one
    names = [one.name for one in SCENARIOS]
    near = difflib.get_close_matches(name, names, 1)
    raise UsageError(
        f"the lab has no scenario {name!r}",
        f"did you mean {near[0]}?" if near else f"one of {', '.join(names)}",
    )
