"""The script in the shells that hosts have: what comes back, and that nothing stays."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ddprobe.model import Command, CommandResult, Connection, Glob, Host
from ddprobe.redact import Redactor
from ddprobe.sessions.asking import GRACE, Pipe
from ddprobe.sessions.http import Web
from ddprobe.sessions.process import ProcessPipe
from ddprobe.sessions.shell import MAX_HUNG, ShellSession
from tests.real.sshd import carrying, descendants, of_processes, once, running, tell

SHELLS = {"dash": ("dash", "-s"), "bash": ("bash", "-s"), "busybox": ("busybox", "ash", "-s")}


class ShellOnly(ShellSession):
    """A session with one of this machine's shells."""

    def __init__(self, words: Sequence[str], cancelled: threading.Event | None = None) -> None:
        super().__init__(Host(name="here", command_timeout=20), Redactor(), cancelled or threading.Event())
        self.words = words
        self.opened = 0
        self.pids: list[int] = []
        self._start()

    @property
    def connection(self) -> Connection:
        return Connection(transport="shell", notes=self._all_notes())

    def _open_pipe(self) -> Pipe:
        self.opened += 1
        pipe = ProcessPipe(self.words)
        self.pids.append(pipe.process.pid)
        return pipe

    def _make_web(self) -> Web:
        raise AssertionError("no HTTP travels here")

    @property
    def token(self) -> str:
        return self._token

    def run(self, *argv: str | Glob, **more: object) -> CommandResult:
        """One command past the policy."""
        return self.run_all([Command(key="x", argv=argv, **more)])[0]  # type: ignore[arg-type]

    def run_all(self, commands: Sequence[Command]) -> list[CommandResult]:
        results = self._carry(tuple(commands))
        assert all(isinstance(result, CommandResult) for result in results)
        return [result for result in results if isinstance(result, CommandResult)]


@pytest.fixture(params=sorted(SHELLS))
def shell(request: pytest.FixtureRequest) -> Iterator[ShellOnly]:
    session = ShellOnly(SHELLS[request.param])
    yield session
    session.close()


def gone(find: Callable[[], list[Any]], seconds: float = 4.0) -> list[Any]:
    """What `find` still finds after that time; usually nothing, at once."""
    limit = time.monotonic() + seconds
    while (left := find()) and time.monotonic() < limit:
        time.sleep(0.05)
    return left


def test_words_arrive_as_they_are(shell: ShellOnly) -> None:
    words = [
        "a b",
        "'",
        '"',
        "$HOME",
        "`id`",
        "\\",
        "*",
        "",
        "-n",
        "new\nline",
        "é\udcff",
        "a;b|c&d",
        "~",
        "#",
    ]
    answer = shell.run("printf", "%s\\0", *words)
    assert answer.stdout == b"".join(os.fsencode(word) + b"\0" for word in words)
    assert (answer.exit_code, answer.stderr, answer.truncated, answer.timed_out) == (0, b"", False, False)


def test_a_pattern_is_expanded_and_nothing_else_is(shell: ShellOnly, tmp_path: Path) -> None:
    for name in ("b 1", "b$2", "c"):
        (tmp_path / name).touch()
    answer = shell.run("printf", "%s\\n", Glob(f"{tmp_path}/b*"), "b*")
    assert answer.stdout.decode().splitlines() == [f"{tmp_path}/b 1", f"{tmp_path}/b$2", "b*"]


@pytest.mark.parametrize("body", [b"x", b"\0\1\xff\\0'\\\n%s", bytes(range(256)) * 100, b"no newline"])
def test_a_body_arrives_as_it_is(shell: ShellOnly, body: bytes) -> None:
    assert shell.run("cat", stdin=body).stdout == body


def test_without_a_body_stdin_is_empty(shell: ShellOnly) -> None:
    assert shell.run("cat").stdout == b""


def test_surroundings(shell: ShellOnly) -> None:
    answer = shell.run("env").text.splitlines()
    assert "LC_ALL=C" in answer
    path = next(line for line in answer if line.startswith("PATH="))
    assert path.startswith("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:")
    assert any(line.startswith(f"DDPROBE_RUN={shell.token}.") for line in answer)
    # Nothing of ours is open in the command but its three streams.
    assert shell.run("sh", "-c", "ls /proc/self/fd | wc -l").text.strip() == "4"


@pytest.mark.parametrize(
    ("line", "code", "stdout", "stderr"),
    [
        ("exit 3", 3, b"", b""),
        ("kill -9 $$", 137, b"", b""),
        ("printf 'no newline'; printf err >&2; exit 1", 1, b"no newline", b"err"),
        ("printf '\\377\\000\\033[31m'", 0, b"\xff\0\x1b[31m", b""),
    ],
)
def test_exit_codes_and_bytes(shell: ShellOnly, line: str, code: int, stdout: bytes, stderr: bytes) -> None:
    answer = shell.run("sh", "-c", line)
    assert (answer.exit_code, answer.stdout, answer.stderr) == (code, stdout, stderr)


def test_a_missing_program_says_so(shell: ShellOnly) -> None:
    answer = shell.run("no-such-program", "x")
    assert answer.exit_code == 127
    assert b"no-such-program" in answer.stderr


def test_many_questions_one_shell(shell: ShellOnly) -> None:
    for _ in range(3):
        answers = shell.run_all([Command(key=str(n), argv=("echo", str(n))) for n in range(12)])
        assert [answer.text for answer in answers] == [f"{n}\n" for n in range(12)]
    assert shell.opened == 1


def test_both_streams_are_drained_and_capped(shell: ShellOnly) -> None:
    line = (
        "i=0; while [ $i -lt 48 ]; do head -c 65536 /dev/zero; head -c 65536 /dev/zero >&2; i=$((i+1)); done"
    )
    answer = shell.run("sh", "-c", line, cap=4 << 20)
    assert answer.stdout == bytes(3 << 20)
    assert (answer.truncated, answer.stderr_truncated) == (False, True)
    assert answer.stderr == bytes(64 << 10)


def test_a_flood_is_cut_on_the_host(shell: ShellOnly) -> None:
    before = time.monotonic()
    first, flood, last = shell.run_all(
        [
            Command(key="a", argv=("echo", "a")),
            Command(key="b", argv=("yes",), cap=100_001),
            Command(key="c", argv=("echo", "c")),
        ]
    )
    assert (len(flood.stdout), flood.truncated) == (100_001, True)
    assert flood.trouble == "cut at 100001 bytes"
    assert (first.text, last.text) == ("a\n", "c\n")
    assert time.monotonic() - before < 5


def test_output_of_exactly_the_cap_is_whole(shell: ShellOnly) -> None:
    assert shell.run("printf", "12345", cap=5).text == "12345"
    assert shell.run("printf", "123456", cap=5).truncated


Leavers = tuple[dict[str, ShellOnly], ThreadPoolExecutor]
LEAVERS = {
    "sleeps": "exec sleep 61",
    "pipes": "sleep 61 | cat",
    "forks": "(sleep 61 &); sleep 61",
    "leaves a child": "sleep 61 & exit 0",
    "ignores TERM": "trap '' TERM HUP INT; sleep 61; sleep 61; sleep 61",
    "ignores TERM, with a child that does": "trap '' TERM HUP; (trap '' TERM; sleep 61; sleep 61) & sleep 61",
    "calls setsid": "setsid sleep 61 & sleep 61",
    "calls setsid and goes": "setsid sh -c 'trap \"\" TERM HUP; sleep 61; sleep 61' & exit 0",
    "forks on and on": "f() { (sleep 0.1; f) & }; f; sleep 61",
    "is stopped": "kill -STOP $$",
}


@pytest.fixture(params=sorted(SHELLS))
def leavers(request: pytest.FixtureRequest) -> Iterator[Leavers]:
    """A session for each of them, so that all can wait at the same time."""
    sessions = {name: ShellOnly(SHELLS[request.param]) for name in LEAVERS}
    with ThreadPoolExecutor(len(sessions)) as pool:
        yield sessions, pool
    for session in sessions.values():
        session.close()


def test_nothing_survives_a_deadline(leavers: Leavers) -> None:
    sessions, pool = leavers
    before = time.monotonic()
    asked = {
        name: pool.submit(
            session.run_all,
            [
                Command(key="a", argv=("sh", "-c", LEAVERS[name]), timeout=1),
                Command(key="b", argv=("echo", "after")),
            ],
        )
        for name, session in sessions.items()
    }
    for name, future in asked.items():
        stuck, last = future.result()
        assert stuck.timed_out or stuck.exit_code == 0, name
        assert last.text == "after\n", name
    assert time.monotonic() - before < 6
    assert {
        name: carrying(session.token) for name, session in sessions.items() if carrying(session.token)
    } == {}


def test_nothing_survives_a_closed_road(leavers: Leavers) -> None:
    sessions, pool = leavers
    asked = [
        pool.submit(session.run, "sh", "-c", LEAVERS[name].replace("exit 0", "sleep 62"))
        for name, session in sessions.items()
    ]
    assert not gone(lambda: [name for name in sessions if not carrying(sessions[name].token)])
    helpers = [
        pid for session in sessions.values() for pid in (session.pids[0], *descendants(session.pids[0]))
    ]
    for session in sessions.values():
        session.cancelled.set()
    for future in asked:
        assert future.result().failure == "interrupted"
    assert gone(lambda: [name for name in sessions if carrying(sessions[name].token)]) == []
    assert gone(lambda: [pid for pid in helpers if Path(f"/proc/{pid}").exists()]) == []


@pytest.mark.parametrize("words", SHELLS.values(), ids=SHELLS.keys())
def test_nothing_survives_a_killed_laptop(words: tuple[str, ...]) -> None:
    mark = f"61.{secrets.randbelow(10**6):06}"
    line = f"setsid sleep {mark} & trap '' TERM; sleep {mark}; sleep {mark}"
    program = (
        "import sys; from tests.real.test_script import ShellOnly\n"
        f"ShellOnly({words!r}).run('sh', '-c', sys.argv[1])"
    )
    laptop = subprocess.Popen([sys.executable, "-c", program, line])
    assert not gone(lambda: [] if len(running("sleep", mark)) == 2 else [0], 10)
    helpers = descendants(laptop.pid)
    laptop.send_signal(signal.SIGKILL)
    laptop.wait()
    assert gone(lambda: running("sleep", mark)) == []
    assert gone(lambda: [pid for pid in helpers if Path(f"/proc/{pid}").exists()]) == []


def test_cancelling_takes_a_moment(shell: ShellOnly) -> None:
    commands = [
        Command(key="a", argv=("echo",)),
        Command(key="b", argv=("sleep", "61")),
        Command(key="c", argv=("echo",)),
    ]
    with once(lambda: asleep(shell), shell.cancelled.set) as cancelled:
        first, second, third = shell.run_all(commands)
    assert time.monotonic() - cancelled[0] < 1
    assert first.text == "\n"
    assert (second.failure, third.failure) == ("interrupted", "interrupted")


def asleep(shell: ShellOnly) -> list[int]:
    """The `sleep 61` that this shell runs."""
    return sorted(set(running("sleep", "61")) & set(carrying(shell.token)))


def test_what_escaped_is_swept_and_counted(shell: ShellOnly) -> None:
    answer = shell.run("sh", "-c", "setsid sleep 61 >/dev/null 2>&1 & sleep 0.2")
    assert answer.whole
    assert len(carrying(shell.token)) == 1
    assert shell.sweep() == 1
    assert gone(lambda: carrying(shell.token)) == []


def test_a_shell_that_dies_fails_one_question(shell: ShellOnly) -> None:
    def kill_all() -> None:
        tell([shell.pids[0], *descendants(shell.pids[0])], signal.SIGKILL)

    with once(lambda: asleep(shell), kill_all):
        killed, last = shell.run_all(
            [Command(key="a", argv=("sleep", "61")), Command(key="b", argv=("echo", "after"))]
        )
    assert "exit code -9" in killed.failure
    assert last.text == "after\n"
    assert shell.opened == 2


def test_slow_questions_run_beside_the_others(shell: ShellOnly) -> None:
    slow = [Command(key=f"s{n}", argv=("sleep", "1"), alone=True) for n in range(3)]
    *slow_answers, quick = shell.run_all([*slow, Command(key="q", argv=("echo", "quick"))])
    assert all(answer.whole for answer in (*slow_answers, quick))
    # All of them were under way at the same time.
    assert max(answer.started for answer in slow_answers) < min(a.started + a.seconds for a in slow_answers)
    assert shell.opened == 4


def test_a_host_without_setsid(tmp_path: Path) -> None:
    """What is left then is the mark in the environment."""
    for name in ("env", "sh", "sleep", "head", "grep", "cat", "echo"):
        (tmp_path / name).symlink_to(f"/bin/{name}")
    line = f"exec sed -u 's#^LC_ALL=C PATH=.*#LC_ALL=C PATH={tmp_path}#' | dash -s"
    session = ShellOnly(("sh", "-c", line))
    try:
        assert any("no setsid" in note for note in session.connection.notes)
        answer = session.run("sh", "-c", "sleep 61 & sleep 61", timeout=1)
        assert answer.timed_out
        assert gone(lambda: carrying(session.token)) == []
    finally:
        session.close()


@pytest.mark.parametrize("line", ["exec sleep 1001", "exec yes /proc/1/environ"])
def test_a_search_for_marks_that_does_not_end(tmp_path: Path, line: str) -> None:
    """A process stuck in the kernel can hang whoever reads its environ: neither shell nor search stays for that."""
    for name in ("env", "sh", "sleep", "head", "cat", "setsid"):
        (tmp_path / name).symlink_to(f"/bin/{name}")
    (tmp_path / "grep").write_text(f"#!/bin/sh\n{line}\n")
    (tmp_path / "grep").chmod(0o755)
    narrow = f"exec sed -u 's#^LC_ALL=C PATH=.*#LC_ALL=C PATH={tmp_path}#' | exec dash -s"
    session = ShellOnly(("sh", "-c", narrow))
    below = [pid for top in session.pids for pid in (top, *descendants(top))]
    assert session.run("sleep", "62", timeout=1).timed_out
    session.sweep()
    session.close()
    assert gone(lambda: [*running("sleep", "1001"), *running("yes", "/proc/1/environ")], 10) == []
    assert gone(lambda: [pid for pid in below if alive(pid)], 10) == []


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_host_that_hangs_is_asked_no_more() -> None:
    """Each further question would cost its whole time again."""
    hangs = ("sh", "-c", r"exec sed -u 's/^{ begin/{ cat <\&9; begin/' | exec dash -s")
    session = ShellOnly(hangs)
    began = time.monotonic()
    answers = session.run_all([Command(key=str(n), argv=("true",), timeout=1) for n in range(8)])
    assert time.monotonic() - began < MAX_HUNG * (1 + GRACE) + 3
    session.close()
    assert all(not answer.whole for answer in answers)
    assert all("hangs" in answer.failure for answer in answers)
    assert [answer.failure.startswith("here: not asked") for answer in answers] == [False] * 2 + [True] * 6


@pytest.mark.parametrize("name", sorted(SHELLS))
def test_a_quick_look_leaves_no_helper_behind(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The script's own sleeps are ended with it, also those that were only being started."""
    mark = secrets.token_hex(8)
    monkeypatch.setenv("DDPROBE_TEST_LOOK", mark)

    def helpers() -> list[bytes]:
        found = []
        for environ in of_processes("environ"):
            try:
                ours = f"DDPROBE_TEST_LOOK={mark}".encode() in environ.read_bytes()
                line = environ.with_name("cmdline").read_bytes()
            except OSError:
                continue
            if ours and line.startswith((b"sleep\0", b"/bin/sleep\0")):
                found.append(line)
        return found

    for _ in range(25):
        session = ShellOnly(SHELLS[name])
        assert session.run("true").whole
        assert session.sweep() == 0
        session.close()
    # None of them would end by itself within this time.
    assert gone(helpers, 0.5) == []
