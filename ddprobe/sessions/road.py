"""The SSH connections to a host, one a hop: Fabric connects them, ddprobe supplies the socket, the keys, the checks.

Every trouble is told by the phase it came in: Paramiko's own texts do not tell a timeout from a refusal. One deadline
holds for the whole chain, and `cancelled` ends it at once: both close the socket under whatever waits.
"""

from __future__ import annotations

import contextlib
import logging
import random
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from typing import Any

import fabric
import paramiko

from ddprobe.errors import HostError, Unreachable
from ddprobe.sessions.hostkeys import Checker
from ddprobe.sessions.identities import Identities
from ddprobe.sessions.sshconfig import Hop, Route

logging.getLogger("paramiko").addHandler(logging.NullHandler())

ATTEMPTS = 5
"""A server past its MaxStartups hangs up on newcomers at random: the next attempt may pass."""
_INTERRUPTED = "interrupted while connecting"


class Road:
    """The open connections from here to the host. `transport` is the last one's."""

    def __init__(self, route: Route, seconds: float, accept_new: bool, cancelled: threading.Event) -> None:
        """Connect. Raises `HostError`."""
        self.route = route
        self.accept_new = accept_new
        self.notes = list(route.notes)
        self.host_key = ""
        self._connections: list[Any] = []
        self._socket: socket.socket | None = None
        self._proxy: subprocess.Popen[bytes] | None = None
        self._limit = _Limit(seconds, cancelled, self._cut)
        try:
            with self._limit:
                for hop in route.hops:
                    self._connect(hop)
        except BaseException:
            self.close()
            raise

    @property
    def transport(self) -> paramiko.Transport:
        transport: paramiko.Transport = self._connections[-1].transport
        return transport

    def close(self) -> None:
        """Give every connection back, the last first."""
        self._cut()
        for connection in reversed(self._connections):
            with contextlib.suppress(Exception):
                connection.client.close()
        if self._socket is not None:
            self._socket.close()
        if self._proxy is not None:
            self._proxy.terminate()
            self._proxy.wait()

    def _cut(self) -> None:
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def _connect(self, hop: Hop) -> None:
        for attempt in range(ATTEMPTS):
            try:
                self._attempt(hop)
                return
            except _HungUp as error:
                if attempt + 1 == ATTEMPTS or not self._limit.sleep(random.uniform(0.1, 0.4) * 2**attempt):
                    raise error.told from None

    def _attempt(self, hop: Hop) -> None:
        checker = Checker(hop, self.accept_new)
        identities = Identities(hop, self._limit.pause)
        gateway = self._connections[-1] if self._connections else None
        options: dict[str, Any] = {
            "auth_strategy": identities,
            "banner_timeout": self._limit.seconds,
            "auth_timeout": self._limit.seconds + _Limit.PROMPT,
            "channel_timeout": self._limit.seconds,
        }
        if gateway is None:
            options["sock"] = self._socket = self._dial(hop)
        connection = fabric.Connection(
            host=hop.address,
            user=hop.user,
            port=hop.port,
            config=_config(),
            gateway=gateway,
            forward_agent=False,
            connect_timeout=self._limit.seconds + _Limit.PROMPT,
            connect_kwargs=options,
        )
        options |= checker.prepare(connection.client)
        self._connections.append(connection)
        started = time.monotonic()
        try:
            connection.open()
        except Exception as error:
            self._connections.pop()
            with contextlib.suppress(Exception):
                connection.client.close()
            told = self._explain(error, hop, checker, identities)
            early = not checker.fingerprint and not self._limit.over and time.monotonic() - started < 5
            if early and not isinstance(error, HostError | paramiko.ChannelException):
                raise _HungUp(told) from None
            raise told from None
        finally:
            self.notes += checker.notes
        self.host_key = checker.fingerprint

    def _explain(self, error: Exception, hop: Hop, checker: Checker, identities: Identities) -> HostError:
        """The error in words, by the phase in which it came."""
        if isinstance(error, HostError):
            return error
        name = f"{hop.name} ({hop.address}:{hop.port})"
        if self._limit.cancelled.is_set():
            return Unreachable(f"{hop.name}: {_INTERRUPTED}")
        if isinstance(error, paramiko.ChannelException):
            before = self.route.hops[self.route.hops.index(hop) - 1].name
            if error.code == 1:
                return Unreachable(f"{name}: the jump host {before} forbids forwarding (AllowTcpForwarding)")
            return Unreachable(f"{name}: the jump host {before} cannot reach it: {error.text}")
        phase = "before it named itself"
        if identities.started:
            phase = "while it checked who we are"
        elif checker.fingerprint:
            phase = "after the key exchange"
        if self._limit.over:
            return Unreachable(
                f"{name}: no answer within {self._limit.seconds:g} s, {phase}",
                "raise connect_timeout if it is slow",
            )
        if (
            not checker.fingerprint
            and isinstance(error, paramiko.SSHException)
            and "banner" not in str(error)
        ):
            return Unreachable(f"{name}: the SSH handshake failed: {_words(error)}")
        return Unreachable(f"{name}: the connection was closed {phase}: {_words(error)}")

    # --- the socket ------------------------------------------------------------------------------------------

    def _dial(self, hop: Hop) -> socket.socket:
        if hop.proxy_command:
            return self._through_proxy(hop)
        try:
            found = socket.getaddrinfo(hop.address, hop.port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise Unreachable(
                f"{hop.name}: {hop.address!r} has no address: {error.strerror}",
                "is the name right? a VPN down?",
            ) from None
        trouble: OSError | None = None
        for family, kind, protocol, _, address in found:
            try:
                return self._reach(socket.socket(family, kind, protocol), address)
            except OSError as error:
                trouble = error
        if self._limit.cancelled.is_set():
            raise Unreachable(f"{hop.name}: {_INTERRUPTED}")
        if self._limit.over:
            raise Unreachable(
                f"{hop.name}: {hop.address}:{hop.port} does not answer within {self._limit.seconds:g} s",
                "is the host up, a VPN down, a firewall in the way?",
            )
        said = (trouble.strerror or str(trouble)) if trouble else "no address"
        raise Unreachable(f"{hop.name}: {hop.address}:{hop.port}: {said}", "is sshd running, on this port?")

    def _reach(self, sock: socket.socket, address: Any) -> socket.socket:
        """Connect, seeing the deadline and `cancelled`."""
        try:
            for level, option, value in _socket_options():
                sock.setsockopt(level, option, value)
            # Blocking in small steps: closing the socket under a connect() does not wake it everywhere.
            self._socket = sock
            sock.settimeout(self._limit.left())
            sock.connect(address)
            sock.settimeout(None)
        except BaseException:
            self._socket = None
            sock.close()
            raise
        return sock

    def _through_proxy(self, hop: Hop) -> socket.socket:
        ours, theirs = socket.socketpair()
        with theirs:
            self._proxy = subprocess.Popen(
                ["/bin/sh", "-c", f"exec {hop.proxy_command}"],
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                start_new_session=True,
            )
        return ours


class _HungUp(Exception):
    """The server closed before it named itself."""

    def __init__(self, told: HostError) -> None:
        super().__init__(told.message)
        self.told = told


class _Limit:
    """The deadline of the whole chain; cuts the road when it passes, or when the person wants to stop."""

    PROMPT = 120.0
    """Seconds a person may take to type a passphrase; sshd's own patience (LoginGraceTime) is as long."""

    def __init__(self, seconds: float, cancelled: threading.Event, cut: Any) -> None:
        self.seconds = seconds
        self.cancelled = cancelled
        self.over = False
        self._cut = cut
        self._end = time.monotonic() + seconds
        self._paused: float | None = None
        self._finished = threading.Event()

    def __enter__(self) -> None:
        threading.Thread(target=self._watch, daemon=True).start()

    def __exit__(self, *_: object) -> None:
        self._finished.set()

    def left(self) -> float:
        return max(0.01, self._end - time.monotonic())

    def pause(self, begins: bool) -> None:
        """A person is typing: the clock stands still."""
        if begins:
            self._paused = time.monotonic()
        elif self._paused is not None:
            self._end += time.monotonic() - self._paused
            self._paused = None

    def sleep(self, seconds: float) -> bool:
        """Wait, unless there is no time left for it."""
        return seconds < self.left() and not self.cancelled.wait(seconds)

    def _watch(self) -> None:
        while not self._finished.wait(0.05):
            late = self._paused is None and time.monotonic() >= self._end
            if late or self.cancelled.is_set():
                self.over = late
                self._cut()


def _config() -> fabric.Config:
    """Fabric's settings, from no file: `ssh -G` was asked already. One each: they are not safe to share."""
    return fabric.Config(lazy=True, ssh_config=paramiko.SSHConfig())


def _socket_options() -> Iterator[tuple[int, int, int]]:
    """No waiting for full packets, and a dead peer is noticed within some 15 s."""
    yield socket.IPPROTO_TCP, socket.TCP_NODELAY, 1
    yield socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1
    # macOS calls the idle time TCP_KEEPALIVE and has no TCP_USER_TIMEOUT.
    for name, value in (
        ("TCP_KEEPIDLE", 5),
        ("TCP_KEEPALIVE", 5),
        ("TCP_KEEPINTVL", 3),
        ("TCP_KEEPCNT", 3),
        ("TCP_USER_TIMEOUT", 15000),
    ):
        if hasattr(socket, name):
            yield socket.IPPROTO_TCP, getattr(socket, name), value


def _words(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
