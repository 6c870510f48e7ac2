"""The hypotheses on a terminal: a line each, with what supports or refutes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ddprobe import render
from ddprobe.model import Report
from ddprobe.render.drawing import hanging, plain, say

if TYPE_CHECKING:
    from rich.console import Console

MARKS = {"supported": ("●", "bold red"), "refuted": ("○", "green"), "untested": ("·", "dim")}


def draw(console: Console, report: Report, verbose: int) -> None:
    """Draw each ledger. Unless verbose, what nobody tested is one line."""
    from rich.text import Text

    for host, ledger in render.ledgers(report):
        several = len(report.hosts) > 1 and host
        say(console, f"Hypotheses on {render.line(host)}" if several else "Hypotheses", "bold")
        told = [one for one in ledger if verbose or one.status != "untested"]
        wide = max((len(one.status) for one in told), default=0)
        for one in told:
            mark, style = MARKS.get(one.status, MARKS["untested"])
            body = Text(f"{render.line(one.text)}")
            if one.evidence:
                body.append(f": {render.line(one.evidence)}", "dim")
            hanging(console, Text(f"{mark} {one.status:<{wide}}", style), body)
        rest = [render.line(one.text) for one in ledger if one not in told]
        if rest:
            hanging(console, plain("·", "dim"), plain(f"untested: {'; '.join(rest)}", "dim"))
        console.print()
