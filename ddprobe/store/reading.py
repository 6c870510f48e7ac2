"""A report folder read back: whole, or of a killed run what its events tell."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ddprobe import reportjson
from ddprobe.errors import UsageError
from ddprobe.model import (
    Artefact,
    Chunk,
    Command,
    CommandResult,
    Evidence,
    Finding,
    Glob,
    Host,
    HostRecord,
    HttpRequest,
    HttpResult,
    Outcome,
    Report,
    Result,
    StepRecord,
)
from ddprobe.store.files import EVENTS, NOT_REACHED, REPORT


def load(folder: Path) -> Report:
    """The report of a folder, or of a killed run what its events tell. Raises `UsageError` when there is none."""
    if folder.is_file():
        folder = folder.parent
    broken: UsageError | None = None
    try:
        return reportjson.to_report(json.loads((folder / REPORT).read_bytes()))
    except FileNotFoundError:
        pass
    except reportjson.NotAReport as error:
        broken = error
    except (OSError, ValueError, RecursionError) as error:
        broken = UsageError(f"cannot read {folder / REPORT}: {error}")
    try:
        return _from_events(folder / EVENTS)
    except FileNotFoundError:
        raise broken or UsageError(
            f"there is no report in {folder}", f"a report's folder holds {REPORT} or {EVENTS}"
        ) from None
    except OSError as error:
        raise UsageError(f"cannot read {folder / EVENTS}: {error.strerror or error}") from None


def _from_events(path: Path) -> Report:
    """What a run told while it went on. A half last line, and events of later versions, are skipped."""
    report = Report(name=path.parent.name, version="", started=0.0, interrupted=True)
    hosts: dict[str, HostRecord] = {}
    steps: dict[tuple[str, str], StepRecord] = {}
    planned: dict[str, StepRecord] = {}
    for event in _events(path):
        kind = event.get("event")
        try:
            if kind == "start":
                started = reportjson.decode(Report, event)
                report = replace(started, interrupted=True)
            elif kind == "plan":
                for name in (str(host["name"]) for host in event["hosts"]):
                    hosts[name] = HostRecord(name=name, error=NOT_REACHED)
                planned = {one.id: one for one in (reportjson.decode(StepRecord, s) for s in event["steps"])}
            elif kind == "answer":
                host, step = str(event["host"]), str(event["step"])
                artefact = reportjson.decode(Artefact, event["artefact"])
                begun = steps.get((host, step)) or _unfinished(host, step, artefact.started, planned)
                if host not in hosts or hosts[host].error == NOT_REACHED:
                    hosts[host] = HostRecord(name=host)
                steps[host, step] = replace(begun, artefacts=(*begun.artefacts, artefact))
            elif kind == "step":
                record = reportjson.decode(StepRecord, event["record"])
                steps[record.host, record.id] = record
                found = tuple(reportjson.decode(Finding, finding) for finding in event["findings"])
                report = replace(report, findings=report.findings + found)
            elif kind == "host":
                ended = reportjson.decode(HostRecord, event["record"])
                hosts[ended.name] = ended
            elif kind == "finish":
                report = replace(
                    report,
                    seconds=float(event["seconds"]),
                    interrupted=bool(event["interrupted"]),
                    redactions=int(event["redactions"]),
                )
        except (reportjson.NotAReport, KeyError, TypeError, ValueError):
            continue
    for host, _ in steps:
        hosts.setdefault(host, HostRecord(name=host))
    for host in hosts:
        for planned_step in planned.values():
            never = replace(planned_step, host=host, reasons=("the run ended before it",))
            steps.setdefault((host, planned_step.id), never)
    return replace(report, hosts=tuple(hosts.values()), steps=tuple(steps.values()))


def _unfinished(host: str, step: str, started: float, planned: Mapping[str, StepRecord]) -> StepRecord:
    return replace(
        planned.get(step, StepRecord(id=step, probe="", host=host, status="")),
        host=host,
        status="interrupted",
        reasons=("the run ended before the step did",),
        started=started,
    )


def _events(path: Path) -> Iterator[dict[str, Any]]:
    with path.open("rb") as file:
        for line in file:
            with contextlib.suppress(ValueError, RecursionError):
                event = json.loads(line)
                if isinstance(event, dict):
                    yield event


def evidence(folder: Path, host: str, step: str) -> Evidence:
    """The transcript of a step on a host, from its files: what `interpret` saw. Raises `UsageError`.

    Of what was sent on stdin or in a body, only the length is kept.
    """
    record = next((s for s in load(folder).steps if (s.host, s.id) == (host, step)), None)
    if record is None:
        raise UsageError(f"there is no step {step!r} of {host!r} in {folder}")
    try:
        return Evidence(
            known_host(folder, host), tuple(_result(folder, artefact) for artefact in record.artefacts)
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"cannot read the evidence of {step!r} of {host!r} in {folder}: {error}") from None


def known_host(folder: Path, name: str) -> Host:
    """The host as the run was told of it."""
    for event in _events(folder / EVENTS):
        for host in event.get("hosts", ()) if event.get("event") == "plan" else ():
            if host.get("name") == name:
                return reportjson.decode(Host, host)
    return Host(name=name)


def _result(folder: Path, artefact: Artefact) -> Result:
    files = {part: inside(folder, path).read_bytes() for part, path in artefact.files}
    about = inside(folder, artefact.files[0][1].rpartition(".")[0] + ".json").read_bytes()
    asked = json.loads(about)["asked"]
    road: dict[str, Any] = {
        "started": artefact.started,
        "seconds": artefact.seconds,
        "truncated": artefact.truncated,
        "timed_out": artefact.timed_out,
        "failure": str(asked["failure"]),
    }
    if artefact.kind == "command":
        argv = tuple(Glob(word["glob"]) if isinstance(word, dict) else word for word in asked["argv"])
        command = reportjson.decode(Command, _without(asked, "stdin") | {"argv": []})
        return CommandResult(
            question=replace(command, argv=argv),
            exit_code=artefact.exit_code,
            stdout=files.get("stdout", b""),
            stderr=files.get("stderr", b""),
            stderr_truncated=bool(asked["stderr_truncated"]),
            **road,
        )
    return HttpResult(
        question=replace(
            reportjson.decode(HttpRequest, _without(asked, "body")), body=files.get("request", b"")
        ),
        status=artefact.status,
        headers=tuple((name, value) for name, value in asked["answer_headers"]),
        body=files.get("body", b""),
        chunks=tuple(Chunk(at, size) for at, size in asked["chunks"]),
        via=artefact.via,
        **road,
    )


def _without(asked: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in asked.items() if key != name}


def inside(folder: Path, path: str) -> Path:
    """A file of the report; a report that somebody sent may name others."""
    found = (folder / path).resolve()
    if not found.is_relative_to(folder.resolve()):
        raise ValueError(f"{path!r} is outside of the report")
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSummary:
    """A report among others."""

    folder: Path
    name: str
    started: float
    seconds: float = 0.0
    hosts: tuple[str, ...] = ()
    steps: int = 0
    outcome: Outcome | None = None
    """None when the report cannot be read."""
    word: str = ""
    """How the run ended, in the one word that the views use."""
    verdicts: tuple[str, ...] = ()
    """Their names, as they are ranked."""
    interrupted: bool = False
    lab: bool = False
    trouble: str = ""
    """Why it cannot be read."""


def list_reports(reports_dir: Path) -> tuple[ReportSummary, ...]:
    """Every report of a folder, newest first. One that cannot be read is listed with its trouble."""
    if not reports_dir.is_dir():
        return ()
    folders = [p for p in reports_dir.iterdir() if (p / EVENTS).is_file() or (p / REPORT).is_file()]
    summaries = [_summary(folder) for folder in folders]
    return tuple(sorted(summaries, key=lambda summary: (summary.started, summary.folder.name), reverse=True))


def _summary(folder: Path) -> ReportSummary:
    from ddprobe import render

    try:
        report = load(folder)
    except UsageError as error:
        return ReportSummary(folder=folder, name=folder.name, started=0.0, trouble=error.message)
    return ReportSummary(
        folder=folder,
        name=report.name,
        started=report.started,
        seconds=report.seconds,
        hosts=tuple(host.name for host in report.hosts),
        steps=len(report.steps),
        outcome=report.outcome,
        word=render.verdict_word(report),
        verdicts=tuple(verdict.name for verdict in report.verdicts),
        interrupted=report.interrupted,
        lab=report.lab,
    )
