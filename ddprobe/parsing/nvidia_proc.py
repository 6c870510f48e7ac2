"""Asks and reads what the NVIDIA driver says under /proc/driver/nvidia, where nvidia-smi may hang.

/proc/driver/nvidia/gpus/0000:17:00.0/information:Model: \t\t NVIDIA H200
NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.15  Thu Jan 23 16:58:11 UTC 2026
"""

from __future__ import annotations

import re

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
