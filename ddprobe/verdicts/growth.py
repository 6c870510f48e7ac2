"""How a step's time grows with context, beside the time that reading the target's KV cache takes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ddprobe.facts import CommitPoint, ModelConfig
from ddprobe.verdicts import thresholds, words
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.ladder import EASY, arm_of

CONTEXTS = 3
"""Lengths that a slope needs here; five make a measurement of it."""
BYTES = {"float32": 4, "fp32": 4, "bfloat16": 2, "bf16": 2, "float16": 2, "fp16": 2, "half": 2}


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

    @property
    def ms_per_token(self) -> float:
        return self.bytes_per_token / (self.bandwidth * 1e9) * 1e3

    @property
    def card(self) -> str:
        return f"{self.bandwidth:g} GB/s" + (
            ", the host's gpu_bandwidth" if self.known else ", the slowest card, for want of this one's"
        )


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
        return (self.long.step_ms or 0.0) / (self.short.step_ms or 1.0)

    @property
    def line(self) -> Line:
        """Least squares of step time over context."""
        xs = [float(point.prompt_tokens or point.context_tokens) for point in self.points]
        ys = [point.step_ms or 0.0 for point in self.points]
        x_mean, y_mean = sum(xs) / len(xs), sum(ys) / len(ys)
        spread = sum((x - x_mean) ** 2 for x in xs)
        if not spread:
            return Line(0.0, y_mean, 0.0)
        slope = sum((x - x_mean) * (y - y_mean) for x, y in zip(xs, ys, strict=True)) / spread
        intercept = y_mean - slope * x_mean
        left = sum((y - intercept - slope * x) ** 2 for x, y in zip(xs, ys, strict=True))
        total = sum((y - y_mean) ** 2 for y in ys)
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
    if len(points) < 2:
        return None
    found = Growth(points, roofline(case), tuple(_missing(case, points)))
    return found if found.ratio >= thresholds.GROWTH and _apart(found.short, found.long) else None


def timed(case: Case) -> tuple[CommitPoint, ...]:
    """The text with step times at the most lengths; repeated text where several have as many."""
    by_arm: dict[str, list[CommitPoint]] = {}
    for point in case.points:
        if point.step_ms and point.timed_steps >= thresholds.MIN_TIMED_STEPS and point.context_tokens:
            by_arm.setdefault(point.arm, []).append(point)
    if not by_arm:
        return ()
    best = min(by_arm, key=lambda arm: (-len(by_arm[arm]), arm_of(arm) not in EASY, arm))
    return tuple(sorted(by_arm[best], key=lambda point: point.context_tokens))


def _apart(short: CommitPoint, long: CommitPoint) -> bool:
    """Whether the bulk of the step times does not overlap. Of steps that came in bursts the pace alone is known."""
    high = short.step_ms_high or (short.step_ms or 0.0) * thresholds.GROWTH
    low = long.step_ms_low or (long.step_ms or 0.0) / thresholds.GROWTH
    return low > high


def _missing(case: Case, points: Sequence[CommitPoint]) -> list[str]:
    if _on_cpu(case):
        return []
    missing = []
    if len(points) < CONTEXTS:
        missing.append(f"step times at {CONTEXTS} lengths or more: {len(points)} give no slope")
    config = case.config("target")
    if config is None or not _kv_bytes(case, config):
        missing.append(
            "the target's config.json (layers, KV heads): it tells how fast a step's time may grow with context"
        )
    if not case.gpu_bandwidth:
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
    config = case.config("target")
    size = _kv_bytes(case, config) if config is not None and not _on_cpu(case) else None
    if not size:
        return None
    return Roofline(size, case.gpu_bandwidth or thresholds.SLOWEST_GPU, bool(case.gpu_bandwidth))


def _on_cpu(case: Case) -> bool:
    version = case.setup.version if case.setup is not None else ""
    return case.argument("device") == "cpu" or re.search(r"\bcpu\b", version) is not None


def _kv_bytes(case: Case, config: ModelConfig) -> float | None:
    """Bytes of KV cache that each GPU reads per token of context and step; None where the configuration lacks a field."""
    layers = config.num_hidden_layers
    if config.layer_types is not None:
        layers = sum(kind == "full_attention" for kind in config.layer_types)
    size = _element(case, config)
    if not layers or size is None:
        return None
    if config.kv_lora_rank is not None:
        # MLA's latent is the same on every tensor-parallel rank.
        return float(layers * (config.kv_lora_rank + (config.qk_rope_head_dim or 0)) * size)
    heads, width = config.num_key_value_heads or config.num_attention_heads, config.head_dim
    if width is None and config.hidden_size and config.num_attention_heads:
        width = config.hidden_size // config.num_attention_heads
    if not heads or not width:
        return None
    ranks = case.argument("tp_size")
    ranks = ranks if isinstance(ranks, int) and not isinstance(ranks, bool) and ranks > 0 else 1
    return layers * max(1.0, heads / ranks) * width * 2 * size


def _element(case: Case, config: ModelConfig) -> int | None:
    """Bytes of one number in the KV cache."""
    asked = case.argument("kv_cache_dtype")
    if isinstance(asked, str) and asked not in ("", "auto"):
        name = asked.lower()
        return 1 if name.startswith(("fp8", "int8")) else BYTES.get(name)
    return BYTES.get(config.dtype.removeprefix("torch.").lower()) if config.dtype else 2
