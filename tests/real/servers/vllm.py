"""A real vLLM on the CPU with a tiny model whose greedy output is known exactly.

The phrase's ids tiled make an easy text: the model goes on repeating them. `tests/real/engines/vllm/setup.sh .engines/vllm`
sets up what is started here.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.real.servers.tiny import TinyServer, healthy
from tests.real.sshd import free_port

ROOT = Path(__file__).parents[3]
HOME = ROOT / ".engines" / "vllm"
SERVE = ROOT / "tests" / "real" / "engines" / "vllm" / "serve.sh"
# The drafter is the target itself, and sees no more than 2048 tokens: every draft is right below that, none beyond.
COLLAPSE = (
    "--speculative-config",
    '{"method":"draft_model","model":"models/tiny-bigram","num_speculative_tokens":5,"max_model_len":2048}',
)
NGRAM = (
    "--speculative-config",
    '{"method":"ngram","num_speculative_tokens":5,"prompt_lookup_max":4,"prompt_lookup_min":2}',
)


@dataclass(frozen=True)
class VllmServer(TinyServer):
    """A running server."""

    flags: tuple[str, ...]


@contextlib.contextmanager
def serving(*flags: str) -> Iterator[VllmServer]:
    """Serve `tiny-bigram` until the context ends. Ready after 20 to 85 s."""
    assert (HOME / "ready").exists(), "tests/real/engines/vllm/setup.sh .engines/vllm sets it up"
    known = json.loads((HOME / "models" / "phrase.json").read_text(encoding="utf-8"))
    port = free_port()
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            ["bash", SERVE, HOME, str(port), *flags],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            if not healthy(port, process, 240):
                log.seek(0)
                raise AssertionError(log.read().decode("utf-8", "replace")[-3000:])
            ids, words = tuple(known["ids"]), tuple(known["words"])
            yield VllmServer(port, process.pid, known["phrase"], ids, words, flags)
        finally:
            # Its engine and workers are processes of the same group.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
