"""What a playbook's data decides: whether a step is wanted, and whether the run came to what is expected. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ddprobe.errors import Unanswered
from ddprobe.model import Finding, Outcome
from ddprobe.playbook import Condition, Expectation, Reference
from ddprobe.playbookfile import values
from ddprobe.playbookfile.values import Scope, StepResult


@dataclass(frozen=True, slots=True)
class Held:
    """Whether something holds; None: it cannot be told. `reason` says what is so, in words."""

    holds: bool | None
    reason: str

    def __bool__(self) -> bool:
        return self.holds is True


def wanted(conditions: Sequence[Condition], scope: Scope) -> Held:
    """Whether all of them hold: what is false decides before what is not known."""
    told = [holds(condition, scope) for condition in conditions]
    return _decided(told)


def holds(condition: Condition, scope: Scope) -> Held:
    """Whether the step, or without one the host, is as the condition says."""
    parts = list(_parts(condition, scope))
    return _decided(parts)


def _decided(told: Sequence[Held]) -> Held:
    """All of them as one: false decides before unknown. A `Held` that is not true is no truth value to go by here."""
    for state in (False, None):
        for one in told:
            if one.holds is state:
                return one
    return Held(True, "; ".join(one.reason for one in told))


def _parts(condition: Condition, scope: Scope) -> Iterator[Held]:
    result = scope.steps.get(condition.step)
    if condition.step and result is None:
        yield Held(None, f"the step {condition.step!r} is not over")
        return
    name = condition.step or "the host"
    if condition.statuses and result is not None:
        yield _among(f"{name} is", [result.status], condition.statuses)
    if condition.outcomes:
        outcome = result.outcome if result is not None else _worst(scope)
        yield _among(f"{name}: outcome is", [outcome.label], [one.label for one in condition.outcomes])
    if condition.verdicts:
        found = result.verdicts if result is not None else scope.verdicts
        yield _among(f"{name}: the verdict is", found, condition.verdicts)
    if condition.findings and result is not None:
        yield _findings(result, condition.findings)
    if condition.field and result is not None:
        yield _field(condition, result, scope)


def _worst(scope: Scope) -> Outcome:
    from ddprobe.model import VERDICTS

    judged = [VERDICTS.get(name, Outcome.FAIL) for name in scope.verdicts]
    return Outcome.worst([*(step.outcome for step in scope.steps.values()), *judged])


def _among(what: str, found: Sequence[str], allowed: Sequence[str]) -> Held:
    told = f"{what} {', '.join(found) or 'none'}"
    if set(found) & set(allowed):
        return Held(True, told)
    return Held(False, f"{told}, not {' or '.join(allowed)}")


def _findings(result: StepResult, ids: Sequence[str]) -> Held:
    met = [id for id in ids if id in result.findings]
    if met:
        return Held(True, f"{result.id} found {', '.join(met)}")
    told = f"{result.id} did not find {' or '.join(ids)}"
    # A step without its whole answer may have missed it.
    return Held(False if result.status in ("done", "skipped") else None, told)


def _field(condition: Condition, result: StepResult, scope: Scope) -> Held:
    name, value = f"{result.id}.{condition.field}", result.output.get(condition.field)
    if condition.known is not None:
        told = f"{name} is {'known' if value is not None else 'not known'}"
        if (value is not None) is not condition.known:
            return Held(False, told)
        if value is None or (condition.least is condition.most is condition.equals is None):
            return Held(True, told)
    if value is None:
        return Held(None, f"{name} is not known: {_absent(condition.field, result, scope)}")
    told = f"{name} is {_shown(value)}"
    try:
        least, most, equals = (
            values.resolve(bound, scope) for bound in (condition.least, condition.most, condition.equals)
        )
    except Unanswered as error:
        return Held(None, f"{told}, and its limit is not known: {error.reason}")
    return _within(told, value if isinstance(value, tuple) else (value,), least, most, equals)


def _absent(field: str, result: StepResult, scope: Scope) -> str:
    try:
        values.resolve(Reference("steps", result.id, field), scope)
    except Unanswered as error:
        return error.reason
    return ""


def _within(told: str, items: Sequence[Any], least: Any, most: Any, equals: Any) -> Held:
    """Whether each of the values is within the limits; of no value at all it cannot be told."""
    if equals is not None and not all(_same(item, equals) for item in items):
        alike = any(_shown(item) == _shown(equals) for item in items)
        return Held(
            False,
            f"{told}, not {f'the text {equals!r}' if alike and isinstance(equals, str) else _shown(equals)}",
        )
    limits = [(word, bound) for word, bound in (("at least", least), ("at most", most)) if bound is not None]
    for word, bound in limits:
        if not _number(bound):
            return Held(None, f"{told}, and {_shown(bound)} is no number to be {word}")
    numbers = [item for item in items if _number(item)]
    if not items or (limits and len(numbers) < len(items)):
        return Held(None, f"{told}: {'no number' if limits else 'nothing'} to be held against a limit")
    if least is not None and min(numbers) < least:
        return Held(False, f"{told}, below {_shown(least)}")
    if most is not None and max(numbers) > most:
        return Held(False, f"{told}, above {_shown(most)}")
    kept = ", ".join(f"{word} {_shown(bound)}" for word, bound in limits)
    return Held(True, f"{told} ({kept})" if kept else told)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _same(item: Any, other: Any) -> bool:
    """Equal, and both a truth or neither: in YAML `true` is not 1."""
    return isinstance(item, bool) is isinstance(other, bool) and bool(item == other)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, tuple):
        more = f" and {len(value) - 8} more" if len(value) > 8 else ""
        return (", ".join(map(_shown, value[:8])) or "empty") + more
    return str(value)


def expected(expectation: Expectation, scope: Scope) -> Finding:
    """Whether a host is as expected, as a finding: *pass*, how a miss counts, or *unknown* where it cannot be told."""
    condition = expectation.condition
    held = holds(condition, scope)
    result = scope.steps.get(condition.step)
    if held.holds is False and result is not None and not _answered(condition, result):
        held = Held(None, f"{held.reason}; {values.told(result)}")
    outcome = {True: Outcome.PASS, False: expectation.otherwise, None: Outcome.UNKNOWN}[held.holds]
    measured = result.output.get(condition.field) if result is not None and condition.field else None
    return Finding(
        id=expectation.id,
        outcome=outcome,
        subject=condition.step or "host",
        summary=f"{expectation.words}: {held.reason}",
        measured=((condition.field, measured),) if isinstance(measured, str | int | float | bool) else (),
        source="the playbook's own expectation",
    )


def _answered(condition: Condition, result: StepResult) -> bool:
    """Whether the step ran, where what is expected is more than how it ended."""
    return bool(condition.statuses) or result.status in values.ANSWERED
