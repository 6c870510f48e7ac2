"""This very machine as the host: the same scripts to a `/bin/sh` here, HTTP straight."""

from __future__ import annotations

import getpass
import socket
import threading
import time
from typing import TYPE_CHECKING

from ddprobe.errors import Unreachable
from ddprobe.model import Connection, Host
from ddprobe.redact import Redactor
from ddprobe.sessions.asking import Pipe
from ddprobe.sessions.container import shell_words
from ddprobe.sessions.process import ProcessPipe
from ddprobe.sessions.shell import ShellSession

if TYPE_CHECKING:
    from ddprobe.sessions.http import Web


class LocalSession(ShellSession):
    """A session with the machine that ddprobe runs on."""

    def __init__(self, host: Host, redactor: Redactor, cancelled: threading.Event) -> None:
        super().__init__(host, redactor, cancelled)
        before = time.monotonic()
        self._start()
        self._connect_seconds = time.monotonic() - before

    @property
    def connection(self) -> Connection:
        return Connection(
            transport="local",
            address=socket.gethostname(),
            user=getpass.getuser(),
            connect_seconds=self._connect_seconds,
            notes=self._all_notes(),
        )

    def _open_pipe(self) -> Pipe:
        try:
            return ProcessPipe(shell_words(self.host))
        except OSError as error:
            raise Unreachable(f"{self.host.name}: {error.filename}: {error.strerror}") from None

    def _make_web(self) -> Web:
        from ddprobe.sessions.http import Web

        return Web(self.host, self.cancelled, _dial, via="direct")


def _dial(address: str, port: int, seconds: float) -> socket.socket:
    return socket.create_connection((address, port), seconds)
