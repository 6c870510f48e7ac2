"""Does the drafter tap the target's layers it was trained on?"""

from __future__ import annotations

from itertools import pairwise

from ddprobe.engines import sglang_reading
from ddprobe.lints.checkpoints import known
from ddprobe.lints.lint import (
    Judgement,
    blocks_on_sglang,
    drafter,
    drafts_blocks,
    fail,
    fine,
    lint,
    need,
    note,
    target,
    warn,
)
from ddprobe.lints.served import Served, beside_cite, config_cite

_PAIR = "drafter and target"


@lint(
    "DC01",
    "the drafter states which target layers it taps",
    source="sglang 0.5.23 srt/speculative/dflash_utils.py:348-385, 668-690; sglang#37475, z-lab/dflash#156",
    subject="drafter",
    applies=blocks_on_sglang,
    aliases=("L12",),
)
def taps_stated(served: Served) -> Judgement:
    config = drafter(served)
    cite = config_cite(config, "target_layer_ids")
    if config.target_layer_ids:
        ids = list(config.target_layer_ids)
        return fine(f"target_layer_ids is stated: {ids}", cite)
    layers, mine = served.target_layers(), config.num_hidden_layers
    made_up = sglang_reading.fallback_layer_ids(layers, mine) if layers and mine else None
    guess = f"{list(made_up)}, spaced evenly" if made_up else "evenly spaced ids"
    published = known(config, served.arg("speculative_draft_model_path"))
    advice = "set dflash_config.target_layer_ids in the drafter's config.json to the ids it was trained with"
    if config.aux_hidden_state_layer_ids:
        aux = [each - 1 for each in config.aux_hidden_state_layer_ids]
        advice += f" (its aux_hidden_state_layer_ids − 1 would be {aux})"
    elif published and published.target_layer_ids:
        advice += f" ({published.name} publishes {list(published.target_layer_ids)})"
    if made_up and published and made_up == published.target_layer_ids:
        return warn(
            f"target_layer_ids is absent, and SGLang's guess {guess} happens to be what {published.name} publishes",
            advice,
            cite,
        )
    return fail(
        f"target_layer_ids is absent (1 list is needed): SGLang taps {guess}, which is wrong for 14 of 20 published "
        "drafters, and says nothing",
        advice + "; removing the field undoes it",
        cite,
    )


@lint(
    "DC02",
    "every tapped layer exists in the target",
    source="sglang 0.5.23 srt/speculative/dflash_utils.py:566-585",
    subject=_PAIR,
    applies=drafts_blocks,
    aliases=("L13",),
)
def taps_exist(served: Served) -> Judgement | None:
    config, other = drafter(served), target(served)
    if config.target_layer_ids is None:
        return None
    layers = need(served.target_layers(), "the target's num_hidden_layers")
    cites = config_cite(config, "target_layer_ids"), config_cite(other, "num_hidden_layers")
    outside = [each for each in config.target_layer_ids if not 0 <= each < layers]
    if outside:
        return fail(
            f"target_layer_ids {outside} lie outside the target's {layers} layers (0–{layers - 1}): the server raises",
            "serve this drafter with the target it was trained for, or correct target_layer_ids",
            *cites,
        )
    return fine(f"all {len(config.target_layer_ids)} target_layer_ids lie within 0–{layers - 1}", *cites)


@lint(
    "DC03",
    "tapped layers rise strictly",
    source="no published drafter repeats or reorders its taps",
    subject="drafter",
    applies=drafts_blocks,
)
def taps_rise(served: Served) -> Judgement | None:
    config = drafter(served)
    if config.target_layer_ids is None:
        return None
    ids, cite = config.target_layer_ids, config_cite(config, "target_layer_ids")
    if any(later <= earlier for earlier, later in pairwise(ids)):
        return warn(
            f"target_layer_ids {list(ids)} repeat or go down; no published drafter's do",
            "compare them with the training configuration: a conversion may have reordered them",
            cite,
        )
    return fine(f"target_layer_ids rise strictly from {ids[0]} to {ids[-1]}" if ids else "no taps", cite)


@lint(
    "DC04",
    "tapped layers are the published ones, not shifted by one",
    source="vLLM's aux_hidden_state_layer_ids are SGLang's ids + 1; vllm#42704, Avarok atlas#394, onnxruntime-genai#2538",
    subject="drafter",
    applies=drafts_blocks,
)
def taps_published(served: Served) -> Judgement | None:
    config = drafter(served)
    ids = config.target_layer_ids
    if ids is None:
        return None
    cite = config_cite(config, "target_layer_ids")
    aux = config.aux_hidden_state_layer_ids
    if aux is not None and ids == aux:
        return fail(
            f"target_layer_ids {list(ids)} equal aux_hidden_state_layer_ids; they should be 1 lower",
            f"set target_layer_ids to {[each - 1 for each in aux]} and measure again",
            cite,
            config_cite(config, "aux_hidden_state_layer_ids"),
        )
    published = known(config, served.arg("speculative_draft_model_path"))
    if published is None or published.target_layer_ids is None:
        return note(
            f"no published ids are known for this drafter: {list(ids)} were compared with nothing",
            "compare them with the model card",
            cite,
        )
    right = published.target_layer_ids
    shifts = {mine - theirs for mine, theirs in zip(ids, right, strict=False)}
    if ids == right:
        return fine(f"target_layer_ids {list(ids)} are those of {published.name}", cite)
    if len(ids) == len(right) and shifts in ({1}, {-1}):
        return fail(
            f"target_layer_ids {list(ids)} are those of {published.name} {shifts.pop():+d}; published are {list(right)}",
            f"set target_layer_ids to {list(right)} (SGLang's id = vLLM's aux id − 1)",
            cite,
        )
    return warn(
        f"target_layer_ids {list(ids)} differ from the published {list(right)} of {published.name}",
        "keep them only if this drafter was trained so",
        cite,
    )


@lint(
    "DC05",
    "the drafter was trained for a target of this depth",
    source="sglang 0.5.23 srt/model_executor/model_runner_components/spec_aux_hidden_state.py:236-245 (a warning only)",
    subject=_PAIR,
    applies=drafts_blocks,
    aliases=("L16",),
)
def depth(served: Served) -> Judgement:
    config, other = drafter(served), target(served)
    trained = need(config.num_target_layers, "the drafter's num_target_layers")
    layers = need(served.target_layers(), "the target's num_hidden_layers")
    cites = config_cite(config, "num_target_layers"), config_cite(other, "num_hidden_layers")
    if trained != layers:
        return fail(
            f"the drafter was trained for a target of {trained} layers (num_target_layers); this one has {layers}",
            "use the drafter of this target; the server only warns",
            *cites,
        )
    return fine(f"num_target_layers {trained} is the target's depth", *cites)


@lint(
    "DC06",
    "the weights take as many taps as the configuration names",
    source="sglang 0.5.23 srt/models/dflash.py:948-978; safetensors header",
    subject=_PAIR,
    applies=drafts_blocks,
    aliases=("L14",),
)
def fc_width(served: Served) -> Judgement:
    config = drafter(served)
    shape = need(config.fc_weight_shape, "the shape of fc.weight (safetensors header)")
    width = need(
        served.target.hidden_size if served.target else config.hidden_size, "the target's hidden_size"
    )
    taps = config.target_layer_ids
    count = need(len(taps) if taps is not None else config.num_hidden_layers, "the drafter's number of taps")
    cites = beside_cite(config, "header"), config_cite(config, "target_layer_ids")
    inputs = need(
        shape[1] if len(shape) == 2 else None, f"the width of fc.weight (its shape is {list(shape)})"
    )
    if inputs != count * width:
        fits = f", which is {inputs // width} taps" if inputs % width == 0 else ""
        return fail(
            f"fc.weight takes {inputs} inputs{fits}; {count} taps of a target {width} wide make {count * width}",
            "weights and config.json belong to different drafters or targets: fetch both again",
            *cites,
        )
    return fine(f"fc.weight takes {inputs} = {count} taps × {width}", *cites)


@lint(
    "DC13",
    "no tap is the target's last layer",
    source="sglang#39776: the last layer's state must be taken after the final norm; sglang#27924",
    subject=_PAIR,
    applies=drafts_blocks,
    aliases=("L15",),
)
def last_layer(served: Served) -> Judgement | None:
    config, layers = drafter(served), served.target_layers()
    if not config.target_layer_ids or layers is None or max(config.target_layer_ids) != layers - 1:
        return None
    return warn(
        f"target_layer_ids name the target's last layer ({layers - 1}): its state must be the one after the final norm",
        "look in the installed model's source whether that layer is captured before or after its norm, and compare",
        config_cite(config, "target_layer_ids"),
        config_cite(served.target, "num_hidden_layers"),
    )


LINTS = (taps_stated, taps_exist, taps_rise, taps_published, depth, fc_width, last_layer)
