"""A report folder being written, answer by answer."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ddprobe import __version__, reportjson
from ddprobe.errors import UsageError
from ddprobe.model import (
    Artefact,
    CommandResult,
    Finding,
    Host,
    HostRecord,
    PlaybookRecord,
    Report,
    Result,
    StepRecord,
)
from ddprobe.store.files import EVENTS, EVENTS_SCHEMA, MANIFEST, PAGE, REPORT, artefact_path, safe_name

ELSEWHERE = "choose another folder with --reports"
LAST_ANSWERS = 10.0
"""Most seconds that the end of a run waits for an answer that is just being written."""
log = logging.getLogger("ddprobe")


class ReportWriter:
    """A report folder being written. Every method may be called from any thread."""

    def __init__(self, folder: Path, name: str, lab: bool, started: float) -> None:
        self.folder = folder
        self._lock = threading.Condition()
        self._writing = 0
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
            why = error
            if isinstance(error, FileExistsError | NotADirectoryError) and reports_dir.is_file():
                why = OSError(errno.ENOTDIR, "it is a file, not a folder")
            raise UsageError(_unwritable(reports_dir, why), ELSEWHERE) from None
        if writer.trouble:
            raise UsageError(writer.trouble, ELSEWHERE)
        return writer

    def plan(self, hosts: Sequence[Host], steps: Sequence[StepRecord]) -> None:
        """Note what is going to be asked of whom, so that a killed run can tell what it did not come to."""
        self._event("plan", hosts=tuple(hosts), steps=tuple(steps))

    def playbook(self, record: PlaybookRecord) -> None:
        """Note which playbook is carried out, and with what, so that a killed run can be gone on with."""
        self._event("playbook", record=record)

    def begin(self, record: StepRecord) -> None:
        """Note that a step is under way, and what it asks with: what it has collected can be judged if it never ends."""
        self._event("begin", record=record)

    def answer(self, host: str, step: str, result: Result) -> None:
        """Keep an answer: its bytes as files, and that it came."""
        with self._lock:
            if self._events < 0:
                return  # of a host that did not let go in time
            folder = self._step_folder(host, step)
            number = self._numbers[host, step] = self._numbers.get((host, step), 0) + 1
            self._writing += 1
        try:
            self._keep(host, step, result, folder, number)
        finally:
            with self._lock:
                self._writing -= 1
                self._lock.notify_all()

    def _keep(self, host: str, step: str, result: Result, folder: str, number: int) -> None:
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

    def file(
        self, host: str, name: str, data: bytes, *, about: str, size: int, cut: bool = False
    ) -> Artefact:
        """Keep a file that was given: `evidence/<host>/NN-<name>`. `cut`: `data` is not all of its `size` bytes."""
        with self._lock:
            folder = self._folder_name("evidence", host)
            number = self._numbers[host, ""] = self._numbers.get((host, ""), 0) + 1
        path = f"{folder}/{number:02}-{safe_name(name)}"
        kept = Artefact(
            key=name, question=about, kind="file", files=(("file", path),), size=size, truncated=cut
        )
        with self._tried():
            for inside in ("evidence", folder):
                (self.folder / inside).mkdir(mode=0o700, exist_ok=True)
            self._write(path, data)
        self._event("answer", host=host, step=name, artefact=kept)
        return kept

    def adopt(self, host: str, step: str, artefact: Artefact, read: Callable[[str], bytes]) -> None:
        """Keep an answer of another report under the paths that it has there; one whose place is taken is left out."""
        stem = artefact.files[0][1].rpartition(".")[0]
        paths = [path for _, path in artefact.files] + ([] if artefact.kind == "file" else [f"{stem}.json"])
        if any((self.folder / path).exists() for path in paths):
            return
        with self._tried():
            for path in paths:
                for parent in reversed(Path(path).parents[:-1]):
                    (self.folder / parent).mkdir(mode=0o700, exist_ok=True)
                self._write(path, read(path))
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
            # What is half written now would be hashed so.
            self._lock.wait_for(lambda: not self._writing, LAST_ANSWERS)
            if number >= 0:
                os.close(number)


MAX_REQUEST = 256 * 1024
"""Bytes of a request's body that are kept. Of a longer one its SHA-256 is: seed and texts make it again."""


def _unwritable(folder: Path, error: OSError) -> str:
    """An error of the disk, in a sentence that names the folder."""
    return f"cannot write the report in {folder}: {error.strerror or error}"


def _contents(result: Result) -> dict[str, bytes]:
    if isinstance(result, CommandResult):
        return {"stdout": result.stdout, **({"stderr": result.stderr} if result.stderr else {})}
    sent = result.question.body
    return {"body": result.body, **({"request": sent} if 0 < len(sent) <= MAX_REQUEST else {})}


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
        asked["stopped"] = result.stopped
        asked["argv"] = [w if isinstance(w, str) else {"glob": w.pattern} for w in result.question.argv]
        return {**asked, "stdin": len(result.question.stdin), "stderr_truncated": result.stderr_truncated}
    return {
        **asked,
        "body": len(result.question.body),
        "body_sha256": hashlib.sha256(result.question.body).hexdigest() if result.question.body else "",
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
