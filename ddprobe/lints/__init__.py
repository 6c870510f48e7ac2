"""Lints: one subject a file, one function a lint: facts in, findings out."""

from __future__ import annotations

from collections.abc import Sequence

from ddprobe.model import Fact, Finding


def judge(facts: Sequence[Fact]) -> list[Finding]:
    """What every lint finds in the facts of one step on one host: server by server, in the order of the ids."""
    from ddprobe.lints.served import put_together

    servers = put_together(facts)
    if not servers:
        return []
    from ddprobe.lints.table import LINTS

    return [finding for served in servers for lint in LINTS if (finding := lint.look(served)) is not None]
