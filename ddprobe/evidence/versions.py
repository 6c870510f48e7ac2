"""Which release of an engine is installed, as package lists, issue forms and the engines' own reports say it."""

from __future__ import annotations

import itertools

from ddprobe.evidence.document import Document, Found
from ddprobe.facts import SourcePackage
from ddprobe.model import Cite
from ddprobe.parsing import version_text

_LINES = 20_000
MOST = 8


def recognise(document: Document, sample: str) -> Found | None:
    """The releases that lines of it name; None where none does."""
    if sample.lstrip("\ufeff \t\r\n").startswith(("{", "[{")):
        return None
    found = tuple(itertools.islice(version_text.read(itertools.islice(document.lines(), _LINES)), MOST))
    if not found:
        return None
    facts = tuple(
        SourcePackage(
            engine=one.engine,
            path="",
            version=one.version,
            origin="stated",
            source=(Cite(document.key, f"line {one.line}"),),
        )
        for one in found
    )
    return Found(f"installed: {', '.join(f'{one.engine} {one.version}' for one in found)}", facts)
