"""Commands beside a conversation: begun, ended, and taken at the end, however that comes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from ddprobe import runner, store
from ddprobe.blocks import Block
from ddprobe.errors import Unreachable
from ddprobe.model import (
    Begin,
    Command,
    CommandResult,
    Connection,
    Conversation,
    End,
    Evidence,
    Fact,
    Finding,
    Gap,
    Host,
    Probe,
    Question,
    Result,
    Step,
)
from ddprobe.redact import Redactor
from ddprobe.sessions.base import Session
from ddprobe.sessions.running import Running
from tests.silent import SilentWriter

SMI = Command(key="smi", argv=("nvidia-smi", "-L"), timeout=60)
OTHER = Command(key="other", argv=("dcgmi", "discovery", "-l"), timeout=60)
ASK = Command(key="kernel", argv=("uname", "-s"))


class Ticking:
    """Says when it was first told to stop, and what it had seen until then."""

    def __init__(self, session: Roadside, command: Command) -> None:
        self.session = session
        self.command = command
        self.stopped = False

    def stop(self) -> None:
        if not self.stopped:
            self.session.log.append(f"stop {self.command.key}")
        self.stopped = True

    def answer(self) -> CommandResult:
        self.session.log.append(f"answer {self.command.key}")
        return CommandResult(
            question=self.command, exit_code=143, stdout=b"one\ntwo\n", stopped=True, seconds=2.0
        )


class Roadside(Session):
    """Keeps what happened in order."""

    def __init__(self, answer: Callable[[Roadside, Command], CommandResult] | None = None) -> None:
        super().__init__(Host(name="a"), Redactor(), threading.Event())
        self.log: list[str] = []
        self.own = answer or (lambda _s, q: CommandResult(question=q, exit_code=0, stdout=b"Linux\n"))

    @property
    def connection(self) -> Connection:
        return Connection(transport="roadside")

    def _carry(self, questions: tuple[Question, ...]) -> Sequence[Result]:
        self.log += [f"ask {question.key}" for question in questions]
        return [self.own(self, q) for q in questions if isinstance(q, Command)]

    def _begin(self, command: Command) -> Running:
        self.log.append(f"begin {command.key}")
        return Ticking(self, command)


@dataclass(frozen=True, kw_only=True)
class Beside(Probe):
    """A probe whose conversation is the test's."""

    talk: Callable[[], Conversation]

    @classmethod
    def name(cls) -> str:
        return "test.beside"

    def collect(self, host: Host) -> Conversation:
        yield from self.talk()

    def interpret(self, evidence: Evidence) -> Iterator[Fact | Finding | Gap]:
        evidence.text("smi")
        yield from ()

    def show(self, facts: Sequence[Fact]) -> Iterator[Block]:
        yield from ()


def hold(
    talk: Callable[[], Conversation], session: Roadside | None = None
) -> tuple[runner.Collected, list[str]]:
    session = session or Roadside()
    step = Step("s", Beside(talk=talk))
    return runner.collect(step, session.host, session, SilentWriter(), lambda *_: None), session.log


def keys(held: runner.Collected) -> list[str]:
    return [result.key for result in held.evidence.results]


def test_what_was_begun_is_ended_and_its_answer_sent() -> None:
    sent: list[object] = []

    def talk() -> Conversation:
        sent.append((yield Begin(SMI)))
        yield ASK
        sent.append((yield End("smi")))
        yield replace(ASK, key="after")

    held, log = hold(talk)
    assert log == ["begin smi", "ask kernel", "stop smi", "answer smi", "ask after"]
    assert sent[0] is None
    assert isinstance(sent[1], CommandResult)
    assert (sent[1].stopped, sent[1].text) == (True, "one\ntwo\n")
    assert keys(held) == ["kernel", "smi", "after"]
    assert held.broken == ()


def test_two_at_once_end_side_by_side_with_the_conversation() -> None:
    def talk() -> Conversation:
        yield Begin(SMI)
        yield Begin(OTHER)
        yield ASK

    held, log = hold(talk)
    assert log[:3] == ["begin smi", "begin other", "ask kernel"]
    # Both are told to stop before either is waited for.
    assert log[3:5] == ["stop smi", "stop other"]
    assert [word for word in log if word.startswith("answer")] == ["answer smi", "answer other"]
    assert keys(held) == ["kernel", "smi", "other"]


def _bug() -> Conversation:
    yield Begin(SMI)
    yield ASK
    raise ValueError("boom")


def _wants_more() -> Conversation:
    yield Begin(SMI)
    answer = yield ASK
    assert answer.text


@pytest.mark.parametrize(
    ("talk", "answer", "why"),
    [
        (_bug, None, "ValueError: boom"),
        (
            _wants_more,
            lambda _s, q: CommandResult(question=q, failure="the line went dead"),
            "the line went dead",
        ),
    ],
    ids=["a bug", "no answer"],
)
def test_a_conversation_that_breaks_leaves_nothing_running(
    talk: Callable[[], Conversation],
    answer: Callable[[Roadside, Command], CommandResult] | None,
    why: str,
) -> None:
    held, log = hold(talk, Roadside(answer))
    assert [gap for gap in held.broken if why in gap.reason]
    assert log[-1] == "answer smi"
    assert keys(held)[-1] == "smi"


def test_a_host_that_is_lost_leaves_nothing_running() -> None:
    def lost(_session: Roadside, _question: Command) -> CommandResult:
        raise Unreachable("a: the connection is dead")

    held, log = hold(_bug, Roadside(lost))
    assert held.lost is not None
    assert log == ["begin smi", "ask kernel", "stop smi", "answer smi"]
    assert keys(held) == ["smi"]


def test_ctrl_c_leaves_nothing_running_and_keeps_what_it_said() -> None:
    def interrupted(session: Roadside, question: Command) -> CommandResult:
        session.cancelled.set()
        return CommandResult(question=question, failure="interrupted")

    held, log = hold(_bug, Roadside(interrupted))
    assert log == ["begin smi", "ask kernel", "stop smi", "answer smi"]
    assert [gap.reason for gap in held.broken] == ["interrupted"]
    assert held.evidence.text("smi") == "one\ntwo\n"


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ((Begin(SMI), Begin(SMI)), "it began 'smi' twice"),
        ((End("smi"),), "it ended 'smi', which it had not begun"),
        ((Begin(SMI), End("smi"), End("smi")), "it ended 'smi', which it had not begun"),
    ],
)
def test_a_probe_that_confuses_them_has_a_bug(asked: tuple[Begin | End, ...], why: str) -> None:
    def talk() -> Conversation:
        for one in asked:
            _ = yield one

    held, log = hold(talk)
    assert [gap for gap in held.broken if why in gap.reason]
    assert log.count("begin smi") == log.count("answer smi")


def test_what_the_policy_refuses_is_not_begun() -> None:
    def talk() -> Conversation:
        yield Begin(replace(SMI, argv=("nvidia-smi", "-r")))
        yield End("smi")

    held, log = hold(talk)
    assert log == []
    assert held.evidence.command("smi").failure.startswith("refused before it was sent")


@pytest.mark.parametrize("timeout", [None, 0.0, 1e6])
def test_a_loop_needs_an_end_of_its_own(timeout: float | None) -> None:
    loop = ("nvidia-smi", "--query-gpu=index", "--format=csv,noheader,nounits", "-lms", "500")

    def talk() -> Conversation:
        yield Begin(Command(key="smi", argv=loop, timeout=timeout))

    held, log = hold(talk)
    assert log == []
    assert "needs a timeout" in held.evidence.command("smi").failure


def test_a_road_that_cannot_do_it_says_so() -> None:
    class Plain(Roadside):
        _begin = Session._begin

    def talk() -> Conversation:
        yield Begin(SMI)
        yield ASK

    held, log = hold(talk, Plain())
    assert log == ["ask kernel"]
    assert held.evidence.command("smi").failure == "this road carries nothing beside a conversation"


def test_what_it_said_is_redacted() -> None:
    class Leaking(Roadside):
        def _begin(self, command: Command) -> Running:
            self.redactor.learn("hunter2-hunter2-hunter2")
            running = Ticking(self, command)
            said = replace(running.answer(), stdout=b"key hunter2-hunter2-hunter2\n")
            running.answer = lambda: said  # type: ignore[method-assign]
            return running

    held, _ = hold(_bug, Leaking())
    assert b"hunter2" not in held.evidence.command("smi").stdout


@pytest.mark.parametrize(
    ("result", "trouble"),
    [
        (CommandResult(question=SMI, exit_code=143, stopped=True), ""),
        (CommandResult(question=SMI, exit_code=143), "exit code 143"),
        (CommandResult(question=SMI, exit_code=141, stopped=True, truncated=True), "cut at 0 bytes"),
        (
            CommandResult(question=SMI, exit_code=143, timed_out=True, seconds=60),
            "timed out after 60.0 s (0 bytes had come)",
        ),
        (CommandResult(question=SMI, stopped=True, failure="the road failed"), "the road failed"),
    ],
)
def test_being_stopped_is_a_whole_answer(result: CommandResult, trouble: str) -> None:
    assert result.trouble == trouble
    assert result.whole is not bool(trouble)


def test_it_is_kept_in_the_report_and_read_back(tmp_path: Path) -> None:
    session = Roadside()
    writer = store.ReportWriter.create(tmp_path, "test")
    step = Step("s", Beside(talk=_bug))
    report = runner.run("test", [session.host], [step], writer, lambda *_: session)
    (record,) = report.steps
    assert [(a.key, a.exit_code, a.trouble) for a in record.artefacts] == [
        ("kernel", 0, ""),
        ("smi", 143, ""),
    ]
    again = store.evidence(writer.folder, "a", "s").command("smi")
    assert (again.stopped, again.text, again.seconds) == (True, "one\ntwo\n", 2.0)
