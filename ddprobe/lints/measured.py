"""What metric lints judge: everything that a commit probe measured on one server, and what others state of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ddprobe.facts import (
    Acceptance,
    Claim,
    CommitPoint,
    CommitRequest,
    CommitSetup,
    DecodeSeries,
    PlainSpeed,
)
from ddprobe.lints.served import Served, put_together
from ddprobe.model import Cite, Fact


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The facts of one commit probe, and what logs, counters and tools state."""

    setup: CommitSetup | None = None
    requests: tuple[CommitRequest, ...] = ()
    points: tuple[CommitPoint, ...] = ()
    claims: tuple[Claim, ...] = ()
    stated: tuple[Acceptance, ...] = ()
    logs: tuple[DecodeSeries, ...] = ()
    plain: tuple[PlainSpeed, ...] = ()
    served: Served | None = None
    """The server, where its arguments are known and only one can be meant."""

    @classmethod
    def of_facts(cls, facts: Sequence[Fact]) -> Measured | None:
        """What was measured or stated; None when nothing was."""
        servers = [served for served in put_together(facts) if served.arguments_known]
        measured = cls(
            served=servers[0] if len(servers) == 1 else None,
            setup=next((fact for fact in facts if isinstance(fact, CommitSetup)), None),
            requests=tuple(f for f in facts if isinstance(f, CommitRequest) and not f.error),
            points=tuple(f for f in facts if isinstance(f, CommitPoint) and f.purpose == "point"),
            claims=tuple(f for f in facts if isinstance(f, Claim)),
            stated=tuple(f for f in facts if isinstance(f, Acceptance)),
            logs=tuple(f for f in facts if isinstance(f, DecodeSeries)),
            plain=tuple(f for f in facts if isinstance(f, PlainSpeed)),
        )
        known = (measured.requests, measured.points, measured.claims, measured.stated, measured.logs)
        return measured if any(known) else None

    @property
    def of(self) -> str:
        return f" of {self.setup.server}" if self.setup is not None and self.setup.server else ""

    @property
    def ceiling(self) -> int | None:
        """Most tokens that one step can commit; as the server's arguments have it where no measurement says."""
        if self.setup is not None and self.setup.ceiling is not None:
            return self.setup.ceiling
        told = next((point.ceiling for point in self.points if point.ceiling is not None), None)
        return told if told is not None or self.served is None else self.served.ceiling()

    @property
    def speculates(self) -> bool:
        """False only where the server says that it does not."""
        return self.setup is None or self.setup.speculating is not False

    @property
    def looks_up(self) -> bool:
        """The drafts are looked up in the text: a text that does not repeat has none that are right."""
        return self.setup is not None and self.setup.drafter == "lookup"


def place(point: CommitPoint) -> str:
    """`prose at 4096`."""
    return f"{point.arm} at {point.context_tokens}" if point.context_tokens else point.arm


def text_of(point: CommitPoint) -> str:
    """The kind of text, without a detail that stands behind it: `far-copy` of `far-copy 512`."""
    return point.arm.partition(" ")[0]


def cites(facts: Sequence[Fact]) -> tuple[Cite, ...]:
    """Where they can be checked: of the first few of them."""
    return tuple(dict.fromkeys(cite for fact in facts for cite in fact.source))[:8]
