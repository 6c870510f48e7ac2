"""What a measurement costs the server, before anything is known of it: in words, for a plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ddprobe import arms
from ddprobe.parsing import sizes
from ddprobe.probes.draft import _commit_plan as plan

MOST_SPACED = 8
"""Lengths that a step-time probe takes where none are named."""


def commit(given: Mapping[str, Any]) -> str:
    """Of a commit probe with these settings, as far as they are known."""
    lengths = _lengths(given, plan.FOUNDING)
    texts = [word for word in str(given.get("arms") or "").split(",") if word] or list(arms.DEFAULT)
    return _words(given, lengths, len(texts), given.get("prompts", 4), f"{', '.join(texts)}: ")


def step_time(given: Mapping[str, Any]) -> str:
    """Of a step-time probe."""
    longest = plan.FOUNDING[-1]
    spaced = tuple(longest >> number for number in range(MOST_SPACED))
    return _words(given, _lengths(given, spaced), 1, 1, "")


def _lengths(given: Mapping[str, Any], otherwise: tuple[int, ...]) -> tuple[int, ...] | None:
    """The context lengths; None where they depend on the server or on an earlier step."""
    if "contexts" in given and given["contexts"] is None:
        return None
    words = [word for word in str(given.get("contexts") or "").replace(" ", "").split(",") if word]
    if "auto" in words:
        return None
    return tuple(sizes.size(word) for word in words) or otherwise


def _words(
    given: Mapping[str, Any], lengths: tuple[int, ...] | None, texts: int, prompts: int | None, of: str
) -> str:
    if given.get("plan"):
        return "plans only: sends no prompt"
    bound = f"; nothing longer than {given['max_context']}" if given.get("max_context") else ""
    wanted: int | None = given.get("steps", 64)
    if wanted is None or prompts is None:
        return f"{of}how many requests is not known before the run{bound}"
    output = plan.output_tokens(plan.steps_per_prompt(wanted, prompts), None)
    of_blocks = f"(blocks of {plan.UNKNOWN_CEILING}; others in proportion)"
    if lengths is None:
        return (
            f"{of}{prompts} {'request' if prompts == 1 else 'requests'} a length, each with some {output} tokens of output {of_blocks}; "
            f"the lengths are not known before the run{bound}"
        )
    requests = texts * prompts * len(lengths)
    many = f"{len(lengths)} length" + "s" * (len(lengths) > 1)
    return (
        f"{of}{many} up to {sizes.short(max(lengths))}, as far as they fit: {requests} requests and a few "
        f"controls, some {requests * output:,} tokens of output {of_blocks} and "
        f"{texts * prompts * sum(lengths):,} of prompt, most of it from the prefix cache{bound}"
    )
