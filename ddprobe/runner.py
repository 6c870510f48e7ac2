"""The life of a run, short enough to read at once: collect, interpret, judge, for every step on every host."""

from __future__ import annotations

import dataclasses
import logging
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ddprobe import __version__, lints, probes
from ddprobe.errors import DdprobeError, HostError, Unanswered
from ddprobe.model import (
    Cite,
    Evidence,
    Fact,
    Finding,
    Gap,
    Host,
    HostRecord,
    Outcome,
    Progress,
    Report,
    Result,
    Step,
    StepRecord,
)
from ddprobe.redact import Redactor
from ddprobe.sessions.base import Session
from ddprobe.store import ReportWriter


def _silent(_host: str, _now: str) -> None:
    """Report no progress."""


Opener = Callable[[Host, Redactor, threading.Event], Session]
PARALLEL_HOSTS = 16
log = logging.getLogger("ddprobe")


def run(
    name: str,
    hosts: Sequence[Host],
    steps: Sequence[Step],
    writer: ReportWriter,
    opener: Opener,
    *,
    progress: Progress = _silent,
    lab: bool = False,
) -> Report:
    """Run the steps on the hosts side by side, and write the report as answers arrive.

    A host's trouble is data: it never ends the run of another. Ctrl-C ends what is under way on every host and
    still returns a report, with `interrupted` set.
    """
    started = time.time()
    cancelled = threading.Event()
    redactor = Redactor()
    works = [_HostRun(host, steps, writer, opener, redactor, cancelled, progress) for host in hosts]
    with ThreadPoolExecutor(max(1, min(PARALLEL_HOSTS, len(works)))) as pool:
        futures = [pool.submit(work.go) for work in works]
        try:
            for future in futures:
                future.result()
        except KeyboardInterrupt:
            cancelled.set()
            for future in futures:
                future.cancel()
    report = Report(
        name=name,
        version=__version__,
        started=started,
        seconds=time.time() - started,
        lab=lab,
        interrupted=cancelled.is_set(),
        hosts=tuple(work.record for work in works),
        steps=tuple(step for work in works for step in work.done),
        findings=tuple(finding for work in works for finding in work.findings),
        redactions=redactor.count,
    )
    writer.finish(report)
    return report


class _HostRun:
    """One host's part of a run, in one thread."""

    def __init__(
        self,
        host: Host,
        steps: Sequence[Step],
        writer: ReportWriter,
        opener: Opener,
        redactor: Redactor,
        cancelled: threading.Event,
        progress: Progress,
    ) -> None:
        self.host = host
        self.steps = steps
        self.writer = writer
        self.opener = opener
        self.redactor = redactor
        self.cancelled = cancelled
        self.progress = progress
        self.record = HostRecord(name=host.name, error="was not reached before the run was interrupted")
        self.done: list[StepRecord] = []
        self.findings: list[Finding] = []

    def go(self) -> None:
        self.progress(self.host.name, "connecting")
        try:
            session = self.opener(self.host, self.redactor, self.cancelled)
        except DdprobeError as error:
            self._lost(error, self.steps)
        else:
            try:
                self._steps(session)
            finally:
                session.close()
        self.writer.host(self.record)
        self.progress(self.host.name, "")

    def _steps(self, session: Session) -> None:
        for number, step in enumerate(self.steps):
            if self.cancelled.is_set():
                self._not_run(self.steps[number:], "interrupted")
                break
            lost = self._step(session, step)
            if lost is not None:
                self._lost(lost, self.steps[number + 1 :])
                self.record = dataclasses.replace(self.record, connection=session.connection)
                return
        survivors = session.sweep()
        self.record = HostRecord(name=self.host.name, connection=session.connection, survivors=survivors)

    def _lost(self, error: DdprobeError, steps: Sequence[Step]) -> None:
        self.record = HostRecord(name=self.host.name, error=error.message, advice=error.advice)
        self._not_run(steps, error.message)

    def _not_run(self, steps: Sequence[Step], why: str) -> None:
        for step in steps:
            record = StepRecord(
                id=step.id, probe=step.probe.name(), host=self.host.name, status="not_run", reasons=(why,)
            )
            self.done.append(record)
            self.writer.step(record, ())

    def _step(self, session: Session, step: Step) -> HostError | None:
        """Run one step. Returns why the host was lost on the way, if it was."""
        started = time.time()
        self.progress(self.host.name, step.id)
        collected = collect(step, self.host, session, self.writer, self.progress)
        record, findings = judge(step, collected.evidence, collected.broken, self.writer.artefact_path)
        record = dataclasses.replace(
            record,
            status="interrupted" if self.cancelled.is_set() and record.status != "done" else record.status,
            started=started,
            seconds=time.time() - started,
            artefacts=self.writer.artefacts(self.host.name, step.id),
        )
        self.done.append(record)
        self.findings += findings
        self.writer.step(record, findings)
        return collected.lost


@dataclasses.dataclass(frozen=True, slots=True)
class Collected:
    """A probe's transcript on one host, where it broke off, and whether the host itself was lost."""

    evidence: Evidence
    broken: tuple[Gap, ...] = ()
    lost: HostError | None = None


def collect(step: Step, host: Host, session: Session, writer: ReportWriter, progress: Progress) -> Collected:
    """Hold the probe's conversation with the host."""
    results: list[Result] = []
    broken: tuple[Gap, ...] = ()
    lost: HostError | None = None
    conversation = step.probe.collect(host)
    try:
        asked = next(conversation)
        while True:
            questions = asked if isinstance(asked, tuple) else (asked,)
            if questions:
                progress(host.name, f"{step.id}: {questions[0].key}")
            answers = session.ask(questions) if questions else ()
            for answer in answers:
                writer.answer(host.name, step.id, answer)
            results += answers
            if session.cancelled.is_set():
                broken = (Gap(step.id, "interrupted"),)
                break
            asked = conversation.send(answers if isinstance(asked, tuple) else answers[0])
    except StopIteration:
        pass
    except Unanswered as error:
        broken = (_gap(error, any(result.key == error.key for result in results)),)
    except HostError as error:
        lost, broken = error, (Gap(step.id, error.message),)
    except DdprobeError as error:
        broken = (Gap(step.id, error.message),)
    except Exception as error:
        broken = (Gap(step.id, _bug(step, error)),)
    finally:
        conversation.close()
    return Collected(Evidence(host, tuple(results)), broken, lost)


def judge(
    step: Step, evidence: Evidence, broken: Sequence[Gap], path_of: Callable[[str, str, str], str]
) -> tuple[StepRecord, list[Finding]]:
    """Facts from the evidence, findings from both: pure, so an old report can be judged again.

    `path_of(host, step, key)` turns an answer's key into its path within the report.
    """
    host = evidence.host.name
    facts: list[Fact] = []
    findings: list[Finding] = []
    gaps = list(broken)

    def place(cites: Sequence[Cite]) -> tuple[Cite, ...]:
        return tuple(Cite(path_of(host, step.id, cite.artefact), cite.at) for cite in cites)

    try:
        for item in step.probe.interpret(evidence):
            if isinstance(item, Fact):
                facts.append(item)
            elif isinstance(item, Gap):
                gaps.append(item)
            else:
                findings.append(item)
        findings += lints.judge(facts)
    except Unanswered as error:
        gaps.append(_gap(error, evidence.has(error.key)))
    except Exception as error:
        gaps.append(Gap(step.id, _bug(step, error)))
    gaps = list(dict.fromkeys(gaps))
    findings += [
        Finding(id="unanswered", outcome=Outcome.UNKNOWN, subject=g.subject, summary=g.reason, cites=g.cites)
        for g in gaps
    ]
    record = StepRecord(
        id=step.id,
        probe=step.probe.name(),
        host=host,
        status="incomplete" if gaps else "done",
        settings=tuple((s.name, getattr(step.probe, s.name)) for s in probes.settings(type(step.probe))),
        reasons=tuple(f"{gap.subject}: {gap.reason}" for gap in gaps),
        facts=tuple(dataclasses.replace(fact, source=place(fact.source)) for fact in facts),
    )
    placed = [dataclasses.replace(f, cites=place(f.cites), host=host, step=step.id) for f in findings]
    return record, placed


def _gap(error: Unanswered, asked: bool) -> Gap:
    return Gap(error.key, error.reason, (Cite(error.key),) if asked else ())


def _bug(step: Step, error: Exception) -> str:
    """A bug is a finding for this probe and never the end of the run; `--debug` shows the whole trace."""
    log.debug("in step %s", step.id, exc_info=error)
    last = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(last.filename).name}:{last.lineno}"
    return f"ddprobe has a bug in {step.probe.name()}: {type(error).__name__}: {error} ({where}); please report it"
