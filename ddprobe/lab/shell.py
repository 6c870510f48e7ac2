"""The made-up host's side of a session's scripts: recognises them whole, answers their questions, runs no shell.

A script is taken apart and then written again by `sessions.framing`; only if that gives the very bytes that came has
it been understood. So the two sides cannot drift apart unnoticed: what is not recognised is refused with a sentence.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from ddprobe import readonly
from ddprobe.errors import Refused
from ddprobe.lab import entries, programs, reading, smi
from ddprobe.lab.find import find
from ddprobe.lab.globs import expand
from ddprobe.lab.grep import grep
from ddprobe.lab.machine import Machine
from ddprobe.lab.programs import Output, Program
from ddprobe.model import Command, Glob, Word
from ddprobe.sessions import framing

PROGRAMS: dict[str, Program] = {
    "cat": reading.cat,
    "head": reading.head,
    "tail": reading.tail,
    "sed": reading.sed,
    "wc": reading.wc,
    "grep": grep,
    "ls": entries.ls,
    "readlink": entries.readlink,
    "stat": entries.stat,
    "uname": programs.uname,
    "id": programs.id_,
    "hostname": programs.hostname,
    "date": programs.date,
    "journalctl": programs.journalctl,
    "dmesg": smi.dmesg,
    "nvidia-smi": smi.nvidia_smi,
    "dcgmi": smi.absent,
    "rocm-smi": smi.absent,
    "amd-smi": smi.absent,
    "echo": programs.echo,
    "true": programs.true,
}
"""`find` besides: its options are an expression."""

SORRY = b"ddprobe lab: this host is made up. It answers the questions that ddprobe asks, and has no shell for others.\n"
TERMINATED = 143
"""How a program ends that somebody stops."""
MAX_SCRIPT = 64 * 1024 * 1024
PIPE = 64 * 1024

_MARKED = r"M='([\w-]+)''([\w-]+)'"
_READY = 'echo "$M ready $S$L" >&7\n'
_DONE = 'echo "$M done" >&7; }\n'
_PREAMBLE = re.compile(rf"\A\n.*\nT=([\w-]+)\n.*\n{_MARKED}\n{re.escape(_READY)}\Z", re.DOTALL)
_SCRIPT = re.compile(
    rf"\A\{{ {_MARKED}\n\{{ begin \d+\n(.*)finish; \}} \| guard\n{re.escape(_DONE)}\Z", re.DOTALL
)
_SWEEP = re.compile(rf"\A\{{ {_MARKED}; ")
_WORD = re.compile(r"(?:'[^']*'|\"'\"|[^\s'\"|]+)+")
_QUOTED = re.compile(r"'([^']*)'|\"(')\"|([^'\"]+)")
_END = re.compile(f"{re.escape(_READY)}|{re.escape(_DONE)}".encode())
_OPENINGS = (framing.preamble("", "")[:20], b"{ M='", framing.STOP)


class Unrecognised(Exception):
    """This is no script of ours."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One question of a script."""

    number: int
    command: Command
    seconds: float


@dataclass(slots=True)
class Shell:
    """What stands where a host has `/bin/sh -s`: bytes of stdin in, bytes of both streams out."""

    machine: Machine
    waits: float | None = field(default=None, init=False)
    """While a program goes on: seconds until `feed` wants to be called again, with nothing if nothing comes."""
    _held: bytes = field(default=b"", init=False)
    _script: Iterator[tuple[bytes, bytes] | float] | None = field(default=None, init=False)
    _stopped: bool = field(default=False, init=False)

    def feed(self, data: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Pieces of stdout and stderr, in order. Raises `Unrecognised`."""
        self._held += data
        self._stopped = self._held.startswith(framing.STOP)
        while self._script is not None or (text := self._next()):
            script = self._script or self._answer(text)
            self._script = self.waits = None
            for piece in script:
                if isinstance(piece, float):
                    self._script, self.waits = script, piece
                    return
                yield piece

    def _next(self) -> str:
        """The next script that is complete; nothing when there is none."""
        # A word that came too late to stop anything.
        while self._held.startswith(framing.STOP):
            self._held = self._held.removeprefix(framing.STOP)
        if not self._held:
            return ""
        known = any(self._held.startswith(opening[: len(self._held)]) for opening in _OPENINGS)
        if not known or len(self._held) > MAX_SCRIPT:
            raise Unrecognised
        script = self._first_script()
        if script is None:
            return ""
        self._held = self._held[len(script) :]
        return script.decode("utf-8", "surrogateescape")

    def _first_script(self) -> bytes | None:
        """The script that is complete, if one is; a body within it may hold what looks like its end."""
        script = None
        for found in _END.finditer(self._held):
            script = self._held[: found.end()]
            if _understood(script):
                return script
        if script == self._held:
            raise Unrecognised
        return None

    def _answer(self, text: str) -> Iterator[tuple[bytes, bytes] | float]:
        if found := _PREAMBLE.match(text):
            yield f"{found[2]}{found[3]} ready setsid\n".encode(), b""
            return
        if found := _SWEEP.match(text):
            marker = found[1] + found[2]
            yield f"{marker} swept 0\n{marker} done\n".encode(), b""
            return
        marker, questions = parse(text)
        begin = f"{marker} begin\n".encode()
        yield begin, begin
        for asked in questions:
            began = time.monotonic()
            out = run(self.machine, asked.command)
            yield from self._going(out, asked, began)
            yield framed(marker, asked, out, began, time.monotonic())
        yield f"{marker} done\n".encode(), b""

    def _going(self, out: Output, asked: Asked, began: float) -> Iterator[float]:
        """Write on until a stop, the deadline or the cap; what is yielded are the seconds to wait."""
        if out.sample is None:
            return
        due, limit = began, began + asked.seconds
        while due < limit and len(out.stdout) <= asked.command.cap:
            out.stdout += out.sample(self.machine.clock())
            due = min(due + out.every, limit)
            while not self._stopped and (left := due - time.monotonic()) > 0:
                yield left
            if self._stopped:
                break
        out.exit = TERMINATED


def _understood(data: bytes) -> bool:
    text = data.decode("utf-8", "surrogateescape")
    if found := _PREAMBLE.match(text):
        return framing.preamble(found[2] + found[3], found[1]) == data
    if found := _SWEEP.match(text):
        return framing.sweep_script(found[1] + found[2]) == data
    try:
        marker, questions = parse(text)
    except Unrecognised:
        return False
    return framing.script(marker, [(asked.command, asked.seconds) for asked in questions]) == data


def parse(text: str) -> tuple[str, tuple[Asked, ...]]:
    """The marker and the questions of a script. Raises `Unrecognised`."""
    found = _SCRIPT.match(text)
    if not found:
        raise Unrecognised
    return found[1] + found[2], tuple(_questions(found[3]))


def _questions(body: str) -> Iterator[Asked]:
    at = 0
    while at < len(body):
        line: list[Word] = []
        stdin = b""
        while body[at : at + 1] not in ("\n", ""):
            if body.startswith("| ", at):
                stdin, line, at = _unescaped(str(line[-1])), [], at + 2
                continue
            found = _WORD.match(body, at)
            if not found:
                raise Unrecognised
            line.append(_word(found.group()))
            at = found.end() + (body[found.end() : found.end() + 1] == " ")
        at += 1
        match line:
            case ["ask", str(number), str(cap), str(ticks), str(program), *rest] if (
                number + cap + ticks
            ).isdigit():
                command = Command(
                    key=number, argv=(program, *rest), stdin=stdin, cap=int(cap) - 1, timeout=int(ticks) - 1
                )
                yield Asked(int(number), command, int(ticks) - 1)
            case _:
                raise Unrecognised


def _word(text: str) -> Word:
    if "'" not in text and re.search(r"[*?\[]", text):
        return Glob(text)
    return "".join(a or b or c for a, b, c in _QUOTED.findall(text))


def _unescaped(text: str) -> bytes:
    """A body out of the form that printf's %b reads."""
    data = text.encode("utf-8", "surrogateescape")
    return re.sub(rb"\\(\\|0000)", lambda found: b"\\" if found[1] == b"\\" else b"\0", data)


def run(machine: Machine, command: Command) -> Output:
    """The program's answer from the made-up tree."""
    program = str(command.argv[0])
    out = Output(program)
    try:
        readonly.check(command)
    except Refused as error:
        out.program = "ddprobe lab"
        out.complain(error.message, 126)
        return out
    argv = [word for given in command.argv for word in _expanded(machine, given)]
    if program == "find":
        find(machine, tuple(argv), out)
    elif program in PROGRAMS:
        PROGRAMS[program](machine, programs.arguments(argv), out)
    else:
        out.program = "setsid"
        out.complain(f"failed to execute {program}: No such file or directory", 127)
    return out


def _expanded(machine: Machine, word: Word) -> list[str]:
    return expand(machine.tree, word.pattern) if isinstance(word, Glob) else [word]


def framed(marker: str, asked: Asked, out: Output, began: float, ended: float) -> tuple[bytes, bytes]:
    """Both streams of an answer with their trailing lines, cut as the host's `head -c` cuts."""
    room = asked.command.cap + 1
    # Whoever writes on into a pipe that nobody reads is ended by SIGPIPE.
    code = 141 if len(out.stdout) > room + PIPE else out.exit
    line = f"{marker} {asked.number} {code} {began:.2f} {ended:.2f}\n"
    stdout = bytes(out.stdout[:room]) + line.encode()
    return stdout, bytes(out.stderr[: framing.STDERR_CAP + 1]) + f"{marker} {asked.number}\n".encode()
