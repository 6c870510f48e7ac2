"""Reads what vLLM, llama.cpp and DDTree forks log of their acceptance, and SGLang beside its decode lines.

SpecDecoding metrics: Mean acceptance length: 3.79, Accepted throughput: 19.80 tokens/s, Drafted throughput: 35.50
tokens/s, Accepted: 198 tokens, Drafted: 355 tokens, Per-position acceptance rate: 0.930, 0.930, 0.930, 0.000,
0.000, Avg Draft acceptance rate: 55.8%

slot print_timing: id  0 | task 1 | draft acceptance = 0.56790 (   46 accepted /    81 generated), mean len =  3.71

DFLASH_DDTREE verify completed. commit_lens=[3, 1]
avg_commit_len=1.00 avg_accepted_depth=3.00

avg_spec_accept_length=2.075862068965517        SGLang's lifetime mean, when its accept threshold is set anew
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

_N = r"(\d{1,12}(?:\.\d{1,9})?)"
_MEAN = re.compile(rf"Mean acceptance length: {_N}")
_ACCEPTED = re.compile(r"Accepted: (\d{1,15}) tokens")
_DRAFTED = re.compile(r"Drafted: (\d{1,15}) tokens")
_POSITIONS = re.compile(r"Per-position acceptance rate: (\d[\d., ]*)")
_GENERATION = re.compile(rf"Avg generation throughput: {_N} tokens/s")
_LLAMA = re.compile(
    rf"draft acceptance(?: rate)? = {_N} \( *(\d{{1,15}}) accepted / *(\d{{1,15}}) generated\)"
    rf"(?:, mean (?:acceptance )?len(?:gth)? = *{_N})?(?:, acceptance rate per position = \(([\d., ]*)\))?"
)
_TASK = re.compile(r"\bid +(\d{1,9}) \| task (-?\d{1,12}) \|")
_SPEED = re.compile(rf"(?<!prompt )eval time = .{{0,120}}?{_N} tokens per second")
_EVALUATED = re.compile(r"eval time = {1,12}[\d.]{1,15} ms / {1,8}(\d{1,9}) (?:tokens|runs)")
_RELEASED = re.compile(r"release: .{0,120}?n_tokens = (\d{1,9})")
_CLOCK = re.compile(r"(?<![\d.])(\d{1,6})\.(\d\d)\.(\d{3})\.(\d{3}) [A-Z] ", re.ASCII)
_LISTED = re.compile(r"commit_lens=(?:tensor\()?\[([\d, ]{1,4000})\]")
_COMMIT = re.compile(rf"\bavg_commit_len\"?\s?[=:]\s?{_N}")
_LIFETIME = re.compile(r"\bavg_spec_accept_length=(\d{1,6}(?:\.\d{1,17})?)(?![\w.])")
_DEPTH = re.compile(rf"\bavg_accepted_depth\"?\s?[=:]\s?{_N}")


@dataclass(frozen=True, slots=True)
class Counts:
    """Drafted and accepted tokens of one log window or one request."""

    accepted: int
    drafted: int
    commit: float | None = None
    """As printed, to two decimals; the bonus token included."""
    per_position: tuple[float, ...] = ()
    """Share of steps in which at least the first j drafts were right."""
    generated: int = 0
    """Tokens of the request, the first one included, where other lines of it tell."""

    @property
    def steps(self) -> int | None:
        """Verify steps: the one number that fits what is printed; None where several do."""
        full = self.drafted / len(self.per_position) if self.per_position else 0.0
        if full and full == int(full) and self._prints(int(full)):
            return int(full)
        if self.commit is None and not self.per_position and self.generated > self.accepted + 1:
            # The prompt gives the first token, and each step those that it accepts and one more.
            return self.generated - 1 - self.accepted
        if self.commit is None or self.commit <= 1.005 or not self.accepted:
            return None
        first = max(1, math.ceil(self.accepted / (self.commit - 1 + 0.006)))
        last = math.floor(self.accepted / (self.commit - 1 - 0.006)) if self.commit > 1.006 else first + 1
        fitting = [steps for steps in range(first, min(last, first + 50) + 1) if self._prints(steps)]
        return fitting[0] if len(fitting) == 1 else None

    @property
    def about_steps(self) -> float | None:
        """Verify steps as near as the line tells."""
        if self.steps is not None:
            return float(self.steps)
        if self.commit is not None and self.commit > 1 and self.accepted:
            return self.accepted / (self.commit - 1)
        return self.drafted / len(self.per_position) if self.per_position else None

    def _prints(self, steps: int) -> bool:
        return self.commit is None or abs(1 + self.accepted / steps - self.commit) <= 0.00501


@dataclass(frozen=True, slots=True)
class TreeLine:
    """What a DDTree fork says of one verify step, or of several."""

    commits: tuple[int, ...] = ()
    """Tokens committed by each request of the step."""
    commit: float | None = None
    depth: float | None = None


def vllm_line(line: str) -> Counts | None:
    """A `SpecDecoding metrics:` line; None when it is none, or does not say what was drafted."""
    if "SpecDecoding metrics:" not in line:
        return None
    accepted, drafted = _ACCEPTED.search(line), _DRAFTED.search(line)
    if not accepted or not drafted:
        return None
    mean, positions = _MEAN.search(line), _POSITIONS.search(line)
    return Counts(
        accepted=int(accepted[1]),
        drafted=int(drafted[1]),
        commit=float(mean[1]) if mean else None,
        per_position=_shares(positions[1]) if positions else (),
    )


def vllm_generated(line: str) -> float | None:
    """Tokens per second of vLLM's periodic line on throughput; None when it is none."""
    found = _GENERATION.search(line)
    return float(found[1]) if found else None


def llamacpp_line(line: str) -> Counts | None:
    """A `draft acceptance = …` line; None when it is none."""
    found = _LLAMA.search(line)
    if not found:
        return None
    return Counts(
        accepted=int(found[2]),
        drafted=int(found[3]),
        commit=float(found[4]) if found[4] else None,
        per_position=_shares(found[5] or ""),
    )


def llamacpp_task(line: str) -> tuple[int, int] | None:
    """Slot and task that a llama-server line is about."""
    found = _TASK.search(line)
    return (int(found[1]), int(found[2])) if found else None


def llamacpp_speed(line: str) -> float | None:
    """Tokens per second of an `eval time = …` line; None when it is none."""
    found = _SPEED.search(line)
    return float(found[1]) if found else None


def llamacpp_tokens(line: str) -> int | None:
    """Tokens of an `eval time = …` or `prompt eval time = …` line; None when it is none."""
    found = _EVALUATED.search(line)
    return int(found[1]) if found else None


def llamacpp_context(line: str) -> int | None:
    """Tokens in a slot's context when a request ended: `release: … n_tokens = 325`; None when the line is no such."""
    found = _RELEASED.search(line)
    return int(found[1]) if found else None


def llamacpp_seconds(line: str) -> float | None:
    """Seconds since llama-server started, at which it wrote the line: `0.03.293.539 I slot …`."""
    found = _CLOCK.search(line[:200])
    if not found:
        return None
    minutes, seconds, thousandths, millionths = (int(part) for part in found.groups())
    return minutes * 60 + seconds + thousandths / 1e3 + millionths / 1e6


def tree_line(line: str) -> TreeLine | None:
    """What a DDTree fork says in this line; None when it says nothing."""
    listed = _LISTED.search(line)
    commit, depth = _COMMIT.search(line), _DEPTH.search(line)
    if not listed and not commit and not depth:
        return None
    numbers = re.findall(r"\d{1,6}", listed[1]) if listed else []
    return TreeLine(
        commits=tuple(int(number) for number in numbers),
        commit=float(commit[1]) if commit else None,
        depth=float(depth[1]) if depth else None,
    )


def lifetimes(text: str) -> tuple[float, ...]:
    """The lifetime means that SGLang logs, in their order."""
    return tuple(float(found) for found in _LIFETIME.findall(text))


def _shares(text: str) -> tuple[float, ...]:
    """The numbers of a list of shares, up to what is none (its last comma may lead on to another field)."""
    found = []
    for word in text.split(",")[:256]:
        if not re.fullmatch(r" ?\d(?:\.\d{1,9})?", word):
            break
        found.append(float(word))
    return tuple(found)
