"""What a verdict looks at: everything known of one host, in the order in which one would look."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from ddprobe.facts import (
    Claim,
    CommitCheck,
    CommitPoint,
    CommitRequest,
    CommitSetup,
    ModelConfig,
    ServerArgs,
    ServerProcess,
)
from ddprobe.model import Fact, Finding

F = TypeVar("F", bound=Fact)


@dataclass(frozen=True)
class Case:
    """Facts and findings of one host."""

    facts: tuple[Fact, ...]
    findings: tuple[Finding, ...] = field(default=())

    @functools.cached_property
    def setup(self) -> CommitSetup | None:
        return next((fact for fact in self.facts if isinstance(fact, CommitSetup)), None)

    @functools.cached_property
    def points(self) -> tuple[CommitPoint, ...]:
        """The measured points proper, by arm in the order of measuring, then by context."""
        found = [fact for fact in self._of(CommitPoint) if fact.purpose == "point"]
        arms = list(dict.fromkeys(point.arm for point in found))
        return tuple(sorted(found, key=lambda point: (arms.index(point.arm), point.context_tokens)))

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

    def arm(self, name: str) -> tuple[CommitPoint, ...]:
        """The points of every script of that arm, by context."""
        return tuple(p for p in self.points if p.arm == name or p.arm.startswith(f"{name} "))

    def check(self, name: str) -> CommitCheck | None:
        """The last check of that name; None when it was not made."""
        return next((check for check in reversed(self.checks) if check.name == name), None)

    def _of(self, kind: type[F]) -> Iterable[F]:
        return (fact for fact in self.facts if isinstance(fact, kind))
