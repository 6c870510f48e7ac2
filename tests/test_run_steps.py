"""A run of steps that are not all known beforehand: skipped, unknown, out of time, side by side, alone."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from ddprobe import probes, runner, store
from ddprobe.blocks import Block
from ddprobe.errors import NoShell
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
    Outcome,
    Probe,
    Question,
    Report,
    Result,
    exit_code,
)
from ddprobe.redact import Redactor
from ddprobe.running import gates, sharing
from ddprobe.running.course import Decide, Done, NotNow, Stage
from ddprobe.running.sharing import Line, OutOfTime, StepSession
from ddprobe.sessions.base import Session


def question(key: str, timeout: float | None = None) -> Command:
    return Command(key=key, argv=("uname", "-s"), timeout=timeout)


@dataclass(frozen=True, kw_only=True)
class Ask(Probe):
    """Asks some questions, one after another."""

    keys: str = "one"

    @classmethod
    def name(cls) -> str:
        return "host.ask"

    def collect(self, host: Host) -> Conversation:
        for key in self.keys.split():
            yield question(key)

    def interpret(self, evidence: Evidence) -> Iterator[Fact | Finding | Gap]:
        for key in self.keys.split():
            evidence.text(key)
        yield Finding(id="said", outcome=Outcome.PASS, subject="s", summary="fine")

    def show(self, facts: Sequence[Fact]) -> Iterator[Block]:
        yield from ()


@dataclass(frozen=True, kw_only=True)
class Measure(Ask):
    """The same, and nothing may run beside it."""

    measures: ClassVar[bool] = True


class Road(Session):
    """Notes what travels together, and takes its time."""

    def __init__(self, host: Host, seconds: float = 0.0, dies_at: str = "") -> None:
        super().__init__(host, Redactor(), threading.Event())
        self.seconds = seconds
        self.dies_at = dies_at
        self.calls: list[tuple[str, ...]] = []
        self.timeouts: list[float | None] = []
        self.go = threading.Event()
        self.go.set()

    @property
    def connection(self) -> Connection:
        return Connection(transport="scripted")

    def _carry(self, questions: tuple[Question, ...]) -> Sequence[Result]:
        self.calls.append(tuple(q.key for q in questions))
        self.timeouts += [q.timeout for q in questions]
        if self.dies_at in self.calls[-1]:
            raise NoShell("h: it is gone")
        self.go.wait(10)
        time.sleep(self.seconds)
        return [
            CommandResult(question=q, exit_code=0, stdout=q.key.encode())
            for q in questions
            if isinstance(q, Command)
        ]


def always(probe: Probe) -> Decide:
    return lambda _host, _over: probe


def stage(id: str, decide: Decide | Probe, *needs: str, timeout: float | None = None) -> Stage:
    measures = isinstance(decide, Probe) and decide.measures
    return Stage(
        id=id,
        probe="host.ask",
        decide=always(decide) if isinstance(decide, Probe) else decide,
        needs=needs,
        measures=measures,
        timeout=timeout,
    )


@pytest.fixture(autouse=True)
def known_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    load = probes.load
    monkeypatch.setattr(probes, "load", lambda name: Ask if name == "host.ask" else load(name))


def go(tmp_path: Path, stages: Sequence[Stage], road: Road | None = None) -> tuple[Report, Road]:
    road = road or Road(Host(name="h"))

    def opener(_host: Host, redactor: Redactor, cancelled: threading.Event) -> Session:
        road.cancelled, road.redactor = cancelled, redactor
        return road

    writer = store.ReportWriter.create(tmp_path, "test")
    report = runner.run("test", [Host(name="h")], stages, writer, opener)
    assert store.load(writer.folder) == report
    return report, road


def told(report: Report) -> list[tuple[str, str, tuple[str, ...]]]:
    return [(step.id, step.status, step.reasons) for step in report.steps]


def test_what_is_not_wanted_is_skipped_and_what_is_not_known_is_unknown(tmp_path: Path) -> None:
    def buggy(_host: Host, _over: Mapping[str, Done]) -> Probe | NotNow:
        raise ValueError("boom")

    stages = (
        stage("skipped", lambda *_: NotNow("skipped", "the weather is fine")),
        stage("unknown", lambda *_: NotNow("incomplete", "nobody said")),
        stage("buggy", buggy),
        stage("last", Ask(), "skipped", "unknown", "buggy"),
    )
    report, road = go(tmp_path, stages)
    skipped, unknown, bug, last = told(report)
    assert skipped == ("skipped", "skipped", ("the weather is fine",))
    assert unknown == ("unknown", "incomplete", ("nobody said",))
    assert bug[1] == "incomplete"
    assert bug[2][0].startswith("ddprobe has a bug in host.ask: ValueError: boom")
    assert last == ("last", "done", ())
    assert road.calls == [("one",)]
    assert [(f.step, f.id, f.outcome.label) for f in report.findings] == [
        ("unknown", "unanswered", "unknown"),
        ("buggy", "unanswered", "unknown"),
        ("last", "said", "pass"),
    ]
    assert exit_code(report) == 4


def test_a_step_sees_what_the_steps_before_it_came_to(tmp_path: Path) -> None:
    seen: list[tuple[str, str]] = []

    def look(_host: Host, over: Mapping[str, Done]) -> Probe:
        seen.extend((name, done.record.status) for name, done in over.items())
        return Ask(keys="two")

    report, road = go(tmp_path, (stage("first", Ask()), stage("then", look, "first")))
    assert seen == [("first", "done")]
    assert road.calls == [("one",), ("two",)]
    assert exit_code(report) == 0


def test_a_host_on_which_nothing_is_wanted_is_not_connected_to(tmp_path: Path) -> None:
    def opener(*_: object) -> Session:
        raise AssertionError("it was")

    writer = store.ReportWriter.create(tmp_path, "test")
    stages = (stage("a", lambda *_: NotNow("skipped", "--skip")),)
    report = runner.run("test", [Host(name="h")], stages, writer, opener)
    assert [(host.error, host.connection) for host in report.hosts] == [("", None)]
    assert exit_code(report) == 0


def test_a_steps_timeout_ends_it_and_no_other(tmp_path: Path) -> None:
    stages = (
        stage("slow", Ask(keys="one two three"), timeout=1.5),
        stage("next", Ask(keys="four"), "slow"),
    )
    report, road = go(tmp_path, stages, Road(Host(name="h"), seconds=0.9))
    slow, after = report.steps
    assert (slow.status, after.status) == ("incomplete", "done")
    assert slow.reasons == (
        "slow: the step's timeout of 1.5 s was over before all was asked",
        "three: was not asked",
    )
    # What was answered in time is kept, and no question was given more than what was left.
    assert [kept.key for kept in slow.artefacts] == ["one", "two"]
    assert road.calls == [("one",), ("two",), ("four",)]
    first, second, other = road.timeouts
    assert first is not None
    assert 1.0 < first <= 1.5
    assert second is not None
    assert second <= 0.6
    assert other is None


def test_independent_steps_ask_side_by_side_in_the_order_planned(tmp_path: Path) -> None:
    stages = [stage(name, Ask(keys=f"{name}1 {name}2 {name}3")) for name in "abcd"]
    report, road = go(tmp_path, stages, Road(Host(name="h"), seconds=0.1))
    # One after another they would be 12 calls; at worst one step asks first and the others together.
    assert len(road.calls) < 9
    assert sorted(key for call in road.calls for key in call) == sorted(
        f"{name}{number}" for name in "abcd" for number in "123"
    )
    assert [step.id for step in report.steps] == list("abcd")
    assert {step.status for step in report.steps} == {"done"}
    for step in report.steps:
        assert [kept.key for kept in step.artefacts] == [f"{step.id}{number}" for number in "123"]


def test_nothing_runs_beside_a_measurement(tmp_path: Path) -> None:
    stages = (
        stage("a", Ask(keys="a1 a2")),
        stage("b", Ask(keys="b1 b2")),
        stage("m", Measure(keys="m1 m2 m3")),
        stage("c", Ask(keys="c1")),
        stage("n", Measure(keys="n1 n2")),
    )
    report, road = go(tmp_path, stages, Road(Host(name="h"), seconds=0.02))
    calls = ["+".join(sorted({key[0] for key in call})) for call in road.calls]
    first = calls.index("m")
    assert set("".join(calls[:first])) <= set("ab+")
    assert calls[first:] == ["m", "m", "m", "c", "n", "n"]
    assert [step.status for step in report.steps] == ["done"] * 5


def test_a_host_lost_by_one_step_is_lost_for_those_beside_it(tmp_path: Path) -> None:
    stages = (stage("a", Ask(keys="a1")), stage("b", Ask(keys="b1 b2")), stage("c", Ask(), "a", "b"))
    report, _ = go(tmp_path, stages, Road(Host(name="h"), dies_at="b2"))
    assert report.hosts[0].error == "h: it is gone"
    assert [step.status for step in report.steps] == ["done", "incomplete", "not_run"]
    assert exit_code(report) == 3


def test_what_is_asked_while_the_road_is_busy_travels_together_next() -> None:
    road = Road(Host(name="h"))
    line = Line(road)
    road.go.clear()
    answers: dict[str, str] = {}

    def ask(*keys: str) -> None:
        for key, result in zip(keys, line.ask([question(key) for key in keys]), strict=True):
            assert isinstance(result, CommandResult)
            answers[key] = result.text

    def begin(*keys: str) -> threading.Thread:
        thread = threading.Thread(target=ask, args=keys, daemon=True)
        thread.start()
        return thread

    threads = [begin("one")]
    until(lambda: road.calls == [("one",)])
    threads += [begin("two", "three"), begin("four")]
    until(lambda: len(line._waiting) == 2)
    road.go.set()
    for thread in threads:
        thread.join(10)
    assert [len(call) for call in road.calls] == [1, 3]
    assert answers == {key: key for key in ("one", "two", "three", "four")}


def until(true: object) -> None:
    limit = time.monotonic() + 10
    while not true() and time.monotonic() < limit:  # type: ignore[operator]
        time.sleep(0.005)
    assert true()  # type: ignore[operator]


def test_a_step_session_keeps_to_its_limit() -> None:
    road = Road(Host(name="h", command_timeout=25))
    session = StepSession(Line(road), 5.0)
    session.ask([question("short", 2.0), question("long", 60.0), question("unset")])
    assert road.timeouts[0] == 2.0
    assert all(value is not None and 4 < value <= 5 for value in road.timeouts[1:])
    assert StepSession(Line(road), None).ask([question("free", 60.0)])[0].key == "free"
    assert road.timeouts[-1] == 60.0
    over = StepSession(Line(road), 0.0)
    with pytest.raises(OutOfTime, match="the step's timeout of 0 s was over"):
        over.ask([question("late")])
    assert road.calls[-1] == ("free",)


class Hanging(Road):
    """On it nothing answers: each question takes all of its time, one after another, by a clock of its own."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now

    def _carry(self, questions: tuple[Question, ...]) -> Sequence[Result]:
        self.now += sum(asked.timeout or self.host.command_timeout for asked in questions)
        return super()._carry(questions)


def test_questions_that_hang_together_do_not_outlast_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    road = Hanging(Host(name="h", command_timeout=25))
    monkeypatch.setattr(sharing, "time", road)
    session = StepSession(Line(road), 60.0)
    answers = session.ask([question(str(number)) for number in range(20)])
    assert road.now == 60
    # Two fit with all of their time, the third gets the rest; the others have failed, and say why.
    assert road.calls == [("0", "1"), ("2",)]
    assert road.timeouts == [None, None, 10]
    assert [answer.key for answer in answers] == [str(number) for number in range(20)]
    assert [bool(answer.failure) for answer in answers] == [False] * 3 + [True] * 17
    assert answers[-1].failure == "the step's timeout of 60 s was over before all was asked"
    with pytest.raises(OutOfTime):
        session.ask([question("late")])


def test_waiting_for_the_road_counts_too() -> None:
    road = Road(Host(name="h"))
    line = Line(road)
    road.go.clear()
    other = threading.Thread(target=line.ask, args=([question("other")],), daemon=True)
    other.start()
    until(lambda: road.calls == [("other",)])
    began = time.monotonic()
    with pytest.raises(OutOfTime):
        StepSession(line, 0.3).ask([question("mine")])
    assert time.monotonic() - began < 2
    road.go.set()
    other.join(10)
    # Whoever was too late is not asked afterwards either, and the road is free again.
    assert [answer.key for answer in StepSession(line, 5.0).ask([question("next")])] == ["next"]
    assert road.calls == [("other",), ("next",)]


def test_a_place_is_given_back_when_it_was_held_long_enough_and_only_once() -> None:
    gate, cancelled = threading.Semaphore(1), threading.Event()
    with gates.place(gate, cancelled, 0.05):
        until(lambda: gate._value == 1)
        with gates.place(gate, cancelled):
            assert gate._value == 0
        assert gate._value == 1
    assert gate._value == 1
    with gates.place(gate, cancelled):
        cancelled.set()
        with gates.place(gate, cancelled):  # nobody waits once the run is interrupted
            assert gate._value == 0
    assert gate._value == 1
