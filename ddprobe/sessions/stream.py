"""Streams that a session opens from the host's side: a Paramiko channel, a socket, or a program's pipes."""

from __future__ import annotations

import contextlib
import os
import select
import ssl
import subprocess
from collections.abc import Callable, Sequence
from typing import Any, Protocol

_PIECE = 64 * 1024


class Stream(Protocol):
    """What a socket, a Paramiko channel and a pair of pipes have in common. `close` may be called twice."""

    def recv(self, nbytes: int, /) -> bytes:
        """Up to so many bytes; none at the end. Raises `TimeoutError` when nothing comes in time."""

    def send(self, data: bytes, /) -> int:
        """How many bytes were taken."""

    def settimeout(self, seconds: float | None, /) -> None:
        """Bound the following calls."""

    def close(self) -> None:
        """Give it back."""


Dial = Callable[[str, int, float], Stream]
"""(address as the host sees it, port, seconds) → an open stream. Raises `OSError`, or `ForwardingRefused`."""


class ForwardingRefused(Exception):
    """The SSH server does not let us connect from its side."""


def lost() -> tuple[type[Exception], ...]:
    """What Paramiko's calls end in, beside `OSError`, on a connection that has just been lost."""
    import paramiko

    return EOFError, paramiko.SSHException


class ProcessStream:
    """A program's stdin and stdout as a stream."""

    def __init__(self, argv: Sequence[str], refusal: Callable[[], Exception]) -> None:
        """`refusal` says why the program ended in failure before anything came."""
        self._process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,
        )
        assert self._process.stdin
        assert self._process.stdout
        self._in, self._out = self._process.stdin, self._process.stdout
        os.set_blocking(self._in.fileno(), False)
        self._seconds: float | None = None
        self._refusal = refusal
        self._came = False

    def settimeout(self, seconds: float | None, /) -> None:
        self._seconds = seconds

    def recv(self, nbytes: int, /) -> bytes:
        self._wait(self._out.fileno(), select.POLLIN)
        data = os.read(self._out.fileno(), nbytes)
        if not data and not self._came and self._failed():
            raise self._refusal()
        self._came = True
        return data

    def _failed(self) -> bool:
        try:
            return self._process.wait(2) != 0
        except subprocess.TimeoutExpired:
            return False

    def send(self, data: bytes, /) -> int:
        self._wait(self._in.fileno(), select.POLLOUT)
        try:
            return os.write(self._in.fileno(), data)
        except BlockingIOError:
            raise TimeoutError from None

    def _wait(self, descriptor: int, event: int) -> None:
        poll = select.poll()
        poll.register(descriptor, event)
        if not poll.poll(None if self._seconds is None else self._seconds * 1000):
            raise TimeoutError

    def close(self) -> None:
        self._process.kill()
        self._in.close()
        self._out.close()
        self._process.wait()


class TlsStream:
    """TLS over any stream. Every call may be repeated after a `TimeoutError`."""

    def __init__(self, stream: Stream, context: ssl.SSLContext, name: str | None) -> None:
        self._stream = stream
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._object = context.wrap_bio(self._incoming, self._outgoing, server_hostname=name)
        self._unsent = b""

    def settimeout(self, seconds: float | None, /) -> None:
        self._stream.settimeout(seconds)

    def handshake(self) -> None:
        self._do(self._object.do_handshake)

    def recv(self, nbytes: int, /) -> bytes:
        try:
            return bytes(self._do(lambda: self._object.read(nbytes)))
        except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
            return b""

    def send(self, data: bytes, /) -> int:
        self._flush()
        taken = int(self._do(lambda: self._object.write(data), flush=False))
        # Encrypted is taken: what the stream does not take now, the next call sends first.
        with contextlib.suppress(TimeoutError):
            self._flush()
        return taken

    def close(self) -> None:
        self._stream.close()

    def _do(self, act: Callable[[], Any], flush: bool = True) -> Any:
        while True:
            try:
                result = act()
            except ssl.SSLWantReadError:
                self._flush()
                data = self._stream.recv(_PIECE)
                if data:
                    self._incoming.write(data)
                else:
                    self._incoming.write_eof()
                continue
            if flush:
                self._flush()
            return result

    def _flush(self) -> None:
        self._unsent += self._outgoing.read()
        while self._unsent:
            self._unsent = self._unsent[self._stream.send(self._unsent) :]
