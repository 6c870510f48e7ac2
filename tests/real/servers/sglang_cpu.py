"""A real SGLang on the CPU: its HTTP server, scheduler and speculative workers, with tiny models.

Its context is 512 tokens, a token is a byte. DFLASH (block 4) commits 4.0 tokens a step after `Hello`, and 1.0 after
`The quick brown fox`. Drafting by NGRAM, the same server commits up to 8. `tests/run --engines` sets it up.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.real.sshd import free_port

ROOT = Path(__file__).parents[3]
HOME = ROOT / ".engines" / "sglang-cpu"
SERVE = ROOT / "tests" / "real" / "engines" / "sglang-cpu" / "serve.sh"
START_SECONDS = 300
"""It takes 20 to 95 on an idle machine."""
EASY, HARD = "Hello", "The quick brown fox"


@dataclass(frozen=True)
class SglangCpu:
    """A running server."""

    mode: str
    port: int
    pid: int
    log: Path

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}"


StartSglang = Callable[..., SglangCpu]


@contextlib.contextmanager
def serving(mode: str, *flags: str) -> Iterator[SglangCpu]:
    """Serve in that mode (`plain`, `dflash`, `ngram`, `standalone`) until the context ends."""
    assert (HOME / "ready").exists(), "`tests/run --engines` sets it up"
    port = free_port()
    argv = ["bash", str(SERVE), str(HOME), mode, str(port), *flags]
    with tempfile.NamedTemporaryFile() as log:
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            if not _ready(port, process):
                log.seek(0)
                raise AssertionError(log.read().decode("utf-8", "replace")[-3000:])
            yield SglangCpu(mode, port, process.pid, Path(log.name))
        finally:
            # It has workers of its own: they are in its process group, and nothing else is.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _ready(port: int, process: subprocess.Popen[bytes]) -> bool:
    limit = time.monotonic() + START_SECONDS
    while time.monotonic() < limit and process.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=5) as answer:
                return bool(answer.status == 200)
        except urllib.error.HTTPError as early:
            early.close()
            time.sleep(0.5)
        except OSError:
            time.sleep(0.5)
    return False


@pytest.fixture(scope="module")
def sglang_cpu() -> Iterator[StartSglang]:
    """`sglang_cpu("dflash", *flags)`: the running server of that mode; asking for another one ends it first."""
    running: dict[tuple[str, ...], SglangCpu] = {}
    with contextlib.ExitStack() as stack:

        def start(*wanted: str) -> SglangCpu:
            if wanted not in running:
                running.clear()
                stack.close()
                running[wanted] = stack.enter_context(serving(*wanted))
            return running[wanted]

        yield start
