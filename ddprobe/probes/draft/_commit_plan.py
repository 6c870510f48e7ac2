"""What a commit probe would send: contexts, room, limits and prompts. Pure: nothing here asks anybody."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ddprobe.arms.base import Ids, Script
from ddprobe.engines.generation import Serving
from ddprobe.facts import Limit, ModelConfig, PlannedPoint, ServerArgs
from ddprobe.parsing import sizes

FOUNDING = (1024, 16 * 1024, 64 * 1024, 128 * 1024)
"""The contexts of the founding investigation: what is measured when none are named."""
NONCE = 24
"""Ids at the start of every prompt that no other run or arm has: no earlier prompt's cache can serve it."""
LEAST_STEPS = 16
"""Verify steps of one request, at least: fewer say nothing about the request."""
MARGIN = 8
"""Tokens kept free below a limit, beside prompt, output and one draft."""
UNKNOWN_CEILING = 8
"""Taken for the ceiling where the server does not say it: outputs are then long enough for blocks of up to 8."""
SHORTEST = 64
LONGEST_TOKEN = 8
"""Characters of an average token, at most, in any text that people send."""
LEAST_OUTPUT = 2
"""Tokens of output that a request must have room for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """What fits into the server."""

    context_limit: int | None
    kv_tokens: int | None
    max_context: int | None
    """The user's own bound."""
    output: int
    draft: int

    def refusal(self, context: int) -> str:
        """Why a prompt of that length may not be sent; empty when it may."""
        need = self.output + self.draft + MARGIN
        if self.max_context is not None and context > self.max_context:
            return f"--max-context is {self.max_context} tokens"
        if self.context_limit is not None and context > self.context_limit:
            return f"the server's limit is {self.context_limit} tokens per request"
        if self.context_limit is not None and self.length(context) + need > self.context_limit:
            return f"the server's limit of {self.context_limit} tokens leaves no room for {self.output} tokens of output"
        if self.kv_tokens is not None and self.length(context) + need > self.kv_tokens:
            return f"the server's KV cache has room for {self.kv_tokens} tokens, and {context + need} would be needed"
        return ""

    def holds(self, text: str) -> bool:
        """Whether a text fits whatever its tokens: it has at most one a byte."""
        most = _bytes(text)
        need = self.output + self.draft + MARGIN
        limits = [limit - need for limit in (self.context_limit, self.kv_tokens) if limit is not None]
        return all(
            most <= limit for limit in (*limits, *([] if self.max_context is None else [self.max_context]))
        )

    def verbatim(self, tokens: int | None, text: str) -> tuple[int, str]:
        """Output tokens of a request with a text that cannot be cut, and why it may not be sent; empty when it may.

        `tokens` None: nobody counted them. A text has at most a token a byte, and hardly ever one for eight characters.
        """
        least = tokens if tokens is not None else len(text) // LONGEST_TOKEN
        most = tokens if tokens is not None else _bytes(text)
        named = (
            f"it has {tokens} tokens"
            if tokens is not None
            else f"its tokens could not be counted ({len(text)} characters)"
        )
        if self.max_context is not None and most > self.max_context:
            return 0, f"{named}, and --max-context is {self.max_context}"
        output = self.output
        for limit, name in (
            (self.context_limit, "the server's limit is {} tokens per request"),
            (self.kv_tokens, "the server's KV cache has room for {} tokens"),
        ):
            if limit is not None:
                output = min(output, limit - self.draft - MARGIN - least)
                if output < LEAST_OUTPUT:
                    return 0, f"{named}, and {name.format(limit)}"
        return output, ""

    def length(self, context: int) -> int:
        """Tokens of prompt for a context: a little less where the limit is the context itself."""
        if self.context_limit is None or context > self.context_limit:
            return context
        room = self.context_limit - self.output - self.draft - MARGIN
        return max(min(context, room), min(context, SHORTEST))

    def largest(self) -> int | None:
        """The longest prompt that fits; None when nothing bounds it."""
        bounds = [
            limit - self.output - self.draft - MARGIN
            for limit in (self.context_limit, self.kv_tokens)
            if limit is not None
        ]
        if self.max_context is not None:
            bounds.append(self.max_context)
        return max(min(bounds), SHORTEST) if bounds else None


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def contexts(asked: str, limits: Sequence[Limit], room: Room) -> tuple[int, ...]:
    """The context lengths asked for, ascending. Raises `UsageError`."""
    words = [word for word in asked.replace(" ", "").split(",") if word]
    if not words:
        return FOUNDING
    found: set[int] = set()
    for word in words:
        found |= set(_automatic(limits, room)) if word == "auto" else {sizes.size(word)}
    return tuple(sorted(found))


def spaced(room: Room) -> tuple[int, ...]:
    """Lengths that lie the same factor apart, from 1k to the largest that fits: one per doubling, 6 to 8 in all."""
    longest = room.largest() or FOUNDING[-1]
    shortest = max(min(SHORTEST, longest), min(FOUNDING[0], longest // 32))
    many = max(6, min(8, 1 + round(math.log2(max(2, longest / shortest)))))
    between = (shortest * (longest / shortest) ** (step / (many - 1)) for step in range(1, many - 1))
    return tuple(sorted({shortest, *map(_round, between), longest}))


def _round(length: float) -> int:
    """A length that reads well: whole k's where they are many."""
    grain = 1024 if length >= 8192 else 256 if length >= 1024 else 64 if length >= 256 else 8
    return round(length / grain) * grain


def _automatic(limits: Sequence[Limit], room: Room) -> Iterable[int]:
    """1k, both sides of each limit, and the largest that fits."""
    largest = room.largest() or FOUNDING[-1]
    edges = (side for limit in limits for side in (round(limit.tokens * 0.93), round(limit.tokens * 1.07)))
    return {c for c in (min(FOUNDING[0], largest), *edges, largest) if SHORTEST <= c <= largest}


def steps_per_prompt(steps: int, prompts: int) -> int:
    """Verify steps that each request must have."""
    return max(LEAST_STEPS, -(-steps // prompts))


def output_tokens(steps: int, ceiling: int | None, seen: float | None = None) -> int:
    """Tokens to ask for so that at least that many verify steps, and one that is cut, come out.

    The first token comes from the prefill; 1 + ceiling · (steps + 1) is enough whatever the drafter does. Once a
    request has committed `seen` per step, half as much again and two more are.
    """
    most = float(ceiling or UNKNOWN_CEILING)
    per_step = most if seen is None else min(most, seen * 1.5 + 2)
    return 1 + math.ceil(per_step * (steps + 1))


# --- limits ------------------------------------------------------------------------------------------------


def limits(
    drafter: ModelConfig | None, target: ModelConfig | None, serving: Serving, arguments: Sequence[ServerArgs]
) -> tuple[Limit, ...]:
    """Lengths at which something changes by configuration, ascending."""
    found: list[Limit] = []
    if drafter is not None:
        if drafter.sliding_window and drafter.use_sliding_window is not False:
            found.append(Limit(drafter.sliding_window, "the drafter's sliding_window", "sliding_window_kv"))
        original = drafter.rope.original_max_position
        if original:
            found.append(Limit(original, "the drafter's original_max_position_embeddings", "rope_position"))
            if drafter.rope.factor:
                found.append(
                    Limit(
                        round(original * drafter.rope.factor),
                        "the drafter's RoPE factor × original length",
                        "rope_position",
                    )
                )
        if drafter.max_position_embeddings:
            found.append(
                Limit(
                    drafter.max_position_embeddings, "the drafter's max_position_embeddings", "rope_position"
                )
            )
    if target is not None and target.rope.original_max_position:
        found.append(
            Limit(
                target.rope.original_max_position,
                "the target's original_max_position_embeddings",
                "rope_position",
            )
        )
    if serving.draft_context_limit:
        found.append(
            Limit(
                serving.draft_context_limit,
                "the drafter's own max_model_len in the server's arguments",
                "draft_length_limit",
            )
        )
    for tokens, name in serving.limits:
        found.append(Limit(tokens, name, _kind(name)))
    for given in arguments:
        window = given.get("speculative_draft_window_size")
        if isinstance(window, int) and not isinstance(window, bool) and window > 0:
            found.append(Limit(window, "--speculative-draft-window-size", "sliding_window_kv"))
    unique = {(limit.tokens, limit.kind): limit for limit in reversed(found)}
    return tuple(sorted(unique.values(), key=lambda limit: limit.tokens))


def _kind(name: str) -> str:
    if "window" in name:
        return "sliding_window_kv"
    return "chunk_boundary" if "chunk" in name or "batch" in name else "draft_length_limit"


# --- prompts -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Place:
    """One point of the plan: a script at a context, and the prompt length that stands for it."""

    script: Script
    context: int
    length: int


def order(scripts: Sequence[Script], places: Mapping[str, Sequence[Place]], seed: int) -> tuple[Place, ...]:
    """Script after script, so that prompts share prefixes; within one, contexts shuffled. The very first is the shortest."""
    found: list[Place] = []
    for number, script in enumerate(scripts):
        ladder = list(places[script.label])
        random.Random(f"{seed} {script.label}").shuffle(ladder)
        if number == 0 and ladder:
            shortest = min(ladder, key=lambda place: place.context)
            ladder.remove(shortest)
            ladder.insert(0, shortest)
        found += ladder
    return tuple(found)


def nonce(pool: Sequence[int], seed: int, name: str) -> Ids:
    """Ids that begin a prompt as no other does."""
    return tuple(random.Random(f"{seed} nonce {name}").choices(sorted(set(pool)), k=NONCE))


def shared(prompts: Iterable[Ids], prompt: Ids) -> int:
    """Tokens that the prompt has in common with the beginning of one sent before."""
    return max((_common(other, prompt) for other in prompts), default=0)


def _common(a: Ids, b: Ids) -> int:
    low, high = 0, min(len(a), len(b))
    if a[:high] == b[:high]:
        return high
    while high - low > 1:
        middle = (low + high) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle
    return low


def in_words(text: str, first: int = 1) -> Ids:
    """Made-up ids for a text, one a word: what a plan without a tokenizer counts with."""
    known: dict[str, int] = {}
    return tuple(known.setdefault(word, first + len(known)) for word in text.split())


def filler_needed(scripts: Sequence[Script], lengths: Iterable[int]) -> int:
    """Ids of filler that the longest prompt takes."""
    most = max(lengths, default=0)
    return max((script.filler(most) for script in scripts), default=0)


def planned(
    place: Place, prompts: Sequence[Ids], sent: Sequence[Ids], output: int, cold: bool
) -> PlannedPoint:
    """What a point costs, after the prompts that were sent before it."""
    before = list(sent)
    prefill = 0
    for prompt in prompts:
        prefill += len(prompt) - (0 if cold else min(shared(before, prompt), len(prompt) - 1))
        before.append(prompt)
    return PlannedPoint(
        arm=place.script.label,
        context_tokens=place.context,
        prompts=len(prompts),
        prompt_tokens=sum(map(len, prompts)),
        prefill_tokens=prefill,
        output_tokens=output * len(prompts),
    )
