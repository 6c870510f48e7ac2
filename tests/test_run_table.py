"""The table of a run under way: readable for one host and for 64, never larger than the terminal."""

from __future__ import annotations

import io
import time
from collections.abc import Sequence
from typing import Any

import pytest

from ddprobe.cli import screen
from ddprobe.cli.options import Options
from ddprobe.render.runtable import RUNNING, Board, RunTable

STEPS = ("server", "find", "commit")


def drawn(board: Board, width: int = 80, height: int = 24, at: float = 100.0) -> list[str]:
    lines = ["".join(text for text, _ in line).rstrip() for line in board.lines(width, height, at)]
    assert len(lines) < height
    return lines


def test_one_host_is_a_list_of_its_steps() -> None:
    board = Board(["gpu1"], STEPS)
    board.put("gpu1", "server", "pass", 90.0)
    board.put("gpu1", "find", RUNNING, 96.5)
    assert drawn(board) == ["server  ✓ pass", "find    3.5 s", "commit  waiting"]


def test_several_hosts_are_a_table() -> None:
    board = Board(["gpu1", "a-much-longer-name-than-a-table-has-room-for"], STEPS)
    for step, state in (("server", "warn"), ("find", "skipped"), ("commit", "unknown")):
        board.put("gpu1", step, state, 90.0)
    board.put("a-much-longer-name-than-a-table-has-room-for", "server", RUNNING, 40.0)
    assert drawn(board) == [
        "                              server     find       commit",
        "gpu1                          ! warn     - skipped  ? unknown",
        "a-much-longer-name-than-a-t…  60 s       waiting    waiting",
    ]


def test_64_hosts_are_counted_and_the_slowest_named() -> None:
    hosts = [f"node{number:02}" for number in range(1, 65)]
    board = Board(hosts, STEPS)
    for number, host in enumerate(hosts):
        board.put(host, "server", "fail" if number == 0 else "pass" if number < 40 else RUNNING, number)
    board.put("node02", "find", RUNNING, 99.0)
    assert drawn(board) == [
        "server  24 running (60 s), 1 fail, 39 pass",
        "find    1 running (1.0 s), 63 waiting",
        "commit  64 waiting",
        "node41  server  60 s",
        "node42  server  59 s",
        "node43  server  58 s",
    ]


@pytest.mark.parametrize("hosts", [1, 3, 64])
@pytest.mark.parametrize("steps", [1, 5, 40])
@pytest.mark.parametrize(("width", "height"), [(200, 80), (80, 24), (40, 10), (20, 4)])
def test_it_is_never_higher_than_the_terminal(hosts: int, steps: int, width: int, height: int) -> None:
    board = Board([f"h{number}" for number in range(hosts)], [f"s{number}" for number in range(steps)])
    for number in range(hosts):
        board.put(f"h{number}", "s0", RUNNING, 1.0)
    assert 0 < len(board.lines(width, height, 100.0)) < height


def test_a_hosts_name_acts_on_no_terminal() -> None:
    board = Board(["\x1b[2Jx", "y"], ["\x1b]0;t\x07s"])
    assert "\x1b" not in "".join(drawn(board))


class Screen(io.StringIO):
    """A terminal of that kind."""

    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


def options(words: Sequence[str]) -> Options:
    return Options(**dict.fromkeys(words, True))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("terminal", "words", "drawn"),
    [
        (True, (), "table"),
        (True, ("verbose",), "table"),
        (True, ("quiet",), "nothing"),
        (True, ("json",), "nothing"),
        (False, (), "nothing"),
        (False, ("verbose",), "lines"),
        (False, ("verbose", "json"), "nothing"),
    ],
)
def test_where_nobody_watches_nothing_is_drawn(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, words: tuple[str, ...], drawn: str
) -> None:
    out = Screen(terminal)
    monkeypatch.setattr("sys.stderr", out)
    monkeypatch.setenv("TERM", "xterm")
    cells: Any = (["gpu1", "gpu2"], ["server"])
    with screen.progress(options(words), cells) as progress:
        assert isinstance(progress, RunTable) is (drawn == "table")
        progress("gpu1", "server")
        if isinstance(progress, RunTable):
            progress.step("gpu1", "server", RUNNING)
            progress.draw()
            time.sleep(0.3)
    text = out.getvalue()
    assert bool(text) is (drawn != "nothing")
    if drawn == "table":
        assert "gpu2" in text
        assert "waiting" in text
    if drawn == "lines":
        assert text == "gpu1  server\n"
