"""Blocks drawn on a terminal, or as plain text into a pipe."""

from __future__ import annotations

import codecs
import functools
import os
import re
import sys
from collections.abc import Iterator
from itertools import repeat
from typing import TYPE_CHECKING, TextIO

from ddprobe import render
from ddprobe.blocks import Block, Code, Heading, Pairs, Paragraph, Plot, Table
from ddprobe.model import Outcome
from ddprobe.render import plotting
from ddprobe.render.wrapping import fit, widths

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text

PIPED_WIDTH = 120
MAX_CELL = 2000
MAX_LINE = 4000
MAX_HIGHLIGHTED = 200_000
MAX_PLOT = 100

_SERIES = ("cyan", "magenta", "green", "blue", "red", "bold")
_TONES = {"plain": "", "dim": "dim", "good": "green", "warn": "yellow", "bad": "red"}
MARKS = {
    Outcome.FAIL: ("✗", "bold red"),
    Outcome.WARN: ("!", "bold yellow"),
    Outcome.UNKNOWN: ("?", "bold magenta"),
    Outcome.INFO: ("·", "cyan"),
    Outcome.SKIP: ("-", "dim"),
    Outcome.PASS: ("✓", "green"),
}
"""The sign and the style of each outcome."""
_BROKEN = re.compile(r"([–-])\n")
_DIGITS = r"\d[\d,_]*(?:\.\d+)?"
_NUMBER = re.compile(rf"[-+±≥]?{_DIGITS}(?:–{_DIGITS})?(?: ±{_DIGITS})?(?: ?[%A-Za-zµ/]{{1,6}})?\Z|[-–—]?\Z")
"""A number, a range or a value with its interval, and its unit; or the dash for one that is unknown."""

# What stands for our marks where the encoding has none of them: a lone ? would mean "unknown".
_PLAIN_MARKS = dict(zip("─│✓✗·▸⋮—–×≠", "-|+x->:--x#", strict=True)) | {
    "→": "->", "…": "...", "≤": "<=", "≥": ">=", "±": "+-", "µ": "u", "•": "*",
} | dict(zip(plotting.MARKERS + "╌┤└", "ox*+^A#0vu-|+", strict=True))  # fmt: skip


def _in_plain_marks(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lost = error.object[error.start : error.end]
    return "".join(_PLAIN_MARKS.get(character, "?") for character in lost), error.end


codecs.register_error("ddprobe.marks", _in_plain_marks)


def console_for(colour: bool | None, width: int | None, file: TextIO | None) -> Console:
    """A console that reads no markup; unset, colour and width are what the terminal and the person ask for."""
    out = file or sys.stdout
    tty = out.isatty()
    if colour is None:
        colour = tty and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    if width is None and not tty:
        columns = os.environ.get("COLUMNS", "")
        width = int(columns) if columns.isdigit() and int(columns) else PIPED_WIDTH
    if "utf" not in (getattr(out, "encoding", None) or "utf-8").lower() and hasattr(out, "reconfigure"):
        out.reconfigure(errors="ddprobe.marks")
    return _console()(
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


@functools.cache
def _console() -> type[Console]:
    from rich.console import Console

    class Plain(Console):
        """A console that leaves it to others what a reader who has gone means: Rich's own ends the program with 1."""

        def on_broken_pipe(self) -> None:
            raise

    return Plain


def plain(text: str, style: str = "") -> Text:
    """Text from anywhere, made safe."""
    from rich.text import Text

    return Text(render.clean(text), style=style)


def say(console: Console, text: str, style: str = "", whole_lines: bool = False) -> None:
    """Print text from anywhere."""
    put(console, plain(text, style), whole_lines)


def put(console: Console, drawn: RenderableType, whole_lines: bool = False) -> None:
    """Print it; piped, without the blanks that fill a grid's lines."""
    if console.is_terminal:
        console.print(drawn, soft_wrap=whole_lines)
        return
    with console.capture() as captured:
        console.print(drawn, soft_wrap=whole_lines)
    console.file.write("".join(f"{text.rstrip()}\n" for text in captured.get().splitlines()))


def hanging(console: Console, head: Text, body: Text) -> None:
    """A head, and beside it a text whose further lines begin where its first does."""
    from rich.table import Table as Grid

    grid = Grid.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(head, body)
    put(console, grid)


# --- blocks ------------------------------------------------------------------------------------------------


def draw_block(console: Console, block: Block, whole_lines: bool = False) -> None:
    """Draw one block. `whole_lines`: what is a sentence stays on its line."""
    if isinstance(block, Heading):
        say(console, block.text, "bold")
    elif isinstance(block, Paragraph) and block.tone == "command":
        put(console, plain(render.line(block.text)), whole_lines=True)
    elif isinstance(block, Paragraph):
        say(console, block.text, _TONES.get(block.tone, ""), whole_lines)
    elif isinstance(block, Pairs):
        put(console, _pairs(console, block))
    elif isinstance(block, Table):
        _table(console, block)
    elif isinstance(block, Plot):
        _plot(console, block)
    else:
        _code(console, block)


def _pairs(console: Console, pairs: Pairs) -> RenderableType:
    from rich.cells import cell_len
    from rich.console import Group
    from rich.table import Table as Grid

    names = [render.clean(name) for name, _ in pairs.rows]
    wide = min(max(map(cell_len, names), default=0), console.width // 2)
    grid = Grid.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim")
    grid.add_column()
    for name, (_, value) in zip(names, pairs.rows, strict=True):
        grid.add_row(plain(fit(name, wide)), plain(fit(_cell(value), console.width - wide - 3)))
    return Group(plain(pairs.title, "bold"), grid) if pairs.title else grid


def _table(console: Console, table: Table) -> None:
    from rich import box
    from rich.cells import cell_len
    from rich.table import Table as Grid

    if table.title:
        say(console, table.title, "bold")
    if not table.columns:
        return
    rows = [tuple(_cell(text) for text in _filled(row, len(table.columns))) for row in table.rows]
    columns = list(zip(tuple(map(render.clean, table.columns)), *rows, strict=True))
    natural = [max(cell_len(part) for text in column for part in text.split("\n")) for column in columns]
    marker = 3 if table.emphasis else 0
    spared = _spared(table.spare, natural, console.width - marker)
    kept = [number for number in range(len(columns)) if number not in spared]
    columns, natural = [columns[number] for number in kept], [natural[number] for number in kept]
    rows = [tuple(row[number] for number in kept) for row in rows]
    drawn = Grid(
        box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False, show_edge=False, padding=(0, 1, 0, 0)
    )
    if marker:
        drawn.add_column("", width=1)
    fitting = widths(natural, console.width - marker - 2 * len(columns))
    for (name, *cells), width in zip(columns, fitting, strict=True):
        numbers = any(map(str.strip, cells, repeat("-–— "))) and all(map(_NUMBER.match, cells))
        drawn.add_column(plain(fit(name, width)), justify="right" if numbers else "left", width=width)
    for number, row in enumerate(rows):
        marked = number in table.emphasis
        drawn.add_row(
            *((plain("▸" if marked else "", "bold yellow"),) if marker else ()),
            *(plain(fit(text, width)) for text, width in zip(row, fitting, strict=True)),
            style="yellow" if marked else "",
        )
    put(console, drawn)
    if table.caption:
        say(console, table.caption, "dim")
    if spared:
        names = ", ".join(_on_one_line(table.columns[number]) for number in sorted(spared))
        say(console, f"Left out for want of width: {names}.", "dim")


def _on_one_line(name: str) -> str:
    """A column's name that was broken to be narrow, as it is said: `lowest–highest`, `break-even`."""
    return render.line(_BROKEN.sub(r"\1", name))


def _spared(spare: tuple[int, ...], natural: list[int], room: int) -> set[int]:
    """The columns to leave out so that the others fit as they are; all that may be, if nothing less helps."""
    left_out: set[int] = set()
    for number in spare:
        rest = [width + 2 for other, width in enumerate(natural) if other not in left_out]
        if sum(rest) <= room:
            break
        left_out.add(number)
    return left_out


def _filled(row: tuple[str, ...], length: int) -> tuple[str, ...]:
    return (*row, *("" for _ in range(length - len(row))))[:length]


def _cell(text: str) -> str:
    if len(text) > MAX_CELL:
        text = f"{text[:MAX_CELL]} … {len(text) - MAX_CELL} more characters"
    return render.clean(text).expandtabs(8)


def _plot(console: Console, plot: Plot) -> None:
    from rich.text import Text

    if plot.title:
        say(console, plot.title, "bold")
    for segments in plotting.lines(plot, min(console.width - 1, MAX_PLOT)):
        styled = ((text, _plot_style(who)) for text, who in segments)
        put(console, Text.assemble(*styled, no_wrap=True, overflow="ellipsis"))


def _plot_style(who: int) -> str:
    return "dim" if who == plotting.FRAME else "yellow" if who < 0 else _SERIES[who % len(_SERIES)]


# --- source ------------------------------------------------------------------------------------------------


def _code(console: Console, code: Code) -> None:
    from rich.text import Text

    title = Text.assemble((render.line(code.title or code.path), "bold"))
    if code.note:
        title.append(f"  {render.line(code.note)}", "dim")
    put(console, title)
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
    put(console, Text("\n").join(shown), whole_lines=True)


def _broken(console: Console, source: Text, room: int) -> list[Text]:
    """A line too long for the screen in pieces; those below go in a little further than the first."""
    indent = min(len(source.plain) - len(source.plain.lstrip()), room // 2)
    first, rest = source[:indent], source[indent:]
    pieces = list(rest.wrap(console, max(8, room - indent - 4), overflow="fold")) or [rest]
    return [first + pieces[0], *(plain(" " * (indent + 4)) + piece for piece in pieces[1:])]


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
