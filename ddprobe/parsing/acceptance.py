"""Any figure of acceptance brought to one pair: tokens per verify step (bonus included), and share of drafts accepted.

    N steps, A accepted drafts, P proposed drafts, G output tokens, K drafts per step

    counts       1 + A / N                   A / P         vLLM and llama.cpp counters, SGLang meta_info
    histogram    Σ (k + 1) h[k] / Σ h[k]     A / (N K)     h[k]: steps with k accepted, no bonus
    length       X                           (X - 1) / K   SGLang log and avg_spec_accept_length, vLLM log
    rate         1 + r K                     r
    tokens       (G - 1) / N                 from it       SGLang spec_accept_length is G / N: one token, the prefill's,
                                                           too many, and the last step is cut short in it
    llama.cpp    N = G - 1 - A, where every step had a draft

A figure that does not follow from what is stated is None.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

PER_STEP_WITH_BONUS = "1 + accepted / steps"
FROM_HISTOGRAM = "sum of (k + 1) × h[k] / sum of h[k]"
OF_LENGTH = "tokens per step, bonus included"
OF_RATE = "accepted / drafted, so 1 + rate × K per step"
OF_TOKENS = "output tokens / steps: the prefill's token counted, the last step as it was cut"
OF_TIMINGS = "steps = output tokens - 1 - accepted, if every step had a draft"

Number = TypeVar("Number", int, float)
MOST = 2**53
"""No count is larger."""
SHORTEST, LONGEST = 0.98, 1025.0
"""Tokens that one verify step commits, the bonus token and rounding included: no engine drafts a thousand."""


def possible(number: Number | None) -> Number | None:
    """The number, if it can be a count or a figure at all: not negative, not beyond all bounds, no NaN."""
    return number if number is not None and 0 <= number <= MOST else None


def length(number: float | None) -> float | None:
    """The number, if a step can have committed so many tokens: its bonus token at least, rounding allowed for."""
    return number if number is not None and SHORTEST <= number <= LONGEST else None


def share(number: float | None) -> float | None:
    """The number, if it can be a share of the drafts, rounding allowed for."""
    return number if number is not None and 0 <= number <= 1.005 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Canonical:
    """One figure, in the two numbers that can be compared with any other."""

    definition: str
    commit: float | None = None
    rate: float | None = None
    draft_tokens: int | None = None
    steps: int | None = None
    low: float | None = None
    high: float | None = None
    """Between which values the true commit lies: the prefill's token and a last step cut short allowed for. None where
    counting leaves no doubt, or where N is not known."""

    def agrees(self, commit: float, share: float = 0.02) -> bool:
        """Whether that commit is the same, within a share of it and what the definition leaves open."""
        if self.commit is None:
            return False
        low = self.commit if self.low is None else min(self.low, self.commit)
        high = self.commit if self.high is None else max(self.high, self.commit)
        return low * (1 - share) <= commit <= high * (1 + share)


def from_counts(
    steps: int | None, accepted: int | None, drafted: int | None = None, draft_tokens: int | None = None
) -> Canonical:
    """Counters and per-request counts. Without a step there is no commit: nothing was drafted."""
    steps, accepted, drafted, draft_tokens = map(possible, (steps, accepted, drafted, draft_tokens))
    if draft_tokens is None and steps and drafted and drafted % steps == 0:
        draft_tokens = drafted // steps
    proposed = drafted if drafted is not None else draft_tokens * steps if draft_tokens and steps else None
    return Canonical(
        definition=PER_STEP_WITH_BONUS,
        commit=1 + accepted / steps if steps and accepted is not None else None,
        rate=accepted / proposed if proposed and accepted is not None else None,
        draft_tokens=draft_tokens,
        steps=steps,
    )


def from_histogram(histogram: Sequence[int], draft_tokens: int | None = None) -> Canonical:
    """Steps by number of accepted drafts."""
    steps = sum(histogram)
    accepted = sum(index * count for index, count in enumerate(histogram))
    counted = from_counts(steps, accepted, draft_tokens=draft_tokens)
    return Canonical(
        definition=FROM_HISTOGRAM,
        commit=counted.commit,
        rate=counted.rate,
        draft_tokens=draft_tokens,
        steps=steps,
    )


def from_length(mean: float, draft_tokens: int | None = None, steps: int | None = None) -> Canonical:
    """A mean length with the bonus token in it."""
    known, draft_tokens = length(mean), possible(draft_tokens)
    rate = (mean - 1) / draft_tokens if draft_tokens and known is not None else None
    return Canonical(
        definition=OF_LENGTH,
        commit=known,
        rate=rate if rate is not None and 0 <= rate <= 1 else None,
        draft_tokens=draft_tokens,
        steps=steps,
    )


def from_rate(rate: float, drafts_per_step: float | None = None, steps: int | None = None) -> Canonical:
    """A share of the drafts; `drafts_per_step` is K, or its mean where drafts differ in length."""
    known, drafts_per_step = share(rate), possible(drafts_per_step)
    whole = drafts_per_step is not None and drafts_per_step == int(drafts_per_step)
    return Canonical(
        definition=OF_RATE,
        commit=1 + known * drafts_per_step if known is not None and drafts_per_step is not None else None,
        rate=known,
        draft_tokens=int(drafts_per_step) if drafts_per_step is not None and whole else None,
        steps=steps,
    )


def from_tokens(
    output_tokens: int, steps: int, draft_tokens: int | None = None, requests: int = 1
) -> Canonical:
    """Output tokens over steps. How much each request's cut last step hides is not known: at most K."""
    draft_tokens = possible(draft_tokens)
    if possible(steps - 1) is None or possible(output_tokens) is None:
        return Canonical(definition=OF_TOKENS, steps=steps)
    commit = max(1.0, (output_tokens - requests) / steps)
    rate = (commit - 1) / draft_tokens if draft_tokens else None
    return Canonical(
        definition=OF_TOKENS,
        commit=commit,
        rate=rate if rate is not None and rate <= 1 else None,
        draft_tokens=draft_tokens,
        steps=steps,
        low=commit,
        high=max(output_tokens / steps, commit + requests * (draft_tokens or 0) / steps),
    )


def from_timings(output_tokens: int, drafted: int, accepted: int) -> Canonical:
    """llama.cpp's timings: no step count, so every step is taken to have had a draft."""
    steps = output_tokens - 1 - accepted
    counted = (output_tokens, drafted, accepted, steps - 1)
    if any(possible(number) is None for number in counted) or not drafted:
        return Canonical(definition=OF_TIMINGS)
    return Canonical(
        definition=OF_TIMINGS,
        commit=1 + accepted / steps,
        rate=accepted / drafted,
        steps=steps,
        low=1 + accepted / (steps + 1),
        high=1 + accepted / max(steps - 1, 1),
    )
