"""Lints: one subject a file, one function a lint: facts in, findings out."""

from __future__ import annotations

from collections.abc import Sequence

from ddprobe.model import Fact, Finding


def judge(facts: Sequence[Fact]) -> list[Finding]:
    """What every lint finds in the facts of one step on one host: server by server, in the order of the ids."""
    from ddprobe.lints.measured import Measured
    from ddprobe.lints.served import put_together

    servers = put_together(facts)
    measured = Measured.of_facts(facts)
    if not servers and measured is None:
        return []
    from ddprobe.lints.table import LINTS, METRICS

    found = [lint.look(served) for served in servers for lint in LINTS]
    if measured is not None:
        found += [lint.look(measured) for lint in METRICS]
    return [finding for finding in found if finding is not None]
