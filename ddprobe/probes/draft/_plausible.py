"""Numbers in an answer that cannot be: they are left out and said, so that nothing is computed from them.

Counts that merely contradict each other stay: which of them is wrong is for the verdicts to say.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ddprobe.engines.generation import Generated, Serving
from ddprobe.facts import Account

LONGEST_DRAFT = 4096
"""Tokens that no drafter drafts at once: outputs are planned by it."""
MOST_REQUESTS = 1_000_000
SLOWEST_TOKEN = 3_600_000.0
OVERSHOOT = 256
"""Tokens beyond those asked for that a last step may still bring."""
MOST_STEPS = 20
"""A step commits a token at least: so many times the output asked for is no number of steps, …"""
MOST_DRAFTS = 2000
"""… and this none of drafts."""


def sane(serving: Serving) -> tuple[Serving, tuple[str, ...]]:
    """What the server says of itself without what cannot be, and a sentence for each.

    Limits stay: one that makes no sense keeps everything from being sent, and is shown.
    """
    bounds: tuple[tuple[str, float, float], ...] = (
        ("draft_tokens", 0, LONGEST_DRAFT),
        ("running", 0, MOST_REQUESTS),
        ("waiting", 0, MOST_REQUESTS),
        ("decode_ms", 0, SLOWEST_TOKEN),
    )
    told: list[str] = []
    for name, least, most in bounds:
        value = getattr(serving, name)
        if value is not None and not least <= value <= most:
            told.append(f"it says {name.replace('_', ' ')} {value:.6g}, which cannot be: taken as unknown")
            unknown: dict[str, Any] = {name: None}
            serving = replace(serving, **unknown)
    return serving, tuple(told)


def plausible(generated: Generated, max_tokens: int) -> tuple[Generated, tuple[str, ...]]:
    """The answer without what cannot be, and a sentence for each. An impossible output leaves nothing: `error` is set."""
    if generated.error:
        return generated, ()
    most = max_tokens + OVERSHOOT
    output = generated.output_tokens
    shown = sum(step.tokens for step in generated.steps)
    for tokens in (output, shown):
        if tokens is not None and not 0 <= tokens <= most:
            return replace(
                generated, error=f"the answer counts {tokens} tokens of output, {max_tokens} were asked for"
            ), ()
    told: list[str] = []
    prompt, cached = generated.prompt_tokens, generated.cached_tokens
    if prompt is not None and prompt < 0:
        told.append(f"the answer counts {prompt} tokens of prompt, which cannot be")
        generated, prompt = replace(generated, prompt_tokens=None), None
    if cached is not None and (cached < 0 or (prompt is not None and cached > prompt)):
        of = f" of {prompt}" if prompt is not None else ""
        told.append(f"the answer says that {cached}{of} prompt tokens were cached, which cannot be")
        generated = replace(generated, cached_tokens=None)
    kept: list[Account] = []
    for account in generated.accounts:
        wrong = [
            f"{name} {value}" for name, value, limit in _counts(account, most) if not 0 <= value <= limit
        ]
        if wrong:
            told.append(f"{account.origin} says {', '.join(wrong)}, which cannot be")
        else:
            kept.append(account)
    return replace(generated, accounts=tuple(kept)), tuple(told)


def _counts(account: Account, most: int) -> Iterator[tuple[str, int, int]]:
    """Name, value and the most it can be, of each count."""
    for name, value, times in (
        ("steps", account.steps, MOST_STEPS),
        ("accepted", account.accepted, MOST_STEPS),
        ("drafted", account.drafted, MOST_DRAFTS),
    ):
        if value is not None:
            yield name, value, times * most
    if account.histogram is not None:
        least = min(account.histogram, default=0)
        yield "steps in its histogram", least if least < 0 else sum(account.histogram), MOST_STEPS * most
