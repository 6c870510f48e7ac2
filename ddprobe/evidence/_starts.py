"""Where in a log a server was started anew with other arguments: what it decodes from there on is another's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ddprobe import engines
from ddprobe.parsing import launch_text, log_lines

DECODES = ("Decode batch", "SpecDecoding metrics", "Avg generation throughput")
"""One of these stands in every line by which a server that tells its arguments says that it decodes."""
DECIDES = ("model_path", "context_length", "attention_backend")
"""Arguments beside those of speculation by which one start differs from another."""


def drafting(values: Mapping[str, Any]) -> dict[str, Any]:
    """Of arguments under their canonical names those by which starts are told apart."""
    return {
        name: value
        for name, value in values.items()
        if value is not None and ("spec" in name or name in DECIDES)
    }


def alike(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether both speculate alike, whatever else tells them apart."""
    drafts = [{name: held[name] for name in held if name not in DECIDES} for held in (one, other)]
    return drafts[0] == drafts[1]


@dataclass(slots=True)
class Starts:
    """The starts of one log, as far as it has passed."""

    _known: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)

    def pieces(self, block: str) -> Iterator[tuple[bool, str]]:
        """A block of whole lines in pieces, and of each whether another start begins with it."""
        begins = [at for at in _lines_of_starts(block) if self._differs(block, at)]
        if not begins:
            yield False, block
            return
        if begins[0]:
            yield False, block[: begins[0]]
        for at, end in zip(begins, [*begins[1:], len(block)], strict=True):
            yield True, block[at:end]

    def _differs(self, block: str, at: int) -> bool:
        """Whether the line that begins there tells other arguments than the last one of its kind. A part of them is no sign."""
        end = block.find("\n", at)
        said = launch_text.of_line(log_lines.unwrapped(block[at : end if end >= 0 else len(block)]))
        if said is None or not said.values or not said.whole:
            return False
        kind = said.engine, said.origin
        drafts = drafting(engines.TABLE[said.engine].canonical(said.values))
        before = self._known.get(kind, drafts)
        self._known[kind] = drafts
        return before != drafts


def _lines_of_starts(block: str) -> Iterator[int]:
    # One character is looked for many times faster than a word, and lines of decoding have neither.
    if "=" not in block and "{" not in block:
        return
    places = {block.rfind("\n", 0, at) + 1 for needle in launch_text.NEEDLES for at in _every(block, needle)}
    yield from sorted(places)


def _every(block: str, needle: str) -> Iterator[int]:
    at = block.find(needle)
    while at >= 0:
        yield at
        at = block.find(needle, at + len(needle))
