"""What llama-server says of its speculation and its room before anything is sent, and its server-wide counters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ddprobe.engines.base import Answers, document, items, mapping, text, whole_number
from ddprobe.engines.generation import Counters, Serving
from ddprobe.facts import Claim, ServerArgs
from ddprobe.parsing import prometheus

_NGRAM_TOKENS = 48
_DRAFT_TOKENS = 3
# The argument with the most tokens a draft of this type has, and its default (b10434 to b11434).
_LONGEST_DRAFT = {
    "ngram-simple": ("spec_ngram_simple_size_m", _NGRAM_TOKENS),
    "ngram-map-k": ("spec_ngram_map_k_size_m", _NGRAM_TOKENS),
    "ngram-map-k4v": ("spec_ngram_map_k4v_size_m", _NGRAM_TOKENS),
    "ngram-mod": ("spec_ngram_mod_n_max", 64),
    "draft-simple": ("num_speculative_tokens", _DRAFT_TOKENS),
    "draft-eagle3": ("num_speculative_tokens", _DRAFT_TOKENS),
    "draft-mtp": ("num_speculative_tokens", _DRAFT_TOKENS),
    "draft-dflash": ("num_speculative_tokens", _DRAFT_TOKENS),
    "draft-dspark": ("num_speculative_tokens", _DRAFT_TOKENS),
}
_PREFIX = "llamacpp:"


def serving_of(answers: Answers, arguments: Sequence[ServerArgs]) -> Serving:
    """From `/props`, `/slots`, `/v1/models`, `/metrics` and the command line."""
    props = mapping(document(answers, "/props"))
    slots = items(document(answers, "/slots"))
    models = items(mapping(document(answers, "/v1/models")).get("data"))
    metrics = answers.get("/metrics")
    counted = prometheus.totals(metrics.text) if metrics is not None and metrics.whole else {}
    given = _merged(arguments)
    limit = whole_number(mapping(props.get("default_generation_settings")).get("n_ctx"))
    if limit is None and slots:
        limit = whole_number(slots[0].get("n_ctx"))
    types = _types(slots, given)
    speculating = _speculating(slots, types)
    busy = sum(slot.get("is_processing") is True for slot in slots) if slots else None
    produced = counted.get(_PREFIX + "tokens_predicted_total")
    batch = whole_number(given.get("batch_size"))
    return Serving(
        speculating=speculating,
        method=",".join(types) if speculating is not False else "",
        drafter=_drafter(types, given) if speculating is not False else "",
        draft_tokens=_draft_tokens(slots, types, given) if speculating is not False else None,
        context_limit=limit,
        kv_tokens=_kv_tokens(props, limit, given),
        running=busy if busy is not None else _count(counted, "requests_processing"),
        waiting=_count(counted, "requests_deferred"),
        vocabulary=whole_number(mapping(models[0].get("meta")).get("n_vocab")) if models else None,
        model=text(models[0].get("id")) if models else text(props.get("model_alias")),
        version=text(props.get("build_info")),
        # Every request asks for it.
        prefix_cache=True,
        decode_ms=1000 * counted.get(_PREFIX + "tokens_predicted_seconds_total", 0) / produced
        if produced
        else None,
        limits=((batch, "--batch-size"),) if batch else (),
    )


def counters_of(metrics: str) -> Counters:
    """The counters in the text of `/metrics`. Requests are added when they end."""
    totals = prometheus.totals(metrics)
    places = {
        int(sample.label("position")): sample.value
        for sample in prometheus.samples(metrics)
        if sample.name == _PREFIX + "spec_decode_num_accepted_tokens_per_pos_total"
        and sample.label("position").isascii()
        and sample.label("position").isdigit()
        and len(sample.label("position")) < 6
    }
    whole = sorted(places) == list(range(len(places)))
    return Counters(
        drafts=totals.get(_PREFIX + "spec_decode_num_drafts_total"),
        drafted=totals.get(_PREFIX + "spec_decode_num_draft_tokens_total"),
        accepted=totals.get(_PREFIX + "spec_decode_num_accepted_tokens_total"),
        per_position=tuple(places[place] for place in sorted(places)) if whole else (),
        generated=totals.get(_PREFIX + "tokens_predicted_total"),
        # Verify steps are among them, in spite of its help text, and so are prompt batches.
        steps=totals.get(_PREFIX + "n_decode_total"),
        running=totals.get(_PREFIX + "requests_processing"),
        cached=totals.get(_PREFIX + "prompt_tokens_cached_total"),
    )


def lifetime(counters: Counters) -> tuple[Claim, ...]:
    """Mean commit and accept rate since the server started, over steps with a draft."""
    if not counters.drafts or counters.accepted is None:
        return ()
    steps = round(counters.drafts)
    claims = [("accept length", 1 + counters.accepted / counters.drafts)]
    if counters.drafted:
        claims.append(("accept rate", counters.accepted / counters.drafted))
    return tuple(
        Claim(
            what=what, value=value, origin="/metrics spec_decode counters", samples=steps, window="lifetime"
        )
        for what, value in claims
    )


def _merged(arguments: Sequence[ServerArgs]) -> dict[str, Any]:
    """All arguments; the first source that has one wins."""
    return {name: value for source in reversed(arguments) for name, value in source.values}


def _types(slots: list[dict[str, Any]], given: dict[str, Any]) -> tuple[str, ...]:
    """The types of speculation: as given, else as a slot's last request had them."""
    told = [text(mapping(slot.get("params")).get("speculative.types")) for slot in slots]
    words = given.get("speculative_algorithm")
    if not isinstance(words, str):
        words = "ngram-mod" if given.get("spec_default") is True else next(filter(None, told), "")
    names = (word.strip() for word in words.split(","))
    return tuple(dict.fromkeys(name for name in names if name and name != "none"))


def _speculating(slots: list[dict[str, Any]], types: tuple[str, ...]) -> bool | None:
    said = [slot.get("speculative") for slot in slots]
    if True in said:
        return True
    if said and all(value is False for value in said):
        return False
    return True if types else None


def _drafter(types: tuple[str, ...], given: dict[str, Any]) -> str:
    """`model` where one of the types has a neural drafter."""
    if any(name.startswith("draft") for name in types):
        return "model"
    if types:
        return "lookup"
    # Builds without --spec-type speculate as soon as they are given a draft model.
    return "model" if given.get("speculative_draft_model_path") else ""


def _draft_tokens(slots: list[dict[str, Any]], types: tuple[str, ...], given: dict[str, Any]) -> int | None:
    """The longest draft of any type; None when it is not known of one of them."""
    if not types:
        told = whole_number(mapping(slots[0].get("params")).get("speculative.n_max")) if slots else None
        return told if told is not None else whole_number(given.get("num_speculative_tokens"))
    if not all(name in _LONGEST_DRAFT for name in types):
        return None
    lengths = []
    for name in types:
        argument, default = _LONGEST_DRAFT[name]
        # Without a command line nobody knows whether it is the default.
        length = whole_number(given.get(argument, default if given else None))
        if length is None:
            return None
        lengths.append(length)
    return max(lengths)


def _kv_tokens(props: dict[str, Any], limit: int | None, given: dict[str, Any]) -> int | None:
    """Room in all: `-c` where given, else what the slots have together."""
    context = whole_number(given.get("ctx_size"))
    if context:
        return context
    slots = whole_number(props.get("total_slots"))
    # Without a number of slots given, all of them share one cache.
    if given and (given.get("kv_unified") in (True, 1) or "parallel" not in given):
        slots = 1
    elif not given and slots != 1:
        slots = None
    return limit * slots if limit is not None and slots is not None else None


def _count(counted: dict[str, float], name: str) -> int | None:
    value = counted.get(_PREFIX + name)
    return None if value is None else round(value)
