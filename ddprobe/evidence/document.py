"""A file that somebody collected, as content without a name to trust."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from ddprobe.model import Fact

SAMPLE = 64 * 1024
WHOLE = 64 * 1024 * 1024
"""Bytes of a document that may be held at once (JSON, metrics); logs are read line by line."""
LONGEST_LINE = 1024 * 1024
BLOCK = 128 * 1024
"""Bytes of whole lines that are looked at together: few enough to stay in the processor's cache."""


@dataclass(frozen=True)
class Document:
    """A document: its key in the evidence, and a way to read it from the start as often as needed."""

    key: str
    open: Callable[[], Iterable[bytes]] = field(compare=False)
    """Pieces of any size."""
    large: bool = field(default=False, compare=False)
    """Read in one pass: its decode log as it stands, and what is left beside it (`evidence.beside`)."""

    def sample(self) -> str:
        """Its beginning, enough to see what it is."""
        return self.beginning(SAMPLE)

    def beginning(self, size: int) -> str:
        """So many bytes of it, as text."""
        return self._head(size).decode("utf-8", "replace")

    def whole(self) -> str | None:
        """All of it as text; None when it is too large to be held."""
        data = self._head(WHOLE + 1)
        return None if len(data) > WHOLE else data.decode("utf-8-sig", "replace")

    def lines(self) -> Iterator[str]:
        """Line by line without ends, each at most `LONGEST_LINE` bytes long, in one pass."""
        held = b""
        for piece in self.open():
            *full, held = (held + piece).split(b"\n")
            for line in full:
                yield line[:LONGEST_LINE].rstrip(b"\r").decode("utf-8", "replace")
            held = held[:LONGEST_LINE]
        if held:
            yield held.rstrip(b"\r").decode("utf-8", "replace")

    def blocks(self) -> Iterator[str]:
        """Whole lines, hundreds at a time: to search a log without taking every line of it in hand, in one pass.

        Where a block ends does not depend on the sizes of the pieces. Of a line that is too long the end is left out.
        """
        for block in self.raw_blocks():
            yield block.decode("utf-8", "replace")

    def nothing_else(self, lines: int) -> None:
        """Said by who reads the blocks: the latest has so many lines, and all of them are of decoding."""

    def raw_blocks(self) -> Iterator[bytes]:
        """The same, as bytes."""
        held, cut = b"", False
        for chunk in self._chunks():
            if cut:
                _, newline, chunk = chunk.partition(b"\n")
                cut = not newline
            at = chunk.rfind(b"\n") + 1
            if at:
                yield held + chunk[:at]
                held = chunk[at:]
            elif len(held) < LONGEST_LINE:
                held += chunk
            else:
                yield held[:LONGEST_LINE] + b"\n"
                held, cut = b"", True
        if held:
            yield held

    def _chunks(self) -> Iterator[bytes]:
        """Its bytes, `BLOCK` at a time."""
        held = b""
        for piece in self.open():
            piece = held + piece if held else piece
            end = len(piece) - len(piece) % BLOCK
            for at in range(0, end, BLOCK):
                yield piece[at : at + BLOCK]
            held = piece[end:]
        if held:
            yield held

    def _head(self, size: int) -> bytes:
        found = bytearray()
        for piece in self.open():
            found += piece
            if len(found) >= size:
                break
        return bytes(found[:size])


def of_bytes(key: str, data: bytes) -> Document:
    """A document that is held already."""
    return Document(key, lambda: itertools.chain((data,)))


@dataclass(frozen=True, slots=True)
class Found:
    """What a recogniser made of a document."""

    what: str
    """In a few words, for the person: `SGLang decode log, 412 lines`."""
    facts: tuple[Fact, ...]


Recogniser = Callable[[Document, str], Found | None]
"""(document, its sample) → what it is, or None: it is something else. One document may be recognised by several (a log
holds launch arguments, start-up warnings and decode lines)."""
