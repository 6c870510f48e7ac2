"""The life of an analysis: open what was named, recognise it, judge all of it together, write the report."""

from __future__ import annotations

import dataclasses
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from ddprobe import __version__, evidence, opening, rejudging, runner, store
from ddprobe.errors import UsageError
from ddprobe.facts import EvidenceFile, Rejudged
from ddprobe.facts.files import AGAIN, FILES
from ddprobe.interrupts import Interrupts
from ddprobe.model import (
    COLLECTED,
    Artefact,
    Cite,
    Finding,
    Host,
    HostRecord,
    Hypothesis,
    Outcome,
    Progress,
    Report,
    StepRecord,
    Verdict,
)
from ddprobe.redact import Redactor
from ddprobe.rejudging import CHANGED
from ddprobe.store import ReportWriter

HOST = COLLECTED
"""What stands in place of a host's name where files are judged."""
NAME = "analyse"


def analyse(paths: Sequence[str], writer: ReportWriter, progress: Progress) -> Report:
    """The report on everything under these paths. Verdicts are never none: abstaining is one.

    Raises `UsageError` when a path is not there; call `opening.check` before there is a folder to write.
    """
    started = time.time()
    cancelled = threading.Event()
    redactor = Redactor()
    with (
        Interrupts(cancelled),
        runner.clean_log(redactor),
        tempfile.TemporaryDirectory(prefix="ddprobe-") as scratch,
    ):
        writer.plan((Host(name=HOST),), ())
        work = _Analysis(writer, redactor, progress, cancelled)
        for opened in opening.Opener(Path(scratch), work.say, cancelled, writer.folder.parent).all(paths):
            work.take(opened)
            if cancelled.is_set():
                break
        progress(HOST, "judging")
        report = dataclasses.replace(
            work.report(), name=NAME, version=__version__, started=started, interrupted=cancelled.is_set()
        )
        report = dataclasses.replace(
            report, seconds=time.time() - started, redactions=redactor.count + report.redactions
        )
        report = runner.with_trouble(runner.masked_report(report, redactor), writer.trouble)
        progress(HOST, "")
        writer.finish(report, redactor.known)
        return runner.with_trouble(report, writer.trouble)


class _Analysis:
    """What was read so far."""

    def __init__(
        self, writer: ReportWriter, redactor: Redactor, progress: Progress, cancelled: threading.Event
    ) -> None:
        self._writer = writer
        self._redactor = redactor
        self._progress = progress
        self._cancelled = cancelled
        self._files: list[tuple[StepRecord, evidence.Reading | None]] = []
        self._old: list[Report] = []
        self._names: set[str] = set()
        self._seen: dict[str, str] = {}

    def say(self, now: str) -> None:
        self._progress(HOST, self._redactor.prose(now))

    def take(self, opened: opening.Opened) -> None:
        """Read one thing that was opened."""
        if isinstance(opened, opening.OldReport):
            try:
                self._old.append(self._rejudged(opened))
            except UsageError as error:
                self._closed(opened.name, error.message)
        elif isinstance(opened, opening.Closed):
            self._closed(opened.name, opened.why, lost=opened.lost)
        else:
            try:
                self._read(opened)
            except OSError as error:
                self._closed(opened.name, error.strerror or str(error))

    # --- files -------------------------------------------------------------------------------------------

    def _read(self, taken: opening.Taken) -> None:
        name = self._unique(self._redactor.prose(taken.name))
        self.say(f"reading {taken.name}")
        taken = dataclasses.replace(taken, name=name)
        content = opening.Content(taken, self._redactor.data, self.say, self._cancelled)
        if content.document is None:
            file = EvidenceFile(name=name, size=content.size, sha256=content.sha256, kept=False)
            unread = dataclasses.replace(file, trouble=content.trouble)
            self._files.append((_record(name, unread, status="done"), None))
            return
        if self._seen_before(name, content):
            return
        reading = evidence.recognise(content.document, self._redactor.data)
        if content.kept is None and self._seen_before(name, content):
            return
        self._seen[content.sha256] = name
        kept = content.kept if content.kept is not None else reading.rest
        artefact = self._writer.file(
            HOST,
            name,
            kept if kept is not None else b"",
            about=f"file {self._redactor.prose(taken.name)}",
            size=content.size,
            cut=content.kept is None,
        )
        troubles = tuple(filter(None, (content.trouble, *reading.troubles)))
        file = EvidenceFile(
            name=name,
            size=content.size,
            sha256=content.sha256,
            recognised=tuple(dict.fromkeys(each.what for each in reading.found)),
            kept=content.kept is not None,
            trouble="; ".join(troubles),
            source=(Cite(artefact.files[0][1]),),
        )
        paths = rejudging.paths_of(reading, artefact.files[0][1])
        facts = tuple(rejudging.placed(fact, paths) for each in reading.found for fact in each.facts)
        record = dataclasses.replace(_record(name, file, artefact, troubles), facts=(file, *facts))
        self._files.append((record, reading))

    def _seen_before(self, name: str, content: opening.Content) -> bool:
        """Whether the same bytes came under another name: they count once."""
        if not content.sha256 or content.sha256 not in self._seen:
            return False
        other = self._seen[content.sha256]
        file = EvidenceFile(
            name=name,
            size=content.size,
            sha256=content.sha256,
            recognised=(f"the same bytes as {other}: counted once",),
            kept=False,
            same_as=other,
        )
        self._files.append((_record(name, file), None))
        return True

    def _closed(self, name: str, why: str, *, lost: bool = True) -> None:
        name = self._unique(self._redactor.prose(name))
        why = self._redactor.prose(why)
        file = EvidenceFile(name=name, size=0, kept=False, trouble=why)
        self._files.append((_record(name, file, troubles=(why,) if lost else ()), None))

    def _unique(self, name: str) -> str:
        unique, number = name, 1
        while unique in self._names:
            number += 1
            unique = f"{name} ({number})"
        self._names.add(unique)
        return unique

    # --- old reports -------------------------------------------------------------------------------------

    def _rejudged(self, opened: opening.OldReport) -> Report:
        self.say(f"judging {opened.name} again")
        kept = store.kept(opened.folder)
        then = kept.report
        now = rejudging.rejudge(opened.folder, kept)
        reasons = tuple(finding.summary for finding in rejudging.damaged(kept))
        taken = {host.name for report in self._old for host in report.hosts}
        told: list[StepRecord] = []
        changed: list[Finding] = []
        for host in now.hosts:
            fact = rejudging.compared(then, now, opened.name, host.name)
            told.append(
                StepRecord(
                    id=f"{opened.name} again",
                    probe=AGAIN,
                    host=host.name,
                    status="incomplete" if reasons else "done",
                    reasons=reasons,
                    facts=(fact,),
                )
            )
            if not fact.same:
                changed.append(_changed(fact, host.name))
        for step in now.steps:
            for artefact in step.artefacts:
                if artefact.files and not any(path in kept.lost for path in store.paths_of(artefact)):
                    self._writer.adopt(
                        step.host, step.id, artefact, lambda path: self._old_bytes(opened.folder, path)
                    )
        if not now.verdicts:
            facts = [fact for step in now.steps for fact in step.facts]
            only = now.hosts[0].name if len(now.hosts) == 1 else ""
            known = store.known_host(opened.folder, only) if only else Host(name="")
            ruled, ledger = rejudging.ruled(known, facts, now.findings)
            now = dataclasses.replace(now, verdicts=ruled, hypotheses=ledger)
        now = dataclasses.replace(now, steps=(*now.steps, *told), findings=(*now.findings, *changed))
        return _renamed(now, taken, opened.name)

    def _old_bytes(self, folder: Path, path: str) -> bytes:
        try:
            return self._redactor.data(store.read(folder, path))
        except (OSError, ValueError):
            return b""

    # --- together ----------------------------------------------------------------------------------------

    def report(self) -> Report:
        """Everything judged. The files are one case; each host of an old report is its own."""
        hosts = [host for report in self._old for host in report.hosts]
        steps = [step for report in self._old for step in report.steps]
        findings = [finding for report in self._old for finding in report.findings]
        concluded = [verdict for report in self._old for verdict in report.verdicts]
        hypotheses = [one for report in self._old for one in report.hypotheses]
        if self._files or not self._old:
            name = HOST if HOST not in {host.name for host in hosts} else f"{HOST} (given now)"
            hosts.append(HostRecord(name=name))
            records, found, ruled, ledger = self._judged(name)
            hypotheses += ledger
            steps += records
            findings += found
            abstains = all(verdict.outcome is Outcome.UNKNOWN for verdict in ruled)
            concluded = [*concluded, *ruled] if abstains else [*ruled, *concluded]
        return Report(
            name=NAME,
            version=__version__,
            started=0.0,
            lab=any(report.lab for report in self._old),
            hosts=tuple(hosts),
            steps=tuple(steps),
            findings=tuple(findings),
            verdicts=tuple(concluded),
            hypotheses=tuple(hypotheses),
        )

    def _judged(
        self, host: str
    ) -> tuple[list[StepRecord], list[Finding], tuple[Verdict, ...], tuple[Hypothesis, ...]]:
        ordered = evidence.ordered(reading for _, reading in self._files if reading is not None)
        order = {id(reading): number for number, reading in enumerate(ordered, 1)}
        paths: dict[str, str] = {}
        records = []
        for record, reading in self._files:
            if reading is not None:
                paths |= rejudging.paths_of(reading, record.artefacts[0].files[0][1])
                file = record.facts[0]
                assert isinstance(file, EvidenceFile)
                placed = dataclasses.replace(file, order=order[id(reading)])
                record = dataclasses.replace(record, facts=(placed, *record.facts[1:]))
            records.append(dataclasses.replace(record, host=host))
        gaps = [
            Finding(
                id="unanswered",
                outcome=Outcome.UNKNOWN,
                subject=record.id,
                summary=reason,
                host=host,
                step=record.id,
            )
            for record in records
            for reason in record.reasons
        ]
        facts, found = rejudging.judge_files(ordered, host, paths)
        found = gaps + found
        files = rejudging.files_of(records)
        return records, found, *rejudging.ruled(Host(name=host), facts, found, files=files)


def _record(
    name: str,
    file: EvidenceFile,
    artefact: Artefact | None = None,
    troubles: Sequence[str] = (),
    status: str = "",
) -> StepRecord:
    return StepRecord(
        id=name,
        probe=FILES,
        host=HOST,
        status=status or ("incomplete" if troubles else "done"),
        reasons=tuple(troubles),
        artefacts=() if artefact is None else (artefact,),
        facts=(file,),
    )


def _changed(fact: Rejudged, host: str) -> Finding:
    counted = [
        f"{len(names)} {word}"
        for names, word in ((fact.added, "added"), (fact.removed, "gone"), (fact.changed, "changed"))
        if names
    ]
    since = f"ddprobe {fact.version or 'unknown'} wrote it, {fact.version_now} judged it again"
    return Finding(
        id=CHANGED,
        outcome=Outcome.INFO,
        subject=fact.report,
        summary=f"{since}: {', '.join(counted) or 'the same findings in another order'}",
        host=host,
    )


def _renamed(report: Report, taken: set[str], name: str) -> Report:
    """The report, its hosts told apart from those of another that have the same names."""
    new = {host.name: f"{host.name} ({name})" for host in report.hosts if host.name in taken}
    if not new:
        return report
    return dataclasses.replace(
        report,
        hosts=tuple(dataclasses.replace(h, name=new.get(h.name, h.name)) for h in report.hosts),
        steps=tuple(dataclasses.replace(s, host=new.get(s.host, s.host)) for s in report.steps),
        findings=tuple(dataclasses.replace(f, host=new.get(f.host, f.host)) for f in report.findings),
        verdicts=tuple(dataclasses.replace(v, host=new.get(v.host, v.host)) for v in report.verdicts),
        hypotheses=tuple(dataclasses.replace(h, host=new.get(h.host, h.host)) for h in report.hypotheses),
    )
