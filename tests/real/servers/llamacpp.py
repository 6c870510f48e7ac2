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
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.real.servers.tiny import TinyServer, healthy
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
class LlamaServer(TinyServer):
    """A running server."""

    argv: tuple[str, ...]


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
            if not healthy(port, process, 30):
                log.seek(0)
                raise AssertionError(log.read().decode("utf-8", "replace")[-3000:])
            ids, words = tuple(known["ids"]), tuple(known["words"])
            yield LlamaServer(port, process.pid, known["phrase"], ids, words, argv)
        finally:
            process.kill()
            process.wait()


@pytest.fixture
def llama_server() -> Iterator[StartLlama]:
    """`llama_server(*flags, ctx=…, np=…, metrics=…)`: a running server, stopped at the end of the test."""
    with contextlib.ExitStack() as stack:
        yield lambda *flags, **options: stack.enter_context(serving(*flags, **options))
