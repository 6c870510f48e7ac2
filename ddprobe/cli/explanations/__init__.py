"""The pages of lints, verdicts, findings and hypotheses, from their own code: they cannot say what the code does not do."""

from __future__ import annotations

from typing import Any

from ddprobe.blocks import Block, Paragraph, Table
from ddprobe.cli.explanations import findings, hypotheses, lints, verdicts
from ddprobe.lints import table
from ddprobe.model import VERDICTS
from ddprobe.verdicts import kinds, words
from ddprobe.verdicts.hypotheses import HYPOTHESES

_DRAWN = {
    "lint": lints.blocks,
    "verdict": verdicts.blocks,
    "finding": findings.blocks,
    "hypothesis": hypotheses.blocks,
}
_TITLES = {
    "verdict": "Verdicts: what a report comes to",
    "hypothesis": "Hypotheses: the ledger beside the verdicts",
    "lint": "Lints: what configurations, arguments, logs and numbers are checked for",
    "finding": "Findings of the probes, and of ddprobe itself",
}


def known() -> tuple[str, ...]:
    """Every word that has a page."""
    of_lints = [word for lint in table.every() for word in (lint.id, *lint.aliases)]
    return tuple(dict.fromkeys([*of_lints, *VERDICTS, *findings.known(), *HYPOTHESES]))


def findable() -> tuple[str, ...]:
    """The same, and the kinds of verdicts: they lead to the pages of these."""
    return (*known(), *dict.fromkeys(kind for each in kinds.KINDS.values() for kind in each))


def pages(word: str) -> tuple[dict[str, Any], ...]:
    """The pages that a word names: those of every lint with that alias, of a verdict and of a hypothesis of one name, of every
    verdict with that kind.
    """
    name = word.lower().replace("-", "_")
    finding = findings.named(word)
    of_kind = () if name in VERDICTS else kinds.verdicts_of(name)
    return (
        *(lints.page(lint) for lint in table.named(word)),
        *((verdicts.page(name),) if name in VERDICTS else ()),
        *map(verdicts.page, of_kind),
        *((hypotheses.page(name),) if name in HYPOTHESES else ()),
        *((findings.page(finding),) if finding else ()),
    )


def blocks(page: dict[str, Any]) -> tuple[Block, ...]:
    """A page as a person reads it."""
    return _DRAWN[page["kind"]](page)


def every() -> tuple[dict[str, Any], ...]:
    """One line for every page there is, kind by kind."""
    of_findings = findings.known().items()
    return (
        *(_entry("verdict", name, words.meaning(name, "")) for name in VERDICTS),
        *(_entry("hypothesis", name, text) for name, (text, _) in HYPOTHESES.items()),
        *(_entry("lint", lint.id, lint.text, lint.aliases) for lint in table.every()),
        *(_entry("finding", id, text) for id, (text, _) in of_findings),
    )


def listed() -> tuple[Block, ...]:
    """The same as a person reads it."""
    told = every()
    tables = [
        Table(
            ("id", *(("also",) if kind == "lint" else ()), "what it says"),
            tuple(
                (each["id"], *((", ".join(each["aliases"]),) if kind == "lint" else ()), each["about"])
                for each in told
                if each["kind"] == kind
            ),
            title,
        )
        for kind, title in _TITLES.items()
    ]
    return (*tables, Paragraph("ddprobe explain ID shows the page of one of them.", "dim"))


def _entry(kind: str, id: str, about: str, aliases: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"kind": kind, "id": id, "about": about.rstrip("."), "aliases": list(aliases)}
