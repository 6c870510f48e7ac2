"""A made-up host: its name, its person, its files and its servers."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ddprobe.lab.gpus import Gpus
from ddprobe.lab.http import Answering
from ddprobe.lab.tree import Tree


@dataclass(frozen=True, kw_only=True)
class Machine:
    """All that a question can be answered from. Nothing in it reaches the laptop's own files or processes."""

    hostname: str
    user: str
    uid: int
    tree: Tree
    servers: Mapping[int, Answering] = field(default_factory=dict)
    """Inference servers by the port they listen on."""
    gpu_bandwidth: float | None = None
    """GB/s of one GPU's memory on this machine's own clock, which its servers' times go by."""
    gpus: Gpus | None = None
    """Its cards; None: it has none, and no driver."""
    kernel: str = "6.8.0-52-generic"
    processors: int = 128
    clock: Callable[[], float] = time.time
