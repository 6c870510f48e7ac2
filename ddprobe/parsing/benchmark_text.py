"""Reads what benchmarks print of speculation when they are over.

Accept length:                           3.12              sglang.bench_serving: the server's lifetime mean
Acceptance rate (%): 12.91 … Drafts: 11234 …               vllm bench serve: counters before and after
num_drafts: 4816 … num_accepted_tokens: 12208              vLLM's offline example
Speculative metrics: Draft acceptance rate: 0.607, …       vLLM before its V1 engine
n_draft = 16 … n_predict = 371 … n_accept = 313            llama-speculative
#questions: 80, Throughput: 276.30 token/s, Acceptance length: 5.36      SGLang's EAGLE benchmark
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

_VALUE = re.compile(
    r"\s{0,8}([A-Za-z#_][\w #()%./-]{0,60}?)\s{0,8}[:=]\s{0,60}(\d{1,15}(?:\.\d{1,9})?)\s{0,60}%?\s{0,60}\Z"
)
_HEADER = re.compile(
    r"=+ ?(?:Serving Benchmark Result|Serving Benchmark Results) ?=+|-+ ?Speculative Decoding ?-+"
)
_POSITION = re.compile(r"(?:position|acceptance at token) (\d{1,3})")
_QUESTIONS = re.compile(r"#questions: (\d{1,9}), .{0,200}?[Aa]ccept(?:ance)? length: (\d{1,6}(?:\.\d{1,9})?)")
_EARLIER_VLLM = re.compile(
    r"Speculative metrics: .{0,120}?Number of speculative tokens: (\d{1,4}), .{0,120}?"
    r"Number of draft tokens: (\d{1,15}), Number of emitted tokens: (\d{1,15})"
)
_NAMES = {
    "accept length": "length",
    "acceptance length": "length",
    "mean acceptance length": "length",
    "drafts": "steps",
    "num_drafts": "steps",
    "draft tokens": "drafted",
    "num_draft_tokens": "drafted",
    "n_drafted": "drafted",
    "accepted tokens": "accepted",
    "num_accepted_tokens": "accepted",
    "n_accept": "accepted",
    "n_predict": "emitted",
    "n_draft": "width",
    "total generated tokens": "tokens",
    "total input tokens": "input",
    "successful requests": "requests",
    "max request concurrency": "concurrency",
    "maximum request concurrency": "concurrency",
    "output token throughput (tok/s)": "speed",
}
_FAR = 60
"""Lines after which what follows is another summary's."""
MOST_POSITIONS = 256


@dataclass(slots=True)
class Summary:
    """The figures of one benchmark; None where it does not print them."""

    line: int
    tool: str = ""
    values: dict[str, float] = field(default_factory=dict)
    """`length`, `steps`, `drafted`, `accepted`, `emitted`, `width`; of a whole benchmark `tokens`, `input`, `requests`,
    `concurrency` and `speed`."""
    positions: dict[int, float] = field(default_factory=dict)

    def count(self, name: str) -> int | None:
        value = self.values.get(name)
        return int(value) if value is not None and value == int(value) else None

    @property
    def speculates(self) -> bool:
        """Whether it has a figure of speculation, which these benchmarks print where there is any."""
        return not {"length", "steps", "drafted", "accepted"}.isdisjoint(self.values)

    @property
    def timed(self) -> bool:
        """Whether it says how fast so many requests at once were."""
        return self.tool == "bench serve" and {"concurrency", "speed"} <= self.values.keys()

    @property
    def says(self) -> bool:
        """Whether it says enough to be a benchmark's, and not a sentence with a number."""
        if self.timed:
            return True
        counted = {"steps", "drafted", "accepted"} <= self.values.keys()
        return counted or (
            bool(self.tool) and ("length" in self.values or {"drafted", "accepted"} <= self.values.keys())
        )

    @property
    def per_position(self) -> tuple[float, ...]:
        """Share of steps in which at least the first j drafts were right; empty where one is missing."""
        shares = tuple(self.positions.get(place, -1.0) for place in range(len(self.positions)))
        return shares if all(0 <= share <= 1 for share in shares) else ()


def read(lines: Iterable[str]) -> Iterator[Summary]:
    """The summaries that stand in these lines, in order."""
    now: Summary | None = None
    last = 0
    for number, line in enumerate(lines, 1):
        if now is not None and number - last > _FAR:
            yield from _whole(now)
            now = None
        alone = _alone(number, line)
        if alone is not None:
            yield from _whole(now)
            yield alone
            now = None
            continue
        if _HEADER.search(line):
            if now is None or "Serving" in line:
                yield from _whole(now)
                now = Summary(number)
            now.tool = "bench serve"
            last = number
            continue
        found = _VALUE.match(line[:200])
        if found is None:
            continue
        told = _told(found[1].strip().lower(), float(found[2]))
        if told is None:
            continue
        name, place, value = told
        if now is None or (name in now.values if place is None else place in now.positions):
            yield from _whole(now)
            now = Summary(number)
        last = number
        now.tool = now.tool or _tool(found[1].strip())
        if place is None:
            now.values[name] = value
        elif len(now.positions) < MOST_POSITIONS:
            now.positions[place] = value
    yield from _whole(now)


def _whole(summary: Summary | None) -> Iterator[Summary]:
    if summary is not None and summary.says:
        yield summary


def _alone(number: int, line: str) -> Summary | None:
    """A summary of one line."""
    if "Speculative metrics:" in line and (found := _EARLIER_VLLM.search(line)):
        width, drafted, emitted = map(float, found.groups())
        return Summary(number, "vLLM V0", {"width": width, "drafted": drafted, "emitted": emitted})
    if "#questions:" in line and (found := _QUESTIONS.search(line)):
        return Summary(number, "EAGLE benchmark", {"length": float(found[2])})
    return None


def _told(name: str, value: float) -> tuple[str, int | None, float] | None:
    """(field, position, value) of what a line says; None when it is none of a benchmark's own."""
    if name in _NAMES:
        return _NAMES[name], None, value
    if place := _POSITION.fullmatch(name):
        # vllm bench prints percent, the example a share.
        return "position", int(place[1]), value / 100 if name.startswith("position") else value
    return None


def _tool(name: str) -> str:
    """The tool that calls a figure so; empty where several things are called so."""
    if name.startswith("num_"):
        return "spec_decode.py"
    return "llama-speculative" if name.startswith("n_") else ""
