"""Asks and reads what the NVIDIA driver says under /proc/driver/nvidia, where nvidia-smi may hang.

/proc/driver/nvidia/gpus/0000:17:00.0/information:Model: \t\t NVIDIA H200
NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.15  Thu Jan 23 16:58:11 UTC 2026
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ddprobe.model import Command, Glob

GPUS = Command(
    key="gpus",
    argv=("grep", "-s", "-H", "-e", "^Model:", Glob("/proc/driver/nvidia/gpus/*/information")),
    exits=(0, 1, 2),
)
DRIVER = Command(
    key="driver", argv=("grep", "-s", "-e", "NVRM", "/proc/driver/nvidia/version"), exits=(0, 1, 2)
)

_MODEL = re.compile(r"^/proc/driver/nvidia/gpus/([^/]+)/information:Model:(.*)$", re.MULTILINE)
_DRIVER = re.compile(r"^NVRM version:.*?\b(\d+\.\d+(?:\.\d+)?)\b", re.MULTILINE)


def models(text: str) -> tuple[str, ...]:
    """Each GPU's model in the order of their bus addresses, from the answer to `GPUS`."""
    found = sorted((bus, model.strip()) for bus, model in _MODEL.findall(text))
    return tuple(model for _, model in found if model)


def driver(text: str) -> str:
    """The driver's version, from the answer to `DRIVER`; empty when the file does not say."""
    found = _DRIVER.search(text)
    return found.group(1) if found else ""


CARDS = Command(
    key="cards",
    argv=(
        "grep", "-s", "-H", "-E", "-e", "^(Model|GPU UUID|Device Minor|GPU Excluded):",
        Glob("/proc/driver/nvidia/gpus/*/information"),
    ),
    exits=(0, 1, 2),
    # On a driver that hangs even this file may block: not in the way of the others.
    alone=True,
)  # fmt: skip

_FIELD = re.compile(r"^/proc/driver/nvidia/gpus/([0-9a-f:.]{7,16})/information:([\w ]+):(.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One card as the driver's files list it."""

    bus: str
    model: str = ""
    uuid: str = ""
    minor: int | None = None


def cards(text: str) -> tuple[Card, ...]:
    """The cards in the order of their bus addresses, from the answer to `CARDS`."""
    told: dict[str, dict[str, str]] = {}
    for bus, name, value in _FIELD.findall(text):
        told.setdefault(bus, {})[name] = value.strip()
    return tuple(
        Card(
            bus=bus,
            model=fields.get("Model", "")[:80],
            uuid=uuid if "?" not in (uuid := fields.get("GPU UUID", "")) else "",
            minor=int(minor) if re.fullmatch(r"\d{1,3}", minor := fields.get("Device Minor", "")) else None,
        )
        for bus, fields in sorted(told.items())
    )


def is_open(text: str) -> bool | None:
    """Whether NVIDIA's open kernel module is loaded, from the answer to `DRIVER`; None when none is."""
    return "Open Kernel Module" in text if driver(text) else None
