"""What a lint is: an id, one line for its manual page, where the knowledge comes from, and a function that judges.

    @lint("DC07", "the drafter is as wide as the target", source="…", subject="drafter and target", applies=drafts)
    def hidden_size(served: Served) -> Judgement:
        mine = need(drafter(served).hidden_size, "the drafter's hidden_size")
        …

A field that is not known ends the function through `need`, and the finding is *unknown*, with the field named.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from ddprobe.facts import ModelConfig
from ddprobe.lints.served import Served
from ddprobe.model import Cite, Finding, Outcome

T = TypeVar("T")


class Subject(Protocol):
    """What a lint judges: a server with its models (`Served`), or what was measured on one (`Measured`)."""

    @property
    def of(self) -> str:
        """` of sglang pid 41`, or empty."""


S = TypeVar("S", bound=Subject)
Measure = str | int | float | bool | None


class NotKnown(Exception):
    """A field that a lint needs is not known."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a lint made of one server."""

    outcome: Outcome
    summary: str
    cites: tuple[Cite, ...] = ()
    advice: str = ""
    measured: tuple[tuple[str, Measure], ...] = ()


@dataclass(frozen=True, slots=True)
class Lint(Generic[S]):
    """One lint, as the table and the manual page know it."""

    id: str
    text: str
    source: str
    subject: str
    applies: Callable[[S], bool]
    judge: Callable[[S], Judgement | None]
    aliases: tuple[str, ...] = ()
    """Other ids of the same fault, as public lists number it: `L12`, `M3`."""

    def look(self, served: S) -> Finding | None:
        """The finding on one server; None where the lint does not apply. A fault of its own costs no other lint."""
        try:
            judged = self.judge(served) if self.applies(served) else None
        except NotKnown as missing:
            summary = f"not known: {missing.what}; without it nothing says whether {self.text}"
            judged = Judgement(Outcome.UNKNOWN, summary)
        except Exception as error:
            summary = f"not judged: ddprobe has a bug in this lint: {type(error).__name__}: {error}; please report it"
            judged = Judgement(Outcome.UNKNOWN, summary)
        if judged is None:
            return None
        return Finding(
            id=self.id,
            outcome=judged.outcome,
            subject=self.subject + served.of,
            summary=judged.summary,
            cites=tuple(dict.fromkeys(judged.cites)),
            measured=judged.measured,
            advice=judged.advice,
            source=self.source,
        )


def lint(
    id: str,
    text: str,
    *,
    source: str,
    subject: str,
    applies: Callable[[Served], bool],
    aliases: tuple[str, ...] = (),
) -> Callable[[Callable[[Served], Judgement | None]], Lint[Served]]:
    """Turns a function that judges a server into a lint."""

    def wrap(judge: Callable[[Served], Judgement | None]) -> Lint[Served]:
        return Lint(id, text, source, subject, applies, judge, aliases)

    return wrap


def need(value: T | None, what: str) -> T:
    """The value, or the end of the lint as *unknown*."""
    if value is None:
        raise NotKnown(what)
    return value


def drafter(served: Served) -> ModelConfig:
    return need(served.drafter, "the drafter's config.json")


def target(served: Served) -> ModelConfig:
    return need(served.target, "the target's config.json")


def fine(summary: str, *cites: tuple[Cite, ...], **measured: Measure) -> Judgement:
    return _judgement(Outcome.PASS, summary, "", cites, measured)


def note(summary: str, advice: str, *cites: tuple[Cite, ...], **measured: Measure) -> Judgement:
    return _judgement(Outcome.INFO, summary, advice, cites, measured)


def warn(summary: str, advice: str, *cites: tuple[Cite, ...], **measured: Measure) -> Judgement:
    return _judgement(Outcome.WARN, summary, advice, cites, measured)


def fail(summary: str, advice: str, *cites: tuple[Cite, ...], **measured: Measure) -> Judgement:
    return _judgement(Outcome.FAIL, summary, advice, cites, measured)


def unknown(summary: str, advice: str, *cites: tuple[Cite, ...], **measured: Measure) -> Judgement:
    return _judgement(Outcome.UNKNOWN, summary, advice, cites, measured)


def _judgement(
    outcome: Outcome,
    summary: str,
    advice: str,
    cites: tuple[tuple[Cite, ...], ...],
    measured: dict[str, Measure],
) -> Judgement:
    flat = tuple(cite for group in cites for cite in group)
    return Judgement(outcome, summary, flat, advice, tuple(measured.items()))


def flag_of(name: str) -> str:
    """An SGLang argument as one types it."""
    return f"--{name.replace('_', '-')}"


def parts(served: Served, name: str) -> int:
    """Into how many parts an argument splits something; 1 where it says nothing."""
    return served.number(name) or 1


def drafts(served: Served) -> bool:
    """A drafter of its own whose configuration was read."""
    return served.drafter is not None and bool(served.family)


def drafts_blocks(served: Served) -> bool:
    """A DFlash or DSpark drafter whose configuration was read."""
    return served.drafter is not None and served.family in ("dflash", "dspark")


def blocks_on_sglang(served: Served) -> bool:
    return drafts_blocks(served) and served.on_sglang


def drafts_on_sglang(served: Served) -> bool:
    return drafts(served) and served.on_sglang


def speculates_on_sglang(served: Served) -> bool:
    return served.engine == "sglang" and bool(served.algorithm)
