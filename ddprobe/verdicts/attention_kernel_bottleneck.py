"""Does a step's time grow with context faster than reading the KV cache does?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ddprobe.facts import CommitPoint, ModelConfig
from ddprobe.model import Outcome, Verdict
from ddprobe.verdicts import thresholds, words
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.excluded import excluded
from ddprobe.verdicts.ladder import EASY, arm_of
from ddprobe.verdicts.ruling import Ruling

CONTEXTS = 3
"""Lengths that a slope needs here; five make a measurement of it."""
BYTES = {"float32": 4, "fp32": 4, "bfloat16": 2, "bf16": 2, "float16": 2, "fp16": 2, "half": 2}


def judge(case: Case) -> Ruling | None:
    """The slope of the step time over context is at least five times that of reading the target's KV cache.

    Without the target's configuration there is no such line to compare with, and no verdict; on a processor that is
    no GPU neither.
    """
    config = case.config("target")
    bytes_per_token = _kv_bytes(case, config) if config is not None else None
    points = _ladder(case)
    if config is None or not bytes_per_token or len(points) < CONTEXTS or _on_cpu(case):
        return None
    line = _fit(points)
    bandwidth = case.gpu_bandwidth or thresholds.SLOWEST_GPU
    roofline = bytes_per_token / (bandwidth * 1e9) * 1e3
    short, long = points[0], points[-1]
    growth = (long.step_ms or 0.0) / (short.step_ms or 1.0)
    if line.slope < thresholds.ROOFLINE * roofline or growth < thresholds.GROWTH or not _apart(short, long):
        return None
    lints = [*case.found(Outcome.FAIL, "SA01"), *case.found(Outcome.WARN, "SA01")]
    straight = line.r_squared >= thresholds.LINEAR and line.intercept >= 0
    card = f"{bandwidth:g} GB/s" + (
        "" if case.gpu_bandwidth else ", the slowest card, for want of this one's"
    )
    reasons = [
        f"a step takes {words.steps_of(short)} and {words.steps_of(long)}, {growth:.1f} times as long ({short.arm}, "
        f"{len(points)} lengths)",
        f"that is {line.slope * 1e3:.3g} µs per token of context; reading {bytes_per_token:.0f} bytes of KV per token "
        f"takes {roofline * 1e3:.3g} µs ({card}): {line.slope / roofline:.0f} times as much, {roofline / line.slope:.1%} "
        "of the roofline",
        *(f"{finding.id}: {finding.summary}" for finding in lints),
    ]
    missing = []
    if len(points) < 5:
        missing.append(f"step times at five lengths or more: {len(points)} do not tell a line from a curve")
    if line.intercept < 0:
        missing.append(
            f"why the line begins below zero ({words.short(line.intercept)} ms): the time grows faster than the context, or short "
            "contexts take another path"
        )
    if not case.gpu_bandwidth:
        missing.append("the GPU's bandwidth (`gpu_bandwidth` in the hosts file)")
    return Ruling(
        Verdict(
            name="attention_kernel_bottleneck",
            kind="serial_prefix" if lints else "",
            confidence="medium" if straight and not _unsteady(case) else "low",
            reasons=tuple(reasons),
            cites=words.cites(*points, config) + tuple(cite for finding in lints for cite in finding.cites),
            ruled_out=excluded(case),
            missing=tuple(missing),
            next=(
                *dict.fromkeys(finding.advice for finding in lints if finding.advice),
                words.command(case, [arm_of(short.arm)], _five(short.context_tokens, long.context_tokens)),
                "compare with speculation off at the same lengths (--baseline): plain decoding may take another kernel",
            ),
        ),
        explains=growth,
    )


def _ladder(case: Case) -> tuple[CommitPoint, ...]:
    """The text with step times at the most lengths; repeated text where several have as many."""
    timed: dict[str, list[CommitPoint]] = {}
    for point in case.points:
        if point.step_ms and point.timed_steps >= thresholds.MIN_TIMED_STEPS and point.context_tokens:
            timed.setdefault(point.arm, []).append(point)
    if not timed:
        return ()
    best = min(timed, key=lambda arm: (-len(timed[arm]), arm_of(arm) not in EASY, arm))
    return tuple(sorted(timed[best], key=lambda point: point.context_tokens))


@dataclass(frozen=True, slots=True)
class Line:
    slope: float
    """Milliseconds per token of context."""
    intercept: float
    r_squared: float


def _fit(points: Sequence[CommitPoint]) -> Line:
    """Least squares of step time over context."""
    xs = [float(point.prompt_tokens or point.context_tokens) for point in points]
    ys = [point.step_ms or 0.0 for point in points]
    x_mean, y_mean = sum(xs) / len(xs), sum(ys) / len(ys)
    spread = sum((x - x_mean) ** 2 for x in xs)
    if not spread:
        return Line(0.0, y_mean, 0.0)
    slope = sum((x - x_mean) * (y - y_mean) for x, y in zip(xs, ys, strict=True)) / spread
    intercept = y_mean - slope * x_mean
    left = sum((y - intercept - slope * x) ** 2 for x, y in zip(xs, ys, strict=True))
    total = sum((y - y_mean) ** 2 for y in ys)
    return Line(slope, intercept, 1 - left / total if total else 0.0)


def _apart(short: CommitPoint, long: CommitPoint) -> bool:
    """Whether the bulk of the step times does not overlap."""
    if short.step_ms_high is None or long.step_ms_low is None:
        return False
    return long.step_ms_low > short.step_ms_high


def _unsteady(case: Case) -> bool:
    check = case.check("first-again")
    return check is None or check.agrees is not True


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


def _five(shortest: int, longest: int) -> list[int]:
    """Five lengths between both, each the same factor from the next."""
    factor = (longest / shortest) ** 0.25
    return sorted(
        {shortest, longest, *(round(shortest * factor**step / 256) * 256 for step in (1, 2, 3))} - {0}
    )
