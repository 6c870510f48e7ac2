"""Reads what SGLang answers: the chunks of a stream, step by step, and every account of the speculation in them.

Native chunks hold all tokens so far (`{"text": …, "output_ids": […], "meta_info": {"completion_tokens": 5, …}}`), or
only the new ones where the server streams incrementally; those of `/v1/completions` always only the new ones.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ddprobe.engines.base import items, mapping, text, whole_number
from ddprobe.engines.generation import (
    Event,
    Generated,
    Ids,
    Serving,
    StreamedStep,
    events,
    said_error,
    unstreamed,
    whole,
)
from ddprobe.engines.sglang_accounts import Spoken, accounts, last_is_cut, spoken, stream_account
from ddprobe.errors import Unanswered
from ddprobe.model import HttpResult
from ddprobe.parsing import bounded_json

_DETAILS = "spec_tokens_details"
_MOST_IN_PIECE = 100_000


@dataclass(slots=True)
class _Heard:
    """What the chunks said, in order."""

    totals: list[int | None] = field(default_factory=list)
    """Output tokens so far, after each chunk that brought some."""
    times: list[float | None] = field(default_factory=list)
    pieces: list[int] = field(default_factory=list)
    ids: list[Ids | None] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    meta: dict[str, Any] = field(default_factory=dict)
    """The last `meta_info`, or `usage`."""
    details: dict[str, Any] = field(default_factory=dict)
    """Where the speculation is told: `meta_info`, or `spec_tokens_details`."""
    native: bool = True
    finish: str = ""
    error: str = ""


def read(result: HttpResult, serving: Serving) -> Generated:
    """The answer of `/generate` or `/v1/completions`. Raises `Unanswered` when it is not whole."""
    heard = _hear(result)
    if heard.error:
        return Generated(error=heard.error)
    if not heard.finish:
        counted = bool(heard.totals) and heard.totals[-1] is not None
        got = (heard.totals[-1] or 0) if counted else len(heard.totals)
        unit = ("token" if counted else "piece") + ("" if got == 1 else "s")
        raise Unanswered(result.key, f"the stream broke off after {got} {unit}, before its end")
    output = whole_number(heard.meta.get("completion_tokens"))
    if output is None and heard.totals:
        output = heard.totals[-1]
    said = spoken(heard.details)
    shown = _steps(heard, serving, said)
    cut = last_is_cut(shown.steps, said, serving, output)
    # The stream does not say what was drafted for a step; on a server that does not speculate, nothing was.
    drafted = 0 if serving.speculating is False and not said.steps else None
    steps = tuple(StreamedStep(tokens, at, drafted) for tokens, at in shown.steps)
    found = list(accounts(said, serving, output, "meta_info" if heard.native else _DETAILS))
    if steps and shown.single and (said.steps or serving.speculating):
        found.append(stream_account(steps, cut))
    return Generated(
        prompt_tokens=whole_number(heard.meta.get("prompt_tokens")),
        cached_tokens=_cached(heard.meta),
        output_tokens=output,
        ids=_all_ids(heard.ids, output),
        text=_all_text(heard),
        finish=heard.finish,
        first_token_at=shown.first_at,
        steps=steps,
        last_step_cut=cut,
        merged=shown.merged,
        accounts=tuple(found),
        notes=(*shown.notes, *_notes(heard, serving, said, output)),
    )


def json_object(result: HttpResult) -> dict[str, Any]:
    """A whole answer that is one JSON object. Raises `Unanswered` with what the server said."""
    try:
        parsed = bounded_json.loads(whole(result))
    except ValueError:
        raise Unanswered(result.key, "the answer is no JSON") from None
    return mapping(parsed)


def token_ids(value: Any) -> Ids | None:
    """The value if it is a list of token ids."""
    if not isinstance(value, list) or not set(map(type, value)) <= {int} or min(value, default=0) < 0:
        return None
    return tuple(value)


# --- hearing the chunks ------------------------------------------------------------------------------------


def _hear(result: HttpResult) -> _Heard:
    whole(result)
    found: Sequence[Event] = tuple(events(result))
    if not found:
        found = (Event(unstreamed(result), None, -1),)
    heard = _Heard(native=not any("choices" in event.data for event in found))
    for event in found:
        heard.error = said_error(event.data) or _aborted(event.data)
        if heard.error:
            break
        (_native if heard.native else _completion)(heard, event)
    return heard


def _native(heard: _Heard, event: Event) -> None:
    meta = mapping(event.data.get("meta_info"))
    heard.meta = heard.details = meta or heard.meta
    heard.finish = _reason(meta.get("finish_reason")) or heard.finish
    _bring(heard, event, meta.get("completion_tokens"), event.data.get("output_ids"), event.data.get("text"))


def _completion(heard: _Heard, event: Event) -> None:
    usage = mapping(event.data.get("usage"))
    heard.meta = usage or heard.meta
    heard.details = mapping(mapping(event.data.get("sglext")).get(_DETAILS)) or heard.details
    for choice in items(event.data.get("choices"))[:1]:
        heard.details = mapping(choice.get("meta_info")) or heard.details
        heard.finish = _reason(choice.get("finish_reason")) or heard.finish
        ids = choice.get("token_ids")
        so_far = usage.get("completion_tokens")
        if so_far is None and isinstance(ids, list) and (not heard.totals or heard.totals[-1] is not None):
            so_far = (heard.totals[-1] or 0 if heard.totals else 0) + len(ids)
        _bring(heard, event, so_far, ids, choice.get("text"))


def _bring(heard: _Heard, event: Event, so_far: Any, ids: Any, words: Any) -> None:
    heard.totals.append(whole_number(so_far))
    heard.times.append(event.at)
    heard.pieces.append(event.piece)
    heard.ids.append(token_ids(ids))
    heard.texts.append(text(words))


def _reason(value: Any) -> str:
    """`{"type": "length", "length": 32}` or `"length"`."""
    return text(value.get("type")) if isinstance(value, dict) else text(value)


def _aborted(data: dict[str, Any]) -> str:
    reasons = [mapping(data.get("meta_info")).get("finish_reason")]
    reasons += [choice.get("finish_reason") for choice in items(data.get("choices"))]
    for reason in reasons:
        if _reason(reason) == "abort":
            why = text(mapping(reason).get("message"))
            return "the server aborted the request" + (f": {why[:300]}" if why else "")
    return ""


# --- what they bring ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Shown:
    """What a stream shows of the decode steps."""

    steps: tuple[tuple[int, float | None], ...] = ()
    """Tokens and time of each."""
    merged: int = 0
    single: bool = True
    """Each of them is one step: its tokens are a commit length."""
    first_at: float | None = None
    notes: tuple[str, ...] = ()


def _steps(heard: _Heard, serving: Serving, said: Spoken) -> _Shown:
    """One chunk is one step, unless some were put together on the way."""
    grown = list(_growth(heard))
    first_at = grown[0][1] if grown else heard.times[0] if heard.times else None
    interval = serving.stream_interval or 1
    if any(tokens > _MOST_IN_PIECE for tokens, _, _ in grown):
        return _Shown(first_at=first_at, notes=("a piece of the stream claims more tokens than it can hold",))
    if not grown or (len(grown) == 1 and grown[0][0] > 1):
        return _Shown(first_at=first_at)
    if interval > 1:
        note = f"the server streams every {interval} tokens (--stream-interval): steps cannot be told apart"
        return _Shown(first_at=first_at, notes=(note,))
    # The prefill gives one token; what came with it was a step.
    shown = [(tokens, at) for tokens, at, _ in ((grown[0][0] - 1, *grown[0][1:]), *grown[1:]) if tokens > 0]
    merged = (grown[0][0] > 1) + sum(one[2] == later[2] >= 0 for one, later in itertools.pairwise(grown))
    if serving.speculating is False and not said.steps:
        several = sum(tokens > 1 for tokens, _ in shown)
        each = tuple((1, at) for tokens, at in shown for _ in range(tokens))
        return _Shown(each, merged + several, first_at=first_at)
    ceiling = None if serving.draft_tokens is None else serving.draft_tokens + 1
    together = sum(ceiling is not None and tokens > ceiling for tokens, _ in shown)
    notes: tuple[str, ...] = ()
    if said.steps is not None and len(shown) != said.steps:
        together = max(together, said.steps - len(shown))
        notes = (f"the stream came in {len(shown)} pieces for {said.steps} verify steps",)
    elif together:
        notes = (f"{together} of {len(shown)} pieces of the stream hold more tokens than a step can commit",)
    return _Shown(tuple(shown), merged + together, not notes, first_at, notes)


def _growth(heard: _Heard) -> Iterator[tuple[int, float | None, int]]:
    """Tokens that each chunk brought, its time and its piece; nothing when a chunk does not say."""
    known = [total for total in heard.totals if total is not None]
    if len(known) != len(heard.totals) or known != sorted(known):
        return
    before = 0
    for total, at, piece in zip(known, heard.times, heard.pieces, strict=True):
        if total > before:
            yield total - before, at, piece
        before = total


def _all_ids(parts: Sequence[Ids | None], output: int | None) -> Ids | None:
    """The ids of the whole output, whether each chunk held all so far or only its own."""
    known = [part for part in parts if part is not None]
    if not known or len(known) != len(parts):
        return None
    if len(known[-1]) == output:
        return known[-1]
    joined = tuple(token for part in known for token in part)
    return joined if output is None or len(joined) == output else None


def _all_text(heard: _Heard) -> str:
    last = heard.texts[-1] if heard.texts else ""
    grows = all(last.startswith(part) for part in heard.texts[:-1]) and all(
        len(last) > len(part) for part in heard.texts[:-1]
    )
    same_ids = bool(heard.ids) and heard.ids[-1] is not None and len(heard.ids[-1]) == heard.totals[-1]
    return last if heard.native and (grows or same_ids) else "".join(heard.texts)


def _cached(meta: dict[str, Any]) -> int | None:
    """`usage` tells it only where the server was started with --enable-cache-report."""
    told = meta.get("cached_tokens", mapping(meta.get("prompt_tokens_details")).get("cached_tokens"))
    return whole_number(told)


def _notes(heard: _Heard, serving: Serving, said: Spoken, output: int | None) -> Iterator[str]:
    if serving.speculating and not said.steps and (output or 0) > 1:
        yield "the server speculates, but its answer says nothing of it"
    if serving.speculating is False and said.steps:
        yield "the server says that it does not speculate, but its answer tells of verify steps"
    if retracted := whole_number(heard.meta.get("num_retractions")):
        yield f"the server ran out of KV cache and took the request back {retracted} times: steps were lost"
