"""Can the drafter's weights be split, read and completed as the server does it?"""

from __future__ import annotations

from ddprobe.lints.lint import (
    Judgement,
    NotKnown,
    blocks_on_sglang,
    drafter,
    fail,
    fine,
    lint,
    need,
    parts,
    warn,
)
from ddprobe.lints.served import Served, beside_cite, config_cite

_ONLINE = (
    "fp8",
    "mxfp8",
    "w8a8_int8",
    "w8a8_fp8",
    "bitsandbytes",
    "modelopt_fp4",
    "nvfp4_online",
    "quark_mxfp4",
)
"""Methods that take plain weights and quantise them while loading; every other one raises without a file of its own
(sglang 0.5.23 srt/model_loader/weight_utils.py, get_quant_config)."""
_LAYER_TENSORS = (
    "input_layernorm.weight",
    "post_attention_layernorm.weight",
    "self_attn.q_proj.weight",
    "self_attn.k_proj.weight",
    "self_attn.v_proj.weight",
    "self_attn.o_proj.weight",
    "self_attn.q_norm.weight",
    "self_attn.k_norm.weight",
    "mlp.gate_proj.weight",
    "mlp.up_proj.weight",
    "mlp.down_proj.weight",
)
_ALIASES = {
    "fc.weight": "encoder.fc.weight",
    "hidden_norm.weight": "encoder.output_norm_enc.weight",
}
_FUSED = {
    "q_proj": "qkv_proj",
    "k_proj": "qkv_proj",
    "v_proj": "qkv_proj",
    "gate_proj": "gate_up_proj",
    "up_proj": "gate_up_proj",
}


@lint(
    "DC40",
    "the drafter's heads divide among the GPUs",
    source="sglang 0.5.23 srt/models/dflash.py:213-229",
    subject="drafter and launch",
    applies=lambda served: blocks_on_sglang(served) and served.arguments_known,
)
def heads(served: Served) -> Judgement | None:
    config = drafter(served)
    if served.switched_on("enable_dp_attention") or parts(served, "attn_cp_size") > 1:
        return None
    tp = parts(served, "tp_size")
    query = need(config.num_attention_heads, "the drafter's num_attention_heads")
    keys = config.num_key_value_heads or query
    cites = (*config_cite(config, "num_attention_heads", "num_key_value_heads"), *served.arg_cite("tp_size"))
    if not _divide(query, keys, tp):
        fitting = ", ".join(str(size) for size in (1, 2, 4, 8, 16, 32) if _divide(query, keys, size))
        return fail(
            f"{query} query and {keys} key/value heads do not divide among tp_size {tp}: the server stops at an assert",
            f"set --tp-size to one of {fitting}"
            if fitting
            else "correct the heads in the drafter's config.json",
            cites,
        )
    return fine(f"{query} query and {keys} key/value heads divide among tp_size {tp}", cites)


def _divide(query: int, keys: int, tp: int) -> bool:
    """Each GPU gets whole query heads, and whole key/value heads or a copy of one."""
    if min(query, keys) < 1:
        return False
    return query % tp == 0 and max(keys, tp) % min(keys, tp) == 0


@lint(
    "DC43",
    "plain drafter weights are not read as quantised ones",
    source="sglang 0.5.23 srt/arg_groups/serving_hook.py:676-690 copies --quantization to the draft; sglang#28196",
    subject="drafter and launch",
    applies=lambda served: (
        served.drafter is not None and served.engine == "sglang" and bool(served.algorithm)
    ),
    aliases=("L25",),
)
def quantization(served: Served) -> Judgement:
    config = drafter(served)
    method, own = served.chosen("quantization"), served.chosen("speculative_draft_model_quantization")
    cites = (*served.arg_cite("quantization"), *config_cite(config, "quantization"))
    if served.given is None and served.resolved is not None and own == method:
        own = None
    if not isinstance(method, str) or method in ("", "unquant"):
        return fine("no --quantization that the drafter would inherit", cites)
    if isinstance(own, str) and own:
        return fine(f"--speculative-draft-model-quantization {own} is explicit", cites)
    if config.quantization:
        return fine(f"the drafter is quantised itself ({config.quantization})", cites)
    if served.untold("speculative_draft_model_quantization"):
        raise NotKnown(
            "the server's speculative_draft_model_quantization: its arguments are cut off before it"
        )
    advice = "add --speculative-draft-model-quantization unquant; dropping it undoes that"
    if method in _ONLINE:
        return warn(
            f"--quantization {method} is copied to the drafter, whose weights are plain: they are quantised while "
            "loading",
            advice,
            cites,
        )
    return fail(
        f"--quantization {method} is copied to the drafter, whose config.json has 0 quantisation fields: it cannot be "
        "loaded so",
        advice,
        cites,
    )


@lint(
    "DC45",
    "the weights hold every parameter of the drafter",
    source="sglang 0.5.23 srt/models/dflash.py:886-1000 loads what is there and leaves the rest random",
    subject="drafter",
    applies=lambda served: (
        blocks_on_sglang(served)
        and served.drafter is not None
        and "DFlashDraftModel" in served.drafter.architectures
        and not served.drafter.quantization
    ),
)
def complete(served: Served) -> Judgement:
    config = drafter(served)
    names = need(config.tensors, "the tensor names of the drafter's weights")
    layers = need(config.num_hidden_layers, "the drafter's num_hidden_layers")
    have = {name.removeprefix("model.") for name in names}
    wanted = [
        f"layers.{layer}.{tensor}" for layer in range(min(layers, 256)) for tensor in _LAYER_TENSORS
    ] + ["norm.weight", "hidden_norm.weight", "fc.weight"]
    missing = [name for name in wanted if not _there(name, have)]
    cites = beside_cite(config, "header") or beside_cite(config, "index")
    if missing:
        shown = ", ".join(missing[:4]) + (" …" if len(missing) > 4 else "")
        return fail(
            f"{len(missing)} of {len(wanted)} parameters are not in the weights ({shown}): SGLang leaves them random and "
            "says nothing",
            "fetch or convert the drafter again",
            cites,
        )
    return fine(f"all {len(wanted)} parameters are in the weights", cites)


def _there(name: str, have: set[str]) -> bool:
    parts = name.split(".")
    fused = ".".join(_FUSED.get(part, part) for part in parts)
    return name in have or fused in have or _ALIASES.get(name, name) in have


LINTS = (heads, quantization, complete)
