"""`explain`: the page of a lint, a verdict or a probe's finding."""

from __future__ import annotations

from typing import Annotated

import typer

from ddprobe.cli import screen
from ddprobe.cli.options import Options, with_options
from ddprobe.cli.plain import nearest
from ddprobe.errors import UsageError


@with_options("json", "no_color", "debug")
def explain(
    options: Options,
    id: Annotated[
        str,
        typer.Argument(
            metavar="ID", show_default=False, help="As a report names it: DC20, L12, drafter_dead."
        ),
    ],
) -> int:
    """What a lint checks, what a verdict means and depends on, or what a probe's finding says.

    Example: ddprobe explain DC20
    """
    from ddprobe.cli import explanations

    pages = explanations.pages(id)
    if not pages:
        near = nearest(id, explanations.known()) or nearest(id.upper(), explanations.known())
        raise UsageError(
            f"nothing here is called {id!r}", near or "ids are those of a report: DC20, drafter_dead"
        )
    if options.json:
        screen.dump({"schema": "ddprobe-explanation/1", "pages": list(pages)})
    else:
        screen.draw([block for page in pages for block in explanations.blocks(page)], options)
    return 0
