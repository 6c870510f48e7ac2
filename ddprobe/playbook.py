"""The nouns of a playbook: which probes, with which settings, in which order, and what is expected. Data, no code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ddprobe.model import Outcome


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A place in the playbook's file; both count from 1."""

    line: int = 1
    column: int = 1


@dataclass(frozen=True, slots=True)
class Reference:
    """A value that is known later: `${vars.contexts}`, `${steps.find.ranges}`, `${host.drafter}`."""

    source: str
    """`vars`, `steps` or `host`."""
    name: str
    """Of the var, of the host's field, or the id of the step."""
    field: str = ""
    """Of a step: the output that is taken."""

    def __str__(self) -> str:
        return "${" + ".".join(part for part in (self.source, self.name, self.field) if part) + "}"


def references(value: Any) -> Iterator[Reference]:
    """Every reference in a value, in order, those within lists included."""
    if isinstance(value, Reference):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from references(item)


@dataclass(frozen=True, slots=True, kw_only=True)
class Var:
    """A value that whoever runs the playbook may set: `--set name=value`."""

    name: str
    kind: str
    """`text`, `int`, `number`, `bool`, `size` (`16k`), `duration` (`30s`), or a list of one: `list`, `sizes`."""
    default: Any = None
    """Of that kind, lists as tuples. None: it must be set."""
    help: str = ""
    place: Place = Place()


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """What a step must have come to. Each part that is given must hold; a part with several values holds for any."""

    step: str
    outcomes: tuple[Outcome, ...] = ()
    verdicts: tuple[str, ...] = ()
    """Names of verdicts on the host, as the evidence stands after that step."""
    statuses: tuple[str, ...] = ()
    """`done`, `incomplete`, `skipped`, `not_run`, `interrupted`."""
    findings: tuple[str, ...] = ()
    """Ids of findings that the step gave as a warning or a failure: `DC21`."""
    field: str = ""
    """One of the step's outputs, and what it is held against. Of several values, each must be within the limits."""
    least: float | Reference | None = None
    most: float | Reference | None = None
    equals: Any = None
    known: bool | None = None
    """Whether the output has a value at all."""
    place: Place = Place()


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What the run should come to. A miss is a finding, and counts in the exit code."""

    words: str
    """What is expected, in a sentence for people."""
    condition: Condition
    """With `step` empty, of all of the host's steps together."""
    otherwise: Outcome = Outcome.FAIL
    """How a miss counts: `FAIL` or `WARN`."""
    number: int = 1
    """Its position in the playbook: `EXPECT01`."""
    place: Place = Place()

    @property
    def id(self) -> str:
        return f"EXPECT{self.number:02}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaybookStep:
    """One probe of the playbook, and when it is asked."""

    id: str
    probe: str
    given: tuple[tuple[str, Any], ...] = ()
    """`with`: the probe's settings, as literal values (lists as tuples) and `Reference`s, also within lists."""
    needs: tuple[str, ...] = ()
    """Steps that must have got an answer (`done` or `incomplete`) before: else this one is skipped."""
    when: tuple[Condition, ...] = ()
    """All of them must hold, else this step is skipped."""
    timeout: float | None = None
    """Seconds that the whole step may take on one host."""
    place: Place = Place()

    @property
    def settings(self) -> Mapping[str, Any]:
        return dict(self.given)

    @property
    def after(self) -> tuple[str, ...]:
        """Steps that must have ended before: those it needs, those its conditions and references look at."""
        looked = [condition.step for condition in self.when]
        taken = [ref.name for _, value in self.given for ref in references(value) if ref.source == "steps"]
        return tuple(dict.fromkeys((*self.needs, *looked, *taken)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Playbook:
    """A whole playbook, understood and checked."""

    name: str
    about: str
    """The question it answers; further paragraphs may follow."""
    file: str
    digest: str = ""
    """SHA-256 of the file's bytes."""
    vars: tuple[Var, ...] = ()
    hypotheses: tuple[str, ...] = ()
    """Those of the ledger that it is about; empty: all."""
    steps: tuple[PlaybookStep, ...] = ()
    """Every step after those that it is `after`, else in the order of the file."""
    expect: tuple[Expectation, ...] = ()

    @property
    def question(self) -> str:
        return self.about.strip().split("\n\n")[0].replace("\n", " ")

    def step(self, id: str) -> PlaybookStep | None:
        return next((step for step in self.steps if step.id == id), None)

    def var(self, name: str) -> Var | None:
        return next((var for var in self.vars if var.name == name), None)
