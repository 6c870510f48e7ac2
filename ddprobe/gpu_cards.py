"""Peak memory bandwidth of GPUs by the name that their tools print, each with its source."""

from __future__ import annotations

import re
from dataclasses import dataclass

SHEET = "vendor's data sheet"


@dataclass(frozen=True, slots=True)
class Card:
    """One kind of card."""

    name: str
    bandwidth: float
    """GB/s (10⁹ bytes), at its peak."""
    source: str
    pattern: re.Pattern[str]
    sms: int | None = None
    """Streaming multiprocessors; None where nobody looked them up."""


def _card(name: str, bandwidth: float, pattern: str, source: str = SHEET, *, sms: int | None = None) -> Card:
    return Card(name, float(bandwidth), source, re.compile(pattern, re.IGNORECASE), sms)


CARDS = (
    _card(
        "RTX PRO 6000 Blackwell",
        1792,
        r"\bRTX PRO 6000\b(?!.*Laptop)",
        f"{SHEET}: 512 bit GDDR7 at 28 Gb/s; listings of the Server Edition at 1597 are not confirmed",
        sms=188,
    ),
    _card("GeForce RTX 5090", 1792, r"\bRTX 5090\b(?!.*Laptop)", sms=170),
    _card("GeForce RTX 4090", 1008, r"\bRTX 4090\b(?!.*(?:Laptop| D\b))"),
    _card("GeForce RTX 3090", 936, r"\bRTX 3090\b(?! Ti)"),
    _card("B300", 8000, r"\bG?B300\b"),
    _card("B200", 8000, r"\bG?B200\b", f"{SHEET}; some list 7700"),
    _card("GH200 144GB", 4900, r"\bGH200\b.*\b144G"),
    _card("GH200 96GB", 4000, r"\bGH200\b"),
    _card("H200", 4800, r"\bH200\b", sms=132),
    _card("H100 NVL", 3900, r"\bH100 NVL\b"),
    _card("H100 PCIe", 2000, r"\bH100 PCIe\b"),
    _card("H100 SXM", 3350, r"\bH100\b", sms=132),
    _card("H800 PCIe", 2000, r"\bH800 PCIe\b"),
    _card("H800 SXM", 3350, r"\bH800\b"),
    _card("H20", 4000, r"\bH20\b"),
    _card("A100 80GB PCIe", 1935, r"\bA100 80GB PCIe\b"),
    _card("A100 80GB SXM", 2039, r"\bA100-SXM.*80GB\b", sms=108),
    _card("A800 80GB PCIe", 1935, r"\bA800 80GB PCIe\b"),
    _card("A800 80GB SXM", 2039, r"\bA800-SXM.*80GB\b"),
    _card("A100 40GB", 1555, r"\bA100-(?:SXM4|PCIE)-40GB\b"),
    _card("L40S", 864, r"\bL40S\b", sms=142),
    _card("L40", 864, r"\bL40\b"),
    _card("RTX 6000 Ada", 960, r"\bRTX 6000 Ada\b"),
    _card("RTX A6000", 768, r"\bRTX A6000\b"),
    _card("L20", 864, r"\bL20\b"),
    _card("A40", 696, r"\bA40\b"),
    _card("A30", 933, r"\bA30\b"),
    _card("A10", 600, r"\bA10G?\b"),
    _card("L4", 300, r"\bL4\b"),
    _card("V100", 900, r"\bV100-"),
    _card("T4", 320, r"\bT4\b"),
    _card("GB10", 273, r"\bGB10\b"),
    _card("MI355X", 8000, r"\bMI355X\b"),
    _card("MI325X", 6000, r"\bMI325X\b"),
    _card("MI300X", 5300, r"\bMI300X\b"),
)
"""The first whose pattern is in the name counts."""
UNKNOWN = _card(
    "an unknown GPU",
    864,
    r"(?!)",
    "that of an L40S, the slowest card that such models are commonly served on",
)
"""Taken where the card is not known: a slow card makes the roofline high, and any excess over it small."""
_PART = re.compile(r"\bMIG\b", re.IGNORECASE)


def card(name: str) -> Card | None:
    """The card of that name; None where the table has none, and for a part of a card."""
    if _PART.search(name):
        return None
    return next((card for card in CARDS if card.pattern.search(name)), None)


def sm120(name: str) -> bool:
    """Whether it is a workstation Blackwell (compute capability 12.x), whose kernels are often others than B200's."""
    return re.search(r"\bRTX PRO \d{3,4}\b|\bRTX 50\d\d\b|\bGB10\b", name, re.IGNORECASE) is not None
