"""What a command prints: a report or blocks for a person, or JSON alone, on stdout; progress on stderr."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ddprobe.blocks import Block
from ddprobe.cli import streams
from ddprobe.cli.options import Options
from ddprobe.model import Progress, Report


def draw(blocks: Iterable[Block], options: Options) -> None:
    """Blocks for a person."""
    from ddprobe.render import terminal

    with streams.printing():
        terminal.draw(blocks, colour=False if options.no_color else None, whole_lines=options.quiet)


def show(report: Report, folder: Path, options: Options) -> None:
    """The report for a person."""
    from ddprobe.render import terminal

    with streams.printing():
        terminal.show(
            report,
            folder=folder,
            verbose=options.verbose,
            quiet=options.quiet,
            colour=False if options.no_color else None,
        )


def show_json(report: Report) -> None:
    """The report as JSON."""
    from ddprobe.render import jsonview

    _write(jsonview.text(report))


def dump(document: Any) -> None:
    """What is no report, as JSON."""
    from ddprobe import reportjson

    _write(reportjson.text(document, indent=2))


def show_markdown(report: Report) -> None:
    """The report for a ticket or chat."""
    from ddprobe.render import markdown

    _write(markdown.text(report))


def _write(text: str) -> None:
    # A name that came from a host may hold what UTF-8 cannot say.
    data = text.rstrip("\n").encode("utf-8", "replace").decode("utf-8")
    streams.write(data + "\n")


@contextlib.contextmanager
def progress(
    options: Options, cells: tuple[Sequence[str], Sequence[str]] | None = None
) -> Iterator[Progress]:
    """What goes on during a run, on stderr; silent with `--json`, `-q` and, but for `-v`, where it is no terminal.

    `cells`: (hosts, steps) to be shown as a table.
    """
    if options.json or options.quiet or not (sys.stderr.isatty() or options.verbose):
        yield lambda *_: None
        return
    if cells is not None and sys.stderr.isatty():
        from ddprobe.render import runtable

        with runtable.running(sys.stderr, *cells) as table:
            yield table
        return
    from ddprobe.render import terminal

    with terminal.progress(log=options.verbose) as running:
        yield running
