"""What every session has in common that talks to a `/bin/sh -s` over a pipe: a channel's, or a program's.

Questions that travel together go as one script to one shell: one login shell's start and one round trip, and a host
that allows a single session (`MaxSessions 1`) is served like any other. Those marked `alone` get shells of their own
beside it, as many as the host allows; the others wait their turn. A shell is kept for the next questions.
"""

from __future__ import annotations

import abc
import secrets
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from ddprobe.errors import HostError, NoShell, Unreachable
from ddprobe.model import KIB, Command, CommandResult, Host, HttpRequest, Question, Result
from ddprobe.redact import Redactor
from ddprobe.sessions import framing
from ddprobe.sessions.asking import GRACE, INTERRUPTED, Exchange, NoMoreSessions, Pipe, Shell, wait
from ddprobe.sessions.base import Session
from ddprobe.sessions.running import InShell, Running, Told

if TYPE_CHECKING:
    from ddprobe.sessions.http import Web

MAX_SHELLS = 5
MAX_REQUESTS = 8
MAX_BESIDE = 2
"""Most commands that run beside a conversation: each holds a session of the host's."""
_AGAIN = 0.1
_NOT_SWEPT = (
    "whether a question left something running could not be looked up any more: "
    "the host's own guard ends it within three seconds"
)
MAX_HUNG = 2
"""After so many times in a row that nothing came back at all, a host is asked nothing more: each costs a deadline."""


class ShellSession(Session):
    """A session whose commands travel to shells. Subclasses open pipes to them, and carry HTTP."""

    def __init__(self, host: Host, redactor: Redactor, cancelled: threading.Event) -> None:
        super().__init__(host, redactor, cancelled)
        self._token = secrets.token_hex(16)
        self._shells: list[Shell] = []
        self._running: list[InShell] = []
        self._notes: list[str] = []
        self._hung = 0
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
                wait([shell])
                shell.pump()
                if not shell.ready and (shell.pipe.ended or time.monotonic() > limit):
                    raise self._no_shell(shell)
        except framing.Garbled:
            raise self._no_shell(shell, flooded=True) from None
        finally:
            if not shell.ready:
                shell.close()
        self._shells.append(shell)
        missing = [name for name in shell.lacks if name in framing.NEEDED]
        if missing:
            shell.close()
            raise NoShell(
                f"{self.host.name}: logged in, but there is no {' and no '.join(missing)} in PATH",
                "ddprobe bounds each answer and its time with them: it needs coreutils or busybox on the host",
            )
        self._look(shell)

    def _no_shell(self, shell: Shell, flooded: bool = False) -> NoShell:
        said = framing.printable(self.redactor.data(shell.said[:4096]))[:200]
        words = repr(said) if said else "nothing" if not shell.said else "bytes that are no text"
        if flooded:
            ending = f"more than {framing.NOISE_CAP // KIB} KiB, then the road was cut"
            advice = (
                "an rc file or a forced command prints it: it must be quiet for a shell without a terminal"
            )
        elif shell.pipe.ended:
            ending = shell.pipe.epitaph
            advice = (
                "a forced command, `nologin` or a restricted shell stands in the way: "
                "ask for an account with a shell"
            )
        else:
            ending = f"no shell within {self.host.connect_timeout:g} s"
            advice = (
                "its rc files may be slow (raise connect_timeout) or wait for an answer, "
                "or a forced command stands in the way: look with plain `ssh`"
            )
        return NoShell(
            f"{self.host.name}: logged in, but no POSIX shell answers: it said {words} ({ending})", advice
        )

    def _no_session(self, why: str) -> NoShell:
        return NoShell(
            f"{self.host.name}: logged in, but the SSH server opens no session: {why}",
            "MaxSessions 0 in its sshd_config, or an account for forwarding alone: "
            "ask for an account with a shell",
        )

    def _look(self, shell: Shell) -> None:
        if shell.noise.strip():
            said = framing.printable(self.redactor.data(shell.noise))
            self._note(f"the login shell prints before it obeys (dropped): {said[:120]!r}")
        if not shell.setsid:
            self._note("the host has no setsid: what a question leaves behind is ended by its mark only")
        blind = [name for name in shell.lacks if name not in framing.NEEDED]
        if blind:
            self._note(
                f"the host has no {' and no '.join(blind)}: "
                "what leaves a question's process group can be neither found nor ended"
            )

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
                if self._hung >= MAX_HUNG:
                    raise Unreachable(
                        f"{self.host.name}: not asked: the host hangs, {self._hung} questions in a row "
                        "came to no end within their time"
                    )
                results |= self._round(left)
            except HostError as error:
                return results | {
                    n: CommandResult(question=q, failure=error.message) for n, q in left.items()
                }
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
            wait([exchange.shell for exchange in pending])
            for exchange in pending:
                exchange.pump()
                if self.cancelled.is_set() and not exchange.over:
                    exchange.interrupt()
        if any(exchange.answered for exchange in exchanges):
            self._hung = 0
        elif any(exchange.hung for exchange in exchanges):
            self._hung += 1
        self._shells = [shell for shell in self._shells if not shell.broken]
        for shell in self._shells:
            self._look(shell)
        answered = {n: result for exchange in exchanges for n, result in exchange.results.items()}
        if not answered and not self.cancelled.is_set():
            raise Unreachable(f"{self.host.name}: no further shell can be started: {exchanges[0].trouble}")
        return answered

    def _exchange(self, shell: Shell, numbers: list[int], commands: dict[int, Command]) -> Exchange:
        return Exchange(shell, numbers, [commands[n] for n in numbers], self.host)

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
                self.cancelled.wait(_AGAIN)
            else:
                self._shells.append(shell)
                return shell

    def _settle(self, shell: Shell) -> bool:
        """Wait until the script before is done, to its last word; otherwise give the shell up."""
        limit = time.monotonic() + GRACE
        try:
            while not shell.broken and not shell.done:
                wait([shell])
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

    # --- beside the conversation ---------------------------------------------------------------------------------

    def _begin(self, command: Command) -> Running:
        with self._asking:
            try:
                running = InShell(self._spare(), command, self.host, self.cancelled)
            except NoMoreSessions as error:
                why = f"the host allows no session for it beside the first ({error})"
            except HostError as error:
                why = error.message
            else:
                self._running.append(running)
                return running
        return Told(CommandResult(question=command, started=time.time(), failure=why))

    def _spare(self) -> Shell:
        """A shell that nobody else asks from now on. Raises `NoMoreSessions`, or `HostError`."""
        self._running = [running for running in self._running if not running.over]
        if len(self._running) >= MAX_BESIDE:
            raise NoMoreSessions(f"{MAX_BESIDE} commands run already")
        for shell in self._shells[1:]:
            if self._settle(shell):
                self._shells.remove(shell)
                return shell
        return Shell(self._open_pipe(), self._token)

    # --- the end -----------------------------------------------------------------------------------------------

    def sweep(self) -> int:
        for running in self._running:
            running.stop()
        for running in self._running:
            running.answer()
        try:
            shell = self._shell()
            shell.sweep()
            limit = time.monotonic() + GRACE
            while not shell.done and not shell.pipe.ended and time.monotonic() < limit:
                wait([shell])
                shell.pump()
        except (HostError, framing.Garbled):
            self._note(_NOT_SWEPT)
            return 0
        if not shell.done:
            self._note(_NOT_SWEPT)
        return shell.swept

    def close(self) -> None:
        for running in self._running:
            running.close()
        for shell in self._shells:
            shell.close()
        self._shells = []
