"""The pipe to a shell that a program on this machine holds: `/bin/sh` itself, or `ssh`."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
from collections.abc import Sequence

_PIECE = 65536


class ProcessPipe:
    """A program's three streams. It runs in a session of its own: Ctrl-C at the terminal is not for it."""

    def __init__(self, argv: Sequence[str]) -> None:
        self.process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        assert self.process.stdin
        assert self.process.stdout
        assert self.process.stderr
        self._stdin = self.process.stdin
        self._streams = [self.process.stdout, self.process.stderr]
        self._open = [True, True]
        for stream in (self._stdin, *self._streams):
            os.set_blocking(stream.fileno(), False)

    def descriptors(self) -> Sequence[int]:
        return [stream.fileno() for stream, is_open in zip(self._streams, self._open, strict=True) if is_open]

    def send(self, data: memoryview) -> int:
        if self._stdin.closed:
            return 0
        try:
            return os.write(self._stdin.fileno(), data)
        except BlockingIOError:
            return 0
        except OSError:
            # It has ended: what it said is still to be read, and says why.
            self._stdin.close()
            return 0

    def receive(self) -> tuple[bytes, bytes]:
        return self._read(0), self._read(1)

    def _read(self, which: int) -> bytes:
        if not self._open[which]:
            return b""
        try:
            data = os.read(self._streams[which].fileno(), _PIECE)
        except BlockingIOError:
            return b""
        except OSError:
            data = b""
        self._open[which] = bool(data)
        return data

    @property
    def ended(self) -> bool:
        return not any(self._open)

    @property
    def epitaph(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return f"exit code {self.process.wait(0.2)}"
        return "its streams are closed"

    def close(self) -> None:
        self._open = [False, False]
        for stream in (self._stdin, *self._streams):
            with contextlib.suppress(OSError):
                stream.close()
        try:
            self.process.wait(0.2)
        except subprocess.TimeoutExpired:
            # What it runs is being ended by its guard; somebody must still collect it.
            threading.Thread(target=self.process.wait, daemon=True).start()
