"""The `meta_info` of an answer, with the fields that SGLang of each version has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ddprobe.lab.engine.decoding import Run

Version = tuple[int, ...]


def version_of(text: str) -> Version:
    return tuple(int(part) for part in text.split("."))


def running(run: Run, request: str, written: int, ended: bool) -> dict[str, Any]:
    """What every piece of an answer says when this many tokens are out."""
    cached = run.cached_tokens
    return {
        "id": request,
        "finish_reason": {"type": "length", "length": written} if ended else None,
        "prompt_tokens": run.prompt_tokens,
        "weight_version": "default",
        "num_retractions": 0,
        "queue_time": 0.0003,
        "reasoning_tokens": 0,
        "completion_tokens": written,
        "cached_tokens": cached,
        "cached_tokens_details": {"device": cached, "host": 0} if cached else None,
        "dp_rank": None,
    }


def speculation(run: Run, draft_tokens: int | None, version: Version) -> dict[str, Any]:
    """The `spec_*` fields of the last piece; none where nothing was verified."""
    if draft_tokens is None or not run.steps:
        return {}
    counts = counted(run, version)
    steps, correct = len(counts), sum(counts)
    proposed = steps * draft_tokens
    fields: dict[str, Any] = {
        "spec_accept_rate": correct / proposed,
        "spec_accept_length": len(run.output) / steps,
    }
    for name, value in (("correct", correct), ("proposed", proposed)):
        fields |= {field: value for field, (first, last) in _NAMES[name].items() if first <= version < last}
    fields["spec_verify_ct"] = steps
    # The worker of 0.5.11 to 0.5.13 has no histogram.
    if version >= (0, 5, 14):
        bins = histogram(counts)
        fields |= {field: bins for field, (first, last) in _NAMES["bins"].items() if first <= version < last}
    return fields


_EVER = (9,)
_NAMES: Mapping[str, Mapping[str, tuple[Version, Version]]] = {
    "correct": {
        "spec_accept_token_num": ((0, 5, 6), (0, 5, 11)),
        "spec_accepted_drafts": ((0, 5, 11), (0, 5, 21)),
        "spec_num_correct_drafts": ((0, 5, 12), _EVER),
    },
    "proposed": {
        "spec_draft_token_num": ((0, 5, 6), (0, 5, 11)),
        "spec_proposed_drafts": ((0, 5, 11), (0, 5, 21)),
        "spec_num_proposed_drafts": ((0, 5, 12), _EVER),
    },
    "bins": {
        "spec_accept_histogram": ((0, 5, 9), (0, 5, 21)),
        "spec_correct_drafts_histogram": ((0, 5, 12), _EVER),
    },
}
"""Field → the first version that has it and the first one that has it no more."""


def counted(run: Run, version: Version) -> list[int]:
    """Accepted tokens of each step, as this version counts them."""
    counts = [step.counted for step in run.steps]
    if version < (0, 5, 14):
        # Tokens are appended one by one there, and counted until the output is full.
        last = run.steps[-1]
        counts[-1] -= last.committed - len(last.tokens)
    return counts


def histogram(counts: list[int]) -> list[int]:
    """Steps by accepted tokens."""
    bins = [0] * (max(counts) + 1)
    for count in counts:
        bins[count] += 1
    return bins
