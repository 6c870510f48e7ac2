"""What runs on a host beside a conversation: one command in a shell of its own, read until it is stopped.

A thread reads it the whole time: else the host's pipe would fill while a long request is waited for, and the command
would stand still. The road's promises hold as for any other command: the host's guard ends it at its deadline and when
the line goes, its output is capped there, and it carries the session's mark.
"""

from __future__ import annotations

import threading
from typing import Protocol

from ddprobe.model import Command, CommandResult, Host
from ddprobe.redact import Redactor
from ddprobe.sessions.asking import Exchange, Shell, wait


class Running(Protocol):
    """A command under way."""

    def stop(self) -> None:
        """Ask it to end. Returns at once; may be called twice."""

    def answer(self) -> CommandResult:
        """Wait for its end, whatever brings it."""


class Told:
    """One that has ended, or never began."""

    def __init__(self, result: CommandResult) -> None:
        self._result = result

    def stop(self) -> None:
        pass

    def answer(self) -> CommandResult:
        return self._result


class Beside:
    """What a session hands out: stops the command, and has its answer redacted."""

    def __init__(self, running: Running, redactor: Redactor) -> None:
        self._running = running
        self._redactor = redactor

    def stop(self) -> None:
        """Ask it to end. Returns at once: several may then end side by side."""
        self._running.stop()

    def end(self) -> CommandResult:
        """Stop it; its answer, within some seconds. Never raises."""
        self._running.stop()
        result = self._redactor.result(self._running.answer())
        assert isinstance(result, CommandResult)
        return result


class InShell:
    """A command in a shell that nobody else asks meanwhile. `cancelled` stops it too."""

    LAST_WORD = 0.8
    """Seconds in which a command that is interrupted may still be stopped in good order."""

    def __init__(self, shell: Shell, command: Command, host: Host, cancelled: threading.Event) -> None:
        self.shell = shell
        self._command = command
        self._exchange = Exchange(shell, [0], [command], host)
        self._cancelled = cancelled
        self._stop, self._closing = threading.Event(), threading.Event()
        # A daemon: a host that does not let go must not keep the program from ending.
        self._thread = threading.Thread(target=self._read, daemon=True, name=f"beside-{command.key}")
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()

    def answer(self) -> CommandResult:
        self._thread.join()
        never = CommandResult(question=self._command, failure=self._exchange.trouble or "it was not started")
        return self._exchange.results.get(0, never)

    @property
    def over(self) -> bool:
        return not self._thread.is_alive()

    def close(self) -> None:
        """Give it up, if it still runs: the host's guard ends it when the line goes."""
        self._closing.set()
        self._thread.join(self.LAST_WORD)

    def _read(self) -> None:
        exchange = self._exchange
        while not exchange.over:
            wait([self.shell])
            if self._closing.is_set():
                exchange.interrupt()
                break
            if self._stop.is_set() or self._cancelled.is_set():
                exchange.stop(self.LAST_WORD if self._cancelled.is_set() else None)
            exchange.pump()
        self.shell.close()
