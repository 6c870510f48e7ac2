"""`logs`: what the servers' logs say, once or as it comes."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from ddprobe.cli import flow, streams, targets
from ddprobe.cli.options import Hosts, Options, with_options
from ddprobe.errors import UsageError

if TYPE_CHECKING:
    from ddprobe.model import Connection, Host, Question, Result
    from ddprobe.redact import Redactor
    from ddprobe.runner import Opener
    from ddprobe.sessions.base import Session

PACE = 2.0
"""Seconds between two looks at a log that is followed."""


@with_options()
def logs(
    options: Options,
    hosts: Hosts = None,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="T",
            help="Acceptance and throughput from then on: 30m, 2h, 14:30, '2026-01-31 14:30' (the log's own clock).",
        ),
    ] = None,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow",
            help="Print what is added as it comes, until Ctrl-C or for half an hour; then the report. With --json the report "
            "alone, at the end.",
        ),
    ] = False,
    log: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="The log on the host. [found by the server's stdout and stderr]"),
    ] = None,
) -> int:
    """What the servers' logs say: start-up facts, warnings, acceptance and throughput over time and by context.

    Finds the log by itself: a file, a pipe into one, a container's log, a unit's journal. Of a large one only what is
    needed is read, on its host.

    Example: ddprobe logs gpu1 --since 2h
    """
    from ddprobe.model import Step
    from ddprobe.parsing import log_lines
    from ddprobe.probes.engine.logs import EngineLogs

    if since is not None:
        try:
            log_lines.since(since)
        except UsageError as error:
            raise UsageError(f"--since: {error.message}", error.advice) from None
    if log is not None and not log.startswith("/"):
        raise UsageError(f"--log {log!r} is not an absolute path", "name the file as its host has it")
    probe = EngineLogs(log=log or "", since=since or "", follow=follow)
    chosen = targets.resolve(hosts, options)
    opener = _paced(quiet=options.json, named=len(chosen) > 1) if follow else None
    return flow.look("logs", chosen, [Step("logs", probe)], options, opener=opener)


def _paced(*, quiet: bool, named: bool) -> Opener:
    """Sessions that wait between two looks, and print what is added as it comes."""
    from ddprobe.probes.engine._log_following import MISSING_LINES, REPLACED, Added, Follower
    from ddprobe.probes.engine._log_reading import FOLLOWING
    from ddprobe.render import clean
    from ddprobe.sessions import open_session
    from ddprobe.sessions.base import Session

    class Paced(Session):
        """Another session, asked in its own time while it follows."""

        def __init__(self, inner: Session) -> None:
            super().__init__(inner.host, inner.redactor, inner.cancelled)
            self.inner = inner
            self.follower = Follower()
            self.held: dict[int, bytes] = {}

        @property
        def connection(self) -> Connection:
            return self.inner.connection

        def _carry(self, questions: tuple[Question, ...]) -> Sequence[Result]:
            if questions[0].key.startswith(FOLLOWING):
                self.cancelled.wait(PACE)
            answers = self.inner.ask(questions)
            for added in self.follower.take(answers):
                self._print(added)
            return answers

        def _print(self, added: Added) -> None:
            """Whole lines, once a later look has confirmed them."""
            if quiet:
                return
            *lines, self.held[added.number] = (self.held.get(added.number, b"") + added.data).split(b"\n")
            if added.anew:
                lines = [self.held.pop(added.number), f"--- {REPLACED}: {MISSING_LINES} ---".encode()]
            self._write(lines)

        def _write(self, lines: list[bytes]) -> None:
            host = f"{clean(self.host.name)}  " if named else ""
            try:
                for line in filter(None, lines):
                    sys.stdout.write(f"{host}{clean(line.decode('utf-8', 'replace').rstrip())}\n")
                sys.stdout.flush()
            except OSError:
                # Nobody follows any more, as after Ctrl-C.
                streams.quieten("stdout")
                self.cancelled.set()

        def sweep(self) -> int:
            return self.inner.sweep()

        def close(self) -> None:
            self._write(list(self.held.values()))
            self.inner.close()

    def open_paced(host: Host, redactor: Redactor, cancelled: threading.Event) -> Session:
        return Paced(open_session(host, redactor, cancelled))

    return open_paced
