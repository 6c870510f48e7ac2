"""Several files pasted into one: split by headers, Markdown fences and JSON that stands among other text.

Every part keeps the line numbers that it had in the whole: what is not of it becomes empty lines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ddprobe.evidence.document import SAMPLE, Document, of_bytes
from ddprobe.parsing import lenient_json, log_lines

MAX_PARTS = 64
MAX_TRIES = 400
"""Places in a text where JSON may begin and does not, before it is taken for none."""
LENIENT = 512 * 1024
"""Characters of JSON with comments and the like."""
FEW_KEYS = 2
MANY_KEYS = 5
"""Least keys of an object that counts as a file of its own, on lines of its own and at the end of another line."""

_NAME = r"[\w@%+=:,./~-]+"
_FILE = r"[\w@%+=,./~-]*\.(?:json|jsonl|log|txt|ya?ml|csv|md|prom|out|err|conf|env|sh|service)"
_HEADERS = re.compile(
    rf"""^(?:
      ==>\s.+\s<==                                              # head, tail
    | (?:\#|//|;)+\s*(?:file(?:name)?|path)\s*[:=]\s*\S.*       # a comment that names the file
    | ([-=*_\#]){{2,}}\s*`?(?:file:?\s+)?{_FILE}`?\s*(?:\1{{2,}})?  # --- a.json ---, === a.log, ## `a.json`
    | (?:[-=*\#]+\s+)?\**`?{_FILE}`?\**\s*:\**                       # config.json:
    | (?:[\w@:~./-]*[$\#]\s+)(?:sudo\s+)?(?:cat|head|tail|zcat|grep|less|docker|kubectl|journalctl|curl|nvidia-smi|env|printenv|ps)\b.*
    )\s*$""",
    re.VERBOSE | re.IGNORECASE,
)  # fmt: skip
_FENCE = re.compile(r"^\s{0,3}(`{3,}|~{3,})\s*[\w+-]*\s*$")
_BODY = re.compile(r'\A\s*[\[{][^\0]*?"body"\s*:\s*"')

_LISTED = re.compile(r"\A\s*\[\s*\{")


@dataclass(frozen=True, slots=True)
class Part:
    """Lines of a document that are a document of their own."""

    document: Document
    sample: str


def unwrapped(document: Document, sample: str) -> Document:
    """The log itself where each line is JSON around a line of it, as Docker, journald and many loggers keep it."""
    if _BODY.search(sample) and not document.large and (told := _bodies(document)):
        return of_bytes(document.key, told.encode("utf-8", "replace"))
    if _LISTED.match(sample) and not document.large and (told := _listed(document)):
        return of_bytes(document.key, told.encode("utf-8", "replace"))
    if _inner(sample.lstrip().split("\n", 1)[0]) is None:
        return document

    def pieces() -> Iterator[bytes]:
        for line in document.lines():
            inner = _inner(line)
            yield (line if inner is None else inner).rstrip("\n").encode("utf-8", "replace") + b"\n"

    return Document(document.key, pieces, large=document.large)


def _bodies(document: Document) -> str:
    """What people wrote, one after the other, of a code host's answer on an issue and its comments; else nothing."""
    try:
        held = json.loads(document.whole() or "")
    except (ValueError, RecursionError):
        return ""
    found: list[str] = []
    waiting = [held]
    while waiting and len(found) < MAX_PARTS:
        one = waiting.pop(0)
        if isinstance(one, list):
            waiting[:0] = one[:MAX_TRIES]
        elif isinstance(one, dict):
            if isinstance(one.get("body"), str):
                found.append(one["body"].replace("\r\n", "\n"))
            waiting[:0] = [
                one[name] for name in ("comments", "items", "nodes") if isinstance(one.get(name), list | dict)
            ]
    return "\n\n".join(found)


def _listed(document: Document) -> str:
    """The lines of a list of records of a log, as cloud consoles hand them out; else nothing."""
    try:
        held = json.loads(document.whole() or "")
    except (ValueError, RecursionError):
        return ""
    lines = [log_lines.within(record) for record in held if isinstance(record, dict)]
    return "".join(line.rstrip("\r\n") + "\n" for line in lines if line is not None)


def _inner(line: str) -> str | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return log_lines.within(record) if isinstance(record, dict) else None


def parts(key: str, text: str) -> tuple[Part, ...]:
    """The parts of a text that holds several files; empty where it is one."""
    if "\0" in text[:SAMPLE] or _is_json(text):
        return ()
    lines = text.split("\n")
    found = [piece for section in _sections(lines) for piece in _json_apart(lines, section)]
    told = [piece for piece in found if any(lines[number].strip() for number in piece.numbers)]
    if len(told) == 1 and _filled(lines, told[0].numbers) >= _filled(lines, range(len(lines))):
        return ()
    return tuple(_part(f"{key}#{number}", lines, piece) for number, piece in enumerate(told[:MAX_PARTS], 1))


def _filled(lines: list[str], numbers: Iterable[int]) -> int:
    return sum(1 for number in numbers if lines[number].strip())


@dataclass(frozen=True, slots=True)
class _Piece:
    """Lines by number; the first of them from a column on."""

    numbers: list[int]
    column: int = 0


def _part(key: str, lines: list[str], piece: _Piece) -> Part:
    first, *others = piece.numbers
    mine = {number: lines[number] for number in others} | {first: lines[first][piece.column :]}
    padded = "\n".join(mine.get(number, "") for number in range(piece.numbers[-1] + 1)) + "\n"
    text = "\n".join(mine[number] for number in piece.numbers).lstrip()
    return Part(of_bytes(key, padded.encode("utf-8", "replace")), text[:SAMPLE])


def behind(sample: str) -> str:
    """The beginning of a document, behind a JSON object that it begins with and that is not all of it."""
    start = len(sample) - len(sample.lstrip("\ufeff \t\r\n"))
    if sample[start : start + 1] != "{":
        return sample
    stop = _decoded(json.JSONDecoder(), sample, start, FEW_KEYS)
    rest = sample[stop:].lstrip(",; \t\r\n")
    return rest if stop and "\n" in sample[start:stop] and rest[:1] not in ("", "{", "[{") else sample


def _is_json(text: str) -> bool:
    """Whether all of it is one JSON value, also with comments and the like."""
    if not text.lstrip("\ufeff \t\r\n").startswith(("{", "[", "//", "#")):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        try:
            lenient_json.read(text.encode("utf-8", "replace"))
        except lenient_json.NotJson:
            return False
    return True


def _sections(lines: list[str]) -> Iterator[list[int]]:
    """Line numbers of what stands under each header and in each fence; text around fences is one section."""
    outside: list[int] = []
    inside: list[int] = []
    fence = ""
    for number, line in enumerate(lines):
        marks = _FENCE.match(line)
        if fence:
            if marks and marks[1].startswith(fence):
                yield inside
                inside, fence = [], ""
            else:
                inside.append(number)
        elif marks:
            fence = marks[1]
        elif len(line) < 300 and _HEADERS.match(line):
            yield outside
            outside = []
        else:
            outside.append(number)
    yield outside
    if inside:
        yield inside  # a fence that nobody closed


def _json_apart(lines: list[str], section: list[int]) -> Iterator[_Piece]:
    """The JSON objects of a section, each a piece, and the text around them as one."""
    if not section:
        return
    base, text = section[0], "\n".join(lines[number] for number in section)
    contiguous = section[-1] - base + 1 == len(section)
    taken: set[int] = set()
    for found in _joined(_objects(text)) if contiguous else ():
        numbers = range(base + found.first, base + found.last + 1)
        yield _Piece(list(numbers), found.column)
        if not found.column or len(numbers) > 1:
            taken.update(numbers)
    rest = [number for number in section if number not in taken]
    if rest:
        yield _Piece(rest)


@dataclass(frozen=True, slots=True)
class _Object:
    """A JSON object (or list) in a text: its lines, and the column in which it begins where text stands before it."""

    first: int
    last: int
    column: int


def _joined(objects: Iterable[_Object]) -> Iterator[_Object]:
    """JSON lines (one object a line) that follow each other are one."""
    held: _Object | None = None
    single = False
    for found in objects:
        alone = found.first == found.last and not found.column
        if held is not None and single and alone and found.first == held.last + 1:
            held = _Object(held.first, found.last, 0)
            continue
        if held is not None:
            yield held
        held, single = found, alone
    if held is not None:
        yield held


def _objects(text: str) -> Iterator[_Object]:
    """Every JSON object that ends where a line does."""
    decoder = json.JSONDecoder()
    at = line = misses = 0
    while at < len(text) and misses < MAX_TRIES:
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        start = _start(text[at:end])
        stop = 0
        if start >= 0:
            before = bool(text[at : at + start].strip())
            stop = _decoded(decoder, text, at + start, MANY_KEYS if before else FEW_KEYS)
            misses += not stop
        if stop:
            last = line + text.count("\n", at, stop)
            yield _Object(line, last, start if before else 0)
            line, end = last, text.find("\n", stop)
            end = len(text) if end < 0 else end
        line, at = line + 1, end + 1


def _start(line: str) -> int:
    """Where JSON of its own may begin on this line; -1: nowhere. A value within other JSON is none of its own."""
    stripped = line.strip()
    if stripped.startswith(("{", "[{")) or stripped == "[":
        return len(line) - len(line.lstrip())
    if line[:1] in ("", " ", "\t", '"') or not stripped.endswith(("{", "}")):
        return -1
    return line.rfind("{") if stripped.endswith("{") else line.find('{"')


def _lenient(text: str, start: int) -> tuple[Any, int]:
    """JSON with comments and the like, from one line to the first that closes it in the same column; where it ends."""
    line = text.rfind("\n", 0, start) + 1
    if text[line:start].strip() or text[start : start + 2] not in ("{\n", "{\r"):
        return None, 0
    closing = re.compile(rf"^{re.escape(text[line:start])}\}}", re.MULTILINE).search(
        text, start, start + LENIENT
    )
    if closing is None:
        return None, 0
    try:
        held = lenient_json.read(text[start : closing.end()].encode("utf-8", "replace"))
    except lenient_json.NotJson:
        return None, 0
    return held.value, closing.end()


def _decoded(decoder: json.JSONDecoder, text: str, start: int, least: int) -> int:
    """Where the object ends; 0 where there is none, or one with fewer than so many entries."""
    try:
        found, stop = decoder.raw_decode(text, start)
    except (ValueError, RecursionError):
        found, stop = _lenient(text, start)
    end = text.find("\n", stop)
    rest = text[stop : len(text) if end < 0 else end].strip()
    return stop if rest in ("", ",", ";") and _entries(found) >= least else 0


def _entries(found: Any) -> int:
    """How many there are, those of objects within it counted too: `{"meta_info": {…}}` is no less than what it holds."""
    if not isinstance(found, dict):
        return len(found) if isinstance(found, list) else 0
    within = [each for inner in found.values() for each in (inner if isinstance(inner, list) else [inner])]
    return len(found) + sum(len(inner) for inner in within if isinstance(inner, dict))
