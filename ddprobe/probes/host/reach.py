"""Does the host answer, and what is it?

System, user, shell, clock, GPUs as the driver's own files list them (nvidia-smi is not started: on a wedged driver it
hangs), and which inference servers run. Nothing here costs the host more than a few reads of /proc.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ddprobe.blocks import Block, Pairs
from ddprobe.errors import Unanswered
from ddprobe.facts import Reach
from ddprobe.model import (
    Cite,
    Command,
    Conversation,
    Evidence,
    Fact,
    Finding,
    Gap,
    Host,
    Outcome,
    Probe,
)
from ddprobe.parsing import nvidia_proc
from ddprobe.probes import _outputs, _processes

MAX_CLOCK_OFFSET = 5.0


@dataclass(frozen=True, kw_only=True)
class HostReach(Probe):
    """Asks the host who it is."""

    findings: ClassVar[dict[str, str]] = {
        "reach.clock": "the host's clock differs from this computer's: times in its logs are off by that much",
    }
    outputs: ClassVar[dict[str, str]] = _outputs.REACH

    @classmethod
    def output(cls, facts: Sequence[Fact], findings: Sequence[Finding]) -> Mapping[str, Any]:
        return _outputs.of_reach(facts)

    def collect(self, host: Host) -> Conversation:
        answers = yield (
            Command(key="uname", argv=("uname", "-s", "-r", "-m")),
            Command(key="hostname", argv=("hostname",)),
            Command(key="user", argv=("id", "-un")),
            nvidia_proc.GPUS,
            nvidia_proc.DRIVER,
            *_processes.first(host),
        )
        # Alone, on a road that is warm: from its start to the next question's is one round trip.
        yield Command(key="clock", argv=("date", "+%s.%N"))
        seen = Evidence(host, answers)
        account = (_account(seen.text("user").strip()),) if seen.result("user").whole else ()
        try:
            servers = _processes.who(_processes.candidates(seen))
        except Unanswered:
            servers = ()
        if account or servers:
            yield (*account, *servers)

    def interpret(self, evidence: Evidence) -> Iterator[Fact | Finding | Gap]:
        gaps: list[Gap] = []

        def known(key: str) -> str:
            try:
                return evidence.text(key).strip()
            except Unanswered as error:
                gaps.append(Gap(error.key, error.reason, (Cite(key),) if evidence.has(key) else ()))
                return ""

        offset, round_trip = _clock(evidence)
        yield Reach(
            system=evidence.text("uname").strip(),
            user=known("user"),
            hostname=known("hostname"),
            shell=known("account").rpartition(":")[2] if evidence.has("account") else "",
            clock_offset_seconds=offset,
            round_trip_ms=round_trip,
            gpus=nvidia_proc.models(known("gpus")),
            driver=nvidia_proc.driver(known("driver")),
            engines=_engines(evidence, gaps),
            source=tuple(Cite(key) for key in ("uname", "hostname", "user", "clock", "gpus", "candidates")),
        )
        yield from gaps
        if offset is not None and abs(offset) > MAX_CLOCK_OFFSET:
            yield Finding(
                id="reach.clock",
                outcome=Outcome.INFO,
                subject=evidence.host.name,
                summary=f"its clock is {abs(offset):.1f} s {'ahead of' if offset > 0 else 'behind'} this computer's "
                f"(limit {MAX_CLOCK_OFFSET:.0f} s)",
                cites=(Cite("clock"),),
                measured=(("clock_offset_seconds", round(offset, 3)),),
            )

    def show(self, facts: Sequence[Fact]) -> Iterator[Block]:
        for fact in facts:
            if isinstance(fact, Reach):
                yield Pairs(_rows(fact))


def _account(user: str) -> Command:
    """The user's line in /etc/passwd, whose last field is the login shell."""
    name = "".join(character if character.isalnum() or character in "_-" else "." for character in user)
    return Command(key="account", argv=("grep", "-s", "-e", f"^{name}:", "/etc/passwd"), exits=(0, 1, 2))


def _engines(evidence: Evidence, gaps: list[Gap]) -> tuple[str, ...] | None:
    try:
        return _processes.names(evidence)
    except Unanswered as error:
        gaps.append(Gap("engines", str(error), (Cite(error.key),) if evidence.has(error.key) else ()))
        return None


def _clock(evidence: Evidence) -> tuple[float | None, float | None]:
    """Host's clock minus ours, and the round trip in milliseconds; None where an answer is missing."""
    try:
        clock, after = evidence.command("clock"), evidence.command("account")
        told = re.match(r"(\d+)(\.\d+)?", clock.text)
    except Unanswered:
        return None, None
    round_trip = after.started - clock.started
    if told is None or clock.started <= 0 or round_trip <= 0:
        return None, None
    # busybox knows no fractions of a second: its answer is right to half a second in the middle of it.
    host_time = float(told.group()) if told.group(2) else int(told.group(1)) + 0.5
    return host_time - (clock.started + after.started) / 2, round_trip * 1000


def _offset(seconds: float | None, round_trip_ms: float | None) -> str:
    """How far the host's clock is from ours, and how sure that is: half a round trip."""
    if seconds is None or round_trip_ms is None:
        return "unknown"
    return f"{round(seconds, 2) + 0.0:+.2f} s to this computer's (± {round_trip_ms / 2:.0f} ms)"


def _rows(reach: Reach) -> tuple[tuple[str, str], ...]:
    gpus = ", ".join(f"{count} × {model}" for model, count in Counter(reach.gpus).items())
    clock = reach.clock_offset_seconds
    rows = (
        ("system", reach.system),
        ("host name", reach.hostname),
        ("user", reach.user),
        ("login shell", reach.shell or "not in /etc/passwd"),
        ("round trip", f"{reach.round_trip_ms:.1f} ms" if reach.round_trip_ms is not None else "unknown"),
        ("clock", _offset(clock, reach.round_trip_ms)),
        ("GPUs", gpus or "no NVIDIA driver here"),
        ("driver", reach.driver),
        ("engines", "unknown" if reach.engines is None else ", ".join(reach.engines) or "none runs"),
    )
    return tuple((name, value) for name, value in rows if value)
