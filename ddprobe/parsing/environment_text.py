"""Reads environments as they are dumped or typed: `env`, `/proc/PID/environ`, `export -p`, unit files, a shell's lines.

HOME=/root
me@gpu1:~$ export SGLANG_SIMULATE_ACC_LEN="3.5" && python …
declare -x CUDA_VISIBLE_DEVICES="0"
Environment="VLLM_USE_V1=1" "HF_HOME=/models"
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ddprobe.parsing import shell_words

_ASSIGNMENT = re.compile(
    r"\s*(?:-\s+)?(?:export\s+|declare\s+-x\s+|setenv\s+|ENV\s+)?([A-Za-z_]\w*)=(.*)\Z", re.DOTALL
)
_UNIT = re.compile(r"\s*Environment=(.+)\Z")
_SHORT = re.compile(r"-e[A-Z_]\w*=")
"""Docker's `-eNAME=value`."""
_PROMPT = re.compile(
    r"""\s*(?:\([\w.+-]{1,40}\)\s*)?                                         # an environment of Python's
        (?: [$%>❯]\s
          | \[?[\w.-]{1,40}@[\w.-]{1,80}(?:[:\s][^\s$#%>]{0,200})?\s?[$#%>❯]\s  # a bare # begins a comment
        )""",
    re.VERBOSE,
)
_FISH = re.compile(r"-[a-zA-Z]*x[a-zA-Z]*|--export")
_NAME = re.compile(r"[A-Za-z_]\w*")
_SETTERS = frozenset({"export", "declare", "typeset", "setenv", "set"})
_ASKS = re.compile(
    r"\s*(?:env|printenv|export -p|set)(?:\s*\|[^|]{0,200})*\s*|\s*(?:cat|tr)\s[^|]{0,200}/environ\b.{0,200}"
)
_MOST = 4096
_NAMES = frozenset({"PATH", "HOME", "PWD"})


@dataclass(frozen=True, slots=True)
class Dump:
    """Variables of a dump."""

    variables: tuple[tuple[str, str], ...]
    share: float
    """How many of the lines that say anything are assignments."""

    @property
    def whole(self) -> bool:
        """True for all of a process's environment: everyone has one of these. Else an absent variable says nothing."""
        return any(name in _NAMES for name, _ in self.variables)


def read(text: str) -> Dump:
    """The assignments of a text, the last of each name, sorted; the text of `/proc/PID/environ` included."""
    entries = text.split("\0") if "\0" in text else text.splitlines()
    found: dict[str, str] = {}
    said = assigned = 0
    for entry in entries[:_MOST]:
        if not entry.strip() or entry.lstrip().startswith("#"):
            continue
        if "\0" not in text and _ASKS.fullmatch(_behind_prompt(entry)):
            continue  # what printed it
        typed = {} if "\0" in text else {name: value for name, value in typed_in(entry) if value is not None}
        pairs = _of_unit(entry) or typed or assignment(entry, literal="\0" in text)
        said += 1
        assigned += bool(pairs) and not (typed and _more_than_sets(entry))
        found.update(pairs)
    return Dump(tuple(sorted(found.items())), assigned / said if said else 0.0)


def assignment(entry: str, literal: bool = False) -> dict[str, str]:
    """The variable that a line sets; empty when it sets none. Unless literal, quotes around the value go."""
    found = _ASSIGNMENT.match(entry)
    if not found:
        return {}
    value = found.group(2)
    if not literal and value.endswith("\\"):
        value = value[:-1].rstrip()  # what it is set for follows on the next line
    bare = value.strip()
    if not literal and len(bare) > 1 and bare[0] in "'\"" and bare[-1] == bare[0]:
        value = bare[1:-1]
    return {found.group(1): value}


def typed_in(line: str) -> Iterator[tuple[str, str | None]]:
    """The variables that a line sets for what a shell starts after it, a prompt in front or not; None: it unsets it."""
    for words in shell_words.commands(_behind_prompt(line)):
        match words:
            case ["export", *rest] | ["declare" | "typeset", "-x" | "-gx", *rest]:
                yield from leading(rest).items()
            case ["setenv", name, value, *_] if _NAME.fullmatch(name):
                yield name, value
            case ["set", flag, name, *values] if values and _FISH.fullmatch(flag) and _NAME.fullmatch(name):
                yield name, " ".join(values)
            case ["unset", *names] | ["unsetenv", *names]:
                yield from ((name, None) for name in names)


def _behind_prompt(line: str) -> str:
    prompt = _PROMPT.match(line)
    return line[prompt.end() :] if prompt else line


def _more_than_sets(line: str) -> bool:
    """Whether what the line sets is for a command that stands on it, too."""
    return any(words[0] not in _SETTERS for words in shell_words.commands(_behind_prompt(line)))


def leading(words: Iterable[str]) -> dict[str, str]:
    """The assignments among the words in front of a command: `A=1 env B=2 python …`, `docker run -e C=3 …`."""
    found: dict[str, str] = {}
    for word in words:
        text = word.partition("=")[2] if word.startswith(("--env=", "-e=")) else word
        text = text[2:] if _SHORT.match(text) else text
        if not text.startswith("-"):
            found.update(assignment(text, literal=True))
    return found


def _of_unit(entry: str) -> dict[str, str]:
    unit = _UNIT.match(entry)
    if not unit:
        return {}
    return leading(word for command in shell_words.commands(unit.group(1)) for word in command)
