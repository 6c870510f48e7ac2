"""Which steps of a long run are seen whole, and what the others come to in one line: most are inventories and listings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ddprobe import probes, render
from ddprobe.blocks import Block, Code, Heading, Pairs, Paragraph, Plot, Table
from ddprobe.errors import DdprobeError
from ddprobe.facts.files import AGAIN, FILES
from ddprobe.render import StepView

LONG_RUN = 3
"""With more steps than this, those that measured nothing are a line each."""
MORE = "-v shows what these steps read; the files lie in the report's folder."
_WHOLE = ("gpu.state", "engine.logs", FILES, AGAIN)
"""Beside those that measure: each is a summary in itself."""
MOST_NAMES = 3
LONGEST = 100
_NUMBERED = re.compile(r"/\d+-[^/]*\Z")


def whole(views: Sequence[StepView]) -> tuple[StepView, ...]:
    """Those that are seen whole."""
    if len({view.id for view in views}) <= LONG_RUN:
        return tuple(views)
    return tuple(view for view in views if view.blocks and _is_wanted(view.probe))


def _is_wanted(probe: str) -> bool:
    try:
        return probe in _WHOLE or probes.load(probe).measures
    except DdprobeError:
        # Of another version: it is shown as it always was.
        return True


def gist(view: StepView) -> str:
    """A sentence of what it shows, or how many things of which kind."""
    said = next((part for part in _parts(view.blocks) if part), "")
    return said if len(said) <= LONGEST else f"{said[:LONGEST].rstrip()} …"


def _parts(blocks: Sequence[Block]) -> Iterator[str]:
    listings = [block for block in blocks if isinstance(block, Code)]
    # What needs a look comes first.
    for block in sorted(blocks, key=lambda one: not (isinstance(one, Paragraph) and one.tone == "bad")):
        if isinstance(block, Heading | Paragraph):
            yield render.gist(block.text)
        elif isinstance(block, Table):
            yield _table(block)
        elif isinstance(block, Pairs):
            yield _pairs(block)
        elif isinstance(block, Plot):
            yield render.line(block.title)
        elif block is listings[0]:
            yield _listed(listings)


def _table(table: Table) -> str:
    title = render.line(table.title or table.columns[0])
    names = [name for name in (render.line(row[0]) for row in table.rows if row) if name]
    return f"{title}: {render.together(names, MOST_NAMES)}" if names else title


def _pairs(pairs: Pairs) -> str:
    title = f"{render.line(pairs.title)}: " if pairs.title else ""
    told = [f"{render.line(name)} {render.line(value)}" for name, value in pairs.rows]
    return title + ", ".join(told[:MOST_NAMES]) + (" …" if len(told) > MOST_NAMES else "")


def _listed(listings: Sequence[Code]) -> str:
    """`12 hits in 3 files`, or `80 source lines of 2 files`."""
    files = render.count(len({listing.path for listing in listings}), "file")
    hits = sum(len(listing.marked) for listing in listings)
    if hits:
        return f"{render.count(hits, 'marked line')} in {files}"
    return f"{render.count(sum(len(listing.lines) for listing in listings), 'source line')} of {files}"


def evidence(view: StepView) -> str:
    """The folder of its evidence; of several hosts with a star for each."""
    folders = list(dict.fromkeys(_NUMBERED.sub("/", render.line(file)) for file in view.files))
    if len(folders) < 2:
        return "".join(folders)
    tails = {folder.rstrip("/").rpartition("/")[2] for folder in folders}
    return f"evidence/*/{tails.pop()}/" if len(tails) == 1 else folders[0]
