"""Where a server's log is found, how much of it is read, and what comes of it: on a made-up host."""

from __future__ import annotations

import copy
import gzip
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TypeVar

import pytest

from ddprobe import readonly
from ddprobe.errors import Unanswered
from ddprobe.facts import DecodeSeries, LogEvent, LogFile, LogTimeline
from ddprobe.lab.install import LOG
from ddprobe.lab.machine import Machine
from ddprobe.lab.scenarios import scenario
from ddprobe.lab.tree import File, Folder, Link
from ddprobe.model import (
    MIB,
    Begin,
    Command,
    CommandResult,
    End,
    Evidence,
    Fact,
    Finding,
    Gap,
    Host,
    Question,
    Result,
)
from ddprobe.parsing import startup_lines
from ddprobe.probes.engine import _log_reading
from ddprobe.probes.engine import logs as probe_module
from ddprobe.probes.engine._log_following import Follower
from ddprobe.probes.engine._log_places import Place
from ddprobe.probes.engine.logs import EngineLogs
from tests.lab_session import LabSession

T = TypeVar("T")
PID = 4711
NOW = 1_790_000_000
"""When the look begins, by the clock of `LabSession`."""
START = datetime(2026, 11, 30, 8, 0, 0)
RUNNER = (
    "Initialized DFLASH draft runner. attention_backend=fa3, model=DFlashDraftModel, block_size=8, "
    "draft_window_size=None, compact_cache=False"
)
SKIPPED = "Parameter model.layers.61.eh_proj.weight not found in params_dict"
ACCESS = "INFO:     127.0.0.1:41000 - POST /generate HTTP/1.1 200 OK"


def stamp(seconds: float) -> str:
    return f"[{START + timedelta(seconds=seconds):%Y-%m-%d %H:%M:%S} TP0]"


def decode(seconds: float, commit: float, tokens: int = 1500, running: int = 1) -> str:
    return (
        f"{stamp(seconds)} Decode batch, #running-req: {running}, #token: {tokens}, token usage: 0.01, "
        f"accept len: {commit:.2f}, accept rate: {(commit - 1) / 7:.2f}, cuda graph: True, "
        "gen throughput (token/s): 100.00, #queue-req: 0"
    )


def text(*lines: str) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


@pytest.fixture(scope="module")
def built() -> Machine:
    return scenario("healthy").build()


@pytest.fixture
def machine(built: Machine) -> Machine:
    return replace(built, tree=copy.deepcopy(built.tree))


def put(
    machine: Machine, content: bytes, path: str = LOG, *, age: int = 0, uid: int = 1000, mode: int = 0o644
) -> None:
    machine.tree.add(path, File(content=content, modified=NOW - age, uid=uid, mode=mode))


def descriptor(machine: Machine, number: int, target: str, pid: int = PID) -> None:
    machine.tree.add(f"/proc/{pid}/fd/{number}", Link(target=target, uid=1000, mode=0o700))


def asked(probe: EngineLogs, session: LabSession) -> Evidence:
    """The probe's whole conversation."""
    results: list[Result] = []
    conversation = probe.collect(session.host)
    try:
        questions = next(conversation)
        while True:
            assert not isinstance(questions, Begin | End)
            several = questions if isinstance(questions, tuple) else (questions,)
            for question in several:
                readonly.check(question)
            answers = session.ask(several)
            results += answers
            questions = conversation.send(answers if isinstance(questions, tuple) else answers[0])
    except StopIteration:
        return Evidence(session.host, tuple(results))


def told(
    machine: Machine, probe: EngineLogs | None = None, host: Host | None = None
) -> tuple[Evidence, list[Fact | Finding | Gap]]:
    probe = probe or EngineLogs()
    evidence = asked(probe, LabSession(machine, host))
    return evidence, list(probe.interpret(evidence))


def only(kind: type[T], items: Sequence[object]) -> T:
    (found,) = [item for item in items if isinstance(item, kind)]
    return found


# --- what is read -------------------------------------------------------------------------------------------


def test_a_small_log_is_read_whole(machine: Machine) -> None:
    put(
        machine,
        text(f"{stamp(0)} {RUNNER}", f"{stamp(5)} {SKIPPED}", ACCESS, decode(60, 3.5), decode(65, 4.5)),
        age=600,
    )
    evidence, items = told(machine)
    log = only(LogFile, items)
    assert (log.path, log.origin, log.server, log.read) == (
        LOG,
        "stderr of pid 4711",
        "sglang pid 4711",
        "whole",
    )
    assert log.age_seconds is not None
    assert 599 <= log.age_seconds <= 605
    assert (log.first, log.last) == ("2026-11-30 08:00:00", "2026-11-30 08:01:05")
    events = {item.kind: item.line for item in items if isinstance(item, LogEvent)}
    assert (events["draft_runner"], events["weights_skipped"]) == (1, 2)
    series = only(DecodeSeries, items)
    assert (series.lines, series.draft_tokens) == (2, 7)
    (window,) = only(LogTimeline, items).windows
    assert (window.lines, window.commit_mean, window.commit_low, window.commit_high) == (2, 4.0, 3.5, 4.5)
    assert (window.tokens_low, window.running_high, window.tok_s) == (1500, 1, 100.0)
    assert {r.key for r in evidence.results if r.key.startswith("log-")} == {
        "log-0-status", "log-0-rotated", "log-0-whole",
    }  # fmt: skip
    for item in items:
        for cite in getattr(item, "source", ()):
            assert evidence.has(cite.artefact)


SMALLER = 5


def large(share: int = 1) -> list[str]:
    """About 10 MiB, or a share of it: a start, then 10,000 s in which every 10 s a line is about decoding, and one warns."""
    count = 100_000 // share
    lines = [f"{stamp(0)} {RUNNER}"]
    for number in range(count):
        seconds = number * 10_000 / count
        if number % (100 // share) == 50 // share:
            lines.append(decode(seconds, 3.0 if number < 0.9 * count else 2.0))
        elif number == 12_345:
            lines.append(f"{stamp(seconds)} {SKIPPED}")
        else:
            lines.append(f"{stamp(seconds)} {ACCESS}")
    return lines


@pytest.fixture
def scaled(monkeypatch: pytest.MonkeyPatch) -> bytes:
    """A log as large beside what is read of it, in less time."""
    monkeypatch.setattr(_log_reading, "WHOLE", _log_reading.WHOLE // SMALLER)
    monkeypatch.setattr(_log_reading, "TAILS", tuple(tail // SMALLER for tail in _log_reading.TAILS))
    return text(*large(SMALLER))


def test_of_a_large_log_beginning_end_and_what_matters(machine: Machine) -> None:
    lines = large()
    content = text(*lines)
    assert 8 * MIB < len(content) < 14 * MIB
    put(machine, content)
    evidence, items = told(machine)
    log = only(LogFile, items)
    assert log.read == "its first 256 KiB, its last 4 MiB, what grep found in all of it"
    assert (log.size, log.decode_lines, log.notes) == (len(content), 1000, ())
    events = {item.kind: item for item in items if isinstance(item, LogEvent)}
    assert events["weights_skipped"].line == 12_345 + 2
    assert SKIPPED in lines[events["weights_skipped"].line - 1]
    assert (events["draft_runner"].line, events["draft_runner"].count) == (1, 1)
    recent = content[-4 * MIB :].count(b"Decode batch")
    assert only(DecodeSeries, items).lines == recent < 1000
    assert sum(len(getattr(r, "stdout", b"")) for r in evidence.results) < 5 * MIB
    assert not [item for item in items if isinstance(item, Gap)]


@pytest.mark.parametrize("end", ["", "\n"], ids=["without an end", "with one"])
def test_a_last_line_longer_than_what_is_read_hides_nothing(
    machine: Machine, scaled: bytes, end: str
) -> None:
    tail = _log_reading.TAILS[0]
    put(machine, scaled + b"z" * (tail + 10) + end.encode())
    evidence, items = told(machine)
    assert evidence.has(f"log-0-tail-{_log_reading.TAILS[1]}")
    assert only(DecodeSeries, items).lines > 100
    assert not [item for item in items if isinstance(item, Gap)]


def test_a_log_that_ends_in_one_line_too_long_to_read_is_not_called_empty(
    machine: Machine, scaled: bytes
) -> None:
    put(machine, scaled + b"z" * (_log_reading.TAILS[-1] + 10))
    _, items = told(machine)
    (gap,) = [item for item in items if isinstance(item, Gap)]
    assert "are one line, of which nothing can be read" in gap.reason


def test_since_reaches_back_only_as_far_as_needed(machine: Machine, scaled: bytes) -> None:
    """The log ends at 10:46:39; it was written 100 s ago."""
    put(machine, scaled, age=100)
    evidence, items = told(machine, EngineLogs(since="2h"))
    log = only(LogFile, items)
    assert log.since in ("2026-11-30 08:48:19", "2026-11-30 08:48:20", "2026-11-30 08:48:21")
    assert evidence.has(f"log-0-tail-{_log_reading.TAILS[1]}")
    assert not evidence.has(f"log-0-tail-{_log_reading.TAILS[2]}")
    # One decode line in 10 s, from 08:48:20 to 10:46:35.
    assert only(DecodeSeries, items).lines in (709, 710)
    evidence, items = told(machine, EngineLogs(since="10:40"))
    assert only(LogFile, items).since == "2026-11-30 10:40:00"
    assert not evidence.has(f"log-0-tail-{_log_reading.TAILS[1]}")
    assert only(DecodeSeries, items).lines == 40
    # Start-up facts are of the whole log whatever was asked for.
    assert "draft_runner" in {item.kind for item in items if isinstance(item, LogEvent)}


def test_windows_are_of_one_length_and_the_collapse_is_seen(machine: Machine, scaled: bytes) -> None:
    put(machine, scaled)
    _, items = told(machine, EngineLogs(since="09:00"))
    timeline = only(LogTimeline, items)
    assert timeline.every == "10 min"
    assert [window.start[11:16] for window in timeline.windows][:2] == ["09:00", "09:10"]
    assert timeline.windows[0].lines == 60
    # The last tenth begins at 10:30:00.
    assert {w.start[11:16]: w.commit_mean for w in timeline.windows if w.start[11:16] >= "10:20"} == {
        "10:20": 3.0, "10:30": 2.0, "10:40": 2.0,
    }  # fmt: skip


def test_without_times_since_is_a_gap_and_windows_are_of_lines(machine: Machine) -> None:
    line = "slot print_timing: id  0 | task 1 | draft acceptance = 0.50000 (   46 accepted /    92 generated), mean len =  3.00"
    put(machine, text(*[line] * 30))
    _, items = told(machine, EngineLogs(since="1h"))
    assert "its lines tell no time" in only(Gap, items).reason
    timeline = only(LogTimeline, items)
    assert timeline.every == "3 lines"
    assert [window.start for window in timeline.windows][:2] == ["line 1", "line 4"]
    assert {(window.commit_mean, window.rate_mean) for window in timeline.windows} == {(3.0, 0.5)}


def test_a_log_that_says_nothing_of_decoding_is_unknown(machine: Machine) -> None:
    put(machine, text(*[f"{stamp(n)} {ACCESS}" for n in range(9)]))
    _, items = told(machine)
    assert only(Finding, items).id == "logs.silent"
    assert only(Finding, items).outcome.label == "unknown"


@pytest.mark.parametrize(
    ("content", "uid", "reason"),
    [(gzip.compress(b"x" * 100, mtime=0), 1000, "packed (gzip)"), (b"secret", 0, "Permission denied")],
)
def test_what_cannot_be_read_is_a_gap(machine: Machine, content: bytes, uid: int, reason: str) -> None:
    put(machine, content, uid=uid, mode=0o600)
    _, items = told(machine)
    assert reason in only(Gap, items).reason
    assert not [item for item in items if isinstance(item, LogFile)]


def test_rotated_parts_are_named(machine: Machine) -> None:
    put(machine, text(decode(0, 2.0)))
    for name in (f"{LOG}.1", f"{LOG}.2.gz", f"{LOG}-20261129"):
        put(machine, b"x", name)
    _, items = told(machine)
    (note,) = only(LogFile, items).notes
    assert note == "older parts beside it were not read: sglang.log-20261129, sglang.log.1, sglang.log.2.gz"


@pytest.mark.parametrize(("path", "reason"), [("/nowhere.log", "no such file"), ("/tmp", "is a directory")])
def test_a_log_that_was_named_and_is_none(machine: Machine, path: str, reason: str) -> None:
    evidence, items = told(machine, EngineLogs(log=path))
    assert reason in only(Gap, items).reason
    assert not evidence.has("candidates"), "nothing is searched for where the log is named"


def test_the_hosts_file_names_it(machine: Machine) -> None:
    put(machine, text(decode(0, 2.0)), "/srv/it's here.log")
    _, items = told(machine, host=Host(name="gpu1", log="/srv/it's here.log"))
    assert only(LogFile, items).origin == "the hosts file"
    assert only(DecodeSeries, items).lines == 1


# --- where it is ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("/dev/null", "nothing is kept"),
        ("/dev/pts/3", "goes to a terminal (/dev/pts/3)"),
        ("/home/lab/old.log (deleted)", "/home/lab/old.log, which was deleted"),
        ("socket:[881]", "is a socket, and of no systemd unit"),
        ("pipe:[882]", "what reads it writes to no file"),
        ("anon_inode:[eventfd]", "goes to anon_inode"),
    ],
)
def test_output_that_no_file_keeps(machine: Machine, target: str, reason: str) -> None:
    for number in (1, 2):
        descriptor(machine, number, target)
    _, items = told(machine)
    gap = only(Gap, items)
    assert gap.subject == "log of sglang pid 4711"
    assert reason in gap.reason
    assert "--log PATH" in gap.reason


def test_a_pipe_into_a_program_that_writes_a_file(machine: Machine) -> None:
    for number in (1, 2):
        descriptor(machine, number, "pipe:[882]")
    tee = 4690
    descriptor(machine, 0, "pipe:[882]", tee)
    descriptor(machine, 1, "/dev/pts/1", tee)
    descriptor(machine, 3, "/srv/run/server.log", tee)
    put(machine, text(decode(0, 2.0)), "/srv/run/server.log")
    _, items = told(machine)
    log = only(LogFile, items)
    assert (log.path, log.origin) == (
        "/srv/run/server.log",
        "written by pid 4690, which reads stderr of pid 4711",
    )


def container(machine: Machine) -> str:
    identifier = "3f2a9c1b7d4e5f60718293a4b5c6d7e8f90123456789abcdef0123456789abcd"
    cgroup = f"0::/system.slice/docker-{identifier}.scope\n"
    machine.tree.add(f"/proc/{PID}/cgroup", File(content=cgroup.encode(), size=0, uid=1000))
    for number in (1, 2):
        descriptor(machine, number, "pipe:[883]")
    return f"/var/lib/docker/containers/{identifier}/{identifier}-json.log"


def test_what_a_container_s_runtime_keeps(machine: Machine) -> None:
    path = container(machine)
    line = '{{"log":"{}\\n","stream":"stderr","time":"2026-11-30T07:00:00.1Z"}}'
    put(machine, text(line.format(f"{stamp(0)} {SKIPPED}"), line.format(decode(60, 2.0))), path)
    _, items = told(machine)
    assert only(LogFile, items).path == path
    assert only(LogFile, items).last == "2026-11-30 08:01:00"
    assert only(DecodeSeries, items).lines == 1
    event = next(item for item in items if isinstance(item, LogEvent) and item.kind == "weights_skipped")
    assert event.text == SKIPPED


def test_a_container_s_log_that_only_root_may_see(machine: Machine) -> None:
    path = container(machine)
    put(machine, b"x", path, uid=0, mode=0o600)
    machine.tree.add("/var/lib/docker", Folder(mode=0o700))
    _, items = told(machine)
    assert "docker logs CONTAINER" in only(Gap, items).reason


@pytest.mark.parametrize(
    ("cgroup", "option", "unit"),
    [
        ("/system.slice/sglang@kimi.service", "-u", "sglang@kimi.service"),
        (
            "/user.slice/user-1000.slice/user@1000.service/app.slice/vllm.service",
            "--user-unit",
            "vllm.service",
        ),
    ],
)
def test_the_journal_of_its_unit(machine: Machine, cgroup: str, option: str, unit: str) -> None:
    machine.tree.add(f"/proc/{PID}/cgroup", File(content=f"0::{cgroup}\n".encode(), size=0, uid=1000))
    for number in (1, 2):
        descriptor(machine, number, "socket:[884]")
    evidence, items = told(machine)
    command = evidence.command("log-0-journal").question
    assert command.argv[-2:] == (option, unit)
    assert f"no line of {unit} that this user may read" in only(Gap, items).reason
    kept = "2026-11-30T07:00:00+0000 gpu1 sglang[4711]: "
    answer = replace(
        evidence.command("log-0-journal"), stdout=text(kept + decode(0, 2.0), kept + decode(9, 3.0))
    )
    others = tuple(r for r in evidence.results if r.key != "log-0-journal")
    items = list(EngineLogs().interpret(Evidence(evidence.host, (*others, answer))))
    assert only(DecodeSeries, items).lines == 2
    assert only(LogFile, items).last == "2026-11-30 08:00:09"


def test_no_server_is_a_warning_and_no_process_table_is_unanswered(machine: Machine) -> None:
    machine.tree.add(f"/proc/{PID}/cmdline", File(content=b"sleep\0", size=0, uid=1000))
    for pid in (4801, 4802, 4803, 4804, 4805, 4806, 4807, 4808, 4820):
        if f"/proc/{pid}/cmdline" in machine.tree.nodes:
            machine.tree.add(f"/proc/{pid}/cmdline", File(content=b"sleep\0", size=0, uid=1000))
    _, items = told(machine)
    assert only(Finding, items).id == "logs.none"
    with pytest.raises(Unanswered):
        list(EngineLogs().interpret(Evidence(Host(name="gpu1"))))


# --- following ----------------------------------------------------------------------------------------------


class Growing(LabSession):
    """A host whose log is written between two looks."""

    def __init__(self, machine: Machine, steps: list[bytes]) -> None:
        super().__init__(machine)
        self.steps = steps

    def _carry(self, questions: tuple[Question, ...]) -> Sequence[Result]:
        if questions[0].key.startswith("follow-") and self.steps:
            put(self.machine, self.steps.pop(0))
        return super()._carry(questions)


def test_what_is_added_is_read_once_and_in_order(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe_module, "ROUNDS", 6)
    first = text(decode(0, 2.0))
    half = text(decode(10, 3.0))
    put(machine, first)
    whole = first + half + text(decode(20, 4.0), f"{stamp(21)} {SKIPPED}")
    grown = [first + half[:40], first + half, whole]
    evidence = asked(EngineLogs(follow=True), Growing(machine, grown))
    items = list(EngineLogs(follow=True).interpret(evidence))
    assert only(DecodeSeries, items).lines == 3
    assert "weights_skipped" in {item.kind for item in items if isinstance(item, LogEvent)}
    came = b"".join(
        getattr(r, "stdout", b"")
        for r in evidence.results
        if r.key.startswith("follow-") and r.key.endswith("lines")
    )
    assert first + came == whole


def test_a_log_that_is_cut_short_while_it_is_followed(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe_module, "ROUNDS", 5)
    before = text(decode(0, 2.0), decode(10, 2.0))
    put(machine, before)
    after = text(decode(20, 5.0))
    evidence = asked(EngineLogs(follow=True), Growing(machine, [before, after]))
    items = list(EngineLogs(follow=True).interpret(evidence))
    assert only(DecodeSeries, items).lines == 3
    assert "cut short or replaced" in only(LogFile, items).notes[0]


def gone(machine: Machine, path: str = LOG) -> None:
    """The file is renamed; one that is put there again is another."""
    old = machine.tree.nodes.pop(path)
    folder, _, name = path.rpartition("/")
    machine.tree.children[folder].remove(name)
    machine.tree.add(f"{path}.1", old)


class Turning(LabSession):
    """A host where something happens to the log before a look, or (`between`) after its bytes were read."""

    def __init__(
        self, machine: Machine, turns: list[Callable[[], None] | None], *, between: bool = False
    ) -> None:
        super().__init__(machine)
        self.turns = turns
        self.between = between

    def _carry(self, questions: tuple[Question, ...]) -> Sequence[Result]:
        if not questions[0].key.startswith("follow-") or not self.turns:
            return super()._carry(questions)
        turn = self.turns.pop(0) or (lambda: None)
        if not self.between:
            turn()
            return super()._carry(questions)
        first = super()._carry(questions[:-1]) if questions[:-1] else ()
        turn()
        return (*first, *super()._carry(questions[-1:]))


Followed = Callable[[Turning], list[Fact | Finding | Gap]]


@pytest.fixture
def followed(monkeypatch: pytest.MonkeyPatch) -> Followed:
    monkeypatch.setattr(probe_module, "ROUNDS", 8)

    def follow(session: Turning) -> list[Fact | Finding | Gap]:
        probe = EngineLogs(follow=True)
        return list(probe.interpret(asked(probe, session)))

    return follow


BEFORE = text(decode(0, 2.0), decode(10, 2.0))
MISSED = "lines written between two looks may be missing"


@pytest.mark.parametrize("between", [False, True])
@pytest.mark.parametrize("size", [1, 2, 5], ids=["shorter", "as long", "longer"])
def test_a_log_that_is_rotated_by_renaming_is_followed_on(
    machine: Machine, followed: Followed, size: int, between: bool
) -> None:
    put(machine, BEFORE)
    more = BEFORE + text(decode(20, 2.0))

    def rotate() -> None:
        gone(machine)
        put(machine, text(*(decode(30 + n, 5.0) for n in range(size))))

    session = Turning(machine, [None, lambda: put(machine, more), None, rotate], between=between)
    items = followed(session)
    assert only(DecodeSeries, items).lines == 3 + size
    (gap,) = [item for item in items if isinstance(item, Gap)]
    assert (gap.subject, gap.reason) == (LOG, f"it was cut short or replaced while it was followed: {MISSED}")
    assert only(LogFile, items).notes[0].endswith("its new beginning was read")


def test_bytes_of_another_file_are_not_taken_for_those_that_were_asked_for(
    machine: Machine, followed: Followed
) -> None:
    """The log is replaced after a look found it longer, before its bytes are read."""
    put(machine, BEFORE)

    def rotate() -> None:
        gone(machine)
        put(machine, text(*(decode(30 + n, 5.0) for n in range(9))))

    more = BEFORE + text(decode(20, 2.0))
    items = followed(Turning(machine, [lambda: put(machine, more), rotate]))
    assert only(DecodeSeries, items).lines == 2 + 9
    assert len([item for item in items if isinstance(item, Gap)]) == 1


def test_a_log_that_is_copied_and_cut_short_is_followed_on(machine: Machine, followed: Followed) -> None:
    put(machine, BEFORE)
    turns: list[Callable[[], None] | None] = [
        lambda: put(machine, b""),
        lambda: put(machine, text(decode(20, 5.0))),
        None,
        lambda: put(machine, b""),
        None,
        lambda: put(machine, text(decode(40, 5.0))),
    ]
    items = followed(Turning(machine, turns))
    assert only(DecodeSeries, items).lines == 4
    (gap,) = [item for item in items if isinstance(item, Gap)]
    assert gap.reason == f"it was cut short or replaced while it was followed 2 times: {MISSED}"


def test_a_log_that_goes_away_and_comes_back_is_followed_on(machine: Machine, followed: Followed) -> None:
    put(machine, BEFORE)
    after = text(*(decode(30 + n, 5.0) for n in range(6)))
    turns: list[Callable[[], None] | None] = [None, lambda: gone(machine), None, lambda: put(machine, after)]
    items = followed(Turning(machine, turns))
    assert only(DecodeSeries, items).lines == 2 + 6
    (gap,) = [item for item in items if isinstance(item, Gap)]
    assert MISSED in gap.reason


def test_a_log_that_stays_away_is_told_so(machine: Machine, followed: Followed) -> None:
    put(machine, BEFORE)
    items = followed(Turning(machine, [None, lambda: gone(machine)]))
    assert only(DecodeSeries, items).lines == 2
    (gap,) = [item for item in items if isinstance(item, Gap)]
    assert gap.reason == "while it was followed it went away: there is no such file"


def test_a_number_that_is_given_again_is_another_file() -> None:
    def answer(key: str, said: str, exit_code: int = 0) -> CommandResult:
        question = Command(key=key, argv=("stat", LOG), exits=(0, 1))
        error = b"" if said else b"stat: cannot statx '/x': No such file or directory\n"
        return CommandResult(question=question, exit_code=exit_code, stdout=said.encode(), stderr=error)

    def size(number: int) -> str:
        return f"regular file|{number}|644|lab|1796053600|77\n"

    follower = Follower()
    assert list(follower.take([answer("log-0-status", size(100))])) == []
    assert list(follower.take([answer("follow-0-0-status", size(120))])) == []
    assert list(follower.take([answer("follow-1-0-status", "", 1)])) == []
    assert follower.gone(0) == "there is no such file"
    assert [each.anew for each in follower.take([answer("follow-2-0-status", size(130))])] == [True]
    assert (follower.wanted(0), follower.times(0), follower.gone(0)) == ((0, 130), 1, "")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "it is empty"),
        (b"\n \n\n", "it holds no text"),
        (bytes(range(256)) * 40, "it is no text"),
        (b"\0" * 4096, "it holds no text"),
    ],
)
def test_a_log_without_text_is_a_gap(machine: Machine, content: bytes, reason: str) -> None:
    put(machine, content)
    _, items = told(machine)
    assert only(Gap, items).reason.startswith(reason)
    assert not [item for item in items if isinstance(item, LogFile | Finding)]


def test_a_log_in_an_old_encoding_or_behind_a_hole_is_one(machine: Machine) -> None:
    line = decode(0, 2.0).encode()
    for content in (b"\0" * 3000 + line, line + "modèle chargé, prêt".encode("latin-1") * 20 + b"\n" + line):
        put(machine, content + b"\n")
        _, items = told(machine)
        assert only(DecodeSeries, items).lines >= 1


# --- what matters -------------------------------------------------------------------------------------------


def test_the_search_finds_every_line_that_the_catalogue_knows() -> None:
    """A needle is text of the line itself, so a line made of it alone must be found."""
    from ddprobe.lab.ere import compile_pattern

    pattern = compile_pattern(_log_reading.SIGNS, kind="extended", ignore_case=False, words=False)
    for row in startup_lines.CATALOGUE:
        if row.needle not in ("EngineCore", "draft"):
            assert pattern.search(f"x {row.needle} y".encode()), row.needle
    for line in (
        "Traceback (most recent call last):",
        "ValueError: no",
        "torch.OutOfMemoryError: CUDA out of memory",
        "(EngineCore pid=7) ERROR EngineCore failed to start.",
        "llama_model_load: failed to load draft model",
        "RuntimeError",
    ):
        assert pattern.search(line.encode()), line
    for line in (
        decode(0, 2.0),
        f"{stamp(0)} {ACCESS}",
        "slot print_timing: id  0 | task 1 | draft acceptance = 0.5 (4 accepted / 8 generated)",
        "(EngineCore pid=7) INFO 11-30 15:31:40 [loggers.py:259] Engine 000: Avg prompt throughput: 0.0 tokens/s",
    ):
        assert not pattern.search(line.encode()), line


def test_what_is_added_is_asked_for_to_the_byte() -> None:
    command = _log_reading.added(3, 0, Place("/srv/x.log", "as named"), 10, 50)
    assert command.argv == ("tail", "-c", "+11", "/srv/x.log")
    assert command.cap == 40
    readonly.check(command)
