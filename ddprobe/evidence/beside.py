"""A log too large to be held: its decode lines pass by once, and what stands beside them is kept within bounds.

A gigabyte of log is decode lines, prefill lines and access lines by the million, and a few megabytes of everything else:
arguments, warnings, crashes. Who reads the decode lines pulls the log through once; the rest falls out at the side, with
a mark where lines were left out, and each line's number in the log.
"""

from __future__ import annotations

import dataclasses
import re
from collections import deque
from collections.abc import Callable, Iterator

from ddprobe.evidence.document import LONGEST_LINE, Document
from ddprobe.facts import LogEvent
from ddprobe.model import Cite, Fact

HEAD = 6 * 1024 * 1024
"""Bytes of other lines that are kept from the beginning, where servers say how they were started, and …"""
TAIL = 2 * 1024 * 1024
"""… from the end, where they say how they died."""
BULK = (
    b"Decode batch",
    b"Prefill batch",
    b"SpecDecoding metrics",
    b"draft acceptance",
    b"HTTP/1.1",
    b"slot ",
)
"""Lines with one of these come by the million, and are the decode log's or nobody's. The first of them is kept: a server
that decodes has started."""
_AT = re.compile(r"\b(lines?) (\d+)(?:(-)(\d+))?")


class Beside:
    """A large document as it streams by, and the other lines that it holds."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._whole = False
        self._begin()

    def _begin(self) -> None:
        self._head: list[tuple[int, bytes]] = []
        self._tail: deque[tuple[int, bytes]] = deque()
        self._head_size = self._tail_size = self._lines = 0
        self._bulk = False
        self.left_out = 0
        """Bytes of other lines that are not in `rest`."""
        self._numbers: list[int] = []

    def document(self) -> Document:
        """The document; read to its end for the first time, it leaves `rest` behind."""
        return Document(self._document.key, self._pieces, large=True)

    def rest(self, mask: Callable[[bytes], bytes]) -> bytes:
        """The other lines, secrets masked; reads the document where nobody has."""
        if not self._whole:
            for _ in self._pieces():
                pass
        told: list[bytes] = []
        self._numbers = []
        expected = 1
        for number, line in (*self._head, *self._tail):
            if number != expected:
                told.append(b"[ddprobe: lines %d to %d are not kept]" % (expected, number - 1))
                self._numbers.append(expected)
            told.append(line)
            self._numbers.append(number)
            expected = number + 1
        if expected <= self._lines:
            told.append(b"[ddprobe: lines %d to %d are not kept]" % (expected, self._lines))
            self._numbers.append(expected)
        masked = mask(b"".join(line + b"\n" for line in told))
        if masked.count(b"\n") != len(told):
            self._numbers = []  # a secret of several lines: numbers are those of what is kept
        return masked

    def numbered(self, fact: Fact) -> Fact:
        """A fact from `rest`, its line numbers those of the log."""
        cites = tuple(Cite(cite.artefact, _AT.sub(self._renumbered, cite.at)) for cite in fact.source)
        if isinstance(fact, LogEvent):
            return dataclasses.replace(fact, source=cites, line=self._number(fact.line))
        return dataclasses.replace(fact, source=cites)

    def _renumbered(self, found: re.Match[str]) -> str:
        word, first, dash, last = found.groups()
        second = f"{dash}{self._number(int(last))}" if dash else ""
        return f"{word} {self._number(int(first))}{second}"

    def _number(self, number: int) -> int:
        return self._numbers[number - 1] if 0 < number <= len(self._numbers) else number

    def _pieces(self) -> Iterator[bytes]:
        if self._whole:
            yield from self._document.open()
            return
        self._begin()
        held = b""
        for piece in self._document.open():
            data = held + piece
            end = data.rfind(b"\n") + 1
            self._keep(data[:end])
            held = data[end:][:LONGEST_LINE]
            yield piece
        if held:
            self._keep(held + b"\n")
        self._whole = True

    def _keep(self, data: bytes) -> None:
        """Whole lines, each with its end."""
        first, second, *others = BULK
        lines = data.count(b"\n")
        if self._bulk and data.count(first) + data.count(second) == lines:
            self._lines += lines  # each line is one of them: much faster than to look at every line
            return
        for number, line in enumerate(data.split(b"\n")[:-1], self._lines + 1):
            if first in line or second in line or any(one in line for one in others):
                if self._bulk:
                    continue
                self._bulk = True
            self._take(number, line)
        self._lines += lines

    def _take(self, number: int, line: bytes) -> None:
        if self._head_size + len(line) <= HEAD and not self._tail:
            self._head.append((number, line))
            self._head_size += len(line) + 1
            return
        self._tail.append((number, line))
        self._tail_size += len(line) + 1
        while self._tail_size > TAIL:
            _, gone = self._tail.popleft()
            self._tail_size -= len(gone) + 1
            self.left_out += len(gone) + 1
