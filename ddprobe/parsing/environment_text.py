"""Reads environments as they are dumped: `env`, `printenv`, `/proc/PID/environ`, `export -p`, unit files.

HOME=/root
export SGLANG_SIMULATE_ACC_LEN="3.5"
declare -x CUDA_VISIBLE_DEVICES="0"
Environment="VLLM_USE_V1=1" "HF_HOME=/models"
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from ddprobe.parsing import shell_words

_ASSIGNMENT = re.compile(
    r"\s*(?:-\s+)?(?:export\s+|declare\s+-x\s+|setenv\s+|ENV\s+)?([A-Za-z_]\w*)=(.*)\Z", re.DOTALL
)
_UNIT = re.compile(r"\s*Environment=(.+)\Z")
_SHORT = re.compile(r"-e[A-Z_]\w*=")
"""Docker's `-eNAME=value`."""
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
        said += 1
        pairs = _of_unit(entry) or assignment(entry, literal="\0" in text)
        assigned += bool(pairs)
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
