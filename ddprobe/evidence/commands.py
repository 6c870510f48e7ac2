"""A server's command line among other words: of a shell, a script, a unit file, `ps`, or what starts a container."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ddprobe import engines
from ddprobe.engines.base import Engine
from ddprobe.evidence import environment
from ddprobe.facts import ServerArgs
from ddprobe.model import Cite, Fact
from ddprobe.parsing import environment_text, image_tag, shell_words

MOST_WORDS = 4096
NAMES = ("sglang", "vllm", "llama-server", "llama.cpp:server")
"""One of these stands in every command line of a server."""
_RUNTIMES = frozenset({"docker", "podman", "nerdctl", "ctr"})
_IMAGES = (
    (re.compile(r"(?:^|/)vllm(?:-openai)?(?:[:@]|\Z)|/vllm-openai\b"), ("vllm", "serve")),
    (re.compile(r"llama\.cpp:server"), ("llama-server",)),
)
"""Images whose entry point is the server, so that the words after one are its arguments."""
_FLAG = re.compile(r"-{1,2}[A-Za-z][\w.-]*(=|\Z)|-[\d.]")
_DEEPEST = 3
_LEFT_OUT = re.compile(
    r"(?:\.\.\.|…|[\[<(](?:snip|cut|truncated|omitted|redacted|etc)[^\[\]<>()]{0,40}[\]>)])\s*\Z"
)
"""What people put in place of the rest of a command line."""


@dataclass(frozen=True, slots=True)
class Command:
    """A server's command line among other words."""

    engine: Engine
    argv: tuple[str, ...]
    before: tuple[str, ...]
    cut: bool = False
    """More stood there once."""


def of_line(line: str, deep: int = 0) -> Command | None:
    """The first server that a line starts; None when it starts none."""
    if not any(name in line for name in NAMES):
        return None
    line, left_out = _LEFT_OUT.subn("", line)
    for words in shell_words.commands(line):
        if command := of_words(words, deep):
            return replace(command, cut=command.cut or bool(left_out) or shell_words.unclosed(line))
    return None


def of_words(words: tuple[str, ...], deep: int = 0, *, listed: bool = False) -> Command | None:
    """The server that these words run, whatever stands before it (`sudo`, `env A=1`, `docker run IMAGE`, columns of `ps`).

    `listed`: they stood as a list of words, which no prose does: then no model need be named.
    """
    words = words[:MOST_WORDS]
    if words and words[0].startswith("ExecStart="):
        words = (words[0].partition("=")[2].lstrip("-@:+!"), *words[1:])
    for at, word in enumerate(words):
        if " " in word and deep < _DEEPEST and any(name in word for name in NAMES):
            if inner := of_line(word, deep + 1):  # bash -c "python -m …"
                return replace(inner, before=words[:at] + inner.before)
            continue
        argv = words[at:]
        engine = engines.recognise(argv)
        if engine is not None and _starts(engine, argv, listed):
            return Command(engine, argv, words[:at])
        for pattern, runs in _IMAGES:
            if pattern.search(word) and _in_container(words[:at]) and words[at + 1 : at + 2]:
                argv = (*runs, *words[at + 1 :])
                if words[at + 1].startswith("-") and (engine := engines.recognise(argv)):
                    return Command(engine, argv, words[: at + 1])
    return None


def _starts(engine: Engine, argv: tuple[str, ...], listed: bool) -> bool:
    """True for a command, not for prose about one: flags follow at once, and a model is named."""
    rest = engine.arguments(argv) or ()
    flags = [at for at, word in enumerate(rest) if word.startswith("-") and len(word) > 1]
    if any(not _FLAG.match(rest[at]) for at in flags):
        return False
    if listed and flags:
        return True
    given = engine.given(argv) if flags and flags[0] <= (2 if rest[:1] == ("--model-path",) else 1) else {}
    return any(isinstance(given.get(name), str) for name in ("model_path", "hf_repo", engine.config_file))


def _in_container(before: tuple[str, ...]) -> bool:
    return any(posixpath.basename(word) in _RUNTIMES for word in before)


def facts(
    command: Command, key: str, at: str, variables: tuple[tuple[str, str], ...], *, seen: bool = False
) -> Iterator[Fact]:
    """The arguments of a command, and the variables that it is started with. `seen`: these are all."""
    before = {**dict(variables), **environment_text.leading(command.before)}
    kept = environment.allowed(before.items())
    engine = command.engine
    values = engine.given(command.argv, kept)
    elsewhere = values.get(engine.config_file) if engine.config_file else None
    yield ServerArgs(
        engine=engine.name,
        origin="command line" + ", cut off" * command.cut,
        version=image_tag.version(command.before, engine.name),
        values=tuple(values.items()),
        elsewhere=elsewhere if isinstance(elsewhere, str) else "",
        cut=command.cut,
        source=(Cite(key, at),),
    )
    if kept:
        yield environment.process(kept, key, seen=seen, at=at, engine=engine.name, argv=command.argv)
