"""One request from prompt to last token: prefill, then draft, verify, commit, step by step, and who counts what.

Pure: time is a number of seconds that the law of a step gives; nothing sleeps.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from ddprobe.lab.engine.context import Context, PrefixCache
from ddprobe.lab.engine.drafter import Drafter, Proposal
from ddprobe.lab.engine.heat import Heat
from ddprobe.lab.engine.target import Continuation, Target

FORCED_TOKEN = 100
"""What SGLang writes in place of every token when acceptance is simulated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Law:
    """How long things take, in seconds: a step is `step + per_token · n + per_token_squared · n²`, and a knee."""

    step: float
    """The part of a step that does not depend on the context: weights, launches."""
    per_token: float
    """What each token of context adds to a step: attention."""
    prefill: float = 25e-6
    """Per prompt token that is computed."""
    per_token_squared: float = 0.0
    """What no kernel of attention costs: work of the host over the whole context, a table copied at each step."""
    knee_at: int | None = None
    """From this length on a step costs `knee` more: beyond the lengths that a CUDA graph was captured for."""
    knee: float = 0.0
    noise: float | None = None
    """Standard deviation of a step relative to its law; None for a few per mille that go by the length alone."""
    seed: int = 0
    """Of the noise."""

    @classmethod
    def of(
        cls,
        a_ms: float,
        b_ms_per_token: float = 0.0,
        c_ms_per_token2: float = 0.0,
        *,
        knee_at: int | None = None,
        knee_ms: float = 0.0,
        noise: float | None = None,
        seed: int = 0,
        prefill: float = 25e-6,
    ) -> Law:
        """The law in milliseconds: a + b·n + c·n², and `knee_ms` more from `knee_at` tokens on."""
        return cls(
            step=a_ms / 1000, per_token=b_ms_per_token / 1000, per_token_squared=c_ms_per_token2 / 1000,
            knee_at=knee_at, knee=knee_ms / 1000, noise=noise, seed=seed, prefill=prefill,
        )  # fmt: skip

    def paced(self, pace: float) -> Law:
        """The same law on a clock that runs `1 / pace` times as fast."""
        return replace(
            self,
            step=self.step * pace,
            per_token=self.per_token * pace,
            per_token_squared=self.per_token_squared * pace,
            knee=self.knee * pace,
            prefill=self.prefill * pace,
        )

    def exact(self, length: int) -> float:
        """What a step at this length takes, without any spread."""
        knee = self.knee if self.knee_at is not None and length >= self.knee_at else 0.0
        return self.step + self.per_token * length + self.per_token_squared * length * length + knee

    def of_step(self, length: int, ordinal: int = 0) -> float:
        """A step at this length; with noise, each has its own by its `ordinal` among the server's steps."""
        if self.noise is None:
            # A few per mille of spread, as clocks have.
            return self.exact(length) * (1 + (hash((length, 7)) % 21 - 10) / 1000)
        drawn = random.Random(self.seed * 1_000_003 + ordinal).gauss(0.0, self.noise)
        return self.exact(length) * max(0.1, 1 + drawn)


@dataclass(frozen=True, slots=True, kw_only=True)
class Books:
    """What becomes of accepted tokens, and what is counted."""

    commits_accepted: bool = True
    """Accepted tokens are committed; otherwise the bonus token alone is, whatever was accepted."""
    counts_root: bool = False
    """The per-request counters take the accepted path with its root, which nobody proposed."""
    forced: float = 0.0
    """`SGLANG_SIMULATE_ACC_LEN`: tokens that each step is made to commit; 0 for a real verification."""


@dataclass(frozen=True, slots=True)
class Step:
    """One verify step (or one decode step, where nothing is drafted)."""

    tokens: tuple[int, ...]
    seconds: float
    accepted: int
    """The longest path of proposals that the target agrees with."""
    committed: int
    """Tokens that the step commits, though the end of the output may cut them."""
    counted: int
    """Accepted tokens as the per-request counters have it."""


@dataclass(slots=True)
class Run:
    """A request that is being answered, or has been."""

    context: Context
    prompt_tokens: int
    cached_tokens: int
    max_tokens: int
    prefill_seconds: float
    steps: list[Step] = field(default_factory=list)

    @property
    def output(self) -> list[int]:
        return self.context.ids[self.prompt_tokens :]


@dataclass(slots=True, kw_only=True)
class Model:
    """Target and drafter with the cache that they share."""

    target: Target
    drafter: Drafter | None
    """None on a server without speculation."""
    law: Law
    books: Books
    cache: PrefixCache
    heat: Heat | None = None
    """None on a machine that is cooled well."""
    made: int = 0
    """Steps so far."""

    def start(self, prompt: list[int], max_tokens: int) -> Run:
        """Prefill: the first token of the output comes from it."""
        context = self.cache.open(prompt)
        run = Run(
            context=context,
            prompt_tokens=len(prompt),
            cached_tokens=context.cached,
            max_tokens=max_tokens,
            prefill_seconds=self.law.step + self.law.prefill * (len(prompt) - context.cached),
        )
        if max_tokens:
            context.append(self.target.following(context))
        return run

    def steps(self, run: Run) -> Iterator[Step]:
        """Decode until the output is full; the last step may be cut."""
        while len(run.output) < run.max_tokens:
            step = self._step(run.context)
            left = run.max_tokens - len(run.output)
            for token in step.tokens[:left]:
                run.context.append(token)
            step = replace(step, tokens=step.tokens[:left])
            run.steps.append(step)
            yield step
        self.cache.keep(run.context)

    def _step(self, context: Context) -> Step:
        seconds = self._seconds(len(context))
        truth = Continuation(self.target, context)
        if self.drafter is None:
            return Step((truth[0],), seconds, 0, 1, 0)
        proposal = self.drafter.propose(context, truth)
        if self.books.forced:
            whole, part = divmod(self.books.forced, 1)
            drawn = hash((len(context), context.ids[-1])) % 1000 / 1000 < part
            count = min(max(1, int(whole) + drawn), self.drafter.mechanism.draft_tokens + 1)
            return Step((FORCED_TOKEN,) * count, seconds, count - 1, count, count - 1)
        accepted = verify(proposal, truth)
        counted = accepted + 1 if self.books.counts_root else accepted
        committed = accepted + 1 if self.books.commits_accepted else 1
        return Step(tuple(truth[place] for place in range(committed)), seconds, accepted, committed, counted)

    def _seconds(self, length: int) -> float:
        self.made += 1
        seconds = self.law.of_step(length, self.made)
        return self.heat.work(seconds) if self.heat is not None else seconds


def verify(proposal: Proposal, truth: Continuation) -> int:
    """How many tokens of the longest path from the root the target would have said itself."""
    node, depth = -1, 0
    while (child := proposal.child(node, truth[depth])) is not None:
        node, depth = child, depth + 1
    return depth
