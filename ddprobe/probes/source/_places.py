"""Several files read by one probe: each has its questions and answers to itself, under keys of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ddprobe.facts import SourceRange
from ddprobe.model import Cite, Command, CommandResult, Evidence, Finding, Gap


def prefix(number: int, several: bool) -> str:
    """How the keys of that file begin; a file alone has the plain ones."""
    return f"{number}-" if several else ""


def asked(command: Command, prefix: str) -> Command:
    """The question under its file's key."""
    return replace(command, key=prefix + command.key)


def answered(evidence: Evidence, prefix: str) -> Evidence:
    """The answers about one file, as if it had been alone."""
    if not prefix:
        return evidence
    return Evidence(
        evidence.host,
        tuple(
            replace(result, question=replace(result.question, key=result.key.removeprefix(prefix)))
            for result in evidence.started_with(prefix)
            if isinstance(result, CommandResult)
        ),
    )


def told(items: Iterator[SourceRange | Finding | Gap], prefix: str) -> Iterator[SourceRange | Finding | Gap]:
    """What is known of one file, citing its answers by their keys in the whole."""
    for item in items:
        if isinstance(item, SourceRange):
            yield replace(item, source=_cites(item.source, prefix))
        else:
            yield replace(item, cites=_cites(item.cites, prefix))


def _cites(cites: tuple[Cite, ...], prefix: str) -> tuple[Cite, ...]:
    return tuple(Cite(prefix + cite.artefact, cite.at) for cite in cites)
