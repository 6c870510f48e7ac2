"""Reads how a container is started: Compose files, Kubernetes manifests, Dockerfiles, JSON with the same fields.

command: [python3, -m, …]      args: [--tp, "8"]           words
environment: {A: 1}            environment: [A=1]          variables, of Compose
env: [{name: A, value: "1"}]                               and of Kubernetes
ENV A=1 B=2     ENV A 1        CMD ["python3", "-m", …]    of a Dockerfile
Command:        Args:          Environment:                of `kubectl describe pod`: a word, a variable a line below
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ddprobe.parsing import block_text, shell_words

MOST = 64
DEEPEST = 24
_WORDS = ("entrypoint", "command", "cmd", "args", "argv")
_VARIABLES = ("environment", "env", "env_vars")
_NAME = re.compile(r"[A-Za-z_]\w*\Z")
_ANY = re.compile(
    r"""^\s*(?:-\s+)?["']?(?:entrypoint|command|cmd|args|argv|environment|env|env_vars)["']?\s*:""",
    re.MULTILINE,
)
_DESCRIBED = re.compile(r"^( +)Image:( +)(\S+)\s*$", re.MULTILINE)
_SECTION = re.compile(r"( +)(Command|Args|Environment):\s*\Z")
_PAIR = re.compile(r" +([A-Za-z_]\w*): {2,}(\S.*?)\s*\Z")
_INSTRUCTION = re.compile(r"(FROM|ENV|CMD|ENTRYPOINT|ARG)\s+(.*)\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Container:
    """What a container runs."""

    words: tuple[str, ...]
    """Of the command; one word of several where it is given as text for a shell."""
    variables: tuple[tuple[str, str], ...]
    image: str
    line: int
    as_list: bool = False
    """The words are a list, which no reader of lines can see as a command."""


def read(text: str) -> tuple[Container, ...]:
    """The containers that a text describes; none where it describes none."""
    if re.match(r"\s*(?:#[^\n]*\n\s*)*(?:ARG [^\n]*\n\s*)*FROM \S", text):
        return tuple(_dockerfile(text))
    if text.lstrip()[:1] in ("{", "["):
        try:
            held = json.loads(text)
        except (ValueError, RecursionError):
            return ()
        if isinstance(held, list) and held and all(isinstance(word, str) for word in held):
            return (Container(tuple(held), (), "", 1, as_list=True),)
        return tuple(_found(held, 0))[:MOST]
    if _DESCRIBED.search(text):
        return tuple(_described(text))[:MOST]
    if not _ANY.search(text):
        return ()
    return tuple(one for value in block_text.read(text) for one in _found(value, 0))[:MOST]


def _described(text: str) -> Iterator[Container]:
    """The containers that `kubectl describe pod` tells of; values that it does not show are left out."""
    image, first, words, variables = "", 1, [], []  # type: ignore[var-annotated]
    section, depth = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        indent = len(line) - len(line.lstrip(" "))
        if told := _DESCRIBED.match(line):
            if words or variables:
                yield Container(tuple(words), tuple(variables), image, first, as_list=True)
            image, first, words, variables, section = told[3], number, [], [], ""
        elif head := _SECTION.match(line):
            section, depth = head[2], len(head[1])
        elif indent <= depth or not line.strip():
            section = ""
        elif section == "Environment":
            if (pair := _PAIR.match(line)) and not pair[2].startswith("<"):
                variables.append((pair[1], pair[2]))
        elif section:
            words.append(line.strip())
    if words or variables:
        yield Container(tuple(words), tuple(variables), image, first, as_list=True)


def _found(value: Any, deep: int) -> Iterator[Container]:
    if deep > DEEPEST:
        return
    if isinstance(value, list):
        for item in value[:1000]:
            yield from _found(item, deep + 1)
    if not isinstance(value, dict):
        return
    fields = {str(name).lower(): held for name, held in value.items()}
    given = [fields[name] for name in _WORDS if fields.get(name)]
    variables = tuple(pair for name in _VARIABLES for pair in _variables(fields.get(name)))
    words = tuple(word for one in given for word in _words(one))
    image = fields.get("image")
    if words or variables:
        yield Container(
            words,
            variables,
            image if isinstance(image, str) else "",
            getattr(value, "line", 1),
            as_list=any(isinstance(one, list) for one in given),
        )
    for held in value.values():
        yield from _found(held, deep + 1)


def _words(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(word for words in shell_words.commands(value.replace("\\\n", " ")) for word in words)
    if isinstance(value, list):
        return tuple(str(word) for word in value if isinstance(word, str | int | float))
    return ()


def _variables(value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        pairs: Iterable[tuple[Any, Any]] = value.items()
    elif isinstance(value, list):
        pairs = (
            (item.get("name"), item.get("value")) if isinstance(item, dict) else str(item).partition("=")[::2]
            for item in value
        )
    else:
        return
    for name, told in pairs:
        if isinstance(name, str) and isinstance(told, str | int | float) and _NAME.match(name):
            yield name, str(told)


def _dockerfile(text: str) -> Iterator[Container]:
    """What the last stage runs, with the variables of that stage."""
    image, runs, variables, first = "", {}, {}, 1  # type: ignore[var-annotated]
    for number, line in shell_words.logical_lines(text.splitlines()):
        found = _INSTRUCTION.match(line.strip())
        if not found:
            continue
        what, rest = found.groups()
        if what == "FROM":
            image, runs, variables, first = rest.split()[0], {}, {}, number
        elif what == "ENV":
            variables.update(_set(rest))
        elif what != "ARG":
            runs[what] = _run(rest)
    words = (*runs.get("ENTRYPOINT", ()), *runs.get("CMD", ()))
    if words or variables:
        yield Container(words, tuple(variables.items()), image, first, as_list=True)


def _set(rest: str) -> Iterator[tuple[str, str]]:
    name, space, value = rest.strip().partition(" ")
    if "=" not in name:
        if space and _NAME.match(name):
            yield name, value.strip().strip("\"'")
        return
    for words in shell_words.commands(rest):
        for word in words:
            name, equals, value = word.partition("=")
            if equals and _NAME.match(name):
                yield name, value


def _run(rest: str) -> tuple[str, ...]:
    try:
        held = json.loads(rest)
    except (ValueError, RecursionError):
        held = None
    if isinstance(held, list):
        return tuple(word for word in held if isinstance(word, str))
    return tuple(word for words in shell_words.commands(rest) for word in words)
