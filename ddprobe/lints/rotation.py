"""Does the drafter rotate as it was trained to: which part of a head, over how many axes, on which base, how far?"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ddprobe.facts import ModelConfig, SourceHit
from ddprobe.lints.lint import (
    Judgement,
    drafter,
    drafts,
    fail,
    fine,
    lint,
    need,
    target,
    unknown,
    warn,
)
from ddprobe.lints.served import Served, config_cite
from ddprobe.model import Cite

_ROTATES_ALL = ("qwen2", "qwen3", "qwen3_moe", "llama", "mistral")
"""Model types whose own layers rotate whole heads."""
_SCALED = ("yarn", "deepseek_yarn", "linear", "dynamic", "longrope", "llama3")
_FLAT = re.compile(
    r"getattr\(\s*[\w.]+,\s*['\"]rope_theta['\"]\s*(?:,\s*(?P<default>[\w.]+)\s*)?\)"
    r"|\.get\(\s*['\"]rope_theta['\"]\s*(?:,\s*(?P<other>[\w.]+)\s*)?\)|\bconfig\.rope_theta\b"
)
_NESTED = re.compile(r"rope_parameters|get_rope_config|rope_scaling\[")
_DRAFTING = re.compile(r"draft|dflash|dspark|eagle|mtp|nextn", re.IGNORECASE)
_EASY = ("repeat", "repeat-wide", "repeat-long", "verbatim")
_CLIFF = 0.75
"""Share of the short commit below which the long one has fallen."""


@lint(
    "DC46",
    "a drafter rotates the part of a head that it was trained to",
    source="vllm-project/speculators#613 (trained with all 256 dimensions rotated, served with a quarter); a drafter may "
    "be right with a part of its own: sglang#27638",
    subject="drafter and target",
    applies=lambda served: (
        drafts(served)
        and served.drafter is not None
        and served.drafter.rope.partial_rotary_factor is not None
    ),
    aliases=("L05",),
)
def partial_rotary(served: Served) -> Judgement:
    config = drafter(served)
    mine = need(config.rope.partial_rotary_factor, "the drafter's partial_rotary_factor")
    cite = config_cite(config, "rope.partial_rotary_factor")
    if mine >= 1:
        return fine(f"partial_rotary_factor {mine:g}: whole heads are rotated", cite)
    other = target(served)
    cites = cite, config_cite(other, "rope.partial_rotary_factor")
    theirs = other.rope.partial_rotary_factor
    if theirs is None or theirs != mine:
        said = "states none" if theirs is None else f"has {theirs:g}"
        return fine(f"partial_rotary_factor {mine:g} is the drafter's own (the target {said})", *cites)
    part = f" ({mine * config.head_dim:g} of {config.head_dim} dimensions)" if config.head_dim else ""
    summary = f"partial_rotary_factor {mine:g}{part} is the target's"
    advice = (
        "look up how it was trained; if with whole heads, take partial_rotary_factor out of a copy of its config.json "
        "and compare the accept length"
    )
    if config.model_type in _ROTATES_ALL:
        return fail(
            f"{summary}, and a drafter of type {config.model_type} rotates whole heads unless told otherwise: it was "
            "copied",
            advice,
            *cites,
            partial_rotary_factor=mine,
        )
    if config.model_type and config.model_type == other.model_type:
        return fine(f"{summary}, whose layers it is made of", *cites)
    return warn(f"{summary}: inherited, or trained so", advice, *cites, partial_rotary_factor=mine)


@lint(
    "DC47",
    "a drafter has one axis of positions",
    source="NVIDIA/Model-Optimizer#1621: block drafters use plain positions; z-lab/dflash#170: one with sections exists",
    subject="drafter",
    applies=lambda served: (
        drafts(served) and served.drafter is not None and served.drafter.rope.mrope_section is not None
    ),
    aliases=("L06",),
)
def mrope(served: Served) -> Judgement:
    config = drafter(served)
    cite = config_cite(config, "rope.mrope_section")
    sections = list(config.rope.mrope_section or ())
    own = config.model_type not in _ROTATES_ALL
    if own and served.target is not None and config.model_type == served.target.model_type:
        return fine(f"mrope_section {sections} belongs to layers of the target's own type", cite)
    return warn(
        f"mrope_section {sections}: most drafters have 1 axis of positions, and this may be the target's",
        "look up how it was trained; take mrope_section out of a copy of its config.json and compare",
        cite,
    )


@lint(
    "DC39",
    "rope_theta stands where the engine's drafter reads it",
    source="NVIDIA-NeMo/Automodel#2920, NVIDIA/Model-Optimizer#2221: transformers 5 writes it into rope_parameters only",
    subject="drafter and engine",
    applies=lambda served: (
        served.drafter is not None
        and served.drafter.rope.theta is not None
        and any(_flat_reads(served.source_lines))
    ),
    aliases=("L03",),
)
def nested_theta(served: Served) -> Judgement:
    config = drafter(served)
    theta = need(config.rope.theta, "the drafter's rope_theta")
    place = config.place("rope.theta")
    hit, default = next(_flat_reads(served.source_lines))
    cites = (
        config_cite(config, "rope.theta"),
        tuple(Cite(each.artefact, f"{hit.path}:{hit.line}") for each in hit.source),
    )
    if not re.search(r"\.rope_(parameters|scaling)\.", place):
        return fine(f"rope_theta {theta:g} is flat, as {_at(hit)} reads it", *cites)
    if default is None:
        return fail(
            f"rope_theta {theta:g} stands in {place} only, and {_at(hit)} reads the flat field: loading fails, or a "
            "default is taken",
            "write rope_theta at the top of a copy of the drafter's config.json too, and compare",
            *cites,
        )
    if default == theta:
        return fine(f"{_at(hit)} falls back to {default:g}, which is the trained rope_theta", *cites)
    return fail(
        f"rope_theta {theta:g} stands in {place} only, and {_at(hit)} reads the flat field: the drafter rotates on "
        f"{default:g}",
        "write rope_theta at the top of a copy of the drafter's config.json too, and compare",
        *cites,
        trained=theta,
        effective=default,
    )


def _at(hit: SourceHit) -> str:
    return f"{posixpath.basename(hit.path)}:{hit.line}"


def _flat_reads(lines: tuple[SourceHit, ...]) -> Iterator[tuple[SourceHit, float | None]]:
    """Lines of drafting code that read rope_theta flat, and the default they take."""
    nested = {hit.path for hit in lines if _NESTED.search(hit.text)}
    for hit in lines:
        match = _FLAT.search(hit.text)
        if match and hit.source and hit.path not in nested and _DRAFTING.search(f"{hit.path} {hit.within}"):
            word = match["default"] or match["other"]
            try:
                yield hit, float(word) if word else None
            except ValueError:
                yield hit, None


@lint(
    "DC50",
    "a RoPE that is stretched is stretched for the drafter too",
    source="vllm#58080: --hf-overrides as a dictionary reaches the target alone (vllm 0.32 config/speculative.py, "
    "compose_draft_hf_overrides); kekzl/imp#897",
    subject="drafter and target",
    applies=lambda served: (
        bool(served.algorithm) and served.algorithm != "NGRAM" and _stretched(served) != ""
    ),
    aliases=("L02",),
)
def stretched_both(served: Served) -> Judgement | None:
    config = served.drafter
    own = config if config is not None else served.target if served.drafts_with_own_layers else None
    if own is None:
        return None
    how = _stretched(served)
    cites = (
        config_cite(served.target, "rope.kind"),
        served.arg_cite("hf_overrides"),
        config_cite(config, "rope.kind"),
    )
    if config is not None and config.rope.kind in _SCALED:
        return fine(f"the drafter's RoPE is scaled too ({config.rope.kind})", *cites)
    if config is None and not how.startswith("--hf-overrides"):
        return fine("the drafting layers share the target's configuration", *cites)
    length = own.context_length
    context, origin, more = served.context()
    what = "the drafter" if config is not None else "its own next-token layer"
    advice = (
        "scale the drafter's RoPE in its own config.json (or edit the target's config.json instead of overriding it), or "
        f"serve with at most {length} tokens"
    )
    if context is None or length is None:
        return unknown(
            f"{how} scales the target's RoPE and not that of {what}; whether that is reached is not known",
            advice,
            *cites,
        )
    if context <= length:
        return fine(f"{how}; {what} covers {origin} unscaled ({length} positions)", *cites, more)
    return fail(
        f"{how} scales the target's RoPE and not that of {what}: past its {length} positions drafts are wrong or not made "
        f"({origin})",
        advice,
        *cites,
        more,
        drafter=length,
        served=context,
    )


def _stretched(served: Served) -> str:
    """How the target's RoPE is scaled; empty when it is not."""
    overrides = served.arg("hf_overrides")
    kind = _kind(overrides) if isinstance(overrides, Mapping) else ""
    if served.engine == "vllm" and kind in _SCALED:
        return f"--hf-overrides ({kind})"
    config = served.target
    return f"rope_type {config.rope.kind}" if config is not None and config.rope.kind in _SCALED else ""


def _kind(overrides: Mapping[str, Any]) -> str:
    for name, value in overrides.items():
        if isinstance(value, Mapping):
            found = value.get("rope_type", value.get("type")) if name.startswith("rope_") else _kind(value)
            if isinstance(found, str) and found:
                return found
    return ""


@lint(
    "DC38",
    "YaRN carries the drafter past the length it was scaled from",
    source="tt-metal's notes on the drafter's 4096 window; z-lab/dflash#66: drafters trained on short text",
    subject="drafter and measurement",
    applies=lambda served: drafts(served) and _around(served) is not None,
)
def cliff(served: Served) -> Judgement:
    config = drafter(served)
    original = need(config.rope.original_max_position, "the drafter's original_max_position_embeddings")
    short, long = need(_around(served), "points on both sides of it")
    cites = (config_cite(config, "rope.original_max_position"), short.source, long.source)
    means = (
        f"{short.commit_mean:.2f} at {short.context_tokens}, {long.commit_mean:.2f} at {long.context_tokens}"
    )
    if long.commit_mean < _CLIFF * short.commit_mean:
        return warn(
            f"the commit of {short.arm} falls across {original} tokens, where YaRN was scaled from ({means})",
            "compare with a draft window below that length, and with the RoPE amplitude it was trained with (DC32)",
            *cites,
        )
    return fine(f"the commit of {short.arm} holds across {original} tokens ({means})", *cites)


def _around(served: Served) -> tuple[Any, Any] | None:
    """The nearest points of one easy text on both sides of the length that YaRN was scaled from."""
    config: ModelConfig | None = served.drafter
    original = (
        config.rope.original_max_position if config is not None and config.rope.kind == "yarn" else None
    )
    if original is None:
        return None
    for arm in _EASY:
        mine = [
            p for p in served.points if p.arm == arm and p.commit_mean is not None and p.purpose == "point"
        ]
        below = [p for p in mine if p.context_tokens <= original]
        above = [p for p in mine if p.context_tokens > original]
        if below and above:
            return (
                max(below, key=lambda p: p.context_tokens),
                min(above, key=lambda p: p.context_tokens),
            )
    return None


LINTS = (partial_rotary, mrope, nested_theta, stretched_both, cliff)
