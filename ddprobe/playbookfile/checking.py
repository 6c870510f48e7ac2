"""Whether the parts of a playbook fit together: names, references, order, limits. All mistakes, each at its place.

It looks at the raw data, so that these mistakes are found beside those of form; what has a wrong form is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ddprobe.model import Probe
from ddprobe.playbook import Reference, references
from ddprobe.playbookfile import asking, kinds, limits, ordering, referring
from ddprobe.playbookfile.referring import Known
from ddprobe.playbookfile.shape import listed
from ddprobe.verdicts.hypotheses import HYPOTHESES
from ddprobe.yamlfile import Document, Problem, Where, nearest

MAX_STEPS = 64
_NAME = re.compile(r"[a-z][a-z0-9-]*\Z")
_ID = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,39}\Z")


def problems(document: Document) -> list[Problem]:
    """What is wrong between the keys."""
    return [
        document.problem(where, text, at_key=at_key) for where, text, at_key in _Check(document.data).all()
    ]


def halves(document: Document) -> list[Problem]:
    """Texts with half a character (`\\ud800`): nothing that is written or sent could hold them."""
    return [
        document.problem(where, text, at_key=at_key) for where, text, at_key in _halves(document.data, ())
    ]


Found = tuple[Where, str, bool]
"""(place, what is wrong, whether at the key)"""


class _Check:
    """One file's data, and the names in it."""

    def __init__(self, data: Any) -> None:
        self.data = _mapping(data)
        self.vars = _mapping(self.data.get("vars"))
        steps = self.data.get("steps")
        self.steps = [_mapping(step) for step in steps] if isinstance(steps, list) else []
        outputs: dict[str, tuple[str, ...] | None] = {}
        named = {step["probe"] for step in self.steps if isinstance(step.get("probe"), str)}
        # Each looked up once: that goes to the disk.
        self.kinds = {name: asking.kind_of(name) for name in named}
        for step in self.steps:
            kind = self._probe(step)
            if isinstance(step.get("id"), str):
                outputs.setdefault(step["id"], tuple(kind.outputs) if kind is not None else None)
        samples = {name: kinds.KINDS[kind].sample for name, kind in self._kinds() if kind in kinds.KINDS}
        self.known = Known(frozenset(self.vars), outputs, samples)
        self.samples: dict[str, tuple[Any, bool]] = {}

    def _probe(self, step: Mapping[str, Any]) -> type[Probe] | None:
        name = step.get("probe")
        return self.kinds.get(name) if isinstance(name, str) else None

    def _kinds(self) -> Iterator[tuple[str, str]]:
        for name, keys in self.vars.items():
            kind = _mapping(keys).get("type")
            if isinstance(kind, str):
                yield name, kind

    def all(self) -> Iterator[Found]:
        yield from self._top()
        for name, keys in self.vars.items():
            yield from self._var(name, _mapping(keys))
        seen: dict[str, int] = {}
        for number, step in enumerate(self.steps[:MAX_STEPS]):
            yield from self._step(number, step, seen)
        yield from ordering.circles(self.steps[:MAX_STEPS])
        expect = self.data.get("expect")
        for number, entry in enumerate(expect if isinstance(expect, list) else []):
            if isinstance(entry, dict):
                yield from limits.mistakes(entry, ("expect", number), self.known, step_needed=False)
        yield from self._unused()

    def _top(self) -> Iterator[Found]:
        name = self.data.get("name")
        if isinstance(name, str) and not _NAME.match(name):
            yield ("name",), f"name: {name!r} cannot be one: lower-case letters, digits and '-'", False
        about = self.data.get("about")
        if isinstance(about, str) and not about.strip():
            yield ("about",), "about: say which question the playbook answers", False
        elif isinstance(about, str) and "?" not in about:
            yield ("about",), "about: open with the question that the playbook answers, with its '?'", False
        if isinstance(self.data.get("steps"), list) and not self.steps:
            yield ("steps",), "steps: there is none", False
        if len(self.steps) > MAX_STEPS:
            yield ("steps",), f"steps: {len(self.steps)} are more than {MAX_STEPS}", False
        yield from self._hypotheses()

    def _hypotheses(self) -> Iterator[Found]:
        named = self.data.get("hypotheses")
        named = named if isinstance(named, list) else []
        for number, one in enumerate(named):
            if isinstance(one, str) and one not in HYPOTHESES:
                text = f"there is no hypothesis {one!r}{nearest(one, HYPOTHESES)}"
                yield ("hypotheses", number), f"{text}; there are {', '.join(HYPOTHESES)}", False
            elif isinstance(one, str) and one in named[:number]:
                yield ("hypotheses", number), f"the hypothesis {one!r} stands here a second time", False

    def _var(self, name: str, keys: Mapping[str, Any]) -> Iterator[Found]:
        where: Where = ("vars", name)
        if not _ID.match(name):
            text = f"{name!r} cannot be a var's name: letters, digits, '_' and '-', a letter first"
            yield where, text, True
        kind = kinds.KINDS.get(keys["type"]) if isinstance(keys.get("type"), str) else None
        if kind is None:
            return
        self.samples[name] = (kind.sample, False)
        default = keys.get("default")
        if default is None:
            return
        try:
            self.samples[name] = (kind.read(default), True)
        except ValueError as error:
            yield (*where, "default"), f"default {error}", False
        if isinstance(default, str) and "${" in default:
            yield (*where, "default"), "default: a var holds a plain value, no reference", False

    def _step(self, number: int, step: Mapping[str, Any], seen: dict[str, int]) -> Iterator[Found]:
        where: Where = ("steps", number)
        id, probe = step.get("id"), step.get("probe")
        if isinstance(id, str):
            if not _ID.match(id):
                text = f"{id!r} cannot be an id: letters, digits, '_' and '-', a letter first, at most 40"
                yield (*where, "id"), f"id: {text}", False
            elif id in seen:
                yield (*where, "id"), f"id: there are two steps {id!r}; the first is number {seen[id]}", False
            seen.setdefault(id, number + 1)
        kind = self._probe(step)
        if isinstance(probe, str) and kind is None:
            yield (*where, "probe"), f"probe: {no_probe(probe)}", False
        given = step.get("with")
        if kind is not None and (isinstance(given, dict) or given is None):
            for place, text in asking.mistakes(kind, given or {}, self.known, self.samples):
                at_key = "has no setting" in text
                yield (*where, *place), text, at_key
        needs = step.get("needs")
        for index, one in enumerate(listed(needs) or []):
            if isinstance(one, str) and one not in self.known.outputs:
                near = nearest(one, self.known.outputs)
                yield (*where, "needs", index), f"needs: there is no step {one!r}{near}", False
        for index, condition in enumerate(listed(step.get("when")) or []):
            if isinstance(condition, dict):
                place = (*where, "when", index) if isinstance(step.get("when"), list) else (*where, "when")
                yield from limits.mistakes(condition, place, self.known, step_needed=True)
        if step.get("timeout") is not None:
            try:
                kinds.seconds(step["timeout"])
            except ValueError as error:
                yield (*where, "timeout"), f"timeout {error}", False

    def _unused(self) -> Iterator[Found]:
        """A var that nothing takes is a reference that was forgotten, or misspelt."""
        taken = {reference.name for reference in _taken(self.data) if reference.source == "vars"}
        for name in self.vars:
            if name not in taken:
                yield ("vars", name), f"the var {name!r} is used nowhere: write ${{vars.{name}}}", True


def _halves(value: Any, where: Where) -> Iterator[Found]:
    if isinstance(value, str):
        if kinds.half(value):
            yield where, f"{kinds.shown(value)} holds half a character: no file could hold it", False
    elif isinstance(value, dict):
        for key, item in value.items():
            if kinds.half(key):
                yield (*where, key), f"the key {kinds.shown(key)} holds half a character", True
            yield from _halves(item, (*where, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _halves(item, (*where, index))


def no_probe(name: str) -> str:
    from ddprobe import probes

    names = probes.names()
    return f"there is no probe {name!r}{nearest(name, names)}; there are {', '.join(names)}"


def _taken(value: Any) -> Iterator[Reference]:
    if isinstance(value, dict):
        for item in value.values():
            yield from _taken(item)
    elif isinstance(value, list):
        for item in value:
            yield from _taken(item)
    else:
        try:
            yield from references(referring.read(value))
        except ValueError:
            return


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
