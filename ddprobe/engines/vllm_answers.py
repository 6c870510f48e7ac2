"""What one answer of vLLM's `/v1/completions` holds: its pieces, and the decode steps that they show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ddprobe.engines.base import items, mapping, text, whole_number
from ddprobe.engines.generation import Event, Ids, Serving, StreamedStep

TOGETHER = 0.0001
"""Seconds within which no two steps are made: pieces so near were held back, and came together."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Tokens of one event; None where neither ids nor usage say how many."""

    tokens: int | None
    at: float | None
    place: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """All that an answer says."""

    pieces: tuple[Piece, ...]
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


def hear(told: Sequence[Event]) -> Heard:
    """All events taken together."""
    pieces: list[Piece] = []
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
            given = whole_numbers(choice.get("token_ids"))
            if ids is not None and given is not None:
                ids += given
            else:
                ids = None
            told_so_far = whole_number(mapping(event.data.get("usage")).get("completion_tokens"))
            grown = None if told_so_far is None else told_so_far - counted
            size = len(given) if given is not None else grown
            if size != 0:
                pieces.append(Piece(size, event.at, event.piece))
    details = mapping(usage.get("prompt_tokens_details"))
    return Heard(
        pieces=tuple(pieces),
        ids=tuple(ids) if ids else None,
        text="".join(words),
        finish=finish,
        prompt_tokens=whole_number(usage.get("prompt_tokens")),
        output_tokens=whole_number(usage.get("completion_tokens")),
        cached_tokens=whole_number(details.get("cached_tokens")),
        block=block,
    )


def whole_numbers(value: Any) -> Ids | None:
    """The value if it is a list of integers."""
    ids = value if isinstance(value, list) else None
    return tuple(ids) if ids is not None and all(whole_number(id_) is not None for id_ in ids) else None


# --- steps of the stream -----------------------------------------------------------------------------------

Placed = tuple[StreamedStep, int]
"""A step, and the piece of the body that it came in (the first of several that came together)."""


def steps_of(heard: Heard, serving: Serving) -> tuple[tuple[Placed, ...], str]:
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


def _placed(pieces: Sequence[Piece]) -> Iterator[Placed]:
    """The steps, those that came together under one place."""
    place, before = -1, None
    for piece in pieces:
        near = piece.at is not None and before is not None and piece.at - before < TOGETHER
        place, before = place if near else piece.place, piece.at
        yield StreamedStep(piece.tokens or 0, piece.at), place


def ceiling(serving: Serving, unknown: int) -> int:
    """Most tokens that one step can commit."""
    if serving.speculating is False:
        return 1
    return unknown if serving.draft_tokens is None else serving.draft_tokens + 1


def merged(steps: Sequence[Placed], serving: Serving) -> int:
    """Pieces that held several steps, be they events that came together or steps in one event."""
    held = Counter(place for _, place in steps if place >= 0)
    crowded = {place for place, count in held.items() if count > 1}
    overfull = sum(
        step.tokens > ceiling(serving, step.tokens) for step, place in steps if place not in crowded
    )
    return len(crowded) + overfull


def with_drafts(steps: tuple[StreamedStep, ...], block: dict[str, Any]) -> tuple[StreamedStep, ...]:
    """The steps with what was drafted for each, where that is certain: for none, or for every one."""
    if block and whole_number(block.get("num_spec_steps")) == 0:
        return tuple(replace(step, drafted=0, accepted=0) for step in steps)
    drafted, accepted = (
        whole_numbers(block.get("per_step_drafted")),
        whole_numbers(block.get("per_step_accepted")),
    )
    if drafted is None or accepted is None or not len(drafted) == len(accepted) == len(steps):
        return steps
    return tuple(
        replace(step, drafted=of, accepted=right)
        for step, of, right in zip(steps, drafted, accepted, strict=True)
    )
