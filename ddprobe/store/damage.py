"""What a report's folder has lost since it was written, or holds in another form: against its manifest, and its answers.

report.json        as written: it is the report; else what events.jsonl tells, as far as that can be read
evidence/…         an answer that is missing or was altered is none; one that nobody tells of is a file that was given
MANIFEST.sha256    a finished run has one; without it nobody knows whether the rest is as it was written
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ddprobe import plainfile
from ddprobe.errors import UsageError
from ddprobe.facts import EvidenceFile
from ddprobe.facts.files import FILES
from ddprobe.model import COLLECTED, Artefact, Cite, HostRecord, Report, StepRecord
from ddprobe.store import reading
from ddprobe.store.files import EVENTS, EVENTS_SCHEMA, MANIFEST, PAGE, REPORT, opened, paths_of, read

DAMAGED = "report.damaged"
"""The finding that says so."""
ALTERED = "is not what was written"
GONE = "is missing"
UNLISTED = "is missing, or has no line that can be read"
BESIDE = (".stdout", ".stderr", ".body")
_LINE = re.compile(r"([0-9a-f]{64}) [ *](.+)")


@dataclass(frozen=True, slots=True)
class Damage:
    """A file of a report that is not as it was written."""

    path: str
    """Relative to the folder."""
    how: str


@dataclass(frozen=True, slots=True)
class Kept:
    """A report as far as its folder still holds it, and what the folder has lost."""

    report: Report
    damage: tuple[Damage, ...] = ()
    killed: bool = False
    """Whether the run never came to its end: the report is what its events tell."""

    @property
    def lost(self) -> dict[str, str]:
        """Paths that are not to be taken for what was written, each with how."""
        return {each.path: each.how for each in self.damage}


def kept(folder: Path) -> Kept:
    """What the folder of a report still tells. Raises `UsageError` when that is nothing."""
    folder = folder.parent if folder.is_file() else folder
    listed = _told(folder)
    report, troubles, killed = _sound(folder, _own(folder, listed, (REPORT, EVENTS)))
    if troubles:
        report = _with_untold(folder, report)
    _see_that_something_is_left(folder, report, troubles)
    troubles += _unlisted(folder, listed)
    known = {each.path for each in troubles}
    found = [each for each in damage(folder, report) if each.path not in known]
    return Kept(report, tuple(sorted((*troubles, *found), key=lambda each: each.path)), killed)


def glance(folder: Path) -> Kept:
    """The same of report.json alone, for a list of many: what the evidence has lost is not looked at."""
    listed = _told(folder)
    report, troubles, killed = _sound(folder, _own(folder, listed, (REPORT,)))
    _see_that_something_is_left(folder, report, troubles)
    return Kept(report, (*troubles, *_unlisted(folder, listed)), killed)


def _own(folder: Path, listed: Sequence[tuple[str, str]], paths: Sequence[str]) -> dict[str, str]:
    """How each of these files differs from what was written."""
    return {path: _against(folder, path, digest) for path, digest in listed if path in paths}


def _see_that_something_is_left(folder: Path, report: Report, troubles: Sequence[Damage]) -> None:
    if not report.steps and not report.hosts and troubles:
        raise UsageError(f"nothing is left of the report in {folder}: {_words(troubles)}")


def _unlisted(folder: Path, listed: Sequence[tuple[str, str]]) -> list[Damage]:
    """That a finished run has no manifest any more."""
    if listed or not os.path.lexists(folder / REPORT):
        return []
    return [Damage(MANIFEST, f"{UNLISTED}: whether the other files were altered is unknown")]


def damage(folder: Path, report: Report) -> tuple[Damage, ...]:
    """Files that are gone or were altered, by path. A killed run has no manifest: of it only what is gone is known."""
    folder = folder.parent if folder.is_file() else folder
    found: dict[str, str] = {}
    for path, digest in _told(folder):
        if path != PAGE:
            found[path] = _against(folder, path, digest)
    unlisted = f"stands in no line of {MANIFEST}" if found else ""
    for path in (path for step in report.steps for answer in step.artefacts for path in paths_of(answer)):
        if path not in found:
            found[path] = _against(folder, path, "") or unlisted
    return tuple(Damage(path, how) for path, how in sorted(found.items()) if how)


def _sound(folder: Path, own: dict[str, str]) -> tuple[Report, list[Damage], bool]:
    """The report from the file of it that is as it was written, else from the one that can be read; the troubles; and
    whether the run never came to its end.
    """
    troubles: dict[str, str] = {path: how for path, how in own.items() if how}
    reports: dict[str, Report] = {}
    killed = False
    try:
        reports[REPORT] = reading.of_json(folder)
    except FileNotFoundError:
        pass
    except UsageError as error:
        troubles[REPORT] = troubles.get(REPORT) or error.message
    if REPORT not in reports or REPORT in troubles:
        try:
            told = reading.of_events(folder)
        except FileNotFoundError:
            troubles[EVENTS] = GONE
        except UsageError as error:
            troubles[EVENTS] = error.message
        else:
            reports[EVENTS] = told.report
            killed = not told.finished and REPORT not in {*reports, *troubles}
            if told.schema != EVENTS_SCHEMA:
                troubles[EVENTS] = f"has the schema {told.schema!r}; this ddprobe reads {EVENTS_SCHEMA}"
            elif told.unreadable:
                counted = "1 line" if told.unreadable == 1 else f"{told.unreadable} lines"
                troubles.setdefault(EVENTS, f"has {counted} that cannot be read")
    empty = Report(name=folder.name, version="", started=0.0)
    sound = [reports[path] for path in (REPORT, EVENTS) if path in reports and path not in troubles]
    readable = [reports[path] for path in (REPORT, EVENTS) if path in reports]
    report = next(iter((*sound, *readable)), empty)
    return report, [Damage(path, how) for path, how in troubles.items()], killed


def _words(troubles: Sequence[Damage]) -> str:
    return "; ".join(f"{each.path} {each.how}" for each in troubles)


def _with_untold(folder: Path, report: Report) -> Report:
    """With the answers that no step tells of, as files that somebody collected."""
    steps = tuple(_loose(folder, path) for path in untold(folder, report))
    if not steps:
        return report
    others = () if any(host.name == COLLECTED for host in report.hosts) else (HostRecord(name=COLLECTED),)
    return replace(report, hosts=(*report.hosts, *others), steps=(*report.steps, *steps))


def _loose(folder: Path, path: str) -> StepRecord:
    size = 0
    with contextlib.suppress(OSError):
        size = (folder / path).stat().st_size
    answer = Artefact(key=path, question=f"file {path}", kind="file", files=(("file", path),), size=size)
    file = EvidenceFile(name=path, size=size, source=(Cite(path),))
    return StepRecord(id=path, probe=FILES, host=COLLECTED, status="done", artefacts=(answer,), facts=(file,))


def untold(folder: Path, report: Report) -> tuple[str, ...]:
    """Files of answers that no step of the report tells of, as those of one whose events were lost."""
    told = {path for step in report.steps for artefact in step.artefacts for path in paths_of(artefact)}
    root = folder / "evidence"
    there = sorted(p for p in root.rglob("*") if p.is_file() and not p.is_symlink()) if root.is_dir() else []
    paths = {path.relative_to(folder).as_posix() for path in there} - told
    return tuple(sorted(path for path in paths if not _is_about(path, paths)))


def _is_about(path: str, paths: Iterable[str]) -> bool:
    """Whether the file is our own question: its words are no evidence."""
    stem, _, kind = path.rpartition(".")
    return kind == "request" or (kind == "json" and any(stem + suffix in paths for suffix in BESIDE))


def _told(folder: Path) -> list[tuple[str, str]]:
    """(path, SHA-256) of each line of the manifest."""
    try:
        lines = read(folder, MANIFEST).decode("utf-8", "replace").splitlines()
    except (OSError, ValueError):
        return []
    return [(found[2], found[1]) for found in map(_LINE.fullmatch, lines) if found]


def _against(folder: Path, path: str, digest: str) -> str:
    """How the file differs from what was written; empty where it does not, or nobody can tell."""
    try:
        with opened(folder, path) as stream:
            if not digest:
                return ""
            return "" if hashlib.file_digest(stream, "sha256").hexdigest() == digest else ALTERED
    except (FileNotFoundError, NotADirectoryError):
        return GONE
    except OSError as error:
        return f"cannot be read: {plainfile.said(error)}"
    except ValueError:
        return "is outside of the report"
