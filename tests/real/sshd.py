"""Real OpenSSH servers on 127.0.0.1, each with its own key, settings and login shell, and a laptop that knows them.

The laptop is a folder with an `ssh` that reads its own configuration (OpenSSH takes the home folder from the password
database, so `$HOME` cannot hide the person's own), a key, and a known_hosts file.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ddprobe.model import Host

SSHD = "/usr/sbin/sshd"


@dataclass(frozen=True, slots=True)
class Laptop:
    """The side that connects."""

    folder: Path
    key: Path
    known_hosts: Path
    config: Path

    @property
    def path(self) -> str:
        """$PATH with this laptop's `ssh` in front."""
        return f"{self.folder}:{os.environ['PATH']}"


@contextlib.contextmanager
def laptop() -> Iterator[Laptop]:
    """A laptop with a key, whose `ssh` is in front of $PATH as long as the context lasts."""
    program = shutil.which("ssh")
    assert program, "there is no ssh here: apt-get install openssh-client"
    with folder() as home:
        key, known, config = home / "id_ed25519", home / "known_hosts", home / "config"
        make_key(key)
        known.touch()
        config.write_text(
            f"Host *\n  UserKnownHostsFile {known}\n  GlobalKnownHostsFile /dev/null\n"
            f"  IdentityFile {key}\n  IdentitiesOnly yes\n  IdentityAgent none\n"
        )
        wrapper = home / "ssh"
        wrapper.write_text(f'#!/bin/sh\nexec {program} -F {config} "$@"\n')
        wrapper.chmod(0o755)
        made = Laptop(home, key, known, config)
        before = os.environ["PATH"]
        os.environ["PATH"] = made.path
        try:
            yield made
        finally:
            os.environ["PATH"] = before


@dataclass(frozen=True, slots=True)
class Account:
    """Somebody to log in as."""

    name: str
    home: Path
    shell: str


@contextlib.contextmanager
def account(shell: str, **files: str) -> Iterator[Account]:
    """A plain user with that login shell, and files (`bashrc="…"` is ~/.bashrc) in the home folder. Needs root."""
    assert os.geteuid() == 0, "accounts with other login shells can only be made by root"
    assert Path(shell).exists(), f"{shell} is missing here: tests/run installs it"
    with folder() as home:
        for name, text in files.items():
            (home / f".{name}").write_text(text)
        _clear_away()
        user = f"ddp{os.getpid()}x{time.monotonic_ns() % 10**8}"
        _account_tool("useradd", "--no-log-init", "-M", "-d", str(home), "-s", shell, "-p", "*", user)
        try:
            subprocess.run(["chown", "-R", f"{user}:", str(home)], check=True)
            yield Account(user, home, shell)
        finally:
            _end_all_of(user)
            _account_tool("userdel", user)


def _clear_away() -> None:
    """Accounts of test runs that were killed: their names say which."""
    for entry in pwd.getpwall():
        made_by = re.match(r"ddp(\d+)x\d+\Z", entry.pw_name)
        if made_by and not Path(f"/proc/{made_by[1]}").exists():
            with contextlib.suppress(AssertionError):
                _account_tool("userdel", entry.pw_name)


def _account_tool(*argv: str) -> None:
    """useradd and userdel hold a lock: another test run may have it."""
    for _ in range(50):
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return
        if "lock" not in done.stderr and "currently used" not in done.stderr:
            break
        time.sleep(0.1)
    raise AssertionError(f"{argv[0]}: {done.stderr}")


def _end_all_of(user: str) -> None:
    """A user that was made for a test takes its processes along."""
    found = subprocess.run(["pgrep", "-u", user], capture_output=True, text=True, check=False)
    tell([int(pid) for pid in found.stdout.split()], signal.SIGKILL)


@dataclass(slots=True)
class Server:
    """A running sshd."""

    laptop: Laptop
    port: int
    user: str
    folder: Path
    process: subprocess.Popen[bytes]
    """The shell that holds it."""
    pid: int
    home: Path = Path("/")

    @property
    def key(self) -> Path:
        """The laptop's private key, which this server accepts."""
        return self.laptop.key

    @property
    def known_hosts(self) -> Path:
        return self.laptop.known_hosts

    def host(self, name: str = "gpu1", **changes: Any) -> Host:
        """This server as an inventory would hold it."""
        known: dict[str, Any] = {
            "address": "127.0.0.1",
            "port": self.port,
            "user": self.user,
            "connect_timeout": 10.0,
        }
        return Host(name=name, **(known | changes))

    def log(self) -> str:
        return (self.folder / "log").read_text("utf-8", "replace")

    def children(self) -> list[int]:
        """The processes that serve this server's connections, their commands included."""
        return descendants(self.pid)

    def stop(self) -> None:
        """End the server and every connection of it."""
        pids = [self.pid, *self.children()]
        assert self.process.stdin
        self.process.stdin.close()
        tell(pids, signal.SIGCONT)
        tell(pids, signal.SIGKILL)
        self.process.wait()


@contextlib.contextmanager
def server(
    known_to: Laptop,
    *,
    who: Account | None = None,
    max_sessions: int | None = None,
    forced_command: str | None = None,
    allow_tcp_forwarding: bool = True,
    authorized: bool = True,
    in_known_hosts: bool = True,
    settings: Sequence[str] = (),
    everywhere: bool = False,
) -> Iterator[Server]:
    """Start an sshd that lets the laptop in as `who` (the user who runs the tests, unless given).

    `everywhere`: on every loopback address, 127.0.1.1 to 127.0.1.254 among them; sshd itself takes but 16 by name.
    """
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    with folder() as home:
        make_key(home / "host_key")
        keys = home / "authorized_keys"
        keys.write_bytes(known_to.key.with_suffix(".pub").read_bytes() if authorized else b"")
        lines = [
            *(["ListenAddress 0.0.0.0", "AllowUsers *@127.*"] if everywhere else ["ListenAddress 127.0.0.1"]),
            f"HostKey {home / 'host_key'}",
            f"AuthorizedKeysFile {keys}",
            f"PidFile {home / 'pid'}",
            "StrictModes no",
            "UsePAM no",
            "PermitRootLogin yes",
            "PasswordAuthentication no",
            "KbdInteractiveAuthentication no",
            "PrintMotd no",
            f"AllowTcpForwarding {'yes' if allow_tcp_forwarding else 'no'}",
            *([f"MaxSessions {max_sessions}"] if max_sessions is not None else []),
            *([f"ForceCommand {forced_command}"] if forced_command is not None else []),
            *settings,
        ]
        user = who.name if who else _user()
        process, port = _start(home, lines)
        pid = int((home / "pid").read_text())
        running = Server(known_to, port, user, home, process, pid, who.home if who else Path.home())
        if in_known_hosts:
            public = (home / "host_key.pub").read_text().rsplit(" ", 1)[0]
            with known_to.known_hosts.open("a") as file:
                file.write(f"[127.0.0.1]:{port} {public}\n")
        try:
            yield running
        finally:
            running.stop()


def _start(home: Path, lines: Sequence[str]) -> tuple[subprocess.Popen[bytes], int]:
    """Start on a free port; another process may take it first, then on another."""
    for _ in range(10):
        port = free_port()
        config = home / "sshd_config"
        config.write_text("\n".join([f"Port {port}", *lines, ""]))
        with (home / "log").open("wb") as log:
            process = subprocess.Popen(
                ["/bin/sh", "-c", _TETHERED, SSHD, str(config)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        for _ in range(200):
            if process.poll() is not None:
                break
            if (home / "pid").exists() and (home / "pid").read_text().endswith("\n"):
                return process, port
            time.sleep(0.02)
        assert process.stdin
        process.stdin.close()
        process.wait()
    raise AssertionError(f"sshd does not start: {(home / 'log').read_text()}")


# Should the tests be killed, their end of the pipe closes and takes the server along.
_TETHERED = """
exec 3<&0
"$0" -D -e -f "$1" </dev/null 3<&- &
read -r _ <&3
kill $!
wait
"""


def free_port() -> int:
    """A port of 127.0.0.1 that nothing listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def make_key(path: Path, passphrase: str = "", kind: str = "ed25519") -> None:
    """A key pair at `path` and `path`.pub."""
    argv = ["ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-C", "ddprobe test", "-f", str(path)]
    subprocess.run(argv, check=True, stdin=subprocess.DEVNULL)


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """A folder that other users may enter, gone afterwards: pytest's own are private to who runs it."""
    path = Path(tempfile.mkdtemp(prefix="ddprobe-real-"))
    path.chmod(0o755)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _user() -> str:
    return subprocess.run(["id", "-un"], check=True, capture_output=True, text=True).stdout.strip()


# --- looking at processes ----------------------------------------------------------------------------------


def of_processes(name: str) -> list[Path]:
    """That file of every process there is now. `glob` would look at each, and stumble over one that ends meanwhile."""
    return [Path("/proc", pid, name) for pid in os.listdir("/proc") if pid.isdigit()]  # noqa: PTH208


def descendants(pid: int) -> list[int]:
    """Every living process below `pid`."""
    parents: dict[int, int] = {}
    for path in of_processes("stat"):
        with contextlib.suppress(OSError, IndexError, ValueError):
            fields = path.read_text("utf-8", "replace").rpartition(")")[2].split()
            parents[int(path.parent.name)] = int(fields[1])
    found = [pid]
    for parent in found:
        found += [child for child, above in parents.items() if above == parent]
    return found[1:]


def carrying(token: str) -> list[int]:
    """Every living process whose environment names a run of that token."""
    mark = f"DDPROBE_RUN={token}".encode()
    found = []
    for path in of_processes("environ"):
        with contextlib.suppress(OSError):
            if any(word.startswith(mark) for word in path.read_bytes().split(b"\0")):
                found.append(int(path.parent.name))
    return found


@contextlib.contextmanager
def once(condition: Callable[[], object], act: Callable[[], object]) -> Iterator[list[float]]:
    """Beside what happens within: as soon as the condition holds, act. Gives the time at which it did."""
    done = threading.Event()
    acted: list[float] = []

    def watch() -> None:
        while not done.wait(0.02):
            if condition():
                acted.append(time.monotonic())
                act()
                return

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield acted
    finally:
        done.set()
        watcher.join()


def tell(pids: Sequence[int], number: int) -> None:
    """Send a signal to those that are still there."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def running(*words: str) -> list[int]:
    """Every living process whose arguments hold these words next to each other."""
    wanted = "\0".join(words).encode()
    found = []
    for path in of_processes("cmdline"):
        with contextlib.suppress(OSError):
            if wanted in path.read_bytes() and int(path.parent.name) != os.getpid():
                found.append(int(path.parent.name))
    return found
