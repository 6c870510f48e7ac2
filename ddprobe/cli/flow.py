"""What every look at hosts has in common: run the steps, keep the report, show it, say it in an exit code."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ddprobe import plainfile
from ddprobe.cli import screen, streams
from ddprobe.cli.options import Options
from ddprobe.model import LAB_TAG, Host, Report, Step, exit_code

if TYPE_CHECKING:
    from ddprobe.runner import Book, Opener
    from ddprobe.running.course import Stage
    from ddprobe.running.earlier import Earlier

View = Callable[[Report, Path], None]
"""Prints a finished run for a person; takes the report and its folder."""


def reports_folder(options: Options) -> Path:
    """Where reports are kept: `--reports`, $DDPROBE_REPORTS, ./reports."""
    return plainfile.named(options.reports or os.environ.get("DDPROBE_REPORTS") or "reports")


def look(
    name: str,
    hosts: Sequence[Host],
    steps: Sequence[Step],
    options: Options,
    *,
    view: View | None = None,
    opener: Opener | None = None,
    lab: bool = False,
) -> int:
    """Run the steps on the hosts and show what came of it. Returns the exit code."""
    report, folder = carry_out(name, hosts, steps, options, opener=opener, lab=lab)
    return present(report, folder, options, view)


def present(report: Report, folder: Path, options: Options, view: View | None = None) -> int:
    """Show a finished run. Returns its exit code, which is none of 0 where it could not be shown."""
    code = exit_code(report, options.fail_on)
    try:
        if options.json:
            screen.show_json(report)
        elif view is not None:
            view(report, folder)
        else:
            screen.show(report, folder, options)
    except streams.Unwritten as error:
        streams.note(f"ddprobe: {error.message}; the run is whole, and its report is in {folder}")
        return code or error.exit_code
    except Exception:
        streams.note(f"ddprobe: the run is whole, but it cannot be shown; its report is in {folder}")
        raise
    return code


def carry_out(
    name: str,
    hosts: Sequence[Host],
    steps: Sequence[Step | Stage],
    options: Options,
    *,
    opener: Opener | None = None,
    lab: bool = False,
    book: Book | None = None,
    earlier: Earlier | None = None,
) -> tuple[Report, Path]:
    """Run the steps on the hosts, with progress on a terminal. Returns the report and the folder that keeps it.

    `book`: the playbook that they are of; `earlier`: a report to go on from.
    """
    from ddprobe import runner
    from ddprobe.sessions import open_session
    from ddprobe.store import ReportWriter

    if options.debug:
        logging.basicConfig(level=logging.DEBUG, stream=sys.stderr, format="%(name)s: %(message)s")
    lab = lab or any(LAB_TAG in host.tags for host in hosts)
    writer = ReportWriter.create(reports_folder(options), name, lab=lab)
    cells = ([host.name for host in hosts], [step.id for step in steps]) if book is not None else None
    with screen.progress(options, cells) as progress:
        report = runner.run(
            name,
            hosts,
            steps,
            writer,
            opener or open_session,
            progress=progress,
            lab=lab,
            book=book,
            earlier=earlier,
        )
    return report, writer.folder
