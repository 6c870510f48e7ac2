"""A report on a terminal, and what goes on while a run is under way. Rich is imported where it is used.

Everything is drawn as text that Rich does not read for markup. Piped, nothing is coloured and no source line is
broken; on a terminal, long lines go on below, indented.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from ddprobe import render
from ddprobe.blocks import Block, Paragraph
from ddprobe.model import HostRecord, Outcome, Report
from ddprobe.render import FindingView, StepView, ledger, outline, verdictbox
from ddprobe.render import quiet as shortest
from ddprobe.render.drawing import MARKS, console_for, draw_block, hanging, plain, put, say
from ddprobe.render.progress import progress

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

__all__ = ["draw", "progress", "show"]

NARROW = 72
"""Below so many columns a finding's name has no column of its own."""


def show(
    report: Report,
    *,
    folder: Path | None,
    verbose: int = 0,
    quiet: bool = False,
    colour: bool | None = None,
    width: int | None = None,
    file: TextIO | None = None,
) -> None:
    """Draw the report: what each step shows, what was found, hosts in trouble, the hypotheses, the verdicts, where it is kept, how it ended.

    The verdicts come late, since that is where the eye is when the run is over. Of a long run, a step that measured
    nothing is one line, unless verbose. Quiet, only a line for each host that needs a look, and the last line.
    """
    console = console_for(colour, width, file)
    if report.lab:
        say(console, render.LAB, "bold magenta", whole_lines=quiet)
    if quiet:
        shortest.draw(console, report)
        _ending(console, report, None, whole_lines=True)
        return
    if report.lab:
        say(console, "")
    steps = render.steps(report)
    whole = steps if verbose else outline.whole(steps)
    _steps(console, steps, whole)
    _findings(console, report, steps, verbose)
    _hosts(console, report, verbose)
    ledger.draw(console, report, verbose)
    verdictbox.draw(console, report, verbose)
    _ending(console, report, folder)


def draw(
    blocks: Iterable[Block],
    *,
    colour: bool | None = None,
    width: int | None = None,
    file: TextIO | None = None,
    whole_lines: bool = False,
) -> None:
    """Draw blocks alone. `whole_lines`: what is a sentence stays on its line."""
    console = console_for(colour, width, file)
    for number, block in enumerate(blocks):
        if number:
            console.print()
        draw_block(console, block, whole_lines)


# --- steps -------------------------------------------------------------------------------------------------


def _steps(console: Console, views: Sequence[StepView], whole: Sequence[StepView]) -> None:
    """Draw the steps; of those that are not to be seen whole, a line each."""
    if len(views) == 1 and not views[0].blocks and not views[0].troubles:
        return  # what was found says it all
    brief = False
    for view in views:
        if view in whole:
            if brief:
                console.print()
            _step(console, view)
        else:
            _brief(console, view)
            _troubles(console, view)
        brief = view not in whole
    if brief:
        console.print()
    if len(whole) < len(views):
        say(console, outline.MORE, "dim")
        console.print()


def _step(console: Console, view: StepView) -> None:
    title = _title(view)
    statuses = {status for _, status, _ in view.troubles}
    if len(view.troubles) == len(view.hosts) and len(statuses) == 1:
        status = statuses.pop()
        title.append(f"  {status}", _sign(status)[1])
    _rule(console, title)
    for number, block in enumerate(view.blocks):
        if number and not (isinstance(block, Paragraph) and isinstance(view.blocks[number - 1], Paragraph)):
            console.print()
        draw_block(console, block)
    _troubles(console, view)
    console.print()


def _title(view: StepView) -> Text:
    from rich.text import Text

    folded = "" if len(view.hosts) == 1 else ": the same"
    hosts = f"  {render.line(render.together(view.hosts))}{folded}"
    return Text.assemble((render.line(view.id), "bold"), (hosts, "cyan"))


def _brief(console: Console, view: StepView) -> None:
    """What the step came to, and where its evidence lies, in a line."""
    statuses = list(dict.fromkeys(status for _, status, _ in view.troubles)) or ["done"]
    # What it found has signs of its own: that a step is done says nothing of it.
    mark, style = ("·", "dim") if statuses == ["done"] else _sign(statuses[0])
    title = _title(view)
    if statuses != ["done"]:
        title.append(f"  {render.together(statuses)}", style)
    if told := outline.gist(view):
        title.append(f": {told}")
    if where := outline.evidence(view):
        title.append(f"  ({where})", "dim")
    hanging(console, plain(mark, style), title)


def _troubles(console: Console, view: StepView) -> None:
    alike: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for host, status, reasons in view.troubles:
        alike.setdefault((status, reasons), []).append(host)
    for (status, reasons), hosts in alike.items():
        where = f"{render.line(render.together(hosts))}: " if len(view.hosts) > 1 else ""
        if where or reasons:
            said = render.line("; ".join(reasons) or status)
            hanging(console, plain(*_sign(status)), plain(where + said))


def _sign(status: str) -> tuple[str, str]:
    """(mark, style): what was left out on purpose is no question."""
    return ("-", "dim") if status == "skipped" else ("?", "bold magenta")


def _rule(console: Console, title: Text) -> None:
    from rich.text import Text

    rest = max(0, console.width - title.cell_len - 4)
    drawn = Text.assemble(("── ", "dim"), title, (" " + "─" * rest if rest > 2 else "", "dim"))
    drawn.no_wrap, drawn.overflow = True, "ellipsis"
    put(console, drawn)


# --- findings ----------------------------------------------------------------------------------------------


def _findings(console: Console, report: Report, steps: Sequence[StepView], verbose: int) -> None:
    views = render.findings(report)
    told = list(views)
    if not verbose:
        hidden = (Outcome.PASS, Outcome.SKIP)
        told = [v for v in views if v.finding.outcome not in hidden and not render.is_said_above(v, steps)]
    if told:
        say(console, "Findings", "bold")
    wide = min(14, max((len(render.line(view.finding.id)) for view in told), default=0))
    for view in told:
        _finding(console, view, render.hosts_beside(report, view), wide, verbose)
    passed = [view.finding.id for view in views if view.finding.outcome is Outcome.PASS]
    if passed and not verbose:
        ids = render.together([render.line(name) for name in dict.fromkeys(passed)], 8)
        hanging(console, plain("✓", "green"), plain(f"{len(passed)} passed: {ids} (-v shows them)", "dim"))
    if told or passed:
        console.print()


def _finding(console: Console, view: FindingView, hosts: tuple[str, ...], wide: int, verbose: int) -> None:
    from rich.text import Text

    finding = view.finding
    mark, style = MARKS[finding.outcome]
    identifier = render.line(finding.id)
    head, body = Text(mark, style), Text()
    if console.width < NARROW:
        body.append(identifier, style).append(" ")
    else:
        head.append(f" {identifier:<{wide}}", style)
    body.append(render.line(finding.subject), "bold").append(f": {render.line(finding.summary)}")
    if hosts:
        body.append(f"  [{render.line(render.together(hosts))}]", "cyan")
    if view.likewise and not verbose:
        body.append(f" ({render.likewise(view)})", "dim")
    if finding.advice:
        body.append(
            f"\n→ {render.line(finding.advice)}", "green" if finding.outcome is not Outcome.PASS else "dim"
        )
    if verbose:
        for other in view.likewise:
            body.append(f"\nin {render.line(other.step)}: {render.line(other.summary)}", "dim")
        for name, value in finding.measured:
            body.append(f"\n{render.line(name)} = {render.line(str(value))}", "dim")
        for cite in finding.cites:
            body.append(f"\nsee {render.line(cite.artefact)} {render.line(cite.at)}".rstrip(), "dim")
        if finding.source:
            body.append(f"\nsource: {render.line(finding.source)}", "dim")
    hanging(console, head, body)


# --- hosts and the end -------------------------------------------------------------------------------------


def _hosts(console: Console, report: Report, verbose: int) -> None:
    told = False
    for host in report.hosts:
        lines = list(_host(host, verbose))
        if lines:
            from rich.text import Text

            hanging(console, plain(host.name, "bold red" if host.error else "bold"), Text("\n").join(lines))
            told = True
    if told:
        console.print()


def _host(host: HostRecord, verbose: int) -> Iterator[Text]:
    if host.error:
        yield plain(render.host_error(host), "red")
    if host.advice:
        yield plain(f"→ {render.line(host.advice)}", "green")
    if host.survivors:
        yield plain(
            f"{host.survivors} of ddprobe's own processes had to be ended there: please report this", "red"
        )
    if host.connection is None:
        return
    for note in host.connection.notes:
        yield plain(render.line(note), "dim")
    if verbose:
        road = host.connection
        user = f"{road.user}@" if road.user else ""
        port = f":{road.port}" if road.port else ""
        yield plain(
            f"{road.transport} {user}{road.address}{port} {road.host_key} connected in {road.connect_seconds:.2f} s",
            "dim",
        )


def _ending(console: Console, report: Report, folder: Path | None, *, whole_lines: bool = False) -> None:
    from rich.text import Text

    if folder is not None:
        put(console, Text.assemble(("report  ", "dim"), render.clean(str(folder))), whole_lines=True)
    word = render.verdict_word(report)
    outcome = Outcome.FAIL if word == "no host reached" else Outcome.UNKNOWN
    if word == "done":
        outcome = Outcome.PASS
    elif word == report.outcome.label:
        outcome = report.outcome
    mark, style = MARKS[outcome]
    put(console, Text.assemble((f"{mark} {word}", style), (f"  {render.closing(report)}", "")), whole_lines)
