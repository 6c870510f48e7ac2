"""Who says what of the speculation in one request to vLLM: its own block, the counters, the stream."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from ddprobe.engines.base import number, whole_number
from ddprobe.engines.generation import Counters, Serving, delta
from ddprobe.engines.vllm_answers import Heard, Placed, ceiling, whole_numbers
from ddprobe.facts import Account

BLOCK = "metrics.speculative_decoding"


def from_block(block: dict[str, Any]) -> Account | None:
    """The request's own block. Its mean is 1.0 when nothing was drafted: then it says no mean."""
    steps = whole_number(block.get("num_spec_steps"))
    if steps is None:
        return None
    return Account(
        origin=BLOCK,
        steps=steps,
        accepted=whole_number(block.get("num_accepted_draft_tokens")),
        drafted=whole_number(block.get("num_draft_tokens")),
        histogram=whole_numbers(block.get("acceptance_histogram")),
        reported_commit=number(block.get("mean_acceptance_length")) if steps else None,
        reported_rate=number(block.get("draft_acceptance_rate")) if steps else None,
        last_step_whole=True,
    )


def alone(before: Counters | None, after: Counters | None, output_tokens: int | None) -> tuple[bool, str]:
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


def from_counters(before: Counters | None, after: Counters | None) -> Account | None:
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


def from_stream(steps: Sequence[Placed], serving: Serving, best: Account | None) -> Account | None:
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


def cached(heard: Heard, before: Counters | None, after: Counters | None) -> int | None:
    """Prompt tokens from the prefix cache, as the answer says or as the server's counter moved."""
    if heard.cached_tokens is not None or before is None or after is None:
        return heard.cached_tokens
    moved = delta(before.cached, after.cached)
    return moved if moved is not None and moved <= (heard.prompt_tokens or 0) else None


# --- the stream held against them --------------------------------------------------------------------------


def unseen(
    steps: Sequence[Placed], best: Account | None, before: Counters | None, after: Counters | None
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


def cut(
    steps: Sequence[Placed], best: Account | None, serving: Serving, output_tokens: int | None
) -> bool | None:
    """Whether more was verified than came out."""
    if not steps:
        return None
    if best is not None and best.accepted is not None and output_tokens is not None:
        over = best.accepted + len(steps) - (output_tokens - 1)
        return None if over < 0 else over > 0
    last = steps[-1][0].tokens
    return last < ceiling(serving, last + 1)
