"""From references to values, typed: a list stays a list. What is not known at run time is `Unanswered`, with the reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ddprobe import probes
from ddprobe.errors import Unanswered, UsageError
from ddprobe.model import Fact, Finding, Host, Outcome, Probe, StepRecord, Verdict
from ddprobe.playbook import Playbook, PlaybookStep, Reference, references
from ddprobe.playbookfile import kinds
from ddprobe.yamlfile import nearest

ANSWERED = ("done", "incomplete")
WORDS = {"not_run": "did not run", "skipped": "was skipped", "interrupted": "was interrupted"}


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """What a step came to on one host, as later steps and expectations see it."""

    id: str
    status: str
    """As in `StepRecord`."""
    outcome: Outcome = Outcome.UNKNOWN
    verdicts: tuple[str, ...] = ()
    """Names of the verdicts on the host as the evidence stands after it."""
    findings: tuple[str, ...] = ()
    """Ids of its findings that warn or fail."""
    output: Mapping[str, Any] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, record: StepRecord, findings: Sequence[Finding], verdicts: Sequence[Verdict] = ()
    ) -> StepResult:
        """From what the report holds of it."""
        judged = [finding.outcome for finding in findings]
        if record.status == "done":
            outcome = Outcome.worst([*judged, Outcome.INFO])
        elif record.status == "skipped":
            outcome = Outcome.SKIP
        else:
            outcome = Outcome.worst([*judged, Outcome.UNKNOWN])
        return cls(
            id=record.id,
            status=record.status,
            outcome=outcome,
            verdicts=tuple(verdict.name for verdict in verdicts),
            findings=tuple(f.id for f in findings if f.outcome in (Outcome.WARN, Outcome.FAIL)),
            output=output_of(record.probe, record.facts, findings) if record.status in ANSWERED else {},
            reasons=record.reasons,
        )


def output_of(probe: str, facts: Sequence[Fact], findings: Sequence[Finding]) -> Mapping[str, Any]:
    """The outputs of a probe that are known; of one that this version does not have, none."""
    if probe not in probes.names():
        return {}
    found = probes.load(probe).output(facts, findings)
    return {name: value for name, value in found.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What references may be resolved with."""

    vars: Mapping[str, Any] = field(default_factory=dict)
    host: Host | None = None
    steps: Mapping[str, StepResult] = field(default_factory=dict)
    """Those that are over on that host."""
    verdicts: tuple[str, ...] = ()
    """On the host, all of its steps together."""


def resolve(value: Any, scope: Scope) -> Any:
    """The value with its references resolved. Within a list, one that gives a list gives its items.

    Raises `Unanswered`, whose key is the reference, where something is not known.
    """
    if isinstance(value, Reference):
        return _resolved(value, scope)
    if not isinstance(value, tuple):
        return value
    found: list[Any] = []
    for item in value:
        one = resolve(item, scope)
        found += one if isinstance(one, tuple) else (one,)
    return tuple(found)


def _resolved(reference: Reference, scope: Scope) -> Any:
    name = reference.name
    if reference.source == "vars":
        if scope.vars.get(name) is None:
            raise Unanswered(str(reference), f"the var {name!r} is not set")
        return scope.vars[name]
    if reference.source == "host":
        known = getattr(scope.host, name, None)
        if known is None or known == ():
            raise Unanswered(str(reference), f"nothing is known beforehand of the host's {name!r}")
        return known
    step = scope.steps.get(name)
    if step is None:
        raise Unanswered(str(reference), f"the step {name!r} is not over")
    if reference.field in step.output:
        return step.output[reference.field]
    raise Unanswered(str(reference), f"{told(step)}, so there is no {reference.field!r}")


def told(step: StepResult) -> str:
    reasons = f": {'; '.join(step.reasons[:2])}" if step.reasons else ""
    if step.status == "done":
        return f"the step {step.id!r} did not find it"
    if step.status == "incomplete":
        return f"the step {step.id!r} got no whole answer{reasons}"
    return f"the step {step.id!r} {WORDS.get(step.status, step.status)}{reasons}"


def settings_for(step: PlaybookStep, scope: Scope) -> dict[str, Any]:
    """The step's settings as its probe has them.

    Raises `Unanswered` where a reference is not known, and where what it gives is nothing that the setting takes.
    """
    settings = {setting.name: setting for setting in probes.settings(probes.load(step.probe))}
    found: dict[str, Any] = {}
    for name, value in step.given:
        known = resolve(value, scope)
        try:
            found[name] = kinds.as_setting(settings[name], known)
        except ValueError as error:
            raise Unanswered(_of(name, value), f"{name} {error}") from None
    return found


def probe_for(step: PlaybookStep, scope: Scope) -> Probe:
    """The step's probe with its settings. Raises `Unanswered` as `settings_for`, and for what can never be asked."""
    kind = probes.load(step.probe)
    found = settings_for(step, scope)
    wrong = [f"{name}: {text}" if name else text for name, text in kind.mistakes(found)]
    if wrong:
        raise Unanswered(step.probe, "; ".join(wrong))
    try:
        return kind(**found)
    except UsageError as error:
        raise Unanswered(step.probe, f"{error.message}{': ' if error.advice else ''}{error.advice}") from None


def _of(name: str, value: Any) -> str:
    return str(next(references(value), name))


def set_vars(playbook: Playbook, words: Sequence[str]) -> dict[str, Any]:
    """The playbook's vars: defaults, and what `k=v` words set, each of its kind. Raises `UsageError` with all mistakes."""
    values: dict[str, Any] = {var.name: var.default for var in playbook.vars}
    wrong: list[str] = []
    for word in words:
        name, equals, text = word.partition("=")
        name = name.strip()
        if kinds.half(text):
            wrong.append(f"--set {kinds.shown(word)}: what is typed is not UTF-8 text")
            continue
        if not equals:
            wrong.append(f"--set {word!r} has no value: write --set name=value")
            continue
        var = playbook.var(name) or playbook.var(name.replace("-", "_"))
        if var is None:
            has = ", ".join(values) or "none"
            wrong.append(f"{playbook.name} has no var {name!r}{nearest(name, values)}; it has {has}")
            continue
        try:
            values[var.name] = kinds.KINDS[var.kind].read(text)
        except ValueError as error:
            wrong.append(f"--set {name}: {error}")
            values[var.name] = kinds.KINDS[var.kind].sample
    wrong += [
        f"{playbook.name} needs the var {var.name!r} ({var.help}): add --set {var.name}=…"
        for var in playbook.vars
        if values[var.name] is None
    ]
    wrong += [] if wrong else _impossible(playbook, values)
    if wrong:
        raise UsageError("\n".join(wrong), f"see ddprobe playbook show {playbook.name}")
    return values


def _impossible(playbook: Playbook, values: Mapping[str, Any]) -> list[str]:
    """What a probe could never be asked with these vars."""
    scope = Scope(vars=values)
    found: list[str] = []
    for step in playbook.steps:
        kind = probes.load(step.probe)
        settings = {setting.name: setting for setting in probes.settings(kind)}
        given: dict[str, Any] = {}
        for name, value in step.given:
            try:
                given[name] = kinds.as_setting(settings[name], resolve(value, scope))
            except Unanswered:
                continue
            except ValueError as error:
                found.append(f"{step.id}: {name} {error}")
        told = [(f"{name}: " if name else "") + text for name, text in kind.mistakes(given)]
        if not told and len(given) == len(step.given):
            try:
                kind(**given)
            except UsageError as error:
                told.append(f"{error.message}{': ' if error.advice else ''}{error.advice}")
        found += [f"{step.id}: {text}" for text in told]
    return list(dict.fromkeys(found))
