"""Reads the YAML that people write for containers: blocks by indentation, flow lists, scalars over several lines.

    services:                         → [{"services": {"llm": {"command": ["python3", "-m", …],
      llm:                                                     "environment": ["SGLANG_X=1"]}}}]
        command: [python3, -m, …]
        environment:
          - SGLANG_X=1

No anchors, tags or types: every scalar is text. What it does not understand it passes over: it is read from pasted text,
of which a part may be missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

LONGEST = 256 * 1024
DEEPEST = 24
_KEY = re.compile(r"""("[^"\n]{1,200}"|'[^'\n]{1,200}'|[A-Za-z_][\w.$/-]{0,199})\s*:(?:\s+|\Z)""")
_BLOCK = re.compile(r"[|>][+-]?\d?[+-]?\s*(?:\#.*)?\Z")
_COMMENT = re.compile(r"\s+#.*\Z")
_FLOW = re.compile(r"""\s*("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^,\[\]{}"']+)\s*""")
_ENDS = {"[": "]", "{": "}"}


class Block(dict[str, Any]):
    """A mapping, and the line in which it begins."""

    line: int = 0


@dataclass(slots=True)
class _Line:
    indent: int
    text: str
    number: int


def read(text: str) -> Iterator[Any]:
    """The blocks of a text, one after the other."""
    lines = [
        _Line(len(line) - len(line.lstrip(" ")), line.strip(), number)
        for number, line in enumerate(text[:LONGEST].expandtabs(2).splitlines(), 1)
        if line.strip() and not line.lstrip().startswith("#") and line.strip() not in ("---", "...")
    ]
    at = 0
    while at < len(lines):
        value, after = _block(lines, at, 0)
        yield value
        at = max(after, at + 1)


def _block(lines: list[_Line], at: int, deep: int) -> tuple[Any, int]:
    """The value that begins in that line, and the line behind it."""
    first = lines[at]
    if deep > DEEPEST:
        return None, at + 1
    if first.text == "-" or first.text.startswith("- "):
        return _list(lines, at, deep)
    if _KEY.match(first.text):
        return _mapping(lines, at, deep)
    return _scalar(first.text), at + 1


def _list(lines: list[_Line], at: int, deep: int) -> tuple[list[Any], int]:
    indent, found = lines[at].indent, []
    while at < len(lines) and lines[at].indent == indent and (lines[at].text + " ").startswith("- "):
        line = lines[at]
        rest = line.text[1:].lstrip()
        inner = indent + len(line.text) - len(rest)
        if not rest:
            value, at = _nested(lines, at + 1, indent, deep)
        elif _KEY.match(rest) or rest.startswith("- "):
            lines[at] = _Line(inner, rest, line.number)
            value, at = _block(lines, at, deep + 1)
        else:
            value, at = _value(lines, at, rest, indent)
        found.append(value)
    return found, at


def _mapping(lines: list[_Line], at: int, deep: int) -> tuple[Block, int]:
    indent, found = lines[at].indent, Block()
    found.line = lines[at].number
    while at < len(lines) and lines[at].indent == indent:
        key = _KEY.match(lines[at].text)
        if key is None:
            break
        name, rest = key[1].strip("\"'"), lines[at].text[key.end() :].strip()
        if not rest or rest.startswith("#"):
            value, at = _nested(lines, at + 1, indent, deep, beside=True)
        else:
            value, at = _value(lines, at, rest, indent)
        found[name] = value
    return found, at


def _nested(lines: list[_Line], at: int, indent: int, deep: int, *, beside: bool = False) -> tuple[Any, int]:
    """What stands deeper than a line without a value; a list may stand right below its key."""
    if at >= len(lines):
        return None, at
    deeper = lines[at].indent > indent
    if deeper or (beside and lines[at].indent == indent and (lines[at].text + " ").startswith("- ")):
        return _block(lines, at, deep + 1)
    return None, at


def _value(lines: list[_Line], at: int, rest: str, indent: int) -> tuple[Any, int]:
    """The value behind a key or a dash: a scalar, its further lines, or a flow list over as many lines as it takes."""
    folds = _BLOCK.match(rest)
    held = [] if folds else [rest]
    after = at + 1
    while after < len(lines) and (
        lines[after].indent > indent
        or (rest[0] in _ENDS and not _closed(held) and lines[after].text[:1] in "]}")
    ):
        held.append(lines[after].text)
        after += 1
    if folds:
        return ("\n" if rest[0] == "|" else " ").join(held), after
    joined = " ".join(_COMMENT.sub("", one) if rest[0] in _ENDS else one for one in held)
    if rest[0] in _ENDS:
        flow, _ = _flow(joined, 0, 0)
        return flow, after
    return _scalar(joined), after


def _closed(held: list[str]) -> bool:
    text = " ".join(held)
    return text.count("[") + text.count("{") <= text.count("]") + text.count("}")


def _flow(text: str, at: int, deep: int) -> tuple[Any, int]:
    """`[a, "b", {c: d}]` from that place on, and where it ends."""
    opens = text[at]
    items: list[Any] = []
    found = Block()
    name = ""
    at += 1
    while at < len(text) and text[at] != _ENDS[opens]:
        if text[at] in ", \n":
            at += 1
            continue
        if text[at] in _ENDS and deep < DEEPEST:
            value, at = _flow(text, at, deep + 1)
        else:
            token = _FLOW.match(text, at)
            if token is None:
                at += 1
                continue
            raw, at = token[1].strip(), token.end()
            if opens == "{" and not name:
                bare, colon, behind = raw.partition(":") if raw[:1] not in "\"'" else (raw, "", "")
                name = bare.strip().strip("\"'")
                at += text[at : at + 1] == ":"
                if not colon or not behind.strip():
                    continue
                raw = behind.strip()
            value = _scalar(raw)
        if opens == "{":
            found[name], name = value, ""
        else:
            items.append(value)
    return (found if opens == "{" else items), at + 1


def _scalar(text: str) -> str:
    """A scalar without its quotes, or without the comment behind it."""
    text = text.strip()
    quote = text[:1]
    if quote in ("'", '"'):
        end = text.rfind(quote)
        if end > 0:
            inner = text[1:end]
            return inner.replace("''", "'") if quote == "'" else inner.replace('\\"', '"')
    return _COMMENT.sub("", text)
