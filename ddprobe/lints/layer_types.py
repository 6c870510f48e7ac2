"""Which of the drafter's layers slide, which look at everything, and does the engine see it so?"""

from __future__ import annotations

from ddprobe.engines import sglang_reading
from ddprobe.engines.sglang_reading import FULL, LAYER_TYPES_SINCE, SLIDING
from ddprobe.facts import ModelConfig
from ddprobe.lints.lint import (
    Judgement,
    blocks_on_sglang,
    drafter,
    drafts_blocks,
    fail,
    fine,
    lint,
    need,
    unknown,
    warn,
)
from ddprobe.lints.served import Served, config_cite
from ddprobe.parsing.version import before


def stated_sliding(config: ModelConfig) -> int:
    """How many layers the drafter means to be sliding, whatever the version that runs it."""
    return (sglang_reading.layers(config).types or ()).count(SLIDING)


def _window_meant(config: ModelConfig) -> bool:
    """The file speaks of a window, and does not itself switch it off."""
    return config.use_sliding_window is True or (
        config.sliding_window is not None and config.use_sliding_window is None
    )


@lint(
    "DC20",
    "a drafter with a window says which layers slide",
    source="sglang 0.5.23 srt/speculative/dflash_utils.py:388-396, srt/models/dflash.py:166-191; "
    "transformers 5.19 Qwen3Config.__post_init__",
    subject="drafter",
    applies=blocks_on_sglang,
    aliases=("L07",),
)
def layer_types_stated(served: Served) -> Judgement:
    config = drafter(served)
    cites = config_cite(config, "layer_types", "sliding_window", "use_sliding_window")
    layers = config.num_hidden_layers
    if config.layer_types is not None:
        return fine(f"layer_types names {len(config.layer_types)} layers", config_cite(config, "layer_types"))
    if not _window_meant(config):
        return fine("layer_types is absent and no window is in use: every layer is full", cites)
    sliding = stated_sliding(config)
    if sliding:
        return fine(
            f"layer_types is absent; transformers makes {sliding} of {layers} layers sliding (see DC26)",
            cites,
        )
    window = f"sliding_window {config.sliding_window}" if config.sliding_window is not None else "a window"
    every = f"all {layers} layers" if layers else "every layer"
    return fail(
        f"layer_types is absent although {window} is set: SGLang runs {every} full and bidirectional, 0 sliding",
        f'add layer_types with {layers or "one"} entries ("sliding_attention" or "full_attention") as trained; '
        "removing it undoes that",
        cites,
    )


@lint(
    "DC21",
    "the installed SGLang applies layer_types",
    source="DFLASH layer_types since sglang 0.5.14 (sglang#27469); 0.5.12 srt/models/dflash.py has none",
    subject="drafter and engine",
    applies=lambda served: blocks_on_sglang(served) and served.engine == "sglang",
    aliases=("L07",),
)
def layer_types_applied(served: Served) -> Judgement:
    config = drafter(served)
    sliding = stated_sliding(config)
    cites = config_cite(config, "layer_types")
    if not sliding:
        return fine("no layer slides: every version runs it alike", cites)
    old = before(served.version, LAYER_TYPES_SINCE)
    layers = config.num_hidden_layers or sliding
    if old is None:
        said = (
            f"version {served.version!r} cannot be placed" if served.version else "the version is not known"
        )
        return unknown(
            f"{sliding} of {layers} layers slide, which SGLang applies since {LAYER_TYPES_SINCE}; {said}",
            "grep the installed srt/models/dflash.py for layer_types",
            cites,
        )
    if old:
        return fail(
            f"{sliding} of {layers} layers slide, but SGLang {served.version} (< {LAYER_TYPES_SINCE}) runs every layer "
            "full: acceptance decays past the window",
            f"upgrade sglang to {LAYER_TYPES_SINCE} or newer",
            cites,
            version=served.version,
        )
    return fine(f"SGLang {served.version} (≥ {LAYER_TYPES_SINCE}) applies {sliding} sliding layers", cites)


@lint(
    "DC23",
    "layer_types has one entry for each layer",
    source="transformers 5.19 validate_layer_type; sglang 0.5.23 srt/models/dflash.py:166-191",
    subject="drafter",
    applies=drafts_blocks,
)
def layer_types_counted(served: Served) -> Judgement | None:
    config = drafter(served)
    if config.layer_types is None:
        return None
    layers = need(config.num_hidden_layers, "the drafter's num_hidden_layers")
    types, cites = config.layer_types, config_cite(config, "layer_types", "num_hidden_layers")
    strange = sorted(set(types) - {SLIDING, FULL})
    if len(types) != layers:
        return fail(
            f"layer_types has {len(types)} entries for {layers} layers: loading raises",
            f"give layer_types {layers} entries",
            cites,
        )
    if strange:
        return fail(
            f"layer_types holds {', '.join(map(repr, strange[:4]))}; a DFlash layer is {SLIDING!r} or {FULL!r}",
            "correct the entry",
            cites,
        )
    return fine(f"layer_types has {len(types)} entries for {layers} layers", cites)


@lint(
    "DC24",
    "is_causal does not override mixed layer types by accident",
    source="sglang 0.5.23 srt/models/dflash.py:156-191 (_get_dflash_attention_type)",
    subject="drafter",
    applies=blocks_on_sglang,
)
def causality(served: Served) -> Judgement:
    config = drafter(served)
    types = set(sglang_reading.layers(config).types or ())
    cites = config_cite(config, "is_causal")
    if config.is_causal is None:
        return fine("is_causal is absent: sliding layers are causal, full ones bidirectional", cites)
    value = str(config.is_causal).lower()
    if {SLIDING, FULL} <= types:
        return warn(
            f"is_causal is {value} for all layers, although sliding (causal by default) and full (bidirectional) are "
            "mixed",
            "remove is_causal unless the drafter was trained so",
            cites,
        )
    return fine(f"is_causal is {value}, and all layers are of one kind", cites)


@lint(
    "DC26",
    "layer types do not hang on max_window_layers",
    source="transformers 5.19 Qwen3Config.__post_init__ makes layers sliding from max_window_layers on; other engines "
    "do not",
    subject="drafter",
    applies=drafts_blocks,
)
def max_window_layers(served: Served) -> Judgement:
    config = drafter(served)
    cites = config_cite(config, "max_window_layers", "layer_types")
    if config.layer_types is not None:
        return fine("layer_types is explicit: max_window_layers has no say", cites)
    layers = need(config.num_hidden_layers, "the drafter's num_hidden_layers")
    first = config.max_window_layers
    if config.use_sliding_window is not True or first is None or first >= layers:
        said = "absent" if first is None else f"{first} of {layers} layers"
        return fine(f"max_window_layers ({said}) makes no layer sliding", cites)
    return warn(
        f"layer_types is absent and max_window_layers {first} < {layers} layers: transformers makes the last "
        f"{layers - max(first, 0)} sliding, other engines none",
        f"write {layers} explicit layer_types as trained",
        cites,
    )


LINTS = (layer_types_stated, layer_types_applied, layer_types_counted, causality, max_window_layers)
