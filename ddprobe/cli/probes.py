"""`probes`: the named probes, and the manual page of one."""

from __future__ import annotations

from typing import Annotated

import typer

from ddprobe.cli import manual, screen
from ddprobe.cli.options import Options, with_options


@with_options("json", "no_color", "debug")
def probes_command(
    options: Options,
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", show_default=False, help="Show this probe's manual page."),
    ] = None,
) -> int:
    """The named probes; with NAME, one probe's manual page: what it runs on a host, settings, findings.

    Example: ddprobe probes source.read
    """
    from ddprobe import probes

    kinds = [probes.load(one) for one in ([name] if name else probes.names())]
    if options.json:
        pages = [manual.page(kind) for kind in kinds]
        screen.dump(
            {"schema": "ddprobe-probe/1", **pages[0]}
            if name
            else {"schema": "ddprobe-probes/1", "probes": pages}
        )
    elif name:
        screen.draw(manual.blocks(manual.page(kinds[0])), options)
    else:
        screen.draw([manual.overview(kinds)], options)
    return 0
