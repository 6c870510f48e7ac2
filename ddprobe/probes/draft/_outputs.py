"""What later steps of a playbook may take from the probes that measure a live server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ddprobe import arms
from ddprobe.facts import CommitPoint, CommitSetup
from ddprobe.model import Fact
from ddprobe.probes import _given

COMMIT = {
    "url": "where the server listens that was measured",
    "contexts": "the context lengths that were measured, each once",
    "longest": "the longest of them",
    "commit": "mean commit length of each point, bonus token included",
    "commit_lowest": "the lowest of these means",
    "commit_highest": "the highest of these means",
    "accept_rate": "share of drafted tokens that were right, of each point",
    "steps": "decode steps behind the point that has fewest",
    "ceiling": "most tokens that one verify step can commit",
    "limits": "lengths at which something changes by configuration, as the probe knows them",
}
STEP_TIME = {
    "url": "where the server listens that was measured",
    "contexts": "the context lengths that were measured, each once",
    "longest": "the longest of them",
    "step_ms": "median step time in milliseconds, of each point",
    "step_ms_shortest": "the same at the shortest context",
    "step_ms_longest": "the same at the longest context",
    "growth": "step time at the longest context over that at the shortest",
    "timed_steps": "timed steps behind the point that has fewest",
}


def commit(facts: Sequence[Fact]) -> Mapping[str, Any]:
    points = [p for p in _points(facts, "point") if p.commit_mean is not None]
    setup = next((fact for fact in facts if isinstance(fact, CommitSetup)), None)
    if not points:
        return {"url": setup.base} if setup is not None else {}
    means = tuple(point.commit_mean for point in points if point.commit_mean is not None)
    rates = tuple(point.accept_rate for point in points if point.accept_rate is not None)
    return {
        "url": setup.base if setup is not None else None,
        **_lengths(points),
        "commit": means,
        "commit_lowest": min(means),
        "commit_highest": max(means),
        "accept_rate": rates or None,
        "steps": min(point.steps for point in points),
        "ceiling": setup.ceiling if setup is not None else None,
        "limits": tuple(limit.tokens for limit in setup.limits) if setup is not None else None,
    }


def step_time(facts: Sequence[Fact]) -> Mapping[str, Any]:
    points = [p for p in _points(facts, "step-time") if p.step_ms is not None]
    setup = next((fact for fact in facts if isinstance(fact, CommitSetup)), None)
    if not points:
        return {"url": setup.base} if setup is not None else {}
    ordered = sorted(points, key=lambda point: point.context_tokens)
    times = tuple(point.step_ms for point in ordered if point.step_ms is not None)
    return {
        "url": setup.base if setup is not None else None,
        **_lengths(points),
        "step_ms": times,
        "step_ms_shortest": times[0],
        "step_ms_longest": times[-1],
        "growth": times[-1] / times[0] if len(times) > 1 and times[0] else None,
        "timed_steps": min(point.timed_steps for point in points),
    }


def _points(facts: Sequence[Fact], purpose: str) -> list[CommitPoint]:
    return [fact for fact in facts if isinstance(fact, CommitPoint) and fact.purpose == purpose]


def _lengths(points: Sequence[CommitPoint]) -> dict[str, Any]:
    """Lengths that were asked for: a text sent as it is has none."""
    lengths = tuple(sorted({point.context_tokens for point in points if point.context_tokens}))
    return {"contexts": lengths, "longest": lengths[-1]} if lengths else {}


def mistakes(given: Mapping[str, Any]) -> Iterator[_given.Mistake]:
    """Settings of a commit probe that could never be asked."""
    yield from _given.of_requests(given)
    yield from _given.outside(given, "steps", 1, 100_000)
    yield from _given.outside(given, "prompts", 1, 64)
    names = [word.strip() for word in str(given.get("arms", "")).split(",") if word.strip()]
    for name in names:
        if name not in arms.ARMS:
            yield "arms", f"there is no arm {name!r}: there are {', '.join(arms.ARMS)}"
    if "verbatim" in names and not given.get("text"):
        yield "arms", "the arm verbatim sends a text of yours as it is: give it as `text`"
