"""The cells of the side-by-side table: one field of a configuration or one argument, in few words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby

from ddprobe import engines
from ddprobe.engines import sglang_reading
from ddprobe.facts import ModelConfig
from ddprobe.lints.served import Served

NONE = "—"
Cell = Callable[[Served], str]


def say(value: object) -> str:
    if value is None or value == "" or value == ():
        return NONE
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, tuple | list):
        return f"[{', '.join(say(each) for each in value[:24])}{', …' if len(value) > 24 else ''}]"
    return str(value)


def arg(*names: str) -> Cell:
    """The first of these arguments that is set, with its flag."""

    def cell(served: Served) -> str:
        for name in names:
            value = served.arg(name)
            if value is not None and value not in ("", "{}", {}):
                return f"{flag(served, name)} {say(value)}"
        return NONE

    return cell


def flag(served: Served, name: str) -> str:
    engine = engines.TABLE.get(served.engine)
    return engine.flag(name) if engine is not None else name


def field(name: str) -> Callable[[ModelConfig, Served], str]:
    return lambda config, _served: say(getattr(config, name))


def compressed(types: Sequence[str]) -> str:
    """`5×sliding, 1×full`"""
    runs = [(name.removesuffix("_attention"), len(list(run))) for name, run in groupby(types)]
    shown = ", ".join(f"{count}×{name}" for name, count in runs[:8])
    return shown + (f", … ({len(types)} layers)" if len(runs) > 8 else "")


def layer_types(config: ModelConfig, served: Served) -> str:
    if config.layer_types is not None:
        stated = compressed(config.layer_types)
        run = sglang_reading.layers(config, served.version)
        if served.on_sglang and run.types is not None and run.types != config.layer_types:
            return f"{stated}\nrun as {compressed(run.types)}: {run.origin}"
        return stated
    if not served.on_sglang or not served.family:
        return NONE
    run = sglang_reading.layers(config, served.version)
    return f"{NONE}\n{compressed(run.types or ())} by {run.origin}" if run.types else NONE


def target_layer_types(config: ModelConfig, _served: Served) -> str:
    return compressed(config.layer_types) if config.layer_types else NONE


def window(config: ModelConfig, _served: Served) -> str:
    parts = [say(config.sliding_window)]
    if config.use_sliding_window is not None:
        parts.append(f"use_sliding_window {say(config.use_sliding_window)}")
    if config.max_window_layers is not None:
        parts.append(f"max_window_layers {config.max_window_layers}")
    return "\n".join(parts)


def rope(config: ModelConfig, _served: Served) -> str:
    rope = config.rope
    kind = rope.kind or "default (nothing stated)"
    return f"{kind}, per layer type" if rope.per_layer_type else kind


def theta(config: ModelConfig, _served: Served) -> str:
    if config.rope.theta is None:
        return f"{NONE}\n{sglang_reading.DEFAULT_THETA:g} by transformers' default"
    return f"{config.rope.theta:.0f}" if config.rope.theta.is_integer() else f"{config.rope.theta:g}"


def scaling(config: ModelConfig, _served: Served) -> str:
    rope = config.rope
    names = (
        "factor",
        "beta_fast",
        "beta_slow",
        "mscale",
        "mscale_all_dim",
        "attn_factor",
        "attention_factor",
    )
    stated = [f"{name} {getattr(rope, name):g}" for name in names if getattr(rope, name) is not None]
    if rope.original_max_position is not None:
        stated.insert(1, f"original {rope.original_max_position}")
    if rope.partial_rotary_factor is not None:
        stated.append(f"partial_rotary_factor {rope.partial_rotary_factor:g}")
    return "\n".join(stated) or NONE


def length(config: ModelConfig, _served: Served) -> str:
    stated = say(config.max_position_embeddings)
    if config.context_length is not None and config.context_length != config.max_position_embeddings:
        return f"{stated}\n{config.context_length} as derived"
    return stated


def context(served: Served) -> str:
    context, origin, _ = served.context()
    if context is None:
        return NONE
    return arg("context_length")(served) if served.number("context_length") else f"{NONE}\n{origin}"


def block(config: ModelConfig, served: Served) -> str:
    places = config.block_size_places
    if len({value for _, value in places}) > 1:
        return "\n".join(f"{place} = {value}" for place, value in places)
    if config.block_size is None and served.family == "dflash" and served.on_sglang:
        return f"{NONE}\n{sglang_reading.DEFAULT_BLOCK_SIZE} by SGLang's default"
    return say(config.block_size)


def drafts(config: ModelConfig, _served: Served) -> str:
    return say(config.dspark_gamma)


def mask(config: ModelConfig, _served: Served) -> str:
    token = f" {config.mask_token}" if config.mask_token else ""
    return f"{say(config.mask_token_id)}{token}" if config.mask_token_id is not None or token else NONE


def taps(config: ModelConfig, served: Served) -> str:
    if config.target_layer_ids is not None:
        return say(config.target_layer_ids)
    layers = served.target_layers()
    made_up = (
        sglang_reading.fallback_layer_ids(layers, config.num_hidden_layers)
        if layers and config.num_hidden_layers and served.on_sglang and served.family in ("dflash", "dspark")
        else None
    )
    return f"{NONE}\n{say(made_up)} by SGLang's default" if made_up else NONE


def heads(config: ModelConfig, _served: Served) -> str:
    stated = (config.num_attention_heads, config.num_key_value_heads, config.head_dim)
    lines = [" / ".join(say(each) for each in stated)] if any(stated) else []
    if config.kv_lora_rank is not None:
        lines.append(f"MLA: q_lora {say(config.q_lora_rank)}, kv_lora {config.kv_lora_rank}")
        lines.append(f"nope {say(config.qk_nope_head_dim)}, rope {say(config.qk_rope_head_dim)}")
    return "\n".join(lines) or NONE


def hidden(config: ModelConfig, _served: Served) -> str:
    wide = say(config.hidden_size)
    return f"{wide}\ntarget_hidden_size {config.target_hidden_size}" if config.target_hidden_size else wide


def vocabulary(config: ModelConfig, _served: Served) -> str:
    size = say(config.vocab_size)
    return f"{size}\ndraft_vocab_size {config.draft_vocab_size}" if config.draft_vocab_size else size


# --- disagreements -----------------------------------------------------------------------------------------


def unlike(field: str) -> Callable[[Served], bool]:
    def differs(served: Served) -> bool:
        mine = getattr(served.drafter, field, None)
        theirs = getattr(served.target, field, None)
        return mine not in (None, "") and theirs not in (None, "") and mine != theirs

    return differs


def depth_differs(served: Served) -> bool:
    trained = served.drafter.num_target_layers if served.drafter else None
    layers = served.target_layers()
    return trained is not None and layers is not None and trained != layers


def block_differs(served: Served) -> bool:
    config = served.drafter
    if config is None:
        return False
    asked = served.number("speculative_num_draft_tokens")
    trained = config.dspark_gamma + 1 if config.dspark_gamma is not None else config.block_size
    stated = len({value for _, value in config.block_size_places}) > 1
    return stated or (asked is not None and trained is not None and asked != trained)


def too_short(served: Served) -> bool:
    context, _, _ = served.context()
    mine = served.drafter.context_length if served.drafter else None
    return context is not None and mine is not None and mine < context


def theta_differs(served: Served) -> bool:
    mine = served.drafter.rope.theta if served.drafter else None
    theirs = served.target.rope.theta if served.target else None
    return mine is not None and theirs is not None and mine != theirs


def mask_outside(served: Served) -> bool:
    mask = served.drafter.mask_token_id if served.drafter else None
    size = served.target.vocab_size if served.target else None
    return mask is not None and size is not None and mask >= size


def taps_outside(served: Served) -> bool:
    ids = served.drafter.target_layer_ids if served.drafter else None
    layers = served.target_layers()
    return bool(ids) and layers is not None and any(not 0 <= each < layers for each in ids or ())
