"""How many hosts may do the same at once, where that costs this computer its processor or its clock."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

CONNECTING = 8
"""Hosts that are connected to at once: each key exchange wants the processor, and has to be done in time."""
SILENCE = 2.0
"""Seconds after which a host that is still being connected to counts no more: it is waited for, at no cost."""
MEASURING = 8
"""Hosts that are measured at once: the arrival of tokens is timed here."""


@contextlib.contextmanager
def place(gate: threading.Semaphore, cancelled: threading.Event, most: float | None = None) -> Iterator[None]:
    """Wait for a place; not any longer once the run is interrupted. It is given back after `most` seconds."""
    passed = False
    while not passed and not cancelled.is_set():
        passed = gate.acquire(timeout=0.1)
    giving_back = _Once(gate.release if passed else lambda: None)
    timer = threading.Timer(most, giving_back) if most is not None else None
    if timer is not None:
        timer.daemon = True
        timer.start()
    try:
        yield
    finally:
        if timer is not None:
            timer.cancel()
        giving_back()


class _Once:
    """Something that is done once, whoever calls for it first."""

    def __init__(self, act: Callable[[], object]) -> None:
        self._act = act
        self._lock = threading.Lock()
        self._done = False

    def __call__(self) -> None:
        with self._lock:
            if not self._done:
                self._done = True
                self._act()
