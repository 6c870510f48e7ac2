"""How vLLM generates: `/v1/completions` with token ids, streamed as one event per engine step.

    data: {"choices":[{"token_ids":[279,282,284],"finish_reason":null,…}],"usage":{"prompt_tokens":16,"completion_tokens":4}}
    data: {"choices":[],"usage":{…},"metrics":{"speculative_decoding":{"num_spec_steps":6,"acceptance_histogram":[0,0,6],…}}}

Three sources speak of the speculation: a block in the last event (only with `--per-request-spec-decode-metrics`), the
counters in `/metrics` (server-wide, of the steps that had a draft) and the sizes of the stream's pieces. The first two
count the last step as it was verified though the output was cut; the stream shows it as cut.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from ddprobe.engines.base import Answers, document, items, mapping, number, text, whole_number
from ddprobe.engines.generation import (
    Counters,
    Event,
    Generated,
    Generation,
    Ids,
    Prompt,
    Serving,
    StreamedStep,
    delta,
    events,
    post,
    said_error,
)
from ddprobe.engines.vllm_serving import counters_of, lifetime, serving_of
from ddprobe.errors import Unanswered
from ddprobe.facts import Account, Claim, ServerArgs
from ddprobe.model import Cite, HttpRequest, HttpResult

BLOCK = "metrics.speculative_decoding"
TOGETHER = 0.0001
"""Seconds within which no two steps are made: pieces so near were held back, and came together."""
_TOKENIZE_TIMEOUT = 60.0


class VLLMGeneration(Generation):
    """vLLM's OpenAI-compatible server, release 0.32."""

    ways: ClassVar = ("/v1/completions",)
    paths: ClassVar = ("/version", "/v1/models", "/metrics")
    counters_path = "/metrics"

    def serving(self, answers: Answers, arguments: Sequence[ServerArgs]) -> Serving:
        return serving_of(answers, arguments)

    def counters(self, result: HttpResult) -> Counters | None:
        return counters_of(result.text) if result.whole else None

    def claims(self, answers: Answers) -> tuple[Claim, ...]:
        metrics = answers.get("/metrics")
        return lifetime(metrics.text, Cite(metrics.key)) if metrics is not None and metrics.whole else ()

    def tokenize(self, key: str, base: str, text: str, model: str = "") -> HttpRequest:
        body = {**_named(model), "prompt": text, "add_special_tokens": False}
        return post(key, base, self.tokenize_path, body, _TOKENIZE_TIMEOUT, stream=False)

    def tokens(self, result: HttpResult) -> Ids:
        result.text  # noqa: B018 - raises with the reason
        told = mapping(document({self.tokenize_path: result}, self.tokenize_path))
        ids = _ids(told.get("tokens"))
        if ids is None or told.get("count", len(ids)) != len(ids):
            raise Unanswered(result.key, said_error(told) or "the answer does not hold the ids it counts")
        return ids

    def generate(
        self,
        key: str,
        base: str,
        prompt: Prompt,
        max_tokens: int,
        *,
        way: str,
        model: str = "",
        timeout: float,
    ) -> HttpRequest:
        body = {
            **_named(model),
            "prompt": list(prompt.ids) if prompt.ids else prompt.text,
            "max_tokens": max_tokens,
            # The model's generation_config.json may set other defaults for both.
            "temperature": 0,
            "repetition_penalty": 1.0,
            # Not min_tokens: it changes the target's logits, and not the drafter's.
            "ignore_eos": True,
            "stream": True,
            "stream_options": {"include_usage": True, "continuous_usage_stats": True},
            "return_token_ids": True,
        }
        return post(key, base, way, body, timeout, stream=True)

    def read(
        self, result: HttpResult, serving: Serving, before: Counters | None, after: Counters | None
    ) -> Generated:
        told = tuple(events(result)) or (Event(_document(result), None, -1),)
        for event in told:
            if error := said_error(event.data):
                return Generated(error=error)
        heard = _hear(told)
        if not heard.finish:
            raise Unanswered(
                result.key, f"the answer ends early: {heard.shown} tokens had come, and no finish reason"
            )
        alone, moved = _alone(before, after, heard.output_tokens)
        steps, odd = _steps(heard, serving)
        overfull = any(step.tokens > _ceiling(serving, step.tokens) for step, _ in steps)
        block = _block(heard.block)
        counted = _counted(before, after) if alone else None
        best = block or counted
        unseen = _unseen(steps, best, before, after) if alone else 0
        streamed = None if overfull or unseen else _streamed(steps, serving, best)
        return Generated(
            prompt_tokens=heard.prompt_tokens,
            cached_tokens=_cached(heard, before, after) if alone else heard.cached_tokens,
            output_tokens=heard.output_tokens,
            ids=heard.ids,
            text=heard.text,
            finish=heard.finish,
            first_token_at=heard.pieces[0].at if heard.pieces else None,
            steps=_with_drafts(tuple(step for step, _ in steps), heard.block),
            last_step_cut=None if overfull else _cut(steps, best, serving, heard.output_tokens),
            merged=max(_merged(steps, serving), unseen),
            accounts=tuple(account for account in (block, counted, streamed) if account is not None),
            notes=tuple(note for note in (moved, odd) if note),
        )


# --- the answer's own words --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Piece:
    """Tokens of one event; None where neither ids nor usage say how many."""

    tokens: int | None
    at: float | None
    place: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Heard:
    pieces: tuple[_Piece, ...]
    ids: Ids | None
    text: str
    finish: str
    prompt_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None
    block: dict[str, Any]

    @property
    def shown(self) -> int | None:
        """Tokens that the pieces add up to."""
        sizes = [piece.tokens for piece in self.pieces]
        known = [size for size in sizes if size is not None]
        return sum(known) if len(known) == len(sizes) else None


def _hear(told: Sequence[Event]) -> _Heard:
    """All events taken together."""
    pieces: list[_Piece] = []
    ids: list[int] | None = []
    words: list[str] = []
    finish = ""
    usage: dict[str, Any] = {}
    block: dict[str, Any] = {}
    for event in told:
        counted = whole_number(usage.get("completion_tokens")) or 0
        usage = mapping(event.data.get("usage")) or usage
        block = mapping(mapping(event.data.get("metrics")).get("speculative_decoding")) or block
        for choice in items(event.data.get("choices"))[:1]:
            words.append(text(choice.get("text")))
            finish = text(choice.get("finish_reason")) or finish
            given = _ids(choice.get("token_ids"))
            if ids is not None and given is not None:
                ids += given
            else:
                ids = None
            told_so_far = whole_number(mapping(event.data.get("usage")).get("completion_tokens"))
            grown = None if told_so_far is None else told_so_far - counted
            size = len(given) if given is not None else grown
            if size != 0:
                pieces.append(_Piece(size, event.at, event.piece))
    details = mapping(usage.get("prompt_tokens_details"))
    return _Heard(
        pieces=tuple(pieces),
        ids=tuple(ids) if ids else None,
        text="".join(words),
        finish=finish,
        prompt_tokens=whole_number(usage.get("prompt_tokens")),
        output_tokens=whole_number(usage.get("completion_tokens")),
        cached_tokens=whole_number(details.get("cached_tokens")),
        block=block,
    )


def _document(result: HttpResult) -> dict[str, Any]:
    """The answer of a server, or of something before it, that did not stream."""
    told = document({"": result}, "")
    return told if isinstance(told, dict) else {"malformed": result.text[:300]}


def _ids(value: Any) -> Ids | None:
    ids = value if isinstance(value, list) else None
    return tuple(ids) if ids is not None and all(whole_number(id_) is not None for id_ in ids) else None


def _named(model: str) -> dict[str, str]:
    return {"model": model} if model else {}


# --- steps of the stream -----------------------------------------------------------------------------------

_Placed = tuple[StreamedStep, int]
"""A step, and the piece of the body that it came in (the first of several that came together)."""


def _steps(heard: _Heard, serving: Serving) -> tuple[tuple[_Placed, ...], str]:
    """Decode steps as the stream shows them, or why it does not show them."""
    if (serving.stream_interval or 1) > 1:
        return (), f"--stream-interval {serving.stream_interval}: the pieces of the stream are no steps"
    if len(heard.pieces) < 2 or heard.shown is None:
        return (), ""
    if heard.output_tokens is not None and heard.shown != heard.output_tokens:
        return (), f"the stream shows {heard.shown} tokens, its usage counts {heard.output_tokens}"
    first, *rest = heard.pieces
    # The prefill gives one token; what came with it is a step of its own.
    together = [replace(first, tokens=first.tokens - 1)] if first.tokens and first.tokens > 1 else []
    return tuple(_placed((*together, *rest))), ""


def _placed(pieces: Sequence[_Piece]) -> Iterator[_Placed]:
    """The steps, those that came together under one place."""
    place, before = -1, None
    for piece in pieces:
        near = piece.at is not None and before is not None and piece.at - before < TOGETHER
        place, before = place if near else piece.place, piece.at
        yield StreamedStep(piece.tokens or 0, piece.at), place


def _ceiling(serving: Serving, unknown: int) -> int:
    """Most tokens that one step can commit."""
    if serving.speculating is False:
        return 1
    return unknown if serving.draft_tokens is None else serving.draft_tokens + 1


def _merged(steps: Sequence[_Placed], serving: Serving) -> int:
    """Pieces that held several steps, be they events that came together or steps in one event."""
    held = Counter(place for _, place in steps if place >= 0)
    crowded = {place for place, count in held.items() if count > 1}
    overfull = sum(
        step.tokens > _ceiling(serving, step.tokens) for step, place in steps if place not in crowded
    )
    return len(crowded) + overfull


def _unseen(
    steps: Sequence[_Placed], best: Account | None, before: Counters | None, after: Counters | None
) -> int:
    """Steps beyond the pieces that came, where the stream has more accepted tokens than were accepted.

    Pieces of one token each, put together on the way, look like accepted drafts; the engine counts its iterations.
    """
    shown = sum(step.tokens - 1 for step, _ in steps)
    if not steps or best is None or best.accepted is None or shown <= best.accepted:
        return 0
    made = delta(before.steps, after.steps) if before is not None and after is not None else None
    # One iteration is the prefill's.
    return max(0, made - 1 - len(steps)) if made is not None else 0


def _with_drafts(steps: tuple[StreamedStep, ...], block: dict[str, Any]) -> tuple[StreamedStep, ...]:
    """The steps with what was drafted for each, where that is certain: for none, or for every one."""
    if block and whole_number(block.get("num_spec_steps")) == 0:
        return tuple(replace(step, drafted=0, accepted=0) for step in steps)
    drafted, accepted = _ids(block.get("per_step_drafted")), _ids(block.get("per_step_accepted"))
    if drafted is None or accepted is None or not len(drafted) == len(accepted) == len(steps):
        return steps
    return tuple(
        replace(step, drafted=of, accepted=right)
        for step, of, right in zip(steps, drafted, accepted, strict=True)
    )


def _cut(
    steps: Sequence[_Placed], best: Account | None, serving: Serving, output_tokens: int | None
) -> bool | None:
    """Whether more was verified than came out."""
    if not steps:
        return None
    if best is not None and best.accepted is not None and output_tokens is not None:
        over = best.accepted + len(steps) - (output_tokens - 1)
        return None if over < 0 else over > 0
    last = steps[-1][0].tokens
    return last < _ceiling(serving, last + 1)


# --- what each source says of the speculation --------------------------------------------------------------


def _block(block: dict[str, Any]) -> Account | None:
    """The request's own block. Its mean is 1.0 when nothing was drafted: then it says no mean."""
    steps = whole_number(block.get("num_spec_steps"))
    if steps is None:
        return None
    return Account(
        origin=BLOCK,
        steps=steps,
        accepted=whole_number(block.get("num_accepted_draft_tokens")),
        drafted=whole_number(block.get("num_draft_tokens")),
        histogram=_ids(block.get("acceptance_histogram")),
        reported_commit=number(block.get("mean_acceptance_length")) if steps else None,
        reported_rate=number(block.get("draft_acceptance_rate")) if steps else None,
        last_step_whole=True,
    )


def _alone(before: Counters | None, after: Counters | None, output_tokens: int | None) -> tuple[bool, str]:
    """Whether the server generated this request's tokens and no others meanwhile; a note where it did not."""
    if before is None or after is None or output_tokens is None:
        return False, ""
    if before.generated is None or after.generated is None:
        return False, ""
    moved = delta(before.generated, after.generated)
    if moved is None:
        return False, "/metrics: its counters went backwards: the server was started again meanwhile"
    if moved != output_tokens:
        return False, (
            f"/metrics: the server generated {moved} tokens meanwhile, this request {output_tokens}: "
            "its counters are not this request's"
        )
    return True, ""


def _counted(before: Counters | None, after: Counters | None) -> Account | None:
    """The counters' differences; None where the server has no counters of drafts."""
    if before is None or after is None:
        return None
    steps = delta(before.drafts, after.drafts)
    if steps is None:
        return None
    right = [delta(*pair) for pair in zip(before.per_position, after.per_position, strict=False)]
    at_least = [steps, *(count for count in right if count is not None)]
    whole = bool(right) and len(at_least) == len(right) + 1
    return Account(
        origin="/metrics",
        steps=steps,
        accepted=delta(before.accepted, after.accepted),
        drafted=delta(before.drafted, after.drafted),
        histogram=tuple(a - b for a, b in zip(at_least, [*at_least[1:], 0], strict=True)) if whole else None,
        last_step_whole=True,
    )


def _streamed(steps: Sequence[_Placed], serving: Serving, best: Account | None) -> Account | None:
    """The stream: one step is one piece. It does not tell a step without a draft from one whose drafts were wrong."""
    sizes = [step.tokens for step, _ in steps]
    if not sizes or serving.speculating is False:
        return None
    if serving.speculating is None and best is None and max(sizes) == 1:
        return None
    drafts = best.steps if best is not None else None
    every = serving.drafter == "model" if drafts is None else drafts >= len(sizes)
    counts = Counter(size - 1 for size in sizes)
    highest = max(serving.draft_tokens or 0, *counts)
    return Account(
        origin="stream",
        steps=len(sizes) if every else None,
        accepted=sum(sizes) - len(sizes),
        histogram=tuple(counts[right] for right in range(highest + 1)) if every else None,
        last_step_whole=False,
    )


def _cached(heard: _Heard, before: Counters | None, after: Counters | None) -> int | None:
    """Prompt tokens from the prefix cache, as the answer says or as the server's counter moved."""
    if heard.cached_tokens is not None or before is None or after is None:
        return heard.cached_tokens
    moved = delta(before.cached, after.cached)
    return moved if moved is not None and moved <= (heard.prompt_tokens or 0) else None
