"""Hostile and broken hosts, met by whole commands: each ends in time, with its exit code and one sentence of the cause.

What a session makes of such a host is in test_session.py; here nothing is left out between the command line, the
report on disk, and the processes on the host.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.real import sshd as real
from tests.real.conftest import StartServer

ROOT = Path(__file__).parent.parent.parent
CONNECT, COMMAND = 2.0, 3.0
SLACK = 15.0
"""What a run may take beyond its own limits, on a machine that runs other tests beside."""
TRANSPORTS = ("ssh", "openssh")


Hosts = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Ended:
    """What a whole command left."""

    code: int
    seconds: float
    stdout: str
    stderr: str
    report: dict[str, Any]
    """report.json of its folder, as `report show --json` prints it afterwards."""

    def host(self, name: str = "gpu1") -> dict[str, Any]:
        (host,) = (host for host in self.report["hosts"] if host["name"] == name)
        return dict(host)

    def told(self, name: str = "gpu1") -> str:
        """The one sentence and its advice."""
        return f"{self.host(name)['error']} → {self.host(name)['advice']}"


@dataclass(frozen=True)
class Lab:
    """Where commands run."""

    folder: Path

    def start(self, name: str, hosts: Hosts, *words: str) -> subprocess.Popen[bytes]:
        place = self.folder / name
        place.mkdir()
        (place / "hosts.yaml").write_text(yaml.safe_dump({"hosts": hosts}))
        return self._ddprobe(place, *words)

    def _ddprobe(self, place: Path, *words: str) -> subprocess.Popen[bytes]:
        told = {"DDPROBE_HOSTS": str(place / "hosts.yaml"), "DDPROBE_REPORTS": str(place / "reports")}
        return subprocess.Popen(
            [sys.executable, "-m", "ddprobe", *words],
            env={**os.environ, **told, "PYTHONPATH": str(ROOT)},
            cwd=place,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def end(self, name: str, running: subprocess.Popen[bytes], limit: float) -> Ended:
        """Wait for it, no longer than that, and look at its report as a person would afterwards."""
        before = time.monotonic()
        try:
            stdout, stderr = running.communicate(timeout=limit)
        finally:
            running.kill()
        seconds = time.monotonic() - before
        (folder,) = (self.folder / name / "reports").iterdir()
        shown, trouble = self._ddprobe(
            self.folder / name, "report", "show", folder.name, "--json"
        ).communicate()
        assert shown, trouble
        return Ended(running.returncode, seconds, stdout.decode(), stderr.decode(), json.loads(shown))

    def run(self, name: str, hosts: Hosts, *words: str, limit: float = CONNECT + SLACK) -> Ended:
        return self.end(name, self.start(name, hosts, *words), limit)


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    """With a folder for temporary files: what is killed here leaves its own, and other tests count theirs in /tmp."""
    with real.folder() as temporary:
        monkeypatch.setenv("TMPDIR", str(temporary))
        yield Lab(tmp_path)


def at(port: int, **more: Any) -> dict[str, Any]:
    known = {"address": "127.0.0.1", "port": port, "connect_timeout": CONNECT, "command_timeout": COMMAND}
    return known | more


def entry(server: real.Server, **more: Any) -> dict[str, Any]:
    return at(server.port, user=server.user, **more)


# --- before the login --------------------------------------------------------------------------------------


@contextlib.contextmanager
def listener(answer: Callable[[socket.socket], None] | None, backlog: int = 50) -> Iterator[int]:
    """A port whose every connection gets that answer; without one nobody takes them."""
    with (
        socket.create_server(("127.0.0.1", 0), backlog=backlog) as listening,
        contextlib.ExitStack() as open_,
    ):

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    taken = open_.enter_context(listening.accept()[0])
                    with contextlib.suppress(OSError):
                        assert answer
                        answer(taken)

        if answer is not None:
            threading.Thread(target=serve, daemon=True).start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)


def reset(taken: socket.socket) -> None:
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    taken.close()


def says(words: bytes) -> Callable[[socket.socket], None]:
    return lambda taken: taken.sendall(words)


NO_SERVER: dict[str, tuple[Callable[[socket.socket], None], str]] = {
    "reset": (reset, "reset by peer|closed before it named itself"),
    "silent": (lambda _: None, "no answer within 2 s, before it named itself"),
    "banner-alone": (says(b"SSH-2.0-OpenSSH_9.2\r\n"), "no answer within 2 s, in the key exchange"),
    "bytes": (says(b"\xb4\xff\x00\n" * 9), "what answers there is no SSH server"),
    "terminal": (says(b"\x1b]0;x\x07\x1b[2Jnope\r\n" * 200), "no SSH server: Indecipherable"),
}


def test_what_is_no_ssh_server(lab: Lab) -> None:
    with contextlib.ExitStack() as stack:
        ports = {name: stack.enter_context(listener(answer)) for name, (answer, _) in NO_SERVER.items()}
        hosts = {name: at(port, user="root") for name, port in ports.items()}
        ended = lab.run("all", hosts, "hosts", "--check", *hosts)
    assert ended.code == 3
    for name, (_, sentence) in NO_SERVER.items():
        told = ended.told(name)
        assert told.startswith(f"{name}: ")
        assert re.search(sentence, told), told
        assert not told.endswith("→ ")
        assert "Error reading" not in told
    assert "\x1b" not in ended.stdout


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_black_hole(lab: Lab, transport: str) -> None:
    with listener(None, backlog=0) as port, contextlib.ExitStack() as filling:
        for _ in range(4):
            filler = filling.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
        ended = lab.run(transport, {"gpu1": at(port, user="root", transport=transport)}, "inspect-config")
    assert ended.code == 3
    assert ended.host()["error"].startswith("gpu1: ")
    assert ended.host()["advice"]


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_the_command_to_try_by_hand_leads_to_the_same_place(
    lab: Lab, sshd: StartServer, transport: str
) -> None:
    """An inventory knows ports, users and keys that `ssh NAME` alone does not."""
    server = sshd(authorized=False)
    ended = lab.run(transport, {"gpu1": entry(server, transport=transport)}, "server")
    assert ended.code == 3
    assert f"ssh -l {server.user} -p {server.port} 127.0.0.1" in ended.told()


# --- after the login ---------------------------------------------------------------------------------------

LOGIN_SHELLS = {
    "flood": (
        "#!/bin/sh\nhead -c 2000000 /dev/zero | tr '\\0' x\nexec /bin/sh \"$@\"\n",
        "more than 1024 KiB",
    ),
    "endless": ("#!/bin/sh\nexec cat /dev/zero\n", "bytes that are no text (more than 1024 KiB"),
    "stderr": ("#!/bin/sh\nexec yes error >&2\n", "more than 1024 KiB"),
    "asks": ("#!/bin/sh\nprintf 'Agree? '\nread a\n[ \"$a\" = y ] || exit 3\n", "'Agree?' (exit code 3)"),
    "slow": (
        '#!/bin/sh\nsleep 20\nexec /bin/sh "$@"\n',
        "nothing (no shell within 6 s) → its rc files may be slow",
    ),
    "swallows": ("#!/bin/sh\nexec cat >/dev/null\n", "nothing (no shell within 6 s)"),
    "leaves": ("#!/bin/sh\nexit 1\n", "nothing (exit code 1) → a forced command"),
}


def test_login_shells_that_are_none(lab: Lab, sshd: StartServer, server: real.Server) -> None:
    """They cost the host beside them nothing."""
    hosts = {"good": entry(server, connect_timeout=30)}
    for name, (text, sentence) in LOGIN_SHELLS.items():
        program = lab.folder / f"{name}.sh"
        program.write_text(text)
        program.chmod(0o755)
        # Who says something is waited for; who says nothing costs the whole time.
        patience = 6 if "within 6 s" in sentence else 30
        hosts[name] = entry(sshd(forced_command=str(program)), connect_timeout=patience)
    ended = lab.run("all", hosts, "hosts", "--check", *hosts, limit=30 + SLACK)
    assert ended.code == 3
    assert ended.host("good")["error"] == ""
    for name, (_, sentence) in LOGIN_SHELLS.items():
        told = ended.told(name)
        assert told.startswith(f"{name}: logged in, but no POSIX shell answers: it said ")
        assert sentence in told
    assert "\x1b" not in ended.stdout


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_server_that_opens_no_session(lab: Lab, sshd: StartServer, transport: str) -> None:
    ended = lab.run(transport, {"gpu1": entry(sshd(max_sessions=0), transport=transport)}, "read", "x.py")
    assert ended.code == 3
    assert ended.told().startswith("gpu1: logged in, but the SSH server opens no session: ")
    assert "MaxSessions" in ended.told()


@pytest.mark.parametrize(
    ("missing", "code", "sentence"),
    [
        ("head", 3, "logged in, but there is no head in PATH → "),
        ("sleep", 3, "logged in, but there is no sleep in PATH → "),
        ("grep", 4, "the host has no grep: what leaves a question's process group"),
    ],
)
def test_a_host_without_a_program(
    lab: Lab, sshd: StartServer, missing: str, code: int, sentence: str
) -> None:
    narrow = narrowed(programs_but(lab.folder, missing))
    ended = lab.run("run", {"gpu1": entry(sshd(forced_command=narrow))}, "inspect-config")
    assert ended.code == code, ended
    notes = (ended.host()["connection"] or {}).get("notes", [])
    assert sentence in ended.told() + " ".join(notes)


def programs_but(folder: Path, missing: str) -> Path:
    """A folder with what a host has, but one program."""
    programs = folder / "bin"
    programs.mkdir()
    for name in {"env", "sh", "setsid", "sleep", "head", "grep", "cat", "ls", "stat", "uname"} - {missing}:
        (programs / name).symlink_to(f"/bin/{name}")
    return programs


def narrowed(programs: Path) -> str:
    """A shell whose $PATH has that folder alone."""
    return f"sed -u 's#^LC_ALL=C PATH=.*#LC_ALL=C PATH={programs}#' | dash -s"


# --- cut short ---------------------------------------------------------------------------------------------


def test_killed_at_any_moment_nothing_stays(lab: Lab, sshd: StartServer) -> None:
    """SIGKILL leaves the laptop no time for anything: the host must find out by itself."""
    server = sshd()
    for number, pause in enumerate((0.0, 0.1, 0.2, 0.35, 0.5)):
        before = connections(server)
        running = lab.start(str(number), {"gpu1": entry(server, transport=TRANSPORTS[number % 2])}, "server")
        # A whole Python has to start first, and the machine may be busy.
        begun = until(lambda before=before: connections(server) - before, 60)  # type: ignore[misc]
        code = running.poll()
        time.sleep(pause)
        running.kill()
        out, err = running.communicate()
        assert begun, f"no connection came: exit code {code}\n{out!r}\n{err!r}"
    # The guards take three seconds, at most.
    assert until(lambda: not [pid for pid in server.children() if not idle_master(pid)])


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_link_that_is_cut(lab: Lab, sshd: StartServer, transport: str) -> None:
    """What came before stays, and nobody claims that the host is clean."""
    programs = programs_but(lab.folder, "grep")
    (programs / "grep").write_text("#!/bin/sh\nexec sleep 20\n")
    (programs / "grep").chmod(0o755)
    server = sshd(forced_command=narrowed(programs))
    running = lab.start("run", {"gpu1": entry(server, transport=transport)}, "server")
    assert until(lambda: any(asked(pid) for pid in server.children()))
    real.tell([pid for pid in server.children() if idle_master(pid)], signal.SIGKILL)
    ended = lab.end("run", running, COMMAND + SLACK)
    assert ended.code == 4, ended
    assert "Traceback" not in ended.stderr
    assert not re.search("ddprobe-[0-9a-f]{32}", ended.stdout)
    assert any("could not be looked up" in note for note in ended.host()["connection"]["notes"])
    assert until(lambda: not server.children())


def asked(pid: int) -> bool:
    """It belongs to a question."""
    with contextlib.suppress(OSError):
        return b"DDPROBE_RUN=" in Path(f"/proc/{pid}/environ").read_bytes()
    return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_leave_a_report_and_no_process(lab: Lab, sshd: StartServer, number: signal.Signals) -> None:
    server = sshd(forced_command="sh -c 'sleep 1; exec sh -s'")
    running = lab.start("run", {"gpu1": entry(server, connect_timeout=10)}, "server")
    assert until(server.children)
    time.sleep(0.2)
    running.send_signal(number)
    ended = lab.end("run", running, SLACK)
    assert ended.code == 130
    assert ended.report["interrupted"]
    assert until(lambda: not server.children())


def until(condition: Callable[[], Any], seconds: float = 8.0) -> bool:
    limit = time.monotonic() + seconds
    while not (met := condition()) and time.monotonic() < limit:
        time.sleep(0.02)
    return bool(met)


def connections(server: real.Server) -> set[int]:
    """The sshd processes that serve connections: what earlier ones left may still start processes of its own."""
    return {pid for pid in server.children() if idle_master(pid)}


def idle_master(pid: int) -> bool:
    """An sshd process that serves a connection and runs nothing: ssh's master ends after a while of its own."""
    with contextlib.suppress(OSError):
        return b"sshd" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return True
