"""Ctrl-C, SIGTERM and a lost terminal while a run goes on."""

from __future__ import annotations

import signal
import threading
import time
from typing import Any

PATIENCE = 15.0
"""Seconds that a host has, after Ctrl-C, to end what is under way; a second Ctrl-C waits no longer."""


class Interrupts:
    """Signals are noted, and looked at between two steps of the work: so they may come at any moment."""

    def __init__(self, cancelled: threading.Event) -> None:
        self.cancelled = cancelled
        self._first = 0.0
        self._times = 0
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                if signal.getsignal(number) is not signal.SIG_IGN:  # `nohup` wants none of it
                    self._before[number] = signal.signal(number, lambda *_: self.note())
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler or signal.SIG_DFL)

    def note(self) -> None:
        self._times += 1
        self._first = self._first or time.monotonic()
        self.cancelled.set()

    @property
    def out_of_patience(self) -> bool:
        return self._times > 1 or (self._times > 0 and time.monotonic() - self._first > PATIENCE)
