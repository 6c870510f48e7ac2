"""One `/bin/sh -s` at the other end of a pipe, and one script under way to it. Nothing here blocks but `wait`."""

from __future__ import annotations

import secrets
import select
import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Protocol

from ddprobe.model import Command, CommandResult, Host
from ddprobe.sessions import framing

GRACE = 4.5
"""Seconds past a command's deadline in which the host ends it and says so; then the road counts as dead."""
INTERRUPTED = "interrupted"
_POLL = 0.1
NOT_RUN = (126, 127)
"""Exit codes by which the shell says that there was nothing to stop."""
_PIECES = 64
"""Most reads in a row: between them the clock and `cancelled` are looked at, however fast a host sends."""


class Pipe(Protocol):
    """Both ways to one shell. Nothing here blocks."""

    def descriptors(self) -> Sequence[int]:
        """What to wait on for something to read."""

    def send(self, data: memoryview) -> int:
        """How many bytes were taken."""

    def receive(self) -> tuple[bytes, bytes]:
        """What has come on stdout and stderr."""

    @property
    def ended(self) -> bool:
        """Nothing more will come, and all that came was received."""

    @property
    def epitaph(self) -> str:
        """Why it ended, as far as known: an exit code, a lost connection."""

    def close(self) -> None:
        """End the shell and all that it runs."""


class NoMoreSessions(Exception):
    """The host allows no further shell beside those that are open."""


class Shell:
    """One `/bin/sh -s`, asked one script at a time."""

    def __init__(self, pipe: Pipe, token: str) -> None:
        self.pipe = pipe
        self.token = token
        self.ready = False
        self.broken = False
        self.setsid = True
        self.lacks: tuple[str, ...] = ()
        self.noise = b""
        self._outbox = bytearray()
        self._frames: deque[framing.Frame] = deque()
        self._marker = ""
        self._reader = framing.Reader("", ready=True, done=True)

    def send(self, commands: Sequence[tuple[Command, float]]) -> None:
        """Start a script; without commands, only the shell. The one before must be done."""
        self._begin([command.cap for command, _ in commands])
        if commands:
            self._outbox += framing.script(self._marker, commands)
        else:
            self._reader.done = True
        self._push()

    def sweep(self) -> None:
        """Start looking for what was left behind. The script before must be done."""
        self._begin([])
        self._outbox += framing.sweep_script(self._marker)
        self._push()

    def stop(self) -> None:
        """Stop the command under way. Only while `begun`, and not `done`."""
        self._outbox += framing.STOP
        self._push()

    def _begin(self, caps: Sequence[int]) -> None:
        self._marker = "ddprobe-" + secrets.token_hex(framing.MARKER_BYTES)
        self._reader = framing.Reader(self._marker, tuple(caps), ready=self.ready)
        if not self.ready:
            self._outbox += framing.preamble(self._marker, self.token)

    def _push(self) -> None:
        while self._outbox and (taken := self.pipe.send(memoryview(bytes(self._outbox[:65536])))):
            del self._outbox[:taken]

    def pump(self) -> None:
        """Send and receive what can be now. Raises `framing.Garbled`."""
        self._push()
        for _ in range(_PIECES):
            stdout, stderr = self.pipe.receive()
            for frame in self._reader.feed(stdout, stderr):
                self._frames.append(frame)
            if not stdout and not stderr:
                break
        self.noise = self.noise or self._reader.noise
        if self._reader.ready and not self.ready:
            self.ready, self.setsid, self.lacks = True, self._reader.setsid, self._reader.lacks

    def answers(self) -> Iterator[framing.Frame]:
        """The answers completed and not yet taken, in order."""
        while self._frames:
            yield self._frames.popleft()

    @property
    def sending(self) -> bool:
        return bool(self._outbox)

    @property
    def done(self) -> bool:
        return self._reader.done and self.ready and not self._outbox

    @property
    def begun(self) -> bool:
        """The script runs, so that a word on stdin is its guard's."""
        return self._reader.begun

    @property
    def partial(self) -> tuple[bytes, bytes]:
        """Both streams of the answer under way, as far as they have come."""
        return self._reader.partial

    @property
    def broken_off(self) -> bool:
        """The script has ended without asking everything."""
        return self._reader.broken_off

    @property
    def swept(self) -> int:
        return self._reader.swept

    @property
    def said(self) -> bytes:
        """What came in place of a shell's answer."""
        return self._reader.unready

    def close(self) -> None:
        self.broken = True
        self.pipe.close()


class Exchange:
    """One script under way: who asked what, what came, and until when to wait for the next."""

    def __init__(self, shell: Shell, numbers: Sequence[int], commands: Sequence[Command], host: Host) -> None:
        self.shell = shell
        self.numbers = list(numbers)
        self.commands = list(commands)
        self.seconds = [command.timeout or host.command_timeout for command in commands]
        self.results: dict[int, CommandResult] = {}
        """Of those that reached the host; the others may be asked again."""
        self.trouble = ""
        self.over = False
        self.hung = False
        """Not even the host's own clock brought an answer."""
        self._start_limit = host.connect_timeout
        self._stop_limit: float | None = None
        self._stop_sent = False
        self._answered = 0
        self._since, self._started = time.monotonic(), time.time()
        shell.send(list(zip(self.commands, self.seconds, strict=True)))

    def stop(self, patience: float | None = None) -> None:
        """Have the command end now, the only one of its script, and wait so many seconds for its answer."""
        limit = time.monotonic() + (GRACE if patience is None else patience)
        self._stop_limit = limit if self._stop_limit is None else min(limit, self._stop_limit)

    def pump(self) -> None:
        was_ready, garbled = self.shell.ready, False
        try:
            if self._stop_limit is not None and not self._stop_sent and self.shell.begun:
                self._stop_sent = True
                self.shell.stop()
            self.shell.pump()
        except framing.Garbled:
            garbled = True
        if self.shell.ready and not was_ready:
            self._since, self._started = time.monotonic(), time.time()
        for frame in self.shell.answers():
            self._answer(frame)
        if self._answered == len(self.commands):
            self.over = True
        elif garbled:
            self._break("more came than was asked for: the host's own cap failed, the road was cut")
        elif self.shell.broken_off:
            self._break("the host's shell broke off")
        elif self.shell.pipe.ended:
            self._break(f"the road failed before the answer was whole: {self.shell.pipe.epitaph}")
        elif self._stop_limit is not None and time.monotonic() > self._stop_limit:
            self._break("it was stopped, and did not end within its time" if self._stop_sent else INTERRUPTED)
        elif time.monotonic() - self._since > self._patience():
            self.hung = True
            self._break(
                f"no answer within {self._patience():.0f} s: the host or the connection hangs "
                "(a process in uninterruptible sleep cannot be ended)"
            )

    @property
    def answered(self) -> bool:
        """At least one question was."""
        return self._answered > 0

    def _patience(self) -> float:
        if not self.shell.ready:
            return self._start_limit
        return self.seconds[self._answered] + GRACE

    def _answer(self, frame: framing.Frame) -> None:
        command = self.commands[self._answered]
        limit = self.seconds[self._answered]
        now = time.monotonic()
        seconds = now - self._since if frame.seconds is None else frame.seconds
        self.results[self.numbers[self._answered]] = CommandResult(
            question=command,
            exit_code=frame.exit_code,
            stdout=frame.stdout[: command.cap],
            stderr=frame.stderr[: framing.STDERR_CAP],
            started=self._started,
            seconds=seconds,
            truncated=len(frame.stdout) > command.cap,
            stderr_truncated=len(frame.stderr) > framing.STDERR_CAP,
            timed_out=seconds >= limit,
            stopped=self._stop_sent and seconds < limit and frame.exit_code not in NOT_RUN,
        )
        self._answered += 1
        self._since, self._started = now, time.time()

    def _break(self, why: str) -> None:
        """Give the shell up: the question under way has failed, those after it were never asked."""
        asked = 1 if self.shell.ready else 0
        stdout, stderr = self.shell.partial
        for place in range(self._answered, min(self._answered + asked, len(self.commands))):
            self.results[self.numbers[place]] = CommandResult(
                question=self.commands[place],
                stdout=stdout[: self.commands[place].cap],
                stderr=stderr[: framing.STDERR_CAP],
                started=self._started,
                seconds=time.monotonic() - self._since,
                failure=why,
            )
        self.trouble = why
        self.shell.close()
        self.over = True

    def interrupt(self) -> None:
        self._break(INTERRUPTED)


def wait(shells: Sequence[Shell]) -> None:
    """Until something has come, or a tenth of a second (less while something waits to be sent)."""
    poll = select.poll()
    for shell in shells:
        for descriptor in shell.pipe.descriptors():
            poll.register(descriptor, select.POLLIN)
    poll.poll((0.005 if any(shell.sending for shell in shells) else _POLL) * 1000)
