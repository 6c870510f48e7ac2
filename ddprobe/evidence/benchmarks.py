"""Summaries of benchmarks, printed or saved: SGLang's and vLLM's `bench serve`, vLLM's example, llama-speculative."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from typing import Any

from ddprobe.engines.base import number
from ddprobe.evidence.document import Document, Found
from ddprobe.facts import Acceptance, BatchSpeed
from ddprobe.model import Cite
from ddprobe.parsing import benchmark_text
from ddprobe.parsing.benchmark_text import Summary

ORIGIN = "benchmark summary"
WHOLE, LIFETIME = "the whole benchmark", "lifetime"
MOST = 64
_LINES = 200_000
_SAVED = {
    "spec_decode_num_drafts": "steps",
    "spec_decode_draft_tokens": "drafted",
    "spec_decode_accepted_tokens": "accepted",
    "spec_decode_acceptance_length": "length",
}
"""What `vllm bench serve --save-result` calls them. Its acceptance rate is in percent, and follows from these."""
_TIMED = {
    "max_concurrency": "concurrency",
    "output_throughput": "speed",
    "completed": "requests",
    "total_input_tokens": "input",
}
"""What both engines' `bench serve` call them when they save a result."""
SAVED, SPEED = "spec_decode_", "output_throughput"


def recognise(document: Document, sample: str) -> Found | None:
    """What benchmarks in it say of speculation; None when none does."""
    if sample.lstrip("\ufeff \t\r\n").startswith(("{", "[")):
        made = list(_of_json(document))
    else:
        lines = itertools.islice(document.lines(), _LINES)
        made = [(f"line {one.line}", one) for one in itertools.islice(benchmark_text.read(lines), MOST)]
    told = [
        (
            _acceptance(document.key, place, one, f"{document.key}, benchmark {order}"),
            _speed(document.key, place, one),
        )
        for order, (place, one) in enumerate(made, 1)
    ]
    facts = tuple(fact for pair in told for fact in pair if fact is not None)
    if not facts:
        return None
    count = sum(any(fact is not None for fact in pair) for pair in told)
    return Found(f"summary of {count} benchmark{'s' * (count != 1)}", facts)


def _speed(key: str, place: str, one: Summary) -> BatchSpeed | None:
    """Output tokens per second at its concurrency; without a figure of speculation there was none."""
    running, speed = one.count("concurrency"), one.values.get("speed")
    if not one.timed or not running or not speed:
        return None
    tokens, requests = one.count("input"), one.count("requests")
    return BatchSpeed(
        running=running,
        context_tokens=round(tokens / requests) if tokens and requests else 0,
        tok_s=speed if one.speculates else None,
        plain_tok_s=None if one.speculates else speed,
        source=(Cite(key, place),),
    )


def _of_json(document: Document) -> Iterator[tuple[str, Summary]]:
    whole = document.whole()
    if whole is None or not any(name in whole for name in (SAVED, SPEED)):
        return
    try:
        held = json.loads(whole)
        rows = held if isinstance(held, list) else [held]
        places = [f"$[{at}]" if isinstance(held, list) else "$" for at in range(len(rows))]
    except (ValueError, RecursionError):
        rows = [_line(line) for line in whole.splitlines()]
        places = [f"line {at}" for at in range(1, len(rows) + 1)]
    for place, row in itertools.islice(zip(places, rows, strict=True), _LINES):
        if isinstance(row, dict) and (saved := _saved(row)).says:
            yield place, saved


def _line(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _saved(row: Mapping[str, Any]) -> Summary:
    names = {**_SAVED, **_TIMED}
    values = {field: value for name, field in names.items() if (value := number(row.get(name))) is not None}
    if number(row.get("accept_length")) is not None and "steps" not in values:
        values["length"] = row["accept_length"]
    shares = row.get("spec_decode_per_position_acceptance_rates")
    listed = shares[: benchmark_text.MOST_POSITIONS] if isinstance(shares, list) else []
    positions = {at: share for at, value in enumerate(listed) if (share := number(value)) is not None}
    return Summary(0, "bench serve", values, positions)


def _acceptance(key: str, place: str, one: Summary, run: str) -> Acceptance | None:
    """What a summary comes to. Counts win over what was rounded from them."""
    steps, drafted, accepted, emitted = map(one.count, ("steps", "drafted", "accepted", "emitted"))
    length, width = one.values.get("length"), one.count("width")
    window, definition = WHOLE, "1 + accepted / drafts"
    if one.tool == "vLLM V0" and width and drafted and emitted:
        # Its own acceptance rate counts tokens behind a wrong one, too.
        steps = drafted // width
        accepted, definition = emitted - steps, "emitted / (draft tokens / K)"
    elif one.tool == "llama-speculative" and emitted is not None and accepted is not None:
        steps, definition = emitted - accepted, "n_predict / (n_predict − n_accept)"
    elif steps is None and length is not None:
        lifetime = one.tool == "bench serve"
        window = LIFETIME if lifetime else WHOLE
        definition = "(correct drafts + steps) / steps" if lifetime else "completion tokens / verify steps"
    if steps is not None and not (
        steps > 0 and accepted is not None and 0 <= accepted <= (drafted or accepted)
    ):
        return None
    if window == LIFETIME and steps is None:
        # The server has served at least what the benchmark did.
        steps = _at_least(one, length)
    commit = 1 + accepted / steps if steps and accepted is not None else length
    if commit is None or commit < 1:
        return None
    per_step = drafted // steps if steps and drafted and drafted % steps == 0 else None
    return Acceptance(
        commit=commit,
        rate=accepted / drafted if drafted and accepted is not None else None,
        draft_tokens=width if one.tool == "vLLM V0" else per_step,
        definition=definition,
        window=window,
        steps=steps,
        origin=ORIGIN,
        per_position=one.per_position or None,
        run=run,
        source=(Cite(key, place),),
    )


def _at_least(one: Summary, length: float | None) -> int | None:
    """Verify steps of what was generated, but for the token that each prompt gives; None where the summary tells no totals."""
    tokens, requests = one.count("tokens"), one.count("requests")
    if not length or tokens is None or requests is None or tokens <= requests:
        return None
    return round((tokens - requests) / length)
