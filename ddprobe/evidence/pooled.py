"""Requests that count for themselves, taken together: sums first, then the quotient."""

from __future__ import annotations

from collections.abc import Sequence

from ddprobe.facts import Acceptance, CommitRequest
from ddprobe.parsing import acceptance

MOST = 4
"""Requests that are cited."""


def together(requests: Sequence[CommitRequest]) -> tuple[Acceptance, ...]:
    """All requests together, from their own counts; where none counts what was accepted, from their tokens."""
    steps = accepted = drafted = number = 0
    for request in requests:
        mine, right, made = (
            request.num_spec_steps,
            request.num_accepted_draft_tokens,
            request.num_draft_tokens,
        )
        if mine is None and request.output_tokens is not None and right is not None and made:
            mine = acceptance.from_timings(request.output_tokens, made, right).steps
        if mine and right is not None:
            steps, accepted, drafted, number = (
                steps + mine,
                accepted + right,
                drafted + (made or 0),
                number + 1,
            )
    if not number:
        return _by_tokens(requests)
    figure = acceptance.from_counts(steps, accepted, drafted or None)
    return (
        _figure(figure, number, requests, drafted // steps if drafted and drafted % steps == 0 else None),
    )


def _by_tokens(requests: Sequence[CommitRequest]) -> tuple[Acceptance, ...]:
    """Older SGLang counts a request's verify steps and its tokens, and no accepted drafts."""
    told = [
        (request.output_tokens, request.num_spec_steps)
        for request in requests
        if request.output_tokens and request.num_spec_steps
    ]
    if not told:
        return ()
    tokens, steps = (sum(counts) for counts in zip(*told, strict=True))
    return (_figure(acceptance.from_tokens(tokens, steps, None, len(told)), len(told), requests, None),)


def _figure(
    figure: acceptance.Canonical, number: int, requests: Sequence[CommitRequest], drafts: int | None
) -> Acceptance:
    return Acceptance(
        commit=figure.commit,
        rate=figure.rate,
        draft_tokens=drafts,
        definition=figure.definition,
        window="1 request" if number == 1 else f"{number} requests",
        steps=figure.steps,
        origin="requests",
        source=tuple(cite for request in requests[:MOST] for cite in request.source),
    )
