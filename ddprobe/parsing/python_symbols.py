"""Functions and classes of a Python file, and the lines they take: what encloses a line, where a name is defined.

Read by this Python's own parser. A file in newer syntax, or a broken one, is read by its indentation instead, and
the outline says so. Lines are those of `sed -n`: a carriage return or form feed ends none.
"""

from __future__ import annotations

import ast
import difflib
import re
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_MOST_COMPARED = 5000
"""Of more names than these, only those that hold the wanted one are compared: each comparison takes 0.1 ms."""
_parsing = threading.Lock()
"""`warnings.catch_warnings` belongs to the process, and several hosts are interpreted side by side."""


@dataclass(frozen=True, slots=True)
class Symbol:
    """A function or class. `name` is dotted from the module down: `DFlashWorkerV2._commit.inner`."""

    name: str
    kind: str
    """`class`, `def` or `async def`."""
    first: int
    """Its first line, decorators included."""
    line: int
    """The line of `def` or `class`."""
    last: int


@dataclass(frozen=True, slots=True)
class Outline:
    """Every function and class of a file, in the order of lines."""

    symbols: tuple[Symbol, ...]
    note: str = ""
    """Why the ends are only as good as the indentation; empty when the file was parsed."""

    def around(self, line: int) -> Symbol | None:
        """The innermost function or class that the line belongs to."""
        holding = [symbol for symbol in self.symbols if symbol.first <= line <= symbol.last]
        return max(holding, key=lambda symbol: (symbol.first, -symbol.last), default=None)

    def named(self, name: str) -> tuple[Symbol, ...]:
        """Every definition of that name: `Class.method`, or its end (`method`) when nothing is called exactly so."""
        wanted = clean(name)
        exact = tuple(symbol for symbol in self.symbols if symbol.name == wanted)
        return exact or tuple(symbol for symbol in self.symbols if symbol.name.endswith(f".{wanted}"))

    def near(self, name: str, count: int = 5) -> tuple[str, ...]:
        """The names most like this one, nearest first."""
        return nearest(clean(name), dict.fromkeys(symbol.name for symbol in self.symbols), count)


def clean(name: str) -> str:
    """The name as symbols have it: without call brackets and without `<locals>`."""
    return re.sub(r"\(.*\)\s*\Z", "", name.strip()).replace(".<locals>", "").strip(".")


def nearest(wanted: str, names: Iterable[str], count: int) -> tuple[str, ...]:
    """The dotted names most like `wanted`, compared as a whole and by their last parts."""
    tail = wanted.rpartition(".")[2].lower()
    rated = []
    every = tuple(names)
    if len(every) > _MOST_COMPARED:
        every = tuple(name for name in every if tail in name.lower())[:_MOST_COMPARED]
    for name in every:
        end = name.rpartition(".")[2].lower()
        whole = difflib.SequenceMatcher(None, wanted.lower(), name.lower(), autojunk=False).ratio()
        last = difflib.SequenceMatcher(None, tail, end, autojunk=False).ratio()
        if len(tail) > 3 and tail in end:
            last = max(last, 0.9)
        if max(whole, last) >= 0.6:
            rated.append((-last - whole / 2, name))
    return tuple(name for _, name in sorted(rated)[:count])


def outline(text: str) -> Outline:
    """The functions and classes of the file's text."""
    # Only "\n" ends a line for sed and grep; Python's parser would also count a lone carriage return.
    source = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", " ")
    try:
        with _parsing, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
        return Outline(tuple(sorted(_walk(tree, ""), key=lambda symbol: (symbol.first, -symbol.last))))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        place = f"line {error.lineno}: " if isinstance(error, SyntaxError) and error.lineno else ""
        reason = error.msg if isinstance(error, SyntaxError) else str(error)
        version = ".".join(map(str, sys.version_info[:2]))
        note = f"ends found by indentation, as this laptop's Python {version} cannot parse the file ({place}{reason})"
        return Outline(tuple(_by_indentation(source.split("\n"))), note)


def _walk(node: ast.AST, prefix: str) -> Iterator[Symbol]:
    """The symbols among a node's statements, and those within them."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{prefix}{child.name}"
            first = min((decorator.lineno for decorator in child.decorator_list), default=child.lineno)
            yield Symbol(name, _kind(child), first, child.lineno, child.end_lineno or child.lineno)
            yield from _walk(child, f"{name}.")
        elif isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
            yield from _walk(child, prefix)


def _kind(node: ast.AST) -> str:
    if isinstance(node, ast.ClassDef):
        return "class"
    return "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"


# --- by indentation ----------------------------------------------------------------------------------------

_HEAD = re.compile(r"([ \t\f]*)(class|def|async[ \t]+def)[ \t]+(\w+)")
_QUOTES = re.compile(r'"""|\'\'\'')


@dataclass(frozen=True, slots=True)
class _Line:
    number: int
    indent: int
    begins: bool
    """Whether it may begin a statement: no inside of triple-quoted text, no closing bracket (`) -> int:`)."""


def _by_indentation(lines: list[str]) -> Iterator[Symbol]:
    code = _code_lines(lines)
    outer: list[tuple[str, int]] = []
    for place, line in enumerate(code):
        if not line.begins:
            continue
        while outer and outer[-1][1] >= line.indent:
            outer.pop()
        match = _HEAD.match(lines[line.number - 1])
        if match is None:
            continue
        outer.append((match[3], line.indent))
        yield Symbol(
            name=".".join(name for name, _ in outer),
            kind="async def" if match[2].startswith("async") else match[2],
            first=_decorated_from(code, place, lines),
            line=line.number,
            last=_end(code, place),
        )


def _code_lines(lines: list[str]) -> list[_Line]:
    """The lines that belong to code: all but blank ones and comments."""
    found = []
    quote = ""
    for number, line in enumerate(lines, 1):
        in_text = bool(quote)
        stripped = line.strip()
        if in_text or not stripped.startswith("#"):
            for mark in _QUOTES.findall(line):
                quote = mark if not quote else "" if quote == mark else quote
        if stripped and (in_text or stripped[0] != "#"):
            wide = line.expandtabs()
            begins = not in_text and stripped[0] not in ")]}"
            found.append(_Line(number, len(wide) - len(wide.lstrip()), begins))
    return found


def _decorated_from(code: list[_Line], place: int, lines: list[str]) -> int:
    """The line of the first decorator of the definition at `place`, or that line itself."""
    head = code[place]
    first = head.number
    for before in reversed(code[max(0, place - 50) : place]):
        if before.begins and before.indent == head.indent and lines[before.number - 1].lstrip()[0] == "@":
            first = before.number
        elif before.begins and before.indent <= head.indent:
            break
    return first


def _end(code: list[_Line], place: int) -> int:
    """The last line of the block that begins at `place`: before the next statement as far out as its head."""
    last = code[place].number
    for at in range(place + 1, len(code)):
        if code[at].begins and code[at].indent <= code[place].indent:
            break
        last = code[at].number
    return last
