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


def _of(name: str, about: str) -> Scenario:
    def build() -> Machine:
        # A host takes a moment to build, and its modules one to import; `lab scenarios` only names them.
        from ddprobe.lab import hosts

        builder: Callable[[], Machine] = getattr(hosts, name.replace("-", "_"))
        return builder()

    return Scenario(name, about, build)


SCENARIOS = (
    _of(
        "founding-story",
        "Kimi K2.6 with a DFlash drafter on 8 RTX PRO 6000: slow at long context, a commit length of 1.00",
    ),
    _of("healthy", "Qwen3-4B with its DFlash drafter on one GPU: nothing is wrong"),
    _of("hard-text", "the same, and a text that little of can be foreseen"),
    _of("rope-cliff", "the same, with positions stretched less far than the server lets requests go"),
    _of("window-not-applied", "the same, trained with a sliding window that the engine knows nothing of"),
    _of("dead-drafter", "the same, with weights missing"),
    _of("not-speculating", "the same, started without speculation"),
    _of("metric-lies", "the same, in an engine that counts accepted tokens wrongly"),
    _of("slow-attention", "the first one's hardware and attention kernel, with nothing else wrong"),
    _of("cache-loses-draft-kv", "the second one with a prefix cache that keeps the target's part only"),
    _of("simulated-acceptance", "the second one with a benchmark's variable left in its environment"),
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
