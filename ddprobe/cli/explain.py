"""`explain`: the page of a lint, a verdict, a finding or a hypothesis; without an id, all there are."""

from __future__ import annotations

from typing import Annotated

import typer

from ddprobe.cli import screen
from ddprobe.cli.options import Options, with_options
from ddprobe.cli.plain import nearest
from ddprobe.errors import UsageError

LONGEST = 60
"""Characters of an unknown id that are said back: every id is shorter."""


@with_options("json", "no_color", "debug")
def explain(
    options: Options,
    id: Annotated[
        str | None,
        typer.Argument(
            metavar="[ID]",
            show_default=False,
            help="As a report names it: DC20, L12, drafter_dead, metric_wrong. None: all of them, a line each.",
        ),
    ] = None,
) -> int:
    """What a lint checks, what a verdict means and depends on, what a finding says or what decides a hypothesis.

    Example: ddprobe explain DC20
    """
    from ddprobe.blocks import Block, Paragraph
    from ddprobe.cli import explanations

    id = id.strip() if id is not None else None
    if id is None:
        if options.json:
            screen.dump({"schema": "ddprobe-explanation/1", "ids": list(explanations.every())})
        else:
            screen.draw(explanations.listed(), options)
        return 0
    pages = explanations.pages(id)
    if not pages:
        shown = id if len(id) <= LONGEST else f"{id[:LONGEST]}…"
        near = nearest(id, explanations.findable()) or nearest(id.upper(), explanations.findable())
        raise UsageError(
            f"nothing here is called {shown!r}", near or "ids are those of a report: DC20, drafter_dead"
        )
    if options.json:
        screen.dump({"schema": "ddprobe-explanation/1", "pages": list(pages)})
    else:
        drawn: list[Block] = [block for page in pages for block in explanations.blocks(page)]
        if "…" in repr(drawn):
            drawn.append(Paragraph("… stands for what is found.", "dim"))
        screen.draw(drawn, options)
    return 0
