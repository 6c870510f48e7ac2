"""What a condition may look at: `when` of a step and the entries of `expect`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from ddprobe.model import VERDICTS
from ddprobe.playbook import Reference
from ddprobe.playbookfile import kinds, referring
from ddprobe.playbookfile.referring import Known
from ddprobe.playbookfile.shape import listed
from ddprobe.yamlfile import Where, nearest

PARTS = ("outcome", "verdict", "status", "finding", "field")
BOUNDS = ("at_least", "at_most", "equals", "known")
OF_A_STEP = ("status", "finding", "field")


def mistakes(
    entry: Mapping[str, Any], where: Where, known: Known, *, step_needed: bool
) -> Iterator[tuple[Where, str, bool]]:
    """What is wrong with one condition of the raw data."""
    step = entry.get("step")
    if isinstance(step, str) and step not in known.outputs:
        near = nearest(step, known.outputs)
        yield (*where, "step"), f"step: there is no step {step!r}{near}", False
    for part in PARTS:
        if part != "field" and part in entry and entry[part] in (None, []):
            yield (*where, part), f"{part}: names nothing, so it would always hold: name one", True
    if not any(part in entry for part in PARTS):
        yield where, f"nothing is asked of it: give one of {', '.join(PARTS)}", False
    if not step_needed and step is None:
        for part in OF_A_STEP:
            if part in entry:
                yield (*where, part), f"{part}: of which step? Give `step` as well", True
    for name in _texts(entry.get("verdict")):
        if name not in VERDICTS:
            has = f"there are {', '.join(sorted(VERDICTS))}"
            yield (
                _at(entry, where, "verdict", name),
                f"there is no verdict {name!r}{nearest(name, VERDICTS)}; {has}",
                False,
            )
    for name in _texts(entry.get("finding")):
        if name not in (ids := finding_ids()):
            yield (
                _at(entry, where, "finding", name),
                f"there is no finding {name!r}{nearest(name, ids)}",
                False,
            )
    yield from _field(entry, where, known)


def _field(entry: Mapping[str, Any], where: Where, known: Known) -> Iterator[tuple[Where, str, bool]]:
    step, field = entry.get("step"), entry.get("field")
    bounds = [bound for bound in BOUNDS if entry.get(bound) is not None]
    if isinstance(step, str) and isinstance(field, str):
        for text in known.no_output(step, field, "field"):
            yield (*where, "field"), text, False
    if "field" in entry and not bounds:
        yield (*where, "field"), f"field: held against what? Give one of {', '.join(BOUNDS)}", True
    if "field" not in entry:
        for bound in bounds:
            yield (*where, bound), f"{bound}: of which field? Give `field` as well", True
    held: dict[str, Any] = {}
    for bound in ("at_least", "at_most", "equals"):
        if entry.get(bound) is None:
            continue
        try:
            value = limit(bound, entry[bound])
        except ValueError as error:
            yield (*where, bound), f"{bound} {error}", False
            continue
        if isinstance(value, Reference) and value.source == "steps":
            yield (*where, bound), f"{bound}: {value} is a step's; a limit is a plain value or a var", False
        elif isinstance(value, Reference):
            wrong = list(known.mistakes(value)) or list(_no_limit(bound, value, known))
            for text in wrong:
                yield (*where, bound), f"{bound}: {text}", False
        else:
            held[bound] = value
    if held.get("at_least", -math.inf) > held.get("at_most", math.inf):
        yield (*where, "at_least"), "at_least is above at_most: no value is within", False


def _no_limit(bound: str, reference: Reference, known: Known) -> Iterator[str]:
    """Why what the reference gives is nothing to hold a value against."""
    sample = known.sample(reference)
    if isinstance(sample, tuple):
        yield f"{reference} is a list; a limit is one value"
    elif bound != "equals" and isinstance(sample, bool | str):
        yield f"{reference} is {'true or false' if isinstance(sample, bool) else 'text'}; a limit is a number"


def limit(bound: str, value: Any) -> Any:
    """What a value is held against: a number (or a size: `64k`), for `equals` any plain value; or a reference to one."""
    value = referring.read(value)
    if isinstance(value, Reference):
        return value
    if bound == "equals":
        if isinstance(value, str | int | float | bool):
            return value
        raise ValueError(f"must be one plain value, not {kinds.shown(value)}")
    if isinstance(value, str):
        try:
            return kinds.KINDS["size"].read(value)
        except ValueError:
            raise ValueError(f"must be a number or a size, not {kinds.shown(value)}") from None
    return kinds.KINDS["number"].read(value)


def finding_ids() -> tuple[str, ...]:
    """Every finding that a run can give: the probes' own and the lints'."""
    from ddprobe import probes
    from ddprobe.lints import table

    own = [id for name in probes.names() for id in probes.load(name).findings]
    return tuple(dict.fromkeys(("unanswered", *own, *table.describe())))


def _texts(value: Any) -> list[str]:
    return [one for one in listed(value) or [] if isinstance(one, str)]


def _at(entry: Mapping[str, Any], where: Where, part: str, name: str) -> Where:
    value = entry[part]
    return (*where, part, value.index(name)) if isinstance(value, list) else (*where, part)
