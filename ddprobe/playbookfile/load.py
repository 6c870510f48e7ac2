"""A playbook's file as a `Playbook`, or every mistake in it, each with file, line and column. Asks no host anything.

name: where-is-it
about: Where does the installed engine compute its metrics?
vars:
  pattern: {type: text, default: avg_commit_len, help: what to search for}
steps:
  - id: find
    probe: source.grep
    with:
      pattern: ${vars.pattern}
  - id: read
    probe: source.read
    when: {step: find, field: hits, at_least: 1}
    with:
      places: ${steps.find.ranges}
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from ddprobe import yamlfile
from ddprobe.errors import PlaybookError
from ddprobe.model import Outcome
from ddprobe.playbook import Condition, Expectation, Place, Playbook, PlaybookStep, Var
from ddprobe.playbookfile import checking, kinds, limits, ordering, referring
from ddprobe.playbookfile.shape import BookKeys, Limits, StepKeys, VarKeys
from ddprobe.yamlfile import Document, Problem, Where


def load(path: Path) -> Playbook:
    """The file as a playbook. Raises `PlaybookError` with every mistake in it, each as `file:line:col: what`."""
    try:
        with path.open("rb") as file:
            raw = file.read(yamlfile.MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise PlaybookError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    return understand(raw, str(path))


def understand(raw: bytes, file: str) -> Playbook:
    """The bytes of a playbook's file as one; see `load`."""
    document = yamlfile.parse(raw, file)
    document.problems += (halves := checking.halves(document))
    broken = bool(halves) or (document.data is None and bool(document.problems))
    keys, problems = (None, []) if broken else yamlfile.validate(document, BookKeys)
    if not broken and (document.data is None or isinstance(document.data, dict)):
        problems += checking.problems(document)
    problems += _with_hint(document, raw) if broken else document.problems
    if problems or keys is None:
        lines = dict.fromkeys(str(problem) for problem in sorted(set(problems)))
        raise PlaybookError("\n".join(lines), "ddprobe playbook schema prints what a playbook may hold")
    return _Builder(document).book(keys, hashlib.sha256(raw).hexdigest())


def _with_hint(document: Document, raw: bytes) -> list[Problem]:
    """The mistakes of YAML itself; an unquoted reference within [ ] or { } is one that its words do not explain."""
    lines = raw.decode("utf-8", "replace").split("\n")
    found = []
    for problem in document.problems:
        line = lines[problem.line - 1] if problem.line <= len(lines) else ""
        before = line[: problem.column]
        if "${" in before and ("[" in before or before.count("{") > before.count("${")):
            text = 'within [ ] and { } a reference needs quotes: "${vars.x}"'
            problem = Problem(problem.file, problem.line, problem.column, text)
        found.append(problem)
    return found


class _Builder:
    """The nouns from the checked keys, each with its place in the file."""

    def __init__(self, document: Document) -> None:
        self.document = document

    def book(self, keys: BookKeys, digest: str) -> Playbook:
        steps = [self._step(number, step) for number, step in enumerate(keys.steps)]
        expect = tuple(
            Expectation(
                words=" ".join(one.about.split()),
                condition=self._condition(one, one.step or "", ("expect", number)),
                otherwise=Outcome[one.otherwise.upper()],
                number=number + 1,
                place=self._place(("expect", number)),
            )
            for number, one in enumerate(keys.expect or ())
        )
        return Playbook(
            name=keys.name,
            about=keys.about.strip(),
            file=self.document.file,
            digest=digest,
            vars=tuple(self._var(name, var) for name, var in (keys.vars or {}).items()),
            hypotheses=tuple(keys.hypotheses or ()),
            steps=ordering.sorted_steps(steps),
            expect=expect,
        )

    def _place(self, where: Where) -> Place:
        problem = self.document.problem(where, "")
        return Place(problem.line, problem.column)

    def _var(self, name: str, keys: VarKeys) -> Var:
        default = None if keys.default is None else kinds.KINDS[keys.type].read(keys.default)
        place = self._place(("vars", name))
        return Var(name=name, kind=keys.type, default=default, help=" ".join(keys.help.split()), place=place)

    def _step(self, number: int, keys: StepKeys) -> PlaybookStep:
        where: Where = ("steps", number)
        return PlaybookStep(
            id=keys.id,
            probe=keys.probe,
            given=tuple((name, referring.read(value)) for name, value in (keys.given or {}).items()),
            needs=tuple(dict.fromkeys(keys.needs or ())),
            when=tuple(
                self._condition(condition, condition.step, (*where, "when", index))
                for index, condition in enumerate(keys.when or ())
            ),
            timeout=None if keys.timeout is None else kinds.seconds(keys.timeout),
            place=self._place(where),
        )

    def _condition(self, keys: Limits, step: str, where: Where) -> Condition:
        def bound(name: str, value: Any) -> Any:
            return None if value is None else limits.limit(name, value)

        return Condition(
            step=step,
            outcomes=tuple(Outcome[one.upper()] for one in keys.outcome or ()),
            verdicts=tuple(keys.verdict or ()),
            statuses=tuple(keys.status or ()),
            findings=tuple(keys.finding or ()),
            field=keys.field or "",
            least=bound("at_least", keys.at_least),
            most=bound("at_most", keys.at_most),
            equals=bound("equals", keys.equals),
            known=keys.known,
            place=self._place(where),
        )
