"""SshSession against real OpenSSH servers: what a GPU host may do to us, and what we must not do to it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import cast

import pytest

from ddprobe.errors import (
    HostError,
    HostKeyChanged,
    HostKeyUnknown,
    NoShell,
    NotAuthenticated,
    Unreachable,
)
from ddprobe.model import Command, CommandResult, Host, HttpRequest
from ddprobe.redact import Redactor
from ddprobe.sessions.base import Session
from ddprobe.sessions.ssh import SshSession
from tests.real import sshd as real
from tests.real.conftest import MakeAccount, OpenSession, StartServer

pytestmark = pytest.mark.usefixtures("laptop")
ROOT = Path(__file__).parent.parent.parent


def run(session: Session, *argv: str, **more: object) -> CommandResult:
    """One command past the policy: what the policy would never let through is what the road must stand."""
    return run_all(session, [Command(key="x", argv=argv, **more)])[0]  # type: ignore[arg-type]


def run_all(session: Session, commands: Sequence[Command]) -> list[CommandResult]:
    return cast(list[CommandResult], list(session._carry(tuple(commands))))


def token(session: Session) -> str:
    return cast(SshSession, session)._token


def gone(find: Callable[[], list[int]], seconds: float = 5.0) -> list[int]:
    """What `find` still finds after that time; usually nothing, at once."""
    limit = time.monotonic() + seconds
    while (left := find()) and time.monotonic() < limit:
        time.sleep(0.05)
    return left


def alive(pids: Sequence[int]) -> list[int]:
    return [pid for pid in pids if Path(f"/proc/{pid}").exists()]


# --- asking ------------------------------------------------------------------------------------------------


def test_twelve_questions(server: real.Server, session: OpenSession) -> None:
    opened = session(server.host())
    answers = opened.ask([Command(key=f"q{n}", argv=("echo", f"answer {n}")) for n in range(12)])
    assert [answer.text for answer in answers] == [f"answer {n}\n" for n in range(12)]
    assert [answer.key for answer in answers] == [f"q{n}" for n in range(12)]
    # One login shell for all of them, and for the next ones.
    opened.ask([Command(key="again", argv=("uname", "-s"))])
    assert len(cast(SshSession, opened)._shells) == 1


def test_the_connection_tells_how_it_was_reached(server: real.Server, session: OpenSession) -> None:
    connection = session(server.host()).connection
    line = subprocess.run(
        ["ssh-keygen", "-l", "-f", str(server.folder / "host_key.pub")],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert connection.host_key == f"ssh-ed25519 {line.split()[1]}"
    assert (connection.transport, connection.address, connection.port) == ("ssh", "127.0.0.1", server.port)
    assert (connection.user, connection.notes) == (server.user, ())
    assert 0 < connection.connect_seconds < 10


def test_the_policy_stands_in_front(server: real.Server, session: OpenSession) -> None:
    opened = session(server.host())
    good, bad = opened.ask([Command(key="a", argv=("true",)), Command(key="b", argv=("sh", "-c", "true"))])
    assert good.whole
    assert "refused before it was sent" in bad.trouble


def test_three_megabytes_on_both_streams(server: real.Server, session: OpenSession) -> None:
    line = (
        "i=0; while [ $i -lt 48 ]; do head -c 65536 /dev/zero; head -c 65536 /dev/zero >&2; i=$((i+1)); done"
    )
    answer = run(session(server.host()), "sh", "-c", line, cap=4 << 20)
    assert answer.stdout == bytes(3 << 20)
    assert answer.stderr == bytes(64 << 10)
    assert (answer.truncated, answer.stderr_truncated, answer.exit_code) == (False, True, 0)


def test_bytes_stay_bytes(server: real.Server, session: OpenSession) -> None:
    opened = session(server.host())
    data = bytes(range(256)) * 300
    assert run(opened, "cat", stdin=data).stdout == data
    assert run(opened, "printf", "\\377no newline").text == "�no newline"
    assert run(opened, "true").text == ""


def test_slow_questions_have_channels_of_their_own(server: real.Server, session: OpenSession) -> None:
    opened = session(server.host())
    slow = [Command(key=f"s{n}", argv=("sleep", "1"), alone=True) for n in range(3)]
    answers = run_all(opened, [*slow, Command(key="q", argv=("echo", "quick"))])
    assert all(answer.whole for answer in answers)
    assert len(cast(SshSession, opened)._shells) == 4


def test_a_single_session_serves_all(sshd: StartServer, session: OpenSession) -> None:
    opened = session(sshd(max_sessions=1).host())
    commands = [Command(key=f"s{n}", argv=("echo", str(n)), alone=True) for n in range(3)]
    answers = opened.ask([*commands, Command(key="q", argv=("echo", "together"))])
    assert [answer.text for answer in answers] == ["0\n", "1\n", "2\n", "together\n"]


# --- login shells ------------------------------------------------------------------------------------------

LOGIN_SHELLS = ["/bin/dash", "/bin/bash", "/usr/bin/fish", "/usr/bin/tcsh"]


@pytest.mark.parametrize("shell", LOGIN_SHELLS)
def test_login_shells(sshd: StartServer, session: OpenSession, shell: str) -> None:
    opened = session(sshd(login_shell=shell).host())
    words = ["a b", "'", '"', "$HOME", "\\", "!", "*", "new\nline", "{a,b}", "é"]
    answer = run(opened, "printf", "%s|", *words)
    assert answer.text == "".join(f"{word}|" for word in words)
    assert opened.connection.notes == ()


def test_a_shell_that_talks_first(sshd: StartServer, session: OpenSession, account: MakeAccount) -> None:
    talking = "echo Welcome to the cluster; printf '\\033[31mno newline'; echo complaint >&2\n"
    opened = session(sshd(who=account("/bin/bash", bashrc=talking)).host())
    assert run(opened, "echo", "answer").stdout == b"answer\n"
    assert run(opened, "sh", "-c", "echo err >&2").stderr == b"err\n"
    (note,) = opened.connection.notes
    assert "Welcome to the cluster" in note
    assert "\x1b" not in note


@pytest.mark.parametrize(
    ("forced", "said"),
    [
        ("echo Only backups may be made here.", "Only backups may be made here."),
        ("cat", "ddprobe-"),
        ("printf '\\\\033]0;evil\\\\007bad'; exit 7", "bad"),
        ("exit 9", "exit code 9"),
    ],
)
def test_a_forced_command(sshd: StartServer, session: OpenSession, forced: str, said: str) -> None:
    host = sshd(forced_command=forced).host(connect_timeout=2)
    before = time.monotonic()
    with pytest.raises(NoShell) as caught:
        session(host)
    assert time.monotonic() - before < 6
    assert "no POSIX shell answers" in caught.value.message
    assert caught.value.message.isprintable()
    assert caught.value.advice
    if forced != "cat":
        assert said in caught.value.message


def test_nologin(sshd: StartServer, session: OpenSession) -> None:
    with pytest.raises(NoShell, match="This account is currently not available"):
        session(sshd(login_shell="/usr/sbin/nologin").host())


def test_restricted_bash(sshd: StartServer, session: OpenSession) -> None:
    with pytest.raises(NoShell, match="restricted"):
        session(sshd(login_shell="/usr/bin/rbash").host())


# --- getting in --------------------------------------------------------------------------------------------


def test_an_unknown_host_key(sshd: StartServer, session: OpenSession) -> None:
    server = sshd(in_known_hosts=False)
    with pytest.raises(HostKeyUnknown):
        session(server.host())
    opened = session(server.host(host_key="accept-new"))
    assert any("never seen before" in note for note in opened.connection.notes)
    assert session(server.host()).connection.notes == ()


@pytest.mark.parametrize("policy", ["strict", "accept-new"])
def test_a_changed_host_key(sshd: StartServer, session: OpenSession, tmp_path: Path, policy: str) -> None:
    server = sshd(in_known_hosts=False)
    real.make_key(tmp_path / "other")
    other = (tmp_path / "other.pub").read_text().rsplit(" ", 1)[0]
    with server.known_hosts.open("a") as file:
        file.write(f"[127.0.0.1]:{server.port} {other}\n")
    with pytest.raises(HostKeyChanged):
        session(server.host(host_key=policy))


def test_a_key_the_host_does_not_know(sshd: StartServer, session: OpenSession) -> None:
    with pytest.raises(NotAuthenticated) as caught:
        session(sshd(authorized=False).host())
    assert "id_ed25519" in caught.value.message
    assert caught.value.advice


def test_a_key_with_a_passphrase_and_no_terminal(
    sshd: StartServer, session: OpenSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real.make_key(tmp_path / "locked", passphrase="correct horse")
    server = sshd()
    (server.folder / "authorized_keys").write_bytes((tmp_path / "locked.pub").read_bytes())
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(NotAuthenticated, match="needs a passphrase and stdin is no terminal"):
        session(server.host(identity_file=str(tmp_path / "locked")))


def test_a_server_that_does_not_decide(sshd: StartServer, session: OpenSession) -> None:
    slow = ["AuthorizedKeysCommand /usr/bin/sleep 30", "AuthorizedKeysCommandUser root"]
    with pytest.raises(Unreachable, match=r"no answer within 1\.5 s, while it checked who we are"):
        session(sshd(settings=slow, authorized=False).host(connect_timeout=1.5))


def test_an_agent_holds_the_key(
    sshd: StartServer, session: OpenSession, laptop: real.Laptop, tmp_path: Path
) -> None:
    """With more keys than the server has patience for; the one that ssh_config names goes first."""
    server = sshd(settings=["MaxAuthTries 2"])
    for name in ("a", "b", "c", "right"):
        real.make_key(tmp_path / name, passphrase="x" if name == "right" else "")
    (server.folder / "authorized_keys").write_bytes((tmp_path / "right.pub").read_bytes())
    with agent(tmp_path / "agent") as add:
        for name in ("a", "b", "c", "right"):
            add(tmp_path / name, "x" if name == "right" else "")
        entry = (
            f"Host kept\n  HostName 127.0.0.1\n  IdentityAgent {tmp_path / 'agent'}\n  IdentitiesOnly no\n"
        )
        with configured(laptop, entry):
            host = server.host(address="kept", identity_file=str(tmp_path / "right"))
            assert session(host).connection.user == server.user
            with pytest.raises(NotAuthenticated, match="hung up after"):
                session(server.host(address="kept"))


@contextlib.contextmanager
def agent(path: Path) -> Iterator[Callable[[Path, str], None]]:
    """An ssh-agent at that socket; gives a function that adds a key."""

    def add(key: Path, passphrase: str) -> None:
        asker = path.with_name("asker")
        asker.write_text(f"#!/bin/sh\necho '{passphrase}'\n")
        asker.chmod(0o700)
        asking = {"SSH_AUTH_SOCK": str(path), "SSH_ASKPASS": str(asker), "SSH_ASKPASS_REQUIRE": "force"}
        subprocess.run(
            ["ssh-add", "-q", str(key)], env=os.environ | asking, stdin=subprocess.DEVNULL, check=True
        )

    process = subprocess.Popen(["ssh-agent", "-D", "-a", str(path)], stdout=subprocess.DEVNULL)
    try:
        while not path.exists():
            time.sleep(0.01)
        yield add
    finally:
        process.terminate()
        process.wait()


@contextlib.contextmanager
def configured(laptop: real.Laptop, text: str) -> Iterator[None]:
    """Lines in front of the laptop's ssh_config."""
    before = laptop.config.read_text()
    laptop.config.write_text(text + before)
    try:
        yield
    finally:
        laptop.config.write_text(before)


def test_through_a_jump_host(sshd: StartServer, session: OpenSession, server: real.Server) -> None:
    inner = sshd()
    opened = session(inner.host(jump=f"{server.user}@127.0.0.1:{server.port}"))
    assert opened.ask([Command(key="a", argv=("echo", "inside"))])[0].text == "inside\n"
    assert opened.connection.port == inner.port


def test_a_jump_host_that_forbids_it(sshd: StartServer, session: OpenSession, server: real.Server) -> None:
    bastion = sshd(allow_tcp_forwarding=False)
    with pytest.raises(Unreachable, match="forbids forwarding"):
        session(server.host(jump=f"{bastion.user}@127.0.0.1:{bastion.port}"))
    with pytest.raises(Unreachable, match="cannot reach it"):
        session(server.host(port=real.free_port(), jump=f"{server.user}@127.0.0.1:{server.port}"))


def test_through_a_proxy_command(sshd: StartServer, session: OpenSession, laptop: real.Laptop) -> None:
    server = sshd()
    relay = (
        "import socket,sys,threading,os\n"
        "s=socket.create_connection((sys.argv[1],int(sys.argv[2])))\n"
        "def up():\n"
        "    while d:=os.read(0,65536): s.sendall(d)\n"
        "threading.Thread(target=up,daemon=True).start()\n"
        "while d:=s.recv(65536): os.write(1,d)\n"
    )
    script = server.folder / "relay.py"
    script.write_text(relay)
    entry = "Host proxied\n  HostName 127.0.0.1\n  ProxyCommand"
    host = server.host(address="proxied")
    with configured(laptop, f"{entry} {sys.executable} {script} %h %p\n"):
        assert run(session(host), "echo", "proxied").text == "proxied\n"
    with (
        configured(laptop, f"{entry} echo no way >&2; exit 1\n"),
        pytest.raises(Unreachable, match="its ProxyCommand leads to no SSH server: no way"),
    ):
        session(host)


@pytest.mark.parametrize("answer", ["nothing", "a banner", "hangs up", "http"])
def test_what_is_no_ssh_server(session: OpenSession, answer: str) -> None:
    with listener(answer) as port:
        before = time.monotonic()
        with pytest.raises(Unreachable) as caught:
            session(Host(name="odd", address="127.0.0.1", port=port, connect_timeout=1.5))
        assert time.monotonic() - before < 4
        assert caught.value.message.startswith("odd")
        if answer in ("nothing", "a banner"):
            assert "no answer within 1.5 s" in caught.value.message


@contextlib.contextmanager
def listener(answer: str) -> Iterator[int]:
    """Something else than sshd, on the port it gives."""
    kept: list[socket.socket] = []

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = server.accept()
                kept.append(connection)
                if answer == "a banner":
                    connection.sendall(b"SSH-2.0-Slow\r\n")
                elif answer == "http":
                    connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
                elif answer == "hangs up":
                    connection.close()

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve)
        thread.start()
        yield int(server.getsockname()[1])
        server.shutdown(socket.SHUT_RDWR)
        thread.join()
    for connection in kept:
        connection.close()


def test_nobody_listens(session: OpenSession) -> None:
    with pytest.raises(Unreachable, match="refused"):
        session(Host(name="off", address="127.0.0.1", port=real.free_port()))


def test_a_name_without_an_address(session: OpenSession) -> None:
    with pytest.raises(Unreachable, match="has no address"):
        session(Host(name="nowhere.invalid", connect_timeout=3))


def test_cancelling_a_connection(session: OpenSession) -> None:
    cancelled = threading.Event()
    with listener("nothing") as port:
        threading.Timer(0.5, cancelled.set).start()
        before = time.monotonic()
        with pytest.raises(Unreachable, match="interrupted"):
            session(Host(name="odd", address="127.0.0.1", port=port), cancelled)
        assert time.monotonic() - before < 2


def test_a_crowded_server(sshd: StartServer) -> None:
    """A server past its MaxStartups hangs up on newcomers; they come again."""
    server = sshd(settings=["MaxStartups 2:50:20"])
    opened: list[object] = []

    def connect() -> None:
        try:
            session = SshSession(server.host(), Redactor(), threading.Event())
        except HostError as error:
            opened.append(error)
        else:
            opened.append("in")
            session.close()

    threads = [threading.Thread(target=connect) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert opened == ["in"] * 8


# --- nothing stays -----------------------------------------------------------------------------------------

LEAVERS = {
    "sleeps": "exec sleep 61",
    "forks": "(sleep 61 &); sleep 61",
    "ignores TERM": "trap '' TERM HUP; (trap '' TERM; sleep 61; sleep 61) & sleep 61; sleep 61",
    "calls setsid": "setsid sleep 61 & sleep 61",
}


@pytest.fixture(params=["root", "plain user"])
def someone(request: pytest.FixtureRequest, laptop: real.Laptop) -> Iterator[real.Server]:
    """A server to which we log in as root, or as somebody without privileges."""
    if request.param == "root":
        yield request.getfixturevalue("server")
    else:
        with real.server(laptop, who=request.getfixturevalue("plain_user")) as running:
            yield running


def test_nothing_survives_a_deadline(someone: real.Server, session: OpenSession) -> None:
    opened = session(someone.host())
    before = time.monotonic()
    answers = run_all(
        opened,
        [Command(key=name, argv=("sh", "-c", line), timeout=1, alone=True) for name, line in LEAVERS.items()],
    )
    assert all(answer.timed_out for answer in answers)
    assert time.monotonic() - before < 1 + 5
    assert real.carrying(token(opened)) == []
    assert opened.sweep() == 0
    assert run(opened, "echo", "still here").text == "still here\n"


def test_nothing_survives_cancelling(someone: real.Server, session: OpenSession) -> None:
    cancelled = threading.Event()
    opened = session(someone.host(), cancelled)
    commands = [Command(key=name, argv=("sh", "-c", line), alone=True) for name, line in LEAVERS.items()]
    with real.once(lambda: len(real.carrying(token(opened))) >= 2 * len(LEAVERS), cancelled.set) as at:
        answers = run_all(opened, commands)
    assert time.monotonic() - at[0] < 1
    assert {answer.failure for answer in answers} == {"interrupted"}
    assert gone(lambda: real.carrying(token(opened)), 3) == []


def test_nothing_survives_a_killed_laptop(someone: real.Server) -> None:
    program = (
        "import sys, threading\n"
        "from ddprobe.model import Command, Host\n"
        "from ddprobe.redact import Redactor\n"
        "from ddprobe.sessions.ssh import SshSession\n"
        "host = Host(name='x', address='127.0.0.1', port=int(sys.argv[1]), user=sys.argv[2])\n"
        "session = SshSession(host, Redactor(), threading.Event())\n"
        "print(session._token, flush=True)\n"
        "session._carry(tuple(Command(key=str(n), argv=('sh', '-c', line), alone=True)"
        " for n, line in enumerate(sys.argv[3:])))\n"
    )
    client = subprocess.Popen(
        [sys.executable, "-c", program, str(someone.port), someone.user, *LEAVERS.values()],
        stdout=subprocess.PIPE,
        cwd=ROOT,
    )
    assert client.stdout
    mark = client.stdout.readline().decode().strip()
    assert not gone(lambda: [] if len(real.carrying(mark)) >= 2 * len(LEAVERS) else [0], 10)
    served = someone.children()
    client.send_signal(signal.SIGKILL)
    client.wait()
    client.stdout.close()
    assert gone(lambda: real.carrying(mark)) == []
    assert gone(lambda: alive(served)) == []


def test_a_flood_costs_little(server: real.Server) -> None:
    """A gigabyte on each stream: bounded time and memory, and the next question is answered."""
    program = (
        "import sys, threading\n"
        "from pathlib import Path\n"
        "from ddprobe.model import Command, Host\n"
        "from ddprobe.redact import Redactor\n"
        "from ddprobe.sessions.ssh import SshSession\n"
        "host = Host(name='x', address='127.0.0.1', port=int(sys.argv[1]), user=sys.argv[2])\n"
        "session = SshSession(host, Redactor(), threading.Event())\n"
        "flood = 'head -c 1000000000 /dev/zero >&2 & head -c 1000000000 /dev/zero; wait'\n"
        "a, b = session._carry((Command(key='a', argv=('sh', '-c', flood)), Command(key='b', argv=('echo', 'b'))))\n"
        "assert (len(a.stdout), a.truncated, a.stderr_truncated, b.text) == (1 << 20, True, True, 'b\\n'), (a, b)\n"
        "session.close()\n"
        # Not getrusage: its peak begins with that of the process that forked this one.
        "print(Path('/proc/self/status').read_text().partition('VmHWM:')[2].split()[0])\n"
    )
    before = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", program, str(server.port), server.user],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - before < 15
    assert int(done.stdout) < 100 * 1024


@pytest.mark.parametrize("sessions", [10, 1])
def test_a_host_whose_cap_fails(
    sshd: StartServer, session: OpenSession, monkeypatch: pytest.MonkeyPatch, sessions: int
) -> None:
    """Should `head` there let everything through, the laptop cuts the road, and takes another."""
    from ddprobe.sessions import framing

    true_script = framing.script
    monkeypatch.setattr(
        framing, "script", lambda *args: true_script(*args).replace(b" 1001 ", b" 900000000 ")
    )
    # A session that is broken off keeps its place on the server until all of it has ended there.
    opened = session(sshd(max_sessions=sessions).host())
    flood, last = run_all(
        opened, [Command(key="a", argv=("yes",), cap=1000), Command(key="b", argv=("echo", "b"))]
    )
    assert "the host's own cap failed" in flood.failure
    assert last.text == "b\n"
    assert gone(lambda: real.carrying(token(opened)), 4) == []


def test_a_road_that_is_cut_leaves_the_others_alone(server: real.Server, session: OpenSession) -> None:
    opened = cast(SshSession, session(server.host()))
    slow = Command(key="b", argv=("sleep", "4"), alone=True)

    def cut() -> None:
        opened._shells[0].pipe.close()

    with real.once(lambda: len(real.carrying(token(opened))) == 2, cut):
        broken, whole = run_all(opened, [Command(key="a", argv=("sleep", "61")), slow])
    assert broken.failure
    assert whole.whole, whole.trouble
    assert real.carrying(token(opened)) == []


# --- a road that fails under way ---------------------------------------------------------------------------


def test_a_server_that_stops_answering(sshd: StartServer, session: OpenSession) -> None:
    server = sshd()
    opened = session(server.host(connect_timeout=1))
    children = server.children()
    real.tell(children, signal.SIGSTOP)
    before = time.monotonic()
    answers = run_all(opened, [Command(key=str(n), argv=("true",), timeout=1) for n in range(3)])
    assert time.monotonic() - before < 1 + 4.5 + 5
    assert all(answer.failure for answer in answers)
    real.tell(children, signal.SIGCONT)


def test_a_connection_that_is_cut(sshd: StartServer, session: OpenSession) -> None:
    def cut() -> None:
        real.tell(server.children(), signal.SIGKILL)

    server = sshd()
    opened = session(server.host())
    commands = [
        Command(key="a", argv=("echo", "a")),
        Command(key="b", argv=("sleep", "61")),
        Command(key="c", argv=("echo", "c")),
    ]
    with real.once(lambda: real.carrying(token(opened)) and real.running("sleep", "61"), cut) as at:
        first, second, third = run_all(opened, commands)
    assert time.monotonic() - at[0] < 3
    assert first.text == "a\n"
    assert "connection" in second.failure
    assert third.failure
    assert opened.sweep() == 0


# --- HTTP --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("forwarding", [True, False])
def test_http_beside_commands(sshd: StartServer, session: OpenSession, forwarding: bool) -> None:
    opened = session(sshd(allow_tcp_forwarding=forwarding).host())
    with listener("http") as port:
        request = HttpRequest(
            key="h", method="GET", path="/health", base=f"http://127.0.0.1:{port}", statuses=(400,)
        )
        answer, command = opened.ask([request, Command(key="c", argv=("echo", "c"))])
    assert command.whole
    assert getattr(answer, "via", "") == ("channel" if forwarding else "curl")
    assert any("curl" in note for note in opened.connection.notes) is not forwarding
