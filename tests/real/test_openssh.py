"""The `ssh` program as the road, against real servers."""

from __future__ import annotations

import os
import select
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, cast

import pytest

from ddprobe.errors import HostError, HostKeyUnknown, NoShell, NotAuthenticated, Unreachable
from ddprobe.model import Command, CommandResult
from ddprobe.redact import Redactor
from ddprobe.sessions import open_session, openssh
from ddprobe.sessions.base import Session
from ddprobe.sessions.openssh import OpensshSession
from tests.real import sshd as real
from tests.real.conftest import OpenSession, StartServer
from tests.real.sshd import running


def _command(*argv: str, **changes: object) -> Command:
    return Command(**({"key": "q", "argv": argv, "timeout": 10.0} | changes))  # type: ignore[arg-type]


def _ask(session: Session, *commands: Command) -> list[CommandResult]:
    return [cast(CommandResult, result) for result in session.ask(commands)]


@pytest.fixture
def opened(server: real.Server, session: OpenSession) -> OpensshSession:
    return cast(OpensshSession, session(server.host(transport="openssh")))


def test_commands_travel_together(opened: OpensshSession, server: real.Server) -> None:
    questions = [
        _command("echo", "it's a 'quoted' $WORD"),
        _command("cat", "/nonexistent", exits=(0, 1)),
        _command("uname", "-s", alone=True),
    ]
    first, second, third = _ask(opened, *questions)
    assert first.text == "it's a 'quoted' $WORD\n"
    assert (second.exit_code, second.stdout) == (1, b"")
    assert b"No such file" in second.stderr
    assert third.text == "Linux\n"
    connection = opened.connection
    assert (connection.transport, connection.address, connection.port) == (
        "openssh",
        "127.0.0.1",
        server.port,
    )
    assert connection.host_key.startswith("ssh-ed25519 SHA256:")
    assert connection.notes == ()
    assert 0 < connection.connect_seconds < 10


def test_one_connection_serves_all(sshd: StartServer, session: OpenSession) -> None:
    started = sshd()
    opened = session(started.host(transport="openssh"))
    for _ in range(3):
        _ask(opened, _command("true"), _command("true", alone=True), _command("true", alone=True))
    assert started.log().count("Accepted publickey") == 1


def test_one_session_at_a_time(sshd: StartServer, session: OpenSession) -> None:
    started = sshd(max_sessions=1)
    opened = session(started.host(transport="openssh"))
    words = [f"word{n}" for n in range(4)]
    results = _ask(opened, *(_command("echo", word, alone=True) for word in words))
    assert [result.text.strip() for result in results] == words
    assert _ask(opened, _command("echo", "again"))[0].text == "again\n"
    assert started.log().count("Accepted publickey") == 1


def test_the_socket_is_private_and_everything_goes_away(server: real.Server) -> None:
    opened = cast(
        OpensshSession, open_session(server.host(transport="openssh"), Redactor(), threading.Event())
    )
    folder = opened._master._folder
    try:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        master = folder / "s"
        assert master.is_socket()
        assert len(os.fsencode(master)) + 17 < 104
        assert running("-S", str(master))
    finally:
        opened.close()
    assert not folder.exists()
    assert _gone(str(master))
    opened.close()


def _gone(master: str) -> bool:
    """Whether no ssh of that socket is left, soon."""
    for _ in range(100):
        if not running("-S", master):
            return True
        time.sleep(0.05)
    return False


def test_a_long_temporary_folder_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = tmp_path / ("long" * 20)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    folder = openssh._private_folder()
    try:
        assert folder.parent == Path("/tmp")
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    finally:
        folder.rmdir()
    assert list(long.iterdir()) == []


def test_a_deadline_leaves_nothing(opened: OpensshSession, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (result,) = _ask(opened, _command("cat", str(pipe), timeout=1.0))
    assert result.timed_out
    assert not running("cat", str(pipe))
    assert _ask(opened, _command("echo", "on"))[0].text == "on\n"
    assert opened.sweep() == 0


def test_a_flood_is_cut(opened: OpensshSession) -> None:
    (result,) = _ask(opened, _command("head", "-c", "50000000", "/dev/null", "/proc/self/exe", cap=1000))
    assert result.truncated
    assert len(result.stdout) == 1000


def test_interrupted(server: real.Server, session: OpenSession, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    cancelled = threading.Event()
    opened = session(server.host(transport="openssh"), cancelled)
    timer = threading.Timer(0.5, cancelled.set)
    timer.start()
    began = time.monotonic()
    (result,) = _ask(opened, _command("cat", str(pipe), timeout=20.0))
    timer.join()
    assert result.failure == "interrupted"
    assert time.monotonic() - began < 2.5
    for _ in range(100):
        if not running("cat", str(pipe)):
            break
        time.sleep(0.05)
    assert not running("cat", str(pipe))


def test_a_connection_that_is_lost(sshd: StartServer, session: OpenSession, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    started = sshd()
    opened = session(started.host(transport="openssh"))
    timer = threading.Timer(0.5, started.stop)
    timer.start()
    (result,) = _ask(opened, _command("cat", str(pipe), timeout=20.0))
    timer.join()
    assert "the road failed before the answer was whole" in result.failure
    (after,) = _ask(opened, _command("true"))
    assert "the connection was lost" in after.failure
    assert opened.sweep() == 0


def test_a_host_that_falls_silent(sshd: StartServer, session: OpenSession) -> None:
    started = sshd()
    opened = session(started.host(transport="openssh"))
    for pid in [started.pid, *started.children()]:
        os.kill(pid, signal.SIGSTOP)
    began = time.monotonic()
    (result,) = _ask(opened, _command("true", timeout=20.0))
    assert result.failure
    assert time.monotonic() - began < 12


def test_a_jump_host(sshd: StartServer, server: real.Server, session: OpenSession) -> None:
    first, second = sshd(), sshd()
    way = f"127.0.0.1:{first.port},{second.user}@127.0.0.1:{second.port}"
    opened = session(server.host(transport="openssh", jump=way))
    assert _ask(opened, _command("echo", "through"))[0].text == "through\n"
    for started in (first, second):
        assert started.log().count("Accepted publickey") == 1


def test_a_jump_host_whose_key_is_unknown(
    sshd: StartServer, server: real.Server, laptop: real.Laptop
) -> None:
    """`ssh -J` would go by ssh_config's `StrictHostKeyChecking no`; ddprobe's rule holds on every hop."""
    before = laptop.config.read_text()
    laptop.config.write_text(f"{before}  StrictHostKeyChecking no\n")
    jump = sshd(in_known_hosts=False)
    try:
        kind, message, _ = _fails(server, jump=f"127.0.0.1:{jump.port}")
    finally:
        laptop.config.write_text(before)
    assert kind is HostKeyUnknown
    assert f"the host key of [127.0.0.1]:{jump.port}, ssh-ed25519 SHA256:" in message
    assert str(laptop.known_hosts) in message
    assert "Accepted" not in jump.log()


def test_a_busy_server_is_tried_again(sshd: StartServer, session: OpenSession) -> None:
    started = sshd(settings=["MaxStartups 1:100:1"])
    waiting = socket.create_connection(("127.0.0.1", started.port))
    waiting.recv(100)
    timer = threading.Timer(0.4, waiting.close)
    timer.start()
    opened = session(started.host(transport="openssh"))
    timer.join()
    assert _ask(opened, _command("echo", "at last"))[0].text == "at last\n"


PASSPHRASE = "correct horse"
ASKING = """
import sys, threading
from ddprobe.model import Command, Host
from ddprobe.redact import Redactor
from ddprobe.sessions import open_session

host = Host(name="gpu1", address="127.0.0.1", port=int(sys.argv[1]), user=sys.argv[2], identity_file=sys.argv[3],
            transport="openssh")
session = open_session(host, Redactor(), threading.Event())
print(session.ask([Command(key="q", argv=("echo", "in"))])[0].text)
session.close()
"""


def test_a_passphrase_is_asked_for_on_a_terminal(sshd: StartServer, tmp_path: Path) -> None:
    key = tmp_path / "locked"
    real.make_key(key, PASSPHRASE)
    started = sshd()
    (started.folder / "authorized_keys").write_bytes(key.with_suffix(".pub").read_bytes())
    # pty.spawn gives the program a controlling terminal, and connects it with these pipes.
    argv = [sys.executable, "-c", "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]))"]
    argv += [sys.executable, "-c", ASKING, str(started.port), started.user, str(key)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin
        assert child.stdout
        try:
            said = _read_until(child.stdout.fileno(), b"passphrase")
            assert str(key).encode() in said
            os.write(child.stdin.fileno(), PASSPHRASE.encode() + b"\n")
            assert PASSPHRASE.encode() not in _read_until(child.stdout.fileno(), b"in\r\n")
            child.communicate(timeout=10)
        finally:
            child.kill()
    assert child.returncode == 0


def _read_until(descriptor: int, wanted: bytes) -> bytes:
    said = b""
    limit = time.monotonic() + 15
    while wanted not in said and time.monotonic() < limit:
        if select.select([descriptor], [], [], 0.2)[0]:
            said += os.read(descriptor, 4096)
    assert wanted in said, said
    return said


# --- roads that do not come about --------------------------------------------------------------------------


def _fails(host_of: real.Server, **changes: Any) -> tuple[type[Exception], str, str]:
    before = set(Path("/tmp").glob("ddprobe-????????"))
    with pytest.raises(HostError) as raised:
        open_session(host_of.host(transport="openssh", **changes), Redactor(), threading.Event())
    assert set(Path("/tmp").glob("ddprobe-????????")) <= before
    return type(raised.value), raised.value.message, raised.value.advice


def test_a_port_that_refuses(server: real.Server) -> None:
    kind, message, _ = _fails(server, port=real.free_port())
    assert kind is Unreachable
    assert "Connection refused" in message
    assert message.startswith("gpu1: ")


def test_a_name_that_does_not_resolve(server: real.Server) -> None:
    kind, message, _ = _fails(server, address="no-such-host.invalid")
    assert kind is Unreachable
    assert "Could not resolve hostname" in message


def test_a_key_that_the_host_does_not_know(sshd: StartServer) -> None:
    kind, message, advice = _fails(sshd(authorized=False))
    assert kind is NotAuthenticated
    assert "Permission denied (publickey)" in message
    assert "try `ssh" in advice


def test_a_forced_command(sshd: StartServer) -> None:
    kind, message, _ = _fails(sshd(forced_command="echo only this"))
    assert kind is NoShell
    assert "only this" in message


def test_no_ssh_program(server: real.Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openssh, "ssh_program", lambda: None)
    kind, message, advice = _fails(server)
    assert kind is Unreachable
    assert (message, advice) == ("gpu1: there is no ssh program here", "set `transport: ssh`")
