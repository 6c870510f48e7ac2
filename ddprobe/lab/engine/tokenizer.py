"""Text to token ids and back, for a vocabulary of any size: whole words where it can, bytes where it must.

The id of a piece is a hash of its letters, so there is no vocabulary to store and the ids are the same in every run.
Ids 0 to 255 are the bytes.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable

BYTES = 256
_PIECE = re.compile(r" ?[A-Za-z]{1,16}| ?[0-9]{1,3}|\n+| +(?= )| ?[!-/:-@\[-`{-~]|[\s\S]")
_ONSETS = (
    "b",
    "br",
    "d",
    "dr",
    "f",
    "g",
    "gl",
    "h",
    "k",
    "l",
    "m",
    "n",
    "p",
    "pr",
    "r",
    "s",
    "st",
    "t",
    "tr",
    "v",
)
_NUCLEI = ("a", "e", "i", "o", "u", "ai", "ea", "ou")
_CODAS = ("", "n", "r", "s", "l", "m", "t", "nd")


class Tokenizer:
    """Words with the blank before them, short numbers, signs; anything else as its UTF-8 bytes."""

    def __init__(self, ordinary: int) -> None:
        """`ordinary`: ids from here on are special tokens, or none at all."""
        self.ordinary = ordinary
        self._ids: dict[str, tuple[int, ...]] = {}
        self._texts: dict[int, bytes] = {number: bytes([number]) for number in range(BYTES)}
        self._words: dict[int, bytes] = {}
        """Made up for ids that no text was given."""

    def encode(self, text: str) -> list[int]:
        """The ids of a text, no special token among them."""
        known = self._ids
        ids: list[int] = []
        for piece in _PIECE.findall(text):
            found = known.get(piece)
            ids += found if found is not None else self._learn(piece)
        return ids

    def decode(self, ids: Iterable[int]) -> str:
        """The text; an id that no text here was ever given gets a word of its own."""
        texts, words = self._texts, self._words
        return b"".join(
            [texts.get(number) or words.get(number) or self._word(number) for number in ids]
        ).decode("utf-8", "replace")

    def _word(self, number: int) -> bytes:
        self._words[number] = _word(number)
        return self._words[number]

    def _learn(self, piece: str) -> tuple[int, ...]:
        data = piece.encode("utf-8", "surrogatepass")
        whole = len(data) > 1 and piece.isascii()
        ids = (BYTES + zlib.crc32(data) % (self.ordinary - BYTES),) if whole else tuple(data)
        # Two pieces may share an id; the first one seen is what it says.
        if whole:
            self._texts.setdefault(ids[0], data)
        self._ids[piece] = ids
        return ids


def _word(number: int) -> bytes:
    """A pronounceable word for an id."""
    rest, syllables = number, []
    for _ in range(2):
        rest, onset = divmod(rest, len(_ONSETS))
        rest, nucleus = divmod(rest, len(_NUCLEI))
        rest, coda = divmod(rest, len(_CODAS))
        syllables.append(_ONSETS[onset] + _NUCLEI[nucleus] + _CODAS[coda])
    return f" {''.join(syllables)}".encode()
