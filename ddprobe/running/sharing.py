"""One session for several steps at once: what they ask while the road is busy travels together, next.

So steps side by side cost no connection of their own, and a host that allows a single session is served like any other.
"""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ddprobe.errors import DdprobeError
from ddprobe.model import Command, CommandResult, Connection, HttpResult, Question, Result
from ddprobe.sessions.base import Session
from ddprobe.sessions.running import Beside


@dataclass(slots=True)
class _Call:
    """Questions that wait for the road, and what came."""

    questions: tuple[Question, ...]
    answers: tuple[Result, ...] = ()
    error: BaseException | None = None
    over: threading.Event = field(default_factory=threading.Event)


class Line:
    """The road to one host, for steps that may be under way at once."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._waiting: list[_Call] = []
        self._gate = threading.Lock()
        self._turn = threading.Lock()

    def ask(self, questions: Sequence[Question]) -> tuple[Result, ...]:
        """As `Session.ask`. Whoever gets the turn asks for all that wait."""
        call = _Call(tuple(questions))
        with self._gate:
            self._waiting.append(call)
        with self._turn:
            if not call.over.is_set():
                with self._gate:
                    together, self._waiting = self._waiting, []
                self._carry(together)
        if call.error is not None:
            raise call.error
        return call.answers

    @contextlib.contextmanager
    def alone(self, most: float) -> Iterator[Session | None]:
        """The road for one step's questions only; None where others have it for longer than so many seconds."""
        mine = self._turn.acquire(timeout=min(most, threading.TIMEOUT_MAX))
        try:
            yield self.session if mine else None
        finally:
            if mine:
                self._turn.release()

    def _carry(self, calls: Sequence[_Call]) -> None:
        try:
            answers = self.session.ask(tuple(q for call in calls for q in call.questions))
        except BaseException as error:
            for call in calls:
                call.error = error
        else:
            for call in calls:
                call.answers, answers = answers[: len(call.questions)], answers[len(call.questions) :]
        finally:
            for call in calls:
                call.over.set()


class OutOfTime(DdprobeError):
    """A step's own limit is over."""


class StepSession(Session):
    """What one step asks: over the shared line, and within the step's own time."""

    def __init__(self, line: Line, limit: float | None) -> None:
        """`limit`: seconds from now for the whole of the step."""
        inner = line.session
        self.host = inner.host
        self.redactor = inner.redactor
        self.cancelled = inner.cancelled
        self._line = line
        self._limit = limit
        self._until = time.monotonic() + (limit or 0.0)

    @property
    def connection(self) -> Connection:
        return self._line.session.connection

    def ask(self, questions: Sequence[Question]) -> tuple[Result, ...]:
        """As `Session.ask`, within what is left: waiting for the road counts, and so do questions that hang.

        They run one after another on the host, so only as many travel together as may all take their time. What is
        not asked in time has failed. Raises `OutOfTime` where nothing is.
        """
        if self._limit is None:
            return self._line.ask(questions)
        answers: list[Result] = []
        rest = list(questions)
        while rest and self._left > 0:
            with self._line.alone(self._left) as session:
                left = self._left
                if session is None or left <= 0:
                    break
                many = self._fitting(rest, left)
                answers += session.ask([self._within(question, left) for question in rest[:many]])
                rest = rest[many:]
        if not rest:
            return tuple(answers)
        why = f"the step's timeout of {self._limit:g} s was over before all was asked"
        if not answers:
            raise OutOfTime(why)
        return (*answers, *(_not_asked(question, why) for question in rest))

    @property
    def _left(self) -> float:
        return self._until - time.monotonic()

    def _fitting(self, questions: Sequence[Question], left: float) -> int:
        """How many of them fit, each with all of its time; one always goes, with what is left."""
        many, taken = 0, 0.0
        for question in questions:
            taken += question.timeout or self.host.command_timeout
            if taken > left and many:
                break
            many += 1
        return many

    def begin(self, command: Command) -> Beside:
        """As `Session.begin`: on the session itself, in a shell of its own."""
        if self._limit is not None:
            seconds = command.timeout or self.host.command_timeout
            command = dataclasses.replace(command, timeout=round(min(seconds, max(0.1, self._left)), 3))
        return self._line.session.begin(command)

    def _within(self, question: Question, left: float) -> Question:
        seconds = question.timeout or self.host.command_timeout
        return (
            question if seconds <= left else dataclasses.replace(question, timeout=round(max(left, 0.1), 3))
        )

    def _carry(self, questions: tuple[Question, ...]) -> Sequence[Result]:
        return self._line.ask(questions)


def _not_asked(question: Question, why: str) -> Result:
    if isinstance(question, Command):
        return CommandResult(question=question, failure=why)
    return HttpResult(question=question, failure=why)
