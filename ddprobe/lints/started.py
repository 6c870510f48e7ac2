"""What start-up lints judge: everything that logs tell of how a server started and ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ddprobe.facts import LogEvent, ServerArgs
from ddprobe.lints.lint import Judgement, Lint, fine
from ddprobe.model import Cite, Fact


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """The events of all logs, and whether one of them holds a start from its first line to its last."""

    events: tuple[LogEvent, ...] = ()
    arguments: tuple[ServerArgs, ...] = ()

    @classmethod
    def of_facts(cls, facts: Sequence[Fact]) -> Started | None:
        """What logs tell; None when they tell nothing."""
        events = tuple(fact for fact in facts if isinstance(fact, LogEvent))
        arguments = tuple(fact for fact in facts if isinstance(fact, ServerArgs))
        return cls(events=events, arguments=arguments) if events else None

    @property
    def of(self) -> str:
        return ""

    @property
    def whole(self) -> bool:
        """True when a log holds the start and says that it was done: then a line that is not there was not written."""
        runs = {event.run for event in self.found("launched")}
        return any(event.run in runs for event in self.found("ready"))

    def found(self, *kinds: str) -> tuple[LogEvent, ...]:
        """The events of these kinds, in their order."""
        return tuple(event for event in self.events if event.kind in kinds)

    def value(self, event: LogEvent, name: str) -> str:
        """A value of an event; empty when it has none of that name."""
        return dict(event.values).get(name, "")

    def number(self, event: LogEvent, name: str) -> int | None:
        """A value of an event if it is a whole number."""
        text = self.value(event, name)
        return int(text) if text.isdecimal() and len(text) < 16 else None


def cites(events: Sequence[LogEvent]) -> tuple[Cite, ...]:
    """Where these events can be read."""
    return tuple(cite for event in events for cite in event.source)[:8]


def seen(
    id: str, text: str, *, source: str, aliases: tuple[str, ...] = ()
) -> Callable[[Callable[[Started], Judgement | None]], Lint[Started]]:
    """Turns a function that judges a start into a lint."""

    def wrap(judge: Callable[[Started], Judgement | None]) -> Lint[Started]:
        return Lint(id, text, source, "start-up log", lambda started: bool(started.events), judge, aliases)

    return wrap


def clean(started: Started, summary: str) -> Judgement | None:
    """Content, where a whole start was read; else nothing can be said."""
    if not started.whole:
        return None
    return fine(summary, cites(started.found("launched", "ready")))


def lines(events: tuple[LogEvent, ...]) -> int:
    return sum(event.count for event in events)


def said(events: tuple[LogEvent, ...]) -> str:
    """`3 lines; the first: Parameter … not found in params_dict`."""
    count = lines(events)
    told = "1 line" if count == 1 else f"{count} lines; the first"
    return f"{told}: {events[0].text[:200]}"
