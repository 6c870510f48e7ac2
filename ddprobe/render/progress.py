"""What goes on while a run is under way: one line a host on a terminal's stderr, gone when the run is over.

Where nobody watches, a line is written whenever a host comes to something new, if that is wanted.
"""

from __future__ import annotations

import contextlib
import re
import sys
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TextIO

from ddprobe import render

if TYPE_CHECKING:
    from rich.live import Live
    from rich.text import Text

MAX_LINES = 6
PATIENCE = 0.4
"""Seconds before anything is drawn: what is over sooner needs no spinner."""
FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


_NUMBER = re.compile(r"-\d+\b")
_PLAIN = (
    (re.compile(r"(?:.*-)?state-after\b.*"), "what the server says of itself now"),
    (re.compile(r"(?:near|elsewhere)-([a-z]+).*"), r"the installed \1"),
    (re.compile(r"(?:.*-)?tokens\b.*"), "texts as the server's tokens"),
)


def plainly(now: str) -> str:
    """What a host is about, without the key of the question: `server: the installed sglang`."""
    step, colon, key = render.line(now).rpartition(": ")
    if not colon or " " in key:
        return render.line(now)
    for form, words in _PLAIN:
        if form.fullmatch(key):
            return f"{step}: {form.sub(words, key)}"
    return f"{step}: {_NUMBER.sub('', key).replace('-', ' ')}"


class Running:
    """A `Progress`: told what each host is about, it shows that with the time it takes."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._now: dict[str, tuple[str, float]] = {}
        self._live: Live | None = None
        self._began = time.monotonic()
        self._ended = False

    def __call__(self, host: str, now: str) -> None:
        with self._lock:
            if now:
                self._now[host] = (now, time.monotonic())
            else:
                self._now.pop(host, None)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """While a person is asked something (a passphrase), nothing is drawn over the question."""
        with self._lock:
            live, self._live = self._live, None
        if live is not None:
            live.stop()
        try:
            yield
        finally:
            if live is not None:
                self.draw()

    def draw(self) -> None:
        """Begin to draw; called once the run has taken some time."""
        from rich.console import Console
        from rich.live import Live

        console = Console(file=self._file, markup=False, highlight=False, emoji=False)
        live = Live(get_renderable=self._lines, console=console, transient=True, refresh_per_second=8)
        with self._lock:
            if self._ended or self._live is not None:
                return
            self._live = live
        live.start()

    def end(self) -> None:
        """Leave the terminal as it was."""
        with self._lock:
            self._ended = True
            live, self._live = self._live, None
        if live is not None:
            live.stop()

    def _lines(self) -> Text:
        from rich.text import Text

        at = time.monotonic()
        with self._lock:
            # Whoever has been at one thing the longest is what the run waits for.
            busy = sorted(self._now.items(), key=lambda item: item[1][1])
        frame = FRAMES[int((at - self._began) * 8) % len(FRAMES)]
        lines = [
            Text.assemble(
                (f"{frame} ", "cyan"),
                (render.line(host), "bold"),
                (f"  {at - since:.1f} s", "dim"),
                f"  {plainly(now)}",
            )
            for host, (now, since) in busy[:MAX_LINES]
        ]
        if len(busy) > MAX_LINES:
            lines.append(Text(f"  and {render.count(len(busy) - MAX_LINES, 'more host')}", "dim"))
        for text in lines:
            text.no_wrap, text.overflow = True, "ellipsis"
        return Text("\n", no_wrap=True, overflow="ellipsis").join(lines)


class Log:
    """A `Progress` for what is no terminal: a line when a host comes to another thing, not for each of its parts.

    The parts stand behind the first comma: `repeat at 64k, prompt 2 of 4`.
    """

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._now: dict[str, str] = {}

    def __call__(self, host: str, now: str) -> None:
        thing = plainly(now).partition(",")[0]
        with self._lock, contextlib.suppress(OSError, ValueError):
            if thing and self._now.get(host) != thing:
                self._file.write(f"{render.line(host)}  {thing}\n")
                self._file.flush()
            self._now[host] = thing


@contextlib.contextmanager
def progress(*, file: TextIO | None = None, log: bool = False) -> Iterator[Any]:
    """A `Progress` for the run inside: live on a terminal; elsewhere silent, or with `log` a line now and then."""
    out = file or sys.stderr
    if log and not out.isatty():
        yield Log(out)
        return
    running = Running(out)
    if not out.isatty():
        yield running
        return
    timer = threading.Timer(PATIENCE, running.draw)
    timer.daemon = True
    timer.start()
    try:
        yield running
    finally:
        timer.cancel()
        timer.join()
        running.end()
