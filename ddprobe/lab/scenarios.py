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
    _of("hard-text", "Qwen3-4B on one GPU: little of what it writes can be foreseen, at any length"),
    _of(
        "rope-cliff",
        "Qwen3-4B on one GPU: the drafter's positions reach less far than the server lets requests go",
    ),
    _of(
        "window-not-applied",
        "Qwen3-4B on one GPU: the drafter was trained with a sliding window that the engine knows nothing of",
    ),
    _of("dead-drafter", "Qwen3-4B on one GPU: weights of the drafter are missing"),
    _of("not-speculating", "Qwen3-4B on one GPU: started without speculation"),
    _of("metric-lies", "Qwen3-4B on one GPU: the engine counts accepted tokens wrongly"),
    _of(
        "slow-attention",
        "Kimi K2.6 on 8 RTX PRO 6000: a drafter that works before an attention kernel that does not scale",
    ),
    _of(
        "cache-loses-draft-kv",
        "Qwen3-4B on one GPU: the prefix cache gives back the target's part and not the drafter's",
    ),
    _of(
        "hot-gpus",
        "Qwen3-4B on one GPU: cooling does not keep up, and the clock falls under load",
    ),
    _of("simulated-acceptance", "Qwen3-4B on one GPU: a benchmark's variable was left in the environment"),
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
