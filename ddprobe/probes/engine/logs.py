"""What does the server's log say of its start, its speculation over time, and of what went wrong?

Finds the log by the server's stdout and stderr: a file, the file of a program that the output is piped into, what a
container's runtime keeps, or a unit's journal. A log up to 4 MiB is read whole; of a larger one the beginning, the recent
part, and what grep finds in all of it. Nothing is sent to the server.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from ddprobe.blocks import Block
from ddprobe.errors import Unanswered
from ddprobe.model import (
    Command,
    Conversation,
    Evidence,
    Fact,
    Finding,
    Gap,
    Help,
    Host,
    Outcome,
    Probe,
    Result,
)
from ddprobe.parsing import log_lines
from ddprobe.parsing.log_lines import Since
from ddprobe.probes import _given, _outputs, _processes
from ddprobe.probes.engine import (
    _log_content,
    _log_facts,
    _log_following,
    _log_places,
    _log_reading,
    _log_view,
)
from ddprobe.probes.engine._log_places import Place, Places

ROUNDS = 900
"""Of following: one every two seconds."""


@dataclass(frozen=True, kw_only=True)
class EngineLogs(Probe):
    """Finds the servers' logs and reads what is needed of them."""

    log: Annotated[str, Help("the log's path on the host, where it cannot be found or is another one")] = ""
    since: Annotated[
        str, Help("acceptance and throughput from then on: 30m, 2h, 14:30, 2026-01-31 14:30 (its own clock)")
    ] = ""
    follow: Annotated[bool, Help("go on reading what is added, for half an hour at most")] = False

    findings: ClassVar[dict[str, str]] = {
        "logs.none": "no inference server runs on the host, and no log was named",
        "logs.silent": "a log has no line about decoding in what was read",
        "logs.idle": "a log has no line about decoding in the time asked for",
    }
    outputs: ClassVar[dict[str, str]] = _outputs.LOGS

    @classmethod
    def mistakes(cls, given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        if given.get("since"):
            yield from _given.wrong(given, "since", log_lines.since)

    @classmethod
    def output(cls, facts: Sequence[Fact], findings: Sequence[Finding]) -> Mapping[str, Any]:
        return _outputs.of_logs(facts)

    def collect(self, host: Host) -> Conversation:
        answers: list[Result] = []

        def so_far() -> Evidence:
            return Evidence(host, tuple(answers))

        since = _since(self.since)
        if not self._given(host):
            answers += yield _processes.first(host)
            if about := _processes.second(_processes.candidates(so_far())):
                answers += yield about
            for ask in (_log_places.further, _log_places.readers):
                if asked := ask(so_far()):
                    answers += yield asked
        found = self._places(so_far()).found
        numbered = tuple(enumerate(found))
        if not numbered:
            return
        now = Command(key="now", argv=("date", "+%s"))
        answers += yield (now, *(each for n, place in numbered for each in _log_reading.about(n, place)))
        asked = tuple(each for n, place in numbered for each in _log_reading.first(so_far(), n, place))
        while asked:
            answers += yield asked
            asked = tuple(
                each for n, place in numbered for each in _log_content.more(so_far(), n, place, since)
            )
        if self.follow:
            yield from _follow(so_far(), numbered)

    def interpret(self, evidence: Evidence) -> Iterator[Fact | Finding | Gap]:
        found = self._places(evidence)
        yield from found.arguments
        yield from found.missing
        if not found.found and not found.missing:
            yield Finding(
                id="logs.none",
                outcome=Outcome.WARN,
                subject=evidence.host.name,
                summary="no SGLang, vLLM or llama.cpp server is seen to run here, so there is no log to look for",
                advice="name one with --log PATH",
            )
        since = _since(self.since)
        for number, place in enumerate(found.found):
            try:
                content = _log_content.content(evidence, number, place, since)
            except Unanswered as error:
                yield Gap(place.path, error.reason)
                continue
            yield from _log_facts.of(place, content)

    def show(self, facts: Sequence[Fact]) -> Iterator[Block]:
        yield from _log_view.blocks(facts)

    def _given(self, host: Host) -> str:
        return self.log or host.log or ""

    def _places(self, evidence: Evidence) -> Places:
        """Raises `Unanswered` when no log is named and the processes could not be searched."""
        if self.log:
            return Places((Place(self.log, "as named"),))
        if evidence.host.log:
            return Places((Place(evidence.host.log, "the hosts file"),))
        return _log_places.places(evidence)


def _since(text: str) -> Since | None:
    return log_lines.since(text) if text else None


def _follow(evidence: Evidence, numbered: tuple[tuple[int, Place], ...]) -> Conversation:
    """Ask again and again how large each log is, and for the bytes that came since."""
    follower = _log_following.Follower()
    tuple(follower.take(evidence.results))
    files = [(number, place) for number, place in numbered if follower.knows(number) and not place.journal]
    if not files:
        return
    for round_ in range(ROUNDS):
        asked: list[Command] = []
        for number, place in files:
            if wanted := follower.wanted(number):
                asked.append(_log_reading.added(round_, number, place, *wanted))
            asked.append(_log_reading.watch(round_, number, place))
        answers = yield tuple(asked)
        tuple(follower.take(answers))
