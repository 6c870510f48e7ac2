"""The machine itself as the host, containers by their runtime's program, and a passphrase typed on a terminal."""

from __future__ import annotations

import os
import pty
import select
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ddprobe.errors import NoShell, Unreachable, UsageError
from ddprobe.model import Command, Container, Host, HttpRequest
from ddprobe.sessions.container import command_line, shell_words
from tests.real import sshd as real
from tests.real.conftest import OpenSession, StartServer

ROOT = Path(__file__).parent.parent.parent
HERE = Host(name="here", transport="local", connect_timeout=2)


def test_this_machine(session: OpenSession) -> None:
    opened = session(HERE)
    answers = opened.ask([Command(key=str(n), argv=("echo", str(n)), alone=n > 8) for n in range(12)])
    assert [answer.text for answer in answers] == [f"{n}\n" for n in range(12)]
    assert (opened.connection.transport, opened.connection.notes) == ("local", ())
    assert opened.sweep() == 0


def test_http_goes_straight(session: OpenSession) -> None:
    request = HttpRequest(key="h", method="GET", path="/health", base=f"http://127.0.0.1:{real.free_port()}")
    (answer,) = session(HERE).ask([request])
    assert "connection refused" in answer.failure
    assert getattr(answer, "via", "") == "direct"


@pytest.mark.parametrize(
    ("runtime", "name", "words"),
    [
        ("docker", "sgl_1", "docker exec -i sgl_1 /bin/sh -s"),
        ("podman", "sgl.1-a", "podman exec -i sgl.1-a /bin/sh -s"),
        ("kubectl", "pod-0", "kubectl exec -i pod-0 -- /bin/sh -s"),
        ("kubectl", "prod/pod-0", "kubectl exec -i -n prod pod-0 -- /bin/sh -s"),
        ("kubectl", "prod/pod-0/sglang", "kubectl exec -i -n prod pod-0 -c sglang -- /bin/sh -s"),
    ],
)
def test_words_for_a_container(runtime: str, name: str, words: str) -> None:
    host = Host(name="x", container=Container(runtime=runtime, name=name))
    assert shell_words(host) == tuple(words.split())
    assert command_line(host) == f"exec {words}"


@pytest.mark.parametrize(
    ("runtime", "name"),
    [
        ("docker", "a b"), ("docker", "-it"), ("docker", "$(id)"), ("docker", ""), ("docker", "a/b"), ("docker", "a\n"),
        ("kubectl", "a/b/c/d"), ("kubectl", "-n"), ("kubectl", "Pod"), ("kubectl", "a/-b"), ("lxc", "a"),
    ],
)  # fmt: skip
def test_what_is_no_container(runtime: str, name: str) -> None:
    with pytest.raises(UsageError):
        shell_words(Host(name="x", container=Container(runtime=runtime, name=name)))


@pytest.fixture
def runtimes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """`docker` and `podman` in $PATH that do what they are asked, or say why not."""
    with real.folder() as folder:
        (folder / "docker").write_text('#!/bin/sh\n[ "$*" = "exec -i sgl /bin/sh -s" ] && exec /bin/sh -s\n')
        (folder / "podman").write_text('#!/bin/sh\necho "Error: no such container $3" >&2; exit 125\n')
        for program in folder.iterdir():
            program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
        yield folder


@pytest.mark.usefixtures("runtimes")
def test_within_a_container(session: OpenSession) -> None:
    opened = session(Host(name="x", transport="local", container=Container(runtime="docker", name="sgl")))
    assert opened.ask([Command(key="a", argv=("echo", "inside"))])[0].text == "inside\n"


@pytest.mark.usefixtures("runtimes")
def test_a_container_that_is_not_there(session: OpenSession) -> None:
    with pytest.raises(NoShell, match="no such container gone"):
        session(Host(name="x", transport="local", container=Container(runtime="podman", name="gone")))


def test_a_runtime_that_is_not_there(session: OpenSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(Unreachable, match="podman"):
        session(Host(name="x", transport="local", container=Container(runtime="podman", name="a")))


def test_a_container_over_ssh(sshd: StartServer, session: OpenSession, runtimes: Path) -> None:
    server = sshd(settings=[f"SetEnv PATH={runtimes}:/usr/bin:/bin"], login_shell="/bin/dash")
    opened = session(server.host(container=Container(runtime="docker", name="sgl")))
    assert opened.ask([Command(key="a", argv=("echo", "inside"))])[0].text == "inside\n"


def test_a_passphrase_is_typed_on_a_terminal(sshd: StartServer, tmp_path: Path) -> None:
    """The person may take longer than the connection may."""
    real.make_key(tmp_path / "locked", passphrase="correct horse")
    server = sshd()
    (server.folder / "authorized_keys").write_bytes((tmp_path / "locked.pub").read_bytes())
    program = (
        "import sys, threading\n"
        "from ddprobe.model import Host\n"
        "from ddprobe.redact import Redactor\n"
        "from ddprobe.sessions.ssh import SshSession\n"
        "host = Host(name='x', address='127.0.0.1', port=int(sys.argv[1]), user=sys.argv[2],\n"
        "            identity_file=sys.argv[3], connect_timeout=4)\n"
        "for _ in range(2):\n"
        "    session = SshSession(host, Redactor(), threading.Event())\n"
        "    print('in as', session.connection.user)\n"
        "    session.close()\n"
    )
    argv = [sys.executable, "-c", program, str(server.port), server.user, str(tmp_path / "locked")]
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(ROOT)
        os.execv(argv[0], argv)
    said = _read(terminal, b"Passphrase for ")
    time.sleep(4.2)
    os.write(terminal, b"correct horse\n")
    said += _read(terminal, None)
    os.close(terminal)
    _, status = os.waitpid(pid, 0)
    assert status == 0, said.decode()
    # Asked once, for both connections.
    assert said.count(b"Passphrase") == 1
    assert said.count(f"in as {server.user}".encode()) == 2
    assert b"horse" not in said


def _read(terminal: int, until: bytes | None) -> bytes:
    """What appears on the terminal until that does, or the program ends."""
    said = b""
    limit = time.monotonic() + 15
    while time.monotonic() < limit and (until is None or until not in said):
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                said += os.read(terminal, 4096)
            except OSError:
                break
    return said


def test_cancelled_before_it_began(session: OpenSession) -> None:
    cancelled = threading.Event()
    cancelled.set()
    with pytest.raises(Unreachable, match="interrupted"):
        session(HERE, cancelled)
