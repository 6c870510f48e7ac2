"""A log that is followed: which of the bytes that came are its own, and each time that another file stood in its place.

A log may be cut short or replaced between a look and the reading that it led to. Bytes that were read count only when
the next look finds the same file, no shorter: then they stood where they were asked for, and are taken once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ddprobe.errors import Unanswered
from ddprobe.model import CommandResult, Evidence, Host, Result
from ddprobe.probes.engine import _log_reading as reading

REPLACED = "it was cut short or replaced while it was followed"
MISSING_LINES = "lines written between two looks may be missing"
_KEY = re.compile(rf"(?:({reading.FOLLOWING})[0-9]+|log)-([0-9]{{1,9}})-(lines|status)\Z")
_NO_HOST = Host(name="")


@dataclass(frozen=True, slots=True)
class Added:
    """Bytes of a log that came since, or that it began anew."""

    number: int
    key: str = ""
    data: bytes = b""
    anew: bool = False
    """The log was found cut short or replaced: it is read from its beginning, and what stood before may be missing."""


@dataclass(slots=True)
class _Log:
    here: reading.Status
    end: int
    """Up to where its bytes were taken."""
    read: tuple[str, bytes, int] | None = None
    """Key, bytes and end of a reading that no look has confirmed yet."""
    times: int = 0
    gone: str = ""


class Follower:
    """Where one stands in each log. Is given every answer, in order."""

    def __init__(self) -> None:
        self._logs: dict[int, _Log] = {}

    def take(self, answers: Iterable[Result]) -> Iterator[Added]:
        """What these answers add."""
        for answer in answers:
            of_a_log = _KEY.match(answer.key)
            if of_a_log is None or not isinstance(answer, CommandResult):
                continue
            follows, number, what = of_a_log[1] is not None, int(of_a_log[2]), of_a_log[3]
            if not follows and what == "status":
                self._begin(number, answer)
            elif follows and number in self._logs:
                if what == "lines":
                    _hold(self._logs[number], answer)
                else:
                    yield from _look(number, self._logs[number], answer)

    def wanted(self, number: int) -> tuple[int, int] | None:
        """From where to where there is more to read; None where there is nothing, or no such log."""
        log = self._logs.get(number)
        return (log.end, log.here.size) if log and log.end < log.here.size else None

    def knows(self, number: int) -> bool:
        """Whether it is a file that could be looked at."""
        return number in self._logs

    def times(self, number: int) -> int:
        """How often it was found cut short or replaced."""
        return self._logs[number].times if number in self._logs else 0

    def gone(self, number: int) -> str:
        """Why the latest look found no log there; empty where it did."""
        return self._logs[number].gone if number in self._logs else ""

    def _begin(self, number: int, answer: CommandResult) -> None:
        try:
            here = _status(answer)
        except Unanswered:
            return
        self._logs[number] = _Log(here, here.size)


def _hold(log: _Log, answer: CommandResult) -> None:
    start = str(answer.question.argv[2:3]).strip("(),'+")
    if (answer.whole or answer.truncated) and start.isdecimal():  # cut where the next look goes on
        log.read = answer.key, answer.stdout, int(start) - 1 + answer.question.cap


def _look(number: int, log: _Log, answer: CommandResult) -> Iterator[Added]:
    read, log.read = log.read, None
    try:
        here = _status(answer)
    except Unanswered as error:
        log.gone = "" if answer.failure or answer.timed_out else error.reason
        return
    before, was_gone = log.here, log.gone
    log.here, log.gone = here, ""
    # A file that was away is another one, though the number of the old may have been given to it.
    another = bool(here.file and before.file and here.file != before.file) or was_gone == reading.MISSING
    if here.size < before.size or another:
        log.end = 0
        log.times += 1
        yield Added(number, anew=True)
    elif read is not None:
        key, data, log.end = read
        yield Added(number, key, data)


def _status(answer: CommandResult) -> reading.Status:
    return reading.status(Evidence(_NO_HOST, (answer,)), answer.key)
