"""The life of a run: a host's trouble is data, a bug is a finding, nothing collected is lost."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from ddprobe import probes, runner, store
from ddprobe.blocks import Block
from ddprobe.errors import NoShell, Unanswered, Unreachable
from ddprobe.model import (
    Command,
    CommandResult,
    Connection,
    Conversation,
    Evidence,
    Fact,
    Finding,
    Gap,
    Host,
    HostRecord,
    Outcome,
    Probe,
    Question,
    Report,
    Result,
    Step,
    StepRecord,
    exit_code,
)
from ddprobe.redact import Redactor
from ddprobe.sessions.base import Session

ASK = Command(key="kernel", argv=("uname", "-s"))


@dataclass(frozen=True, kw_only=True)
class Kernel(Probe):
    """A small probe: it wants one whole answer."""

    buggy: str = ""

    @classmethod
    def name(cls) -> str:
        return "host.kernel"

    def collect(self, host: Host) -> Conversation:
        answer = yield ASK
        if self.buggy == "collect":
            raise ValueError("boom")
        if answer.whole and answer.text == "more":
            yield Command(key="release", argv=("uname", "-r"))

    def interpret(self, evidence: Evidence) -> Iterator[Fact | Finding | Gap]:
        text = evidence.text("kernel")
        if self.buggy == "interpret":
            raise ValueError("boom")
        yield Finding(id="kernel", outcome=Outcome.PASS, subject=text, summary=f"kernel {text}")

    def show(self, facts: Sequence[Fact]) -> Iterator[Block]:
        yield from ()


class Scripted(Session):
    """Answers by a function; keeps whether it was closed."""

    def __init__(self, host: Host, answer: Callable[[Session, Command], CommandResult]) -> None:
        super().__init__(host, Redactor(), threading.Event())
        self.answer = answer
        self.closed = False

    @property
    def connection(self) -> Connection:
        return Connection(transport="scripted")

    def _carry(self, questions: tuple[Question, ...]) -> Sequence[Result]:
        return [self.answer(self, q) for q in questions if isinstance(q, Command)]

    def close(self) -> None:
        self.closed = True


def whole(_session: Session, command: Command) -> CommandResult:
    return CommandResult(question=command, exit_code=0, stdout=b"Linux")


def go(
    tmp_path: Path,
    answers: dict[str, Callable[[Session, Command], CommandResult] | Exception],
    steps: Sequence[Step] = (Step("kernel", Kernel()),),
) -> tuple[Report, dict[str, Scripted], Path]:
    sessions: dict[str, Scripted] = {}

    def opener(host: Host, _redactor: Redactor, cancelled: threading.Event) -> Session:
        answer = answers[host.name]
        if isinstance(answer, Exception):
            raise answer
        sessions[host.name] = Scripted(host, answer)
        sessions[host.name].cancelled = cancelled
        return sessions[host.name]

    writer = store.ReportWriter.create(tmp_path, "test")
    report = runner.run("test", [Host(name=n) for n in answers], steps, writer, opener)
    assert store.load(writer.folder) == report
    return report, sessions, writer.folder


@pytest.fixture(autouse=True)
def known_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    load = probes.load
    monkeypatch.setattr(probes, "load", lambda name: Kernel if name == "host.kernel" else load(name))


def test_one_dead_host_leaves_the_others_whole(tmp_path: Path) -> None:
    report, sessions, _ = go(tmp_path, {"a": whole, "b": Unreachable("b: no route", "is it up?"), "c": whole})
    assert [(h.name, h.error, h.advice) for h in report.hosts] == [
        ("a", "", ""),
        ("b", "b: no route", "is it up?"),
        ("c", "", ""),
    ]
    assert [(s.host, s.status) for s in report.steps] == [("a", "done"), ("b", "not_run"), ("c", "done")]
    assert [(f.host, f.id) for f in report.findings] == [("a", "kernel"), ("c", "kernel")]
    assert all(session.closed for session in sessions.values())
    assert exit_code(report) == 3


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (CommandResult(question=ASK, exit_code=0, stdout=b"Lin", truncated=True), "cut at 3 bytes"),
        (
            CommandResult(question=ASK, timed_out=True, seconds=25),
            "timed out after 25.0 s (0 bytes had come)",
        ),
        (
            CommandResult(question=ASK, exit_code=127, stderr=b"uname: not found"),
            "exit code 127: uname: not found",
        ),
        (
            CommandResult(question=ASK, exit_code=0, stdout=b"Linux", failure="the line went dead"),
            "the line went dead",
        ),
    ],
    ids=["cut", "late", "missing", "dead"],
)
def test_an_answer_that_is_not_whole_is_unknown_and_ends_with_4(
    tmp_path: Path, answer: CommandResult, why: str
) -> None:
    report, _, _ = go(tmp_path, {"a": lambda _session, _command: answer})
    assert [(f.id, f.outcome, f.subject, f.summary) for f in report.findings] == [
        ("unanswered", Outcome.UNKNOWN, "kernel", why)
    ]
    assert [s.status for s in report.steps] == ["incomplete"]
    assert exit_code(report) == exit_code(report, "warn") == 4


@pytest.mark.parametrize("half", ["collect", "interpret"])
def test_a_bug_in_one_probe_is_told_and_the_next_step_runs(tmp_path: Path, half: str) -> None:
    steps = (Step("first", Kernel(buggy=half)), Step("second", Kernel()))
    report, _, folder = go(tmp_path, {"a": whole}, steps)
    assert [(s.id, s.status) for s in report.steps] == [("first", "incomplete"), ("second", "done")]
    assert "ddprobe has a bug in host.kernel: ValueError: boom" in report.steps[0].reasons[0]
    assert report.steps[0].artefacts, "what was collected before the bug is kept"
    assert (folder / report.steps[0].artefacts[0].files[0][1]).read_bytes() == b"Linux"
    assert exit_code(report) == 4


def test_a_host_lost_on_the_way_keeps_what_came_before(tmp_path: Path) -> None:
    seen: list[str] = []

    def once(_session: Session, command: Command) -> CommandResult:
        seen.append(command.key)
        if len(seen) > 1:
            raise NoShell("a: answers with a sentence", "ask its owner")
        return whole(_session, command)

    steps = [Step(name, Kernel()) for name in ("one", "two", "three")]
    report, sessions, _ = go(tmp_path, {"a": once}, steps)
    assert [(s.id, s.status) for s in report.steps] == [
        ("one", "done"),
        ("two", "incomplete"),
        ("three", "not_run"),
    ]
    assert report.hosts[0].error == "a: answers with a sentence"
    assert sessions["a"].closed
    assert exit_code(report) == 3


def test_ctrl_c_keeps_what_came_and_says_so(tmp_path: Path) -> None:
    def interrupt(session: Session, command: Command) -> CommandResult:
        session.cancelled.set()
        return CommandResult(question=command, failure="interrupted")

    steps = [Step(name, Kernel()) for name in ("one", "two")]
    report, sessions, _ = go(tmp_path, {"a": interrupt}, steps)
    assert report.interrupted
    assert [(s.id, s.status) for s in report.steps] == [("one", "interrupted"), ("two", "not_run")]
    assert sessions["a"].closed
    assert exit_code(report) == 130


def finding(outcome: Outcome) -> Finding:
    return Finding(id="x", outcome=outcome, subject="s", summary="s")


@pytest.mark.parametrize(
    ("outcome", "fail_on", "code"),
    [
        (Outcome.FAIL, "fail", 1),
        (Outcome.FAIL, "warn", 1),
        (Outcome.FAIL, "never", 0),
        (Outcome.WARN, "fail", 0),
        (Outcome.WARN, "warn", 1),
        (Outcome.UNKNOWN, "fail", 0),
        (Outcome.UNKNOWN, "warn", 0),
        (Outcome.PASS, "warn", 0),
    ],
)
def test_exit_code_of_one_finding(outcome: Outcome, fail_on: str, code: int) -> None:
    report = Report(name="n", version="0", started=0, findings=(finding(outcome),))
    assert exit_code(report, fail_on) == code


def test_the_first_of_130_1_3_4_counts() -> None:
    lost = HostRecord(name="h", error="gone")
    cut = StepRecord(id="s", probe="p", host="h", status="incomplete")
    everything = Report(
        name="n",
        version="0",
        started=0,
        interrupted=True,
        hosts=(lost,),
        steps=(cut,),
        findings=(finding(Outcome.FAIL),),
    )
    assert exit_code(everything) == 130
    assert (
        exit_code(
            Report(
                name="n",
                version="0",
                started=0,
                hosts=(lost,),
                steps=(cut,),
                findings=(finding(Outcome.FAIL),),
            )
        )
        == 1
    )
    assert exit_code(Report(name="n", version="0", started=0, hosts=(lost,), steps=(cut,))) == 3
    assert exit_code(Report(name="n", version="0", started=0, steps=(cut,))) == 4


def test_worst_of_nothing_is_unknown() -> None:
    assert Outcome.worst(()) is Outcome.UNKNOWN
    assert Report(name="n", version="0", started=0).outcome is Outcome.UNKNOWN


def test_evidence_says_when_it_was_never_asked() -> None:
    with pytest.raises(Unanswered, match="was not asked"):
        Evidence(Host(name="h")).text("kernel")
