"""The lines of the installed engine, as far as they were read, that compute what a step accepts and commits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ddprobe.facts import SourceHit, SourceRange
from ddprobe.model import Cite
from ddprobe.verdicts.case import Case

_COMMITTED = re.compile(
    r"(?:self\.)?\w*(?:commit_len|verified_len|correct_len|accept_length)\w*\s*(?::[^=]+)?\+?=\s*\S"
)
_ACCEPTED = re.compile(
    r"(?:self\.)?\w*(?:accept\w*_depth|accepted_drafts?|accept_lens?\b|num_correct|num_accept)\w*\s*(?::[^=]+)?\+?=\s*\S"
)
_HANDED_ON = re.compile(r"(\w+)\s*=\s*(?:\w+\.)*\1,?\Z")
"""`commit_lens=commit_lens,` passes a value on and computes nothing."""
_BEGUN = re.compile(r"[^+]=\s*(?:\d+(?:\.\d+)?|None|\[\])\Z")
"""`self.sum_commit_len = 0` neither."""
LONGEST_LINE = 110


@dataclass(frozen=True, slots=True)
class Line:
    """A line that computes one of the two."""

    path: str
    number: int
    text: str
    committed: bool
    """What is committed; else what is accepted."""
    cite: Cite

    @property
    def told(self) -> str:
        text = self.text if len(self.text) <= LONGEST_LINE else f"{self.text[:LONGEST_LINE]}…"
        return f"{self.path}:{self.number} has `{text}`"


def lines(case: Case) -> tuple[Line, ...]:
    """What was read of them, of each of the two at most two, in the order of the files."""
    found: dict[tuple[str, int], Line] = {}
    for path, number, text, cite in _read(case):
        stripped = text.strip()
        if stripped.startswith("#") or _HANDED_ON.match(stripped) or _BEGUN.search(stripped):
            continue
        for pattern, committed in ((_COMMITTED, True), (_ACCEPTED, False)):
            if pattern.match(stripped):
                found.setdefault((path, number), Line(path, number, stripped, committed, cite))
                break
    # A sum over steps computes less than what it sums, and a depth is what nobody can tell from its name.
    ordered = sorted(
        found.values(), key=lambda line: ("+=" in line.text, "depth" not in line.text, line.path, line.number)
    )
    chosen = [line for line in ordered if line.committed][:2] + [
        line for line in ordered if not line.committed
    ][:2]
    return tuple(sorted(chosen, key=lambda line: (line.path, line.number)))


def _read(case: Case) -> Iterator[tuple[str, int, str, Cite]]:
    for whole in case.every(SourceRange):
        artefact = whole.source[0].artefact if whole.source else ""
        for offset, text in enumerate(whole.text.splitlines() if whole.status in ("complete", "cut") else ()):
            yield whole.path, whole.first + offset, text, Cite(artefact, f"line {whole.first + offset}")
    for hit in case.every(SourceHit):
        artefact = hit.source[0].artefact if hit.source else ""
        yield hit.path, hit.line, hit.text, Cite(artefact, f"line {hit.line}")
