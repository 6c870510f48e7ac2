"""One request after another: send, read, and learn how long the next will take."""

from __future__ import annotations

import re
from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any

from ddprobe.engines.generation import Counters, Generated, Prompt
from ddprobe.errors import Unanswered
from ddprobe.facts import CommitRequest
from ddprobe.model import Asked, Cite, Gap, HttpRequest, HttpResult
from ddprobe.probes.draft._commit_target import Target
from ddprobe.probes.draft._plausible import plausible
from ddprobe.probes.draft._requests import request_fact

FIRST_SECONDS = 180.0
"""What the first request may take, and 1 s for every `SLOWEST_PREFILL` tokens: kernels may have to be compiled."""
SLOWEST_PREFILL = 200
PATIENCE = 10.0
"""Later ones may take so many times what was seen before, and a minute."""
MOST_FAILURES = 2
_PURPOSES = {
    "cold": "without the cache",
    "cached": "from the cache",
    "again": "once more at the end",
    "step-time again": "once more at the end",
    "plain": "without speculation",
}


class Stopped(Exception):
    """The server no longer answers: nothing more is sent."""

    def __init__(self, gap: Gap, *, gone: bool = False) -> None:
        super().__init__(gap.reason)
        self.gap = gap
        self.gone = gone
        """The server answers nothing any more: asking it how it is only costs time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A request to be sent."""

    purpose: str
    arm: str
    context: int
    number: int
    prompt: Prompt
    max_tokens: int
    expected: tuple[int, ...] = ()
    about: str = ""
    new_tokens: int = 0
    """Tokens of the prompt that the server has not seen before."""


class Sender:
    """Carries orders out, and keeps what they showed."""

    def __init__(self, target: Target, timeout: float, seed: int) -> None:
        self.target = target
        self.seed = seed
        self.requests: list[CommitRequest] = []
        self.gaps: list[Gap] = []
        self.way = target.generation.ways[0]
        self.counters: Counters | None = None
        self._timeout = timeout
        self._failures = 0
        self._prefill: list[tuple[int, float]] = []
        self._decode: dict[int, tuple[int, float]] = {}

    # --- how long it takes ---------------------------------------------------------------------------------

    def estimate(self, new_tokens: int, output: int, context: int) -> float | None:
        """Seconds that a request will take, from what earlier ones took; None before the first."""
        if not self._decode:
            return None
        nearest = min(self._decode, key=lambda seen: abs(seen - context))
        tokens, seconds = self._decode[nearest]
        computed, waited = map(sum, zip(*self._prefill, strict=True)) if self._prefill else (0, 0.0)
        prefill = new_tokens * waited / computed if computed else 0.0
        return prefill + output * seconds / tokens

    def _limit(self, order: Order) -> float:
        if self._timeout:
            return self._timeout
        seen = self.estimate(order.new_tokens, order.max_tokens, order.context)
        if seen is None:
            return FIRST_SECONDS + order.new_tokens / SLOWEST_PREFILL
        return 60 + PATIENCE * seen + order.new_tokens / SLOWEST_PREFILL

    def _learn(self, order: Order, generated: Generated, seconds: float) -> None:
        first = generated.first_token_at
        if first is None or not generated.output_tokens or generated.output_tokens < 2:
            return
        new = (
            order.new_tokens
            if generated.cached_tokens is None
            else len(order.prompt.ids) - generated.cached_tokens
        )
        if new >= 256:
            self._prefill.append((new, first))
        tokens, spent = self._decode.get(order.context, (0, 0.0))
        self._decode[order.context] = (
            tokens + generated.output_tokens - 1,
            spent + max(seconds - first, 1e-6),
        )

    # --- sending -------------------------------------------------------------------------------------------

    def baseline(self) -> Generator[Asked, Any, None]:
        """Read the server-wide counters before the first request."""
        if self.target.generation.counters_path:
            self.counters = yield from self._count(
                f"{self.target.prefix}counters-first", "what the server counts"
            )

    def send(self, order: Order) -> Generator[Asked, Any, CommitRequest]:
        """Send it and keep what it showed. Raises `Stopped` when the server is gone."""
        key = f"{self.target.prefix}{_key(order, len(self.requests) + 1)}"
        result = yield self._request(key, order)
        ways = self.target.generation.ways
        # What answered before is routed: that it is not found now is a failure.
        proven = any(not request.error for request in self.requests)
        while result.status in (404, 405) and self.way != ways[-1] and not proven:
            self.way = ways[ways.index(self.way) + 1]
            key = f"{key}-{ways.index(self.way)}"
            result = yield self._request(key, order)
        before, after = self.counters, None
        if self.target.generation.counters_path and result.whole:
            after = yield from self._count(f"{key}-counters", order.about)
            self._restarted(key, before, after)
            self.counters = after
        record = self._read(key, order, result, before, after)
        self.requests.append(record)
        if record.error:
            yield from self._failed(key, record)
        else:
            self._failures = 0
        return record

    def _request(self, key: str, order: Order) -> HttpRequest:
        request = self.target.generation.generate(
            key,
            self.target.base,
            order.prompt,
            order.max_tokens,
            way=self.way,
            model=self.target.serving.model,
            timeout=self._limit(order),
        )
        return replace(request, about=order.about)

    def _count(self, key: str, about: str) -> Generator[Asked, Any, Counters | None]:
        path = self.target.generation.counters_path
        (request,) = self.target.engine.requests(self.target.base, "", (path,))
        result = yield replace(request, key=key, about=about)
        return self.target.generation.counters(result) if result.whole else None

    def _read(
        self, key: str, order: Order, result: HttpResult, before: Counters | None, after: Counters | None
    ) -> CommitRequest:
        error = ""
        try:
            generated = self.target.generation.read(result, self.target.serving, before, after)
            generated, told = plausible(generated, order.max_tokens)
            error = generated.error
        except Unanswered as missing:
            generated, error, told = Generated(), missing.reason, ()
            if result.status in (401, 403):
                error += " (the hosts file names the key's variable: `api_key_env: NAME`)"
        self.gaps += [
            Gap(_where(order.purpose, order.arm, order.context), words, (Cite(key),)) for words in told
        ]
        if not error:
            self._learn(order, generated, result.seconds)
        return request_fact(
            replace(generated, error=error),
            key=key,
            purpose=order.purpose,
            arm=order.arm,
            context_tokens=order.context,
            prompt=order.number,
            max_tokens=order.max_tokens,
            ceiling=self._ceiling,
            seconds=result.seconds,
            expected_ids=order.expected,
            speculating=self.target.serving.speculating,
            source_cite=Cite(key),
        )

    def _restarted(self, key: str, before: Counters | None, after: Counters | None) -> None:
        """Say so when the server's totals are lower than they were: it is not the one that began."""
        if before is None or after is None or before.generated is None or after.generated is None:
            return
        if after.generated < before.generated:
            words = (
                f"the server was started again meanwhile: its count of output tokens fell from {before.generated:.0f} to "
                f"{after.generated:.0f}. What was measured before is another server's"
            )
            self.gaps.append(Gap(self.target.base, words, (Cite(f"{key}-counters"),)))

    @property
    def _ceiling(self) -> int | None:
        draft = self.target.serving.draft_tokens
        return draft + 1 if draft is not None else None

    def _failed(self, key: str, record: CommitRequest) -> Generator[Asked, Any, None]:
        """Say so; and see whether the server still lives."""
        where = _where(record.purpose, record.arm, record.context_tokens)
        self.gaps.append(Gap(where, record.error, (Cite(key),)))
        self._failures += 1
        engine = self.target.engine
        (request,) = engine.requests(self.target.base, "", (engine.essential,))
        alive = yield replace(request, key=f"{key}-alive", about="does the server still answer?")
        if alive.failure or alive.timed_out or alive.status == 503:
            done = sum(1 for request in self.requests if not request.error)
            many = f"{done} measured request{'' if done == 1 else 's'}"
            raise Stopped(
                Gap(
                    self.target.base,
                    f"no further answer after {many} ({alive.trouble}); what was measured before stands",
                    (Cite(key), Cite(alive.key)),
                ),
                gone=True,
            )
        if self._failures >= MOST_FAILURES:
            raise Stopped(
                Gap(self.target.base, f"{self._failures} requests in a row failed; nothing more was sent")
            )


def _where(purpose: str, arm: str, context: int) -> str:
    """The request in a person's words: `repeat at 1024 tokens (warm-up)`."""
    at = f"{arm} at {context} tokens" if context else arm
    return at if purpose in ("point", "step-time") else f"{at} ({_PURPOSES.get(purpose, purpose)})"


def _key(order: Order, serial: int) -> str:
    arm = re.sub(r"[^a-z0-9]+", "-", order.arm.lower()).strip("-")
    size = f"-{order.context}" if order.context else ""
    return f"{serial:03d}-{arm}{size}-{order.purpose.replace(' ', '-')}-{order.number + 1}"
