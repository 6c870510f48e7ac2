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
from dataclasses import dataclass, field

from ddprobe.evidence import prompts
from ddprobe.evidence.document import Document
from ddprobe.facts import LogEvent
from ddprobe.model import Cite, Fact

HEAD = 6 * 1024 * 1024
"""Bytes of other lines that are kept from the beginning, where servers say how they were started, and …"""
TAIL = 2 * 1024 * 1024
"""… from the end, where they say how they died."""
DECODES = (b"Decode batch", b"SpecDecoding metrics", b"draft acceptance")
BULK = (*DECODES, b"Prefill batch", b"HTTP/1.1", b"slot ")
"""Lines with one of these come by the million, and are the decode log's or nobody's."""
PASTED = 2 * 1024 * 1024
"""And so many from between: of what looks pasted in, a file with a header, JSON over several lines, or a start."""
LONGEST_PASTED = 256 * 1024
KEPT = 20
"""Of those that decode the first are kept after each start: a server that decodes for longer than a warm-up is up."""
_STARTS = (b"server_args=", b"non-default args", b": initializing")
_OPENS = re.compile(
    rb"\{\s*\Z|(?:==>|---|===|\#\#|\#\s*file)[^\n]{1,250}\Z|[^\n]{0,60}[$\#]\ (?:cat|head|tail|docker|ps)\ "
)
_CLOSES = re.compile(rb"\}\s*\Z")
_SERVERS = (b"sglang", b"vllm", b"llama-server")
_AT = re.compile(r"\b(lines?) (\d+)(?:(-)(\d+))?")


@dataclass(frozen=True)
class _Passing(Document):
    """A document whose blocks are looked at for what else they hold."""

    beside: Beside = field(kw_only=True, compare=False)

    def blocks(self) -> Iterator[str]:
        for block in self.beside.blocks():
            yield block.decode("utf-8", "replace")

    def nothing_else(self, lines: int) -> None:
        self.beside.settled = lines


class Beside:
    """A large document as it streams by, and the other lines that it holds."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._whole = False
        self._begin()

    def _begin(self) -> None:
        self._head: list[tuple[int, bytes]] = []
        self._tail: deque[tuple[int, bytes]] = deque()
        self._between: list[tuple[int, bytes]] = []
        self._head_size = self._tail_size = self._between_size = self._lines = 0
        self._pasting = 0
        """Bytes that what is pasted in here may still have."""
        self._decoding = 0
        """Lines of decoding that were kept since the last start."""
        self.settled = 0
        """Lines of the latest block, where all of them are of decoding."""
        self.left_out = 0
        """Bytes of other lines that are not in `rest`."""
        self._numbers: list[int] = []

    def document(self) -> Document:
        """The document; its blocks, read to their end for the first time, leave `rest` behind."""
        return _Passing(self._document.key, self._document.open, large=True, beside=self)

    def blocks(self) -> Iterator[bytes]:
        """The blocks of the document, each looked at once its reader comes for the next."""
        self._begin()
        for raw in self._document.raw_blocks():
            block = prompts.cleaned(raw)
            self.settled = 0
            yield block
            self._keep(block)
        self._whole = True

    def rest(self, mask: Callable[[bytes], bytes]) -> bytes:
        """The other lines, secrets masked; reads the document where nobody has."""
        if not self._whole:
            for _ in self.blocks():
                pass
        told: list[bytes] = []
        self._numbers = []
        expected = 1
        for number, line in (*self._head, *self._between, *self._tail):
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

    def _keep(self, data: bytes) -> None:
        """Whole lines; only the very last may lack its end."""
        if self._decoding >= KEPT and self.settled:
            self._lines += self.settled  # who reads the blocks has looked at each line
            return
        lines = data.split(b"\n")
        if not lines[-1]:
            del lines[-1]
        for number, line in enumerate(lines, self._lines + 1):
            if any(one in line for one in BULK):
                if self._decoding >= KEPT or not any(one in line for one in DECODES):
                    continue
                self._decoding += 1
            elif any(one in line for one in _STARTS):
                self._decoding = 0
            self._take(number, line)
        self._lines += len(lines)

    def _take(self, number: int, line: bytes) -> None:
        if self._head_size + len(line) <= HEAD and not self._tail:
            self._head.append((number, line))
            self._head_size += len(line) + 1
            return
        self._tail.append((number, line))
        self._tail_size += len(line) + 1
        while self._tail_size > TAIL:
            number, gone = self._tail.popleft()
            self._tail_size -= len(gone) + 1
            if not self._looks_pasted(number, gone):
                self.left_out += len(gone) + 1

    def _looks_pasted(self, number: int, line: bytes) -> bool:
        """Keeps a line that would be left out, where it is of something that somebody pasted in."""
        if self._between_size > PASTED:
            return False
        opens = not self._pasting and _OPENS.match(line)
        if opens:
            self._pasting = LONGEST_PASTED
        if not self._pasting and not any(one in line for one in (*_STARTS, *_SERVERS)):
            return False
        self._pasting = 0 if _CLOSES.match(line) else max(0, self._pasting - len(line) - 1)
        self._between.append((number, line))
        self._between_size += len(line) + 1
        return True
