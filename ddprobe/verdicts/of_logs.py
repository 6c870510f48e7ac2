"""What the logs of a live host's servers support, where nothing was measured: as far as they say something, and no more.

They are judged by the rules for collected evidence. Silence is no verdict here: nobody asked for one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from ddprobe import lints
from ddprobe.facts import Acceptance, Claim, DecodeSeries, LogEvent, LogFile, ServerProcess
from ddprobe.model import Fact
from ddprobe.verdicts import collected
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.ruling import Ruling

_SAID = (Acceptance, Claim, DecodeSeries, LogEvent)
"""What comes of a log's lines."""


def judge(case: Case) -> list[Ruling]:
    """Every verdict that the logs support; none where they were not read or say too little."""
    logs = _by_server(case)
    if len(logs) < 2:
        return _supported(case) if logs else []
    return [
        _named(server, ruling)
        for server, own in logs.items()
        for ruling in _supported(_of(case, server, own))
    ]


def _by_server(case: Case) -> dict[str, list[Fact]]:
    """What the logs of each server say: facts stand behind their log's."""
    found: dict[str, list[Fact]] = {}
    own: list[Fact] = []
    for fact in case.facts:
        if isinstance(fact, LogFile):
            own = found.setdefault(fact.server, [])
        elif isinstance(fact, _SAID):
            own.append(fact)
    return {server: facts for server, facts in found.items() if facts}


def _supported(case: Case) -> list[Ruling]:
    return [ruling for ruling in collected.judge(case) if ruling.verdict.name != "inconclusive"]


def _of(case: Case, server: str, own: list[Fact]) -> Case:
    """One server's part of the case, with what the lints find in it alone."""
    facts = (*_about(case, server), *own)
    return Case(facts, tuple(lints.judge(facts)), case.gpu_bandwidth)


def _about(case: Case, server: str) -> Iterator[Fact]:
    for fact in case.facts:
        of = fact.name if isinstance(fact, ServerProcess) else getattr(fact, "server", "")
        if not isinstance(fact, (*_SAID, LogFile)) and of in ("", server):
            yield fact


def _named(server: str, ruling: Ruling) -> Ruling:
    """The ruling, saying whose log it is about."""
    first, *rest = ruling.verdict.reasons or ("",)
    told = f"{server or 'the log that was named'}: {first}"
    return dataclasses.replace(ruling, verdict=dataclasses.replace(ruling.verdict, reasons=(told, *rest)))
