"""What an earlier commit probe or step-time run measured without speculation: the speed that speculation must beat."""

from __future__ import annotations

import math

from ddprobe.errors import UsageError
from ddprobe.facts import CommitPoint, CommitSetup
from ddprobe.model import Report

ARM = "repeat"
_ADVICE = "measure the server without speculation: ddprobe step-time"


def of(report: Report) -> str:
    """`1024:8.1,16384:9.4`: milliseconds per output token by context. Raises `UsageError`."""
    facts = [fact for step in report.steps for fact in step.facts]
    setups = [fact for fact in facts if isinstance(fact, CommitSetup)]
    # Of two servers side by side, the one without speculation.
    if plain := [setup for setup in setups if setup.purpose == "plain"]:
        setups = plain
    purposes = ("plain",) if plain else ("point", "step-time")
    points = [
        fact
        for fact in facts
        if isinstance(fact, CommitPoint) and fact.purpose in purposes and fact.arm.split(" ")[0] == ARM
    ]
    if not points:
        raise UsageError(f"the report {report.name!r} has no point of the arm {ARM}", _ADVICE)
    with_points = {step.host for step in report.steps if any(isinstance(f, CommitPoint) for f in step.facts)}
    if len(with_points) > 1:
        raise UsageError(f"the report {report.name!r} is of several hosts", "name one of a single host")
    if any(setup.speculating for setup in setups) or any(_speculated(point) for point in points):
        raise UsageError(f"the server of the report {report.name!r} was speculating", _ADVICE)
    if not any(setup.speculating is False for setup in setups) and not all(map(_plain, points)):
        raise UsageError(
            f"whether the server of the report {report.name!r} was speculating is unknown", _ADVICE
        )
    found = {point.context_tokens: ms for point in points if (ms := _ms_per_token(point)) is not None}
    if not found:
        raise UsageError(f"the report {report.name!r} has no step time", _ADVICE)
    return ",".join(f"{context}:{found[context]:.6g}" for context in sorted(found))


def _speculated(point: CommitPoint) -> bool:
    return bool(point.drafted_steps) or (point.commit_mean is not None and point.commit_mean > 1.001)


def _plain(point: CommitPoint) -> bool:
    return point.drafted_steps == 0 or point.commit_mean is not None


def _ms_per_token(point: CommitPoint) -> float | None:
    """Of a point without speculation, a step commits one token."""
    if point.step_ms is None or not math.isfinite(point.step_ms) or point.step_ms <= 0:
        return None
    return point.step_ms / (point.commit_mean or 1.0)
