"""Per-request records of any tool: SGLang's meta_info, vLLM's block, llama.cpp's timings, AIPerf's record, plain counts."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from ddprobe.engines.base import items, mapping, number, text, whole_number
from ddprobe.engines.generation import Serving
from ddprobe.engines.llamacpp_accounts import totals
from ddprobe.engines.sglang_accounts import accounts, spoken
from ddprobe.facts import Account, CommitRequest
from ddprobe.model import Cite

DEEPEST = 12
MOST = 5000
_LONGEST_HISTOGRAM = 4096
_OWN_LISTS = ("points",)


def requests(key: str, data: Any) -> Iterator[CommitRequest]:
    """Every request found in it, up to `MOST`, in order."""
    found = _records(data, "$", None, 0)
    for number_of, (place, record, outer) in enumerate(itertools.islice(found, MOST)):
        request = _request(key, place, record, outer, number_of)
        if request is not None:
            yield request


def _records(
    value: Any, place: str, outer: Mapping[str, Any] | None, depth: int
) -> Iterator[tuple[str, dict[str, Any], Mapping[str, Any]]]:
    """Objects that tell of one request, with the place where they stand and the object around them."""
    if depth > DEEPEST:
        return
    if isinstance(value, list):
        for index, item in enumerate(value):
            if isinstance(item, dict | list):
                yield from _records(item, f"{place}[{index}]", outer, depth + 1)
    elif isinstance(value, dict):
        if _is_record(value):
            yield place, value, outer or {}
            return
        # A chat answer may tell of its request twice.
        twice = any("meta_info" in choice for choice in items(value.get("choices")))
        for name, inner in value.items():
            if isinstance(inner, dict | list) and name not in _OWN_LISTS and not (twice and name == "sglext"):
                yield from _records(inner, f"{place}.{name}"[:200], value, depth + 1)


def _is_record(value: Mapping[str, Any]) -> bool:
    return (
        "spec_verify_ct" in value
        or "num_spec_steps" in value
        or ("predicted_n" in value and "prompt_n" in value)
        or ("verify_steps" in value and "completion_tokens" in value)
    )


def _request(
    key: str, place: str, record: dict[str, Any], outer: Mapping[str, Any], index: int
) -> CommitRequest | None:
    """What one record says, in the neutral shape."""
    usage = mapping(outer.get("usage"))
    output = _first(record, "completion_tokens", "predicted_n", "output_tokens", "output_sequence_length")
    if output is None:
        output = whole_number(usage.get("completion_tokens"))
    told = _accounts(record, output)
    best = next((a for a in told if a.steps is not None and a.accepted is not None), None)
    counted = best or next(iter(told), None)
    if counted is None and output is None:
        return None
    prompt = _first(record, "prompt_tokens", "prompt_n", "input_sequence_length")
    cached = _first(record, "cached_tokens", "cache_n")
    if "predicted_n" in record and prompt is not None:
        prompt += cached or 0  # llama.cpp counts what it computed
    return CommitRequest(
        key=key,
        purpose="point",
        arm="",
        context_tokens=prompt or 0,
        prompt=index,
        prompt_tokens=prompt,
        cached_tokens=cached,
        output_tokens=output,
        finish=_finish(record, outer),
        num_spec_steps=counted.steps if counted is not None else None,
        num_accepted_draft_tokens=counted.accepted if counted is not None else None,
        num_draft_tokens=counted.drafted if counted is not None else None,
        acceptance_histogram=next((a.histogram for a in told if a.histogram is not None), None),
        origin=counted.origin if counted is not None else "",
        accounts=told,
        notes=_notes(record),
        source=(Cite(key, place),),
    )


def _accounts(record: dict[str, Any], output: int | None) -> tuple[Account, ...]:
    if "spec_verify_ct" in record:
        return tuple(accounts(spoken(record), Serving(), output, "meta_info"))
    if "num_spec_steps" in record:
        return _block(record)
    if "predicted_n" in record:
        return totals(record)
    steps = whole_number(record.get("verify_steps"))
    if steps is None or steps < 0:
        return ()
    return (
        Account(
            origin="verify_steps",
            steps=steps,
            accepted=_first(record, "accepted", "num_accepted_draft_tokens"),
            drafted=_first(record, "drafted", "num_draft_tokens"),
            reported_commit=number(record.get("commit_len")),
            reported_rate=number(record.get("accept_rate")),
        ),
    )


def _block(record: Mapping[str, Any]) -> tuple[Account, ...]:
    """vLLM's and AIPerf's record. Its mean is 1.0 when nothing was drafted: then it says no mean."""
    steps = whole_number(record.get("num_spec_steps"))
    if steps is None or steps < 0:
        return ()
    return (
        Account(
            origin="metrics.speculative_decoding",
            steps=steps,
            accepted=whole_number(record.get("num_accepted_draft_tokens")),
            drafted=whole_number(record.get("num_draft_tokens")),
            histogram=_histogram(record.get("acceptance_histogram")),
            reported_commit=number(record.get("mean_acceptance_length")) if steps else None,
            reported_rate=number(record.get("draft_acceptance_rate")) if steps else None,
            last_step_whole=True,
        ),
    )


def _histogram(value: Any) -> tuple[int, ...] | None:
    """Dense as a list, or sparse as an object {accepted: steps}."""
    if isinstance(value, list) and len(value) <= _LONGEST_HISTOGRAM:
        counts = [whole_number(item) for item in value]
        dense = tuple(count for count in counts if count is not None and count >= 0)
        return dense if len(dense) == len(value) and value else None
    if not isinstance(value, dict) or not value or len(value) > _LONGEST_HISTOGRAM:
        return None
    sparse: dict[int, int] = {}
    for name, count in value.items():
        steps = whole_number(count)
        if not str(name).isascii() or not str(name).isdigit() or steps is None or steps < 0:
            return None
        if len(str(name)) > 4 or int(name) >= _LONGEST_HISTOGRAM:
            return None
        sparse[int(name)] = steps
    return tuple(sparse.get(index, 0) for index in range(max(sparse) + 1))


def _finish(record: Mapping[str, Any], outer: Mapping[str, Any]) -> str:
    reason = record.get("finish_reason", outer.get("finish_reason"))
    return text(mapping(reason).get("type")) or text(reason)


def _notes(record: Mapping[str, Any]) -> tuple[str, ...]:
    dropped = whole_number(record.get("tokens_dropped_after_stop"))
    return (f"{dropped} accepted tokens dropped after the stop",) if dropped and dropped > 0 else ()


def _first(record: Mapping[str, Any], *names: str) -> int | None:
    """The first of these fields that holds a count."""
    found = (whole_number(record.get(name)) for name in names)
    return next((count for count in found if count is not None and count >= 0), None)
