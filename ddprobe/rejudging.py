"""An old report judged again by this version of ddprobe: from its evidence where that is whole, else from its facts."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Sequence
from pathlib import Path

from ddprobe import __version__, evidence, reportjson, runner, store
from ddprobe.errors import DdprobeError
from ddprobe.evidence.document import Found, of_bytes
from ddprobe.facts import EvidenceFile, Rejudged
from ddprobe.facts.files import AGAIN, FILES
from ddprobe.model import Fact, Finding, Gap, Host, Hypothesis, Report, Step, StepRecord, Verdict

CHANGED = "analyse.changed"


def rejudge(folder: Path) -> Report:
    """The report of this folder with what its evidence says today. Raises `UsageError` when there is none."""
    report = store.load(folder)
    steps: list[StepRecord] = []
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in report.findings:
        if finding.id != CHANGED:
            groups.setdefault((finding.host, finding.step), []).append(finding)
    told: dict[tuple[str, str], list[Finding]] = {}
    for step in report.steps:
        if step.probe == AGAIN:
            continue
        key = step.host, step.id
        again = None if step.probe == FILES else _again(folder, report, step, groups.get(key, []))
        record, told[key] = again or (step, groups.get(key, []))
        steps.append(record)
    # What belongs to no step (files are judged together) comes after the steps, as it was written.
    for key, found in groups.items():
        told.setdefault(key, found)
    concluded: list[Verdict] = []
    hypotheses: list[Hypothesis] = []
    for host in report.hosts:
        mine = [step for step in steps if step.host == host.name]
        known = store.known_host(folder, host.name)
        files = any(step.probe == FILES for step in mine)
        facts = tuple(fact for step in mine for fact in step.facts)
        if files:
            facts, told[host.name, ""] = _files_again(folder, host.name, mine)
        findings = [f for found in told.values() for f in found if f.host == host.name]
        verdicts_now, ledger = ruled(known, facts, findings, collected=files)
        concluded += verdicts_now
        hypotheses += ledger
    return dataclasses.replace(
        report,
        version=__version__,
        steps=tuple(steps),
        findings=tuple(finding for found in told.values() for finding in found),
        verdicts=tuple(concluded),
        hypotheses=tuple(hypotheses),
    )


def ruled(
    host: Host,
    facts: Sequence[Fact],
    findings: Sequence[Finding],
    *,
    collected: bool = True,
) -> tuple[tuple[Verdict, ...], tuple[Hypothesis, ...]]:
    """The verdicts on one host, and the ledger of its hypotheses."""
    found = runner.conclude(host, facts, findings, collected=collected)
    step = StepRecord(id="", probe="", host=host.name, status="done", facts=tuple(facts))
    report = Report(name="", version="", started=0.0, steps=(step,), findings=tuple(findings), verdicts=found)
    return found, runner.with_hypotheses(report, {host.name: host.gpu_bandwidth}).hypotheses


def _again(
    folder: Path, report: Report, step: StepRecord, stored: Sequence[Finding]
) -> tuple[StepRecord, list[Finding]] | None:
    """The step and its findings from its evidence; None where there is none, or this version has no such probe."""
    if not step.artefacts or step.status == "not_run":
        return None
    try:
        transcript = store.evidence(folder, step.host, step.id)
        probe = Step(step.id, reportjson.probe_of(step))
    except DdprobeError:
        return None
    path_of = functools.partial(runner.path_in, step)
    _, found = runner.judge(probe, transcript, (), path_of)
    # What broke off the conversation is in no transcript: it is taken from what was told then.
    known = {(finding.subject, finding.summary) for finding in found}
    keys = {kept.files[0][1]: kept.key for kept in step.artefacts if kept.files}
    broken = [
        Gap(
            f.subject,
            f.summary,
            tuple(dataclasses.replace(c, artefact=keys.get(c.artefact, c.artefact)) for c in f.cites),
        )
        for f in stored
        if f.id == "unanswered" and (f.subject, f.summary) not in known
    ]
    if report.version != __version__:
        # What a later version reads, though an earlier one could not, is no gap any more.
        broken = [
            gap
            for gap in broken
            if gap.subject == step.id
            or not (transcript.has(gap.subject) and transcript.result(gap.subject).whole)
        ]
    record, found = runner.judge(probe, transcript, broken, path_of)
    ended = step.status if step.status == "interrupted" else record.status
    reasons = step.reasons if step.status == "interrupted" else record.reasons
    return dataclasses.replace(step, facts=record.facts, status=ended, reasons=reasons), found


# --- files that were given ---------------------------------------------------------------------------------


def _files_again(
    folder: Path, host: str, steps: Sequence[StepRecord]
) -> tuple[tuple[Fact, ...], list[Finding]]:
    readings = []
    for step in steps:
        file = next((fact for fact in step.facts if isinstance(fact, EvidenceFile)), None)
        if file is None:
            continue
        others = tuple(fact for fact in step.facts if fact is not file)
        reading = evidence.Reading(of_bytes(file.name, b""), (Found("", others),))
        if file.kept and step.artefacts:
            try:
                data = store.inside(folder, step.artefacts[0].files[0][1]).read_bytes()
            except (OSError, ValueError):
                pass  # a folder that lost files: what was found in them is still there
            else:
                reading = evidence.recognise(of_bytes(file.name, data))
        readings.append((file.order, reading, step))
    ordered = sorted(readings, key=lambda each: each[0])
    paths: dict[str, str] = {}
    for _, reading, step in ordered:
        paths |= paths_of(reading, store.artefact_path(step.artefacts, reading.document.key))
    return judge_files([reading for _, reading, _ in ordered], host, paths)


def paths_of(reading: evidence.Reading, path: str) -> dict[str, str]:
    """Where the document and its parts are kept, by key."""
    return dict.fromkeys((reading.document.key, *reading.parts), path)


def judge_files(
    readings: Iterable[evidence.Reading], host: str, paths: dict[str, str]
) -> tuple[tuple[Fact, ...], list[Finding]]:
    """What documents that belong together say, and what every lint finds in it; they are taken in this order."""
    from ddprobe import lints

    facts = tuple(placed(fact, paths) for fact in evidence.facts(readings))
    found = lints.judge(facts)
    return facts, [dataclasses.replace(finding, host=host) for finding in found]


def placed(fact: Fact, paths: dict[str, str]) -> Fact:
    """The fact, citing files of the report."""
    cites = tuple(dataclasses.replace(c, artefact=paths.get(c.artefact, c.artefact)) for c in fact.source)
    return dataclasses.replace(fact, source=cites)


# --- what changed ------------------------------------------------------------------------------------------


def compared(then: Report, now: Report, folder: str, host: str) -> Rejudged:
    """What is told of a host today, against what the report says itself."""
    before = _words(then, host)
    after = _words(now, host)
    same = [f for f in then.findings if f.host == host and f.id != CHANGED] == [
        f for f in now.findings if f.host == host
    ] and [v for v in then.verdicts if v.host == host] == [v for v in now.verdicts if v.host == host]
    both = before.keys() & after.keys()
    return Rejudged(
        report=folder,
        version=then.version,
        version_now=now.version,
        same=same,
        added=tuple(after[key][0] for key in after if key not in before),
        removed=tuple(before[key][0] for key in before if key not in after),
        changed=tuple(
            f"{before[key][0]} → {after[key][0]}"
            if before[key][0] != after[key][0]
            else f"{after[key][0]} (in words)"
            for key in after
            if key in both and before[key] != after[key]
        ),
    )


def _words(report: Report, host: str) -> dict[tuple[str, ...], tuple[str, object]]:
    """Everything that is judged, by what it is about: in words, and whole. The second of two alike is told apart."""
    told: dict[tuple[str, ...], tuple[str, object]] = {}
    for finding in report.findings:
        if finding.host != host or finding.id == CHANGED:
            continue
        key: tuple[str, ...] = ("finding", finding.step, finding.id, finding.subject)
        while key in told:
            key = (*key, "again")
        told[key] = (f"{finding.id} {finding.outcome.label}: {finding.subject}", finding)
    for verdict in report.verdicts:
        if verdict.host == host:
            name = f"{verdict.name} ({verdict.kind})" if verdict.kind else verdict.name
            told["verdict", verdict.name] = (f"verdict {name}, {verdict.confidence}", verdict)
    return told
