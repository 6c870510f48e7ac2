"""`analyse`: the diagnosis on evidence that was collected elsewhere."""

from __future__ import annotations

import logging
import sys
from typing import Annotated

import typer

from ddprobe.cli import flow, screen
from ddprobe.cli.options import Options, with_options


@with_options(unused=("hosts_file", "timeout"))
def analyse(
    options: Options,
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH...",
            show_default=False,
            help="Files, folders, archives (tar, zip, gzip, xz, bzip2), reports of ddprobe; - is stdin.",
        ),
    ],
) -> int:
    """The same diagnosis on evidence collected elsewhere: logs, configs, arguments, counters, points, an old report.

    Every file is recognised by what it holds; its name decides nothing. Several files may be pasted into one. Nothing
    is asked of any host, so --hosts and --timeout change nothing. A report of ddprobe is judged again, and what changed
    is said.

    Example: ddprobe analyse server.log config.json
    """
    from ddprobe import analysis, opening
    from ddprobe.store import ReportWriter

    if options.debug:
        logging.basicConfig(level=logging.DEBUG, stream=sys.stderr, format="%(name)s: %(message)s")
    opening.check(paths)
    writer = ReportWriter.create(flow.reports_folder(options), analysis.NAME)
    with screen.progress(options) as progress:
        report = analysis.analyse(paths, writer, progress)
    return flow.present(report, writer.folder, options)
