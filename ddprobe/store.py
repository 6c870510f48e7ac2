"""The report folder: written as answers arrive, read back whole, also after a crash.

    <UTC time>-<name>/
    ├── events.jsonl             one JSON object a line, flushed as things happen: start, answer, step, host, finish
    ├── evidence/<host>/<step>/  NN-<key>.stdout, .stderr or .body: the bytes as they came (secrets masked), and
    │                            NN-<key>.json: the question and how it ended
    ├── report.json              everything, once the run is over
    ├── report.md
    └── MANIFEST.sha256          for `sha256sum -c`: every other file

What cannot be written (a full disk) ends no run: the rest is still tried, and `trouble` says what happened.
Folders are 0700 and files 0600. Names from hosts and probes become safe file names: no separators, no dots in
front, no two that differ in case alone.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import logging
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ddprobe import __version__, reportjson
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

EVENTS = "events.jsonl"
REPORT = "report.json"
PAGE = "report.md"
MANIFEST = "MANIFEST.sha256"
EVENTS_SCHEMA = "ddprobe-events/1"
MAX_NAME = 80
log = logging.getLogger("ddprobe")


class ReportWriter:
    """A report folder being written. Every method may be called from any thread."""

    def __init__(self, folder: Path, name: str, lab: bool, started: float) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        self._names: dict[tuple[str, str], str] = {}
        self._taken: set[str] = set()
        self._numbers: dict[tuple[str, str], int] = {}
        self._stored: dict[tuple[str, str], list[Artefact]] = {}
        self._torn = False
        self.trouble = ""
        """Why the folder lacks something of this run; empty while it does not."""
        self._events = os.open(folder / EVENTS, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        self._event("start", schema=EVENTS_SCHEMA, name=name, version=__version__, started=started, lab=lab)

    @classmethod
    def create(
        cls, reports_dir: Path, name: str, *, lab: bool = False, now: float | None = None
    ) -> ReportWriter:
        """A new folder for a run that starts now. Raises `UsageError` when it cannot be made."""
        started = time.time() if now is None else now
        stem = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(started)) + "-" + safe_name(name)
        try:
            reports_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            number = 1
            while True:
                folder = reports_dir / (stem if number == 1 else f"{stem}-{number}")
                try:
                    folder.mkdir(mode=0o700)
                    break
                except FileExistsError:
                    number += 1
            writer = cls(folder, name, lab, started)
        except OSError as error:
            in_its_place = reports_dir.exists() and not reports_dir.is_dir()
            why = OSError(errno.ENOTDIR, "it is a file, not a folder") if in_its_place else error
            raise UsageError(_unwritable(reports_dir, why), ELSEWHERE) from None
        if writer.trouble:
            raise UsageError(writer.trouble, ELSEWHERE)
        return writer

    def plan(self, hosts: Sequence[Host], steps: Sequence[StepRecord]) -> None:
        """Note what is going to be asked of whom, so that a killed run can tell what it did not come to."""
        self._event("plan", hosts=tuple(hosts), steps=tuple(steps))

    def answer(self, host: str, step: str, result: Result) -> None:
        """Keep an answer: its bytes as files, and that it came."""
        with self._lock:
            if self._events < 0:
                return  # of a host that did not let go in time
            folder = self._step_folder(host, step)
            number = self._numbers[host, step] = self._numbers.get((host, step), 0) + 1
        stem = f"{folder}/{number:02}-{safe_name(result.key)}"
        contents = _contents(result)
        files = tuple((part, f"{stem}.{part}") for part in contents)
        artefact = _artefact(result, files)
        kept = False
        with self._tried():
            for inside in ("evidence", folder.rpartition("/")[0], folder):
                (self.folder / inside).mkdir(mode=0o700, exist_ok=True)
            for part, path in files:
                self._write(path, contents[part])
            about = {**reportjson.encode(artefact), "asked": _asked(result)}
            self._write(f"{stem}.json", reportjson.text(about, indent=2).encode() + b"\n")
            kept = True
        if not kept:
            return
        with self._lock:
            self._stored.setdefault((host, step), []).append(artefact)
        self._event("answer", host=host, step=step, artefact=artefact)

    def artefact_path(self, host: str, step: str, key: str) -> str:
        """The main evidence file of the last answer under this key, relative to the folder; else the key itself."""
        return artefact_path(self._stored.get((host, step), ()), key)

    def artefacts(self, host: str, step: str) -> tuple[Artefact, ...]:
        """The answers kept so far, in order."""
        return tuple(self._stored.get((host, step), ()))

    def step(self, record: StepRecord, findings: Sequence[Finding]) -> None:
        """Note that a step is over, and what came of it."""
        self._event("step", record=record, findings=tuple(findings))

    def host(self, record: HostRecord) -> None:
        """Note that a host is done with."""
        self._event("host", record=record)

    def finish(self, report: Report, mask: Callable[[bytes], bytes] = bytes) -> None:
        """Write what only a whole run has: report.json, report.md and the manifest.

        `mask` takes out what was learned to be a secret in the meantime; it passes over every file.
        """
        from ddprobe.render import markdown

        self._event(
            "finish", seconds=report.seconds, interrupted=report.interrupted, redactions=report.redactions
        )
        self._close()
        with self._tried():
            self._sweep(mask)
        with self._tried():
            self._put(REPORT, reportjson.text(reportjson.from_report(report), indent=2).encode() + b"\n")
        with self._tried():
            self._put(PAGE, markdown.text(report).encode("utf-8", "replace"))
        with self._tried():
            self._put(MANIFEST, _manifest(self.folder))

    @contextlib.contextmanager
    def _tried(self) -> Iterator[None]:
        """Note an error of the disk, and a fault of our own in what is written: neither may end the run."""
        try:
            yield
        except OSError as error:
            self.trouble = self.trouble or _unwritable(self.folder, error)
        except Exception as error:
            log.debug("in the report", exc_info=error)
            what = (
                f"ddprobe has a bug in writing the report: {type(error).__name__}: {error}; please report it"
            )
            self.trouble = self.trouble or what

    def _step_folder(self, host: str, step: str) -> str:
        host_folder = self._folder_name("evidence", host)
        return f"{host_folder}/{self._folder_name(host_folder, step).rpartition('/')[2]}"

    def _folder_name(self, parent: str, name: str) -> str:
        """One folder for one name, also where only case or odd characters tell two names apart."""
        if (parent, name) not in self._names:
            path = plain = f"{parent}/{safe_name(name)}"
            number = 1
            while path.lower() in self._taken:
                number += 1
                path = f"{plain}-{number}"
            self._taken.add(path.lower())
            self._names[parent, name] = path
        return self._names[parent, name]

    def _write(self, path: str, data: bytes) -> None:
        """A new file, whole or not there."""
        number = os.open(self.folder / path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(number, "wb") as file:
                file.write(data)
        except OSError:
            with contextlib.suppress(OSError):
                (self.folder / path).unlink()
            raise

    def _put(self, path: str, data: bytes) -> None:
        """A file that appears at once, whole: a run killed meanwhile leaves no half of it under its name."""
        part = f"{path}.part"
        self._write(part, data)
        (self.folder / part).rename(self.folder / path)

    def _event(self, event: str, **fields: Any) -> None:
        with self._tried():
            encoded = {name: reportjson.encode(value) for name, value in fields.items()}
            if "started" in fields:
                encoded["started"] = reportjson.moment(fields["started"])
            at = reportjson.moment(time.time())
            line = reportjson.text({"event": event, "at": at, **encoded}).encode() + b"\n"
            with self._lock:
                self._append(line)

    def _append(self, line: bytes) -> None:
        """One line, beginning on a new one where the last could not be finished. After the end nothing is added."""
        if self._events < 0:
            return
        line = b"\n" + line if self._torn else line
        self._torn = True
        while line:
            line = line[os.write(self._events, line) :]
        self._torn = False

    def _sweep(self, mask: Callable[[bytes], bytes]) -> None:
        for path in (self.folder / EVENTS, *(self.folder / "evidence").rglob("*")):
            if path.is_file() and (clean := mask(data := path.read_bytes())) != data:
                self._put(path.relative_to(self.folder).as_posix(), clean)

    def _close(self) -> None:
        with self._lock, self._tried():
            number, self._events = self._events, -1
            if number >= 0:
                os.close(number)


ELSEWHERE = "choose another folder with --reports"


def _unwritable(folder: Path, error: OSError) -> str:
    """An error of the disk, in a sentence that names the folder."""
    return f"cannot write the report in {folder}: {error.strerror or error}"


def artefact_path(artefacts: Sequence[Artefact], key: str) -> str:
    """The main evidence file of the last answer under this key, relative to the folder; else the key itself."""
    return next((kept.files[0][1] for kept in reversed(artefacts) if kept.key == key), key)


_ODD = re.compile(r"[^A-Za-z0-9_.+@=-]+")


def safe_name(name: str) -> str:
    """A file name for it: plain characters, no dot in front, not long; told apart by a hash where that changed it."""
    plain = _ODD.sub("_", name).lstrip(".-") or "_"
    if plain == name and len(plain) <= MAX_NAME:
        return plain
    mark = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:6]
    return f"{plain[: MAX_NAME - 7].rstrip('.')}~{mark}"


def _contents(result: Result) -> dict[str, bytes]:
    if isinstance(result, CommandResult):
        return {"stdout": result.stdout, **({"stderr": result.stderr} if result.stderr else {})}
    return {"body": result.body}


def _artefact(result: Result, files: tuple[tuple[str, str], ...]) -> Artefact:
    kept = Artefact(
        key=result.key,
        question=str(result.question),
        kind="command" if isinstance(result, CommandResult) else "http",
        files=files,
        started=result.started,
        seconds=result.seconds,
        truncated=result.truncated,
        timed_out=result.timed_out,
        trouble=result.trouble,
    )
    if isinstance(result, CommandResult):
        return replace(kept, exit_code=result.exit_code, size=len(result.stdout))
    return replace(kept, status=result.status, size=len(result.body), via=result.via)


def _asked(result: Result) -> dict[str, Any]:
    """What `interpret` may look at besides the bytes, so that old evidence can be judged again."""
    asked: dict[str, Any] = {**reportjson.encode(result.question), "failure": result.failure}
    if isinstance(result, CommandResult):
        asked["argv"] = [w if isinstance(w, str) else {"glob": w.pattern} for w in result.question.argv]
        return {**asked, "stdin": len(result.question.stdin), "stderr_truncated": result.stderr_truncated}
    return {
        **asked,
        "body": len(result.question.body),
        "answer_headers": [list(header) for header in result.headers],
        "chunks": [[chunk.at, chunk.size] for chunk in result.chunks],
    }


def _manifest(folder: Path) -> bytes:
    lines = []
    for path in sorted(p for p in folder.rglob("*") if p.is_file() and p.name != MANIFEST):
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        lines.append(f"{digest}  {path.relative_to(folder).as_posix()}\n")
    return "".join(lines).encode()


NOT_REACHED = "was not reached before the run was interrupted"


# --- reading -----------------------------------------------------------------------------------------------


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
            _host(folder, host), tuple(_result(folder, artefact) for artefact in record.artefacts)
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"cannot read the evidence of {step!r} of {host!r} in {folder}: {error}") from None


def _host(folder: Path, name: str) -> Host:
    """The host as the run was told of it."""
    for event in _events(folder / EVENTS):
        for host in event.get("hosts", ()) if event.get("event") == "plan" else ():
            if host.get("name") == name:
                return reportjson.decode(Host, host)
    return Host(name=name)


def _result(folder: Path, artefact: Artefact) -> Result:
    files = {part: _inside(folder, path).read_bytes() for part, path in artefact.files}
    about = _inside(folder, artefact.files[0][1].rpartition(".")[0] + ".json").read_bytes()
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
        question=reportjson.decode(HttpRequest, _without(asked, "body")),
        status=artefact.status,
        headers=tuple((name, value) for name, value in asked["answer_headers"]),
        body=files.get("body", b""),
        chunks=tuple(Chunk(at, size) for at, size in asked["chunks"]),
        via=artefact.via,
        **road,
    )


def _without(asked: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in asked.items() if key != name}


def _inside(folder: Path, path: str) -> Path:
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
        interrupted=report.interrupted,
        lab=report.lab,
    )
