"""A session to a made-up host without the road: commands from its tree, HTTP from its server, times on paper."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from urllib.parse import urlsplit

from ddprobe.lab import shell
from ddprobe.lab.machine import Machine
from ddprobe.model import (
    Chunk,
    Command,
    CommandResult,
    Connection,
    Host,
    HttpRequest,
    HttpResult,
    Question,
    Result,
)
from ddprobe.redact import Redactor
from ddprobe.sessions.base import Session


class LabSession(Session):
    """Nothing sleeps: an answer of a minute is there at once, and says that it took a minute."""

    def __init__(self, machine: Machine, host: Host | None = None) -> None:
        own = Host(name=machine.hostname, gpu_bandwidth=machine.gpu_bandwidth)
        super().__init__(host or own, Redactor(), threading.Event())
        self.machine = machine
        self.now = 1_790_000_000.0

    @property
    def connection(self) -> Connection:
        return Connection(transport="lab")

    def _carry(self, questions: tuple[Question, ...]) -> Sequence[Result]:
        return [
            self._command(question) if isinstance(question, Command) else self._http(question)
            for question in questions
        ]

    def _command(self, command: Command) -> CommandResult:
        out = shell.run(self.machine, command)
        return CommandResult(
            question=command,
            exit_code=out.exit,
            stdout=bytes(out.stdout[: command.cap]),
            stderr=bytes(out.stderr),
            started=self.now,
            truncated=len(out.stdout) > command.cap,
        )

    def _http(self, request: HttpRequest) -> HttpResult:
        server = self.machine.servers.get(urlsplit(request.base).port or 80)
        if server is None or not server.alive:
            return HttpResult(
                question=request, failure=f"nothing answers at {request.base} (connection refused)"
            )
        response = server.respond(request.method, request.path, request.body)
        if response.hangs_up:
            return HttpResult(question=request, failure=f"{request.base} closed the connection")
        body, chunks = response.body, [Chunk(0.0, len(response.body))] if response.body else []
        for piece in response.pieces or ():
            body += piece.data
            chunks.append(Chunk(piece.at, len(piece.data)))
        seconds = chunks[-1].at if chunks else 0.0
        self.now += seconds
        return HttpResult(
            question=request,
            status=response.status,
            headers=(("content-type", response.type), ("x-ddprobe-lab", "simulated")),
            body=body,
            chunks=tuple(chunks),
            started=self.now - seconds,
            seconds=seconds,
            via="channel",
        )
