"""Reads JSON as people leave it on hosts, and says what a strict reader would have refused.

    {"sliding_window": 2048,  // trained so
     "rope_theta": NaN, }

Accepted beyond the standard: NaN and Infinity, `//`, `/* */` and `#` comments, trailing commas, single quotes, Python's
True, False and None, control characters in strings, a byte order mark, UTF-16 and UTF-32. What is no JSON at all is
named: a git-lfs pointer, a web page, an empty file, or the line and column of the first thing that makes no sense.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from ddprobe.parsing import bounded_json
from ddprobe.parsing.bounded_json import MAX_DEPTH


class NotJson(ValueError):
    """Why this is no JSON, in a sentence without the file's name."""


@dataclass(frozen=True, slots=True)
class Document:
    """The value, and what a person should know of how it was written."""

    value: Any
    notes: tuple[str, ...] = ()
    strict: bool = True
    """False when the engine's own reader (strict UTF-8 JSON) refuses the file."""


def read(data: bytes) -> Document:
    """The document in these bytes. Raises `NotJson`."""
    text, encoding_notes = _decode(data)
    _recognise(text)
    notes: list[str] = list(encoding_notes)
    twice: dict[str, int] = {}

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in items:
            if key in found:
                twice[key] = twice.get(key, 1) + 1
            found[key] = value
        return found

    try:
        value = bounded_json.loads(text, pairs)
        liberties: tuple[str, ...] = ()
    except ValueError:
        twice.clear()
        value, liberties = _Reader(text, pairs).document()
    notes += liberties
    notes += [
        f"the key {_shown(key)} stands {count} times in one object; the last counts"
        for key, count in list(twice.items())[:8]
    ]
    return Document(value, tuple(notes), strict=not encoding_notes and not liberties)


def _decode(data: bytes) -> tuple[str, tuple[str, ...]]:
    """The text, and what is unusual about its encoding."""
    if not data.strip():
        raise NotJson("is empty" if not data else f"holds nothing but {len(data)} bytes of white space")
    if not data.strip(b"\0"):
        raise NotJson(f"holds nothing but {len(data)} zero bytes (a download that never finished?)")
    encoding = json.detect_encoding(data)
    text = data.decode(encoding, "replace")
    notes = []
    if encoding == "utf-8-sig":
        notes.append("begins with a byte order mark")
    elif encoding != "utf-8":
        notes.append(f"is {encoding.upper()}, not UTF-8")
    text = text.removeprefix("\ufeff")
    if "\ufffd" in text and "\ufffd".encode() not in data:
        notes.append("holds bytes that are not valid in its encoding")
    return text, tuple(notes)


def _recognise(text: str) -> None:
    """Raise `NotJson` for what is often found in a config file's place."""
    head = text[:2048].lstrip()
    if head.startswith("version https://git-lfs.github.com/spec/"):
        size = re.search(r"^size (\d+)", head, re.MULTILINE)
        real = f" of {int(size[1]):,} bytes" if size else ""
        raise NotJson(f"is a git-lfs pointer: the file{real} itself was never fetched (`git lfs pull`)")
    if re.match(r"<(!doctype|html|head|body|\?xml)\b", head, re.IGNORECASE):
        title = re.search(r"<title>([^<]{1,120})", head, re.IGNORECASE)
        said = f" ({' '.join(title[1].split())})" if title else ""
        raise NotJson(
            f"is a web page, not JSON{said}: a download that was answered by an error or a log-in page"
        )


def _shown(value: str) -> str:
    """A piece of the file as it may stand in a sentence."""
    short = value if len(value) <= 40 else value[:40] + "…"
    return json.dumps(short, ensure_ascii=False)


_TOKEN = re.compile(
    r"""(?P<skip>[ \t\r\n\f\v\u00a0\ufeff]+)
    |(?P<comment>//[^\n]*|\#[^\n]*|/\*(?s:.*?)\*/)
    |(?P<string>"[^"\\]*(?:\\(?s:.)[^"\\]*)*"|'[^'\\]*(?:\\(?s:.)[^'\\]*)*')
    |(?P<number>[-+]?(?:(?:\d+(?:_\d+)*)(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?(?![\w.]))
    |(?P<word>[-+]?[A-Za-z_$][\w$]*)
    |(?P<mark>[{}\[\]:,])""",
    re.VERBOSE,
)
_WORDS: dict[str, Any] = {
    "true": True,
    "false": False,
    "null": None,
    "True": True,
    "False": False,
    "None": None,
    "NaN": float("nan"),
    "nan": float("nan"),
    "Infinity": float("inf"),
    "+Infinity": float("inf"),
    "-Infinity": float("-inf"),
    "inf": float("inf"),
    "-inf": float("-inf"),
}
_PLAIN_WORDS = frozenset({"true", "false", "null", "NaN", "Infinity", "-Infinity"})
_PLAIN_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?\Z")


class _Reader:
    """Reads token by token with a stack of its own, so that no nesting can exhaust the interpreter's."""

    def __init__(self, text: str, pairs: Any) -> None:
        self.text = text
        self.pairs = pairs
        self.at = 0
        self.start = 0
        self.liberties: dict[str, None] = {}

    def document(self) -> tuple[Any, tuple[str, ...]]:
        kind, token = self._next()
        if kind == "end":
            raise NotJson("holds nothing but comments")
        value = self._value(kind, token)
        if self._next()[0] != "end":
            raise self._wrong("more after the end of the value")
        return value, tuple(self.liberties)

    def _value(self, kind: str, token: str) -> Any:
        """A whole value that begins with this token."""
        stack: list[tuple[str, list[Any], list[str]]] = []
        while True:
            if kind == "mark" and token in "{[":
                if len(stack) >= MAX_DEPTH:
                    raise self._wrong(f"nested deeper than {MAX_DEPTH} levels")
                stack.append((token, [], []))
                kind, token = self._next()
                if token == {"{": "}", "[": "]"}[stack[-1][0]] and kind == "mark":
                    done = self._close(stack)
                else:
                    if stack[-1][0] == "{":
                        self._key(stack[-1], kind, token)
                        kind, token = self._next()
                    continue
            else:
                done = self._scalar(kind, token)
            while True:
                if not stack:
                    return done
                bracket, values, _ = stack[-1]
                values.append(done)
                kind, token = self._next()
                closing = "}" if bracket == "{" else "]"
                if kind == "mark" and token == ",":
                    kind, token = self._next()
                    if kind == "mark" and token == closing:
                        self.liberties["has a comma before a closing bracket"] = None
                    else:
                        if bracket == "{":
                            self._key(stack[-1], kind, token)
                            kind, token = self._next()
                        break
                if kind != "mark" or token != closing:
                    raise self._wrong(f"a comma or {closing} was expected")
                done = self._close(stack)

    def _close(self, stack: list[tuple[str, list[Any], list[str]]]) -> Any:
        bracket, values, keys = stack.pop()
        return self.pairs(list(zip(keys, values, strict=True))) if bracket == "{" else values

    def _key(self, frame: tuple[str, list[Any], list[str]], kind: str, token: str) -> None:
        if kind == "string":
            frame[2].append(self._string(token))
        elif kind == "word":
            self.liberties["has keys without quotes"] = None
            frame[2].append(token)
        else:
            raise self._wrong("a key in quotes was expected")
        if self._next() != ("mark", ":"):
            raise self._wrong(f"a colon was expected after the key {_shown(frame[2][-1])}")

    def _scalar(self, kind: str, token: str) -> Any:
        if kind == "string":
            return self._string(token)
        if kind == "number":
            return self._number(token)
        if kind == "word" and token in _WORDS:
            if token not in _PLAIN_WORDS:
                self.liberties[f"spells a value {token}"] = None
            return _WORDS[token]
        raise self._wrong("a value was expected")

    def _number(self, token: str) -> int | float:
        if not _PLAIN_NUMBER.match(token):
            self.liberties[f"writes a number as {_shown(token)}"] = None
        plain = token.replace("_", "")
        if re.fullmatch(r"[-+]?\d{1,400}", plain):
            return int(plain)
        return float(plain)

    def _string(self, token: str) -> str:
        if token[0] == "'":
            self.liberties["has strings in single quotes"] = None
            token = '"' + token[1:-1].replace("\\'", "'").replace('"', '\\"') + '"'
        try:
            return str(json.loads(token))
        except ValueError:
            pass
        self.liberties["has control characters or unknown escapes in a string"] = None
        try:
            return str(json.loads(token, strict=False))
        except ValueError:
            return token[1:-1]

    def _next(self) -> tuple[str, str]:
        while True:
            if self.at >= len(self.text):
                self.start = self.at
                return "end", ""
            found = _TOKEN.match(self.text, self.at)
            self.start = self.at
            if found is None:
                raise self._wrong("nothing that JSON knows stands there")
            self.at = found.end()
            kind = found.lastgroup or ""
            if kind == "comment":
                self.liberties["has comments"] = None
            elif kind != "skip":
                return kind, found.group()

    def _wrong(self, why: str) -> NotJson:
        line = self.text.count("\n", 0, self.start) + 1
        column = self.start - (self.text.rfind("\n", 0, self.start) + 1) + 1
        near = self.text[self.start : self.start + 24]
        seen = f" (there: {_shown(near)})" if near else " (the file ends there: was it cut off?)"
        return NotJson(f"is not JSON: line {line}, column {column}: {why}{seen}")
