"""`grep -n -H [-C N] … FILE…`: the matching lines, and their context, of files whose paths are known beforehand.

    /venv/sglang/srt/speculative/dflash_worker_v2.py:212:def _commit_accept(candidates, accept_len, bonus_tokens):
    /venv/sglang/srt/speculative/dflash_worker_v2.py-213-    "The committed block: drafted tokens shifted left
    --

A path may itself hold `:12:` or `-12-`, so a line is split at the longest path that grep was given.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

_NUMBER = re.compile(r"([:-])(\d{1,9})\1")
_LONGEST_PATH = 4096
_MESSAGE = re.compile(r"grep: (?P<about>.*?)(: (?P<why>[^:]+))?\Z")


@dataclass(frozen=True, slots=True)
class GrepLine:
    """A line that grep printed."""

    path: str
    number: int
    text: str
    hit: bool
    """False for a line of context."""


def parse(output: str, paths: Collection[str]) -> Iterator[GrepLine]:
    """The lines in the order printed. What belongs to none of the paths (`--`, a cut last line) is left out."""
    known = paths if isinstance(paths, set | frozenset) else frozenset(paths)
    for line in output.split("\n"):
        found = None
        for match in _NUMBER.finditer(line, 0, _LONGEST_PATH + 12):
            if line[: match.start()] in known:
                found = match
        if found is not None:
            yield GrepLine(line[: found.start()], int(found[2]), line[found.end() :], found[1] == ":")


def unread(stderr: str, paths: Collection[str]) -> dict[str, str]:
    """The files that grep could not read, and why."""
    told = {}
    for match in map(_MESSAGE.match, stderr.split("\n")):
        if match is not None and match["why"] and match["about"] in paths:
            told[match["about"]] = match["why"]
    return told


def complaint(stderr: str, paths: Collection[str]) -> str:
    """What grep said that is about no file, such as what it thinks of the pattern; empty when nothing."""
    for line in stderr.split("\n"):
        match = _MESSAGE.match(line)
        if match is not None and match["about"] not in paths and not line.startswith("grep: warning:"):
            return line.removeprefix("grep: ").strip()[:300]
    return ""
