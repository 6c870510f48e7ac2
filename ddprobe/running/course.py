"""What of a run's steps may begin next on one host: pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ddprobe.model import Finding, Host, Outcome, Probe, Step, StepRecord

BESIDE = 4
"""Most steps of one host under way at once: their questions share one connection."""
WORDS = {"incomplete": "unknown", "not_run": "not run"}


@dataclass(frozen=True, slots=True)
class NotNow:
    """Why a step does not run: `skipped`, or `incomplete` where what it needs is not known."""

    status: str
    reason: str


@dataclass(frozen=True, slots=True)
class Done:
    """A step that is over on one host, and what was found in it."""

    record: StepRecord
    findings: tuple[Finding, ...] = ()

    @property
    def word(self) -> str:
        """How it ended, in a word: `unknown`, `skipped`, … or the worst that was found."""
        if self.record.status != "done":
            return WORDS.get(self.record.status, self.record.status)
        return Outcome.worst([f.outcome for f in self.findings] or [Outcome.PASS]).label


Decide = Callable[[Host, Mapping[str, Done]], Probe | NotNow]
"""(host, what is over there) → the probe with its settings, or why it does not run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A step of a run as it is planned, before it is known what its settings come to."""

    id: str
    probe: str
    decide: Decide
    settings: tuple[tuple[str, Any], ...] = ()
    """As far as they are known beforehand."""
    needs: tuple[str, ...] = ()
    """Steps that must be over before it, however they ended."""
    measures: bool = False
    """Nothing else of ours may run on the host beside it."""
    timeout: float | None = None
    """Seconds for the whole of it."""


def plain(steps: Iterable[Step]) -> tuple[Stage, ...]:
    """Steps whose settings are known, one after another."""
    from ddprobe import probes

    stages: list[Stage] = []
    for step in steps:
        probe = step.probe
        given = tuple((s.name, getattr(probe, s.name)) for s in probes.settings(type(probe)))
        before = (stages[-1].id,) if stages else ()
        stages.append(
            Stage(
                id=step.id,
                probe=probe.name(),
                decide=lambda _host, _over, probe=probe: probe,  # type: ignore[misc]
                settings=given,
                needs=before,
                measures=probe.measures,
            )
        )
    return tuple(stages)


def in_order(stages: Sequence[Stage]) -> tuple[Stage, ...]:
    """The stages, each after what it needs; else as they stand. Those of a circle come last."""
    known = {stage.id for stage in stages}
    left, placed = list(stages), []
    ids: set[str] = set()
    while left:
        free = next((s for s in left if ids >= set(s.needs) & known), left[0])
        left.remove(free)
        placed.append(free)
        ids.add(free.id)
    return tuple(placed)


def ready(stages: Sequence[Stage], over: Collection[str], running: Collection[str]) -> tuple[Stage, ...]:
    """The stages that may begin now. `stages`: in order.

    A stage that measures begins when all before it are over, and none begins after it until it is over: what is
    measured is not disturbed, and what an author put before and after it stays there.
    """
    known = {stage.id for stage in stages}
    found: list[Stage] = []
    for stage in stages:
        if stage.id in over:
            continue
        if stage.measures:
            if not found and not running and known & set(stage.needs) <= set(over):
                found.append(stage)
            break
        if len(found) + len(running) >= BESIDE:
            break
        if stage.id not in running and known & set(stage.needs) <= set(over):
            found.append(stage)
    return tuple(found)
