"""A report on a terminal, and what goes on while a run is under way. Rich is imported where it is used.

Everything is drawn as text that Rich does not read for markup. Piped, nothing is coloured and no source line is
broken; on a terminal, long lines go on below, indented.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from ddprobe import render
from ddprobe.blocks import Block, Code, Heading, Pairs, Paragraph, Table
from ddprobe.model import Finding, HostRecord, Outcome, Report
from ddprobe.render.progress import progress

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text

__all__ = ["draw", "progress", "show"]

PIPED_WIDTH = 120
MAX_CELL = 2000
MAX_LINE = 4000
MAX_HIGHLIGHTED = 200_000

_TONES = {"plain": "", "dim": "dim", "good": "green", "warn": "yellow", "bad": "red"}
_MARKS = {
    Outcome.FAIL: ("✗", "bold red"),
    Outcome.WARN: ("!", "bold yellow"),
    Outcome.UNKNOWN: ("?", "bold magenta"),
    Outcome.INFO: ("·", "cyan"),
    Outcome.SKIP: ("-", "dim"),
    Outcome.PASS: ("✓", "green"),
}
_NUMBER = re.compile(r"[-+±]?\d[\d,._]*(?: ?[%A-Za-zµ/]{1,6})?\Z|[-–—]?\Z")


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
    """Draw the report: what each step shows, what was found, hosts in trouble, where it is kept, how it ended.

    Quiet, only what needs a look and the last line.
    """
    console = _console(colour, width, file)
    if report.lab:
        _print(console, render.LAB, "bold magenta")
        _print(console, "")
    if not quiet:
        _steps(console, report)
    _findings(console, report, verbose, quiet)
    _hosts(console, report, verbose, quiet)
    _ending(console, report, folder, quiet)


def draw(
    blocks: Iterable[Block],
    *,
    colour: bool | None = None,
    width: int | None = None,
    file: TextIO | None = None,
) -> None:
    """Draw blocks alone."""
    console = _console(colour, width, file)
    for number, block in enumerate(blocks):
        if number:
            console.print()
        _block(console, block)


def _console(colour: bool | None, width: int | None, file: TextIO | None) -> Console:
    from rich.console import Console

    out = file or sys.stdout
    tty = out.isatty()
    if colour is None:
        colour = tty and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    if width is None and not tty:
        columns = os.environ.get("COLUMNS", "")
        width = int(columns) if columns.isdigit() and int(columns) else PIPED_WIDTH
    if "utf" not in (getattr(out, "encoding", None) or "utf-8").lower() and hasattr(out, "reconfigure"):
        out.reconfigure(errors="replace")
    return Console(
        file=out,
        width=width,
        color_system=None if not colour else "auto" if tty else "standard",
        force_terminal=tty or colour,
        no_color=not colour,
        markup=False,
        highlight=False,
        emoji=False,
        legacy_windows=False,
    )


def _text(text: str, style: str = "") -> Text:
    from rich.text import Text

    return Text(render.clean(text), style=style)


def _print(console: Console, text: str, style: str = "") -> None:
    _put(console, _text(text, style))


def _put(console: Console, drawn: RenderableType, whole_lines: bool = False) -> None:
    """Print it; piped, without the blanks that fill a grid's lines."""
    if console.is_terminal:
        console.print(drawn, soft_wrap=whole_lines)
        return
    with console.capture() as captured:
        console.print(drawn, soft_wrap=whole_lines)
    console.file.write("".join(f"{text.rstrip()}\n" for text in captured.get().splitlines()))


# --- steps -------------------------------------------------------------------------------------------------


def _steps(console: Console, report: Report) -> None:
    views = render.steps(report)
    for view in views:
        from rich.text import Text

        folded = "" if len(view.hosts) == 1 else ": the same"
        title = Text.assemble(
            (render.line(view.id), "bold"), (f"  {render.line(render.together(view.hosts))}{folded}", "cyan")
        )
        statuses = {status for _, status, _ in view.troubles}
        if len(view.troubles) == len(view.hosts) and len(statuses) == 1:
            title.append(f"  {statuses.pop()}", "bold magenta")
        _rule(console, title)
        for number, block in enumerate(view.blocks):
            if number and not (
                isinstance(block, Paragraph) and isinstance(view.blocks[number - 1], Paragraph)
            ):
                console.print()
            _block(console, block)
        for host, status, reasons in view.troubles:
            where = f"{render.line(host)}: " if len(view.hosts) > 1 else ""
            if where or reasons:
                said = render.line("; ".join(reasons) or status)
                _hanging(console, _text("?", "bold magenta"), _text(where + said))
        console.print()


def _rule(console: Console, title: Text) -> None:
    from rich.text import Text

    rest = max(0, console.width - title.cell_len - 4)
    drawn = Text.assemble(("── ", "dim"), title, (" " + "─" * rest if rest > 2 else "", "dim"))
    drawn.no_wrap, drawn.overflow = True, "ellipsis"
    _put(console, drawn)


def _block(console: Console, block: Block) -> None:
    if isinstance(block, Heading):
        _print(console, block.text, "bold")
    elif isinstance(block, Paragraph):
        _print(console, block.text, _TONES.get(block.tone, ""))
    elif isinstance(block, Pairs):
        _put(console, _pairs(console, block))
    elif isinstance(block, Table):
        _table(console, block)
    else:
        _code(console, block)


def _pairs(console: Console, pairs: Pairs) -> RenderableType:
    from rich.console import Group
    from rich.table import Table as Grid

    grid = Grid.grid(padding=(0, 2, 0, 0))
    widest = max((len(name) for name, _ in pairs.rows), default=0)
    grid.add_column(no_wrap=widest <= console.width // 3, style="dim", overflow="fold")
    grid.add_column(overflow="fold")
    for name, value in pairs.rows:
        grid.add_row(_cell(name), _cell(value))
    return Group(_text(pairs.title, "bold"), grid) if pairs.title else grid


def _table(console: Console, table: Table) -> None:
    from rich import box
    from rich.table import Table as Grid

    if table.title:
        _print(console, table.title, "bold")
    drawn = Grid(
        box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False, show_edge=False, padding=(0, 2, 0, 0)
    )
    if table.emphasis:
        drawn.add_column("", width=1)
    columns = list(zip(*(_filled(row, len(table.columns)) for row in table.rows), strict=True))
    for number, name in enumerate(table.columns):
        cells = columns[number] if columns else ()
        longest = max((len(part) for text in (name, *cells) for part in text.split("\n")), default=0)
        drawn.add_column(
            _text(name),
            justify="right" if cells and all(map(_NUMBER.match, cells)) and any(cells) else "left",
            no_wrap=longest <= (30 if number == 0 else 14),
            overflow="fold",
        )
    for number, row in enumerate(table.rows):
        marked = number in table.emphasis
        cells = tuple(_cell(text) for text in _filled(row, len(table.columns)))
        drawn.add_row(
            *((_text("▸" if marked else "", "bold yellow"),) if table.emphasis else ()),
            *cells,
            style="yellow" if marked else "",
        )
    _put(console, drawn)
    if table.caption:
        _print(console, table.caption, "dim")


def _filled(row: tuple[str, ...], length: int) -> tuple[str, ...]:
    return (*row, *("" for _ in range(length - len(row))))[:length]


def _cell(text: str) -> Text:
    if len(text) > MAX_CELL:
        text = f"{text[:MAX_CELL]} … {len(text) - MAX_CELL} more characters"
    return _text(text)


# --- source ------------------------------------------------------------------------------------------------


def _code(console: Console, code: Code) -> None:
    from rich.text import Text

    title = Text.assemble((render.line(code.title or code.path), "bold"))
    if code.note:
        title.append(f"  {render.line(code.note)}", "dim")
    _put(console, title)
    if not code.lines:
        return
    wide = len(str(max(number for number, _ in code.lines)))
    room = console.width - wide - 3 if console.is_terminal else None
    shown: list[Text] = []
    last = None
    coloured = _highlighted(console, code)
    for number, _ in code.lines:
        if last is not None and number != last + 1:
            shown.append(Text(f"{'⋮':>{wide}}", "dim"))
        last = number
        marked = number in code.marked
        gutter = Text.assemble(
            (f"{number:>{wide}}", "bold yellow" if marked else "dim"),
            (" ▸ " if marked else " │ ", "yellow" if marked else "dim"),
        )
        source = next(coloured)
        for piece in _broken(console, source, room) if room and source.cell_len > room else [source]:
            shown.append(gutter + piece)
            gutter = Text(" " * wide + " · ", "dim")
    _put(console, Text("\n").join(shown), whole_lines=True)


def _broken(console: Console, source: Text, room: int) -> list[Text]:
    """A line too long for the screen in pieces; those below go in a little further than the first."""
    indent = min(len(source.plain) - len(source.plain.lstrip()), room // 2)
    first, rest = source[:indent], source[indent:]
    pieces = list(rest.wrap(console, max(8, room - indent - 4), overflow="fold")) or [rest]
    return [first + pieces[0], *(_text(" " * (indent + 4)) + piece for piece in pieces[1:])]


def _highlighted(console: Console, code: Code) -> Iterator[Text]:
    """The lines, coloured by their language where colour is wanted and the text is such that it is cheap."""
    from rich.text import Text

    lines = [_source_line(text) for _, text in code.lines]
    if console.no_color or sum(map(len, lines)) > MAX_HIGHLIGHTED:
        yield from map(Text, lines)
        return
    from rich.syntax import Syntax

    syntax = Syntax("", code.language, theme="ansi_dark", background_color="default")
    first = 0
    for number in range(1, len(lines) + 1):
        if number == len(lines) or code.lines[number][0] != code.lines[number - 1][0] + 1:
            plain = lines[first:number]
            text = syntax.highlight("\n".join(plain))
            text.no_wrap = None
            found = list(text.split("\n", allow_blank=True))[: len(plain)]
            same = [line.plain for line in found] == plain
            yield from found if same else map(Text, plain)
            first = number


def _source_line(text: str) -> str:
    shown = render.clean(text).replace("\n", "␊").expandtabs(8)
    return (
        shown if len(shown) <= MAX_LINE else f"{shown[:MAX_LINE]} … {len(shown) - MAX_LINE} more characters"
    )


# --- findings ----------------------------------------------------------------------------------------------


def _findings(console: Console, report: Report, verbose: int, quiet: bool) -> None:
    views = render.findings(report)
    hidden = () if verbose else (Outcome.PASS, Outcome.SKIP)
    told = [view for view in views if view.finding.outcome not in hidden]
    if quiet:
        told = [
            view for view in told if view.finding.outcome in (Outcome.FAIL, Outcome.WARN, Outcome.UNKNOWN)
        ]
    if told and not quiet:
        _print(console, "Findings", "bold")
    wide = min(14, max((len(render.line(view.finding.id)) for view in told), default=0))
    for view in told:
        hosts = view.hosts if len(report.hosts) > 1 else ()
        _finding(console, view.finding, hosts, wide, verbose)
    passed = [view.finding.id for view in views if view.finding.outcome is Outcome.PASS]
    if passed and not verbose and not quiet:
        ids = render.together([render.line(name) for name in dict.fromkeys(passed)], 8)
        _hanging(console, _text("✓", "green"), _text(f"{len(passed)} passed: {ids} (-v shows them)", "dim"))
    if (told or passed) and not quiet:
        console.print()


def _finding(console: Console, finding: Finding, hosts: tuple[str, ...], wide: int, verbose: int) -> None:
    from rich.text import Text

    mark, style = _MARKS[finding.outcome]
    head = Text.assemble((mark, style), " ", (f"{render.line(finding.id):<{wide}}", style))
    body = Text.assemble((render.line(finding.subject), "bold"), ": ", render.line(finding.summary))
    if hosts:
        body.append(f"  [{render.line(render.together(hosts))}]", "cyan")
    if finding.advice:
        body.append(
            f"\n→ {render.line(finding.advice)}", "green" if finding.outcome is not Outcome.PASS else "dim"
        )
    if verbose:
        for name, value in finding.measured:
            body.append(f"\n{render.line(name)} = {render.line(str(value))}", "dim")
        for cite in finding.cites:
            body.append(f"\nsee {render.line(cite.artefact)} {render.line(cite.at)}".rstrip(), "dim")
        if finding.source:
            body.append(f"\nsource: {render.line(finding.source)}", "dim")
    _hanging(console, head, body)


def _hanging(console: Console, head: Text, body: Text) -> None:
    """A head, and beside it a text whose further lines begin where its first does."""
    from rich.table import Table as Grid

    grid = Grid.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(head, body)
    _put(console, grid)


# --- hosts and the end -------------------------------------------------------------------------------------


def _hosts(console: Console, report: Report, verbose: int, quiet: bool) -> None:
    told = False
    for host in report.hosts:
        lines = list(_host(host, verbose, quiet))
        if lines:
            from rich.text import Text

            _hanging(console, _text(host.name, "bold red" if host.error else "bold"), Text("\n").join(lines))
            told = True
    if told and not quiet:
        console.print()


def _host(host: HostRecord, verbose: int, quiet: bool) -> Iterator[Text]:
    if host.error:
        yield _text(render.line(host.error.removeprefix(f"{host.name}: ")), "red")
    if host.advice:
        yield _text(f"→ {render.line(host.advice)}", "green")
    if host.survivors:
        yield _text(
            f"{host.survivors} of ddprobe's own processes had to be ended there: please report this", "red"
        )
    if host.connection is None or quiet:
        return
    for note in host.connection.notes:
        yield _text(render.line(note), "dim")
    if verbose:
        road = host.connection
        user = f"{road.user}@" if road.user else ""
        port = f":{road.port}" if road.port else ""
        yield _text(
            f"{road.transport} {user}{road.address}{port} {road.host_key} connected in {road.connect_seconds:.2f} s",
            "dim",
        )


def _ending(console: Console, report: Report, folder: Path | None, quiet: bool) -> None:
    from rich.text import Text

    if folder is not None and not quiet:
        _put(console, Text.assemble(("report  ", "dim"), render.clean(str(folder))), whole_lines=True)
    word = render.verdict_word(report)
    outcome = Outcome.FAIL if word == "no host reached" else Outcome.UNKNOWN
    if word == "done":
        outcome = Outcome.PASS
    elif word == report.outcome.label:
        outcome = report.outcome
    mark, style = _MARKS[outcome]
    _put(console, Text.assemble((f"{mark} {word}", style), (f"  {render.closing(report)}", "")))
