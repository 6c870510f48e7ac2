"""How long work takes, whatever else the machine does: the processor time of the thread that does it."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable


def cpu_seconds(work: Callable[[], object], times: int = 1) -> float:
    """The least of so many turns, without the collector: its pass over a whole test run takes a tenth of a second."""
    least = float("inf")
    for _ in range(times):
        collecting = gc.isenabled()
        gc.disable()
        began = time.thread_time()
        try:
            work()
        finally:
            least = min(least, time.thread_time() - began)
            if collecting:
                gc.enable()
    return least
