"""Is nothing drafted at all, by arguments, start-up lines and counters?"""

from __future__ import annotations

from ddprobe.evidence.counters import NO_SERIES
from ddprobe.facts import CommitPoint, ServerArgs
from ddprobe.lints.served import Served
from ddprobe.model import Fact, Outcome, Verdict
from ddprobe.verdicts import thresholds, words
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.collected import causes, figures
from ddprobe.verdicts.not_speculating import FLAGS
from ddprobe.verdicts.ruling import Ruling

UNUSED = ("SA17", "EN04", "ST05")
"""Lints on a drafter that is given and not used."""


def judge(case: Case) -> Ruling | None:
    """The server says that it does not speculate, or every source counts no draft; and none shows one.

    Drafts that are all rejected are drafts: a commit of 1.00 alone says nothing here.
    """
    if _drafted(case):
        return None
    served = figures.server(case)
    unused = case.found(Outcome.FAIL, *UNUSED)
    idle, staged = _idle(case), _staged(case)
    stated, told = _off(served)
    # Flags that a command line does not hold are half of it: what was pasted may be half of the command line.
    off = bool(unused) or stated or bool(told and (idle or staged))
    if not off and not idle:
        return None
    engine = served.engine if served is not None else ""
    reasons = [*told, *idle, *(f"{finding.id}: {finding.summary}" for finding in unused), *staged]
    facts: list[Fact] = [*case.every(ServerArgs), *case.every(CommitPoint), *case.processes, *case.logs]
    return Ruling(
        Verdict(
            name="not_speculating",
            kind="off" if off else "never_drafts",
            confidence=_sure(case, served, off and bool(idle or staged or unused)),
            reasons=tuple(reasons),
            cites=words.cites(*facts) + causes.cites(unused),
            ruled_out=("a dead drafter: its drafts would be counted, and rejected",) if idle else (),
            missing=() if idle else ("counters or log lines of the drafts: are there any?",),
            next=(
                *causes.advice(unused),
                f"check {FLAGS.get(engine, 'the flags that name a drafter')} on the server's command line, and which names "
                "of variables this version reads",
                "the start-up log tells whether the drafter was loaded, or why it was refused",
            ),
        ),
        explains=float(figures.ceiling(case) or 1) if staged or idle or unused else 1.0,
    )


def _drafted(case: Case) -> bool:
    """Whether any source shows a draft, right or wrong."""
    if any(point.drafted_steps or _more_than_one(point) for point in case.every(CommitPoint)):
        return True
    stated = [figure for figure in case.stated if figure.commit is not None or figure.rate is not None]
    if any(figure.steps != 0 for figure in stated):
        return True
    # Something was drafted, too, where a line states a figure that nobody can read.
    return any(log.unreadable_lines or figures.speaking(log) for log in case.logs)


def _more_than_one(point: CommitPoint) -> bool:
    """Whether more than one token comes out of a step, where nobody says of how many drafts."""
    return point.commit_mean is not None and point.commit_mean > 1 + thresholds.ROUNDED


def _off(served: Served | None) -> tuple[bool, list[str]]:
    """Whether the server itself says that it does not speculate, and what its arguments tell of that."""
    if served is None or served.algorithm:
        # Newer llama-servers draft only with --spec-type, older ones with -md alone: there counters say which it is.
        return False, []
    if served.says_off:
        return True, ["the server's arguments name no speculation: it decodes one token a step"]
    if served.given is None or served.resolved is not None or _mentions(served.given):
        return False, []
    return False, ["the command line names no speculation"]


def _mentions(given: ServerArgs) -> bool:
    """Whether an argument is on drafts: one that was cut off, or that this version of ddprobe does not know."""
    return any(
        value not in (None, False, "") and ("spec" in name or "draft" in name) for name, value in given.values
    )


def _sure(case: Case, served: Served | None, twice: bool) -> str:
    """`twice`: the arguments say so, and something beside them."""
    if twice:
        return "high"
    told = served is not None and (served.algorithm or served.says_off)
    asked = case.every(CommitPoint) or any(f.steps == 0 and f.definition != NO_SERIES for f in case.stated)
    # Lines and series that are missing may have been left out by whoever pasted the rest.
    return "medium" if told or asked else "low"


def _idle(case: Case) -> list[str]:
    """Sources that would show a draft, and show none."""
    points = [p for p in case.every(CommitPoint) if p.purpose in ("point", "cold")]
    told = []
    if points and all(point.drafted_steps == 0 for point in points):
        told.append(f"no token was drafted in any of {words.count(len(points), 'point')}")
    empty = [log for log in case.logs if log.lines and log.off_lines == log.lines]
    lines = sum(log.lines for log in empty)
    if lines >= thresholds.IDLE_LINES and len(empty) == len(case.logs):
        told.append(f"none of {words.count(lines, 'decode line')} has an acceptance figure")
    counted = [figure for figure in case.stated if figure.steps == 0]
    if counted and len(counted) == len(case.stated):
        told.append(f"{counted[0].origin} counts no draft")
    return told


def _staged(case: Case) -> list[str]:
    """That somebody meant to speculate: a drafter named where this server does not read it."""
    names = [
        name
        for process in case.processes
        for name, value in process.environment
        if value and ("SPECULATIVE" in name or "DRAFT" in name)
    ]
    told = [f"a drafter is meant all the same: {words.listed(names[:3])} set"] if names else []
    told += [
        f"{event.kind}: {event.text[:120]}"
        for event in case.events
        if event.kind in ("draft_unused", "speculation_off")
    ][:2]
    served = figures.server(case)
    if served is not None and served.drafter is not None and not served.algorithm:
        told.append("a drafter's configuration lies beside it, unused")
    return told
