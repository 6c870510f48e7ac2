"""What a verdict looks at: everything known of one host, in the order in which one would look."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ddprobe.facts import (
    Acceptance,
    Claim,
    CommitCheck,
    CommitPoint,
    CommitRequest,
    CommitSetup,
    DecodeSeries,
    Discovered,
    Gpu,
    GpuSample,
    GpuWindow,
    LogEvent,
    ModelConfig,
    Reach,
    ServerArgs,
    ServerProcess,
)
from ddprobe.model import Fact, Finding, Outcome

F = TypeVar("F", bound=Fact)


@dataclass(frozen=True)
class Case:
    """Facts and findings of one host."""

    facts: tuple[Fact, ...]
    findings: tuple[Finding, ...] = field(default=())
    gpu_bandwidth: float | None = None
    """GB/s of one GPU's memory, where the inventory says it."""

    @functools.cached_property
    def setup(self) -> CommitSetup | None:
        """That of the last commit probe, where step times were measured beside."""
        every = tuple(self._of(CommitSetup))
        return next(
            (fact for fact in reversed(every) if fact.purpose == "commit"), every[0] if every else None
        )

    @functools.cached_property
    def points(self) -> tuple[CommitPoint, ...]:
        """The measured points proper, by arm in the order of measuring, then by context.

        Of one that was measured again with more steps, the one with most: it stands in for the shorter look.
        """
        best: dict[tuple[str, str, int], CommitPoint] = {}
        for fact in self._of(CommitPoint):
            place = (fact.base, fact.arm, fact.context_tokens)
            if fact.purpose == "point" and (place not in best or fact.steps >= best[place].steps):
                best[place] = fact
        found = list(best.values())
        arms = list(dict.fromkeys(point.arm for point in found))
        return tuple(sorted(found, key=lambda point: (arms.index(point.arm), point.context_tokens)))

    @functools.cached_property
    def step_times(self) -> tuple[CommitPoint, ...]:
        """Points of a ladder that was sent for its times, by text and context."""
        found = [fact for fact in self._of(CommitPoint) if fact.purpose == "step-time"]
        return tuple(sorted(found, key=lambda point: (point.arm, point.context_tokens)))

    @functools.cached_property
    def again(self) -> CommitPoint | None:
        """The first point, measured once more at the end."""
        return next((fact for fact in reversed(self.every(CommitPoint)) if fact.purpose == "again"), None)

    @functools.cached_property
    def first(self) -> CommitPoint | None:
        """The point that `again` repeats."""
        if self.again is None:
            return None
        place = (self.again.arm, self.again.context_tokens)
        return next((point for point in self.points if (point.arm, point.context_tokens) == place), None)

    @functools.cached_property
    def requests(self) -> tuple[CommitRequest, ...]:
        return tuple(self._of(CommitRequest))

    @functools.cached_property
    def checks(self) -> tuple[CommitCheck, ...]:
        return tuple(self._of(CommitCheck))

    @functools.cached_property
    def claims(self) -> tuple[Claim, ...]:
        return tuple(self._of(Claim))

    @functools.cached_property
    def configs(self) -> tuple[ModelConfig, ...]:
        return tuple(self._of(ModelConfig))

    @functools.cached_property
    def arguments(self) -> tuple[ServerArgs, ...]:
        return tuple(self._of(ServerArgs))

    @functools.cached_property
    def processes(self) -> tuple[ServerProcess, ...]:
        return tuple(self._of(ServerProcess))

    @functools.cached_property
    def stated(self) -> tuple[Acceptance, ...]:
        """Acceptance figures that logs, counters and tools state."""
        return tuple(self._of(Acceptance))

    @functools.cached_property
    def logs(self) -> tuple[DecodeSeries, ...]:
        return tuple(self._of(DecodeSeries))

    @functools.cached_property
    def events(self) -> tuple[LogEvent, ...]:
        return tuple(self._of(LogEvent))

    def check(self, name: str) -> CommitCheck | None:
        """The last check of that name; None when it was not made."""
        return next((check for check in reversed(self.checks) if check.name == name), None)

    @functools.cached_property
    def gpus(self) -> tuple[str, ...]:
        """Names of the kinds of card, each once, as the driver's tools print them."""
        found = [fact.value for fact in self._of(Discovered) if fact.what == "gpu"]
        found += [gpu for fact in self._of(Reach) for gpu in fact.gpus]
        cards = [fact for fact in self.facts if isinstance(fact, Gpu | GpuSample | GpuWindow) and fact.name]
        found += [card.kind if isinstance(card, Gpu) else card.name for card in cards]
        return tuple(dict.fromkeys(found))

    # --- the server that was measured, among all there are ---------------------------------------------

    @functools.cached_property
    def server(self) -> str:
        """The name of its process; empty when only its url is known."""
        return self.setup.server if self.setup is not None else ""

    def config(self, role: str) -> ModelConfig | None:
        """Its drafter's or target's configuration, or the one that was named by hand."""
        found = [config for config in self.configs if config.role == role]
        mine = [config for config in found if self.server and config.server == self.server]
        return next(iter(mine or [config for config in found if not config.server or not self.server]), None)

    def argument(self, name: str) -> Any:
        """Its argument of that name, as the server resolved it, else as given; None when neither says."""
        mine = [args for args in self.arguments if not self.server or args.server in ("", self.server)]
        ordered = [args for args in mine if args.resolved] + [args for args in mine if not args.resolved]
        values = (args.get(name) for args in ordered)
        return next((value for value in values if value is not None), None)

    def found(self, outcome: Outcome, *ids: str) -> tuple[Finding, ...]:
        """Findings with one of these ids that ended in that outcome and do not speak of another server."""
        others = [process.name for process in self.processes if self.server and process.name != self.server]
        return tuple(
            finding
            for finding in self.findings
            if finding.id in ids
            and finding.outcome is outcome
            and not any(finding.subject.endswith(f" of {other}") for other in others)
        )

    def every(self, kind: type[F]) -> tuple[F, ...]:
        """All facts of that kind, in their order."""
        return tuple(self._of(kind))

    def _of(self, kind: type[F]) -> Iterable[F]:
        return (fact for fact in self.facts if isinstance(fact, kind))
