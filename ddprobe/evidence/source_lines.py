"""Lines of the engine's source among collected files, as somebody grepped them."""

from __future__ import annotations

import itertools

from ddprobe.evidence.document import Document, Found
from ddprobe.facts import SourceHit
from ddprobe.model import Cite
from ddprobe.parsing import source_lines

_LINES = 20_000


def recognise(document: Document, sample: str) -> Found | None:
    """Source lines with file and number; None where the beginning holds none."""
    if not source_lines.of_lines(sample.splitlines()[:50]):
        return None
    lines = source_lines.of_lines(itertools.islice(document.lines(), _LINES))
    facts = tuple(
        SourceHit(
            path=line.path,
            line=line.line,
            text=line.text,
            within="",
            source=(Cite(document.key, f"{line.path}:{line.line}"),),
        )
        for line in lines
    )
    return Found(f"{len(facts)} lines of source", facts)
