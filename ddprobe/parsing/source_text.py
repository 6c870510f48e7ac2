"""A source file's bytes as text and lines, counted as `sed -n` and `grep -n` count them.

Only a newline ends a line: not a form feed, a lone carriage return or any of the separators that `splitlines` knows.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

SNIFF = 8192
"""Bytes looked at to tell text from binary: a NUL among them means binary, as for grep and git."""

_COOKIE = re.compile(rb"[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
# Only encodings in which every ASCII byte is its character. Others would move the line ends.
_ASCII_COMPATIBLE = re.compile(
    r"(utf-?8(-sig)?|(us-)?ascii|latin-?1|l1|iso-?8859-\d+|cp125\d|windows-125\d|koi8-[ru]"
    r"|gbk|gb2312|gb18030|big5|euc-(jp|kr|cn)|shift-jis|cp93[26]|cp9(49|50))\Z"
)
_BLANK_OR_COMMENT = re.compile(rb"[ \t\f]*(#.*)?\r?\Z")


def encoding(data: bytes) -> str:
    """The encoding that the first two lines declare (PEP 263), or UTF-8."""
    for line in data[:1000].split(b"\n", 2)[:2]:
        match = _COOKIE.match(line)
        if match is not None:
            name = match[1].decode("ascii").lower().replace("_", "-")
            if _ASCII_COMPATIBLE.match(name):
                try:
                    return codecs.lookup(name).name
                except LookupError:
                    return "utf-8"
        if not _BLANK_OR_COMMENT.match(line):
            break
    return "utf-8"


def is_binary(data: bytes) -> bool:
    return b"\0" in data[:SNIFF]


def decode(data: bytes, known: str = "") -> str:
    """The text, with exactly as many newlines as the bytes have. What does not decode becomes U+FFFD.

    `known` is the encoding, for a piece from the middle of a file.
    """
    text = data.decode(known or encoding(data), "replace")
    return text if text.count("\n") == data.count(b"\n") else data.decode("latin-1")


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of a file, or of as much of it as came, each with its own line end."""

    kept: tuple[str, ...]
    size: int
    """Bytes that came."""
    whole: bool = True
    """False when the file goes on after these lines; then the last of them may be half a line."""

    @property
    def complete(self) -> int:
        """How many lines are here from their beginning to their end."""
        if self.whole or (self.kept and self.kept[-1].endswith("\n")):
            return len(self.kept)
        return max(0, len(self.kept) - 1)

    def text(self, first: int, last: int) -> str:
        """Lines `first` to `last` (counted from 1), as far as they are here: what `sed -n 'first,lastp'` prints."""
        return "".join(self.kept[first - 1 : last])


def lines(data: bytes, whole: bool = True, known: str = "") -> Lines:
    """The bytes in lines."""
    parts = decode(data, known).split("\n")
    ended = [f"{part}\n" for part in parts[:-1]]
    return Lines(tuple([*ended, parts[-1]] if parts[-1] else ended), len(data), whole)
