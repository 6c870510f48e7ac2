"""The `ssh` program as the road: all that it can do (hardware keys, GSSAPI, company proxies), over one master.

One master holds the connection; its socket lies in a private folder that goes away with the session. Each shell, and
each HTTP request (`ssh -W`), is a small `ssh` that speaks to the master. Should the master be gone, it fails: it never
opens a connection of its own.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ddprobe.errors import HostError, HostKeyChanged, HostKeyUnknown, NoShell, NotAuthenticated, Unreachable
from ddprobe.model import Connection, Host
from ddprobe.redact import Redactor
from ddprobe.sessions.asking import NoMoreSessions, Pipe
from ddprobe.sessions.container import command_line
from ddprobe.sessions.process import ProcessPipe
from ddprobe.sessions.shell import ShellSession
from ddprobe.sessions.sshconfig import Hop, Route, above_config, resolve, ssh_program
from ddprobe.sessions.stream import ForwardingRefused, ProcessStream, Stream

if TYPE_CHECKING:
    from ddprobe.sessions.http import Web

SOCKET_MAX = 104 - len(".0123456789abcdef") - 1
"""Longest path of a socket on macOS, less what ssh appends while it makes it."""
IDLE_SECONDS = 60
"""After so long without a shell the master ends by itself: a ddprobe that was killed leaves nothing behind."""
PROMPT_SECONDS = 300.0
ATTEMPTS = 5
_PROMPTING = threading.Lock()

_ALWAYS = (
    "ClearAllForwardings=yes", "EscapeChar=none", "ForwardAgent=no", "ForwardX11=no", "PermitLocalCommand=no",
    "RemoteCommand=none", "RequestTTY=no", "ServerAliveCountMax=2", "ServerAliveInterval=2", "UpdateHostKeys=no",
)  # fmt: skip


class OpensshSession(ShellSession):
    """A session through the `ssh` program."""

    def __init__(self, host: Host, redactor: Redactor, cancelled: threading.Event) -> None:
        super().__init__(host, redactor, cancelled)
        program = ssh_program()
        if program is None:
            raise Unreachable(f"{host.name}: there is no ssh program here", "set `transport: ssh`")
        self._route = resolve(host)
        self._master = _Master(program, host, self._route, cancelled)
        self._most = 0
        """How many shells the host allows, once it refused one."""
        before = time.monotonic()
        try:
            self._master.connect()
            try:
                self._start()
            except NoShell:
                self._master.check()
                if self._most:
                    raise self._no_session("it refused the first") from None
                raise
        except BaseException:
            self.close()
            raise
        self._connect_seconds = time.monotonic() - before

    @property
    def connection(self) -> Connection:
        return Connection(
            transport="openssh",
            address=self._route.last.address,
            user=self._route.last.user,
            port=self._route.last.port,
            host_key=self._master.host_key,
            connect_seconds=self._connect_seconds,
            notes=(*self._route.notes, *self._master.notes, *self._all_notes()),
        )

    def _open_pipe(self) -> Pipe:
        open_now = sum(not shell.broken for shell in self._shells)
        if self._most and open_now >= self._most:
            raise NoMoreSessions(f"{self._most} are open")
        self._master.check()
        return _SshPipe(self._master.words("-T", command=command_line(self.host)), self._full)

    def _full(self) -> None:
        self._most = max(1, sum(shell.ready and not shell.broken for shell in self._shells))

    def _make_web(self) -> Web:
        from ddprobe.sessions.http import Web

        return Web(self.host, self.cancelled, self._master.dial, self._run)

    def close(self) -> None:
        super().close()
        self._master.close()


class _SshPipe(ProcessPipe):
    """A shell's pipe that knows what ssh's own complaints mean."""

    def __init__(self, argv: Sequence[str], full: Callable[[], None]) -> None:
        super().__init__(argv)
        self._said = b""
        self._tell_full = full

    def receive(self) -> tuple[bytes, bytes]:
        stdout, stderr = super().receive()
        if stderr:
            self._said = (self._said + stderr)[-2000:]
            if b"session request failed" in self._said and b"refused by peer" in self._said:
                self._tell_full()
        return stdout, stderr

    @property
    def epitaph(self) -> str:
        ended = super().epitaph
        if ended != "exit code 255":
            return ended
        # The marks that end our answers' stderr are no words of ssh's.
        said = self._said.decode("utf-8", "replace").strip().splitlines()
        lines = [line for line in said if not line.startswith("ddprobe-")]
        return f"ssh: {lines[-1][:300]}" if lines else "the connection was lost"


class _Master:
    """The one connection: an `ssh` in the background, and the socket to it."""

    def __init__(self, program: str, host: Host, route: Route, cancelled: threading.Event) -> None:
        self.program = program
        self.host = host
        self.route = route
        self.cancelled = cancelled
        self.notes: list[str] = []
        self.host_key = ""
        self._folder = _private_folder()
        self._socket = self._folder / "s"
        self._log = self._folder / "log"

    # --- connecting ------------------------------------------------------------------------------------------

    def connect(self) -> None:
        """Bring the master up. Asks for a passphrase only on a terminal, one host at a time. Raises `HostError`."""
        try:
            self._try_often()
        except NotAuthenticated:
            if not (sys.stdin.isatty() and sys.stderr.isatty()):
                raise
            with _PROMPTING:
                self._try(batch=False, seconds=PROMPT_SECONDS)
        log = self._log_text()
        self.host_key = (_offered(log) or [""])[-1]
        for name in re.findall(r"^Warning: Permanently added '(.*)' \(", log, re.MULTILINE):
            self.notes.append(
                f"the host key of {name} was never seen before and was accepted; it is now known"
            )

    def _try_often(self) -> None:
        """A server past its MaxStartups hangs up on newcomers at random: the next attempt may pass."""
        patience = sum(hop.connect_timeout for hop in self.route.hops) + 10
        for attempt in range(ATTEMPTS):
            try:
                self._try(batch=True, seconds=patience)
                return
            except Unreachable:
                hung_up = "kex_exchange_identification: " in self._log_text()
                pause = random.uniform(0.1, 0.4) * 2**attempt
                if not hung_up or attempt + 1 == ATTEMPTS or self.cancelled.wait(pause):
                    raise

    def _try(self, batch: bool, seconds: float) -> None:
        self._log.write_bytes(b"")
        limit = time.monotonic() + seconds
        with self._log.open("ab") as log:
            # Errors of a ProxyCommand's go to stderr, those of ssh itself to the log: here both are one file.
            starting = subprocess.Popen(
                self._connecting(batch),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=batch,
            )
        while starting.poll() is None:
            if time.monotonic() > limit or self.cancelled.is_set():
                starting.kill()
                starting.wait()
                why = "interrupted" if self.cancelled.is_set() else f"no connection within {seconds:.0f} s"
                raise Unreachable(f"{self.host.name}: {why}")
            with contextlib.suppress(subprocess.TimeoutExpired):
                starting.wait(0.05)
        if starting.returncode:
            raise trouble(self.host, self.route, self._log_text())

    def _connecting(self, batch: bool) -> list[str]:
        words = [self.program, "-v", "-E", str(self._log), "-M", "-S", str(self._socket), "-f", "-N"]
        words += self._options(self.route.last, batch)
        words += ["-o", f"ControlPersist={IDLE_SECONDS}"]
        words += above_config(self.host.user, self.host.port, self.host.identity_file)
        if len(self.route.hops) > 1:
            words += ["-o", f"ProxyCommand={self._proxy(self.route.hops[:-1], batch)}"]
        elif self.host.jump:
            words += ["-o", "ProxyJump=none"]
        return [*words, "--", self.route.last.name]

    def _options(self, hop: Hop, batch: bool) -> list[str]:
        strict = "accept-new" if self.host.host_key == "accept-new" else "yes"
        own: tuple[str, ...] = (
            f"BatchMode={'yes' if batch else 'no'}",
            f"StrictHostKeyChecking={strict}",
            f"ConnectTimeout={max(1, round(hop.connect_timeout))}",
        )
        if self.host.known_hosts:
            files = " ".join(f'"{path}"' for path in hop.known_hosts_files)
            own += (f"UserKnownHostsFile={files}", "GlobalKnownHostsFile=none")
        return [word for option in (*own, *_ALWAYS) for word in ("-o", option)]

    def _proxy(self, hops: Sequence[Hop], batch: bool) -> str:
        """The command that leads through the hops. Not `-J`: ssh would check their keys by other rules than ours."""
        last = hops[-1]
        words = [self.program, "-v", *self._options(last, batch), "-W", "[%h]:%p"]
        words += ["-o", "ControlPath=none", "-l", last.user, "-p", str(last.port)]
        if len(hops) > 1:
            words += ["-o", "ProxyCommand=" + self._proxy(hops[:-1], batch).replace("%", "%%")]
        return shlex.join([*words, "--", last.name])

    # --- using -----------------------------------------------------------------------------------------------

    def words(self, *options: str, command: str = "") -> list[str]:
        """An `ssh` that speaks to the master, and to nobody else."""
        alone = ["-F", "none", "-S", str(self._socket), "-o", "ControlMaster=no", "-o", "ProxyCommand=false"]
        target = ["--", self.route.last.name]
        return [self.program, *alone, *options, *target, *([command] if command else [])]

    def check(self) -> None:
        """Raise `Unreachable` unless the master is there."""
        done = subprocess.run(
            self.words("-O", "check"), stdin=subprocess.DEVNULL, capture_output=True, timeout=10, check=False
        )
        if done.returncode:
            last = self._complaints()[-1:] or ["the ssh program has ended"]
            raise Unreachable(f"{self.host.name}: the connection was lost: {last[0][:300]}")

    def dial(self, address: str, port: int, seconds: float) -> Stream:
        """A stream to where the host can connect. Whether it can is known at the first read."""
        shown = f"[{address}]" if ":" in address else address
        seen = self._log.stat().st_size
        return ProcessStream(self.words("-W", f"{shown}:{port}"), lambda: self._refusal(seen))

    def _refusal(self, seen: int) -> Exception:
        """Why the host opened no channel since the log was that long: ssh says it to the master's log alone."""
        log = self._log_text()[seen:]
        if "administratively prohibited" in log:
            return ForwardingRefused("the SSH server refuses forwarding (AllowTcpForwarding)")
        if "open failed: connect failed" in log:
            return ConnectionRefusedError("connection refused on the host")
        return OSError("the ssh program opened no channel")

    def _log_text(self) -> str:
        try:
            return self._log.read_bytes().decode("utf-8", "replace")
        except OSError:
            return ""

    def _complaints(self) -> list[str]:
        return complaints(self._log_text())

    def close(self) -> None:
        if self._socket.exists():
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                subprocess.run(
                    self.words("-O", "exit"),
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    timeout=5,
                    check=False,
                )
        shutil.rmtree(self._folder, ignore_errors=True)


# --- what ssh says -----------------------------------------------------------------------------------------


_NO_COMPLAINTS = (
    "debug", "@@@", "OpenSSH_", "Authenticated to ", "Transferred: sent ", "Bytes per second: ",
)  # fmt: skip


def complaints(log: str) -> list[str]:
    """The lines of ssh's log that a person should read."""
    lines = (line.strip() for line in log.splitlines())
    return [line for line in lines if line and not line.startswith(_NO_COMPLAINTS)]


def _offered(log: str) -> list[str]:
    """The host keys that were offered, hop by hop."""
    return re.findall(r"^debug1: Server host key: (\S+ SHA256:\S+)", log, re.MULTILINE)


def trouble(host: Host, route: Route, log: str) -> HostError:
    """The error that ssh's log tells of."""
    said = complaints(log)
    last = said[-1][:300] if said else "ssh ended without a word"
    by_hand = route.last.by_hand
    # The keys of all hops in order: the last one is that of the hop in question.
    offered = (_offered(log) or ["whose fingerprint ssh did not tell"])[-1]
    name = (re.findall(r"host key (?:is known )?for (\S+)", log, re.IGNORECASE) or [route.last.name])[-1]
    if "REVOKED HOST KEY" in log:
        return HostKeyChanged(
            f"{host.name}: the host key of {name}, {offered}, is marked as revoked",
            "somebody may be in the way: ask whoever runs the host",
        )
    if "HOST IDENTIFICATION HAS CHANGED" in log:
        place = re.search(r"Offending .*key in (.+:\d+)\s*$", log, re.MULTILINE)
        known = f", another is known from {place[1]}" if place else ""
        return HostKeyChanged(
            f"{host.name}: the host key of {name} has changed: {offered} is offered{known}",
            "somebody may be in the way. If the host was set up anew, "
            f"remove the old key with `ssh-keygen -R '{name}'`",
        )
    if "Host key verification failed" in log:
        hop = next((hop for hop in route.hops if hop.address in name), route.last)
        return HostKeyUnknown(
            f"{host.name}: the host key of {name}, {offered}, is not in {hop.looked_in}",
            f"compare the fingerprint while connecting once with `{by_hand}`, or set `host_key: accept-new`",
        )
    if re.search(r"Permission denied|Too many authentication failures", log):
        return NotAuthenticated(f"{host.name}: {last}", f"try `{by_hand}` by hand")
    return Unreachable(f"{host.name}: {last}", f"try `{by_hand}` by hand")


def _private_folder() -> Path:
    """A folder of mode 0700 under a path short enough for a socket."""
    folder = Path(tempfile.mkdtemp(prefix="ddprobe-"))
    if len(os.fsencode(folder)) + len("/s") > SOCKET_MAX:
        folder.rmdir()
        folder = Path(tempfile.mkdtemp(prefix="ddprobe-", dir="/tmp"))
    return folder
