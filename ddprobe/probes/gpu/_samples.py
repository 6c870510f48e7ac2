"""What a sampler's output says of the GPUs while something was measured. Pure: text in, windows out.

A sample stands on the host's clock and in its time zone, a measurement on the laptop's. Where the one lies on the other
is known only within some bounds; a sample counts for a window only if it lies in it wherever the truth within these
bounds is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import groupby, pairwise
from statistics import fmean, median

from ddprobe.facts import GpuWindow
from ddprobe.parsing import dcgm_dmon, nvidia_cells, nvidia_smi

FIELDS = (
    "timestamp", "index", "utilization.gpu", "utilization.memory", "clocks.sm", "clocks.max.sm", "clocks.mem",
    "clocks_event_reasons.active", "power.draw", "enforced.power.limit", "temperature.gpu", "memory.used", "memory.total",
    "pcie.link.gen.current", "pcie.link.width.current", "clocks.max.mem",
)  # fmt: skip
ZONE = 900.0
"""Seconds: every time zone is a multiple of a quarter of an hour away from UTC, …"""
FARTHEST = 14 * 3600.0
"""… and none farther than this."""
STEPPED = 1.0
"""Seconds by which a later row may be earlier, or the last one late: beyond that the host's clock was set meanwhile."""
EARLY, LATE = 1.0, 120.0
"""How long before its beginning and after it a sampler may bring its first sample."""


@dataclass(frozen=True, slots=True)
class Clock:
    """The host's clock less the laptop's, in seconds, and by how much that may be wrong either way."""

    offset: float
    uncertainty: float


@dataclass(frozen=True, slots=True)
class Sample:
    """One card at one moment. None is "it does not say"."""

    at: float
    """Seconds since the epoch, by the host's clock read as if its time zone were UTC."""
    index: int
    utilization: float | None = None
    memory_utilization: float | None = None
    sm_clock_mhz: float | None = None
    sm_clock_max_mhz: float | None = None
    memory_clock_mhz: float | None = None
    memory_clock_max_mhz: float | None = None
    clock_reasons: tuple[str, ...] | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    temperature_c: float | None = None
    memory_used_mib: float | None = None
    memory_total_mib: float | None = None
    pcie_gen: int | None = None
    pcie_width: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A time in which one point was measured, on the laptop's clock. A point may have several."""

    base: str
    purpose: str
    arm: str
    context_tokens: int
    started: float
    ended: float

    @property
    def point(self) -> tuple[str, str, str, int]:
        return self.base, self.purpose, self.arm, self.context_tokens


# --- reading -----------------------------------------------------------------------------------------------


def samples(text: str, fields: Sequence[str]) -> tuple[Sample, ...]:
    """The rows of a query without heading and units, in order. One that is not whole is left out."""
    found = []
    for line in text.split("\n")[:-1]:
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) == len(fields) and (sample := _sample(dict(zip(fields, cells, strict=True)))):
            found.append(sample)
    return tuple(found)


def _sample(cells: dict[str, str]) -> Sample | None:
    at, index = moment(cells.get("timestamp", "")), nvidia_smi.place(cells.get("index"))
    if at is None or index is None:
        return None

    def clock(field: str) -> float | None:
        return nvidia_smi.megahertz(cells.get(field))

    reasons = next((cell for field, cell in cells.items() if field.endswith("_reasons.active")), None)
    return Sample(
        at=at,
        index=index,
        utilization=nvidia_smi.percent(cells.get("utilization.gpu")),
        memory_utilization=nvidia_smi.percent(cells.get("utilization.memory")),
        sm_clock_mhz=clock("clocks.sm"),
        sm_clock_max_mhz=clock("clocks.max.sm"),
        memory_clock_mhz=clock("clocks.mem"),
        memory_clock_max_mhz=clock("clocks.max.mem"),
        clock_reasons=nvidia_smi.reasons(reasons),
        power_w=nvidia_smi.watts(cells.get("power.draw")),
        power_limit_w=nvidia_smi.watts(cells.get("enforced.power.limit")),
        temperature_c=nvidia_smi.celsius(cells.get("temperature.gpu")),
        memory_used_mib=nvidia_cells.used(cells),
        memory_total_mib=nvidia_smi.mebibytes(cells.get("memory.total")),
        pcie_gen=nvidia_smi.place(cells.get("pcie.link.gen.current")),
        pcie_width=nvidia_smi.place(cells.get("pcie.link.width.current")),
    )


def moment(cell: str) -> float | None:
    """`2026/07/01 12:00:00.123` as seconds since the epoch, as if it were UTC; None where it is none."""
    if not re.fullmatch(r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d(\.\d{1,6})?", cell):
        return None
    try:
        return datetime.fromisoformat(cell.replace("/", "-")).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None


def clock(looks: Iterable[tuple[float, str, float]]) -> Clock | None:
    """The clock by looks at `date +%s.%N`: (laptop's time before, what it said, laptop's time after).

    Every look bounds the offset; the widest bounds hold, so that a drift between two looks lies within them.
    """
    bounds = [
        (float(said) - after, float(said) - before)
        for before, said, after in looks
        if before <= after and re.fullmatch(r"\d{1,12}\.\d{1,9}", said)
    ]
    if not bounds:
        return None
    low, high = min(low for low, _ in bounds), max(high for _, high in bounds)
    return Clock((low + high) / 2, (high - low) / 2)


def placed(found: Sequence[Sample], started: float, at: Clock, ended: float = math.inf) -> tuple[Sample, ...]:
    """The samples on the laptop's clock. `started`, `ended`: when the sampler was begun and stopped, by the laptop's clock.

    The host's time zone is what lies between its first sample and that moment, to a quarter of an hour. None where that
    is no time zone: the tool's clock is another one then. None either where the host's clock was set while it ran, so that
    time goes back or beyond the end: where each sample lies is not known then.
    """
    if not found:
        return ()
    after = found[0].at - at.offset - started
    zone = round(after / ZONE) * ZONE
    if abs(zone) > FARTHEST or not -EARLY - at.uncertainty <= after - zone <= LATE:
        return ()
    latest = max(found, key=lambda sample: sample.at).at
    back = any(later.at < earlier.at - STEPPED for earlier, later in pairwise(found))
    if back or latest - zone - at.offset > ended + at.uncertainty + STEPPED:
        return ()
    return tuple(replace(sample, at=sample.at - zone - at.offset) for sample in found)


# --- windows -----------------------------------------------------------------------------------------------


def windows(found: Sequence[Sample], at: Clock, spans: Sequence[Span]) -> tuple[GpuWindow, ...]:
    """What was seen of each card while each point was measured, points in the order of measuring, cards by number.

    `found`: on the laptop's clock. A point in which no sample surely lies has no window.
    """
    return tuple(
        _window(card, at, spans_of)
        for spans_of in _by_point(spans)
        for card in _by_card([s for s in found if _within(s.at, at.uncertainty, spans_of)])
    )


def _by_point(spans: Sequence[Span]) -> Iterator[list[Span]]:
    points: dict[tuple[str, str, str, int], list[Span]] = {}
    for span in spans:
        points.setdefault(span.point, []).append(span)
    yield from points.values()


def _by_card(found: Sequence[Sample]) -> Iterator[list[Sample]]:
    for _, card in groupby(sorted(found, key=lambda s: (s.index, s.at)), key=lambda s: s.index):
        yield list(card)


def _within(at: float, uncertainty: float, spans: Sequence[Span]) -> bool:
    return any(span.started + uncertainty <= at <= span.ended - uncertainty for span in spans)


def _window(card: Sequence[Sample], at: Clock, spans: Sequence[Span]) -> GpuWindow:
    # Between two requests a card rests, and lowers its clock: steps are not made at that one.
    working = [sample for sample in card if sample.utilization != 0] or card

    def of(
        field: Callable[[Sample], float | None],
        take: Callable[[list[float]], float],
        among: Sequence[Sample] = card,
    ) -> float | None:
        values = [value for sample in among if (value := field(sample)) is not None]
        return take(values) if values else None

    def last(field: Callable[[Sample], int | None]) -> int | None:
        return next((value for sample in reversed(card) if (value := field(sample)) is not None), None)

    told = [sample.clock_reasons for sample in card if sample.clock_reasons is not None]
    base, purpose, arm, context = spans[0].point
    return GpuWindow(
        index=card[0].index,
        base=base,
        purpose=purpose,
        arm=arm,
        context_tokens=context,
        samples=len(card),
        started=min(span.started for span in spans),
        ended=max(span.ended for span in spans),
        offset_seconds=round(at.offset, 4),
        offset_uncertainty_seconds=round(at.uncertainty, 4),
        utilization=of(lambda s: s.utilization, median),
        utilization_low=of(lambda s: s.utilization, min),
        utilization_high=of(lambda s: s.utilization, max),
        memory_utilization=of(lambda s: s.memory_utilization, median),
        sm_clock_mhz=of(lambda s: s.sm_clock_mhz, median, working),
        sm_clock_low_mhz=of(lambda s: s.sm_clock_mhz, min, working),
        sm_clock_high_mhz=of(lambda s: s.sm_clock_mhz, max, working),
        sm_clock_max_mhz=of(lambda s: s.sm_clock_max_mhz, max),
        memory_clock_mhz=of(lambda s: s.memory_clock_mhz, median, working),
        memory_clock_max_mhz=of(lambda s: s.memory_clock_max_mhz, max),
        power_w=of(lambda s: s.power_w, median),
        power_low_w=of(lambda s: s.power_w, min),
        power_high_w=of(lambda s: s.power_w, max),
        power_limit_w=of(lambda s: s.power_limit_w, min),
        temperature_c=of(lambda s: s.temperature_c, median),
        temperature_low_c=of(lambda s: s.temperature_c, min),
        temperature_high_c=of(lambda s: s.temperature_c, max),
        memory_used_mib=of(lambda s: s.memory_used_mib, median),
        memory_used_low_mib=of(lambda s: s.memory_used_mib, min),
        memory_used_high_mib=of(lambda s: s.memory_used_mib, max),
        memory_total_mib=of(lambda s: s.memory_total_mib, max),
        clock_reasons=tuple(dict.fromkeys(name for reasons in told for name in reasons)) if told else None,
        pcie_gen=last(lambda s: s.pcie_gen),
        pcie_width=last(lambda s: s.pcie_width),
    )


def with_activity(
    found: Sequence[GpuWindow], text: str, ran: tuple[float, float], every: float, spans: Sequence[Span]
) -> tuple[GpuWindow, ...]:
    """The windows with what `dcgmi dmon` saw while it ran, from when to when on the laptop's clock.

    It prints no time. Its rounds are `every` seconds apart; how much of its time no round accounts for (it took to
    start, or its last words were lost) is how far each may lie elsewhere. A round counts only where it surely lies, and
    where most of the time is unaccounted for, none does.
    """
    rounds = dcgm_dmon.rounds(text)
    began, ended = ran
    lost = max(0.0, ended - began - every * len(rounds))
    doubt = lost / 2 + every
    if len(rounds) * every < (ended - began) / 2:
        return tuple(found)
    at = [began + lost / 2 + every * (place + 0.5) for place in range(len(rounds))]

    def mean(window: GpuWindow, field: int) -> float | None:
        point = (window.base, window.purpose, window.arm, window.context_tokens)
        own = [span for span in spans if span.point == point]
        values = [
            cards[window.index][field]
            for cards, moment_of in zip(rounds, at, strict=True)
            if field in cards.get(window.index, {}) and _within(moment_of, doubt, own)
        ]
        return fmean(values) if values and all(0 <= value <= 1 for value in values) else None

    return tuple(
        replace(
            window,
            sm_active=mean(window, dcgm_dmon.FIELDS["SMACT"]),
            dram_active=mean(window, dcgm_dmon.FIELDS["DRAMA"]),
            tensor_active=mean(window, dcgm_dmon.FIELDS["TENSO"]),
        )
        for window in found
    )
