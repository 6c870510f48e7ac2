"""How a server was started: log lines, command lines, unit files, `docker inspect`, and what it says of itself over HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ddprobe import engines
from ddprobe.engines.base import mapping, text
from ddprobe.evidence import _starts, commands, containers, environment
from ddprobe.evidence.document import Document, Found
from ddprobe.facts import ServerArgs
from ddprobe.facts.hosts import SPEAKS_OF_IT
from ddprobe.model import Cite, Fact, HttpRequest, HttpResult
from ddprobe.parsing import environment_text, json_in_part, launch_text, log_lines, proc, shell_words

LARGEST = 4 * 1024 * 1024
"""Bytes of a document whose JSON, scripts and command lines are read; log lines are read in any."""
MOST_STARTS = 16
"""Starts with other drafts, of one log or script, that are told."""
_MARK = "…"


def recognise(document: Document, sample: str) -> Found | None:
    """A document that says how a server was started, whole or in some of its lines."""
    if sample.lstrip()[:1] in ("{", "["):
        found = _of_json(document)
        if found is not None:
            return found
    facts = _once([*_of_log(document), *_of_commands(document, sample), *_of_containers(document, sample)])
    if not facts:
        return None
    origins = dict.fromkeys(
        f"{engines.TABLE[fact.engine].title} {fact.origin}" for fact in facts if isinstance(fact, ServerArgs)
    )
    said = f"arguments of {', '.join(origins)}" if origins else "variables that a server is started with"
    return Found(said, tuple(facts))


# --- log lines --------------------------------------------------------------------------------------------


def _of_log(document: Document) -> Iterator[Fact]:
    """The arguments of each kind that the log tells; of starts with the same ones in a row, the last.

    Before them stood others that may matter: those by which it drafted otherwise, or not at all, or decoded something.
    """
    version, decoded = "", 0
    said: dict[tuple[str, str], list[_Told]] = {}
    for number, line in enumerate(document.lines(), 1):
        found = launch_text.of_line(log_lines.unwrapped(line))
        if found is not None:
            version = found.version or version
            if found.values:
                every = said.setdefault((found.engine, found.origin), [])
                every.append(_Told(number, found, idle=bool(every) and decoded < every[-1].line))
        elif any(mark in line for mark in _starts.DECODES):
            decoded = number
    for first, number, found in (one for every in said.values() for one in _starts_apart(every)):
        engine = engines.TABLE[found.engine]
        yield ServerArgs(
            engine=found.engine,
            origin=found.origin if found.whole else f"{found.origin}, cut off",
            version=found.version or (version if found.engine == "vllm" else ""),
            values=tuple(engine.canonical(found.values).items()),
            resolved=found.resolved,
            cut=not found.whole or (found.resolved and _in_part(found.values)),
            source=tuple(Cite(document.key, f"line {line}") for line in dict.fromkeys((number, first))),
        )


@dataclass(frozen=True, slots=True)
class _Told:
    """A line that tells arguments. `idle`: since the one before it nothing was decoded."""

    line: int
    said: launch_text.Said
    idle: bool


def _starts_apart(every: list[_Told]) -> Iterator[tuple[int, int, launch_text.Said]]:
    """Of starts with the same drafts in a row the first line, and the last with what it says; the last ones, newest first."""
    runs: list[tuple[int, int, launch_text.Said]] = []
    before: dict[str, Any] = {}
    for told in every:
        drafts = _drafts(engines.TABLE[told.said.engine].canonical(told.said.values))
        if runs and drafts == before:
            runs[-1] = runs[-1][0], told.line, told.said
        elif told.idle and runs[-1][0] == runs[-1][1] and _starts.alike(drafts, before):
            # Corrected before anything came of it.
            runs[-1] = told.line, told.line, told.said
        else:
            runs.append((told.line, told.line, told.said))
        before = drafts
    yield from reversed(runs[-MOST_STARTS:])


def _drafts(values: Mapping[str, Any]) -> dict[str, Any]:
    return _starts.drafting(values)


def _in_part(values: Mapping[str, Any]) -> bool:
    """Of what a server says of itself only some was kept: each release names its speculation, also where there is none."""
    return not any(name in values for name in SPEAKS_OF_IT)


# --- command lines ----------------------------------------------------------------------------------------


def _of_commands(document: Document, sample: str) -> Iterator[Fact]:
    """The last command line of each engine, and others before it that draft otherwise, with the variables set in front."""
    if not any(name in sample for name in commands.NAMES):
        return
    whole = document.whole()
    if whole is None or len(whole) > LARGEST:
        return
    found: dict[str, list[tuple[commands.Command, str, dict[str, str]]]] = {}
    if "\0" in sample:
        if command := commands.of_words(proc.words(whole)):
            found[command.engine.name] = [(command, "", {})]
    else:
        exported: dict[str, str] = {}
        for number, line in shell_words.logical_lines(_marked(whole.splitlines())):
            stripped = line.lstrip()
            if stripped.startswith(("#", "//")):
                continue
            if stripped.startswith("Environment="):
                exported.update(environment_text.read(line).variables)
            for name, value in environment_text.typed_in(line):
                exported.pop(name, None)
                exported |= {} if value is None else {name: value}
            if command := commands.of_line(line):
                every = found.setdefault(command.engine.name, [])
                every.append((command, f"line {number}", dict(exported)))
    for every in found.values():
        known: list[Any] = []
        for command, at, variables in reversed(every):
            drafts = _drafts(command.engine.given(command.argv))
            if drafts not in known and len(known) < MOST_STARTS:
                known.append(drafts)
                yield from commands.facts(command, document.key, at, tuple(variables.items()))


def _of_containers(document: Document, sample: str) -> Iterator[Fact]:
    """What is started as a container, where a file says so."""
    whole = document.whole()
    if whole is not None and len(whole) <= LARGEST and "\0" not in sample:
        yield from containers.facts(document.key, whole)


def _once(facts: list[Fact]) -> list[Fact]:
    """The facts; arguments that are told twice are one, with the version that either tells, and both places.

    A command may have been read as a line and as a container's, and a server started a third time as the first.
    """
    kept: list[Fact] = []
    for fact in facts:
        same = next(
            (at for at, one in enumerate(kept) if isinstance(one, ServerArgs) and _same(one, fact)), None
        )
        if same is None:
            kept.append(fact)
        else:
            known = kept[same]
            more, less = (fact, known) if getattr(fact, "version", "") else (known, fact)
            kept[same] = replace(more, source=tuple(dict.fromkeys((*more.source, *less.source))))
    return kept


def _same(one: ServerArgs, other: Fact) -> bool:
    return isinstance(other, ServerArgs) and (one.engine, one.origin, one.values) == (
        other.engine,
        other.origin,
        other.values,
    )


def _marked(lines: list[str]) -> Iterator[str]:
    """The lines; a backslash behind which nothing comes is a mark that something is missing."""
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        stripped = line.rstrip()
        yield f"{stripped[:-1]} {_MARK}" if stripped.endswith("\\") and not following.strip() else line


# --- JSON -------------------------------------------------------------------------------------------------


def _of_json(document: Document) -> Found | None:
    whole = document.whole()
    if whole is None or len(whole) > LARGEST:
        return None
    cut = False
    try:
        held = json.loads(whole)
    except RecursionError:
        return None
    except ValueError:
        held, cut = json_in_part.fields(whole), True
    if isinstance(held, list):
        return _of_inspect(held, document.key)
    if not isinstance(held, dict):
        return None
    if isinstance(held.get("model_path"), str) and ({"speculative_algorithm", "tp_size"} & set(held)):
        return _of_answer("sglang", "/server_info", held, document.key, cut=cut)
    if isinstance(held.get("default_generation_settings"), dict):
        return _of_answer("llamacpp", "/props", held, document.key, cut=cut)
    return None


def _of_answer(name: str, path: str, held: dict[str, Any], key: str, *, cut: bool) -> Found:
    """What a server answered to a question for its own state. `cut`: the end of it is missing."""
    body = json.dumps(held)
    engine = engines.TABLE[name]
    question = HttpRequest(key=key, method="GET", path=path, base="")
    answers = {path: HttpResult(question=question, status=200, body=body.encode("utf-8", "replace"))}
    cites = (Cite(key, "$"),)
    facts: list[Fact] = []
    resolved = engine.resolved(answers)
    if resolved is not None:
        origin = f"{resolved.origin}, cut off" if cut else resolved.origin
        in_part = cut or _in_part(dict(resolved.values))
        facts.append(replace(resolved, source=cites, origin=origin, cut=in_part))
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
    return Found(f"{engine.title} {path} answer{', cut off' if cut else ''}", tuple(facts))


def _of_inspect(held: list[Any], key: str) -> Found | None:
    """`docker inspect`: the first container that runs a server."""
    for number, container in enumerate(held[:64]):
        config = mapping(mapping(container).get("Config"))
        if not config:
            continue
        words = (text(container.get("Path")), *_words(container.get("Args")))
        if len(words) < 2:
            words = (*_words(config.get("Entrypoint")), *_words(config.get("Cmd")))
        command = commands.of_words(words)
        if command is None:
            continue
        variables = tuple(
            (name, value)
            for name, equals, value in (e.partition("=") for e in _words(config.get("Env")))
            if equals
        )
        facts = tuple(commands.facts(command, key, f"$[{number}].Args", variables, seen=True))
        return Found(f"docker inspect of a container that runs {command.engine.title}", facts)
    return None


def _words(value: Any) -> tuple[str, ...]:
    return tuple(word for word in value if isinstance(word, str)) if isinstance(value, list) else ()
