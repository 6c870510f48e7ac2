"""What llama.cpp's three sources say of the speculation in one request: stream, timings, counters.

All of them count the last draft as trimmed to what was left of the output, and no accepted token is a bonus token.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from ddprobe.engines.base import whole_number
from ddprobe.engines.generation import Counters, StreamedStep, delta
from ddprobe.facts import Account


def totals(timings: Mapping[str, Any]) -> tuple[Account, ...]:
    """What the last timings say. Their fields are left out when nothing was drafted."""
    if "predicted_n" not in timings:
        return ()
    if "draft_n" not in timings:
        return (Account(origin="timings", steps=0, accepted=0, drafted=0, last_step_whole=False),)
    return (
        Account(
            origin="timings",
            accepted=whole_number(timings.get("draft_n_accepted")),
            drafted=whole_number(timings["draft_n"]),
            last_step_whole=False,
        ),
    )


def streamed(steps: Sequence[StreamedStep]) -> tuple[Account, ...]:
    """What the steps of the stream add up to; nothing when none of them had a draft: the timings say that."""
    accepted = [step.accepted or 0 for step in steps if step.drafted]
    if not accepted:
        return ()
    return (
        Account(
            origin="stream",
            steps=len(accepted),
            accepted=sum(accepted),
            drafted=sum(step.drafted or 0 for step in steps),
            histogram=tuple(accepted.count(right) for right in range(max(accepted) + 1)),
            last_step_whole=False,
        ),
    )


def server_wide(
    before: Counters | None, after: Counters | None, output_tokens: int | None
) -> tuple[tuple[Account, ...], tuple[str, ...]]:
    """What the counters moved by, if it was this request alone that moved them; or why they say nothing."""
    if before is None or after is None or before.generated is None or after.generated is None:
        return (), ()
    generated = delta(before.generated, after.generated)
    if generated is None or generated != output_tokens:
        moved = "went backwards" if generated is None else f"moved by {generated} tokens"
        return (), (
            f"/metrics {moved} while this request gave {output_tokens}: its counters are not this request's",
        )
    steps, accepted, drafted = (
        delta(before.drafts, after.drafts),
        delta(before.accepted, after.accepted),
        delta(before.drafted, after.drafted),
    )
    if steps is None or accepted is None or drafted is None:
        return (), ()
    histogram = _histogram(before.per_position, after.per_position, steps, accepted)
    account = Account(
        origin="/metrics",
        steps=steps,
        accepted=accepted,
        drafted=drafted,
        histogram=histogram,
        last_step_whole=False,
    )
    return (account,), ()


def _histogram(
    before: tuple[float, ...], after: tuple[float, ...], steps: int, accepted: int
) -> tuple[int, ...] | None:
    """Steps by accepted tokens, from how often each position was right; None where these do not add up."""
    moved = [delta(was, now) for was, now in itertools.zip_longest(before, after, fillvalue=0.0)]
    reached = [steps, *(count for count in moved if count is not None)]
    if not steps or len(reached) != len(moved) + 1 or sum(reached[1:]) != accepted:
        return None
    while len(reached) > 1 and not reached[-1]:
        reached.pop()
    exact = [here - beyond for here, beyond in itertools.pairwise([*reached, 0])]
    return tuple(exact) if min(exact) >= 0 else None
