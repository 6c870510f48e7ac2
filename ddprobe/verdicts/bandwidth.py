"""A measured law beside the roofline, in words: bandwidth achieved, slope, thread blocks of a verify step."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ddprobe import gpu_cards, roofline
from ddprobe.facts import Achieved, Roofline, StepFit
from ddprobe.model import Finding
from ddprobe.parsing import sizes
from ddprobe.verdicts import verifying, words
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.growth import memory

TILE = 32
"""Queries of one thread block of triton's extend kernel (BLOCK_M at a head of 576 on SM120; sglang 0.5.23
kernels/ops/attention/extend_attention.py)."""


def reached(case: Case, law: StepFit) -> tuple[Achieved, Roofline] | None:
    """What the law comes to beside what memory allows; None where the target is not known."""
    line = memory(case)
    if line is None or not line.kv_bytes_per_token:
        return None
    return roofline.achieved(law, line), line


def told(found: Achieved, line: Roofline) -> str:
    """`at 185000 a step reads 13 GB of KV cache in 1430 ms: 9.09 GB/s, 0.51% of 1792 GB/s (RTX PRO 6000)`."""
    card = gpu_cards.card(line.gpu)
    whose = f" ({card.name})" if card is not None and line.known else ""
    unsure = "" if line.known else "of the slowest card, for want of this one's: "
    return (
        f"at {sizes.short(round(found.context))} each GPU reads {words.short(found.kv_bytes / 1e9)} GB of KV cache in a step of "
        f"{words.short(found.step_ms)} ms: {_two(found.gb_s)} GB/s, {unsure}{_share(found.share)} of {line.bandwidth:g} GB/s"
        f"{whose}"
    )


def _two(value: float) -> str:
    """Two digits, all of a number that has more before its point: `9.1`, `726`."""
    return f"{value:.2g}" if value < 99.5 else f"{value:.0f}"


def slope(found: Achieved, line: Roofline) -> str:
    """`the slope is 198 times that of reading the KV cache (7.75 µs per token beside 0.0392)`; empty for a flat law."""
    if found.slope_ratio is None:
        return ""
    ratio, low, high = found.slope_ratio.value, found.slope_ratio.low, found.slope_ratio.high
    ends = f", 95 % {words.short(low)}–{words.short(high)}" if low is not None and high is not None else ""
    least = line.ms_per_token * 1e3
    return (
        f"the slope is {words.short(ratio)} times that of reading the KV cache{ends} ({ratio * least:.3g} µs per token "
        f"beside {least:.3g})"
    )


def blocks(case: Case, found: tuple[Finding, ...]) -> Iterator[str]:
    """How much of the GPU a verify step's attention can use, where it is known, or likely, to run in triton's extend kernel.

    `found` are findings that it does. Without one it is said where the arguments name triton, or SGLang takes it by itself.
    Nothing with attention spread over requests (DP), where heads per GPU are others.
    """
    config, line = case.config("target"), memory(case)
    if config is None or line is None or not config.num_attention_heads or not line.verify_width:
        return
    if case.argument("enable_dp_attention"):
        return
    card = gpu_cards.card(line.gpu)
    heads = max(1, config.num_attention_heads // line.ranks)
    tiles = math.ceil(line.verify_width / TILE)
    if card is None or card.sms is None or heads * tiles >= card.sms:
        return
    mla, chip = config.kv_lora_rank is not None, gpu_cards.sm120(line.gpu)
    if not found and verifying.backend(case) != verifying.TRITON:
        return
    by_default = ", SGLang's default there" if verifying.presumed(case) and not found else ""
    yield (
        f"Triton {'MLA ' if mla else ''}verify on {card.name}{' (SM120)' if chip else ''}{by_default}: one request has "
        f"{words.count(heads, 'head')} × {words.count(tiles, 'tile')} of {TILE} queries = {words.count(heads * tiles, 'thread block')} for {card.sms} SMs, each of "
        "which walks the whole context by itself"
    )


def _share(share: float) -> str:
    return f"{share:.2%}" if share < 0.01 else f"{share:.0%}"
