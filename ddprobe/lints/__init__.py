"""Lints: one subject a file, one function a lint: facts in, findings out."""

from __future__ import annotations

from collections.abc import Sequence

from ddprobe.model import Fact, Finding, Outcome


def judge(facts: Sequence[Fact]) -> list[Finding]:
    """What every lint finds in the facts of one step on one host: server by server, in the order of the ids."""
    from ddprobe.lints.cards import Cards
    from ddprobe.lints.measured import Measured
    from ddprobe.lints.served import put_together
    from ddprobe.lints.started import Started

    servers = put_together(facts)
    measured = Measured.of_facts(facts)
    started = Started.of_facts(facts)
    cards = Cards.of_facts(facts)
    if not servers and measured is None and started is None and cards is None:
        return []
    from ddprobe.lints.table import CARDS, LINTS, METRICS, STARTUP

    found = [lint.look(served) for served in servers for lint in LINTS]
    if started is not None:
        seen = [lint.look(started) for lint in STARTUP]
        # Of several servers, a log does not say whose it is.
        found = _with_seen(found, seen) if len(servers) < 2 else [*found, *seen]
    if measured is not None:
        found += [lint.look(measured) for lint in METRICS]
    if cards is not None:
        found += [lint.look(cards) for lint in CARDS]
    return [finding for finding in found if finding is not None]


def _with_seen(concluded: Sequence[Finding | None], seen: Sequence[Finding | None]) -> list[Finding | None]:
    """What logs show, in place of what files and arguments let one expect; a fault that both find is told as concluded."""
    faults = {finding.id for finding in concluded if finding is not None and finding.outcome is Outcome.FAIL}
    shown = [finding for finding in seen if finding is not None and finding.id not in faults]
    ids = {finding.id for finding in shown}
    return [*(f for f in concluded if f is not None and f.id not in ids), *shown]
