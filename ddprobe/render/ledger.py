"""The hypotheses on a terminal: a line each, with what supports or refutes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ddprobe import render
from ddprobe.model import Report, summed
from ddprobe.render.drawing import hanging, plain, say

if TYPE_CHECKING:
    from rich.console import Console

MARKS = {"supported": ("●", "bold red"), "refuted": ("○", "green"), "untested": ("·", "dim")}


MOST = 4
"""Hosts whose ledgers are all shown; of more, unless verbose, only the sum."""


def draw(console: Console, report: Report, verbose: int) -> None:
    """Draw each ledger. Unless verbose, what nobody tested is one line, and evidence its first sentence."""
    from rich.text import Text

    ledgers = render.ledgers(report)
    if len(ledgers) > 1:
        _summed(console, report, len(ledgers))
    for host, ledger in ledgers if verbose or len(ledgers) <= MOST else ():
        several = len(report.hosts) > 1 and host
        say(console, f"Hypotheses on {render.line(host)}" if several else "Hypotheses", "bold")
        told = [one for one in ledger if verbose or one.status != "untested"]
        wide = max((len(one.status) for one in told), default=0)
        for one in told:
            mark, style = MARKS.get(one.status, MARKS["untested"])
            body = Text(f"{render.line(one.text)}")
            if one.evidence:
                body.append(f": {render.line(one.evidence) if verbose else render.gist(one.evidence)}", "dim")
            hanging(console, Text(f"{mark} {one.status:<{wide}}", style), body)
        rest = [render.line(one.text) for one in ledger if one not in told]
        if rest:
            hanging(console, plain("·", "dim"), plain(f"untested: {'; '.join(rest)}", "dim"))
        console.print()


def _summed(console: Console, report: Report, hosts: int) -> None:
    """A line each: on how many hosts it is supported, refuted and untested, and on which the fewer."""
    from rich.text import Text

    say(console, f"Hypotheses on {hosts} hosts", "bold")
    for one in summed(report.hypotheses):
        status = next((s for s in ("supported", "refuted") if getattr(one, s)), "untested")
        mark, style = MARKS[status]
        body = Text(render.line(one.text)).append(f": {render.counted(one)}", "dim")
        hanging(console, Text(mark, style), body)
    console.print()
