"""What the simulated server counts over all requests, when it updates it, and the log lines it writes then.

As in SGLang, totals of acceptance move at log ticks only (every 40 forward passes), counters of tokens when a request
ends.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ddprobe.lab.engine.decoding import Run, Step

INTERVAL = 40


@dataclass(slots=True)
class _Window:
    """What has gone by since the last tick."""

    steps: int = 0
    tokens: int = 0
    committed: int = 0
    depth: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class Ledger:
    """Server-wide numbers. None: nothing has been counted yet."""

    draft_tokens: int | None
    """Tokens proposed per step; None without speculation."""
    capacity: int
    tree: bool = False
    generated: int = 0
    verify_calls: int = 0
    prompt_tokens: int = 0
    cached: int = 0
    throughput: float = 0.0
    accept_length: float | None = None
    """Of the last window."""
    accept_rate: float | None = None
    lifetime: float | None = None
    _window: _Window = field(default_factory=_Window)
    _steps: int = 0
    _committed: int = 0

    def prefilled(self, run: Run) -> str:
        """A prompt has been computed; the log line that says so."""
        computed = run.prompt_tokens - run.cached_tokens
        self.prompt_tokens += run.prompt_tokens
        self.cached += run.cached_tokens
        return (
            f"Prefill batch, #new-seq: 1, #new-token: {computed}, #cached-token: {run.cached_tokens}, "
            f"token usage: {run.cached_tokens / self.capacity:.2f}, #running-req: 0, #queue-req: 0, #pending-token: 0, "
            f"cuda graph: False, input throughput (token/s): {computed / run.prefill_seconds:.2f}"
        )

    def stepped(self, step: Step, length: int) -> tuple[str, ...]:
        """A step is done at this context length; the log lines it brings, mostly none."""
        window = self._window
        window.steps += 1
        window.tokens += len(step.tokens)
        window.committed += step.committed
        window.depth += step.accepted
        window.seconds += step.seconds
        if window.steps < INTERVAL:
            return ()
        self._window = _Window()
        self.throughput = round(window.tokens / window.seconds, 2)
        spoken = ""
        if self.draft_tokens is not None:
            self._steps += window.steps
            self._committed += window.committed
            self.lifetime = self._committed / self._steps
            self.accept_length = window.committed / window.steps
            self.accept_rate = (self.accept_length - 1) / self.draft_tokens
            spoken = f"accept len: {self.accept_length:.2f}, accept rate: {self.accept_rate:.2f}, "
        lines = [
            f"Decode batch, #running-req: 1, #token: {length}, token usage: {length / self.capacity:.2f}, {spoken}"
            f"cuda graph: True, gen throughput (token/s): {self.throughput:.2f}, #queue-req: 0"
        ]
        if self.tree:
            lines.append(
                f"DFLASH verify: steps={window.steps} avg_commit_len={window.committed / window.steps:.2f} "
                f"avg_accepted_depth={window.depth / window.steps:.2f} step_ms={window.seconds / window.steps * 1000:.2f}"
            )
        return tuple(lines)

    def finished(self, run: Run) -> None:
        self.generated += len(run.output)
        if self.draft_tokens is not None:
            self.verify_calls += len(run.steps)
