"""From what a made-up host is configured with to how its drafter works: configuration, arguments, environment.

The simulated engine reads them as the real one does, so a mistake in a configuration has its consequence here and is
written down nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from ddprobe.lab.engine.context import PrefixCache
from ddprobe.lab.engine.decoding import Books, Law, Model
from ddprobe.lab.engine.drafter import Drafter, Mechanism, Window
from ddprobe.lab.engine.heat import Heat
from ddprobe.lab.engine.target import Language, Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What no configuration file says: how good the drafter is at this text, and what is broken inside."""

    law: Law
    learnt: float = 0.5
    hints: float = 0.3
    trained: bool = True
    cached_states: bool = True
    commits_accepted: bool = True
    counts_root: bool = False
    seed: int = 20260430
    heat: Heat | None = None
    """What slows the cards down as they work; its seconds are the lab's own. Each engine takes a copy."""


def model(
    parts: Parts,
    *,
    config: Mapping[str, Any] | None,
    given: Mapping[str, Any],
    environment: Mapping[str, str],
    ordinary: int,
    capacity: int,
) -> Model:
    """Target and drafter. `config` is the drafter's, `ordinary` where special tokens begin."""
    language = Language(parts.seed, ordinary)
    speculates = config is not None and "speculative_algorithm" in given
    return Model(
        target=Target(language),
        drafter=Drafter(mechanism(parts, config, given), language, parts.seed + 1)
        if config is not None and speculates
        else None,
        law=parts.law,
        books=Books(
            commits_accepted=parts.commits_accepted,
            counts_root=parts.counts_root,
            forced=float(environment.get("SGLANG_SIMULATE_ACC_LEN", "0")),
        ),
        cache=PrefixCache(capacity),
        heat=None if parts.heat is None else deepcopy(parts.heat),
    )


def mechanism(parts: Parts, config: Mapping[str, Any], given: Mapping[str, Any]) -> Mechanism:
    """How the drafter of this configuration works under these arguments."""
    window, handling, full = _window(config, given)
    return Mechanism(
        draft_tokens=given["speculative_num_draft_tokens"] - 1,
        tree_budget=given.get("speculative_ddtree_budget", 0),
        window=window,
        window_handling=handling,
        full_layer=full,
        reach=_reach(config),
        trained=parts.trained,
        learnt=parts.learnt,
        hints=parts.hints,
        cached_states=parts.cached_states,
    )


def _window(config: Mapping[str, Any], given: Mapping[str, Any]) -> tuple[int | None, Window, bool]:
    trimmed = given.get("speculative_draft_window_size")
    if trimmed is not None:
        # Every layer is cut to it, the full one too.
        return trimmed, Window.APPLIED, False
    layers = config.get("layer_types")
    if layers is None:
        # All layers run as full ones, whatever window the drafter was trained with.
        return config.get("sliding_window"), Window.IGNORED, True
    if "sliding_attention" not in layers:
        return None, Window.APPLIED, True
    return config["sliding_window"], Window.APPLIED, "full_attention" in layers


def _reach(config: Mapping[str, Any]) -> int:
    """Positions that the rotary embedding is good for."""
    rope = config.get("rope_scaling") or config.get("rope_parameters") or {}
    if "yarn" in str(rope.get("rope_type", rope.get("type", ""))):
        return int(rope["factor"] * rope["original_max_position_embeddings"])
    return int(config["max_position_embeddings"])
