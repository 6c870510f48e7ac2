"""One probe's conversation with one host: its questions out, the answers in and kept, until it is done or breaks off."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterable, Iterator

from ddprobe.errors import DdprobeError, HostError, Unanswered
from ddprobe.model import (
    Asked,
    Begin,
    CommandResult,
    Conversation,
    End,
    Evidence,
    Gap,
    Host,
    HttpRequest,
    Progress,
    Question,
    Result,
    Step,
)
from ddprobe.running.judging import bug, gap
from ddprobe.sessions.base import Session
from ddprobe.sessions.running import Beside
from ddprobe.store import ReportWriter

MAX_ROUNDS = 1000
"""Most times that a probe may ask on one host: more is a loop that never ends."""


@dataclasses.dataclass(frozen=True, slots=True)
class Collected:
    """A probe's transcript on one host, where it broke off, and whether the host itself was lost."""

    evidence: Evidence
    broken: tuple[Gap, ...] = ()
    lost: HostError | None = None


def collect(
    step: Step,
    host: Host,
    session: Session,
    writer: ReportWriter,
    progress: Progress,
    so_far: list[Result] | None = None,
) -> Collected:
    """Hold the probe's conversation with the host. Each answer is in `so_far` as soon as it is kept."""
    results: list[Result] = [] if so_far is None else so_far
    broken: tuple[Gap, ...] = ()
    lost: HostError | None = None
    conversation: Conversation | None = None
    beside = _Running(session)

    def keep(answers: Iterable[Result]) -> None:
        for answer in answers:
            writer.answer(host.name, step.id, answer)
            results.append(answer)

    try:
        conversation = step.probe.collect(host)
        asked = next(conversation)
        for _ in range(MAX_ROUNDS):
            if _waiting_for(asked):
                progress(host.name, f"{step.id}: {_waiting_for(asked)}")
            reply: Result | tuple[Result, ...] | None = None
            if isinstance(asked, Begin):
                beside.begin(asked)
            elif isinstance(asked, End):
                reply = beside.end(asked)
                keep((reply,))
            else:
                questions = asked if isinstance(asked, tuple) else (asked,)
                answers = session.ask(questions) if questions else ()
                keep(answers)
                reply = answers if isinstance(asked, tuple) else answers[0]
            if session.cancelled.is_set():
                broken = (Gap(step.id, "interrupted"),)
                break
            asked = conversation.send(reply)
        else:
            raise RuntimeError(f"it asked {MAX_ROUNDS} times and would go on")
    except StopIteration:
        pass
    except Unanswered as error:
        broken = (gap(error, any(result.key == error.key for result in results)),)
    except HostError as error:
        lost, broken = error, (Gap(step.id, error.message),)
    except DdprobeError as error:
        broken = (Gap(step.id, error.message),)
    except Exception as error:
        broken = (Gap(step.id, bug(step.probe.name(), error)),)
    finally:
        with contextlib.suppress(Exception):
            if conversation is not None:
                conversation.close()
        # Whatever brought the end: nothing is left running on the host.
        keep(beside.end_all())
    return Collected(Evidence(host, tuple(results)), broken, lost)


def _waiting_for(asked: Asked) -> str:
    """What a person waits for; nothing where it takes no time."""
    if isinstance(asked, Begin | End) or not asked:
        return ""
    question: Question = asked[0] if isinstance(asked, tuple) else asked
    return (isinstance(question, HttpRequest) and question.about) or question.key


class _Running:
    """What a conversation began and has not ended, by its key."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._begun: dict[str, Beside] = {}

    def begin(self, asked: Begin) -> None:
        key = asked.command.key
        if key in self._begun:
            raise RuntimeError(f"it began {key!r} twice")
        self._begun[key] = self._session.begin(asked.command)

    def end(self, asked: End) -> CommandResult:
        if asked.key not in self._begun:
            raise RuntimeError(f"it ended {asked.key!r}, which it had not begun")
        return self._begun.pop(asked.key).end()

    def end_all(self) -> Iterator[CommandResult]:
        """The answers of the rest, in the order of their beginning. They are stopped side by side."""
        for one in self._begun.values():
            one.stop()
        while self._begun:
            yield self._begun.pop(next(iter(self._begun))).end()
