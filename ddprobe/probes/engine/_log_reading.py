"""How much of a log is asked for: its beginning, its recent part, and lines that say something of a start or an end,
wherever they stand. A large log is searched on its host; only what is needed travels.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ddprobe.errors import Unanswered
from ddprobe.model import MIB, Command, Evidence, Glob
from ddprobe.parsing import file_status, startup_lines
from ddprobe.probes.engine._log_places import Place

WHOLE = 4 * MIB
"""A log up to this size is read whole."""
STATUS = f"{file_status.FORMAT}|%Y|%i"
MISSING = "there is no such file"
FOLLOWING = "follow-"
"""How the keys of what is asked while a log is followed begin."""
HEAD = MIB // 4
TAILS = (4 * MIB, 16 * MIB, 60 * MIB)
"""Bytes of the recent part: more only where the time asked for reaches further back."""
SPARE = 64
"""Bytes of a cap beyond what can come, so that an answer of just that size is no cut one."""
MOST_SIGNS = 2000
JOURNAL_LINES = 20_000
JOURNAL_CAP = 60 * MIB
SEARCH_SECONDS = 120.0
ABOUT_DECODING = "Decode batch|SpecDecoding metrics|draft acceptance|avg_commit_len|commit_lens"
# These stand in many a line that says nothing of a start; what follows them tells.
_NARROWER = {
    "EngineCore": "EngineCore (failed|encountered|hit)",
    "draft": "(load|create).*draft|draft model|vocab.*draft",
}
_SPECIAL = re.compile(r"[][(){}.*+?^$|\\]")
SIGNS = "|".join(
    (
        startup_lines.TRACEBACK.partition(" ")[0],
        "(Error|Exception|Fault|Exit)(:|$)",
        *dict.fromkeys(
            _NARROWER.get(row.needle) or _SPECIAL.sub(r"\\\g<0>", row.needle)
            for row in startup_lines.CATALOGUE
        ),
    )
)
"""Matches every line that may be a start-up fact or a warning; whether it is one, the catalogue says."""

_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-+@,=:")


def about(number: int, place: Place) -> tuple[Command, ...]:
    """What stands there, and what was rotated away beside it."""
    if place.journal:
        return ()
    status = ("stat", "-L", "-c", STATUS, place.path)
    asked = [Command(key=f"log-{number}-status", argv=status, exits=(0, 1))]
    if set(place.path) <= _PLAIN:
        older = (Glob(f"{place.path}.*"), Glob(f"{place.path}-*"))
        asked.append(Command(key=f"log-{number}-rotated", argv=("ls", "-1", "-d", *older), exits=(0, 1, 2)))
    return tuple(asked)


@dataclass(frozen=True, slots=True)
class Status:
    """How large a log is, when it was written last (seconds since the epoch), and which file it is."""

    size: int
    written: int
    file: str = ""
    """Its inode; empty where it was not asked for."""


def status(evidence: Evidence, key: str) -> Status:
    """From `stat`. Raises `Unanswered` for what is no file that can be read."""
    answer = evidence.command(key)
    fields = answer.text.strip().split("|")
    known = file_status.FORMAT.count("|") + 1
    found = file_status.parse("|".join(fields[:known]), answer.stderr.decode("utf-8", "replace"))
    if found.kind != "file":
        why = {
            "missing": MISSING,
            "denied": "this user may not enter its folder",
            "directory": "it is a directory",
        }
        raise Unanswered(key, why.get(found.kind, found.description or "what it is could not be told"))
    written, file = (*fields[known:], "", "")[:2]
    return Status(found.size, int(written[:12]) if written.isascii() and written.isdecimal() else 0, file)


def first(evidence: Evidence, number: int, place: Place) -> tuple[Command, ...]:
    """What to read of it; nothing where it cannot be read."""
    at = f"log-{number}"
    if place.journal:
        argv = (
            "journalctl",
            "-q",
            "--no-pager",
            "-o",
            "short-iso",
            "-n",
            str(JOURNAL_LINES),
            place.journal,
            place.path,
        )
        return (Command(key=f"{at}-journal", argv=argv, cap=JOURNAL_CAP, alone=True, timeout=SEARCH_SECONDS),)
    try:
        size = status(evidence, f"{at}-status").size
    except Unanswered:
        return ()
    if size <= WHOLE:
        return (
            Command(
                key=f"{at}-whole",
                argv=("head", "-c", str(max(size, 1)), place.path),
                cap=WHOLE + SPARE,
                alone=True,
            ),
        )
    signs = ("grep", "-a", "-n", "-m", str(MOST_SIGNS), "-E", "-e", SIGNS, place.path)
    lines = ("grep", "-a", "-c", "-E", "-e", ABOUT_DECODING, place.path)
    return (
        Command(key=f"{at}-head", argv=("head", "-c", str(HEAD), place.path), cap=HEAD + SPARE),
        _tail(number, place, TAILS[0]),
        Command(key=f"{at}-signs", argv=signs, exits=(0, 1), cap=4 * MIB, alone=True, timeout=SEARCH_SECONDS),
        Command(key=f"{at}-lines", argv=lines, exits=(0, 1), alone=True, timeout=SEARCH_SECONDS),
    )


def longer(number: int, place: Place, size: int, got: int) -> Command | None:
    """The next longer recent part of a log of that size; None where there is none."""
    if not got or got >= size:
        return None
    return next((_tail(number, place, tail) for tail in TAILS if tail > got), None)


def _tail(number: int, place: Place, size: int) -> Command:
    argv = ("tail", "-c", str(size), place.path)
    return Command(
        key=f"log-{number}-tail-{size}", argv=argv, cap=size + SPARE, alone=True, timeout=SEARCH_SECONDS
    )


def tail_size(evidence: Evidence, number: int) -> int:
    return max((tail for tail in TAILS if evidence.has(f"log-{number}-tail-{tail}")), default=0)


# --- following ---------------------------------------------------------------------------------------------


def watch(round_: int, number: int, place: Place) -> Command:
    """How large the log is by now."""
    argv = ("stat", "-L", "-c", STATUS, place.path)
    return Command(key=f"{FOLLOWING}{round_}-{number}-status", argv=argv, exits=(0, 1))


def added(round_: int, number: int, place: Place, start: int, size: int) -> Command:
    """The bytes from `start` to `size`: what comes behind them is of the next round."""
    argv = ("tail", "-c", f"+{start + 1}", place.path)
    return Command(key=f"{FOLLOWING}{round_}-{number}-lines", argv=argv, cap=min(size - start, WHOLE))
