"""Commands beside a conversation, on real shells and real SSH servers: stopped at once, whole, and nothing left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from ddprobe import runner
from ddprobe.blocks import Block
from ddprobe.model import Command, CommandResult, Conversation, Evidence, Fact, Host, Probe, Step
from ddprobe.probes.gpu import _samples, _sampling
from ddprobe.redact import Redactor
from ddprobe.sessions.base import Session
from ddprobe.sessions.running import Beside, InShell, Running
from ddprobe.sessions.shell import MAX_BESIDE, ShellSession
from ddprobe.sessions.ssh import SshSession
from tests.real import sshd as real
from tests.real.conftest import OpenSession, StartServer
from tests.real.sshd import carrying, descendants, running, tell
from tests.real.test_script import SHELLS, ShellOnly
from tests.silent import SilentWriter

pytestmark = pytest.mark.usefixtures("laptop")
ROOT = Path(__file__).parent.parent.parent
COUNTS = "i=0; while :; do i=$((i+1)); echo line $i; sleep 0.1; done"
STUBBORN = "trap '' TERM HUP; " + COUNTS
FORKS = "setsid sleep 67 & (sleep 67 &); " + COUNTS


def begin(session: Session, line: str, **more: Any) -> Running:
    """A shell's line past the policy: what the policy would never let through is what the road must stand."""
    return session._begin(_command(line, **more))


def _command(line: str, **more: Any) -> Command:
    given: dict[str, Any] = {"key": "b", "argv": ("sh", "-c", line), "timeout": 30.0}
    return Command(**(given | more))


def end(one: Running) -> tuple[CommandResult, float]:
    """Its answer, and the seconds that stopping took."""
    before = time.monotonic()
    one.stop()
    return one.answer(), time.monotonic() - before


def token(session: Session) -> str:
    return cast(ShellSession, session)._token


def gone(find: Callable[[], list[Any]], seconds: float = 5.0) -> list[Any]:
    """What `find` still finds after that time; usually nothing, at once."""
    limit = time.monotonic() + seconds
    while (left := find()) and time.monotonic() < limit:
        time.sleep(0.05)
    return left


def under_way(session: Session, processes: int = 1, seconds: float = 0.5) -> None:
    """Until so many processes of the session run, and that much longer."""
    assert gone(lambda: [] if len(carrying(token(session))) >= processes else [0], 10) == []
    time.sleep(seconds)


def lines(result: CommandResult) -> list[str]:
    return result.stdout.decode().splitlines()


@pytest.fixture(params=["ssh", "openssh", "local"])
def opened(request: pytest.FixtureRequest, server: real.Server, session: OpenSession) -> Session:
    return session(
        Host(name="here", transport="local")
        if request.param == "local"
        else server.host(transport=request.param)
    )


def test_it_is_stopped_within_a_second_and_said_all(opened: Session) -> None:
    one = begin(opened, COUNTS)
    asked = opened.ask([Command(key=str(n), argv=("echo", str(n)), alone=n > 1) for n in range(4)])
    assert [answer.text for answer in asked] == [f"{n}\n" for n in range(4)]
    under_way(opened, seconds=1.0)
    result, seconds = end(one)
    assert seconds < 1
    assert (result.stopped, result.trouble, result.exit_code) == (True, "", 143)
    said = lines(result)
    assert len(said) >= 5
    assert said == [f"line {n}" for n in range(1, len(said) + 1)]
    assert gone(lambda: carrying(token(opened))) == []
    assert opened.sweep() == 0


def test_two_at_once_and_no_third(opened: Session) -> None:
    both = [begin(opened, f"while :; do echo {name}; sleep 0.1; done") for name in "ab"]
    assert len(both) == MAX_BESIDE
    third, _ = end(begin(opened, "echo c"))
    assert "2 commands run already" in third.failure
    under_way(opened, 3)
    for one in both:
        one.stop()
    answers = [one.answer() for one in both]
    assert [set(lines(answer)) for answer in answers] == [{"a"}, {"b"}]
    assert all(answer.stopped for answer in answers)
    # They make room.
    fourth, _ = end(begin(opened, "echo d; exec sleep 68"))
    assert fourth.failure == ""
    assert gone(lambda: carrying(token(opened))) == []


@pytest.mark.parametrize("words", SHELLS.values(), ids=SHELLS.keys())
class TestOnEveryShell:
    """dash, bash and busybox ash read and signal in their own ways."""

    @pytest.mark.parametrize(("line", "most"), [(COUNTS, 1.0), (STUBBORN, 3.0), (FORKS, 3.0)])
    def test_nothing_is_left(self, words: tuple[str, ...], line: str, most: float) -> None:
        session = ShellOnly(words)
        one = begin(session, line)
        under_way(session)
        result, seconds = end(one)
        assert seconds < most
        assert (result.stopped, result.trouble) == (True, "")
        assert lines(result)[0] == "line 1"
        assert session.run("true").whole
        session.sweep()
        assert gone(lambda: carrying(session.token)) == []
        helpers = [pid for top in session.pids for pid in (top, *descendants(top))]
        session.close()
        assert gone(lambda: [pid for pid in helpers if Path(f"/proc/{pid}").exists()]) == []

    def test_one_that_has_ended_says_how(self, words: tuple[str, ...]) -> None:
        session = ShellOnly(words)
        for line, code, said in (("echo a; exit 3", 3, "a\n"), ("exec cat /dev/null", 0, "")):
            one = cast(InShell, begin(session, line))
            assert gone(lambda one=one: [] if one.over else [0]) == []  # type: ignore[misc]
            result, _ = end(one)
            assert (result.stopped, result.exit_code, result.stdout.decode()) == (False, code, said)
        missing = cast(InShell, session._begin(Command(key="b", argv=("no-such-program",), timeout=5)))
        assert gone(lambda: [] if missing.over else [0]) == []
        result, _ = end(missing)
        assert (result.stopped, result.exit_code) == (False, 127)
        assert "no-such-program" in result.trouble
        session.close()

    def test_stopped_before_it_has_begun(self, words: tuple[str, ...]) -> None:
        session = ShellOnly(words)
        for _ in range(5):
            result, seconds = end(begin(session, "exec sleep 69"))
            assert seconds < 1
            assert (result.stopped, result.stdout) == (True, b"")
        assert gone(lambda: carrying(session.token)) == []
        session.close()

    def test_a_word_that_comes_too_late_harms_nothing(self, words: tuple[str, ...]) -> None:
        """Sent while the command ends by itself: the shell may find it in place of the guard."""
        session = ShellOnly(words)
        for number in range(12):
            one = begin(session, f"sleep 0.{number:02}")
            time.sleep(0.04 + number / 100)
            result, _ = end(one)
            assert result.failure == ""
            assert result.exit_code in (0, 143)
        assert session.run("echo", "still here").text == "still here\n"
        session.close()


def test_its_cap_holds(opened: Session) -> None:
    one = cast(InShell, begin(opened, "exec yes", cap=100_000))
    assert gone(lambda: [] if one.over else [0], 10) == []
    result, _ = end(one)
    assert (len(result.stdout), result.truncated) == (100_000, True)
    assert result.trouble == "cut at 100000 bytes"
    assert gone(lambda: carrying(token(opened))) == []


def test_its_time_holds(opened: Session) -> None:
    one = begin(opened, COUNTS, timeout=1.0)
    assert gone(lambda: [] if carrying(token(opened)) else [0], 2) == []
    assert gone(lambda: carrying(token(opened)), 4) == []
    result, seconds = end(one)
    assert seconds < 1
    assert (result.timed_out, result.stopped) == (True, False)
    assert result.trouble.startswith("timed out after")
    assert lines(result)[0] == "line 1"


@pytest.mark.parametrize("transport", ["ssh", "openssh", "local"])
def test_ctrl_c_stops_it_in_good_order(server: real.Server, session: OpenSession, transport: str) -> None:
    cancelled = threading.Event()
    host = server.host(transport=transport) if transport != "local" else Host(name="h", transport="local")
    opened = session(host, cancelled)
    good, stubborn = begin(opened, COUNTS), begin(opened, STUBBORN)
    under_way(opened, 3)
    before = time.monotonic()
    cancelled.set()
    result = good.answer()
    assert (result.stopped, result.trouble) == (True, "")
    assert lines(result)[0] == "line 1"
    last = stubborn.answer()
    # The host's next second may come in time for it, or not.
    assert last.stopped or last.failure == "it was stopped, and did not end within its time"
    assert lines(last)[0] == "line 1"
    assert time.monotonic() - before < 1.5
    assert gone(lambda: carrying(token(opened))) == []


def test_a_host_that_dies_in_mid_run(sshd: StartServer, session: OpenSession) -> None:
    server = sshd()
    for transport in ("ssh", "openssh"):
        opened = session(server.host(transport=transport))
        one = begin(opened, "head -c 20000 /dev/zero; exec sleep 70")
        assert gone(lambda: [] if running("sleep", "70") else [0]) == []
        tell(server.children(), signal.SIGKILL)
        result, seconds = end(one)
        assert seconds < 6
        assert result.failure
        assert not result.stopped
        # What had come stays, though it is no answer.
        assert result.stdout == bytes(len(result.stdout))
        assert len(result.stdout) > 0
        assert gone(lambda: running("sleep", "70"), 6) == []


def test_a_host_that_falls_silent(sshd: StartServer, session: OpenSession) -> None:
    server = sshd()
    opened = session(server.host())
    one = begin(opened, COUNTS)
    under_way(opened)
    tell([server.pid, *server.children()], signal.SIGSTOP)
    try:
        result, seconds = end(one)
    finally:
        tell([server.pid, *server.children()], signal.SIGCONT)
    assert seconds < 6
    assert "did not end within its time" in result.failure
    assert gone(lambda: carrying(token(opened)), 6) == []


def test_a_laptop_that_is_killed(server: real.Server) -> None:
    program = (
        "import sys, threading, time\n"
        "from ddprobe.model import Command, Host\n"
        "from ddprobe.redact import Redactor\n"
        "from ddprobe.sessions import open_session\n"
        "host = Host(name='x', address='127.0.0.1', port=int(sys.argv[1]), user=sys.argv[2])\n"
        "session = open_session(host, Redactor(), threading.Event())\n"
        "session._begin(Command(key='b', argv=('sh', '-c', 'exec sleep 71.5'), timeout=60))\n"
        "time.sleep(60)\n"
    )
    laptop = subprocess.Popen([sys.executable, "-c", program, str(server.port), server.user], cwd=ROOT)
    assert gone(lambda: [] if running("sleep", "71.5") else [0], 15) == []
    laptop.kill()
    laptop.wait()
    assert gone(lambda: running("sleep", "71.5"), 6) == []


def test_a_host_with_a_single_session(sshd: StartServer, session: OpenSession) -> None:
    server = sshd(max_sessions=1)
    for transport in ("ssh", "openssh"):
        opened = session(server.host(transport=transport))
        result, _ = end(begin(opened, COUNTS))
        assert not result.stopped
        assert result.failure
        assert opened.ask([Command(key="a", argv=("echo", "a"))])[0].text == "a\n"


def test_a_long_output_is_read_while_nobody_waits(opened: Session) -> None:
    """Else the host's pipe would fill, and the command stand still."""
    one = begin(
        opened,
        "i=0; while [ $i -lt 40 ]; do head -c 100000 /dev/zero; i=$((i+1)); done; exec sleep 72",
        cap=8 << 20,
    )
    assert gone(lambda: [] if running("sleep", "72") else [0], 10) == []
    result, _ = end(one)
    assert result.stdout == bytes(4_000_000)
    assert result.stopped


def test_what_is_left_running_ends_with_the_session(server: real.Server, session: OpenSession) -> None:
    opened = session(server.host())
    begin(opened, COUNTS)
    assert gone(lambda: [] if carrying(token(opened)) else [0]) == []
    # A look for survivors finds none: it was ended in good order before.
    assert opened.sweep() == 0
    begin(opened, COUNTS)
    opened.close()
    assert gone(lambda: carrying(token(opened))) == []


def test_the_policy_and_redaction_stand_in_front() -> None:
    secret = "sk-" + "A1b2C3d4E5f6G7h8J9k0" * 2
    redactor = Redactor()
    session = ShellOnly(("dash", "-s"))
    refused = session.begin(Command(key="b", argv=("nvidia-smi", "-pl", "100"), timeout=5)).end()
    assert refused.failure.startswith("refused before it was sent")
    redactor.learn(secret)
    told = Beside(begin(session, f"echo {secret}; exec sleep 73"), redactor)
    under_way(session)
    result = told.end()
    assert secret not in result.stdout.decode() + str(result.question)
    session.close()
    assert os.getpid() not in carrying(session.token)


def test_closing_a_channel_while_something_comes(
    server: real.Server, session: OpenSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Paramiko's thread signals what came through a pipe of the channel's: one closed under it would end the connection."""

    def slowly(pipe: Any) -> None:
        os.close(pipe._rfd)
        os.close(pipe._wfd)
        time.sleep(0.2)
        pipe._closed = True

    monkeypatch.setattr("paramiko.pipe.PosixPipe.close", slowly)
    opened = cast(SshSession, session(server.host()))
    pipe = opened._open_pipe()
    line = memoryview(b"while :; do echo; sleep 0.01; done\n")
    assert pipe.send(line) == len(line)
    assert gone(lambda: [] if pipe.receive()[0] else [0]) == []
    # All that has come is read, so that the next piece is signalled.
    while pipe.receive() != (b"", b""):
        pass
    pipe.close()
    assert opened.ask([Command(key="a", argv=("echo", "a"))])[0].text == "a\n"


# --- the sampler itself, with a program in nvidia-smi's place --------------------------------------------------

SMI = """#!/bin/sh
# Dates its lines by the local time of its host, as nvidia-smi does, and knows not every field.
row() {
  line=
  for field in $(echo "${1#*=}" | tr , " "); do
    case $field in
    timestamp) cell=$(date "+%Y/%m/%d %H:%M:%S.%3N") ;;
    index) cell=0 ;;
    name) cell="NVIDIA Fake" ;;
    utilization.*) cell=100 ;;
    clocks.*) cell=2430 ;;
    clocks_event_reasons.*) cell=0x0000000000000004 ;;
    power.draw | enforced.power.limit) cell=590.00 ;;
    temperature.gpu) cell=61 ;;
    memory.*) cell=80211 ;;
    *) cell="[N/A]" ;;
    esac
    line="$line, $cell"
  done
  echo "${line#, }"
}
case "$*" in
*-lms*) while :; do row "$1"; sleep 0.2; done ;;
*) echo "${1#*=}" | sed "s/,/, /g"; row "$1" ;;
esac
"""


@dataclass(frozen=True, kw_only=True)
class Sampled(Probe):
    """Something that takes a time, with a sampler beside it."""

    fails: str = ""

    @classmethod
    def name(cls) -> str:
        return "test.sampled"

    def collect(self, host: Host) -> Conversation:
        begun = yield from _sampling.begin()
        yield Command(key="work", argv=("tail", "-n", "+1", "/proc/loadavg"))
        for number in range(100 if self.fails == "cancelled" else 1):
            yield Command(key=f"slow-{number}", argv=WAIT, exits=(0, 1, 2))
        if self.fails == "bug":
            raise ValueError("boom")
        yield from _sampling.end(begun)

    def interpret(self, evidence: Evidence) -> Iterator[Fact]:
        yield from ()

    def show(self, facts: Sequence[Fact]) -> Iterator[Block]:
        yield from ()


WAIT = ("find", "/usr/share", "-maxdepth", "9", "-name", "no such file")


@pytest.mark.parametrize("fails", ["", "bug", "cancelled"])
@pytest.mark.parametrize("zone", ["UTC", "Asia/Kathmandu", "America/St_Johns"])
def test_the_sampler_on_a_host_in_another_time_zone(
    session: OpenSession, monkeypatch: pytest.MonkeyPatch, fails: str, zone: str
) -> None:
    with real.folder() as folder:
        (folder / "nvidia-smi").write_text(SMI)
        (folder / "nvidia-smi").chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
        monkeypatch.setenv("TZ", zone)
        cancelled = threading.Event()
        opened = session(Host(name="here", transport="local"), cancelled)
        if fails == "cancelled":
            threading.Timer(1.5, cancelled.set).start()
        before = time.time()
        held = runner.collect(
            Step("s", Sampled(fails=fails)), opened.host, opened, SilentWriter(), lambda *_: None
        )
        after = time.time()
        assert gone(lambda: carrying(token(opened))) == []
    assert bool(held.broken) is bool(fails)
    ran = held.evidence.command("gpu-samples")
    assert (ran.stopped, ran.trouble) == (True, "")
    clock = _sampling._clock(held.evidence, "")
    assert clock is not None
    assert abs(clock.offset) <= clock.uncertainty < 1
    seen = _samples.placed(_samples.samples(ran.text, _samples.FIELDS), ran.started, clock)
    assert seen
    assert before - 0.1 <= seen[0].at <= seen[-1].at <= after + 0.1
