"""A target that drafts with its own next-token (MTP) layer: is the layer there, whole, and read as it was written?"""

from __future__ import annotations

import re

from ddprobe.facts import ModelConfig
from ddprobe.lints.lint import Judgement, fail, fine, lint, need, target, warn
from ddprobe.lints.served import Served, beside_cite, config_cite
from ddprobe.parsing.version import before

_MTP = re.compile(r"(^|\.)(mtp|nextn|next_n|mtp_layers|eh_proj|enorm|hnorm)(\.|_|$)")
_SCALES = re.compile(r"\.(weight_scale\w*|weight_packed|qweight|scales|weight_global_scale|input_scale)$")
_GLM_READS_SINCE = "0.5.12"
"""The first SGLang that was read whose GLM-4 next-token class keeps the quantisation."""
_SUBJECT = "target"


def _own(served: Served) -> bool:
    return served.drafts_with_own_layers and served.target is not None


def _mtp_tensors(config: ModelConfig, names: tuple[str, ...]) -> list[str]:
    """Tensors of the layers that stand behind the others, or are named for what they do."""
    first = config.num_hidden_layers
    return [
        name
        for name in names
        if _MTP.search(name)
        or ((at := re.search(r"\blayers\.(\d{1,5})\.", name)) and first is not None and int(at[1]) >= first)
    ]


@lint(
    "DC28",
    "the next-token layers that config.json announces are in the weights",
    source="vllm#35548: a repack left the layer out, and older loaders fill it with what the memory holds; vllm#43459",
    subject=_SUBJECT,
    applies=lambda served: _own(served) and bool(served.target and served.target.nextn_layers),
    aliases=("L28",),
)
def announced(served: Served) -> Judgement:
    config = target(served)
    count = need(config.nextn_layers, "the number of next-token layers")
    names = need(config.tensors, "the tensor names of the target's weights")
    mine = _mtp_tensors(config, names)
    first = config.num_hidden_layers
    which = f" (layer {first} on)" if first is not None else ""
    cites = config_cite(config, "nextn_layers"), beside_cite(config, "index") or beside_cite(config, "header")
    if not mine:
        return fail(
            f"config.json announces {count} next-token layer{'s' * (count > 1)}{which}, and 0 of {len(names)} tensors "
            "belong to one: older loaders leave it uninitialised",
            "use a checkpoint that kept the layer, or take it from the original one; else switch speculation off",
            *cites,
            announced=count,
            tensors=len(mine),
        )
    return fine(f"{len(mine)} tensors belong to the {count} announced", *cites)


@lint(
    "DC18",
    "a quantised next-token layer is read with its quantisation",
    source="sglang#22315: the next-token class of GLM-4 dropped the quantisation unless "
    "--speculative-draft-model-quantization was given (accept length 1.00)",
    subject="target and launch",
    applies=lambda served: (
        _own(served) and served.engine == "sglang" and bool(served.target and served.target.quantization)
    ),
    aliases=("L26",),
)
def quantised_layer(served: Served) -> Judgement:
    config = target(served)
    asked = served.chosen("speculative_draft_model_quantization")
    cites = config_cite(config, "quantization"), served.arg_cite("speculative_draft_model_quantization")
    if isinstance(asked, str) and asked:
        return fine(f"--speculative-draft-model-quantization {asked} is explicit", *cites)
    if "glm4_moe" not in config.model_type:
        return fine(
            f"the next-token layer of {config.model_type or 'this target'} takes the target's quantisation",
            *cites,
        )
    old = before(served.version, _GLM_READS_SINCE)
    said = f"the checkpoint is quantised ({config.quantization}), and --speculative-draft-model-quantization is not given"
    advice = (
        "read quant_config in the installed srt/models/glm4_moe_nextn.py, or give "
        "--speculative-draft-model-quantization; dropping it undoes that"
    )
    if old is None:
        return warn(
            f"{said}: SGLang before {_GLM_READS_SINCE} reads the layer as plain weights, and the version is not known",
            advice,
            *cites,
        )
    if old:
        return fail(
            f"{said}: SGLang {served.version} (< {_GLM_READS_SINCE}) reads the layer as plain weights",
            advice,
            *cites,
        )
    return fine(f"SGLang {served.version} reads the layer with the target's quantisation", *cites)


@lint(
    "DC19",
    "plain next-token weights in a quantised checkpoint are listed as such",
    source="sglang#35797, sglang#36158: layers that are not on the ignore list are read as quantised ones",
    subject=_SUBJECT,
    applies=lambda served: (
        _own(served)
        and bool(served.target and served.target.quantization)
        and bool(served.target and served.target.quantization_ignore is not None)
        and bool(served.target and served.target.tensors)
    ),
    aliases=("L27",),
)
def ignored(served: Served) -> Judgement | None:
    config = target(served)
    names = need(config.tensors, "the tensor names of the target's weights")
    ignore = need(config.quantization_ignore, "what the quantisation leaves out")
    mine = _mtp_tensors(config, names)
    if not mine or not any(_SCALES.search(name) for name in names):
        return None
    cites = config_cite(config, "quantization_ignore"), beside_cite(config, "index")
    if any(_SCALES.search(name) for name in mine):
        return fine("the next-token layer is quantised as the others are", *cites)
    first = config.num_hidden_layers
    listed = [
        each
        for each in ignore
        if _MTP.search(each) or "mtp" in each.lower() or (first is not None and f"layers.{first}" in each)
    ]
    if not listed:
        return warn(
            f"the {len(mine)} tensors of the next-token layer are plain, and none of the {len(ignore)} entries of the "
            "ignore list names it: some builds read them as quantised",
            'add "re:.*mtp.*" (or the layer\'s prefix) to a copy of quantization_config.ignore, and look for skipped '
            "weights in the start-up log",
            *cites,
        )
    unfused = [each for each in listed if re.search(r"\.(q_proj|k_proj|v_proj|gate_proj|up_proj)\b", each)]
    if unfused and not any("qkv" in each or "gate_up" in each for each in listed):
        return warn(
            f"the ignore list names {len(unfused)} single projections of the next-token layer ({unfused[0]}): builds that "
            "fuse them may not find the names",
            "list the whole layer by its prefix, and look for skipped weights in the start-up log",
            *cites,
        )
    return fine(f"the ignore list names the next-token layer ({listed[0]})", *cites)


@lint(
    "DC49",
    "a next-token layer's own length covers the context served",
    source="vllm#58080: past the drafting layer's own length dummy tokens are verified (0.000 at every position)",
    subject="target and launch",
    applies=lambda served: (
        served.drafts_with_own_layers and served.engine == "vllm" and bool(served.arg("hf_overrides"))
    ),
    aliases=("L01",),
)
def own_length(served: Served) -> Judgement:
    config = target(served)
    mine = need(config.context_length, "the target's max_position_embeddings")
    context, origin, more = served.context()
    context = need(context, "the context length served")
    cites = config_cite(config, "context_length"), served.arg_cite("hf_overrides"), more
    if context > mine:
        return fail(
            f"the next-token layer keeps the {mine} positions of config.json, and {origin} goes beyond: --hf-overrides as a "
            "dictionary does not reach it",
            f"serve with --max-model-len {mine}, or write the stretched RoPE into a copy of config.json",
            *cites,
            drafter=mine,
            served=context,
        )
    return fine(f"the next-token layer's {mine} positions cover {origin}", *cites)


LINTS = (announced, quantised_layer, ignored, own_length)
