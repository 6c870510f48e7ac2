"""A running simulated engine: takes requests, keeps the books, writes the log, and can die."""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from ddprobe.lab.engine.decoding import Law, Model, Run
from ddprobe.lab.engine.ledger import Ledger
from ddprobe.lab.engine.meta_info import Version
from ddprobe.lab.engine.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class Timed:
    """What is out after a time: so many tokens, so many seconds after the request came."""

    seconds: float
    tokens: int


@dataclass(slots=True, kw_only=True)
class Engine:
    """One server process. Requests are computed at once, one after another; their times are on paper."""

    model: Model
    tokenizer: Tokenizer
    ledger: Ledger
    version: Version
    vocabulary: int
    context_length: int
    write_log: Callable[[float, str], None]
    """A line, and how many seconds after now it is written."""
    pace: float = 1.0
    """Seconds here for a second of the hardware that is made up."""
    clock: Callable[[], float] = time.time
    alive: bool = True
    running: int = 0
    _served: int = 0
    _busy: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=64))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def knows(self, prompt: Sequence[int]) -> bool:
        """Whether every id is in the vocabulary. A real server is not asked: it dies of one that is not."""
        return not prompt or (min(prompt) >= 0 and max(prompt) < self.vocabulary)

    def answer(self, prompt: Sequence[int], max_tokens: int) -> tuple[Run, tuple[Timed, ...], str]:
        """The whole request: what came out, when, and its id."""
        with self._lock:
            self._served += 1
            request = f"{random.Random(self._served).getrandbits(128):032x}"
            run = self.model.start(list(prompt), max_tokens)
            self.write_log(0.0, self.ledger.prefilled(run))
            at, length = run.prefill_seconds, len(run.context)
            began = self.clock()
            for step in self.model.steps(run):
                at += step.seconds
                if self.model.heat is not None:
                    self.model.heat.note(began + at)
                length += len(step.tokens)
                for line in self.ledger.stepped(step, length):
                    self.write_log(at, line)
            self.ledger.finished(run)
            self._busy.append((began, began + at))
        return run, tuple(_times(run)), request

    def look_back(self, prompt: int, output: int, law: Law) -> None:
        """Serve a request of so many tokens of the target's own language, by another clock, and forget its cache."""
        own, self.model.law = self.model.law, law
        # Long ago: the card has cooled down since.
        heat, self.model.heat = self.model.heat, None
        words = random.Random(prompt).choices(self.model.target.language.words, k=prompt)
        self.answer(words, output)
        self.model.law, self.model.heat = own, heat
        self.model.cache.clear()
        self._busy.clear()

    def busy(self, moment: float) -> bool:
        """Whether a request is computed at this moment, seconds since the epoch."""
        return any(began <= moment <= ended for began, ended in tuple(self._busy))

    def entered(self, by: int) -> None:
        """So many requests more (or fewer) are under way."""
        with self._lock:
            self.running += by


def _times(run: Run) -> Iterator[Timed]:
    if run.output:
        yield Timed(run.prefill_seconds, 1)
    tokens = accumulate(len(step.tokens) for step in run.steps)
    times = accumulate((step.seconds for step in run.steps), initial=run.prefill_seconds)
    next(times)
    for at, count in zip(times, tokens, strict=True):
        yield Timed(at, 1 + count)
