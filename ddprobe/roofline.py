"""What reading a target's KV cache and weights takes at the least, from its configuration and the card's bandwidth.

Every choice is the one that makes the least work: an excess over it is then none of the estimate's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ddprobe import gpu_cards
from ddprobe.facts import Achieved, Estimate, ModelConfig, Roofline, ServerArgs, StepFit
from ddprobe.gpu_cards import Card

BYTES = {
    "float32": 4, "fp32": 4, "f32": 4, "bfloat16": 2, "bf16": 2, "float16": 2, "fp16": 2, "f16": 2, "half": 2,
}  # fmt: skip
NARROW = ("fp8", "int8", "nvfp8", "q8", "float8")
NARROWER = ("fp4", "nvfp4", "int4", "mxfp4", "q4", "iq4", "float4")
FOUR_BITS = 4.5 / 8
"""Bytes of a number of 4 bits, with its share of the scales: 8 bits for each 16."""
MOST_RANKS = 4096
FASTEST = 1e9
"""GB/s that no GPU reaches: a bandwidth beyond it was not meant."""
SCALES = {4.0: 4.5}
"""Bits of a weight with its share of the scales: 16 bits for each 32 weights of 4."""
GIVEN = "the host's gpu_bandwidth"
"""Whose bandwidth it is where a person said it."""
FULL = ("full_attention", "attention")
SLIDING = ("sliding_attention", "sliding", "chunked_attention", "local_attention")
Argument = Callable[[str], Any]


def of(
    target: ModelConfig | None,
    args: Sequence[ServerArgs] | Argument = (),
    gpus: Sequence[str] = (),
    *,
    bandwidth: float | None = None,
    memory_clock: float = 1.0,
    verify_width: int | None = None,
    base: str = "",
) -> Roofline | None:
    """The roofline of one verify step of one request; None where the configuration does not tell the size of the KV cache.

    `args` are the server's arguments (resolved ones first), `gpus` the cards' names as their tools print them, `bandwidth`
    in GB/s overrides the table, `memory_clock` is the memory's clock over its highest, `verify_width` the tokens that a
    step computes.
    """
    told = args if callable(args) else _lookup(args)
    if target is None:
        return None
    size, kind = _element(target, told)
    layers = _Layers(target)
    row = _row(target, told, size) if size is not None else None
    if row is None or row <= 0 or layers.full < 0 or not (layers.full or layers.sliding):
        return None
    width = verify_width or _width(told)
    weights = _weight_bytes(target, told, width or 1)
    speed, source, known, name = _speed(gpus, bandwidth, memory_clock)
    ranks = _whole(told, "tp_size")
    return Roofline(
        base=base,
        kv_bytes_per_token=layers.full * row,
        kv_bytes_fixed=layers.sliding * row * (target.sliding_window or 0),
        window=target.sliding_window if layers.sliding else None,
        weight_bytes=weights,
        verify_width=width,
        bandwidth=speed,
        bandwidth_source=source,
        known=known,
        gpu=name,
        ranks=ranks,
        assumptions=tuple(_assumptions(target, told, layers, kind, width, weights)),
        source=target.source,
    )


def achieved(fit: StepFit, roofline: Roofline) -> Achieved:
    """The measured law beside the roofline: bandwidth at the longest length, and how much too steep the slope is."""
    context, ms = fit.contexts[-1], fit.step_ms[-1]
    read = roofline.kv_bytes(context)
    speed = read / ms * 1e-6
    slope = _slope(fit)
    least, floor = roofline.ms_per_token, roofline.weights_ms
    grows = slope.value > 0 and least > 0 and fit.form != "flat"
    return Achieved(
        base=fit.base,
        arm=fit.arm,
        context=context,
        step_ms=ms,
        kv_bytes=read,
        gb_s=speed,
        share=speed / roofline.bandwidth,
        slope_ratio=_times(slope, 1 / least) if grows else None,
        slope_gb_s=_per(roofline.kv_bytes_per_token * 1e-6, slope) if grows else None,
        fixed_ratio=_times(fit.a, 1 / floor) if floor and fit.a.value > 0 else None,
        source=(*fit.source, *roofline.source),
    )


def _slope(fit: StepFit) -> Estimate:
    """ms per token; of a curve the mean slope between its ends, whose interval is that of neither coefficient."""
    if fit.c is None:
        return fit.b
    return Estimate(fit.b.value + fit.c.value * (fit.contexts[0] + fit.contexts[-1]))


def _times(found: Estimate, factor: float) -> Estimate:
    low, high = found.low, found.high
    return Estimate(
        found.value * factor, None if low is None else low * factor, None if high is None else high * factor
    )


def _per(amount: float, found: Estimate) -> Estimate:
    """Amount over the estimate; an end that is not above zero says nothing."""
    low, high = found.low, found.high
    return Estimate(
        amount / found.value,
        amount / high if high is not None and high > 0 else None,
        amount / low if low is not None and low > 0 else None,
    )


# --- the KV cache -------------------------------------------------------------------------------------------


class _Layers:
    """How many layers read the whole context, and how many a window of it."""

    def __init__(self, target: ModelConfig) -> None:
        count = target.num_hidden_layers or 0
        self.full, self.sliding, self.other, self.guessed = count, 0, 0, False
        types = target.layer_types
        interval = dict(target.extra).get("full_attention_interval")
        if types is not None:
            self.full = sum(kind in FULL for kind in types)
            self.sliding = sum(kind in SLIDING for kind in types) if (target.sliding_window or 0) > 0 else 0
            self.other = len(types) - self.full - self.sliding
        elif isinstance(interval, int) and interval > 0:
            self.full = count // interval
            self.other = count - self.full
        elif target.sliding_window and target.use_sliding_window is not False:
            self.guessed = True


def _row(target: ModelConfig, told: Argument, size: float) -> float | None:
    """Bytes of one token in one layer's KV cache, on one GPU."""
    if target.kv_lora_rank is not None:
        if target.kv_lora_rank <= 0:
            return None
        # The latent is one for all heads, so every rank keeps the whole of it.
        return (target.kv_lora_rank + (target.qk_rope_head_dim or 0)) * size / _whole(told, "dcp_size")
    heads = target.num_key_value_heads or target.num_attention_heads
    width = target.head_dim
    if width is None and target.hidden_size and target.num_attention_heads:
        width = target.hidden_size // target.num_attention_heads
    if not heads or not width:
        return None
    return max(1.0, heads / _attention_ranks(told)) * width * 2 * size


def _attention_ranks(told: Argument) -> int:
    """GPUs that share the heads of one request: with DP attention a group of them only."""
    ranks = _whole(told, "tp_size")
    if told("enable_dp_attention") is True:
        return max(1, ranks // _whole(told, "dp_size"))
    return ranks


def _element(target: ModelConfig, told: Argument) -> tuple[float | None, str]:
    """Bytes of one number in the KV cache, and what it is called; None for a name whose width is not known."""
    asked = told("kv_cache_dtype")
    named = asked if isinstance(asked, str) and asked not in ("", "auto") else target.dtype
    name = named.removeprefix("torch.").lower()[:40]
    if not name:
        return 2.0, "16 bit, which nobody says"
    if name.startswith(NARROW):
        return 1.0, name
    return (FOUR_BITS if name.startswith(NARROWER) else BYTES.get(name)), name


# --- weights ------------------------------------------------------------------------------------------------


def _weight_bytes(target: ModelConfig, told: Argument, width: int) -> float | None:
    """Bytes of weights that one step reads on each GPU, spread evenly over the ranks; those of attention over the GPUs that
    share the heads of one request."""
    hidden, layers = target.hidden_size, target.num_hidden_layers
    attention = _attention_weights(target)
    if not hidden or not layers or attention is None:
        return None
    per_weight = _Widths(target)
    experts, chosen = target.n_routed_experts, target.num_experts_per_tok
    sparse = 0
    ranks = _whole(told, "tp_size")
    total = layers * attention * per_weight.of("attn") * ranks / _attention_ranks(told)
    if experts and chosen and target.moe_intermediate_size:
        sparse = max(0, layers - (target.first_k_dense_replace or 0))
        one = 3.0 * hidden * target.moe_intermediate_size
        touched = experts * (1 - (1 - chosen / experts) ** width)
        total += sparse * touched * one * per_weight.of("experts")
        total += sparse * (target.n_shared_experts or 0) * one * per_weight.of("shared_expert")
    elif experts:
        return None
    if layers > sparse:
        if not target.intermediate_size:
            return None
        total += (layers - sparse) * 3.0 * hidden * target.intermediate_size * per_weight.of("mlp")
    total += (target.vocab_size or 0) * hidden * per_weight.plain
    return total / ranks if 0 < total < math.inf else None


def _attention_weights(target: ModelConfig) -> float | None:
    """Weights of one attention layer."""
    hidden, heads = target.hidden_size, target.num_attention_heads
    if not hidden or not heads:
        return None
    if target.kv_lora_rank is not None:
        rope, nope, value = target.qk_rope_head_dim or 0, target.qk_nope_head_dim or 0, target.v_head_dim or 0
        rank, queries = target.q_lora_rank, heads * (rope + nope)
        asked = hidden * rank + rank * queries if rank else hidden * queries
        latent = hidden * (target.kv_lora_rank + rope) + target.kv_lora_rank * heads * (nope + value)
        return float(asked + latent + heads * value * hidden)
    width = target.head_dim or hidden // heads
    pairs = target.num_key_value_heads or heads
    return float(2 * hidden * heads * width + 2 * hidden * pairs * width)


class _Widths:
    """Bytes of one weight by the part of the model."""

    def __init__(self, target: ModelConfig) -> None:
        self.plain = float(BYTES.get(target.dtype.lower(), 2))
        bits = target.quantization_bits if target.quantization else None
        self.narrow = SCALES.get(bits, bits) / 8 if bits is not None else self.plain
        self.ignored = target.quantization_ignore or ()

    def of(self, part: str) -> float:
        """What the quantisation's own list leaves out is of full width. Of it a floor needs to know the large parts only."""
        if part != "experts" and any(part in pattern for pattern in self.ignored):
            return self.plain
        return self.narrow


def _width(told: Argument) -> int | None:
    """Tokens of a verify step by the server's arguments; None where they do not tell."""
    if not told("speculative_algorithm"):
        return None
    drafts = told("speculative_num_draft_tokens")
    return drafts if isinstance(drafts, int) and not isinstance(drafts, bool) and drafts > 0 else None


# --- the card -----------------------------------------------------------------------------------------------


def _speed(gpus: Sequence[str], override: float | None, memory_clock: float) -> tuple[float, str, bool, str]:
    """GB/s, from where, whether it is this card's own, and the card's name. Of several cards the slowest counts."""
    cards: list[tuple[Card, str]] = [(card, name) for name in gpus if (card := gpu_cards.card(name))]
    name = min(cards, key=lambda each: each[0].bandwidth)[1] if cards else next(iter(gpus), "")
    if override and 0 < override <= FASTEST:
        return override, GIVEN, True, name
    if not cards or len(cards) < len(gpus):
        return gpu_cards.UNKNOWN.bandwidth, gpu_cards.UNKNOWN.source, False, name
    card = min((each[0] for each in cards), key=lambda each: each.bandwidth)
    if 0 < memory_clock < 1:
        return (
            card.bandwidth * memory_clock,
            f"{card.source}, its memory at {memory_clock:.0%} of its clock",
            True,
            name,
        )
    return card.bandwidth, card.source, True, name


def _assumptions(
    target: ModelConfig, told: Argument, layers: _Layers, kind: str, width: int | None, weights: float | None
) -> Iterator[str]:
    ranks = _whole(told, "tp_size")
    if target.kv_lora_rank is not None:
        shared = _whole(told, "dcp_size")
        where = f"spread over {shared} GPUs (dcp_size)" if shared > 1 else "whole on every GPU"
        yield f"the KV cache is MLA's latent in {kind}, {where if ranks > 1 else 'on one GPU'}"
    else:
        heads = target.num_key_value_heads or target.num_attention_heads or 0
        over = _attention_ranks(told)
        yield f"{heads} KV heads in {kind}, over {over} GPU{'s' if over > 1 else ''}"
    if layers.sliding:
        yield f"{layers.sliding} of {len(target.layer_types or ())} layers read {target.sliding_window} tokens at the most"
    if layers.other:
        yield f"{layers.other} layers keep a state of fixed size, which is left out"
    if layers.guessed:
        yield "the configuration has a window and no layer_types: every layer is taken to read the whole context"
    if _whole(told, "pp_size") > 1:
        yield "stages of the pipeline run one after another: all layers count"
    if weights is not None:
        experts = f", experts as chosen by chance for {_tokens(width)}" if target.n_routed_experts else ""
        yield f"weights of a step of {_tokens(width)}, spread evenly over {ranks} GPU{'s' if ranks > 1 else ''}{experts}"
        if target.quantization and target.quantization_bits is None:
            yield f"the width of weights in {target.quantization} is not known: taken as if not quantised"


def _tokens(width: int | None) -> str:
    return f"{width} tokens" if width and width > 1 else "1 token"


def _whole(told: Argument, name: str) -> int:
    """A number of GPUs or groups by the arguments; 1 where they do not say."""
    value = told(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MOST_RANKS else 1


def _lookup(args: Sequence[ServerArgs]) -> Argument:
    ordered = sorted(args, key=lambda one: not one.resolved)

    def found(name: str) -> Any:
        return next((value for one in ordered if (value := one.get(name)) is not None), None)

    return found
