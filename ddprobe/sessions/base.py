"""What every way to a host has in common: the policy on the way out, redaction on the way in."""

from __future__ import annotations

import abc
import os
import threading
from collections.abc import Sequence

from ddprobe import readonly
from ddprobe.errors import Refused
from ddprobe.model import Command, CommandResult, Connection, Host, HttpResult, Question, Result
from ddprobe.redact import Redactor
from ddprobe.sessions.running import Beside, Running, Told


class Session(abc.ABC):
    """An open road to one host. Every question passes the read-only policy; every answer is redacted.

    `cancelled` may be set from any thread: what is under way ends within a second, on the host too, and comes
    back with `failure` set.
    """

    def __init__(self, host: Host, redactor: Redactor, cancelled: threading.Event) -> None:
        self.host = host
        self.redactor = redactor
        self.cancelled = cancelled
        if host.api_key_env:
            # A server may echo it.
            redactor.learn(os.environ.get(host.api_key_env, ""))

    def ask(self, questions: Sequence[Question]) -> tuple[Result, ...]:
        """Answers in the order of the questions, which do not depend on each other and travel together.

        A question that the policy refuses never leaves, and costs no other: its answer has `failure` set, as that of
        a road that fails under way. Raises `HostError` only when the road cannot be used at all.
        """
        refused = {
            place: no for place, question in enumerate(questions) if (no := _refused(question)) is not None
        }
        allowed = tuple(question for place, question in enumerate(questions) if place not in refused)
        answers = iter(self._carry(allowed) if allowed else ())
        results = [refused.get(place) or next(answers) for place in range(len(questions))]
        return tuple(self.redactor.result(result) for result in results)

    def begin(self, command: Command) -> Beside:
        """Start a command beside what is asked from now on. Never raises: why it could not start is its answer.

        Whoever begins it ends it, before the session is closed. When `cancelled` is set it is stopped as by `end`,
        and what it had said is kept.
        """
        no = _refused(command)
        running = Told(no) if isinstance(no, CommandResult) else self._begin(command)
        return Beside(running, self.redactor)

    @property
    @abc.abstractmethod
    def connection(self) -> Connection:
        """How the host was reached, and what a person should know of the road so far."""

    @abc.abstractmethod
    def _carry(self, questions: tuple[Question, ...]) -> Sequence[Result]:
        """Bring the answers, bytes as they came."""

    def _begin(self, command: Command) -> Running:
        """Start a command that the policy has passed."""
        return Told(
            CommandResult(question=command, failure="this road carries nothing beside a conversation")
        )

    def sweep(self) -> int:
        """End whatever a question of this session left running on the host; how many there were."""
        return 0

    def close(self) -> None:  # noqa: B027 (a session may have nothing to give back)
        """Give the road back. Never raises."""


def _refused(question: Question) -> Result | None:
    """The answer to a question that may not leave; None for one that may."""
    try:
        readonly.check(question)
    except Refused as error:
        if isinstance(question, Command):
            return CommandResult(question=question, failure=error.message)
        return HttpResult(question=question, failure=error.message)
    return None
