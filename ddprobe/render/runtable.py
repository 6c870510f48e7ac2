"""A run while it goes on, host by step: what waits, what runs and for how long, what came of it.

One host is a list of its steps; several are a table. What does not fit the terminal is told in counts, a line a step,
with the hosts that take the longest.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from ddprobe import render
from ddprobe.model import Outcome
from ddprobe.render.drawing import MARKS
from ddprobe.render.progress import PATIENCE, Running

if TYPE_CHECKING:
    from rich.text import Text

WAITING, RUNNING = "waiting", "running"
CELL = 11
"""Columns of a cell, at least: `✓ pass`, `? unknown`, `188 s`."""
MAX_NAME = 28
SLOWEST = 3
"""Hosts that are named where the others are counted."""
_ODD = {"skipped": ("-", "dim"), "not run": ("-", "dim"), "interrupted": ("?", "bold magenta")}
_ORDER = ("fail", "warn", "unknown", "interrupted", "not run", "info", "pass", "skipped")
Piece = tuple[str, str]
"""(text, style)"""
Line = tuple[Piece, ...]


class Board:
    """The cells of a run. Called from any thread."""

    def __init__(self, hosts: Sequence[str], steps: Sequence[str]) -> None:
        self.hosts = tuple(hosts)
        self.steps = tuple(steps)
        self._lock = threading.Lock()
        self._cells: dict[tuple[str, str], tuple[str, float]] = {}

    def put(self, host: str, step: str, state: str, at: float) -> None:
        with self._lock:
            self._cells[host, step] = state, at

    def lines(self, width: int, height: int, at: float) -> list[Line]:
        """What is drawn at that moment, no wider and no higher than the terminal."""
        with self._lock:
            cells = dict(self._cells)
        names = min(MAX_NAME, max(len(render.line(h)) for h in self.hosts)) if self.hosts else 0
        columns = [max(CELL, len(render.line(step)) + 2) for step in self.steps]
        if len(self.hosts) == 1 and len(self.steps) < height:
            wide = max(len(render.line(step)) for step in self.steps) if self.steps else 0
            return [
                ((render.line(step).ljust(wide + 2), "bold"), _cell(cells.get((self.hosts[0], step)), at))
                for step in self.steps
            ]
        if names + 2 + sum(columns) <= width and len(self.hosts) + 1 < height:
            return list(self._table(cells, names, columns, at))
        return list(self._counts(cells, height, at))

    def _table(
        self, cells: dict[tuple[str, str], tuple[str, float]], names: int, columns: Sequence[int], at: float
    ) -> Iterator[Line]:
        titles = "".join(render.line(s).ljust(w) for s, w in zip(self.steps, columns, strict=True))
        yield ((" " * (names + 2) + titles, "dim"),)
        for host in self.hosts:
            row: list[Piece] = [(_short(render.line(host), names).ljust(names + 2), "bold")]
            for step, wide in zip(self.steps, columns, strict=True):
                text, style = _cell(cells.get((host, step)), at)
                row.append((text.ljust(wide), style))
            yield tuple(row)

    def _counts(
        self, cells: dict[tuple[str, str], tuple[str, float]], height: int, at: float
    ) -> Iterator[Line]:
        wide = max((len(render.line(step)) for step in self.steps), default=0)
        most = max(1, height - 2)
        # Of many steps those that are under way: what is over or still to come tells less.
        steps = [s for s in self.steps if len(self.steps) <= most or _under_way(cells, self.hosts, s)][:most]
        for step in steps:
            states = [cells.get((host, step), (WAITING, at)) for host in self.hosts]
            yield ((render.line(step).ljust(wide + 2), "bold"), *_tally(states, at))
        slow = sorted(
            (since, host, step) for (host, step), (state, since) in cells.items() if state == RUNNING
        )
        for since, host, step in slow[: max(0, min(SLOWEST, height - 1 - len(steps)))]:
            yield (
                (f"{_short(render.line(host), MAX_NAME)}  {render.line(step)}", ""),
                (f"  {render.duration(at - since)}", "dim"),
            )


def _under_way(cells: dict[tuple[str, str], tuple[str, float]], hosts: Sequence[str], step: str) -> bool:
    return any(cells.get((host, step), ("", 0.0))[0] == RUNNING for host in hosts)


def _cell(cell: tuple[str, float] | None, at: float) -> Piece:
    if cell is None:
        return WAITING, "dim"
    state, since = cell
    if state == RUNNING:
        return render.duration(at - since), "cyan"
    mark, style = _mark(state)
    return f"{mark} {state}", style


def _mark(state: str) -> Piece:
    known = {outcome.label: MARKS[outcome] for outcome in Outcome}
    return known.get(state) or _ODD.get(state, ("·", ""))


def _tally(states: Sequence[tuple[str, float]], at: float) -> Iterator[Piece]:
    told = [state for state, _ in states]
    running = [since for state, since in states if state == RUNNING]
    parts: list[Piece] = []
    if running:
        parts.append((f"{len(running)} running ({render.duration(at - min(running))})", "cyan"))
    parts += [(f"{told.count(s)} {s}", _mark(s)[1]) for s in _ORDER if s in told]
    if WAITING in told:
        parts.append((f"{told.count(WAITING)} {WAITING}", "dim"))
    for number, part in enumerate(parts):
        if number:
            yield ", ", "dim"
        yield part


def _short(name: str, wide: int) -> str:
    return name if len(name) <= wide else f"{name[: wide - 1]}…"


class RunTable(Running):
    """A watch that draws the board, gone when the run is over."""

    def __init__(self, file: TextIO, hosts: Sequence[str], steps: Sequence[str]) -> None:
        super().__init__(file)
        self._board = Board(hosts, steps)

    def step(self, host: str, step: str, state: str) -> None:
        self._board.put(host, step, state, time.monotonic())

    def _lines(self) -> Text:
        from rich.console import Console
        from rich.text import Text

        size = Console(file=self._file).size
        drawn = [
            Text.assemble(*line, no_wrap=True, overflow="ellipsis")
            for line in self._board.lines(size.width, size.height, time.monotonic())
        ]
        head = super()._lines()
        room = size.height - len(drawn) - 2
        lines = [*drawn, *head.split("\n")[: max(0, room)]] if str(head) else drawn
        return Text("\n", no_wrap=True, overflow="ellipsis").join(lines)


@contextlib.contextmanager
def running(file: TextIO, hosts: Sequence[str], steps: Sequence[str]) -> Iterator[Any]:
    """The table on a terminal while the run inside goes on."""
    table = RunTable(file, hosts, steps)
    timer = threading.Timer(PATIENCE, table.draw)
    timer.daemon = True
    timer.start()
    try:
        yield table
    finally:
        timer.cancel()
        timer.join()
        table.end()
