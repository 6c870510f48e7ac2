"""Do drafter and engine agree on positions: RoPE, its scaling, and the lengths it was made for?"""

from __future__ import annotations

import math

from ddprobe.engines import TABLE, sglang_reading
from ddprobe.engines.sglang_reading import AMPLITUDE_RATIO_SINCE
from ddprobe.lints.lint import (
    Judgement,
    drafter,
    drafts,
    drafts_on_sglang,
    fail,
    fine,
    lint,
    need,
    note,
    target,
    unknown,
    warn,
)
from ddprobe.lints.served import Served, config_cite

_YARN = ("yarn", "deepseek_yarn")
OVERRIDE = "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN"


def _length_flag(served: Served) -> str:
    return TABLE[served.engine or "sglang"].flag("context_length")


def _engine(served: Served) -> str:
    return f"SGLang {served.version}".strip()


@lint(
    "DC30",
    "one RoPE serves all layers",
    source="sglang 0.5.23 srt/layers/rotary_embedding/factory.py:191-198; TensorRT-LLM#16914",
    subject="drafter",
    applies=drafts_on_sglang,
)
def rope_flat(served: Served) -> Judgement:
    config = drafter(served)
    cite = config_cite(config, "rope")
    if config.rope.per_layer_type:
        return fail(
            f"{config.place('rope')} is nested per layer type; SGLang takes 1 RoPE for all layers and raises "
            '"Unknown RoPE scaling type"',
            "write one flat dictionary with rope_type and rope_theta",
            cite,
        )
    return fine("one RoPE for all layers", cite)


@lint(
    "DC31",
    "YaRN's amplitude is stated where SGLang reads it",
    source="sglang 0.5.23 srt/layers/rotary_embedding/factory.py:316-370 reads attn_factor only",
    subject="drafter",
    applies=drafts_on_sglang,
)
def attention_factor(served: Served) -> Judgement:
    config = drafter(served)
    rope, cite = config.rope, config_cite(config, "rope.attention_factor")
    if rope.kind not in _YARN or rope.attention_factor is None:
        return fine("no attention_factor that SGLang would ignore", cite)
    used = sglang_reading.amplitude(rope, served.version)
    if used is not None and math.isclose(used, rope.attention_factor, rel_tol=0.005):
        return fine(
            f"attention_factor {rope.attention_factor:g} is ignored, and SGLang uses {used:.4f} anyway", cite
        )
    uses = f"uses {used:.4f}" if used is not None else "uses an amplitude that depends on its version"
    add = (
        f"{rope.attention_factor * (rope.attn_factor or 1.0) / used:.4f}"
        if used
        else "(trained / SGLang's own)"
    )
    return warn(
        f"attention_factor {rope.attention_factor:g} is ignored: SGLang reads attn_factor and {uses}",
        f"set attn_factor {add} in {config.place('rope')}, and measure acceptance with and without it",
        cite,
        attention_factor=rope.attention_factor,
    )


@lint(
    "DC32",
    "YaRN's amplitude is the trained one in this version",
    source="sglang srt/layers/rotary_embedding/yarn.py: 0.1·ln(factor)+1 up to 0.5.15, mscale / mscale_all_dim since "
    "0.5.16; vllm-ascend patch_speculative_config.py, vllm#56446",
    subject="drafter and engine",
    applies=drafts_on_sglang,
)
def yarn_amplitude(served: Served) -> Judgement:
    config = drafter(served)
    rope, cites = config.rope, config_cite(config, "rope.mscale", "rope.factor")
    old, new = sglang_reading.amplitudes(rope)
    if rope.kind != "yarn" or old == new:
        return fine(
            "the RoPE amplitude is the same in every SGLang version", config_cite(config, "rope.kind")
        )
    needed = f"attn_factor {old / (new / (rope.attn_factor or 1.0)):.4f} in the drafter's RoPE"
    mine = sglang_reading.amplitude(rope, served.version)
    advice = (
        f"measure acceptance with {needed} (the amplitude before {AMPLITUDE_RATIO_SINCE}) and without it; keep the better"
        if mine != old
        else f"when upgrading to {AMPLITUDE_RATIO_SINCE} or newer, set {needed} or measure acceptance before and after"
    )
    both = f"{old:.4f} before {AMPLITUDE_RATIO_SINCE} and {new:.4f} since"
    if mine is None:
        return unknown(
            f"YaRN with factor {rope.factor:g} and mscale {rope.mscale:g} has amplitude {both}; the version is not known",
            advice,
            cites,
        )
    return warn(
        f"YaRN with factor {rope.factor:g} has amplitude {mine:.4f} in {_engine(served)} ({both}): q·k differs by "
        f"{(old / new) ** 2:.2f}×, and which one it was trained with is not in the file",
        advice,
        cites,
        amplitude=round(mine, 4),
    )


@lint(
    "DC33",
    "a Qwen3-style drafter does not ask for DeepSeek's YaRN",
    source="srt/layers/rotary_embedding/factory.py:371 and rope_variant.py:335-368; transformers has no such type",
    subject="drafter",
    applies=drafts_on_sglang,
)
def deepseek_yarn(served: Served) -> Judgement:
    config = drafter(served)
    cite = config_cite(config, "rope.kind")
    if config.rope.kind == "deepseek_yarn" and config.kv_lora_rank is None:
        amplitude = need(sglang_reading.amplitude(config.rope, served.version), "the RoPE amplitude")
        return warn(
            f"RoPE type is deepseek_yarn in a drafter without MLA: SGLang builds another class (amplitude "
            f"{amplitude:.4f}), and transformers knows no such type",
            'set rope_type to "yarn" and measure again',
            cite,
        )
    return fine(f"RoPE type is {config.rope.kind or 'default'}", cite)


@lint(
    "DC34",
    "the RoPE was scaled for the context served",
    source="YaRN extrapolates past factor × original_max_position_embeddings",
    subject="drafter and launch",
    applies=drafts,
)
def rope_reach(served: Served) -> Judgement:
    config = drafter(served)
    rope = config.rope
    cites = config_cite(config, "rope.factor", "rope.original_max_position")
    if rope.kind not in (*_YARN, "linear"):
        kind = rope.kind or "default"
        return fine(f"RoPE type {kind} has no reach of its own: DC35 judges its length", cites)
    context, origin, context_cites = served.context()
    context = need(context, "the context length served")
    factor = need(rope.factor, "the factor of the drafter's RoPE")
    original = need(
        rope.original_max_position or config.max_position_embeddings,
        "original_max_position_embeddings of the drafter's RoPE",
    )
    reach = int(factor * original)
    if reach < context:
        return warn(
            f"RoPE reaches {reach} = {factor:g} × {original} tokens; {origin} goes beyond",
            f"serve with {_length_flag(served)} {reach} or accept decay past it",
            cites,
            context_cites,
        )
    return fine(f"RoPE reaches {reach} tokens, enough for {origin}", cites, context_cites)


@lint(
    "DC35",
    "the drafter's positions cover the context served",
    source="sglang 0.5.23 srt/configs/model_config.py:1291-1324, srt/speculative/draft_worker_common.py:99-100; "
    "vllm#48894, vllm#58080, sglang#3574, sglang#6783",
    subject="drafter and launch",
    applies=drafts,
    aliases=("L01",),
)
def length(served: Served) -> Judgement:
    config = drafter(served)
    context, origin, context_cites = served.context()
    context = need(context, "the context length served")
    mine = need(config.context_length, "the drafter's max_position_embeddings")
    cites = (*config_cite(config, "context_length"), *context_cites)
    if mine >= context:
        return fine(f"the drafter's {mine} positions cover {origin}", cites)
    value = dict(served.process.environment).get(OVERRIDE) if served.process else None
    if value is not None and truthy(value):
        then = f"{OVERRIDE} is set, so SGLang overrides the drafter's length in silence"
    elif served.process is not None and served.process.environment_seen:
        then = "SGLang raises at start"
    else:
        then = f"SGLang raises at start, or overrides it in silence where {OVERRIDE} is set"
    if not served.on_sglang:
        then = "past it drafts are made at positions it was not trained for"
    return fail(
        f"the drafter's {mine} positions end before {origin}: {then}",
        f"serve with {_length_flag(served)} {mine}" + (f" and unset {OVERRIDE}" if served.on_sglang else ""),
        cites,
        drafter=mine,
        served=context,
    )


def truthy(value: str) -> bool:
    """True for what SGLang's environment reader takes for true."""
    return value.strip().lower() in ("true", "1", "yes", "y")


@lint(
    "DC36",
    "drafter and target share a RoPE base, or differ on purpose",
    source="wejoncy/sfllm#32: a drafter can be right with another base (2.50 at 10000 against 2.39 at 1000000)",
    subject="drafter and target",
    applies=drafts,
    aliases=("L04",),
)
def theta(served: Served) -> Judgement:
    config, other = drafter(served), target(served)
    cites = config_cite(config, "rope.theta"), config_cite(other, "rope.theta")
    theirs = need(other.rope.theta, "the target's rope_theta")
    mine = config.rope.theta
    if mine is None and theirs != sglang_reading.DEFAULT_THETA:
        return warn(
            f"rope_theta is absent in the drafter, so {sglang_reading.DEFAULT_THETA:g} is taken; the target's is "
            f"{theirs:g}",
            "state the trained rope_theta in the drafter's config.json",
            *cites,
        )
    if mine is not None and mine != theirs:
        return note(
            f"rope_theta is {mine:g} in the drafter and {theirs:g} in the target, which can be right",
            "check the model card",
            *cites,
        )
    return fine(f"rope_theta is {theirs:g} on both sides", *cites)


LINTS = (rope_flat, attention_factor, yarn_amplitude, deepseek_yarn, rope_reach, length, theta)
