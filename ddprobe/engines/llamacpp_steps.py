"""Decode steps from llama.cpp's stream: one event per token, each with the request's counters so far.

    {"tokens_predicted":5,"timings":{"predicted_n":5,"predicted_ms":7.924,"draft_n":10,"draft_n_accepted":3}}

All events of one step show the same `predicted_ms`, the server's clock when the step ended. A step for which `draft_n`
grew verified a draft and emits one token more than it accepted; one for which it stayed had no draft and emits one. A
token that ends within a character comes without an event: the next one's `predicted_n` then jumps.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from ddprobe.engines.base import mapping, number, whole_number
from ddprobe.engines.generation import Event, StreamedStep

_MOST_HIDDEN = 1000
"""Steps in a row without an event, at most: a count that jumps further is no count."""


@dataclass(frozen=True, slots=True)
class Mark:
    """What one event says of the request so far."""

    output: int
    """Tokens out, the prefill's included."""
    drafted: int
    accepted: int
    clock: float
    """Milliseconds of decoding, on the server's clock."""


def mark_of(event: Event) -> Mark | None:
    """The counters in an event; None when it has none."""
    timings = mapping(event.data.get("timings"))
    output, clock = whole_number(timings.get("predicted_n")), number(timings.get("predicted_ms"))
    if output is None or clock is None:
        return None
    # Both fields are left out as long as nothing was drafted.
    drafted = whole_number(timings.get("draft_n")) or 0
    return Mark(output, drafted, whole_number(timings.get("draft_n_accepted")) or 0, clock)


def steps_of(
    marks: Sequence[Mark], draft_tokens: int | None, start: float | None
) -> tuple[StreamedStep, ...] | None:
    """The steps in order, the last one as cut; None when the marks do not say what happened.

    `start`: when the first token came. Times are that plus the server's clock: arrival times of pieces say less.
    """
    found: list[StreamedStep] = []
    emitted, drafted, accepted = 1, 0, 0
    for clock, group in itertools.groupby(marks, key=lambda mark: mark.clock):
        same = list(group)
        first, last = same[0], same[-1]
        if last.output == 1:
            continue
        more, right = first.drafted - drafted, first.accepted - accepted
        if not 0 <= right <= more or (last.drafted, last.accepted) != (first.drafted, first.accepted):
            return None
        # Steps before this one none of whose tokens had an event.
        hidden = max(0, last.output - (emitted + right + 1))
        if hidden > _MOST_HIDDEN:
            return None
        share = _share(more, hidden, first.output - 1 - emitted, draft_tokens)
        if share is None:
            return None
        found += [StreamedStep(1, None, share, 0)] * hidden
        at = None if start is None else start + clock / 1000
        found.append(StreamedStep(right + 1, at, more - share * hidden, right))
        emitted += hidden + right + 1
        drafted, accepted = first.drafted, first.accepted
    total = marks[-1].output if marks else 0
    if found and emitted > total:
        # The output ended within the last step: a stop word, or no room.
        tokens = found[-1].tokens - (emitted - total)
        if tokens < 1:
            return None
        found[-1] = StreamedStep(tokens, found[-1].at, found[-1].drafted, found[-1].accepted)
    return tuple(found)


def _share(more: int, hidden: int, unseen: int, draft_tokens: int | None) -> int | None:
    """What each hidden step had drafted; None when that cannot be told.

    It can be when none of them had a draft, or when each emitted one token and all had a full draft.
    """
    if not hidden or not more:
        return 0
    return draft_tokens if hidden == unseen and more == (hidden + 1) * (draft_tokens or 0) else None


def steps_cut(steps: Sequence[StreamedStep], draft_tokens: int | None) -> int:
    """How many steps at the end ran with a draft that was trimmed to what was left of the output.

    With R tokens left, the draft has at most R - 1; the steps behind the first such one are counted with it.
    """
    most = max((draft_tokens or 0, *(step.drafted or 0 for step in steps)), default=0)
    left = sum(step.tokens for step in steps)
    for place, step in enumerate(steps):
        if most and step.drafted == left - 1 < most:
            return len(steps) - place
        left -= step.tokens
    return 0
