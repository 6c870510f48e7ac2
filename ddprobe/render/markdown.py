"""A report as Markdown, for a ticket or a chat."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator

from ddprobe import render
from ddprobe.blocks import Block, Code, Heading, Pairs, Paragraph, Plot, Table
from ddprobe.model import Cite, HostRecord, Outcome, Report, Verdict, summed
from ddprobe.render import FindingView, plotting

PLOT_WIDTH = 76
MOST_PLACES = 6
"""Of a verdict: its evidence may be every request there was."""


def text(report: Report) -> str:
    """The whole report as GitHub-flavoured Markdown, newline at the end."""
    return "\n".join(_report(report)).strip() + "\n"


def _report(report: Report) -> Iterator[str]:
    yield f"# {escape(report.name)}: {render.verdict_word(report)}"
    yield ""
    if report.lab:
        yield f"> **{render.LAB}**"
        yield ""
    began = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(report.started))
    yield f"{render.closing(report)} · {began} UTC · ddprobe {escape(report.version)}"
    yield ""
    for verdict in report.verdicts:
        yield from _verdict(verdict, several=len(report.hosts) > 1)
    yield from _hypotheses(report)
    yield from _findings(report)
    for step in render.steps(report):
        yield f"## {escape(step.id)} · {escape(render.together(step.hosts))}"
        yield ""
        for name, status, reasons in step.troubles:
            where = f" on {escape(name)}" if len(step.hosts) > 1 else ""
            yield f"**{status}**{where}" + (f": {escape('; '.join(reasons))}" if reasons else "")
            yield ""
        for block in step.blocks:
            yield from _block(block)
            yield ""
    if report.hosts:
        yield "## Hosts"
        yield ""
        yield from _row(("host", "reached by", "notes"))
        yield "|---|---|---|"
        for host in report.hosts:
            yield from _row(_host(host))
        yield ""


def _verdict(verdict: Verdict, several: bool) -> Iterator[str]:
    where = f" on {escape(verdict.host)}" if several and verdict.host else ""
    yield f"## Verdict{where}: {escape(render.verdict_title(verdict))}"
    yield ""
    meaning = render.verdict_meaning(verdict)
    told = verdict.outcome.label + escape(render.confidence(verdict, ", "))
    yield f"**{escape(meaning)}** ({told})" if meaning else told
    for name, sentences in render.verdict_parts(verdict):
        yield ""
        if name:
            yield f"**{name}**"
            yield ""
        yield from (f"- {escape(sentence)}" for sentence in sentences)
    if verdict.cites:
        yield ""
        places = [_place(cite) for cite in verdict.cites[:MOST_PLACES]]
        more = len(verdict.cites) - len(places)
        yield f"see {', '.join(places)}" + (f" and {more} more in report.json" if more else "")
    yield ""


def _hypotheses(report: Report) -> Iterator[str]:
    ledgers = render.ledgers(report)
    if len(ledgers) > 1:
        yield f"## Hypotheses on {len(ledgers)} hosts"
        yield ""
        for line in summed(report.hypotheses):
            yield f"- {escape(line.text)}: {escape(render.counted(line))}"
        yield ""
    for host, ledger in ledgers:
        yield f"## Hypotheses on {escape(host)}" if len(report.hosts) > 1 and host else "## Hypotheses"
        yield ""
        yield from _row(("hypothesis", "status", "by what"))
        yield "|---|---|---|"
        for one in ledger:
            yield from _row((one.text, one.status, one.evidence))
        yield ""


def _findings(report: Report) -> Iterator[str]:
    views = render.findings(report)
    told = [view for view in views if view.finding.outcome not in (Outcome.PASS, Outcome.SKIP)]
    if told:
        yield "## Findings"
        yield ""
        for view in told:
            yield from _finding(view, render.hosts_beside(report, view))
        yield ""
    passed = [view.finding.id for view in views if view.finding.outcome is Outcome.PASS]
    if passed:
        yield f"{len(passed)} passed: {escape(', '.join(dict.fromkeys(passed)))}"
        yield ""


def _finding(view: FindingView, hosts: tuple[str, ...]) -> Iterator[str]:
    finding = view.finding
    where = f" _({escape(render.together(hosts))})_" if hosts else ""
    yield f"- {finding.outcome.label} **{escape(finding.id)}** {escape(finding.subject)}: {escape(finding.summary)}{where}"
    for other in view.likewise:
        yield f"  - likewise in {escape(other.step)}: {escape(other.summary)}"
    if finding.advice:
        yield f"  - → {escape(finding.advice)}"
    if finding.cites:
        yield f"  - see {', '.join(_place(cite) for cite in finding.cites)}"
    if finding.source:
        yield f"  - source: {escape(finding.source)}"


def _place(cite: Cite) -> str:
    return f"{_code(cite.artefact)}{f' {escape(cite.at)}' if cite.at else ''}"


def _host(host: HostRecord) -> tuple[str, str, str]:
    road = host.connection
    notes = [host.error, host.advice]
    if host.survivors:
        notes.append(f"{host.survivors} of ddprobe's own processes had to be ended")
    if road is None:
        return host.name, "not reached", ". ".join(note for note in notes if note)
    user = f"{road.user}@" if road.user else ""
    port = f":{road.port}" if road.port else ""
    notes += [*road.notes, road.host_key]
    return (
        host.name,
        f"{road.transport} {user}{road.address}{port}",
        ". ".join(note for note in notes if note),
    )


def _block(block: Block) -> Iterator[str]:
    if isinstance(block, Heading):
        yield f"### {escape(block.text)}"
    elif isinstance(block, Paragraph):
        yield _code(block.text) if block.tone == "command" else escape(block.text)
    elif isinstance(block, Pairs):
        if block.title:
            yield f"**{escape(block.title)}**"
            yield ""
        yield from (f"- {escape(name)}: {escape(value)}" for name, value in block.rows)
    elif isinstance(block, Table):
        yield from _table(block)
    elif isinstance(block, Plot):
        yield f"**{escape(block.title)}**"
        yield ""
        yield from _fenced("".join(text for text, _ in line) for line in plotting.lines(block, PLOT_WIDTH))
    else:
        yield from _lines(block)


def _table(table: Table) -> Iterator[str]:
    if table.title:
        yield f"**{escape(table.title)}**"
        yield ""
    yield from _row(table.columns)
    yield "|" + "---|" * len(table.columns)
    for number, row in enumerate(table.rows):
        cells = tuple(row) + ("",) * (len(table.columns) - len(row))
        marked = number in table.emphasis
        yield from _row((f"▸ {cells[0]}", *cells[1:]) if marked and cells else cells)
    if table.caption:
        yield ""
        yield escape(table.caption)


def _row(cells: tuple[str, ...]) -> Iterator[str]:
    yield "| " + " | ".join(escape(text) for text in cells) + " |"


def _lines(code: Code) -> Iterator[str]:
    yield f"**{escape(code.title or code.path)}**" + (f" · {escape(code.note)}" if code.note else "")
    yield ""
    width = len(str(code.lines[-1][0])) if code.lines else 1
    body: list[str] = []
    last = None
    for number, line in code.lines:
        if last is not None and number != last + 1:
            body.append(f"{'⋮':>{width}}")
        mark = "▸" if number in code.marked else " "
        shown = render.clean(line).replace("\n", "␊")
        body.append(f"{number:>{width}} {mark} {shown}".rstrip())
        last = number
    yield from _fenced(body, code.language)


def _fenced(lines: Iterable[str], language: str = "") -> Iterator[str]:
    """Lines that are shown as they are, in a fence longer than any within."""
    body = list(lines)
    runs = re.findall(r"`+", "\n".join(body))
    fence = "`" * max(3, 1 + max(map(len, runs), default=0))
    yield fence + re.sub(r"[^A-Za-z0-9+-]", "", language)
    yield from body
    yield fence


# --- escaping ----------------------------------------------------------------------------------------------

_HTML = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_SPECIAL = re.compile(r"[\\`*|\[\]~$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_BLOCK_START = re.compile(
    r"^([ \t]*)(?:([+-](?=\s|$)|#{1,6}(?=\s|$)|=+[ \t]*$|-{2,}[ \t]*$)|(\d{1,9})(?=[.)](?:\s|$)))",
    re.MULTILINE,
)


def escape(text: str) -> str:
    """The text as Markdown that shows just it: no markup, no HTML; its lines are joined by hard breaks."""
    safe = re.sub("[&<>]", lambda found: _HTML[found.group()], render.clean(text))
    safe = _SPECIAL.sub(lambda found: "\\" + found.group(), safe)
    safe = _BLOCK_START.sub(lambda found: f"{found[1]}\\{found[2]}" if found[2] else f"{found[0]}\\", safe)
    return re.sub(r"\s*\n\s*", "<br>", safe.strip())


def _code(text: str) -> str:
    """The text as inline code."""
    plain = render.line(text)
    runs = re.findall(r"`+", plain)
    fence = "`" * (1 + max(map(len, runs), default=0))
    pad = " " if plain.startswith("`") or plain.endswith("`") else ""
    return f"{fence}{pad}{plain}{pad}{fence}"
