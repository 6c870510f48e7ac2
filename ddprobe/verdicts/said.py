"""What people say of several lengths: no measurement, and a reason to look."""

from __future__ import annotations

from ddprobe.evidence.claims import STATEMENT
from ddprobe.facts import Claim
from ddprobe.model import Cite
from ddprobe.verdicts import words
from ddprobe.verdicts.case import Case


def at_lengths(case: Case, what: str) -> tuple[str, tuple[Cite, ...]]:
    """The first and the last figure of that name that is said of a length; nothing where fewer than two are."""
    told = [
        claim
        for claim in case.every(Claim)
        if claim.what == what and claim.origin == STATEMENT and claim.window.startswith("at ")
    ]
    if len(told) < 2:
        return "", ()
    first, last = told[0], told[-1]
    said = f"{what} {_number(first.value)} {first.window} and {_number(last.value)} {last.window}"
    return f"{STATEMENT}: {said}; nothing measured shows it", words.cites(first, last)


def _number(value: float) -> str:
    return f"{value:g}"
