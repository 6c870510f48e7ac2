"""What a drafter takes from its target: head and embedding, number type, the target it was trained on."""

from __future__ import annotations

import re

from ddprobe.lints.lint import (
    Judgement,
    blocks_on_sglang,
    drafter,
    drafts,
    drafts_blocks,
    fail,
    fine,
    lint,
    need,
    note,
    parts,
    target,
    warn,
)
from ddprobe.lints.served import Served, beside_cite, config_cite

_PAIR = "drafter and target"
_HALF = ("float16", "half", "fp16")
_CHANGED = re.compile(
    r"abliterated|uncensored|heretic|fine-?tun|finetune|lora-?merged|-merged|dolphin|roleplay", re.IGNORECASE
)
_ROTATED = re.compile(r"quarot|spinquant|rotat", re.IGNORECASE)


@lint(
    "DC14",
    "a smaller draft vocabulary comes with its map",
    source="SafeAILab/EAGLE#249, vllm#55133; sglang 0.5.23 srt/models/llama_eagle3.py:306-352 (d2t)",
    subject=_PAIR,
    applies=lambda served: (
        drafts(served) and served.drafter is not None and served.drafter.draft_vocab_size is not None
    ),
    aliases=("L18",),
)
def vocabulary_map(served: Served) -> Judgement:
    config, other = drafter(served), target(served)
    mine = need(config.draft_vocab_size, "the drafter's draft_vocab_size")
    theirs = need(other.vocab_size, "the target's vocab_size")
    cites = config_cite(config, "draft_vocab_size"), config_cite(other, "vocab_size")
    if mine >= theirs:
        return fine(f"draft_vocab_size {mine} covers the target's {theirs}", *cites)
    names = need(config.tensors, "the tensor names of the drafter's weights (d2t among them or not)")
    beside = beside_cite(config, "header") or beside_cite(config, "index")
    if any(name.rpartition(".")[2] == "d2t" or "draft_id_to_target_id" in name for name in names):
        return fine(f"draft_vocab_size {mine} is mapped to the target's {theirs} by d2t", *cites, beside)
    return fail(
        f"draft_vocab_size {mine} is smaller than the target's {theirs}, and no d2t among {len(names)} tensors maps it: "
        "drafted ids mean other words",
        "fetch or convert the drafter again",
        *cites,
        beside,
    )


@lint(
    "DC15",
    "a block drafter's head is the target's",
    source="local-inference-lab/vllm#54: 1.00 with the drafter's own lm_head, 4.74 with the target's; SpecForge#473",
    subject="drafter",
    applies=lambda served: (
        drafts_blocks(served)
        and served.engine not in ("", "sglang")
        and any(name.endswith("lm_head.weight") for name in (served.drafter and served.drafter.tensors) or ())
    ),
    aliases=("L22",),
)
def own_head(served: Served) -> Judgement:
    config = drafter(served)
    cites = beside_cite(config, "header") or beside_cite(config, "index")
    if dict(config.extra).get("has_lm_head") is True:
        return fine(
            "lm_head.weight is in the weights, and config.json says that it is the drafter's own", cites
        )
    return warn(
        "lm_head.weight is among the drafter's weights: a block drafter is trained to use the target's, and an engine that "
        "keeps the drafter's own gets a commit of 1.00",
        "serve a copy without lm_head.weight, or compare with a build that is known to borrow the target's head",
        cites,
    )


@lint(
    "DC16",
    "the target is the one that the drafter was trained on",
    source="vllm-ascend#5974 (rotated weights), AEON-7/Qwen3.6-27B-AEON-Ultimate-Uncensored-DFlash#6 (fine-tune)",
    subject=_PAIR,
    applies=lambda served: drafts(served) and _changed(served) != "",
    aliases=("L23",),
)
def changed_target(served: Served) -> Judgement:
    return note(
        f"the target seems to be changed ({_changed(served)}): a drafter of the original predicts it less well",
        "compare on the same prompts with the unchanged target before looking for a fault in the drafter",
        served.arg_cite("model_path"),
    )


def _changed(served: Served) -> str:
    config = served.target
    if config is not None and _ROTATED.search(config.quantization):
        return f"quantised as {config.quantization}"
    name = served.arg("model_path") or (config.reference if config is not None else "")
    found = _CHANGED.search(name) if isinstance(name, str) else None
    own = served.arg("speculative_draft_model_path") or ""
    return f"{found[0]!r} in its name" if found and found[0].lower() not in str(own).lower() else ""


@lint(
    "DC17",
    "a bfloat16 drafter is not run in float16",
    source="InternLM/lmdeploy#4991: 0.06 of 15 accepted in float16, 4.19 in bfloat16 (the joined features overflow)",
    subject="drafter and launch",
    applies=lambda served: (
        drafts(served)
        and served.drafter is not None
        and served.drafter.dtype == "bfloat16"
        and (
            isinstance(served.arg("dtype"), str)
            or (served.target is not None and served.target.dtype in _HALF)
        )
    ),
    aliases=("L24",),
)
def number_type(served: Served) -> Judgement:
    config = drafter(served)
    asked = served.arg("dtype")
    cites = config_cite(config, "dtype"), served.arg_cite("dtype")
    if asked in _HALF:
        return fail(
            f"--dtype {asked} forces float16 on a bfloat16 drafter: its joined features overflow (limit 65504)",
            "serve with --dtype bfloat16",
            *cites,
        )
    other = served.target
    if asked in (None, "auto") and other is not None and other.dtype in _HALF:
        return warn(
            "the target states float16 and the drafter bfloat16: features that are handed over in float16 may overflow",
            "serve with --dtype bfloat16 and compare",
            *cites,
            config_cite(other, "dtype"),
        )
    return fine(f"the drafter runs as {asked if asked not in (None, 'auto') else config.dtype}", *cites)


@lint(
    "DC42",
    "a packed lm_head is served on one GPU",
    source="sglang 0.5.23 srt/speculative/dflash_worker_v2.py:1579-1583: DFLASH with a GGUF head runs at tp 1 only",
    subject="target and launch",
    applies=lambda served: (
        blocks_on_sglang(served)
        and served.arguments_known
        and (
            "gguf" in (served.arg("quantization"), served.arg("load_format"))
            or (served.target is not None and served.target.quantization.startswith("gguf"))
        )
    ),
)
def packed_head(served: Served) -> Judgement:
    tp = parts(served, "tp_size")
    cites = served.arg_cite("tp_size"), served.arg_cite("quantization")
    if tp > 1:
        return fail(
            f"the target is GGUF, whose lm_head stays packed, and tp_size is {tp} (limit 1): the server raises",
            "set --tp-size 1, or serve a checkpoint with a plain lm_head",
            *cites,
        )
    return fine("the packed lm_head is on 1 GPU", *cites)


LINTS = (vocabulary_map, own_head, changed_target, number_type, packed_head)
