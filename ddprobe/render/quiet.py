"""A report in as few lines as will do (`-q`): one for each host that needs a look, none for the others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ddprobe import render
from ddprobe.model import COLLECTED, HostRecord, Outcome, Report, Verdict
from ddprobe.render import FindingView
from ddprobe.render.drawing import MARKS, plain, put

if TYPE_CHECKING:
    from rich.console import Console

NEED_A_LOOK = (Outcome.FAIL, Outcome.WARN, Outcome.UNKNOWN)


def draw(console: Console, report: Report) -> None:
    """Draw the hosts in their order; what belongs to none of them comes last."""
    from rich.text import Text

    views = [view for view in render.findings(report) if view.finding.outcome in NEED_A_LOOK]
    verdicts = [verdict for verdict in report.verdicts if verdict.outcome in NEED_A_LOOK]
    known = [host.name for host in report.hosts]
    rest = [name for view in views for name in view.hosts] + [verdict.host for verdict in verdicts]
    for name in dict.fromkeys([*known, *rest]):
        record = next((host for host in report.hosts if host.name == name), HostRecord(name=name))
        mine = [verdict for verdict in verdicts if verdict.host == name]
        found = [view for view in views if name in view.hosts]
        told = list(_told(record, mine, found))
        if not told:
            continue
        mark, style = MARKS[_worst(record, mine, found)]
        host = "" if name == COLLECTED else render.line(name)
        line = Text.assemble((f"{mark} ", style), (f"{host}  " if host else "", "bold"))
        put(console, line.append_text(plain(render.line("; ".join(told)))), whole_lines=True)


def _told(host: HostRecord, verdicts: list[Verdict], views: list[FindingView]) -> Iterator[str]:
    """Why it could not be reached; else the first verdict, or the worst finding; the others by name."""
    if host.error:
        yield render.host_error(host)
    if host.survivors:
        yield f"{host.survivors} of ddprobe's own processes had to be ended there: please report this"
    for verdict in verdicts[:1]:
        yield f"{render.verdict_title(verdict)}{render.confidence(verdict, ', ')}{_gist(verdict)}"
    if verdicts[1:]:
        yield f"also {render.together([render.verdict_title(verdict) for verdict in verdicts[1:]])}"
    if views and not (verdicts or host.error):
        first, *views = views
        one = first.finding
        yield f"{one.id} {one.subject}: {one.summary}"
    if views:
        ids = list(dict.fromkeys(view.finding.id for view in views))
        yield f"{render.tally(views)}: {render.together(ids)}"


def _gist(verdict: Verdict) -> str:
    """The first reason; of what is open, what is missing."""
    missing = tuple(f"missing: {sentence}" for sentence in verdict.missing)
    unsettled = verdict.outcome is Outcome.UNKNOWN
    told = (*missing, *verdict.reasons) if unsettled else (*verdict.reasons, *missing)
    return f": {told[0]}" if told else ""


def _worst(host: HostRecord, verdicts: list[Verdict], views: list[FindingView]) -> Outcome:
    judged = [verdict.outcome for verdict in verdicts] + [view.finding.outcome for view in views]
    return Outcome.FAIL if host.error or host.survivors else Outcome.worst(judged)
