"""What every session has in common that talks to a `/bin/sh -s` over a pipe: a channel's, or a program's.

Questions that travel together go as one script to one shell: one login shell's start and one round trip, and a host
that allows a single session (`MaxSessions 1`) is served like any other. Those marked `alone` get shells of their own
beside it, as many as the host allows; the others wait their turn. A shell is kept for the next questions.
"""

from __future__ import annotations

import abc
import secrets
import select
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Protocol

from ddprobe.errors import HostError, NoShell, Unreachable
from ddprobe.model import Command, CommandResult, Host, HttpRequest, Question, Result
from ddprobe.redact import Redactor
from ddprobe.sessions import framing
from ddprobe.sessions.base import Session

if TYPE_CHECKING:
    from ddprobe.sessions.http import Web

GRACE = 4.5
"""Seconds past a command's deadline in which the host ends it and says so; then the road counts as dead."""
MAX_SHELLS = 5
MAX_REQUESTS = 8
INTERRUPTED = "interrupted"
_POLL = 0.1
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
        self.noise = b""
        self._outbox = bytearray()
        self._marker = ""
        self._reader = framing.Reader("", ready=True, done=True)

    def send(self, commands: Sequence[tuple[Command, float]]) -> None:
        """Start a script. The one before must be done."""
        self._begin([command.cap for command, _ in commands])
        if commands:
            self._outbox += framing.script(self._marker, commands)
        else:
            self._reader.done = True
        # Not `pump`: an answer that is quick enough would be received here, and lost.
        self._push()

    def sweep(self) -> None:
        self._begin([])
        self._outbox += framing.sweep_script(self._marker)
        self.pump()

    def _begin(self, caps: Sequence[int]) -> None:
        self._marker = "ddprobe-" + secrets.token_hex(framing.MARKER_BYTES)
        self._reader = framing.Reader(self._marker, tuple(caps), ready=self.ready)
        if not self.ready:
            self._outbox += framing.preamble(self._marker, self.token)

    def _push(self) -> None:
        while self._outbox and (taken := self.pipe.send(memoryview(bytes(self._outbox[:65536])))):
            del self._outbox[:taken]

    def pump(self) -> list[framing.Frame]:
        """Send and receive what can be now; the answers completed. Raises `framing.Garbled`."""
        self._push()
        frames: list[framing.Frame] = []
        for _ in range(_PIECES):
            stdout, stderr = self.pipe.receive()
            frames += self._reader.feed(stdout, stderr)
            if not stdout and not stderr:
                break
        self.noise = self.noise or self._reader.noise
        if self._reader.ready and not self.ready:
            self.ready, self.setsid = True, self._reader.setsid
        return frames

    @property
    def sending(self) -> bool:
        return bool(self._outbox)

    @property
    def done(self) -> bool:
        return self._reader.done and self.ready and not self._outbox

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


class _Exchange:
    """One script under way: who asked what, what came, and until when to wait for the next."""

    def __init__(self, shell: Shell, numbers: Sequence[int], commands: Sequence[Command], host: Host) -> None:
        self.shell = shell
        self.numbers = list(numbers)
        self.commands = list(commands)
        self.seconds = [command.timeout or host.command_timeout for command in commands]
        self.results: dict[int, CommandResult] = {}
        self.unasked: list[int] = []
        """Places of questions that never reached the host: they may be asked again."""
        self.over = False
        self._start_limit = host.connect_timeout
        self._answered = 0
        self._since, self._started = time.monotonic(), time.time()
        shell.send(list(zip(self.commands, self.seconds, strict=True)))

    def pump(self) -> None:
        was_ready = self.shell.ready
        try:
            frames = self.shell.pump()
        except framing.Garbled:
            self._break("more came than was asked for: the host's own cap failed, the road was cut")
            return
        if self.shell.ready and not was_ready:
            self._since, self._started = time.monotonic(), time.time()
        for frame in frames:
            self._answer(frame)
        if self._answered == len(self.commands):
            self.over = True
        elif self.shell.done:
            self._break("the host's shell broke off")
        elif self.shell.pipe.ended:
            self._break(f"the road failed before the answer was whole: {self.shell.pipe.epitaph}")
        elif time.monotonic() - self._since > self._patience():
            self._break(
                f"no answer within {self._patience():.0f} s: the host or the connection hangs "
                "(a process in uninterruptible sleep cannot be ended)"
            )

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
        )
        self._answered += 1
        self._since, self._started = now, time.time()

    def _break(self, why: str) -> None:
        """Give the shell up: the question under way has failed, those after it were never asked."""
        asked = 1 if self.shell.ready else 0
        for place in range(self._answered, min(self._answered + asked, len(self.commands))):
            self.results[self.numbers[place]] = CommandResult(
                question=self.commands[place],
                started=self._started,
                seconds=time.monotonic() - self._since,
                failure=why,
            )
        self.unasked = self.numbers[self._answered + asked :]
        self.shell.close()
        self.over = True

    def interrupt(self) -> None:
        self._break(INTERRUPTED)


class ShellSession(Session):
    """A session whose commands travel to shells. Subclasses open pipes to them, and carry HTTP."""

    def __init__(self, host: Host, redactor: Redactor, cancelled: threading.Event) -> None:
        super().__init__(host, redactor, cancelled)
        self._token = secrets.token_hex(16)
        self._shells: list[Shell] = []
        self._notes: list[str] = []
        self._asking = threading.Lock()
        self._web: Web | None = None

    @abc.abstractmethod
    def _open_pipe(self) -> Pipe:
        """A pipe to a new `/bin/sh -s` on the host. Raises `NoMoreSessions`, or `HostError` when the road is gone."""

    @abc.abstractmethod
    def _make_web(self) -> Web:
        """What carries HTTP requests on this road."""

    def _note(self, note: str) -> None:
        if note not in self._notes:
            self._notes.append(note)

    def _all_notes(self) -> tuple[str, ...]:
        return (*self._notes, *(self._web.notes if self._web is not None else ()))

    def _start(self) -> None:
        """Wait for the first shell's first word. Raises `NoShell` when something else answers."""
        shell = Shell(self._open_pipe(), self._token)
        shell.send([])
        limit = time.monotonic() + self.host.connect_timeout
        try:
            while not shell.ready:
                if self.cancelled.is_set():
                    raise Unreachable(f"{self.host.name}: {INTERRUPTED}")
                _wait([shell])
                shell.pump()
                if not shell.ready and (shell.pipe.ended or time.monotonic() > limit):
                    raise self._no_shell(shell)
        except framing.Garbled:
            raise self._no_shell(shell) from None
        finally:
            if not shell.ready:
                shell.close()
        self._shells.append(shell)
        self._look(shell)

    def _no_shell(self, shell: Shell) -> NoShell:
        said = framing.printable(shell.said)[:200]
        ending = shell.pipe.epitaph if shell.pipe.ended else f"silent for {self.host.connect_timeout:g} s"
        answer = f"it said {said!r} ({ending})" if said else f"it said nothing ({ending})"
        return NoShell(
            f"{self.host.name}: logged in, but no POSIX shell answers: {answer}",
            "a forced command, `nologin` or a restricted shell stands in the way: ask for an account with a shell",
        )

    def _look(self, shell: Shell) -> None:
        if shell.noise.strip():
            said = framing.printable(shell.noise)
            self._note(f"the login shell prints before it obeys (dropped): {said[:120]!r}")
        if not shell.setsid:
            self._note("the host has no setsid: what a question leaves behind is ended by its mark only")

    # --- carrying --------------------------------------------------------------------------------------------

    def _carry(self, questions: tuple[Question, ...]) -> Sequence[Result]:
        commands = {n: q for n, q in enumerate(questions) if isinstance(q, Command)}
        requests = {n: q for n, q in enumerate(questions) if isinstance(q, HttpRequest)}
        if not requests:
            results: dict[int, Result] = dict(self._ask(commands))
        else:
            if self._web is None:
                self._web = self._make_web()
            web = self._web
            with ThreadPoolExecutor(min(MAX_REQUESTS, len(requests))) as pool:
                sent = {n: pool.submit(web.ask, request) for n, request in requests.items()}
                results = dict(self._ask(commands))
                results |= {n: answer.result() for n, answer in sent.items()}
        return [results[n] for n in range(len(questions))]

    def _run(self, command: Command) -> CommandResult:
        """One command of the transport's own (curl in place of forwarding). Safe from any thread."""
        return self._ask({0: command})[0]

    def _ask(self, commands: dict[int, Command]) -> dict[int, CommandResult]:
        """Every command's answer: together, and those that want it beside."""
        with self._asking:
            return self._ask_in_turn(commands)

    def _ask_in_turn(self, commands: dict[int, Command]) -> dict[int, CommandResult]:
        results: dict[int, CommandResult] = {}
        left = dict(commands)
        while left and not self.cancelled.is_set():
            try:
                round_ = self._round(left)
            except HostError as error:
                return results | {
                    n: CommandResult(question=q, failure=error.message) for n, q in left.items()
                }
            results |= round_
            left = {n: q for n, q in left.items() if n not in results}
        return results | {n: CommandResult(question=q, failure=INTERRUPTED) for n, q in left.items()}

    def _round(self, commands: dict[int, Command]) -> dict[int, CommandResult]:
        """One script to the first shell, and one to each further shell that can be had."""
        alone = [n for n, command in commands.items() if command.alone]
        together = [n for n in commands if n not in alone] or [alone.pop(0)]
        main = self._shell()
        exchanges = [self._exchange(main, together, commands)]
        exchanges += [
            self._exchange(shell, [n], commands)
            for n, shell in zip(alone, self._beside(len(alone), main), strict=False)
        ]
        while not all(exchange.over for exchange in exchanges):
            pending = [exchange for exchange in exchanges if not exchange.over]
            _wait([exchange.shell for exchange in pending])
            for exchange in pending:
                exchange.pump()
                if self.cancelled.is_set() and not exchange.over:
                    exchange.interrupt()
        self._shells = [shell for shell in self._shells if not shell.broken]
        for shell in self._shells:
            self._look(shell)
        return {n: result for exchange in exchanges for n, result in exchange.results.items()}

    def _exchange(self, shell: Shell, numbers: list[int], commands: dict[int, Command]) -> _Exchange:
        return _Exchange(shell, numbers, [commands[n] for n in numbers], self.host)

    def _shell(self) -> Shell:
        """A shell that can be asked now: the one kept, or a new one."""
        for shell in list(self._shells):
            if self._settle(shell):
                return shell
        limit = time.monotonic() + GRACE
        while True:
            try:
                shell = Shell(self._open_pipe(), self._token)
            except NoMoreSessions as error:
                # A session that was broken off keeps its place until its guard has ended everything.
                if time.monotonic() > limit or self.cancelled.is_set():
                    raise Unreachable(f"{self.host.name}: the host allows no new session: {error}") from None
                self.cancelled.wait(_POLL)
            else:
                self._shells.append(shell)
                return shell

    def _settle(self, shell: Shell) -> bool:
        """Wait until the script before is done, to its last word; otherwise give the shell up."""
        limit = time.monotonic() + GRACE
        try:
            while not shell.broken and not shell.done:
                _wait([shell])
                shell.pump()
                if shell.pipe.ended or time.monotonic() > limit or self.cancelled.is_set():
                    shell.close()
        except framing.Garbled:
            shell.close()
        if shell.broken and shell in self._shells:
            self._shells.remove(shell)
        return not shell.broken

    def _beside(self, wanted: int, main: Shell) -> list[Shell]:
        """Up to as many further shells, kept ones first."""
        kept = [shell for shell in list(self._shells) if shell is not main and self._settle(shell)][:wanted]
        missing = min(wanted - len(kept), MAX_SHELLS - 1 - len(kept))
        if missing <= 0:
            return kept
        with ThreadPoolExecutor(missing) as pool:
            opened = [shell for shell in pool.map(self._try_open, range(missing)) if shell is not None]
        self._shells += opened
        return kept + opened

    def _try_open(self, _: int) -> Shell | None:
        try:
            return Shell(self._open_pipe(), self._token)
        except (NoMoreSessions, HostError):
            return None

    # --- the end -----------------------------------------------------------------------------------------------

    def sweep(self) -> int:
        try:
            shell = self._shell()
            shell.sweep()
            limit = time.monotonic() + GRACE
            while not shell.done and not shell.pipe.ended and time.monotonic() < limit:
                _wait([shell])
                shell.pump()
        except (HostError, framing.Garbled):
            return 0
        return shell.swept

    def close(self) -> None:
        for shell in self._shells:
            shell.close()
        self._shells = []


def _wait(shells: Sequence[Shell]) -> None:
    """Until something has come, or a tenth of a second (less while something waits to be sent)."""
    poll = select.poll()
    for shell in shells:
        for descriptor in shell.pipe.descriptors():
            poll.register(descriptor, select.POLLIN)
    poll.poll((0.005 if any(shell.sending for shell in shells) else _POLL) * 1000)
