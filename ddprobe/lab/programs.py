"""What the allow-listed programs have in common, and those that speak of the host as a whole.

Output, exit codes and sentences are GNU's under LC_ALL=C.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ddprobe import readonly
from ddprobe.lab.machine import Machine


@dataclass(slots=True)
class Output:
    """What a program wrote, and how it ended."""

    program: str
    stdout: bytearray = field(default_factory=bytearray)
    stderr: bytearray = field(default_factory=bytearray)
    exit: int = 0
    sample: Callable[[float], bytes] | None = None
    """What a program that goes on until it is stopped writes at a moment of the host's clock, …"""
    every: float = 1.0
    """… and the seconds between two of those."""

    def say(self, line: str) -> None:
        self.stdout += line.encode("utf-8", "surrogateescape") + b"\n"

    def complain(self, sentence: str, exit_code: int = 1) -> None:
        self.stderr += f"{self.program}: {sentence}\n".encode("utf-8", "surrogateescape")
        self.exit = max(self.exit, exit_code)


@dataclass(frozen=True, slots=True)
class Arguments:
    """An argv taken apart: options in order, then everything else."""

    options: tuple[tuple[str, str], ...]
    operands: tuple[str, ...]

    def has(self, option: str) -> bool:
        return any(name == option for name, _ in self.options)

    def value(self, option: str) -> str | None:
        """The last value given to this option."""
        return next((value for name, value in reversed(self.options) if name == option), None)

    def values(self, option: str) -> list[str]:
        return [value for name, value in self.options if name == option]


Program = Callable[[Machine, Arguments, Output], None]


def arguments(argv: Iterable[str]) -> Arguments:
    """Options and operands, by the policy's own table of options."""
    program, *words = argv
    table = readonly.PROGRAMS[program]
    options: list[tuple[str, str]] = []
    operands: list[str] = []
    words.reverse()
    while words:
        word = words.pop()
        if word == "--":
            operands += reversed(words)
            break
        if word in table:
            options.append((word, words.pop() if table[word] is not None and words else ""))
        else:
            operands.append(word)
    return Arguments(tuple(options), tuple(operands))


def quoted(path: str, *, always: bool = True) -> str:
    """The path as GNU programs print it in a sentence."""
    if not always and re.fullmatch(r"[A-Za-z0-9_./:@%+,=-]+", path):
        return path
    return f'"{path}"' if "'" in path else f"'{path}'"


# --- the host ------------------------------------------------------------------------------------------------


def uname(machine: Machine, given: Arguments, out: Output) -> None:
    said = {
        "-s": "Linux", "-n": machine.hostname, "-r": machine.kernel,
        "-v": "#1 SMP PREEMPT_DYNAMIC ddprobe lab", "-m": "x86_64", "-o": "GNU/Linux",
    }  # fmt: skip
    asked = [letter for letter in said if given.has("-a") or given.has(letter)] or ["-s"]
    out.say(" ".join(said[letter] for letter in asked))


def id_(machine: Machine, given: Arguments, out: Output) -> None:
    if given.has("-u"):
        out.say(str(machine.uid))
    elif given.has("-un"):
        out.say(machine.user)
    else:
        who = f"{machine.uid}({machine.user})"
        out.say(f"uid={who} gid={who} groups={who}")


def hostname(machine: Machine, _given: Arguments, out: Output) -> None:
    out.say(machine.hostname)


def date(machine: Machine, given: Arguments, out: Output) -> None:
    now = machine.clock()
    if given.has("+%s"):
        out.say(str(int(now)))
    elif given.has("+%s.%N"):
        out.say(f"{int(now)}.{int(now % 1 * 1e9):09d}")
    else:
        out.say(time.strftime("%a %b %e %H:%M:%S UTC %Y", time.gmtime(now)))


def journalctl(_machine: Machine, _given: Arguments, _out: Output) -> None:
    """There is no journal, of which `-q` says nothing."""


def echo(_machine: Machine, given: Arguments, out: Output) -> None:
    out.say(" ".join(given.operands))


def true(_machine: Machine, _given: Arguments, _out: Output) -> None:
    pass
