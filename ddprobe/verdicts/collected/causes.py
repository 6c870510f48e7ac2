"""Findings that may be the cause of what the numbers show: errors on the drafter's configuration, weights and start."""

from __future__ import annotations

from ddprobe.model import Cite, Finding, Outcome
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.long_context_bug import POSITION_LINTS, WINDOW_LINTS

OF_DRAFTER = ("DC", "ST")
"""Lints on the drafter itself, and on how it was loaded, begin so."""
OF_POSITION = (*POSITION_LINTS, "DC36", "DC39", "DC48", "DC49", "DC50", "SA16")
OF_WINDOW = (*WINDOW_LINTS, "DC24", "DC25", "SA04", "SA05", "ST03")
OF_LENGTH = (*OF_POSITION, *OF_WINDOW)
"""Those that a short context does not show."""
OF_LAUNCH = ("DC37", "DC40", "DC41", "DC42", "DC44")
"""Those that keep a server from starting, or cost memory: none of them leaves a running drafter broken."""


def wiring(case: Case) -> tuple[Finding, ...]:
    """Errors that leave a drafter broken at every length."""
    return tuple(finding for finding in _errors(case) if finding.id not in OF_LENGTH)


def length(case: Case) -> tuple[Finding, ...]:
    """Errors that show at a length, those on positions and windows first."""
    return tuple(sorted(_errors(case), key=lambda finding: finding.id not in OF_LENGTH))


def _errors(case: Case) -> tuple[Finding, ...]:
    return tuple(
        finding
        for finding in case.findings
        if finding.outcome is Outcome.FAIL
        and finding.id not in OF_LAUNCH
        and (finding.id.startswith(OF_DRAFTER) or finding.id in OF_LENGTH)
    )


def failed(case: Case) -> tuple[Finding, ...]:
    """Every error: those on the drafter first, then whatever else has to be put right before one measures again."""
    first = length(case)
    return (*first, *(f for f in case.findings if f.outcome is Outcome.FAIL and f not in first))


def named(findings: tuple[Finding, ...]) -> tuple[str, ...]:
    return tuple(f"{finding.id}: {finding.summary}" for finding in findings[:4])


def cites(findings: tuple[Finding, ...]) -> tuple[Cite, ...]:
    return tuple(cite for finding in findings for cite in finding.cites)


def advice(findings: tuple[Finding, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(finding.advice for finding in findings if finding.advice))
