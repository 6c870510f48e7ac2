"""What an XID means, as NVIDIA's catalogue of them says, in short."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

SOURCE = "NVIDIA XID errors (docs.nvidia.com/deploy/xid-errors)"


@dataclass(frozen=True, slots=True)
class Meaning:
    """`level` is `gone` (the card must be reset or the host rebooted), `hardware`, `watch` or `program`."""

    level: str
    text: str


CATALOGUE: Mapping[int, Meaning] = {
    13: Meaning("program", "graphics engine exception, mostly a program's fault"),
    31: Meaning("program", "memory page fault, mostly a program's fault"),
    32: Meaning("watch", "corrupted push buffer"),
    38: Meaning("watch", "driver firmware error"),
    43: Meaning("program", "the card stopped a program's work"),
    45: Meaning("program", "a program was cleaned up after another error"),
    48: Meaning("hardware", "double-bit ECC error"),
    61: Meaning("gone", "microcontroller breakpoint"),
    62: Meaning("gone", "microcontroller halt"),
    63: Meaning("watch", "a row of memory was marked to be replaced"),
    64: Meaning("hardware", "a row of memory could not be marked to be replaced"),
    68: Meaning("watch", "video processor exception"),
    69: Meaning("program", "graphics engine class error"),
    74: Meaning("hardware", "NVLink error"),
    79: Meaning("gone", "the card has fallen off the bus"),
    92: Meaning("hardware", "many single-bit ECC errors"),
    94: Meaning("watch", "contained uncorrectable memory error: one program was ended"),
    95: Meaning("gone", "uncontained uncorrectable memory error: the card must be reset"),
    109: Meaning("watch", "context switch timed out"),
    110: Meaning("gone", "security fault"),
    119: Meaning("gone", "the card's system processor (GSP) did not answer"),
    120: Meaning("gone", "error of the card's system processor (GSP)"),
    121: Meaning("watch", "error of the chip-to-chip link"),
    136: Meaning("hardware", "the link's training failed"),
    140: Meaning("gone", "unrecovered ECC error"),
    143: Meaning("gone", "the card could not be initialised"),
    144: Meaning("hardware", "NVLink error"),
    145: Meaning("hardware", "NVLink error"),
    149: Meaning("hardware", "NVLink error"),
    154: Meaning("watch", "the card asks for a recovery action"),
}
UNLISTED = Meaning("watch", "an XID that is not listed here")


def meaning(number: int | None) -> Meaning:
    return CATALOGUE.get(number, UNLISTED) if number is not None else UNLISTED
