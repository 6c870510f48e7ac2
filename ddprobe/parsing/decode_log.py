"""Reads SGLang's decode log lines, of every release: by the names of their fields, never by position.

    [2026-11-30 15:48:22 TP0] Decode batch, #running-req: 1, #token: 13, token usage: 0.00, accept len: 1.75, accept
    rate: 0.25, cuda graph: True, gen throughput (token/s): 61.36, #queue-req: 0

Up to 0.5.3 it is `Decode batch.`; an iteration may follow (`Decode batch [812],`); hybrid models say `#full token`;
`accept rate` came with 0.5.4, `cap len` with 0.5.16; the graph is a `cuda`, `cpu`, `npu` or `musa graph`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

MARK = "Decode batch"
PREFILL = "Prefill batch"
LONGEST = 4096
"""Characters of a line that are looked at."""

COMMON = re.compile(
    MARK
    + r"[^#\n]{1,20}+#running-req: ([1-9]\d{0,4}+), #(?:full )?+token: (\d{1,9}+), (?:full )?+token usage: [\d.]{1,9}+, "
    r"(?:mamba num: \d{1,9}+, mamba usage: [\d.]{1,9}+, )?+"
    r"(accept len: [\d.]{1,9}+, (?:accept rate: [\d.]{1,9}+, )?+\w{3,4}+ graph: \w{4,5}+), "
    r"gen throughput \(token/s\): (\d{1,9}+(?:\.\d{1,6}+)?+)",
    re.ASCII,
)
"""Running requests, tokens, what is told of acceptance, throughput: the shape of nearly every line of a server that
speculates, for reading them by the thousand. Any line that it does not find is left to `decode_line`."""
_HEAD = re.compile(r"(?: ?\[\d{1,12}\])?[.,]? *")
_NUMBER = re.compile(r"(\d{1,15}(?:\.(\d{1,9}))?)(?![\w.])", re.ASCII)
_COLOUR = re.compile(r"\x1b\[[\d;]{0,20}m")


@dataclass(frozen=True, slots=True)
class DecodeLine:
    """The fields of a line, as they stand there."""

    fields: Mapping[str, str]

    def number(self, name: str) -> float | None:
        """The field as a number; None when it is absent or none (`nan`)."""
        found = _NUMBER.match(self.fields.get(name, ""))
        return float(found[1]) if found else None

    def slack(self, name: str) -> float:
        """How far rounding may have moved the number: half of its last digit."""
        found = _NUMBER.match(self.fields.get(name, ""))
        return 0.5 * 10.0 ** -len((found[2] if found else "") or "")

    @property
    def running(self) -> int | None:
        return _whole(self.number("#running-req"))

    @property
    def tokens(self) -> int | None:
        """Tokens in use, of all running requests together."""
        plain = self.number("#token")
        return _whole(plain if plain is not None else self.number("#full token"))

    @property
    def commit(self) -> float | None:
        """`accept len`: tokens per verify step with the bonus token, in every release."""
        return self.number("accept len")

    @property
    def rate(self) -> float | None:
        """`accept rate`, whose formula changed twice (see `accept_rates`)."""
        return self.number("accept rate")

    @property
    def throughput(self) -> float | None:
        """Tokens per second of the whole server since its last line."""
        return self.number("gen throughput (token/s)")

    @property
    def graph(self) -> bool | None:
        """Whether the forward pass was a captured graph."""
        said = next((text for name, text in self.fields.items() if name.endswith(" graph")), "")
        return {"True": True, "False": False}.get(said[: 4 if said.startswith("T") else 5])


def decode_line(line: str) -> DecodeLine | None:
    """A line's fields; None when it is no decode line."""
    at = line.find(MARK)
    if at < 0:
        return None
    body = line[at + len(MARK) : at + LONGEST]
    return told(_HEAD.sub("", body, count=1))


def told(text: str) -> DecodeLine | None:
    """The fields of a piece of such a line, `name: value` and commas between; None when it has none."""
    pairs = (part.partition(": ") for part in text.split(","))
    fields = {name.strip(): value.strip() for name, colon, value in pairs if colon}
    return DecodeLine(fields) if fields else None


def prefills(block: str) -> Iterator[tuple[int, bool]]:
    """Where prefills began, and whether nothing ran then: the next throughput covers the idle time before it too."""
    at = block.find(PREFILL)
    while at >= 0:
        stop = block.find("\n", at)
        stop = len(block) if stop < 0 else stop
        yield at, block.find("#running-req: 0,", at, stop) >= 0
        at = block.find(PREFILL, stop)


def uncoloured(text: str) -> str:
    """The text without a terminal's colours."""
    return _COLOUR.sub("", text) if "\x1b" in text else text


def lines_with(block: str, mark: str, start: int = 0, end: int | None = None) -> Iterator[tuple[int, str]]:
    """Every line in which the mark stands: where it does, and as much of the line as is looked at."""
    end = len(block) if end is None else end
    at = block.find(mark, start, end)
    while at >= 0:
        begin = block.rfind("\n", 0, at) + 1
        stop = block.find("\n", at)
        stop = len(block) if stop < 0 else stop
        yield at, block[max(begin, at - LONGEST) : min(stop, at + LONGEST)]
        at = block.find(mark, stop, end)


def _whole(number: float | None) -> int | None:
    return None if number is None else int(number)
