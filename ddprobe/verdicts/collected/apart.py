"""Evidence of several starts of a server, or of several servers: each with what is told of it, and never mixed."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from ddprobe import lints
from ddprobe.facts import (
    Acceptance,
    BatchSpeed,
    Claim,
    CommitCheck,
    CommitPoint,
    CommitRequest,
    DecodeSeries,
    LogEvent,
    ModelConfig,
    PlainSpeed,
    ServerArgs,
    ServerProcess,
    ServerState,
)
from ddprobe.lints import launches
from ddprobe.model import Fact
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.ruling import Ruling, weakest

OF_A_START = (
    Acceptance, BatchSpeed, Claim, CommitCheck, CommitPoint, CommitRequest, DecodeSeries, LogEvent, PlainSpeed, ServerProcess, ServerState,
)  # fmt: skip
"""What is told of one server while it ran."""


@dataclass(frozen=True, slots=True)
class Start:
    """One start, and what is told of it; without arguments, what is told of nobody knows which."""

    case: Case
    args: tuple[ServerArgs, ...] = ()
    lives: bool = False
    """Something is told of what it did."""

    @property
    def speculates(self) -> bool:
        return any(launches.speculates(args) for args in self.args)

    @property
    def told(self) -> str:
        """`DFLASH, 8 (server.log line 3)`."""
        args = self.args[0]
        on = launches.speculates(args)
        what = "not told" if on is None else "no speculation"
        if on:
            named = [args.get(name) for name in launches.DRAFTS]
            what = ", ".join(str(value) for value in named if value is not None) or "a drafter"
        return f"{what} ({launches.place(self.args)})"


def starts(case: Case) -> tuple[Start, ...]:
    """Every start, then what belongs to none of them; empty where all is of one server."""
    if any(process.pid for process in case.processes):
        return ()
    groups = launches.launches([args for args in case.arguments if not args.server])
    if len(groups) < 2:
        return ()
    owners: dict[int, list[Fact]] = {number: [] for number in range(-1, len(groups))}
    for fact in case.facts:
        if isinstance(fact, OF_A_START):
            owners[launches.owner(fact, groups)].append(fact)
    speculating = [any(launches.speculates(args) for args in group) for group in groups]
    found = []
    for number, group in enumerate(groups):
        shared = _shared(case, drafters=speculating[number] or not any(speculating))
        facts = (*shared, *group, *owners[number])
        found.append(Start(_case(case, facts), group, bool(owners[number])))
    if owners[-1]:
        found.append(Start(_case(case, (*_shared(case, drafters=True), *owners[-1])), lives=True))
    return tuple(found)


def named(start: Start, every: Sequence[Start], rulings: Sequence[Ruling]) -> list[Ruling]:
    """What is found of one start, saying of which.

    That one of several does not speculate is news only where it ran; beside one that does, it is what that is held against.
    """
    baseline = not start.lives or any(other.lives and other.speculates for other in every)
    found = []
    for ruling in rulings:
        verdict = ruling.verdict
        if verdict.name == "inconclusive" or (verdict.name == "not_speculating" and baseline):
            continue
        if start.args:
            first, *rest = verdict.reasons or ("",)
            verdict = dataclasses.replace(
                verdict, reasons=(f"of the start with {start.told}: {first}", *rest)
            )
        else:
            missing = ("which of the starts these figures are of", *verdict.missing)
            verdict = dataclasses.replace(
                verdict, confidence=weakest("medium", verdict.confidence), missing=missing
            )
        found.append(dataclasses.replace(ruling, verdict=verdict))
    return found


def without_arguments(case: Case) -> Case:
    """The case as far as it is of no particular start."""
    return dataclasses.replace(case, facts=tuple(f for f in case.facts if not isinstance(f, ServerArgs)))


def open_question(ruling: Ruling, every: Sequence[Start]) -> Ruling:
    """The ruling that abstains, saying first that there are several starts."""
    known = [start.told for start in every if start.args]
    verdict = ruling.verdict
    reason = f"{len(known)} starts with other arguments are told, each judged for itself: {'; '.join(known)}"
    missing = ("which of the starts is the one in question, and its own log", *verdict.missing)
    return dataclasses.replace(
        ruling, verdict=dataclasses.replace(verdict, reasons=(reason, *verdict.reasons), missing=missing[:8])
    )


def _shared(case: Case, *, drafters: bool) -> tuple[Fact, ...]:
    """What may be of any of them. A drafter is of one that speculates."""
    return tuple(
        fact
        for fact in case.facts
        if not isinstance(fact, (*OF_A_START, ServerArgs))
        and (drafters or not (isinstance(fact, ModelConfig) and fact.role == "drafter"))
    )


def _case(case: Case, facts: tuple[Fact, ...]) -> Case:
    return Case(facts, tuple(lints.judge(facts)), case.gpu_bandwidth)
