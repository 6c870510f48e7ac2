"""The bytes beneath SSH: a TCP connection or a ProxyCommand to the first server, and the clock it all runs against.

Free of Paramiko, so that the connection comes about while Paramiko and Fabric are still being imported.
"""

from __future__ import annotations

import contextlib
import os
import queue
import select
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from typing import IO, Any

from ddprobe.errors import Unreachable
from ddprobe.sessions.sshconfig import Hop

INTERRUPTED = "interrupted while connecting"
_QUICKACK: int | None = getattr(socket, "TCP_QUICKACK", None)


class Limit:
    """The time that the whole chain of connections may take, and the person's wish to stop."""

    PROMPT = 120.0
    """Seconds a person may take to type a passphrase; sshd's own patience (LoginGraceTime) is as long."""

    def __init__(self, seconds: float, cancelled: threading.Event) -> None:
        self.seconds = seconds
        self.cancelled = cancelled
        self._end = time.monotonic() + seconds
        self._paused = False

    @property
    def over(self) -> bool:
        return not self._paused and time.monotonic() >= self._end

    @property
    def stop(self) -> bool:
        return self.over or self.cancelled.is_set()

    @property
    def left(self) -> float:
        return max(0.01, self._end - time.monotonic())

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """A person is typing: the clock stands still."""
        began = time.monotonic()
        self._paused = True
        try:
            yield
        finally:
            self._end += time.monotonic() - began
            self._paused = False

    def sleep(self, seconds: float) -> bool:
        """Wait, unless there is no time left for it."""
        return seconds < self.left and not self.cancelled.wait(seconds)

    @contextlib.contextmanager
    def enforced(self, cut: Callable[[], None]) -> Iterator[None]:
        """Call `cut` under whatever waits, once it is time to stop."""
        finished = threading.Event()

        def watch() -> None:
            while not finished.wait(0.05):
                if self.stop:
                    cut()

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            finished.set()
            watcher.join()


class Wire:
    """What carries the first SSH connection."""

    def __init__(self, sock: socket.socket, proxy: subprocess.Popen[bytes] | None = None) -> None:
        self.socket = sock
        self.proxy = proxy
        self.complaints: IO[bytes] | None = None

    def cut(self) -> None:
        """End it under whoever reads or writes."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.cut()
        self.socket.close()
        if self.proxy is not None:
            self.proxy.terminate()
            self.proxy.wait()
        if self.complaints is not None:
            self.complaints.close()

    def proxy_words(self) -> str:
        """The last words of a ProxyCommand on its stderr."""
        if self.complaints is None:
            return ""
        self.complaints.seek(0)
        return " ".join(self.complaints.read(65536).decode("utf-8", "replace").split())[-300:]


def dial(hop: Hop, limit: Limit) -> Wire:
    """Reach the hop's address. Raises `Unreachable`."""
    if hop.proxy_command:
        return _through_proxy(hop)
    try:
        addresses = _look_up(hop, limit)
    except OSError as error:
        raise Unreachable(
            f"{hop.name}: {hop.address!r} has no address: {error.strerror}", "is the name right? a VPN down?"
        ) from None
    trouble: OSError | None = None
    for family, kind, protocol, _, address in addresses:
        try:
            return Wire(_connect(_Socket(family, kind, protocol), address, limit))
        except OSError as error:
            trouble = error
    place = f"{hop.address}:{hop.port}"
    if limit.cancelled.is_set():
        raise Unreachable(f"{hop.name}: {INTERRUPTED}")
    if limit.over:
        raise Unreachable(
            f"{hop.name}: {place} does not answer within {limit.seconds:g} s",
            "is the host up, a VPN down, a firewall in the way?",
        )
    said = (trouble.strerror or str(trouble)) if trouble else "no address"
    raise Unreachable(f"{hop.name}: {place}: {said}", "is the host up, and sshd on this port?")


def _look_up(hop: Hop, limit: Limit) -> list[Any]:
    """The name's addresses, asked for beside us: a resolver that hangs can only be left behind."""
    answers: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def ask() -> None:
        try:
            answers.put(socket.getaddrinfo(hop.address, hop.port, type=socket.SOCK_STREAM))
        except (OSError, UnicodeError) as error:
            answers.put(error)

    threading.Thread(target=ask, daemon=True).start()
    while not limit.stop:
        with contextlib.suppress(queue.Empty):
            answer = answers.get(timeout=0.05)
            if isinstance(answer, Exception):
                raise OSError(0, str(getattr(answer, "strerror", None) or answer))
            return list(answer)
    if limit.cancelled.is_set():
        raise Unreachable(f"{hop.name}: {INTERRUPTED}")
    raise OSError(0, f"no answer within {limit.seconds:g} s")


def _connect(sock: socket.socket, address: Any, limit: Limit) -> socket.socket:
    try:
        for level, option, value in _options():
            sock.setsockopt(level, option, value)
        # In steps: nothing wakes a connect() on every system.
        sock.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            sock.connect(address)
        while not limit.stop:
            if _writable(sock, 0.05):
                if error := sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                    raise OSError(error, os.strerror(error))
                sock.setblocking(True)
                return sock
        raise TimeoutError
    except BaseException:
        sock.close()
        raise


def _writable(sock: socket.socket, seconds: float) -> bool:
    poll = select.poll()
    poll.register(sock, select.POLLOUT)
    return bool(poll.poll(seconds * 1000))


def _options() -> Iterator[tuple[int, int, int]]:
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


class _Socket(socket.socket):
    """Acknowledges at once what it receives.

    sshd has Nagle's algorithm on for sessions without a terminal: with an answer in two packets it waits for our
    acknowledgement of the first, which Linux holds back for 40 ms. That alone was half the time to connect.
    """

    def recv(self, size: int, flags: int = 0, /) -> bytes:
        data = super().recv(size, flags)
        # Not kept by the kernel: it must be said again each time. macOS lacks it.
        if _QUICKACK is not None:
            with contextlib.suppress(OSError):
                self.setsockopt(socket.IPPROTO_TCP, _QUICKACK, 1)
        return data


def _through_proxy(hop: Hop) -> Wire:
    ours, theirs = socket.socketpair()
    complaints = tempfile.TemporaryFile()  # noqa: SIM115
    with theirs:
        proxy = subprocess.Popen(
            ["/bin/sh", "-c", f"exec {hop.proxy_command}"],
            stdin=theirs.fileno(),
            stdout=theirs.fileno(),
            stderr=complaints,
            start_new_session=True,
        )
    wire = Wire(ours, proxy)
    wire.complaints = complaints
    return wire
