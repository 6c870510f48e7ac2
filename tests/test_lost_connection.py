"""A connection that is lost between two calls: Paramiko then ends them in exceptions of several kinds."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any, cast

import paramiko
import pytest

from ddprobe.model import Host, HttpRequest
from ddprobe.sessions import http
from ddprobe.sessions.ssh import ChannelPipe

GONE: list[Callable[[], Exception]] = [
    EOFError,
    lambda: paramiko.SSHException("Connection closed"),
    lambda: paramiko.ProxyCommandFailure("ssh -W", "Broken pipe"),
    lambda: OSError("Socket is closed"),
]


class Channel:
    """A channel on which one kind of call finds the connection gone."""

    def __init__(self, where: str, error: Exception) -> None:
        self.where, self.error = where, error
        self.ends = os.pipe()
        self.eof_received = self.closed = False

    def _do(self, what: str, answer: Any) -> Any:
        """Where nothing can be sent, nothing comes any more, too."""
        if what == self.where or (what == "recv" and self.where == "send"):
            raise self.error
        return answer

    def exec_command(self, line: str) -> None:
        pass

    def settimeout(self, seconds: float | None) -> None:
        pass

    def fileno(self) -> int:
        return self.ends[0]

    def recv_ready(self) -> bool:
        return True

    recv_stderr_ready = recv_ready

    def recv(self, nbytes: int) -> bytes:
        return cast(bytes, self._do("recv", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"))

    def recv_stderr(self, nbytes: int) -> bytes:
        return cast(bytes, self._do("recv_stderr", b"no"))

    def send(self, data: bytes) -> int:
        return cast(int, self._do("send", len(data)))

    def close(self) -> None:
        for end in self.ends:
            os.close(end)
        self.ends = (-1, -1)


class Transport:
    def __init__(self, channel: Channel) -> None:
        self.channel = channel

    def open_channel(self, *_: Any, **__: Any) -> Channel:
        return self.channel

    def open_session(self, timeout: float) -> Channel:
        return self.channel

    def is_active(self) -> bool:
        return False


@pytest.mark.parametrize("error", GONE)
@pytest.mark.parametrize("where", ["send", "recv"])
def test_a_request_fails_in_a_sentence(where: str, error: Callable[[], Exception]) -> None:
    channel = Channel(where, error())
    dial = http.through(cast(paramiko.Transport, Transport(channel)))
    request = HttpRequest(key="q", method="GET", base="http://127.0.0.1:1", path="/health")
    answer = http.fetch(request, (), dial, 5.0, threading.Event(), "direct-tcpip")
    assert answer.failure
    assert answer.status is None


@pytest.mark.parametrize("error", GONE)
@pytest.mark.parametrize("where", ["send", "recv", "recv_stderr"])
def test_a_shell_says_nothing_more(where: str, error: Callable[[], Exception]) -> None:
    channel = Channel(where, error())
    pipe = ChannelPipe(cast(paramiko.Transport, Transport(channel)), "sh", Host(name="gpu1"))
    assert pipe.send(memoryview(b"x")) == (0 if where == "send" else 1)
    stdout, stderr = pipe.receive()
    assert (stdout, stderr) == (b"", b"")
    channel.close()
