"""The verdicts on a terminal: the first of each host in a box with its reasons, the others in a few lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ddprobe import render
from ddprobe.model import Outcome, Report, Verdict
from ddprobe.render.drawing import MARKS, hanging, plain, put

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

WIDEST = 110


def draw(console: Console, report: Report, verbose: int) -> None:
    """Draw the verdicts in their rank: of each host the first in a box, verbose all of them."""
    hosts: set[str] = set()
    above = frozenset(f"{one.id}: {one.summary}" for one in report.findings) if not verbose else frozenset()
    for verdict in report.verdicts:
        named = verdict.host if len(report.hosts) > 1 else ""
        if verbose or verdict.host not in hosts:
            put(console, _box(console, verdict, named, verbose, above))
        else:
            _short(console, verdict, named)
        hosts.add(verdict.host)
    if report.verdicts:
        console.print()


def _box(
    console: Console, verdict: Verdict, host: str, verbose: int, above: frozenset[str]
) -> RenderableType:
    """One verdict; of a finding that is told `above` the first sentence."""
    from rich.box import ROUNDED
    from rich.console import Group
    from rich.panel import Panel
    from rich.text import Text

    mark, style = MARKS[verdict.outcome]
    title = Text.assemble(
        (f"{mark} {render.verdict_title(verdict)}", style),
        render.confidence(verdict, " · "),
        (f" · {render.line(host)}" if host else "", "cyan"),
    )
    parts: list[RenderableType] = []
    if meaning := render.verdict_meaning(verdict):
        parts.append(plain(meaning, "bold"))
    for name, sentences in render.verdict_parts(verdict):
        if parts:
            parts.append(Text(""))
        if name == render.RULED_OUT and not verbose:
            # By what is a page of numbers, and nobody's first question.
            parts.append(
                Text.assemble(
                    (f"{name}  ", "bold"), render.causes(sentences), ("  (-v shows by what)", "dim")
                )
            )
            continue
        if name:
            parts.append(Text(name, "bold"))
        last = name == render.NEXT
        told = tuple(render.gist(one) if one in above else one for one in sentences)
        parts.append(_list(told, "→" if last else "•", "green" if last else ""))
    if not any(text for _, text in render.verdict_parts(verdict)):
        parts.append(plain("It gives no reasons.", "dim"))
    if verbose and verdict.cites:
        places = [f"{cite.artefact} {cite.at}".rstrip() for cite in verdict.cites]
        parts += [Text(""), plain(f"see {render.line(', '.join(places))}", "dim")]
    return Panel(
        Group(*parts),
        title=title,
        title_align="left",
        border_style=style.removeprefix("bold "),
        box=ROUNDED,
        padding=(0, 1),
        width=min(console.width, WIDEST),
    )


def _list(sentences: tuple[str, ...], sign: str, style: str) -> RenderableType:
    from rich.table import Table

    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True, style=style)
    grid.add_column(overflow="fold", style=style)
    for sentence in sentences:
        grid.add_row(plain(sign), plain(render.line(sentence)))
    return grid


def _short(console: Console, verdict: Verdict, host: str) -> None:
    from rich.text import Text

    mark, style = MARKS[verdict.outcome]
    body = Text.assemble((render.verdict_title(verdict), style), render.confidence(verdict, ", "))
    if host:
        body.append(f"  [{render.line(host)}]", "cyan")
    for text, tone in _gist(verdict):
        body.append(text, tone)
    hanging(console, Text(mark, style), body)


def _gist(verdict: Verdict) -> Iterator[tuple[str, str]]:
    """The first reason, or what is missing, and the first thing to do. Of what is open, what is missing comes first."""
    unsettled = verdict.outcome is Outcome.UNKNOWN
    missing = tuple(f"missing: {sentence}" for sentence in verdict.missing)
    told = (*missing, *verdict.reasons) if unsettled else (*verdict.reasons, *missing)
    for sentence in told[:1]:
        yield f": {render.line(sentence)}", ""
    for sentence in verdict.next[:1]:
        yield f"\n→ {render.line(sentence)}", "green"
