"""A whole run: its hosts side by side, and the report written as answers arrive."""

from __future__ import annotations

import contextlib
import dataclasses
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ddprobe import __version__
from ddprobe.interrupts import Interrupts
from ddprobe.model import (
    EXPECTED,
    Finding,
    Host,
    Outcome,
    PlaybookRecord,
    Progress,
    Report,
    Step,
    Verdict,
)
from ddprobe.redact import Redactor
from ddprobe.running import course, masking
from ddprobe.running.course import Done, Stage
from ddprobe.running.earlier import Earlier
from ddprobe.running.hostrun import HostRun, Opener, Tools, not_run
from ddprobe.running.judging import bug, conclude, with_hypotheses
from ddprobe.running.watching import Watch, silent, watch
from ddprobe.store import ELSEWHERE, ReportWriter

PARALLEL_HOSTS = 128
NOT_KEPT = "report.incomplete"
"""The finding of a run whose report could not be written whole."""

Expect = Callable[[Host, Mapping[str, Done], Sequence[Verdict]], Sequence[Finding]]
"""(host, what is over there, its verdicts) → whether they are as expected."""


@dataclass(frozen=True, slots=True)
class Book:
    """The playbook that a run carries out, as the report tells of it, and what it expects."""

    record: PlaybookRecord
    expect: Expect


def run(
    name: str,
    hosts: Sequence[Host],
    steps: Sequence[Step | Stage],
    writer: ReportWriter,
    opener: Opener,
    *,
    progress: Progress | Watch = silent,
    lab: bool = False,
    book: Book | None = None,
    earlier: Earlier | None = None,
) -> Report:
    """Run the steps on the hosts side by side, and write the report as answers arrive.

    A host's trouble is data: it never ends the run of another. Ctrl-C and SIGTERM end what is under way on every
    host and still return a report, with `interrupted` set. What could not be written to the folder is in the report
    that is returned, with `trouble` set. Of an `earlier` report, what still stands is taken over.
    """
    started = time.time()
    cancelled = threading.Event()
    redactor = Redactor()
    stages = _stages(steps)
    tools = Tools(writer, opener, redactor, cancelled, watch(progress), earlier)
    works = [HostRun(host, stages, tools) for host in hosts]
    with Interrupts(cancelled) as interrupts, masking.clean_log(redactor):
        planned = tuple(not_run(stage, "", redactor) for stage in stages)
        writer.plan(tuple(masking.shown(host, redactor) for host in hosts), planned)
        playbook = _record(book, redactor)
        if playbook is not None:
            writer.playbook(playbook)
        _side_by_side(works, interrupts)
        ruled = {work.host.name: _verdicts(work) for work in works}
        report = Report(
            name=name,
            version=__version__,
            started=started,
            seconds=time.time() - started,
            lab=lab,
            interrupted=cancelled.is_set(),
            playbook=playbook,
            hosts=tuple(work.record for work in works),
            steps=tuple(done.record for work in works for done in work.done),
            findings=tuple(
                f for work in works for f in _findings(work, ruled[work.host.name], book, redactor)
            ),
            verdicts=tuple(verdict for found in ruled.values() for verdict in found),
            redactions=redactor.count,
        )
        report = with_hypotheses(report, {host.name: host.gpu_bandwidth for host in hosts})
        report = with_trouble(masking.masked_report(report, redactor), writer.trouble)
        writer.finish(report, redactor.known)
        return with_trouble(report, writer.trouble)


def _record(book: Book | None, redactor: Redactor) -> PlaybookRecord | None:
    if book is None:
        return None
    return dataclasses.replace(book.record, vars=masking.values(book.record.vars, redactor))


def _stages(steps: Sequence[Step | Stage]) -> tuple[Stage, ...]:
    planned = tuple(step for step in steps if isinstance(step, Stage))
    return planned or course.plain(step for step in steps if isinstance(step, Step))


def _verdicts(work: HostRun) -> tuple[Verdict, ...]:
    """What the evidence of one host supports, all its steps together."""
    facts = [fact for done in work.done for fact in done.record.facts]
    return conclude(work.host, facts, [f for done in work.done for f in done.findings])


def _findings(
    work: HostRun, ruled: Sequence[Verdict], book: Book | None, redactor: Redactor
) -> tuple[Finding, ...]:
    """What was found on one host, with whether that is what the playbook expects."""
    found = tuple(finding for done in work.done for finding in done.findings)
    if book is None or work.record.error or not work.done:
        return found
    try:
        told = book.expect(work.host, {done.record.id: done for done in work.done}, ruled)
    except Exception as error:
        # A bug there must not cost the report of everything that was asked.
        told = (unexpected(error),)
    expected = (dataclasses.replace(masking.masked(f, redactor), host=work.host.name) for f in told)
    return (*found, *expected)


def unexpected(error: Exception) -> Finding:
    """That nobody can tell whether the host is as expected, for a bug of ours."""
    return Finding(
        id=EXPECTED, outcome=Outcome.UNKNOWN, subject="expect", summary=bug("what is expected", error)
    )


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


def _side_by_side(works: Sequence[HostRun], interrupts: Interrupts) -> None:
    """Run them on threads, until all are done, or an interrupted one takes too long to end."""
    waiting = queue.SimpleQueue[HostRun]()
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
