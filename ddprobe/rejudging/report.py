"""The life of judging a report again: its steps one by one, then host by host."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from pathlib import Path

from ddprobe import __version__, reportjson, runner, store
from ddprobe.errors import DdprobeError
from ddprobe.facts.files import AGAIN, FILES
from ddprobe.model import Finding, Gap, Host, Hypothesis, Report, Step, StepRecord, Verdict
from ddprobe.rejudging import files
from ddprobe.rejudging.comparing import CHANGED
from ddprobe.rejudging.damage import damaged, without
from ddprobe.rejudging.ruling import ruled
from ddprobe.store import DAMAGED, EVENTS, Kept


def rejudge(folder: Path, kept: Kept | None = None) -> Report:
    """The report of this folder with what its evidence says today. Raises `UsageError` when there is none.

    `kept`: what is left of it, where that was read before.
    """
    kept = kept or store.kept(folder)
    report, lost = kept.report, kept.lost
    steps: list[StepRecord] = []
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in report.findings:
        if finding.id != CHANGED and not (finding.id == DAMAGED and finding.subject in lost):
            groups.setdefault((finding.host, finding.step), []).append(finding)
    told: dict[tuple[str, str], list[Finding]] = {}
    for step in report.steps:
        if step.probe == AGAIN:
            continue
        key = step.host, step.id
        again = None if step.probe == FILES else _again(folder, report, step, groups.get(key, []), lost)
        record, told[key] = again or without(step, groups.get(key, []), lost)
        steps.append(record)
    # What belongs to no step (files are judged together) comes after the steps, as it was written.
    for key, found in groups.items():
        told.setdefault(key, found)
    concluded: list[Verdict] = []
    hypotheses: list[Hypothesis] = []
    for host in report.hosts:
        mine = [step for step in steps if step.host == host.name]
        known = Host(name=host.name) if EVENTS in lost else store.known_host(folder, host.name)
        collected = any(step.probe == FILES for step in mine)
        facts = tuple(fact for step in mine for fact in step.facts)
        if collected:
            again_read = files.read_again(folder, mine, lost)
            mine = [record for _, record in again_read]
            steps = [step for step in steps if step.host != host.name] + mine
            facts, told[host.name, ""] = files.together(again_read, host.name)
        findings = [f for found in told.values() for f in found if f.host == host.name]
        verdicts_now, ledger = ruled(known, facts, findings, collected=collected, files=files.files_of(mine))
        concluded += verdicts_now
        hypotheses += ledger
    return dataclasses.replace(
        report,
        version=__version__,
        steps=tuple(steps),
        findings=(*(finding for found in told.values() for finding in found), *damaged(kept)),
        verdicts=tuple(concluded),
        hypotheses=runner.declared(report, hypotheses),
    )


def _again(
    folder: Path, report: Report, step: StepRecord, stored: Sequence[Finding], lost: Mapping[str, str]
) -> tuple[StepRecord, list[Finding]] | None:
    """The step and its findings from its evidence; None where there is none, or this version has no such probe."""
    if not step.artefacts or step.status == "not_run":
        return None
    try:
        transcript = store.transcript(folder, step, lost)
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
