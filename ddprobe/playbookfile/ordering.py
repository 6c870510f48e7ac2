"""Which step comes after which, and circles in that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ddprobe.playbook import PlaybookStep, references
from ddprobe.playbookfile import referring
from ddprobe.playbookfile.shape import listed
from ddprobe.yamlfile import Where


def circles(steps: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Where, str, bool]]:
    """Steps of the raw data that wait for themselves, each circle once, at the step that stands first in the file."""
    numbers: dict[str, int] = {}
    for number, step in enumerate(steps):
        if isinstance(step.get("id"), str):
            numbers.setdefault(step["id"], number)
    after = {id: [a for a in _after(steps[number]) if a in numbers] for id, number in numbers.items()}
    told: set[str] = set()
    for id, number in numbers.items():
        way = None if id in told else _back(id, after)
        if way is not None:
            told |= set(way)
            chain = " > ".join((*way, id))
            yield ("steps", number), f"the step {id!r} waits for itself: {chain}", False


def _after(step: Mapping[str, Any]) -> list[str]:
    found = [one for one in listed(step.get("needs")) or [] if isinstance(one, str)]
    for condition in listed(step.get("when")) or []:
        if isinstance(condition, dict) and isinstance(condition.get("step"), str):
            found.append(condition["step"])
    given = step.get("with")
    for value in given.values() if isinstance(given, dict) else ():
        try:
            found += [r.name for r in references(referring.read(value)) if r.source == "steps"]
        except ValueError:
            continue
    return found


def _back(start: str, after: Mapping[str, Sequence[str]]) -> tuple[str, ...] | None:
    """The shortest way from a step over those it comes after back to itself."""
    ways: list[tuple[str, ...]] = [(start,)]
    seen: set[str] = set()
    while ways:
        way = ways.pop(0)
        for one in after[way[-1]]:
            if one == start:
                return way
            if one not in seen:
                seen.add(one)
                ways.append((*way, one))
    return None


def sorted_steps(steps: Sequence[PlaybookStep]) -> tuple[PlaybookStep, ...]:
    """Each step after those it comes after, else in the order given. There is no circle."""
    left, placed = list(steps), []
    ids: set[str] = set()
    while left:
        step = next(step for step in left if ids >= set(step.after))
        left.remove(step)
        placed.append(step)
        ids.add(step.id)
    return tuple(placed)
