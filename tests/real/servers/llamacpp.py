"""A real llama-server with a target and a drafter whose greedy output is known exactly.

The phrase's ids tiled make an easy text. With `BAD_DRAFTER` a verify step commits exactly 4 tokens of a draft of 5; only
the first one after the prompt, and the last one, commit fewer. `tests/run` sets up what is started here.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.real.sshd import free_port

HOME = Path(__file__).parents[3] / ".engines" / "llamacpp"
BAD_DRAFTER = (
    "-md", "models/tiny-bigram-bad.gguf", "--spec-type", "draft-simple", "--spec-draft-n-max", "5",
)  # fmt: skip
NGRAM_SIMPLE = (
    "--spec-type", "ngram-simple", "--spec-ngram-simple-size-n", "4", "--spec-ngram-simple-size-m", "5",
)  # fmt: skip
NGRAM_MAP_K = (
    "--spec-type", "ngram-map-k", "--spec-ngram-map-k-size-n", "4", "--spec-ngram-map-k-size-m", "5",
)  # fmt: skip


@dataclass(frozen=True)
class LlamaServer:
    """A running server."""

    port: int
    pid: int
    argv: tuple[str, ...]
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


StartLlama = Callable[..., LlamaServer]


@contextlib.contextmanager
def serving(*flags: str, ctx: int = 32768, np: int = 1, metrics: bool = True) -> Iterator[LlamaServer]:
    """Serve `tiny-bigram` until the context ends; `ctx` is shared by the `np` slots."""
    assert (HOME / "ready").exists(), "tests/real/engines/llamacpp/setup.sh .engines/llamacpp sets it up"
    known = json.loads((HOME / "models" / "phrase.json").read_text(encoding="utf-8"))
    port = free_port()
    argv = (
        "bin/llama-server", "-m", "models/tiny-bigram.gguf", "-a", "tiny", "--host", "127.0.0.1", "--port", str(port),
        "-c", str(ctx), "-np", str(np), "-t", "2", "-ngl", "0", "--device", "none", "--offline", "--no-ui",
        *(("--metrics",) if metrics else ()), *flags,
    )  # fmt: skip
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            argv,
            cwd=HOME,
            env={**os.environ, "LD_LIBRARY_PATH": str(HOME / "bin")},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            if not _healthy(port, process):
                log.seek(0)
                raise AssertionError(log.read().decode("utf-8", "replace")[-3000:])
            ids, words = tuple(known["ids"]), tuple(known["words"])
            yield LlamaServer(port, process.pid, argv, known["phrase"], ids, words)
        finally:
            process.kill()
            process.wait()


def _healthy(port: int, process: subprocess.Popen[bytes]) -> bool:
    limit = time.monotonic() + 30
    while time.monotonic() < limit and process.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            time.sleep(0.05)
    return False


@pytest.fixture
def llama_server() -> Iterator[StartLlama]:
    """`llama_server(*flags, ctx=…, np=…, metrics=…)`: a running server, stopped at the end of the test."""
    with contextlib.ExitStack() as stack:
        yield lambda *flags, **options: stack.enter_context(serving(*flags, **options))
