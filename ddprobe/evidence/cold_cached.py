"""Requests of one length, computed and from the prefix cache, that somebody recorded: do both draft as well?

    {"prompt_tokens": 8000, "cached_tokens": 0,    "completion_tokens": 256, "spec_verify_ct": 50}
    {"prompt_tokens": 8000, "cached_tokens": 7999, "completion_tokens": 256, "spec_verify_ct": 250}

Nobody says that the prompts are the same: only a loss that texts of one length do not show among themselves counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ddprobe.evidence import pooled
from ddprobe.facts import Acceptance, CommitCheck, CommitRequest
from ddprobe.model import Fact

COLD, CACHED = 0.1, 0.9
"""At most and at least these shares of the prompt came from the cache."""
LOST = 0.5
"""Of the tokens beyond the first that a step commits cold, from the cache fewer than this share remain."""
KEPT = 0.85
FEWEST = 16
"""Verify steps of each kind."""


def told(facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """The facts, with a check for the first length at which the cache takes something, or of what it leaves alone."""
    alone = [f for f in facts if isinstance(f, CommitRequest) and f.origin != "points" and f.prompt_tokens]
    lengths = dict.fromkeys(request.prompt_tokens for request in alone if request.prompt_tokens)
    checks = [
        (check, {id(request) for request in mine})
        for length in lengths
        if (check := _check(length, mine := [r for r in alone if r.prompt_tokens == length])) is not None
    ]
    if not checks or any(isinstance(fact, CommitCheck) for fact in facts):
        return tuple(facts)
    check, members = min(checks, key=lambda each: each[0].agrees is not False)
    return (*(_named(fact) if id(fact) in members else fact for fact in facts), check)


def _named(fact: Fact) -> Fact:
    assert isinstance(fact, CommitRequest)
    return replace(fact, purpose=_kind(fact) or fact.purpose)


def _kind(request: CommitRequest) -> str:
    if request.cached_tokens is None or not request.prompt_tokens:
        return ""
    share = request.cached_tokens / request.prompt_tokens
    return "cold" if share <= COLD else "cached" if share >= CACHED else ""


def _check(length: int, mine: Sequence[CommitRequest]) -> CommitCheck | None:
    figures = []
    for kind in ("cold", "cached"):
        figure = next(iter(pooled.together([r for r in mine if _kind(r) == kind])), None)
        if figure is None or figure.commit is None or figure.steps is None or figure.steps < FEWEST:
            return None
        figures.append((figure, figure.commit, figure.steps))
    (cold, first, one), (cached, second, other) = figures
    kept = second - 1 >= KEPT * (first - 1)
    if not kept and second - 1 >= LOST * (first - 1):
        return None
    return CommitCheck(
        name="cold-cached",
        agrees=kept,
        text=f"requests of {length} prompt tokens commit {_said(cold)} computed and {_said(cached)} from the cache",
        context_tokens=length,
        first=first,
        second=second,
        steps=one + other,
        source=(*cold.source, *cached.source),
    )


def _said(figure: Acceptance) -> str:
    return f"{figure.commit:.2f} ({figure.steps} steps, {figure.window})"
