"""What evidence states of speculation and settles nothing: too little of it, cut off, or no figure at all."""

from __future__ import annotations

from collections.abc import Iterator

from ddprobe.facts import Claim
from ddprobe.parsing import acceptance
from ddprobe.verdicts import thresholds, words
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.collected import figures

MOST = 3
"""Statements that are named."""
CHECKS = {
    "accept length": acceptance.length,
    "commit length": acceptance.length,
    "accept rate": acceptance.share,
}


def told(case: Case) -> list[str]:
    """A sentence each: arguments, lines without a figure, lines and statements whose figure is none."""
    return [*_arguments(case), *_lines(case), *_statements(case)]


def cut(case: Case) -> bool:
    """Of the server's arguments a part is missing, and it may be the one on speculation."""
    served = figures.server(case)
    if served is None or served.algorithm or served.says_off or served.arguments_known:
        return False
    return any(args.cut for args in case.arguments)


def _arguments(case: Case) -> Iterator[str]:
    served = figures.server(case)
    if served is None:
        return
    if served.algorithm and not (case.logs or figures.lines(case) or figures.figures(case)):
        yield f"the server's arguments name speculation ({served.algorithm}); what comes of it, nothing here shows"
    if cut(case):
        yield "the server's arguments are cut off, or told in part: what they say of speculation is not there"
    elif served.given is not None and not served.says_off and not served.algorithm:
        yield (
            "the command line names no speculation: if it is whole, this server does not speculate; nothing else here "
            "shows it"
        )


def _lines(case: Case) -> Iterator[str]:
    every = sum(log.lines for log in case.logs)
    unreadable = sum(log.unreadable_lines for log in case.logs)
    off = sum(log.off_lines for log in case.logs)
    if unreadable:
        yield (
            f"{unreadable} of {words.count(every, 'decode line')} state an acceptance that is no number, or none that "
            "can be: nothing follows from it"
        )
    if off and off == every and off < thresholds.IDLE_LINES:
        yield (
            f"{words.count(off, 'decode line')} without an acceptance figure: from {thresholds.IDLE_LINES} on they say "
            "something"
        )


def _statements(case: Case) -> Iterator[str]:
    known = [claim for claim in case.claims if claim.what in CHECKS]
    cannot = [claim for claim in known if CHECKS[claim.what](claim.value) is None]
    for claim in cannot[:MOST]:
        yield f"{_said(claim)}: that cannot be"
    if figures.figures(case) or case.logs:
        return
    for claim in [claim for claim in known if claim not in cannot][: MOST - len(cannot[:MOST])]:
        yield f"{_said(claim)}" + (
            f" ({words.count(claim.samples, 'step')})" if claim.samples else ": nobody says of how many steps"
        )


def _said(claim: Claim) -> str:
    return f"{claim.origin} states {claim.what} {words.short(claim.value)}"
