"""Who watches a run: what each host is about, and how each of its steps is."""

from __future__ import annotations

from typing import Protocol

from ddprobe.model import Progress

RUNNING = "running"


class Watch(Protocol):
    """A `Progress` that is told of steps too. Called from any thread."""

    def __call__(self, host: str, now: str, /) -> None:
        """What the host is about now; empty when it is done with."""

    def step(self, host: str, step: str, state: str, /) -> None:
        """`running`, or in a word how the step ended."""


class Plain:
    """A watch that passes on what hosts are about, and nothing of steps."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def __call__(self, host: str, now: str, /) -> None:
        self._progress(host, now)

    def step(self, host: str, step: str, state: str, /) -> None:
        pass


def silent(_host: str, _now: str) -> None:
    """Report no progress."""


def watch(progress: Progress | Watch) -> Watch:
    """The progress as a watch, whichever it is."""
    return progress if hasattr(progress, "step") else Plain(progress)
