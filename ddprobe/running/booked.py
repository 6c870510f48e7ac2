"""A playbook as a run carries it out: its steps as stages, its expectations as findings, and what the report says of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ddprobe import probes
from ddprobe.errors import Unanswered
from ddprobe.model import Fact, Finding, Host, PlaybookRecord, Probe, Verdict
from ddprobe.playbook import Playbook, PlaybookStep, references
from ddprobe.playbookfile import conditions
from ddprobe.playbookfile.values import ANSWERED, Scope, StepResult, probe_for, told
from ddprobe.running.course import Done, NotNow, Stage
from ddprobe.running.fleet import Book
from ddprobe.running.judging import conclude

SKIPPED = "skipped"


class Booked:
    """One playbook with its vars set, and the steps that whoever runs it does not want (id → why)."""

    def __init__(self, book: Playbook, values: Mapping[str, Any], unwanted: Mapping[str, str]) -> None:
        self.book = book
        self.values = values
        self.unwanted = unwanted
        self._ruled_on = {c.step for step in book.steps for c in step.when if c.verdicts}
        self._ruled_on |= {one.condition.step for one in book.expect if one.condition.verdicts}

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The playbook's steps, in its order."""
        return tuple(self._stage(step) for step in self.book.steps)

    @property
    def told(self) -> Book:
        """What the run has to know of the playbook besides its steps."""
        record = PlaybookRecord(
            name=self.book.name,
            about=self.book.about,
            file=Path(self.book.file).name,
            digest=self.book.digest,
            vars=tuple(self.values.items()),
            hypotheses=self.book.hypotheses,
        )
        return Book(record, self.expected)

    def expected(self, host: Host, over: Mapping[str, Done], ruled: Sequence[Verdict]) -> tuple[Finding, ...]:
        """Whether the host is as the playbook expects. Of a step that nobody wanted nothing is expected."""
        scope = self._scope(host, over, ruled)
        wanted = (one for one in self.book.expect if one.condition.step not in self.unwanted)
        return tuple(conditions.expected(one, scope) for one in wanted)

    def known(self, step: PlaybookStep) -> tuple[tuple[str, Any], ...]:
        """The step's settings as far as they are known before the run; the others as they are written."""
        scope = Scope(vars=self.values)
        return tuple((name, _as_known(value, scope)) for name, value in step.given)

    def _stage(self, step: PlaybookStep) -> Stage:
        def decide(host: Host, over: Mapping[str, Done]) -> Probe | NotNow:
            return self._decide(step, host, over)

        return Stage(
            id=step.id,
            probe=step.probe,
            decide=decide,
            settings=self.known(step),
            needs=step.after,
            measures=probes.load(step.probe).measures,
            timeout=step.timeout,
        )

    def _decide(self, step: PlaybookStep, host: Host, over: Mapping[str, Done]) -> Probe | NotNow:
        """The probe to run, or why not: what is not wanted is skipped, what is not known makes it unknown."""
        if step.id in self.unwanted:
            return NotNow(SKIPPED, self.unwanted[step.id])
        scope = self._scope(host, over)
        for name in step.needs:
            needed = scope.steps.get(name)
            if needed is not None and needed.status not in ANSWERED:
                return NotNow(SKIPPED, f"it needs {name!r}: {told(needed)}")
        looked = [c.step for c in step.when]
        taken = [r.name for _, value in step.given for r in references(value) if r.source == "steps"]
        for name in (*looked, *taken):
            if name in self.unwanted:
                return NotNow(SKIPPED, f"it looks at {name!r}, which was not to run: {self.unwanted[name]}")
        if step.when:
            held = conditions.wanted(step.when, scope)
            if held.holds is None:
                return NotNow("incomplete", f"whether it is wanted cannot be told: {held.reason}")
            if not held.holds:
                return NotNow(SKIPPED, held.reason)
        try:
            return probe_for(step, scope)
        except Unanswered as error:
            return NotNow("incomplete", f"{error.key} is not known: {error.reason}")

    def _scope(self, host: Host, over: Mapping[str, Done], ruled: Sequence[Verdict] = ()) -> Scope:
        before: list[Done] = []
        steps: dict[str, StepResult] = {}
        # In the playbook's order, so that what is side by side comes to the same each time.
        for step in self.book.steps:
            done = over.get(step.id)
            if done is None:
                continue
            before.append(done)
            found = _verdicts(host, before) if step.id in self._ruled_on else ()
            steps[step.id] = StepResult.of(done.record, done.findings, found)
        return Scope(vars=self.values, host=host, steps=steps, verdicts=tuple(one.name for one in ruled))


def _verdicts(host: Host, over: Sequence[Done]) -> tuple[Verdict, ...]:
    facts: list[Fact] = [fact for done in over for fact in done.record.facts]
    return conclude(host, facts, [finding for done in over for finding in done.findings])


def _as_known(value: Any, scope: Scope) -> Any:
    """The value with the vars in it; other references as they are written."""
    if isinstance(value, tuple):
        found: list[Any] = []
        for item in value:
            one = _as_known(item, scope)
            found += one if isinstance(one, tuple) else (one,)
        return tuple(found)
    for reference in references(value):
        known = scope.vars.get(reference.name) if reference.source == "vars" else None
        return str(reference) if known is None else known
    return value


def unwanted(book: Playbook, only: Sequence[str], skip: Sequence[str]) -> dict[str, str]:
    """The steps that `--only` and `--skip` leave out, and why. What an `--only` step comes after is run too."""
    left: dict[str, str] = {}
    if only:
        wanted: set[str] = set()
        todo = list(only)
        while todo:
            step = book.step(todo.pop())
            if step is not None and step.id not in wanted:
                wanted.add(step.id)
                todo += step.after
        left = {step.id: f"--only {','.join(only)}" for step in book.steps if step.id not in wanted}
    return left | dict.fromkeys(skip, "--skip")
