"""What a vLLM server says of itself before anything is sent: its command line, `/v1/models` and `/metrics`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ddprobe.engines.base import Answers, document, items, mapping, text, whole_number
from ddprobe.engines.generation import Counters, Serving
from ddprobe.facts import Claim, ServerArgs
from ddprobe.model import Cite
from ddprobe.parsing import prometheus

_LOOKUP = frozenset({"ngram", "[ngram]", "ngram_gpu", "suffix"})
_DRAFTS = "vllm:spec_decode_num_drafts_total"
_PER_POSITION = "vllm:spec_decode_num_accepted_tokens_per_pos_total"
_PER_TOKEN = "vllm:request_time_per_output_token_seconds"
# Arguments at which a long prompt is cut into pieces.
_CHUNKS = ("max_num_batched_tokens", "long_prefill_token_threshold")


def serving_of(answers: Answers, arguments: Sequence[ServerArgs]) -> Serving:
    """The server's speculation and room."""
    given = [known for known in arguments if known.engine == "vllm"]
    config = _speculative(given)
    method = text(config.get("method")) or ("ngram" if config.get("model") in _LOOKUP else "")
    model = _base_model(answers)
    metrics = _metrics(answers)
    values = prometheus.totals(metrics)
    cache = _cache(metrics)
    return Serving(
        speculating=_speculating(bool(config), given, values),
        method=method,
        drafter=_drafter(method, config),
        draft_tokens=whole_number(config.get("num_speculative_tokens")) or _positions(metrics),
        # A chain is written as (0,), (0, 0), …: any other branch has a digit above 0.
        tree=bool(re.search(r"[1-9]", text(config.get("speculative_token_tree")))),
        context_limit=whole_number(model.get("max_model_len")),
        kv_tokens=cache.tokens,
        kv_used=cache.used,
        running=_count(values.get("vllm:num_requests_running")),
        waiting=_count(values.get("vllm:num_requests_waiting")),
        model=text(model.get("id")),
        version=text(mapping(document(answers, "/version")).get("version")),
        prefix_cache=cache.prefix,
        stream_interval=whole_number(_first(given, "stream_interval")),
        draft_context_limit=whole_number(config.get("max_model_len")),
        decode_ms=_decode_ms(values),
        limits=tuple(
            (tokens, f"--{name.replace('_', '-')}")
            for name in _CHUNKS
            if (tokens := whole_number(_first(given, name)) or 0) > 0
        ),
    )


def counters_of(metrics: str) -> Counters | None:
    """The counters in the text of `/metrics`, by their exact names: each has a `_created` twin that is a time."""
    values = prometheus.totals(metrics)
    if "vllm:generation_tokens_total" not in values and _DRAFTS not in values:
        return None
    accepted: dict[int, float] = {}
    for sample in prometheus.samples(metrics):
        place = _digits(sample.label("position"))
        if sample.name == _PER_POSITION and place is not None:
            accepted[place] = accepted.get(place, 0.0) + sample.value
    return Counters(
        drafts=values.get(_DRAFTS),
        drafted=values.get("vllm:spec_decode_num_draft_tokens_total"),
        accepted=values.get("vllm:spec_decode_num_accepted_tokens_total"),
        per_position=tuple(accepted[place] for place in sorted(accepted)),
        generated=values.get("vllm:generation_tokens_total"),
        steps=values.get("vllm:iteration_tokens_total_count"),
        running=values.get("vllm:num_requests_running"),
        cached=values.get("vllm:prompt_tokens_cached_total", values.get("vllm:prefix_cache_hits_total")),
    )


def lifetime(metrics: str, source: Cite) -> tuple[Claim, ...]:
    """What the counters say of everything since the server started."""
    counters = counters_of(metrics)
    if counters is None or not counters.drafts or not counters.drafted or counters.accepted is None:
        return ()
    samples = int(counters.drafts)
    commit, rate = 1 + counters.accepted / counters.drafts, counters.accepted / counters.drafted
    return tuple(
        Claim(
            what=what,
            value=value,
            origin="/metrics vllm:spec_decode",
            samples=samples,
            window="lifetime",
            source=(source,),
        )
        for what, value in (("accept length", commit), ("accept rate", rate))
    )


@dataclass(frozen=True, slots=True)
class _Cache:
    tokens: int | None
    used: int | None
    prefix: bool | None


def _cache(metrics: str) -> _Cache:
    """The KV cache of one engine: of the smallest and fullest, where there are several, for a request lives on one."""
    rooms: list[int] = []
    prefix: bool | None = None
    usage: float | None = None
    for sample in prometheus.samples(metrics):
        if sample.name == "vllm:kv_cache_usage_perc":
            usage = max(usage or 0.0, sample.value)
        elif sample.name == "vllm:cache_config_info":
            prefix = {"True": True, "False": False}.get(sample.label("enable_prefix_caching"), prefix)
            told, blocks, size = (
                _digits(sample.label(name))
                for name in ("kv_cache_size_tokens", "num_gpu_blocks", "block_size")
            )
            room = told or (blocks * size if blocks and size else None)
            rooms += [room] if room else []
    tokens = min(rooms, default=None)
    used = None if tokens is None or usage is None else round(tokens * min(usage, 1.0))
    return _Cache(tokens, used, prefix)


def _drafter(method: str, config: Mapping[str, Any]) -> str:
    if method in _LOOKUP:
        return "lookup"
    return "model" if method or config.get("model") else ""


def _positions(metrics: str) -> int | None:
    """K: there is a counter for each position of a draft."""
    counters = counters_of(metrics)
    return len(counters.per_position) or None if counters is not None else None


def _decode_ms(values: Mapping[str, float]) -> float | None:
    """Mean over the requests since the server started."""
    requests, seconds = values.get(f"{_PER_TOKEN}_count"), values.get(f"{_PER_TOKEN}_sum")
    return 1000 * seconds / requests if requests and seconds is not None else None


def _speculating(configured: bool, given: Sequence[ServerArgs], values: Mapping[str, float]) -> bool | None:
    if configured or _DRAFTS in values:
        return True
    # The counters of drafts are there from the start, or never.
    if "vllm:generation_tokens_total" in values or any(not known.elsewhere for known in given):
        return False
    return None


def _speculative(given: Sequence[ServerArgs]) -> dict[str, Any]:
    """`--speculative-config`; what is no JSON object is kept as its only field."""
    value = _first(given, "speculative_config")
    if isinstance(value, str) and value:
        return {"unread": value}
    return mapping(value)


def _first(given: Sequence[ServerArgs], name: str) -> Any:
    """The argument, from the first that has it."""
    return next((value for known in given if (value := known.get(name)) is not None), None)


def _base_model(answers: Answers) -> dict[str, Any]:
    """The served model itself; adapters have a parent."""
    models = items(mapping(document(answers, "/v1/models")).get("data"))
    return next((model for model in models if not model.get("parent")), models[0] if models else {})


def _metrics(answers: Answers) -> str:
    metrics = answers.get("/metrics")
    return metrics.text if metrics is not None and metrics.whole else ""


def _digits(value: str) -> int | None:
    return int(value) if re.fullmatch(r"[0-9]{1,18}", value) else None


def _count(value: float | None) -> int | None:
    return None if value is None else round(value)
