"""An environment dump → the server's process with its variables: those on the allow-list, and no others."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ddprobe.evidence.document import Document, Found
from ddprobe.facts import ServerProcess
from ddprobe.model import Cite
from ddprobe.parsing import environment_text
from ddprobe.redact.names import is_kept_variable
from ddprobe.redact.spans import NOT_KEPT

LARGEST = 1024 * 1024
_COMMAND = re.compile(r"\s(?:\S*/)?(?:python[\d.]*\s+-m\s|vllm\s+serve\b|sglang\s+serve\b|llama-server\b)")
LEAST_SHARE = 0.6
"""How many of the lines must be assignments: values of several lines have others between them."""
UNKNOWN_PID = 0
_KEPT = NOT_KEPT.decode()
_BELONGS = (("SGLANG_", "sglang"), ("SGL_", "sglang"), ("VLLM_", "vllm"), ("LLAMA_ARG_", "llamacpp"))


def recognise(document: Document, sample: str) -> Found | None:
    """A document that is an environment: assignments and hardly anything else, one at least of a name that matters."""
    if "=" not in sample or sample.lstrip()[:1] in ("{", "["):
        return None
    text = document.whole()
    if text is None or len(text) > LARGEST:
        return None
    dump = environment_text.read(text)
    # A command behind its variables, on one line: launch command lines are read elsewhere.
    kept = allowed((n, v) for n, v in dump.variables if not _COMMAND.search(v))
    if dump.share < LEAST_SHARE or not kept:
        return None
    noun = "environment" if dump.whole else "part of an environment"
    return Found(
        f"{noun}, {len(dump.variables)} variables",
        (process(kept, document.key, seen=dump.whole, at=""),),
    )


def allowed(variables: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """The variables whose values are evidence, by name."""
    return tuple(
        sorted((name, value) for name, value in variables if is_kept_variable(name) and value != _KEPT)
    )


def process(
    variables: tuple[tuple[str, str], ...],
    key: str,
    *,
    seen: bool,
    at: str,
    engine: str = "",
    argv: tuple[str, ...] = (),
) -> ServerProcess:
    """A process of which no more is known than what somebody collected of it."""
    names = [name for name, _ in variables]
    belongs = {of for prefix, of in _BELONGS if any(name.startswith(prefix) for name in names)}
    return ServerProcess(
        engine=engine or (belongs.pop() if len(belongs) == 1 else ""),
        pid=UNKNOWN_PID,
        argv=argv,
        environment=variables,
        environment_seen=seen,
        source=(Cite(key, at),),
    )
