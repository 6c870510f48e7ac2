"""The life of a run, short enough to read at once: collect, interpret, judge, for every step on every host."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import logging
import queue
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ddprobe import __version__, lints, probes, reportjson, store, verdicts
from ddprobe.errors import DdprobeError, HostError, Unanswered
from ddprobe.interrupts import Interrupts
from ddprobe.model import (
    COLLECTED,
    Cite,
    Connection,
    Conversation,
    Evidence,
    Fact,
    Finding,
    Gap,
    Host,
    HostRecord,
    HttpRequest,
    Hypothesis,
    Outcome,
    Progress,
    Question,
    Report,
    Result,
    Step,
    StepRecord,
    Verdict,
)
from ddprobe.redact import Redactor
from ddprobe.sessions.base import Session
from ddprobe.store import ELSEWHERE, NOT_REACHED, ReportWriter
from ddprobe.verdicts import words


def _silent(_host: str, _now: str) -> None:
    """Report no progress."""


Opener = Callable[[Host, Redactor, threading.Event], Session]
PARALLEL_HOSTS = 16
MAX_ROUNDS = 1000
"""Most times that a probe may ask on one host, and …"""
MAX_ITEMS = 200_000
"""… most facts and findings that it may give: more is a loop that never ends."""
NOT_KEPT = "report.incomplete"
"""The finding of a run whose report could not be written whole."""
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

    A host's trouble is data: it never ends the run of another. Ctrl-C and SIGTERM end what is under way on every
    host and still return a report, with `interrupted` set. What could not be written to the folder is in the report
    that is returned, with `trouble` set.
    """
    started = time.time()
    cancelled = threading.Event()
    redactor = Redactor()
    works = [_HostRun(host, steps, writer, opener, redactor, cancelled, progress) for host in hosts]
    with Interrupts(cancelled) as interrupts, clean_log(redactor):
        planned = tuple(_not_run(step, "", redactor) for step in steps)
        writer.plan(tuple(_shown(host, redactor) for host in hosts), planned)
        _side_by_side(works, interrupts)
        report = Report(
            name=name,
            version=__version__,
            started=started,
            seconds=time.time() - started,
            lab=lab,
            interrupted=cancelled.is_set(),
            hosts=tuple(work.record for work in works),
            steps=tuple(step for work in works for step in tuple(work.done)),
            findings=tuple(finding for work in works for finding in tuple(work.findings)),
            verdicts=tuple(verdict for work in works for verdict in _verdicts(work)),
            redactions=redactor.count,
        )
        report = with_hypotheses(report, {host.name: host.gpu_bandwidth for host in hosts})
        report = with_trouble(masked_report(report, redactor), writer.trouble)
        writer.finish(report, redactor.known)
        return with_trouble(report, writer.trouble)


def _verdicts(work: _HostRun) -> tuple[Verdict, ...]:
    """What the evidence of one host supports, all its steps together."""
    facts = [fact for step in tuple(work.done) for fact in step.facts]
    return conclude(work.host, facts, tuple(work.findings))


def conclude(
    host: Host,
    facts: Sequence[Fact],
    findings: Sequence[Finding],
    *,
    collected: bool = False,
) -> tuple[Verdict, ...]:
    """The verdicts on one host, addressed to it. A bug in one of them is `inconclusive`.

    `collected`: somebody else's evidence, on which there is always a verdict.
    """
    judge = verdicts.judge_collected if collected else verdicts.judge
    try:
        found = judge(facts, findings, host.gpu_bandwidth)
    except Exception as error:
        found = (Verdict(name="inconclusive", reasons=(_bug("judging", error),)),)
    return tuple(
        dataclasses.replace(
            verdict,
            host=host.name,
            next=tuple(
                words.on_host(sentence, "" if host.name == COLLECTED else host.name)
                for sentence in verdict.next
            ),
        )
        for verdict in found
    )


def with_hypotheses(report: Report, bandwidths: Mapping[str, float | None]) -> Report:
    """The report with the ledger of each host that has a verdict. `bandwidths`: of one GPU of each host, in GB/s."""
    found: list[Hypothesis] = []
    for host in dict.fromkeys(verdict.host for verdict in report.verdicts):
        facts = [fact for step in report.steps if step.host == host for fact in step.facts]
        findings = [finding for finding in report.findings if finding.host == host]
        judged_so = [verdict for verdict in report.verdicts if verdict.host == host]
        try:
            ledger = verdicts.ledger(facts, findings, judged_so, bandwidths.get(host))
        except Exception as error:
            log.warning(_bug("judging", error))
            continue
        found += [dataclasses.replace(one, host=host) for one in ledger]
    return dataclasses.replace(report, hypotheses=tuple(found))


def judge_again(folder: Path, report: Report) -> Report:
    """The report of a run that was killed, with what the evidence of its unfinished steps shows."""
    steps = list(report.steps)
    findings = list(report.findings)
    for place, step in enumerate(steps):
        if step.status != "interrupted" or step.facts or not step.artefacts:
            continue
        try:
            evidence = store.evidence(folder, step.host, step.id)
            again = Step(step.id, reportjson.probe_of(step))
        except DdprobeError:
            continue  # of another version, or a folder that lost files: it is shown as it is
        paths = functools.partial(path_in, step)
        record, found = judge(again, evidence, (), paths)
        steps[place] = dataclasses.replace(step, facts=record.facts)
        findings += found
    concluded: list[Verdict] = []
    for host in dict.fromkeys(step.host for step in steps):
        facts = [fact for step in steps if step.host == host for fact in step.facts]
        concluded += conclude(store.known_host(folder, host), facts, [f for f in findings if f.host == host])
    return dataclasses.replace(
        report, steps=tuple(steps), findings=tuple(findings), verdicts=tuple(concluded)
    )


def path_in(step: StepRecord, _host: str, _step: str, key: str) -> str:
    """Where an answer of a step that was kept before lies in its report."""
    return store.artefact_path(step.artefacts, key)


def masked_report(report: Report, redactor: Redactor) -> Report:
    """The report without what was only learned to be a secret after it had been seen."""
    whole = reportjson.text(reportjson.from_report(report)).encode()
    masked = redactor.known(whole)
    return report if masked == whole else reportjson.to_report(json.loads(masked))


def with_trouble(report: Report, trouble: str) -> Report:
    """The report, saying that its folder lacks something."""
    if not trouble or report.trouble:
        return report
    finding = Finding(
        id=NOT_KEPT,
        outcome=Outcome.UNKNOWN,
        subject="the report's folder",
        summary=trouble,
        advice=f"{ELSEWHERE} and run it again",
    )
    return dataclasses.replace(report, trouble=trouble, findings=(*report.findings, finding))


def _side_by_side(works: Sequence[_HostRun], interrupts: Interrupts) -> None:
    """Run them on a few threads, until all are done, or an interrupted one takes too long to end."""
    waiting = queue.SimpleQueue[_HostRun]()
    for work in works:
        waiting.put(work)

    def keep_going() -> None:
        with contextlib.suppress(queue.Empty):
            while not interrupts.cancelled.is_set():
                waiting.get_nowait().go()

    # Daemons: a host that does not let go must not keep the program from ending.
    threads = [
        threading.Thread(target=keep_going, name=f"hosts-{number}", daemon=True)
        for number in range(min(PARALLEL_HOSTS, len(works)))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive() and not interrupts.out_of_patience:
            try:
                thread.join(0.1)
            except KeyboardInterrupt:
                interrupts.note()
    for work in works:
        work.leave()


@contextlib.contextmanager
def clean_log(redactor: Redactor) -> Iterator[None]:
    """What libraries log under `--debug` (headers of HTTP answers) passes redaction too."""

    def clean(record: logging.LogRecord) -> bool:
        text = record.getMessage()
        if record.exc_info:
            text += "\n" + logging.Formatter().formatException(record.exc_info)
        record.msg, record.args, record.exc_info = redactor.text(text), None, None
        return True

    handlers = tuple(logging.getLogger().handlers)
    for handler in handlers:
        handler.addFilter(clean)
    try:
        yield
    finally:
        for handler in handlers:
            handler.removeFilter(clean)


def _shown(host: Host, redactor: Redactor) -> Host:
    """The host as the report may keep it."""
    return dataclasses.replace(host, url=redactor.prose(host.url) if host.url else host.url)


def _settings(step: Step, redactor: Redactor) -> tuple[tuple[str, Any], ...]:
    """The probe's settings as the report may keep them: somebody may search for a key."""
    given = ((s.name, getattr(step.probe, s.name)) for s in probes.settings(type(step.probe)))
    return tuple((name, redactor.prose(v) if isinstance(v, str) else v) for name, v in given)


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
        self.record = HostRecord(name=host.name, error=NOT_REACHED)
        self.done: list[StepRecord] = []
        self.findings: list[Finding] = []
        self._lock = threading.Lock()
        self._left = False

    def go(self) -> None:
        """The whole of it. Never raises: a fault of our own is this host's trouble too."""
        self.progress(self.host.name, "connecting")
        try:
            self._look()
        except DdprobeError as error:
            self._lost(error)
        except BaseException as error:
            self._lost(DdprobeError(_bug("ddprobe", error)))
        with self._lock:
            if not self._left:
                self.writer.host(self.record)
        self.progress(self.host.name, "")

    def leave(self) -> None:
        """Take no more of it: the run is over. Of a host that has not let go, the steps that are missing are told."""
        with self._lock:
            self._left = True
            missing = self.steps[len(self.done) :]
            self.done += [_not_run(step, self.host.name, self.redactor, INTERRUPTED) for step in missing]

    def _look(self) -> None:
        session = self.opener(self.host, self.redactor, self.cancelled)
        try:
            self._note(HostRecord(name=self.host.name, connection=session.connection))
            for step in self.steps:
                if self.cancelled.is_set():
                    break
                lost = self._step(session, step)
                if lost is not None:
                    self._lost(lost, session.connection)
                    return
            self._rest(INTERRUPTED)
            survivors = session.sweep()
            self._note(HostRecord(name=self.host.name, connection=session.connection, survivors=survivors))
        finally:
            session.close()

    def _note(self, record: HostRecord) -> None:
        """How the host is reached, or why not, with what it said on the way masked."""
        told = record.connection
        if told is not None:
            told = dataclasses.replace(told, notes=tuple(self.redactor.text(note) for note in told.notes))
        record = dataclasses.replace(record, connection=told, error=self.redactor.text(record.error))
        with self._lock:
            if not self._left:
                self.record = record

    def _lost(self, error: DdprobeError, connection: Connection | None = None) -> None:
        connection = connection or self.record.connection
        self._note(
            HostRecord(name=self.host.name, connection=connection, error=error.message, advice=error.advice)
        )
        self._rest(self.record.error)

    def _rest(self, why: str) -> None:
        """Record the steps that were never begun."""
        for step in self.steps[len(self.done) :]:
            self._done(_not_run(step, self.host.name, self.redactor, why), ())

    def _done(self, record: StepRecord, findings: Sequence[Finding]) -> None:
        with self._lock:
            if self._left:
                return
            self.done.append(record)
            self.findings += findings
            self.writer.step(record, findings)

    def _step(self, session: Session, step: Step) -> HostError | None:
        """Run one step. Returns why the host was lost on the way, if it was."""
        started = time.time()
        self.progress(self.host.name, step.id)
        collected = collect(step, self.host, session, self.writer, self.progress)
        record, findings = judge(step, collected.evidence, collected.broken, self.writer.artefact_path)
        record = dataclasses.replace(
            record,
            status="interrupted" if self.cancelled.is_set() and record.status != "done" else record.status,
            settings=_settings(step, self.redactor),
            reasons=tuple(self.redactor.prose(reason) for reason in record.reasons),
            started=started,
            seconds=time.time() - started,
            artefacts=self.writer.artefacts(self.host.name, step.id),
        )
        self._done(record, [_masked(finding, self.redactor) for finding in findings])
        return collected.lost


INTERRUPTED = "interrupted"


def _not_run(step: Step, host: str, redactor: Redactor, *reasons: str) -> StepRecord:
    return StepRecord(
        id=step.id,
        probe=step.probe.name(),
        host=host,
        status="not_run",
        settings=_settings(step, redactor),
        reasons=reasons,
    )


def _masked(finding: Finding, redactor: Redactor) -> Finding:
    """The finding, should it quote a secret (a setting of the probe is no answer, and was not masked)."""
    return dataclasses.replace(
        finding,
        subject=redactor.prose(finding.subject),
        summary=redactor.prose(finding.summary),
        advice=redactor.prose(finding.advice),
    )


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
    conversation: Conversation | None = None
    try:
        conversation = step.probe.collect(host)
        asked = next(conversation)
        for _ in range(MAX_ROUNDS):
            questions = asked if isinstance(asked, tuple) else (asked,)
            if questions:
                progress(host.name, f"{step.id}: {_waiting_for(questions[0])}")
            answers = session.ask(questions) if questions else ()
            for answer in answers:
                writer.answer(host.name, step.id, answer)
            results += answers
            if session.cancelled.is_set():
                broken = (Gap(step.id, "interrupted"),)
                break
            asked = conversation.send(answers if isinstance(asked, tuple) else answers[0])
        else:
            raise RuntimeError(f"it asked {MAX_ROUNDS} times and would go on")
    except StopIteration:
        pass
    except Unanswered as error:
        broken = (_gap(error, any(result.key == error.key for result in results)),)
    except HostError as error:
        lost, broken = error, (Gap(step.id, error.message),)
    except DdprobeError as error:
        broken = (Gap(step.id, error.message),)
    except Exception as error:
        broken = (Gap(step.id, _bug(step.probe.name(), error)),)
    finally:
        with contextlib.suppress(Exception):
            if conversation is not None:
                conversation.close()
    return Collected(Evidence(host, tuple(results)), broken, lost)


def _waiting_for(question: Question) -> str:
    return (isinstance(question, HttpRequest) and question.about) or question.key


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
        for number, item in enumerate(step.probe.interpret(evidence)):
            if isinstance(item, Fact):
                facts.append(dataclasses.replace(item, source=place(item.source)))
            elif isinstance(item, Gap):
                gaps.append(item)
            elif isinstance(item, Finding):
                findings.append(item)
            else:
                raise TypeError(f"it gave {item!r:.80}")
            if number >= MAX_ITEMS:
                raise RuntimeError(f"it gave {MAX_ITEMS} facts and would go on")
        findings += lints.judge(facts)
    except Unanswered as error:
        gaps.append(_gap(error, evidence.has(error.key)))
    except Exception as error:
        gaps.append(Gap(step.id, _bug(step.probe.name(), error)))
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
        reasons=tuple(f"{gap.subject}: {gap.reason}" for gap in gaps),
        facts=tuple(facts),
    )
    placed = [dataclasses.replace(f, cites=place(f.cites), host=host, step=step.id) for f in findings]
    return record, placed


def _gap(error: Unanswered, asked: bool) -> Gap:
    return Gap(error.key, error.reason, (Cite(error.key),) if asked else ())


def _bug(where: str, error: BaseException) -> str:
    """A bug is a finding for this probe and never the end of the run; `--debug` shows the whole trace."""
    log.debug("in %s", where, exc_info=error)
    last = traceback.extract_tb(error.__traceback__)[-1]
    line = f"{Path(last.filename).name}:{last.lineno}"
    return f"ddprobe has a bug in {where}: {type(error).__name__}: {error} ({line}); please report it"
