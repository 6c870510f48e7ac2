"""Reads a server's command line into names and values, by its engine's dialect.

    --speculative-num-draft-tokens 8 --tp=4 --trust-remote-code --json-model-override-args '{"a": 1}'
    → speculative_num_draft_tokens 8, tp_size 4, trust_remote_code True, json_model_override_args {"a": 1}

Unknown flags are kept under their own name (dashes become underscores), so a new release needs no change here.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ddprobe.parsing import bounded_json

_INTEGER = re.compile(r"[+-]?\d{1,18}\Z")
_FLOAT = re.compile(r"[+-]?(\d+\.\d*|\.\d+|\d+(\.\d*)?[eE][+-]?\d+)\Z")


SHORTEST = 4
"""Characters of a flag that is cut short."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How one engine writes its flags."""

    aliases: Mapping[str, str] = field(default_factory=dict)
    """Flag without its dashes → canonical name, where the name is not just the flag with underscores."""
    switches: re.Pattern[str] = re.compile(r"(?!)")
    """Canonical names of flags that take no value."""
    many: frozenset[str] = frozenset()
    """Canonical names of flags that take all words up to the next flag."""
    texts: frozenset[str] = frozenset()
    """Canonical names whose values stay text even where they look like a number."""
    positional: str = ""
    """The name of a word that belongs to no flag."""
    shortened: tuple[str, ...] = ()
    """Canonical names of flags that may be cut to what tells them apart, as Python's argparse lets people do."""
    single_dash: bool = False
    """`-np 4` is a flag (llama.cpp); else only what begins with two dashes is."""


def parse(words: tuple[str, ...], dialect: Dialect) -> dict[str, Any]:
    """Names and values in the order given; of a flag given twice, the last wins as it does for the server."""
    found: dict[str, Any] = {}
    rest = deque(words)
    while rest:
        word = rest.popleft()
        if not _is_flag(word, dialect):
            if dialect.positional:
                found.setdefault(dialect.positional, word)
            continue
        flag, equals, attached = word.lstrip("-").partition("=")
        name = _name(flag, dialect)
        negated = not equals and name.startswith("no_")
        found.pop(name, None)
        if equals:
            found[name] = value_of(name, attached, dialect)
        elif name in dialect.many:
            values = []
            while rest and not _is_flag(rest[0], dialect):
                values.append(value_of(name, rest.popleft(), dialect))
            found[name] = tuple(values)
        elif negated or dialect.switches.match(name) or not rest or _is_flag(rest[0], dialect):
            found.pop(name.removeprefix("no_"), None)
            found[name.removeprefix("no_") if negated else name] = not negated
        else:
            found[name] = value_of(name, rest.popleft(), dialect)
    return found


def _name(flag: str, dialect: Dialect) -> str:
    """The canonical name of a flag without its dashes, cut short or not."""
    plain = flag.replace("-", "_")
    if flag in dialect.aliases or plain in dialect.shortened or not dialect.shortened:
        return dialect.aliases.get(flag, plain)
    meant = {name for name in dialect.shortened if name.startswith(plain)}
    meant |= {name for other, name in dialect.aliases.items() if other.startswith(flag)}
    return meant.pop() if len(meant) == 1 and len(flag) >= SHORTEST else plain


def _is_flag(word: str, dialect: Dialect) -> bool:
    if word.startswith("--"):
        return len(word) > 2
    return dialect.single_dash and bool(re.match(r"-[A-Za-z]", word))


def value_of(name: str, word: str, dialect: Dialect) -> Any:
    """A word as the number, the JSON or the text it is."""
    if name in dialect.texts:
        return word
    if _INTEGER.match(word):
        return int(word)
    if _FLOAT.match(word):
        return float(word)
    if word[:1] in "{[" and word[-1:] in "}]":
        try:
            return bounded_json.loads(word)
        except ValueError:
            return word
    return {"true": True, "false": False}.get(word.lower(), word)
