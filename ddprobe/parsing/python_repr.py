"""Reads values as Python prints them: what servers write of their arguments into logs.

    ServerArgs(model_path='/m', tp_size=8, mode=<Mode.NULL: 'null'>, dtype=torch.bfloat16, sizes=[1, 2])
    → {"model_path": "/m", "tp_size": 8, "mode": "null", "dtype": "torch.bfloat16", "sizes": [1, 2]}

Nothing is evaluated. An object with named fields becomes a dictionary; what is no literal stays text. A text that ends
in the middle gives what stands before its end: of a dictionary or object within another what was read of it, for it is
set. `...`, `[truncated]` or the like in the place of an item says that some were left out.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Any

_DEEPEST = 48
_STRING = re.compile(r"[rbuRBU]{0,2}('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_][\w.]*")
_BARE = re.compile(r"[^\s,()\[\]{}<>'\"=]+")
_KEY = re.compile(r"[^\s,()\[\]{}<>'\"=:]+")
_ANGLE = re.compile(r"<([^<>]{0,400})>")
_REST = re.compile(r"[^,)\]}]*")
_SPACE = re.compile(r"\s*")
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_INTEGER = re.compile(r"[+-]?\d{1,18}\Z")
_FLOAT = re.compile(r"[+-]?(\d+\.\d*|\.\d+|\d+)([eE][+-]?\d+)?\Z")
_DOTS = ("...", "…")
_WORDS: dict[str, Any] = {"None": None, "True": True, "False": False}


@dataclass(frozen=True, slots=True)
class Read:
    """What was read, and whether the text held all of it."""

    value: Any
    whole: bool


class _Cut(Exception):
    """The text ended within a value."""


def read(text: str, at: int = 0) -> Read:
    """The value that begins there; of a container that is cut off, its whole items."""
    reader = _Reader(text, at)
    try:
        value = reader.value(0)
    except _Cut:
        return Read(reader.saved, False)
    return Read(value, not reader.left_out)


def fields(text: str, at: int = 0) -> Read:
    """Named fields up to a closing parenthesis or the end: `model='/m', dtype=torch.bfloat16`."""
    reader = _Reader(text, at)
    found: dict[str, Any] = {}
    reader.saved = found
    try:
        reader.items("", found, [], 0)
    except _Cut:
        return Read(found, False)
    return Read(found, not reader.left_out)


class _Reader:
    def __init__(self, text: str, at: int) -> None:
        self.text, self.at = text, at
        self.saved: Any = None
        """The outermost container: it holds what was read before the text ended."""
        self.left_out = False
        """Whoever pasted it put something else for some items."""
        self._inner: dict[str, Any] | None = None
        """Of the value of the outermost container's field that is being read: its own fields."""

    def value(self, depth: int, pattern: re.Pattern[str] = _BARE) -> Any:
        self._space()
        if depth > _DEEPEST or self.at >= len(self.text):
            raise _Cut
        start = self.text[self.at]
        if string := _STRING.match(self.text, self.at):
            self.at = string.end()
            return _literal(string.group())
        if start in "'\"":
            raise _Cut
        if start in _CLOSING:
            self.at += 1
            return self._container(start, depth)
        if start == "<" and (angle := _ANGLE.match(self.text, self.at)):
            self.at = angle.end()
            name, colon, inner = angle.group(1).partition(": ")
            return _literal(inner) if colon else name
        if (name_match := _NAME.match(self.text, self.at)) and self._next(name_match.end()) == "(":
            self.at = name_match.end() + 1
            return self._call(depth)
        bare = pattern.match(self.text, self.at) or _REST.match(self.text, self.at)
        word = bare.group().strip() if bare else ""
        self.at = bare.end() if bare and bare.end() > self.at else self.at + 1
        return _literal(word)

    def items(self, closing: str, named: dict[str, Any], plain: list[Any], depth: int) -> None:
        """Items up to the closing bracket (or the end, without one): `a=1` and `'a': 1` are named, `1` is plain."""
        while True:
            self._space()
            if self.at >= len(self.text):
                if closing:
                    raise _Cut
                return
            here = self.text[self.at]
            if here in ")]}":
                self.at += 1
                return
            if here == ",":
                self.at += 1
                continue
            first = self.value(depth + 1, _KEY if closing == "}" else _BARE)
            self._space()
            mark = self.text[self.at : self.at + 1]
            if mark == "=" or (mark == ":" and closing == "}"):
                self.at += 1
                self._field(str(first), named, closing, depth)
            elif isinstance(first, str) and first.endswith(_DOTS):
                self.left_out = True
            else:
                plain.append(first)

    def _field(self, name: str, named: dict[str, Any], closing: str, depth: int) -> None:
        if depth == 0:
            self._inner = None
        try:
            value = self.value(depth + 1)
        except _Cut:
            if depth == 0 and self._inner is not None:
                named[name] = self._inner
            raise
        # A number that the end of the text may have cut is not known, nor is one with dots behind it.
        if self.at >= len(self.text) and closing:
            raise _Cut
        if isinstance(value, str) and value.endswith(_DOTS) and self.text[self.at - 1] not in "'\"":
            self.left_out = True
            return
        named[name] = value

    def _container(self, opening: str, depth: int) -> Any:
        named: dict[str, Any] = {}
        plain: list[Any] = []
        self._begin(named if opening == "{" else plain, depth)
        self.items(_CLOSING[opening], named, plain, depth)
        if opening == "{":
            self._mixed(named, plain, depth)
            return named if named or not plain else plain
        return plain

    def _call(self, depth: int) -> Any:
        named: dict[str, Any] = {}
        plain: list[Any] = []
        self._begin(named, depth)
        self.items(")", named, plain, depth)
        self._mixed(named, plain, depth)
        if named:
            return named
        return plain[0] if len(plain) == 1 else plain

    def _begin(self, container: Any, depth: int) -> None:
        if self.saved is None:
            self.saved = container
        elif depth == 1 and isinstance(container, dict):
            self._inner = container

    def _mixed(self, named: dict[str, Any], plain: list[Any], depth: int) -> None:
        """Among fields with names nothing stands without one, unless in the place of some."""
        if depth == 0 and named and plain:
            self.left_out = True

    def _space(self) -> None:
        space = _SPACE.match(self.text, self.at)
        self.at = space.end() if space else self.at

    def _next(self, at: int) -> str:
        return self.text[at : at + 1]


def _literal(word: str) -> Any:
    """A word as the text, number or constant it is; else the word itself."""
    if word in _WORDS:
        return _WORDS[word]
    if _INTEGER.match(word):
        return int(word)
    if _FLOAT.match(word):
        return float(word)
    if _STRING.fullmatch(word):
        try:
            value = ast.literal_eval(word)
        except (ValueError, SyntaxError):
            return word.lstrip("rbuRBU")[1:-1]
        return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    return word
