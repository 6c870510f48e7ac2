"""What every way to a host has in common: the policy on the way out, redaction on the way in."""

from __future__ import annotations

import abc
import os
import threading
from collections.abc import Sequence

from ddprobe import readonly
from ddprobe.model import Connection, Host, Question, Result
from ddprobe.redact import Redactor


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

        A question that the policy refuses raises `Refused` before any of them leaves. A road that fails under way
        is data: those answers have `failure` set. Raises `HostError` only when the road cannot be used at all.
        """
        for question in questions:
            readonly.check(question)
        return tuple(self.redactor.result(result) for result in self._carry(tuple(questions)))

    @property
    @abc.abstractmethod
    def connection(self) -> Connection:
        """How the host was reached, and what a person should know of the road so far."""

    @abc.abstractmethod
    def _carry(self, questions: tuple[Question, ...]) -> Sequence[Result]:
        """Bring the answers, bytes as they came."""

    def sweep(self) -> int:
        """End whatever a question of this session left running on the host; how many there were."""
        return 0

    def close(self) -> None:  # noqa: B027 (a session may have nothing to give back)
        """Give the road back. Never raises."""
