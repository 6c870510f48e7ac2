"""Running totals over the acceptance lines of vLLM, llama.cpp and DDTree forks. Never the lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from ddprobe import statistics
from ddprobe.facts import Acceptance, DecodeBin
from ddprobe.parsing import acceptance_lines, decode_log
from ddprobe.parsing.acceptance_lines import Counts

MOST_POSITIONS = 256
SPEEDS = 4096
"""Throughputs of one bin that are kept for their median: the first ones."""
MOST_SLOTS = 4096
APART = 0.05
"""Windows whose commit differs by more are told apart."""

_SPECULATING = "SpecDecoding metrics:"
_THROUGHPUT = "Avg generation throughput:"
_TIMING = "print_timing"
_DRAFTED = "draft acceptance"
_EVAL = "eval time ="
_LAUNCH = "launch_slot_"
_COMMITTED = "commit_len"
_DEPTH = "avg_accepted_depth"
_LIFETIME = "avg_spec_accept_length="


@dataclass(slots=True)
class Total:
    """Accepted and drafted tokens of many windows or requests."""

    lines: int = 0
    accepted: int = 0
    drafted: int = 0
    steps: float = 0.0
    counted: int = 0
    """Accepted tokens of the lines whose steps are known, nearly or exactly."""
    exact: bool = True
    """The steps of every line are known."""
    positions: list[float] = field(default_factory=list)
    placed: float = 0.0
    """Steps behind the positions."""
    low: float = float("inf")
    high: float = 0.0
    tokens: int = 0
    speeds: list[float] = field(default_factory=list)

    def add(self, counts: Counts) -> None:
        self.lines += 1
        self.accepted += counts.accepted
        self.drafted += counts.drafted
        steps = counts.about_steps
        if steps:
            self.steps += steps
            self.counted += counts.accepted
            commit = 1 + counts.accepted / steps
            self.low, self.high = min(self.low, commit), max(self.high, commit)
            shares = counts.per_position[:MOST_POSITIONS]
            self.positions += [0.0] * (len(shares) - len(self.positions))
            for at, share in enumerate(shares):
                self.positions[at] += share * steps
            self.placed += steps if shares else 0.0
        self.exact = self.exact and (counts.steps is not None or not counts.drafted)

    @property
    def commit(self) -> float | None:
        return 1 + self.counted / self.steps if self.steps else None

    def acceptance(self, **more: Any) -> Acceptance:
        """What it comes to, as a figure."""
        placed = self.placed
        return Acceptance(
            commit=self.commit,
            rate=self.accepted / self.drafted if self.drafted else None,
            draft_tokens=len(self.positions) or None,
            definition="1 + accepted / steps",
            steps=round(self.steps) if self.steps and self.exact else None,
            per_position=tuple(share / placed for share in self.positions) if placed else None,
            **more,
        )


@dataclass(slots=True)
class Windows:
    """All lines of one engine: together, and the two that lie farthest apart."""

    total: Total = field(default_factory=Total)
    lowest: Counts | None = None
    highest: Counts | None = None
    undrafted: int = 0
    """Lines that say: nothing was drafted."""

    def add(self, counts: Counts) -> None:
        self.total.add(counts)
        self.undrafted += not counts.drafted
        commit = _commit(counts)
        if commit is None:
            return
        if self.lowest is None or commit < (_commit(self.lowest) or 0.0):
            self.lowest = counts
        if self.highest is None or commit > (_commit(self.highest) or 0.0):
            self.highest = counts

    def acceptances(self, window: str, **more: Any) -> Iterator[Acceptance]:
        """The whole log's figure, and its extremes where they differ; `window` names what one line covers."""
        if not self.total.drafted:
            return
        yield self.total.acceptance(window="the whole log", **more)
        low, high = self.lowest, self.highest
        if low is None or high is None or (_commit(high) or 0.0) - (_commit(low) or 0.0) <= APART:
            return
        for name, counts in (("lowest", low), ("highest", high)):
            alone = Total()
            alone.add(counts)
            yield alone.acceptance(window=f"{window}, {name} of {self.total.lines}", **more)


def _commit(counts: Counts) -> float | None:
    steps = counts.about_steps
    return 1 + counts.accepted / steps if steps and counts.drafted else None


class Vllm:
    """vLLM's periodic lines."""

    def __init__(self) -> None:
        self.windows = Windows()
        self.generating = 0
        """Periodic lines in whose time tokens were generated."""

    def block(self, block: str) -> tuple[str, ...]:
        """Takes the lines of a block; the marks that stand in them."""
        found = tuple(mark for mark in (_SPECULATING, _THROUGHPUT) if mark in block)
        if _SPECULATING in found:
            for _, line in decode_log.lines_with(block, _SPECULATING):
                counts = acceptance_lines.vllm_line(line)
                if counts is not None:
                    self.windows.add(counts)
        if _THROUGHPUT in found:
            for _, line in decode_log.lines_with(block, _THROUGHPUT):
                self.generating += bool(acceptance_lines.vllm_generated(line))
        return found

    @property
    def off_lines(self) -> int:
        """Periods in which tokens were generated and none drafted."""
        return max(0, self.generating - self.windows.total.lines) + self.windows.undrafted


@dataclass(slots=True)
class _Request:
    task: tuple[int, int]
    running: int
    counts: Counts | None = None
    speed: float | None = None
    prompt: int | None = None
    """Tokens of the prompt that were computed: all of it, but for what the cache held."""
    generated: int = 0

    @property
    def context(self) -> int | None:
        """Tokens in context at its end, where its own lines tell."""
        return None if self.prompt is None else self.prompt + self.generated


class LlamaCpp:
    """llama-server's lines on each request: timings, then its acceptance if it drafted, then its release."""

    def __init__(self) -> None:
        self.windows = Windows()
        self.bins: dict[tuple[int, int], Total] = {}
        """By bits of the running requests and of the tokens in context."""
        self.off_lines = 0
        """Requests in which nothing was drafted."""
        self._open: _Request | None = None
        self._slots: set[int] = set()
        self._launches = False
        self._seen: set[int] = set()
        self._bare = 0
        """Requests whose lines name no task, as people paste them."""

    def block(self, block: str) -> tuple[str, ...]:
        """Takes the lines of a block; the marks that stand in them."""
        found = tuple(mark for mark in (_TIMING, _DRAFTED) if mark in block)
        if found or self._open or _LAUNCH in block:
            for line in block.split("\n"):
                if (
                    ("task" in line and ("slot " in line or _DRAFTED in line))
                    or _DRAFTED in line
                    or _EVAL in line
                ):
                    self._line(line[: decode_log.LONGEST])
        return found

    def _line(self, line: str) -> None:
        task = acceptance_lines.llamacpp_task(line) or self._unnamed(line)
        slot = task[0]
        if len(self._seen) < MOST_SLOTS:
            self._seen.add(slot)
        if _LAUNCH in line and len(self._slots) < MOST_SLOTS:
            self._launches = True
            self._slots.add(slot)
        elif _DRAFTED in line:
            counts = acceptance_lines.llamacpp_line(line)
            if counts is not None:
                request = self._request(task)
                request.counts = replace(counts, generated=request.generated)
                self.windows.add(request.counts)
        elif _EVAL in line:
            request = self._request(task)
            tokens = acceptance_lines.llamacpp_tokens(line)
            if "prompt eval time" in line:
                request.prompt = tokens
            else:
                request.speed = acceptance_lines.llamacpp_speed(line)
                request.generated = tokens or 0
        elif "print_timing" in line and line.rstrip().endswith("|"):
            self._request(task)
        elif "release:" in line:
            if self._open is not None and self._open.task == task:
                self.close(acceptance_lines.llamacpp_context(line))
            self._slots.discard(slot)

    def _unnamed(self, line: str) -> tuple[int, int]:
        """The task of a line that names none: the one that is open, until a prompt begins another."""
        begins = "prompt eval time" in line and (self._open is None or self._open.prompt is not None)
        if self._open is None or begins or (_DRAFTED in line and self._open.counts is not None):
            self._bare += 1
            return -1, self._bare
        return self._open.task

    def _running(self, request: _Request) -> int:
        """How many ran; without a line on any launch it was one where all lines are of one slot."""
        return request.running or int(not self._launches and len(self._seen) == 1)

    def _request(self, task: tuple[int, int]) -> _Request:
        if self._open is None or self._open.task != task:
            self.close(None)
            self._open = _Request(task, len(self._slots))
        return self._open

    def close(self, context: int | None) -> None:
        """The request that was open is over: at so many tokens, where that is known."""
        request, self._open = self._open, None
        if request is None:
            return
        context, running = context or request.context, self._running(request)
        if request.counts is None:
            # What names no task may be a tool's own timing, and no server's.
            self.off_lines += request.task[0] >= 0
        elif context and running:
            key = (running.bit_length(), min(context, 2**30).bit_length())
            total = self.bins.setdefault(key, Total())
            total.add(request.counts)
            total.tokens += context
            if request.speed is not None and len(total.speeds) < SPEEDS:
                total.speeds.append(request.speed)

    def series(self) -> tuple[DecodeBin, ...]:
        return tuple(
            DecodeBin(
                low=1 << (bits - 1),
                high=1 << bits,
                running=1 << (running - 1),
                lines=total.lines,
                commit_mean=total.commit,
                commit_low=total.low if total.steps else None,
                commit_high=total.high if total.steps else None,
                rate_mean=total.accepted / total.drafted if total.drafted else None,
                tok_s=statistics.median(total.speeds),
                graph_share=None,
                tokens=total.tokens / total.lines,
            )
            for (running, bits), total in sorted(self.bins.items())
        )


class Lifetime:
    """The mean over all that a server has served, which SGLang logs when it begins to count anew."""

    def __init__(self) -> None:
        self.commit: float | None = None
        self.lines = 0

    def block(self, block: str) -> tuple[str, ...]:
        """Takes the lines of a block; the marks that stand in them."""
        found = acceptance_lines.lifetimes(block) if _LIFETIME in block else ()
        if not found:
            return ()
        self.lines += len(found)
        self.commit = found[-1]
        return (_LIFETIME,)


TREES = "DDTree commit lengths"
"""What a document with them, and no other lines, is said to be."""


@dataclass(slots=True)
class Trees:
    """DDTree lines."""

    lines: int = 0
    steps: int = 0
    committed: int = 0
    commits: int = 0
    commit: float = 0.0
    pairs: int = 0
    pair_commit: float = 0.0
    pair_depth: float = 0.0

    def block(self, block: str) -> tuple[str, ...]:
        """Takes the lines of a block; the marks that stand in them."""
        before = self.lines
        mark = next((mark for mark in (_COMMITTED, _DEPTH) if mark in block), "")
        if mark:
            for _, text in decode_log.lines_with(block, mark):
                self._line(acceptance_lines.tree_line(text))
        return (mark,) if self.lines > before else ()

    def _line(self, line: acceptance_lines.TreeLine | None) -> None:
        if line is None:
            return
        self.lines += 1
        steps = [commit for commit in line.commits if commit > 0]
        self.steps += len(steps)
        self.committed += sum(steps)
        if line.commit is not None:
            self.commits += 1
            self.commit += line.commit
        if line.commit is not None and line.depth is not None:
            self.pairs += 1
            self.pair_commit += line.commit
            self.pair_depth += line.depth
