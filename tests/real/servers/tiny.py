"""What the servers of the tiny language have in common."""

from __future__ import annotations

import subprocess
import time
import urllib.request
from dataclasses import dataclass


@dataclass(frozen=True)
class TinyServer:
    """A running server whose model speaks it."""

    port: int
    pid: int
    phrase: str
    ids: tuple[int, ...]
    """The phrase's tokens: eight, all different."""
    words: tuple[str, ...]
    """Made-up words that no n-gram predicts."""

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def tiled(self, tokens: int) -> tuple[int, ...]:
        """So many ids of the phrase over and over; it ends at the phrase's end."""
        times = -(-tokens // len(self.ids))
        return (self.ids * times)[-tokens:]


def healthy(port: int, process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Wait until its /health answers 200; False when it ends before, or takes longer."""
    limit = time.monotonic() + seconds
    while time.monotonic() < limit and process.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            time.sleep(0.05)
    return False
