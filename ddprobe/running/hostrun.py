"""One host's part of a run: its steps in their course, each a conversation, until all are over or the host is lost."""

from __future__ import annotations

import contextlib
import dataclasses
import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ddprobe.errors import DdprobeError
from ddprobe.model import (
    Connection,
    Evidence,
    Finding,
    Gap,
    Host,
    HostRecord,
    Outcome,
    Probe,
    Result,
    Step,
    StepRecord,
)
from ddprobe.redact import Redactor
from ddprobe.running import course, gates, masking
from ddprobe.running.conversation import collect
from ddprobe.running.course import Done, NotNow, Stage
from ddprobe.running.earlier import Earlier
from ddprobe.running.judging import bug, judge
from ddprobe.running.sharing import Line, StepSession
from ddprobe.running.watching import RUNNING, Watch
from ddprobe.sessions.base import Session
from ddprobe.store import NOT_REACHED, ReportWriter

Opener = Callable[[Host, Redactor, threading.Event], Session]
INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class Tools:
    """What the hosts of one run share."""

    writer: ReportWriter
    opener: Opener
    redactor: Redactor
    cancelled: threading.Event
    watch: Watch
    earlier: Earlier | None = None
    connecting: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(gates.CONNECTING))
    measuring: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(gates.MEASURING))


def not_run(
    stage: Stage, host: str, redactor: Redactor, *reasons: str, status: str = "not_run"
) -> StepRecord:
    """The record of a step that asked nothing."""
    settings = masking.values(stage.settings, redactor)
    told = tuple(redactor.prose(reason) for reason in reasons)
    return StepRecord(
        id=stage.id, probe=stage.probe, host=host, status=status, settings=settings, reasons=told
    )


@dataclass(frozen=True, slots=True)
class Begun:
    """A step under way, and the answers that it has so far."""

    step: Step
    started: float
    """Seconds since 1970."""
    results: list[Result] = field(default_factory=list)


class HostRun:
    """One host's part of a run. Its steps are threads of their own, begun here."""

    def __init__(self, host: Host, stages: Sequence[Stage], tools: Tools) -> None:
        self.host = host
        self.stages = course.in_order(stages)
        self.tools = tools
        self.record = HostRecord(name=host.name, error=NOT_REACHED)
        self.over: dict[str, Done] = {}
        self._planned = [stage.id for stage in stages]
        self._begun: dict[str, Begun] = {}
        self._ended: queue.SimpleQueue[tuple[str, BaseException | None]] = queue.SimpleQueue()
        self._line: Line | None = None
        self._lock = threading.Lock()
        self._left = False

    @property
    def done(self) -> tuple[Done, ...]:
        """The steps that are over, in the order in which they were planned."""
        over = dict(self.over)
        return tuple(over[name] for name in self._planned if name in over)

    def go(self) -> None:
        """The whole of it. Never raises: a fault of our own is this host's trouble too."""
        try:
            self._walk()
        except DdprobeError as error:
            self._lost(error)
        except BaseException as error:
            self._lost(DdprobeError(bug("ddprobe", error)))
        with self._lock:
            if not self._left:
                self.tools.writer.host(self.record)
        self.tools.watch(self.host.name, "")

    def leave(self) -> None:
        """Take no more of it: the run is over. Of a host that has not let go, the steps that are missing are told, with
        what those under way have collected."""
        with self._lock:
            self._left = True
            begun = dict(self._begun)
            for stage in self.stages:
                if stage.id in self.over:
                    continue
                if stage.id in begun:
                    self.over[stage.id] = self._so_far(begun[stage.id])
                else:
                    self.over[stage.id] = Done(
                        not_run(stage, self.host.name, self.tools.redactor, INTERRUPTED)
                    )

    def _so_far(self, begun: Begun) -> Done:
        evidence = Evidence(self.host, tuple(begun.results))
        return self._judged(begun, evidence, (Gap(begun.step.id, INTERRUPTED),))

    def _judged(self, begun: Begun, evidence: Evidence, broken: tuple[Gap, ...]) -> Done:
        """What a step's answers show, with what was said meanwhile masked."""
        tools, step = self.tools, begun.step
        record, findings = judge(step, evidence, broken, tools.writer.artefact_path)
        interrupted = tools.cancelled.is_set() and record.status != "done"
        record = dataclasses.replace(
            record,
            status=INTERRUPTED if interrupted else record.status,
            settings=masking.settings(step.probe, tools.redactor),
            reasons=tuple(tools.redactor.prose(reason) for reason in record.reasons),
            started=begun.started,
            seconds=time.time() - begun.started,
            artefacts=tools.writer.artefacts(self.host.name, step.id),
        )
        return Done(record, tuple(masking.masked(finding, tools.redactor) for finding in findings))

    def _walk(self) -> None:
        try:
            self._steps()
            self._rest(INTERRUPTED)
            if self._line is not None:
                session = self._line.session
                survivors = session.sweep()
                self._note(
                    HostRecord(name=self.host.name, connection=session.connection, survivors=survivors)
                )
            elif not self.tools.cancelled.is_set():
                self._note(HostRecord(name=self.host.name))  # everything was known, or not wanted
        finally:
            if self._line is not None:
                self._line.session.close()

    def _steps(self) -> None:
        """Begin each step when its time has come. Raises what the host was lost by."""
        running: set[str] = set()
        lost: BaseException | None = None
        while True:
            begun = True
            while begun and lost is None and not self.tools.cancelled.is_set():
                # A step that is skipped lets others begin at once.
                begun = False
                # Until its end was taken, a step may have lost the host.
                for stage in course.ready(self.stages, self.over.keys() - running, running):
                    probe = self._decide(stage)
                    begun = True
                    if probe is not None:
                        self._open()
                        running.add(stage.id)
                        self._begin(stage, probe)
            if not running:
                break
            ended, error = self._ended.get()
            running.discard(ended)
            lost = lost or error
        if lost is not None:
            raise lost

    def _decide(self, stage: Stage) -> Probe | None:
        """The probe to run now; None for a step that is over without: skipped, not to be known, or kept."""
        tools = self.tools
        try:
            decided = stage.decide(self.host, dict(self.over))
        except Exception as error:
            decided = NotNow("incomplete", bug(stage.probe, error))
        if isinstance(decided, NotNow):
            record = not_run(stage, self.host.name, tools.redactor, decided.reason, status=decided.status)
            self._done(record, _unknown(record) if decided.status == "incomplete" else ())
            return None
        settings = masking.settings(decided, tools.redactor)
        if tools.earlier is not None:
            host = masking.shown(self.host, tools.redactor)
            kept = tools.earlier.kept(host, stage.id, stage.probe, settings)
            if kept is not None:
                tools.earlier.adopt(kept, tools.writer)
                self._done(kept.record, kept.findings)
                return None
        return decided

    def _open(self) -> None:
        if self._line is not None:
            return
        self.tools.watch(self.host.name, "connecting")
        with gates.place(self.tools.connecting, self.tools.cancelled, gates.SILENCE):
            session = self.tools.opener(self.host, self.tools.redactor, self.tools.cancelled)
        self._line = Line(session)
        self._note(HostRecord(name=self.host.name, connection=session.connection))

    def _begin(self, stage: Stage, probe: Probe) -> None:
        def carry_out() -> None:
            lost: BaseException | None = None
            try:
                if stage.measures:
                    with gates.place(self.tools.measuring, self.tools.cancelled):
                        lost = self._step(stage, Step(stage.id, probe))
                else:
                    lost = self._step(stage, Step(stage.id, probe))
            except BaseException as error:
                lost = error
            self._ended.put((stage.id, lost))

        # A daemon, as the host's own thread: what does not let go must not keep the program from ending.
        threading.Thread(target=carry_out, name=f"{self.host.name}-{stage.id}"[:60], daemon=True).start()

    def _step(self, stage: Stage, step: Step) -> BaseException | None:
        """Run one step. Returns why the host was lost on the way, if it was."""
        tools, host, line = self.tools, self.host.name, self._line
        assert line is not None
        begun = self._begun[step.id] = Begun(step, time.time())
        tools.writer.begin(
            StepRecord(
                id=step.id,
                probe=step.probe.name(),
                host=host,
                status=RUNNING,
                settings=masking.settings(step.probe, tools.redactor),
                started=begun.started,
            )
        )
        tools.watch(host, step.id)
        tools.watch.step(host, step.id, RUNNING)
        session = (
            line.session if stage.measures and stage.timeout is None else StepSession(line, stage.timeout)
        )
        collected = collect(step, self.host, session, tools.writer, tools.watch, begun.results)
        done = self._judged(begun, collected.evidence, collected.broken)
        self._done(done.record, done.findings)
        return collected.lost

    def _note(self, record: HostRecord) -> None:
        """How the host is reached, or why not, with what it said on the way masked."""
        redactor, told = self.tools.redactor, record.connection
        if told is not None:
            told = dataclasses.replace(told, notes=tuple(redactor.text(note) for note in told.notes))
        record = dataclasses.replace(record, connection=told, error=redactor.text(record.error))
        with self._lock:
            if not self._left:
                self.record = record

    def _lost(self, error: DdprobeError) -> None:
        connection = self._connection() or self.record.connection
        self._note(
            HostRecord(name=self.host.name, connection=connection, error=error.message, advice=error.advice)
        )
        self._rest(self.record.error)

    def _connection(self) -> Connection | None:
        with contextlib.suppress(Exception):
            return self._line.session.connection if self._line is not None else None
        return None

    def _rest(self, why: str) -> None:
        """Record the steps that were never begun."""
        for stage in self.stages:
            if stage.id not in self.over:
                self._done(not_run(stage, self.host.name, self.tools.redactor, why), ())

    def _done(self, record: StepRecord, findings: Sequence[Finding]) -> None:
        with self._lock:
            if self._left:
                return
            over = self.over[record.id] = Done(record, tuple(findings))
            self.tools.writer.step(record, findings)
        self.tools.watch.step(self.host.name, record.id, over.word)


def _unknown(record: StepRecord) -> tuple[Finding, ...]:
    gap = Gap(record.id, "; ".join(record.reasons))
    return (
        Finding(
            id="unanswered",
            outcome=Outcome.UNKNOWN,
            subject=gap.subject,
            summary=gap.reason,
            host=record.host,
            step=record.id,
        ),
    )
