"""How a server was started: log lines, command lines, unit files, `docker inspect`, and what it says of itself over HTTP."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from ddprobe import engines
from ddprobe.engines.base import Engine, mapping, text
from ddprobe.evidence import environment
from ddprobe.evidence.document import Document, Found
from ddprobe.facts import ServerArgs
from ddprobe.model import Cite, Fact, HttpRequest, HttpResult
from ddprobe.parsing import environment_text, launch_text, log_lines, proc, shell_words

LARGEST = 4 * 1024 * 1024
"""Bytes of a document whose JSON, scripts and command lines are read; log lines are read in any."""
MOST_WORDS = 4096
_NAMES = ("sglang", "vllm", "llama-server", "llama.cpp:server")
"""One of these stands in every command line of a server."""
_RUNTIMES = frozenset({"docker", "podman", "nerdctl", "ctr"})
_IMAGES = (
    (re.compile(r"(?:^|/)vllm(?:-openai)?(?:[:@]|\Z)|/vllm-openai\b"), ("vllm", "serve")),
    (re.compile(r"llama\.cpp:server"), ("llama-server",)),
)
"""Images whose entry point is the server, so that the words after one are its arguments."""
_FLAG = re.compile(r"-{1,2}[A-Za-z][\w.-]*(=|\Z)|-[\d.]")
_DEEPEST = 3


@dataclass(frozen=True, slots=True)
class _Command:
    """A server's command line among other words."""

    engine: Engine
    argv: tuple[str, ...]
    before: tuple[str, ...]


def recognise(document: Document, sample: str) -> Found | None:
    """A document that says how a server was started, whole or in some of its lines."""
    if sample.lstrip()[:1] in ("{", "["):
        found = _of_json(document)
        if found is not None:
            return found
    facts = [*_of_log(document), *_of_commands(document, sample)]
    if not facts:
        return None
    origins = dict.fromkeys(
        f"{engines.TABLE[fact.engine].title} {fact.origin}" for fact in facts if isinstance(fact, ServerArgs)
    )
    return Found(f"arguments of {', '.join(origins)}", tuple(facts))


# --- log lines --------------------------------------------------------------------------------------------


def _of_log(document: Document) -> Iterator[Fact]:
    """The last arguments of each kind that the log tells: a server may have been started again."""
    version = ""
    said: dict[tuple[str, str], tuple[int, launch_text.Said]] = {}
    for number, line in enumerate(document.lines(), 1):
        found = launch_text.of_line(log_lines.unwrapped(line))
        if found is not None:
            version = found.version or version
            if found.values:
                said[(found.engine, found.origin)] = (number, found)
    for number, found in said.values():
        engine = engines.TABLE[found.engine]
        yield ServerArgs(
            engine=found.engine,
            origin=found.origin if found.whole else f"{found.origin}, cut off",
            version=found.version or (version if found.engine == "vllm" else ""),
            values=tuple(engine.canonical(found.values).items()),
            resolved=found.resolved,
            source=(Cite(document.key, f"line {number}"),),
        )


# --- command lines ----------------------------------------------------------------------------------------


def _of_commands(document: Document, sample: str) -> Iterator[Fact]:
    """The last command line of each engine, with the variables set in front of it."""
    if not any(name in sample for name in _NAMES):
        return
    whole = document.whole()
    if whole is None or len(whole) > LARGEST:
        return
    found: dict[str, tuple[_Command, str, dict[str, str]]] = {}
    if "\0" in sample:
        if command := _server(proc.words(whole)):
            found[command.engine.name] = (command, "", {})
    else:
        exported: dict[str, str] = {}
        for number, line in shell_words.logical_lines(whole.splitlines()):
            stripped = line.lstrip()
            if stripped.startswith(("#", "//")):
                continue
            if stripped.startswith(("export ", "Environment=")):
                exported.update(environment_text.read(line).variables)
            if command := _of_line(line):
                found[command.engine.name] = (command, f"line {number}", dict(exported))
    for command, at, variables in found.values():
        yield from _facts(command, document.key, at, tuple(variables.items()))


def _of_line(line: str, deep: int = 0) -> _Command | None:
    if not any(name in line for name in _NAMES):
        return None
    for words in shell_words.commands(line):
        if command := _server(words, deep):
            return command
    return None


def _server(words: tuple[str, ...], deep: int = 0) -> _Command | None:
    """The server that these words run, whatever stands before it (`sudo`, `env A=1`, `docker run IMAGE`, columns of `ps`)."""
    words = words[:MOST_WORDS]
    if words and words[0].startswith("ExecStart="):
        words = (words[0].partition("=")[2].lstrip("-@:+!"), *words[1:])
    for at, word in enumerate(words):
        if " " in word and deep < _DEEPEST and any(name in word for name in _NAMES):
            if inner := _of_line(word, deep + 1):  # bash -c "python -m …"
                return replace(inner, before=words[:at] + inner.before)
            continue
        argv = words[at:]
        engine = engines.recognise(argv)
        if engine is not None and _starts(engine, argv):
            return _Command(engine, argv, words[:at])
        for pattern, runs in _IMAGES:
            if pattern.search(word) and _in_container(words[:at]) and words[at + 1 : at + 2]:
                argv = (*runs, *words[at + 1 :])
                if words[at + 1].startswith("-") and (engine := engines.recognise(argv)):
                    return _Command(engine, argv, words[:at])
    return None


def _starts(engine: Engine, argv: tuple[str, ...]) -> bool:
    """True for a command, not for prose about one: flags follow at once, and a model is named."""
    rest = engine.arguments(argv) or ()
    flags = [at for at, word in enumerate(rest) if word.startswith("-") and len(word) > 1]
    if any(not _FLAG.match(rest[at]) for at in flags):
        return False
    given = engine.given(argv) if flags and flags[0] <= (2 if rest[:1] == ("--model-path",) else 1) else {}
    return any(isinstance(given.get(name), str) for name in ("model_path", "hf_repo", engine.config_file))


def _in_container(before: tuple[str, ...]) -> bool:
    return any(posixpath.basename(word) in _RUNTIMES for word in before)


def _facts(
    command: _Command, key: str, at: str, variables: tuple[tuple[str, str], ...], *, seen: bool = False
) -> Iterator[Fact]:
    before = {**dict(variables), **environment_text.leading(command.before)}
    kept = environment.allowed(before.items())
    engine = command.engine
    values = engine.given(command.argv, kept)
    elsewhere = values.get(engine.config_file) if engine.config_file else None
    yield ServerArgs(
        engine=engine.name,
        origin="command line",
        values=tuple(values.items()),
        elsewhere=elsewhere if isinstance(elsewhere, str) else "",
        source=(Cite(key, at),),
    )
    if kept:
        yield environment.process(kept, key, seen=seen, at=at, engine=engine.name, argv=command.argv)


# --- JSON -------------------------------------------------------------------------------------------------


def _of_json(document: Document) -> Found | None:
    whole = document.whole()
    if whole is None or len(whole) > LARGEST:
        return None
    try:
        held = json.loads(whole)
    except (ValueError, RecursionError):
        return None
    if isinstance(held, list):
        return _of_inspect(held, document.key)
    if not isinstance(held, dict):
        return None
    if isinstance(held.get("model_path"), str) and ({"speculative_algorithm", "tp_size"} & set(held)):
        return _of_answer("sglang", "/server_info", whole, held, document.key)
    if isinstance(held.get("default_generation_settings"), dict):
        return _of_answer("llamacpp", "/props", whole, held, document.key)
    return None


def _of_answer(name: str, path: str, body: str, held: dict[str, Any], key: str) -> Found:
    """What a server answered to a question for its own state."""
    engine = engines.TABLE[name]
    question = HttpRequest(key=key, method="GET", path=path, base="")
    answers = {path: HttpResult(question=question, status=200, body=body.encode("utf-8", "replace"))}
    cites = (Cite(key, "$"),)
    facts: list[Fact] = []
    resolved = engine.resolved(answers)
    if resolved is not None:
        facts.append(replace(resolved, source=cites))
    launched = text(held.get("launch_command"))
    for words in shell_words.commands(launched):
        # SGLang keeps the words after its own name.
        argv = (
            words if engine.arguments(words) is not None else ("python", "-m", "sglang.launch_server", *words)
        )
        values = engine.given(argv)
        if "model_path" in values:
            elsewhere = values.get(engine.config_file)
            facts.append(
                ServerArgs(
                    engine=name,
                    origin="command line (launch_command)",
                    version=text(held.get("version")),
                    values=tuple(values.items()),
                    elsewhere=elsewhere if isinstance(elsewhere, str) else "",
                    source=(Cite(key, "$.launch_command"),),
                )
            )
            break
    told = mapping(held.get("env_vars"))
    variables = environment.allowed((n, v) for n, v in told.items() if isinstance(v, str))
    if variables:
        facts.append(environment.process(variables, key, seen=True, at="$.env_vars", engine=name))
    facts.append(replace(engine.state("", answers), source=cites))
    return Found(f"{engine.title} {path} answer", tuple(facts))


def _of_inspect(held: list[Any], key: str) -> Found | None:
    """`docker inspect`: the first container that runs a server."""
    for number, container in enumerate(held[:64]):
        config = mapping(mapping(container).get("Config"))
        if not config:
            continue
        words = (text(container.get("Path")), *_words(container.get("Args")))
        if len(words) < 2:
            words = (*_words(config.get("Entrypoint")), *_words(config.get("Cmd")))
        command = _server(words)
        if command is None:
            continue
        variables = tuple(
            (name, value)
            for name, equals, value in (e.partition("=") for e in _words(config.get("Env")))
            if equals
        )
        facts = tuple(_facts(command, key, f"$[{number}].Args", variables, seen=True))
        return Found(f"docker inspect of a container that runs {command.engine.title}", facts)
    return None


def _words(value: Any) -> tuple[str, ...]:
    return tuple(word for word in value if isinstance(word, str)) if isinstance(value, list) else ()
