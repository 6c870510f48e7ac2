"""The life of a run: a host's trouble is data, a bug is a finding, nothing collected is lost."""

from __future__ import annotations

import io
import logging
import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ddprobe import probes, runner, store
from ddprobe.blocks import Block
from ddprobe.cli import app as cli
from ddprobe.errors import NoShell, Unanswered, Unreachable
from ddprobe.facts import Discovered, ServerArgs
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
    Verdict,
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
    ours: dict[str, type[Probe]] = {"host.kernel": Kernel, "host.odd": Odd}
    monkeypatch.setattr(probes, "load", lambda name: ours.get(name) or load(name))


def test_a_verdict_names_its_host_and_so_does_its_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    verdict = Verdict(name="inconclusive", next=("ddprobe commit-probe --arms prose",))
    monkeypatch.setattr("ddprobe.verdicts.judge", lambda *_: (verdict,))
    report, _, _ = go(tmp_path, {"a": whole, "b": whole})
    assert [(v.host, v.next) for v in report.verdicts] == [
        ("a", ("ddprobe commit-probe a --arms prose",)),
        ("b", ("ddprobe commit-probe b --arms prose",)),
    ]


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


def test_a_second_ctrl_c_leaves_what_does_not_end_and_keeps_what_it_has_collected(tmp_path: Path) -> None:
    def holds_on(_session: Session, command: Command) -> CommandResult:
        if command.key == "kernel":
            return CommandResult(question=command, exit_code=0, stdout=b"more")
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.2)
        time.sleep(60)
        raise AssertionError("the run is long over")

    began = time.monotonic()
    steps = [Step("one", Kernel()), Step("two", Kernel())]
    report, _, folder = go(tmp_path, {"a": holds_on}, steps)
    assert time.monotonic() - began < 20
    assert report.interrupted
    assert [(s.id, s.status, s.reasons) for s in report.steps] == [
        ("one", "interrupted", ("one: interrupted",)),
        ("two", "not_run", ("interrupted",)),
    ]
    one = report.steps[0]
    assert [artefact.key for artefact in one.artefacts] == ["kernel"]
    assert (folder / one.artefacts[0].files[0][1]).read_bytes() == b"more"
    assert [(f.id, f.summary) for f in report.findings] == [
        ("kernel", "kernel more"),
        ("unanswered", "interrupted"),
    ]
    assert store.load(folder).steps == report.steps
    assert exit_code(report) == 130


@dataclass(frozen=True, kw_only=True)
class Odd(Kernel):
    """Whatever a probe may do wrong."""

    fault: str
    pattern: str = ""

    @classmethod
    def name(cls) -> str:
        return "host.odd"

    def collect(self, host: Host) -> Any:
        if self.fault == "no generator":
            return None
        return self._collect(host)

    def _collect(self, host: Host) -> Conversation:
        if self.fault == "raises at once":
            raise ValueError("boom")
        if self.fault == "asks nothing":
            yield ()
        if self.fault == "asks nonsense":
            yield "uname"  # type: ignore[misc]
        if self.fault == "acts":
            yield Command(key="rm", argv=("rm", "/x"))
        while self.fault == "asks for ever":
            yield ASK
        try:
            yield ASK
            yield (ASK, ASK)
            if self.fault == "leaves":
                raise SystemExit(3)
            yield Command(key="../../x\n%2e", argv=("uname", "-s"))
        finally:
            if self.fault == "does not let go":
                yield ASK

    def interpret(self, evidence: Evidence) -> Iterator[Fact | Finding | Gap]:
        if self.fault == "acts":
            evidence.text("rm")
        if self.fault == "gives nonsense":
            yield 7  # type: ignore[misc]
        while self.fault == "gives for ever":
            yield Discovered(what="x", value="y", origin="z")
        if self.fault == "recurses":
            yield from self.interpret(evidence)
        if self.fault == "odd facts":
            values: tuple[tuple[str, Any], ...] = (
                ("s", {1, "a"}),
                ("n", 10**5000),
                ("b", b"\xff"),
                ("f", math.nan),
            )
            yield ServerArgs(engine="sglang", origin="o\ud800\x1b[31m", values=values)
        yield Finding(id="odd", outcome=Outcome.PASS, subject="s", summary="fine")

    def show(self, facts: Sequence[Fact]) -> Iterator[Block]:
        if self.fault == "cannot show":
            raise ValueError("boom")
        yield from ()


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ("no generator", "TypeError: 'NoneType' object is not an iterator"),
        ("raises at once", "ValueError: boom"),
        ("asks nothing", ""),
        ("asks nonsense", "AttributeError"),
        ("acts", "the program 'rm' is not on the list"),
        ("asks for ever", "it asked 50 times and would go on"),
        ("does not let go", ""),
        ("gives nonsense", "TypeError: it gave 7"),
        ("gives for ever", "it gave 60 facts and would go on"),
        ("recurses", "RecursionError"),
        ("odd facts", ""),
        ("cannot show", ""),
    ],
)
def test_a_probes_fault_costs_its_step_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str, why: str
) -> None:
    monkeypatch.setattr("ddprobe.running.conversation.MAX_ROUNDS", 50)
    monkeypatch.setattr("ddprobe.running.judging.MAX_ITEMS", 60)
    writer = store.ReportWriter.create(tmp_path, "test")
    steps = (Step("odd", Odd(fault=fault)), Step("kernel", Kernel()))
    report = runner.run("test", [Host(name="a"), Host(name="b")], steps, writer, opened)
    assert report.trouble == ""
    for host in ("a", "b"):
        odd, kernel = (step for step in report.steps if step.host == host)
        assert kernel.status == "done"
        assert odd.status == ("incomplete" if why else "done"), odd.reasons
        assert why in "".join(odd.reasons)
    assert exit_code(report) == (4 if why else 0)
    assert {p.name for p in writer.folder.iterdir()} >= {"report.json", "report.md", "MANIFEST.sha256"}
    assert [(s.host, s.id, s.status) for s in store.load(writer.folder).steps] == [
        (s.host, s.id, s.status) for s in report.steps
    ]


def opened(host: Host, redactor: Redactor, cancelled: threading.Event) -> Session:
    session = Scripted(host, whole)
    session.cancelled, session.redactor = cancelled, redactor
    return session


@pytest.mark.parametrize("fault", [ValueError("boom"), SystemExit(3), RecursionError("deep"), MemoryError()])
def test_a_fault_on_the_way_to_a_host_costs_that_host_alone(tmp_path: Path, fault: BaseException) -> None:
    def opener(host: Host, redactor: Redactor, cancelled: threading.Event) -> Session:
        if host.name == "b":
            raise fault
        return opened(host, redactor, cancelled)

    writer = store.ReportWriter.create(tmp_path, "test")
    report = runner.run("test", [Host(name=n) for n in "abc"], [Step("k", Kernel())], writer, opener)
    assert [s.status for s in report.steps] == ["done", "not_run", "done"]
    assert f"ddprobe has a bug in ddprobe: {type(fault).__name__}" in report.hosts[1].error
    assert exit_code(report) == 3
    assert store.load(writer.folder) == report


def test_what_leaves_in_the_middle_keeps_the_steps_before(tmp_path: Path) -> None:
    writer = store.ReportWriter.create(tmp_path, "test")
    steps = (Step("one", Kernel()), Step("two", Odd(fault="leaves")), Step("three", Kernel()))
    report = runner.run("test", [Host(name="a")], steps, writer, opened)
    assert [s.status for s in report.steps] == ["done", "not_run", "not_run"]
    assert store.load(writer.folder) == report


def test_dead_hosts_delay_no_other(tmp_path: Path) -> None:
    def opener(host: Host, redactor: Redactor, cancelled: threading.Event) -> Session:
        if int(host.name) % 3 == 0:
            time.sleep(1)
            raise Unreachable(f"{host.name}: no route")
        return opened(host, redactor, cancelled)

    began = time.monotonic()
    writer = store.ReportWriter.create(tmp_path, "test")
    hosts = [Host(name=str(number)) for number in range(64)]
    report = runner.run("test", hosts, [Step("k", Kernel())], writer, opener)
    assert time.monotonic() - began < 22 / 4
    assert [h.name for h in report.hosts] == [h.name for h in hosts]
    assert sum(bool(h.error) for h in report.hosts) == 22
    assert [s.status for s in report.steps] == ["not_run" if n % 3 == 0 else "done" for n in range(64)]
    assert store.load(writer.folder) == report


SIGNALLED = """
import os, signal, sys, threading, time
from pathlib import Path
from ddprobe import interrupts, probes, runner, store
from ddprobe.model import CommandResult, Host, Step, exit_code
from tests import test_runner as t
phase, name, times, places = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
load = probes.load
probes.load = lambda probe: t.Kernel if probe == "host.kernel" else load(probe)
interrupts.PATIENCE = 0.5
at, sending, over, lock = [], [], [], threading.Lock()
def signals():
    with lock:
        if over:
            return  # a host that was left: the run has ended, and nobody minds signals any more
        sending.append(name)
    at.append(time.monotonic())
    for _ in range(times):
        os.kill(os.getpid(), getattr(signal, name))
        time.sleep(0.05)
    sending.pop()
def answer(session, command):
    if phase in ("ask", "stuck"):
        signals()
        if phase == "stuck":
            time.sleep(60)
    return CommandResult(question=command, exit_code=0, stdout=b"Linux")
def opener(host, redactor, cancelled):
    session = t.Scripted(host, answer)
    session.cancelled = cancelled
    if phase == "connect" and host.name == "a":
        signals()
    return session
class Probe(t.Kernel):
    def interpret(self, evidence):
        if phase == "interpret":
            signals()
        yield from super().interpret(evidence)
writer = store.ReportWriter.create(Path(places), "look")
finish = writer.finish
def finishing(report, mask):
    if phase == "finish":
        signals()
    while True:
        with lock:
            if not sending:
                over.append(name)
                break
        time.sleep(0.01)
    finish(report, mask)
writer.finish = finishing
report = runner.run("look", [Host(name="a"), Host(name="b")], [Step("one", Probe()), Step("two", Probe())], writer, opener)
print(time.monotonic() - at[0])
sys.exit(exit_code(report))
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("phase", ["connect", "ask", "stuck", "interpret", "finish"])
def test_a_signal_at_any_moment_leaves_a_whole_report(
    tmp_path: Path, phase: str, name: str, times: int
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SIGNALLED, phase, name, str(times), str(tmp_path)],
        cwd=Path(__file__).parent.parent, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.stderr == ""
    # A signal while the finished run is being written interrupts nothing.
    assert done.returncode == (0 if phase == "finish" else 130)
    # From the signal on: how long Python takes to begin is no part of it.
    assert float(done.stdout) < 10
    (folder,) = tmp_path.iterdir()
    report = store.load(folder)
    assert report.interrupted is (phase != "finish")
    assert [host.name for host in report.hosts] == ["a", "b"]
    assert sorted((s.host, s.id) for s in report.steps) == [(h, s) for h in "ab" for s in ("one", "two")]
    check = subprocess.run(["sha256sum", "-c", "--quiet", "MANIFEST.sha256"], cwd=folder, check=False)
    assert check.returncode == 0


def test_a_folder_that_fills_up_is_told_and_ends_with_4(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = store.ReportWriter.create(tmp_path, "test")

    def no_space(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store.ReportWriter, "_write", no_space)
    report = runner.run("test", [Host(name="a")], [Step("k", Kernel())], writer, opened)
    assert [(s.status, s.artefacts) for s in report.steps] == [("done", ())]
    assert [(f.id, f.outcome) for f in report.findings] == [
        ("kernel", Outcome.PASS),
        ("report.incomplete", Outcome.UNKNOWN),
    ]
    assert report.trouble == f"cannot write the report in {writer.folder}: No space left on device"
    assert exit_code(report) == 4


def test_what_a_person_searches_for_is_masked_too(tmp_path: Path) -> None:
    key = "hf_" + "QwErTyUiOpAsDfGhJk12"
    writer = store.ReportWriter.create(tmp_path, "test")
    host = Host(name="a", url="http://me:hunter2x@127.0.0.1:1")

    def opener(_host: Host, redactor: Redactor, _cancelled: threading.Event) -> Session:
        redactor.learn("correct-horse-42")
        raise NoShell(f"a: it said {key!r} and HF_TOKEN=abcdefgh")

    steps = [Step("k", Odd(fault="", pattern=f"{key}|correct-horse-42"))]
    report = runner.run("test", [host], steps, writer, opener)
    assert dict(report.steps[0].settings)["pattern"] == "[redacted]|[redacted]"
    assert report.hosts[0].error == "a: it said '[redacted]' and HF_TOKEN=[redacted]"
    for file in writer.folder.rglob("*"):
        if file.is_file():
            text = file.read_text()
            assert not {word for word in (key, "correct-horse", "hunter2x", "abcdefgh") if word in text}, file


def test_what_turns_out_to_be_a_secret_later_is_masked_in_what_was_written_before(tmp_path: Path) -> None:
    """A bare word in the first answer, and in the facts taken from it, is an API key in the second."""

    def answer(_session: Session, command: Command) -> CommandResult:
        later = b'{"api_key": "correct-horse-42"}' if command.key != "kernel" else b"more"
        first = b"correct-horse-42 " if command.key == "kernel" else b""
        return CommandResult(question=command, exit_code=0, stdout=first + later)

    class Talking(Kernel):
        def collect(self, host: Host) -> Conversation:
            yield ASK
            yield Command(key="info", argv=("uname", "-r"))

        def interpret(self, evidence: Evidence) -> Iterator[Fact | Finding | Gap]:
            yield Discovered(what="x", value=evidence.text("kernel"), origin="o")

    def opener(host: Host, redactor: Redactor, cancelled: threading.Event) -> Session:
        session = Scripted(host, answer)
        session.cancelled, session.redactor = cancelled, redactor
        return session

    writer = store.ReportWriter.create(tmp_path, "test")
    report = runner.run("test", [Host(name="a")], [Step("k", Talking())], writer, opener)
    assert "correct-horse" not in repr(report)
    assert report.steps[0].facts[0] == Discovered(what="x", value="[redacted] more", origin="o")
    for file in writer.folder.rglob("*"):
        assert not file.is_file() or b"correct-horse" not in file.read_bytes(), file
    assert store.load(writer.folder) == report


def test_what_is_logged_while_it_runs_is_masked(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def opener(*_: object) -> Session:
        logging.getLogger("httpcore").warning("headers=%r", [(b"Set-Cookie", b"sid=abcdefgh")])
        raise ValueError("api_key='abcdefgh'")

    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    root = logging.getLogger()
    root.addHandler(handler)
    caplog.set_level(logging.DEBUG)
    try:
        writer = store.ReportWriter.create(tmp_path, "test")
        runner.run("test", [Host(name="a")], [Step("k", Kernel())], writer, opener)
    finally:
        root.removeHandler(handler)
    assert "Set-Cookie" in stream.getvalue()
    assert "Traceback" in stream.getvalue()
    assert "abcdefgh" not in stream.getvalue()


def test_stored_evidence_is_judged_the_same_again(tmp_path: Path) -> None:
    """Of every step of the demo: facts, findings and reasons come out of the folder as they came out of the run."""
    short = ["--set", "contexts=1k,4k", "--set", "step_contexts=1k,2k,4k", "--set", "arms=repeat,far-copy"]
    assert cli.run(["demo", "--reports", str(tmp_path), "-q", *short]) == 1
    (folder,) = tmp_path.iterdir()
    report = store.load(folder)
    done = [step for step in report.steps if step.status == "done"]
    assert len(done) == len(report.steps) - 1 >= 8
    for stored in done:
        kind = probes.load(stored.probe)
        step = Step(stored.id, kind(**dict(stored.settings)))
        again, findings = runner.judge(
            step,
            store.evidence(folder, stored.host, stored.id),
            (),
            lambda _host, _step, key, kept=stored.artefacts: store.artefact_path(kept, key),  # type: ignore[misc]
        )
        assert (again.status, again.reasons, again.facts) == (stored.status, stored.reasons, stored.facts)
        assert findings == [f for f in report.findings if f.step == stored.id]


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
