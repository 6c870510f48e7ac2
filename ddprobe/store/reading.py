"""A report folder read back: whole, or of a killed run what its events tell."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ddprobe import plainfile, reportjson
from ddprobe.errors import UsageError
from ddprobe.facts import EvidenceFile
from ddprobe.facts.files import FILES
from ddprobe.model import (
    Artefact,
    Chunk,
    Cite,
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
    PlaybookRecord,
    Report,
    Result,
    StepRecord,
)
from ddprobe.store.files import EVENTS, EVENTS_SCHEMA, MAX_FILE, NOT_REACHED, REPORT, paths_of, read

BROKEN_OFF = "the run ended before the step did"


def load(folder: Path) -> Report:
    """The report of a folder, or of a killed run what its events tell. Raises `UsageError` when there is none."""
    if folder.is_file():
        folder = folder.parent
    broken: UsageError | None = None
    try:
        return of_json(folder)
    except FileNotFoundError:
        pass
    except UsageError as error:
        broken = error
    try:
        return of_events(folder).report
    except FileNotFoundError:
        raise broken or UsageError(
            f"there is no report in {folder}", f"a report's folder holds {REPORT} or {EVENTS}"
        ) from None


def of_json(folder: Path) -> Report:
    """What report.json holds. Raises `FileNotFoundError`, and `UsageError` when it cannot be read."""
    try:
        return reportjson.to_report(json.loads(plainfile.read(folder / REPORT, MAX_FILE)))
    except FileNotFoundError:
        raise
    except reportjson.NotAReport:
        raise
    except OSError as error:
        raise UsageError(f"cannot read {folder / REPORT}: {plainfile.said(error)}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"cannot read {folder / REPORT}: {error}") from None


@dataclass(frozen=True, slots=True)
class Told:
    """What a run told while it went on."""

    report: Report
    schema: str = EVENTS_SCHEMA
    finished: bool = False
    """Whether the run came to its end; a killed one did not."""
    unreadable: int = 0
    """Lines that say nothing to this version; a last one without an end, which a killed run leaves, is none."""


def of_events(folder: Path) -> Told:
    """What events.jsonl holds. Raises `FileNotFoundError`, and `UsageError` when it cannot be read."""
    path = folder / EVENTS
    try:
        with plainfile.opened(path, MAX_FILE) as file:
            last = file.seek(0, 2) and file.seek(-1, 2)
            torn = bool(last) and file.read(1) != b"\n"
        return _from_events(path, torn=torn)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UsageError(f"cannot read {path}: {plainfile.said(error)}") from None


def _from_events(path: Path, *, torn: bool) -> Told:
    """A half last line, and events of later versions, are skipped."""
    report = Report(name=path.parent.name, version="", started=0.0, interrupted=True)
    schema, unreadable, broken, finished, last = EVENTS_SCHEMA, 0, False, False, 0.0
    hosts: dict[str, HostRecord] = {}
    steps: dict[tuple[str, str], StepRecord] = {}
    planned: dict[str, StepRecord] = {}
    for event in _lines(path):
        broken = event is None
        unreadable += broken
        if event is None:
            continue
        kind = event.get("event")
        with contextlib.suppress(ValueError, TypeError, OverflowError):
            last = max(last, reportjson.since_epoch(event.get("at")))
        try:
            if kind == "start":
                schema = str(event.get("schema", EVENTS_SCHEMA))
                report = replace(reportjson.decode(Report, event), interrupted=True)
            elif kind == "plan":
                for name in (str(host["name"]) for host in event["hosts"]):
                    hosts[name] = HostRecord(name=name, error=NOT_REACHED)
                planned = {one.id: one for one in (reportjson.decode(StepRecord, s) for s in event["steps"])}
            elif kind == "playbook":
                report = replace(report, playbook=reportjson.decode(PlaybookRecord, event["record"]))
            elif kind == "begin":
                begins = reportjson.decode(StepRecord, event["record"])
                steps[begins.host, begins.id] = _broken_off(begins)
                hosts[begins.host] = _reached(hosts, begins.host)
            elif kind == "answer":
                host, step = str(event["host"]), str(event["step"])
                artefact = reportjson.decode(Artefact, event["artefact"])
                begun = steps.get((host, step)) or _unfinished(host, step, artefact, planned)
                hosts[host] = _reached(hosts, host)
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
                finished = True
                report = replace(
                    report,
                    seconds=float(event["seconds"]),
                    interrupted=bool(event["interrupted"]),
                    redactions=int(event["redactions"]),
                )
        except (reportjson.NotAReport, KeyError, TypeError, ValueError, AttributeError):
            unreadable += 1
    for host, _ in steps:
        hosts.setdefault(host, HostRecord(name=host))
    for host in hosts:
        for planned_step in planned.values():
            never = replace(planned_step, host=host, reasons=("the run ended before it",))
            steps.setdefault((host, planned_step.id), never)
    if not finished:
        report = replace(report, seconds=max(0.0, last - report.started) if report.started else 0.0)
        steps = {key: _ended_at(step, last) for key, step in steps.items()}
    report = replace(
        report,
        hosts=tuple(hosts.values()),
        steps=tuple(steps.values()),
        findings=(*report.findings, *(_unanswered(step) for step in steps.values() if _is_broken_off(step))),
    )
    if planned:
        report = _in_order(report, tuple(planned))
    return Told(report, schema, finished, unreadable - (torn and broken))


def _in_order(report: Report, planned: Sequence[str]) -> Report:
    """Steps and findings as a whole run gives them: side by side, steps end in any order."""
    hosts = {host.name: place for place, host in enumerate(report.hosts)}
    places = {step: place for place, step in enumerate(planned)}

    def place(host: str, step: str) -> tuple[int, int]:
        return hosts.get(host, len(hosts)), places.get(step, len(places))

    return replace(
        report,
        steps=tuple(sorted(report.steps, key=lambda step: place(step.host, step.id))),
        findings=tuple(sorted(report.findings, key=lambda finding: place(finding.host, finding.step))),
    )


def _unfinished(host: str, step: str, first: Artefact, planned: Mapping[str, StepRecord]) -> StepRecord:
    if first.kind == "file":
        return _file(host, step, first)
    record = planned.get(step, StepRecord(id=step, probe="", host=host, status=""))
    return _broken_off(replace(record, host=host, started=first.started))


def _broken_off(begun: StepRecord) -> StepRecord:
    """A step under way, as it stands when nothing more is told of it."""
    return replace(begun, status="interrupted", reasons=(f"{begun.id}: {BROKEN_OFF}",))


def _is_broken_off(step: StepRecord) -> bool:
    return step.status == "interrupted" and step.reasons == (f"{step.id}: {BROKEN_OFF}",)


def _ended_at(step: StepRecord, last: float) -> StepRecord:
    """A step that was broken off, with the time that it took until the run's last sign of life."""
    if not (_is_broken_off(step) and step.started):
        return step
    return replace(step, seconds=max(0.0, last - step.started))


def _unanswered(step: StepRecord) -> Finding:
    """What Ctrl-C leaves of a step under way, too: it got no whole answer."""
    return Finding(
        id="unanswered",
        outcome=Outcome.UNKNOWN,
        subject=step.id,
        summary=BROKEN_OFF,
        host=step.host,
        step=step.id,
    )


def _reached(hosts: Mapping[str, HostRecord], name: str) -> HostRecord:
    """The host's record as far as it is told; one of which something came was reached."""
    known = hosts.get(name, HostRecord(name=name))
    return HostRecord(name=name) if known.error == NOT_REACHED else known


def _file(host: str, step: str, given: Artefact) -> StepRecord:
    """A file that was given: all that the events tell of it. What it was recognised as is found again."""
    cites = tuple(Cite(path) for _, path in given.files)
    streamed = "it was read as it streamed by, and what was found in it is not known any more"
    trouble = streamed if given.truncated else ""
    file = EvidenceFile(name=step, size=given.size, kept=not given.truncated, trouble=trouble, source=cites)
    status, reasons = ("incomplete", (trouble,)) if trouble else ("done", ())
    return StepRecord(id=step, probe=FILES, host=host, status=status, reasons=reasons, facts=(file,))


def _lines(path: Path) -> Iterator[dict[str, Any] | None]:
    """Each line's event; None for a line that is none."""
    with plainfile.opened(path, MAX_FILE) as file:
        for line in file:
            event = None
            with contextlib.suppress(ValueError, RecursionError):
                event = json.loads(line)
            if line.strip():
                yield event if isinstance(event, dict) else None


def _events(path: Path) -> Iterator[dict[str, Any]]:
    return (event for event in _lines(path) if event is not None)


def evidence(folder: Path, host: str, step: str) -> Evidence:
    """The transcript of a step on a host, from its files: what `interpret` saw. Raises `UsageError`.

    Of what was sent on stdin or in a body, only the length is kept.
    """
    record = next((s for s in load(folder).steps if (s.host, s.id) == (host, step)), None)
    if record is None:
        raise UsageError(f"there is no step {step!r} of {host!r} in {folder}")
    return transcript(folder, record, {})


def transcript(folder: Path, step: StepRecord, lost: Mapping[str, str]) -> Evidence:
    """The same, of a step that is known. `lost`: files that are not as they were written, each with how: what was kept
    in one is no answer, and whoever asks for it is told so. Raises `UsageError`.
    """
    results: list[Result] = []
    try:
        for artefact in step.artefacts:
            how = next((lost[path] for path in paths_of(artefact) if path in lost), "")
            results.append(_lost(folder, artefact, how, lost) if how else _result(folder, artefact))
    except (OSError, ValueError, LookupError, TypeError, AttributeError, reportjson.NotAReport) as error:
        raise UsageError(
            f"cannot read the evidence of {step.id!r} of {step.host!r} in {folder}: {error}"
        ) from None
    return Evidence(known_host(folder, step.host), tuple(results))


def _lost(folder: Path, artefact: Artefact, how: str, lost: Mapping[str, str]) -> Result:
    """An answer that came, and is not there any more as it came."""
    failure = f"what was kept of it {how}"
    if paths_of(artefact)[-1] not in lost:
        empty = replace(artefact, truncated=False, timed_out=False, exit_code=None, status=None)
        return replace(_built(empty, _asked(folder, artefact), {}), failure=failure)
    if artefact.kind == "command":
        asked = Command(key=artefact.key, argv=(artefact.question or artefact.key,))
        return CommandResult(question=asked, started=artefact.started, failure=failure)
    request = HttpRequest(key=artefact.key, method="GET", path="/", base="")
    return HttpResult(question=request, started=artefact.started, failure=failure)


def known_host(folder: Path, name: str) -> Host:
    """The host as the run was told of it; where that is lost, its name alone."""
    with contextlib.suppress(OSError, TypeError, AttributeError, reportjson.NotAReport):
        for event in _events(folder / EVENTS):
            for host in event.get("hosts", ()) if event.get("event") == "plan" else ():
                if host.get("name") == name:
                    return reportjson.decode(Host, host)
    return Host(name=name)


def _result(folder: Path, artefact: Artefact) -> Result:
    files = {part: read(folder, path) for part, path in artefact.files}
    return _built(artefact, _asked(folder, artefact), files)


def _asked(folder: Path, artefact: Artefact) -> dict[str, Any]:
    """The question, and what else `interpret` may look at besides the bytes."""
    about = read(folder, artefact.files[0][1].rpartition(".")[0] + ".json")
    asked: dict[str, Any] = json.loads(about)["asked"]
    return asked


def _built(artefact: Artefact, asked: dict[str, Any], files: Mapping[str, bytes]) -> Result:
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
            stopped=bool(asked.get("stopped", False)),
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
