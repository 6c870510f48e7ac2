"""A session to a made-up host without the road: commands from its tree, HTTP from its server, times on paper."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
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
from ddprobe.sessions.running import Running


class OnPaper:
    """A program that goes on, in the session's own time: each request brings it forward."""

    def __init__(self, session: LabSession, command: Command) -> None:
        self.session = session
        self.command = command
        self.out = shell.run(session.machine, command)
        self.began = self.due = session.now
        self.go_on()

    def go_on(self) -> None:
        while self.out.sample is not None and self.due <= self.session.now:
            self.out.stdout += self.out.sample(self.due)
            self.due += self.out.every

    def stop(self) -> None:
        if self in self.session.beside:
            self.session.beside.remove(self)

    def answer(self) -> CommandResult:
        goes_on = self.out.sample is not None
        return CommandResult(
            question=self.command,
            exit_code=shell.TERMINATED if goes_on else self.out.exit,
            stdout=bytes(self.out.stdout[: self.command.cap]),
            stderr=bytes(self.out.stderr),
            started=self.began,
            seconds=self.session.now - self.began if goes_on else 0.0,
            truncated=len(self.out.stdout) > self.command.cap,
            stopped=goes_on,
        )


class LabSession(Session):
    """Nothing sleeps: an answer of a minute is there at once, and says that it took a minute."""

    def __init__(self, machine: Machine, host: Host | None = None) -> None:
        own = Host(name=machine.hostname, gpu_bandwidth=machine.gpu_bandwidth)
        super().__init__(host or own, Redactor(), threading.Event())
        self.machine = replace(machine, clock=lambda: self.now)
        self.now = 1_790_000_000.0
        self.beside: list[OnPaper] = []
        if machine.gpus is not None and machine.gpus.engine is not None:
            # So that what its cards do at a moment is what they did on paper.
            machine.gpus.engine.clock = lambda: self.now

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

    def _begin(self, command: Command) -> Running:
        running = OnPaper(self, command)
        self.beside.append(running)
        return running

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
        for running in self.beside:
            running.go_on()
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
