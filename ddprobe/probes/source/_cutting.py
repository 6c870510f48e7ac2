"""From a file's bytes to the ranges asked for, each with its own status."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ddprobe.facts import SourceRange
from ddprobe.model import Cite, CommandResult, Evidence
from ddprobe.parsing import python_symbols, source_paths, source_text
from ddprobe.parsing.line_ranges import LineRange
from ddprobe.parsing.python_symbols import Outline
from ddprobe.parsing.source_text import Lines
from ddprobe.probes.source import _file
from ddprobe.probes.source._file import Place, Wish


def whole(wish: Wish, place: Place, result: CommandResult) -> Iterator[SourceRange]:
    """Ranges or symbols of a file that was fetched whole, or as much of it as came."""
    lines = source_text.lines(result.stdout, result.whole)
    path = source_paths.relative(place.path, wish.package)
    total = len(lines.kept) if lines.whole else None
    blank = SourceRange(
        path=path, first=0, last=0, total=total, status="", text="", source=(Cite(result.key),)
    )
    if wish.symbol:
        yield from _symbol(wish, blank, lines, result.trouble)
    elif wish.ranges:
        for asked in wish.ranges:
            yield _cut(wish, blank, asked, lines, result.trouble)
    elif lines.whole:
        text = lines.text(1, len(lines.kept))
        note = "" if text else "the file is empty"
        yield replace(blank, first=1, last=len(lines.kept), status="complete", text=text, note=note)
    else:
        yield _cut(wish, blank, LineRange(1, lines.complete + 1), lines, result.trouble)


def _cut(wish: Wish, blank: SourceRange, asked: LineRange, lines: Lines, trouble: str) -> SourceRange:
    """One range of the lines that came."""
    here = len(lines.kept)
    wide = wish.widened(asked)
    last = min(wide.last, max(here, asked.last))
    common = replace(
        blank,
        first=wide.first,
        last=last,
        text=lines.text(wide.first, last),
        focus=tuple(range(asked.first, min(asked.last, here) + 1)) if wish.context else (),
    )
    if asked.last <= lines.complete and (lines.whole or last <= lines.complete):
        return replace(common, status="complete")
    if not lines.whole:
        return replace(common, status="cut", note=_cut_at(lines.size, lines.complete + 1, trouble))
    return replace(common, status="past_end", note=_past_end(asked, here))


def _cut_at(size: int, line: int, trouble: str) -> str:
    return f"cut at byte {size} of the file, in line {line}: {trouble}"


def _past_end(asked: LineRange, total: int) -> str:
    ends = f"past the end: the file ends at line {total}" if total else "past the end: the file is empty"
    if asked.first > total:
        return ends
    return f"{ends}; lines {LineRange(asked.first, total)} are here, {LineRange(total + 1, asked.last)} do not exist"


# --- a function or class -----------------------------------------------------------------------------------


def _symbol(wish: Wish, blank: SourceRange, lines: Lines, trouble: str) -> Iterator[SourceRange]:
    if source_paths.language(blank.path) != "python":
        note = "functions and classes are looked up in Python files only; ask for lines, or search with grep"
        yield replace(blank, symbol=wish.symbol, status="missing", note=note)
        return
    outline = python_symbols.outline("".join(lines.kept))
    found = outline.named(wish.symbol)
    for number, symbol in enumerate(found, 1):
        asked = LineRange(symbol.first, symbol.last)
        # Whether half a file's last block ends where it seems to cannot be known.
        cut = _cut(wish, blank, asked, lines, trouble)
        if not lines.whole and symbol.last >= lines.complete:
            cut = replace(cut, status="cut", note=_cut_at(lines.size, lines.complete + 1, trouble))
        several = f"definition {number} of {len(found)}" if len(found) > 1 else ""
        note = "; ".join(part for part in (cut.note, several, outline.note) if part)
        yield replace(cut, symbol=symbol.name, note=note)
    if not found and not lines.whole:
        note = f"not found in the part that came; {_cut_at(lines.size, lines.complete + 1, trouble)}"
        yield replace(blank, symbol=wish.symbol, status="cut", note=note)
    elif not found:
        yield replace(blank, symbol=wish.symbol, status="missing", note=_no_symbol(wish, outline))


def _no_symbol(wish: Wish, outline: Outline) -> str:
    near = outline.near(wish.symbol)
    if near:
        nearest = f"nearest: {', '.join(near)}"
    elif outline.symbols:
        top = [symbol.name for symbol in outline.symbols if "." not in symbol.name]
        nearest = f"there are {', '.join(top[:8])}{' …' if len(top) > 8 else ''}"
    else:
        nearest = "there is none at all"
    reading = f" ({outline.note})" if outline.note else ""
    return f"the file has no function or class {wish.symbol}; {nearest}{reading}"


# --- a file too large to fetch whole -----------------------------------------------------------------------


def pieces(wish: Wish, place: Place, evidence: Evidence) -> Iterator[SourceRange]:
    """Ranges that were fetched one by one."""
    total = _file.line_count(evidence)
    encoding = source_text.encoding(evidence.command(_file.HEAD).stdout)
    for number, asked in enumerate(wish.ranges, 1):
        result = evidence.command(f"{_file.LINES}{number}")
        lines = source_text.lines(result.stdout, result.whole, encoding)
        wide = wish.widened(asked)
        reached = wide.first + len(lines.kept) - 1
        text = "".join(lines.kept)
        if reached == total and not _file.ends_in_newline(evidence):
            text = text.removesuffix("\n")  # sed ends the line it quits at, even where the file does not
        piece = SourceRange(
            path=source_paths.relative(place.path, wish.package),
            first=wide.first,
            last=min(wide.last, max(reached, asked.last)),
            total=total,
            status="complete",
            text=text,
            focus=tuple(range(asked.first, min(asked.last, reached) + 1)) if wish.context else (),
            source=(Cite(result.key),),
        )
        if not result.whole:
            at = wide.first + lines.complete
            note = f"cut at byte {lines.size} of the range, in line {at}: {result.trouble}"
            piece = replace(piece, status="cut", note=note)
        elif reached < asked.last:
            end = reached if lines.kept else total
            note = _past_end(asked, end) if end is not None else "past the end of the file"
            piece = replace(piece, status="past_end", note=note)
        yield piece
