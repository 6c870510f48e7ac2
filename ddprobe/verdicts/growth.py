"""How a step's time grows with context, beside the time that reading the target's KV cache takes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ddprobe import facts, gpu_cards, steplaw
from ddprobe import roofline as whole_roofline
from ddprobe.facts import CommitPoint, GpuWindow, StepFit
from ddprobe.model import Outcome
from ddprobe.verdicts import thresholds, words
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.ladder import EASY, arm_of

CONTEXTS = 3
"""Lengths that a slope needs here; five make a measurement of it."""


@dataclass(frozen=True, slots=True)
class Line:
    slope: float
    """Milliseconds per token of context."""
    intercept: float
    r_squared: float


@dataclass(frozen=True, slots=True)
class Roofline:
    """What reading the KV cache takes, at the least."""

    bytes_per_token: float
    bandwidth: float
    """GB/s."""
    known: bool
    """The bandwidth is this GPU's own, and not that of the slowest card."""
    source: str = ""
    """Whose it is and by what, where no person said it."""

    @property
    def ms_per_token(self) -> float:
        return self.bytes_per_token / (self.bandwidth * 1e9) * 1e3

    @property
    def card(self) -> str:
        if not self.known:
            return f"{self.bandwidth:g} GB/s, the slowest card, for want of this one's"
        return f"{self.bandwidth:g} GB/s, {self.source or whole_roofline.GIVEN}"


@dataclass(frozen=True, slots=True)
class Growth:
    """Step times that differ between the shortest length and the longest by more than their spread."""

    points: tuple[CommitPoint, ...]
    roofline: Roofline | None
    missing: tuple[str, ...]
    """Why nothing tells whether that is as it must be."""

    @property
    def short(self) -> CommitPoint:
        return self.points[0]

    @property
    def long(self) -> CommitPoint:
        return self.points[-1]

    @property
    def ratio(self) -> float:
        return _ms(self.long) / _ms(self.short)

    @property
    def line(self) -> Line:
        """Least squares of step time over context."""
        pairs = [(float(p.prompt_tokens or p.context_tokens), _ms(p)) for p in self.points]
        x_mean = sum(x for x, _ in pairs) / len(pairs)
        y_mean = sum(y for _, y in pairs) / len(pairs)
        spread = sum((x - x_mean) ** 2 for x, _ in pairs)
        if not spread:
            return Line(0.0, y_mean, 0.0)
        slope = sum((x - x_mean) * (y - y_mean) for x, y in pairs) / spread
        intercept = y_mean - slope * x_mean
        left = sum((y - intercept - slope * x) ** 2 for x, y in pairs)
        total = sum((y - y_mean) ** 2 for _, y in pairs)
        return Line(slope, intercept, 1 - left / total if total else 0.0)

    @property
    def beyond_memory(self) -> bool:
        """It grows many times faster than reading the KV cache would make it."""
        return (
            self.roofline is not None and self.line.slope >= thresholds.ROOFLINE * self.roofline.ms_per_token
        )

    @property
    def told(self) -> str:
        """`a step takes 8 ms (…) at 1k and 80 ms (…) at 128k, 10.0 times as long (repeat, 4 lengths)`."""
        return (
            f"a step takes {words.steps_of(self.short)} and {words.steps_of(self.long)}, {self.ratio:.1f} times as long "
            f"({self.short.arm}, {words.count(len(self.points), 'length')})"
        )

    @property
    def explained(self) -> str:
        """How much of it is the KV cache's reading; empty where that is not known."""
        if self.roofline is None or self.line.slope <= 0:
            return ""
        share = min(1.0, self.roofline.ms_per_token / self.line.slope)
        most = "" if self.roofline.known else "up to "
        return (
            f"reading the KV cache alone accounts for {most}{share:.0%} of that growth ({self.roofline.card})"
        )


def growth(case: Case) -> Growth | None:
    """How the step time grows; None where it does not, or is known at one length only."""
    points = timed(case)
    if not points:
        return None
    found = Growth(points, roofline(case), tuple(_missing(case, points)))
    return found if found.ratio >= thresholds.GROWTH and _apart(found.short, found.long) else None


def timed(case: Case) -> tuple[CommitPoint, ...]:
    """The text with step times at the most lengths; repeated text where several have as many.

    A ladder that was sent for its times counts before one that was sent for its commits.
    """
    own = _at_most_lengths(case.step_times)
    more = len({point.context_tokens for point in own}) > 1
    return own if more or not case.points else _at_most_lengths(case.points)


def _at_most_lengths(points: Sequence[CommitPoint]) -> tuple[CommitPoint, ...]:
    by_arm: dict[str, list[CommitPoint]] = {}
    for point in points:
        if point.step_ms and point.timed_steps >= thresholds.MIN_TIMED_STEPS and point.context_tokens:
            by_arm.setdefault(point.arm, []).append(point)
    if not by_arm:
        return ()
    best = min(by_arm, key=lambda arm: (-len(by_arm[arm]), arm_of(arm) not in EASY, arm))
    return tuple(sorted(by_arm[best], key=lambda point: point.context_tokens))


def law(case: Case) -> StepFit | None:
    """The law of these step times: as the probe fitted it, else fitted here."""
    points = timed(case)
    if len(points) < 2:
        return None
    purpose = points[0].purpose
    told = [fit for fit in case.every(StepFit) if fit.purpose == purpose]
    if told:
        return told[-1]
    if purpose != "step-time":
        # Of the commit probe's texts one alone was measured again; what moved is `gpu_state`'s to say.
        return steplaw.fit(points)
    return steplaw.of_facts(case.facts, purpose)


def windows(case: Case) -> tuple[GpuWindow, ...]:
    """What a sampler saw of the cards while these were measured."""
    points = timed(case)
    purposes = {points[0].purpose, f"{points[0].purpose} again"} if points else set()
    return tuple(w for w in case.every(GpuWindow) if w.samples and w.purpose in purposes)


def _apart(short: CommitPoint, long: CommitPoint) -> bool:
    """Whether the bulk of the step times does not overlap. Of steps that came in bursts the pace alone is known."""
    high = short.step_ms_high or _ms(short) * thresholds.GROWTH
    low = long.step_ms_low or _ms(long) / thresholds.GROWTH
    return low > high


def _ms(point: CommitPoint) -> float:
    """The step time of a point that is timed."""
    assert point.step_ms is not None
    return point.step_ms


def _missing(case: Case, points: Sequence[CommitPoint]) -> list[str]:
    if on_cpu(case):
        return []
    missing = []
    if len(points) < CONTEXTS:
        missing.append(f"step times at {CONTEXTS} lengths or more: {len(points)} give no slope")
    whole = memory(case)
    if whole is None or not whole.kv_bytes_per_token:
        missing.append(
            "the target's config.json (layers, KV heads): it tells how fast a step's time may grow with context"
        )
    if not case.gpu_bandwidth and not (whole is not None and whole.known):
        missing.append("the GPU's bandwidth (`gpu_bandwidth` in the hosts file)")
    return missing


def five(shortest: int, longest: int) -> list[int]:
    """Five lengths between both, each the same factor from the next."""
    factor = (longest / shortest) ** 0.25
    return sorted(
        {shortest, longest, *(round(shortest * factor**step / 256) * 256 for step in (1, 2, 3))} - {0}
    )


# --- the roofline -----------------------------------------------------------------------------------------


def roofline(case: Case) -> Roofline | None:
    """None without the target's configuration, and on a processor that is no GPU."""
    whole = memory(case)
    if whole is None or not whole.kv_bytes_per_token:
        return None
    return Roofline(whole.kv_bytes_per_token, whole.bandwidth, whole.known, _sheet(whole))


def _sheet(whole: facts.Roofline) -> str:
    """The card whose data sheet tells the bandwidth; empty where a person said it, or the card is not known."""
    known = gpu_cards.card(whole.gpu)
    if known is None or not whole.known or whole.bandwidth_source == whole_roofline.GIVEN:
        return ""
    share = whole.bandwidth / known.bandwidth
    clock = f" and its memory's clock ({share:.0%} of the highest)" if share < 1 else ""
    return f"{known.name} by its data sheet{clock}"


def memory(case: Case) -> facts.Roofline | None:
    """What memory allows at the least: as the probe computed it, else from what is known of the target and its cards."""
    if on_cpu(case):
        return None
    told = case.every(facts.Roofline)
    if told and not case.gpu_bandwidth:
        return told[-1]
    width = case.setup.ceiling if case.setup is not None else None
    return whole_roofline.of(
        case.config("target"),
        case.argument,
        case.gpus,
        bandwidth=case.gpu_bandwidth,
        memory_clock=memory_clock(windows(case)),
        verify_width=width,
    )


def memory_clock(seen: Sequence[GpuWindow]) -> float:
    """The memory's clock over its highest, of the slowest card at work; 1 where nobody saw it."""
    shares = [
        w.memory_clock_mhz / w.memory_clock_max_mhz
        for w in seen
        if w.utilization_high and w.memory_clock_mhz and w.memory_clock_max_mhz
    ]
    return min(1.0, *shares) if shares else 1.0


def on_cpu(case: Case) -> bool:
    """By its arguments or version, or since the host has no GPU."""
    if case.found(Outcome.WARN, "gpu.none"):
        return True
    version = case.setup.version if case.setup is not None else ""
    return case.argument("device") == "cpu" or re.search(r"\bcpu\b", version) is not None
