"""Splits what people paste of command lines into commands and words: a shell's, `ps` output, scripts, unit files.

    CUDA_VISIBLE_DEVICES=0 python -m sglang.launch_server \\
        --model-path /m --json-model-override-args '{"a": 1}' 2>&1 | tee log
    → ("CUDA_VISIBLE_DEVICES=0", "python", "-m", …, '{"a": 1}'), ("tee", "log")

`ps` prints JSON without its quotes around: braces that begin a word are kept up to their match, with all that is inside.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator

_OPERATORS = frozenset("|&;<>")
_PLAIN = re.compile(r"[^\s'\"\\|&;<>{}\[\]]+")
_PLAIN_INSIDE = re.compile(r"[^\s'\"\\|&;<>]+")
_ESCAPED = re.compile(r"\\([\"\\$`\n])")
_BRACES = {"{": "}", "[": "]"}
LONGEST = 256 * 1024


def logical_lines(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Lines with their numbers; a backslash at the end goes on, and so does an indented line that begins with a flag."""
    held, first, joined = "", 0, False
    for number, line in enumerate(lines, 1):
        more = held and (joined or (line[:1] in " \t" and line.lstrip().startswith("-") and " -" in held))
        if held and not more:
            yield first, held
            held = ""
        first = first if held else number
        stripped = line.rstrip()
        joined = stripped.endswith("\\") and not stripped.endswith("\\\\")
        body = stripped[:-1] if joined else stripped
        held = f"{held} {body.strip()}" if held else body
        if len(held) > LONGEST:
            yield first, held[:LONGEST]
            held, joined = "", False
    if held:
        yield first, held


def commands(line: str) -> tuple[tuple[str, ...], ...]:
    """The commands of a line, each as its words; operators separate them and are dropped."""
    found: list[tuple[str, ...]] = []
    words: list[str] = []
    at, end = 0, min(len(line), LONGEST)
    while at < end:
        here = line[at]
        if here.isspace():
            at += 1
        elif here in _OPERATORS:
            if here in "<>&" and words and words[-1].isdigit() and line[at - 1 : at].isdigit():
                words.pop()  # the 2 of 2>&1
            if words:
                found.append(tuple(words))
            words = []
            at += 1
        else:
            word, at = _word(line, at, end)
            words.append(word)
    if words:
        found.append(tuple(words))
    return tuple(found)


def unclosed(line: str) -> bool:
    """Whether a quote in it is never closed: the line ends too early."""
    try:
        shlex.split(line[:LONGEST])
    except ValueError:
        return True
    return False


def _word(line: str, at: int, end: int) -> tuple[str, int]:
    """The word that begins there, unquoted, and where it ends."""
    parts: list[str] = []
    while at < end and not line[at].isspace() and line[at] not in _OPERATORS:
        here = line[at]
        if here == "'":
            close = line.find("'", at + 1)
            close = end if close < 0 else close
            parts.append(line[at + 1 : close])
            at = close + 1
        elif here == '"':
            close = _closing_quote(line, at + 1, end)
            parts.append(_ESCAPED.sub(r"\1", line[at + 1 : close]))
            at = close + 1
        elif here == "\\":
            parts.append(line[at + 1 : at + 2])
            at += 2
        elif here in _BRACES and (not parts or parts[-1].endswith("=")):
            close = _closing_brace(line, at, end)
            parts.append(line[at:close])
            at = close
        else:
            plain = (_PLAIN_INSIDE if here in "{}[]" else _PLAIN).match(line, at)
            stop = plain.end() if plain else at + 1
            parts.append(line[at:stop])
            at = stop
    return "".join(parts), at


def _closing_quote(line: str, at: int, end: int) -> int:
    while at < end and line[at] != '"':
        at += 2 if line[at] == "\\" else 1
    return min(at, end)


def _closing_brace(line: str, at: int, end: int) -> int:
    """Behind the bracket that closes this one, texts within skipped; one character on where none does."""
    closes: list[str] = []
    here = at
    while here < end:
        char = line[here]
        if char == '"':
            here = _closing_quote(line, here + 1, end)
        elif char in _BRACES:
            closes.append(_BRACES[char])
        elif closes and char == closes[-1]:
            closes.pop()
            if not closes:
                return here + 1
        here += 1
    return at + 1
