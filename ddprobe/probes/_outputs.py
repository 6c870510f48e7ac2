"""What later steps of a playbook may take from a probe: values from its facts. One of several that differ is none."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ddprobe.facts import Gpu, LogEvent, LogFile, ModelConfig, Reach, ServerArgs, ServerProcess, ServerState
from ddprobe.model import Fact, Finding

SERVER = {
    "servers": "how many inference servers run",
    "engine": "sglang, vllm or llamacpp",
    "url": "where the server listens, as seen from the host",
    "version": "of the engine that runs",
    "model": "the model that is served",
    "context_limit": "most tokens of a request, prompt and output together",
    "healthy": "whether every server found takes requests",
    "running": "requests that ran when it was asked",
}
CONFIG = {
    "drafter": "the drafter's folder on the host",
    "target": "the target's folder on the host",
    "algorithm": "the speculative algorithm, as the server has it",
    "draft_tokens": "tokens drafted per verify step, as the server has it",
    "block": "the drafter's block size, as its config.json has it",
    "window": "the drafter's sliding window in tokens",
    "context_limit": "most tokens of a request, by the server's arguments or else the target's config.json",
    "limits": "lengths in tokens at which something changes by configuration",
    "around_limits": "lengths just below and just above each of these, as far as the server takes them",
}
LOGS = {
    "logs": "the logs found, by their paths",
    "events": "kinds of the lines that matter: skipped_weights, fallback_backend, …",
    "decode_lines": "lines about decoding in all of them",
}
REACH = {
    "user": "who ddprobe is on the host",
    "gpus": "how many GPUs the host shows, where it shows any",
    "engines": "the inference servers seen to run",
}
GPUS = {
    "gpus": "how many GPUs there are",
    "driver": "the driver's version",
    "clock_reasons": "why clocks are held down, on any of them",
    "free_mib": "memory that is free on the fullest of them",
}
IDLE = ("gpu_idle", "none", "not_active")


def one(values: Iterable[Any]) -> Any:
    """The value that all who say it agree on; else None."""
    found = {value for value in values if value not in (None, "")}
    return found.pop() if len(found) == 1 else None


AMISS = frozenset(("server.unreachable", "server.loading", "server.unhealthy", "server.hung"))
"""Findings of servers that take no requests."""


def of_server(facts: Sequence[Fact], findings: Sequence[Finding]) -> Mapping[str, Any]:
    processes = [fact for fact in facts if isinstance(fact, ServerProcess) and fact.pid]
    states = [fact for fact in facts if isinstance(fact, ServerState)]
    return {
        "servers": max(len(processes), len(states)) if processes or states else None,
        "engine": one((*(p.engine for p in processes), *(s.engine for s in states))),
        "url": one((*(p.base for p in processes), *(s.base for s in states))),
        "version": one(s.version for s in states) or one(p.version for p in processes),
        "model": one(state.model for state in states),
        "context_limit": one(state.context_length for state in states),
        "healthy": False
        if any(finding.id in AMISS for finding in findings)
        else one(state.healthy for state in states),
        "running": one(state.running_requests for state in states),
    }


def of_config(facts: Sequence[Fact]) -> Mapping[str, Any]:
    drafters = [fact for fact in facts if isinstance(fact, ModelConfig) and fact.role == "drafter"]
    targets = [fact for fact in facts if isinstance(fact, ModelConfig) and fact.role == "target"]
    arguments = sorted(
        (fact for fact in facts if isinstance(fact, ServerArgs)), key=lambda fact: not fact.resolved
    )
    told = {name: one(a.get(name) for a in arguments[:1]) for name in _ARGUMENTS}
    limit = told["context_length"] or one(target.context_length for target in targets)
    limits = _limits(drafters, targets)
    return {
        "drafter": one(posixpath.dirname(each.path) for each in drafters),
        "target": one(posixpath.dirname(each.path) for each in targets),
        "algorithm": told["speculative_algorithm"],
        "draft_tokens": told["speculative_num_draft_tokens"],
        "block": one(each.block_size for each in drafters),
        "window": one(each.sliding_window for each in drafters if each.use_sliding_window is not False),
        "context_limit": limit if isinstance(limit, int) else None,
        "limits": limits if drafters or targets else None,
        "around_limits": tuple(
            side
            for each in limits
            for side in (round(each * 0.93), round(each * 1.07))
            if not isinstance(limit, int) or side < limit
        )
        if drafters or targets
        else None,
    }


_ARGUMENTS = ("context_length", "speculative_algorithm", "speculative_num_draft_tokens")


def _limits(drafters: Sequence[ModelConfig], targets: Sequence[ModelConfig]) -> tuple[int, ...]:
    found: set[int | None] = set()
    for each in drafters:
        found.add(each.sliding_window if each.use_sliding_window is not False else None)
        found |= {each.rope.original_max_position, each.max_position_embeddings}
        if each.rope.original_max_position and each.rope.factor:
            found.add(round(each.rope.original_max_position * each.rope.factor))
    found |= {each.rope.original_max_position for each in targets}
    return tuple(sorted(length for length in found if length))


def of_logs(facts: Sequence[Fact]) -> Mapping[str, Any]:
    files = [fact for fact in facts if isinstance(fact, LogFile)]
    if not files:
        return {}
    counted = [file.decode_lines for file in files if file.decode_lines is not None]
    events = (fact.kind for fact in facts if isinstance(fact, LogEvent))
    return {
        "logs": tuple(dict.fromkeys(file.path for file in files)),
        "events": tuple(dict.fromkeys(events)),
        "decode_lines": sum(counted) if counted else None,
    }


def of_reach(facts: Sequence[Fact]) -> Mapping[str, Any]:
    found = next((fact for fact in facts if isinstance(fact, Reach)), None)
    if found is None:
        return {}
    return {"user": found.user or None, "gpus": len(found.gpus) or None, "engines": found.engines}


def of_gpus(facts: Sequence[Fact], findings: Sequence[Finding]) -> Mapping[str, Any]:
    cards = [fact for fact in facts if isinstance(fact, Gpu)]
    if not cards:
        return {"gpus": 0} if any(finding.id == "gpu.none" for finding in findings) else {}
    told = [card.clock_reasons for card in cards if card.clock_reasons is not None]
    reasons = dict.fromkeys(reason for each in told for reason in each if reason not in IDLE)
    free = [
        card.memory_total_mib - card.memory_used_mib
        for card in cards
        if card.memory_total_mib is not None and card.memory_used_mib is not None
    ]
    return {
        "gpus": len(cards),
        "driver": one(card.driver for card in cards),
        "clock_reasons": tuple(reasons) if told else None,
        "free_mib": min(free) if len(free) == len(cards) else None,
    }
