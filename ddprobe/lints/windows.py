"""Do the drafter's layers look as far back as they were trained to?"""

from __future__ import annotations

from ddprobe.engines import sglang_reading
from ddprobe.engines.sglang_reading import FULL, SLIDING
from ddprobe.facts import ModelConfig
from ddprobe.lints.layer_types import stated_sliding
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
    warn,
)
from ddprobe.lints.served import Served, config_cite

_LONG = 8192
"""Drafters are mostly trained on text of up to 4096 tokens."""
_WINDOWS = ("speculative_draft_window_size", "speculative_dflash_draft_window_size")


@lint(
    "DC22",
    "sliding layers have a window that survives loading",
    source="sglang 0.5.23 srt/speculative/dflash_utils.py:400-417; transformers 5.19 Qwen3Config.__post_init__ "
    "(use_sliding_window is false unless stated)",
    subject="drafter",
    applies=blocks_on_sglang,
    aliases=("L08",),
)
def window_set(served: Served) -> Judgement:
    config = drafter(served)
    sliding = stated_sliding(config)
    cites = config_cite(config, "sliding_window", "use_sliding_window", "layer_types")
    if not sliding:
        return fine("no layer slides", config_cite(config, "layer_types"))
    window = sglang_reading.layers(config).window
    advice = (
        "set sliding_window to the trained window and use_sliding_window to true in the drafter's config.json"
    )
    if config.sliding_window is None and window is None:
        return fail(
            f"{sliding} layers slide and sliding_window is null: SGLang raises at load", advice, cites
        )
    if config.use_sliding_window is False and window is None:
        return fail(
            f"{sliding} layers slide and use_sliding_window is false: transformers drops sliding_window "
            f"{config.sliding_window}, and SGLang raises at load",
            advice,
            cites,
        )
    if config.use_sliding_window is False:
        return warn(
            f"{sliding} layers slide with sliding_window {window}, although use_sliding_window is false: this SGLang takes "
            "the window, another reader may drop it",
            advice,
            cites,
        )
    if window is None:
        return warn(
            f"{sliding} layers slide with sliding_window {config.sliding_window}, but use_sliding_window is absent, which "
            f"transformers' class for model_type {config.model_type!r} takes for false: it drops the window, and a "
            "stock SGLang raises at load",
            advice,
            cites,
        )
    return fine(f"{sliding} sliding layers have sliding_window {window}", cites)


@lint(
    "DC25",
    "the window holds at least a block",
    source="a block shorter than its window cannot see itself; sglang 0.5.23 srt/models/dflash.py:178-186",
    subject="drafter",
    applies=drafts_blocks,
)
def window_holds_block(served: Served) -> Judgement:
    config = drafter(served)
    cites = config_cite(config, "sliding_window", "block_size")
    if not stated_sliding(config) or config.sliding_window is None:
        return fine("no layer slides within a stated window", cites)
    block = need(served.block_size(), "the drafter's block_size")
    if config.sliding_window < block:
        return fail(
            f"sliding_window {config.sliding_window} is smaller than a block of {block}, which cannot see itself",
            "correct sliding_window to the trained window",
            cites,
        )
    return fine(f"sliding_window {config.sliding_window} holds a block of {block}", cites)


@lint(
    "DC27",
    "no override forces sliding layers to full attention",
    source="z-lab/dflash#126: forcing full attention lowers the accept length",
    subject="drafter and launch",
    applies=blocks_on_sglang,
    aliases=("L07",),
)
def forced_full(served: Served) -> Judgement | None:
    config = drafter(served)
    replaced = dict(config.overridden)
    fields = [name for name in ("layer_types", "sliding_window", "use_sliding_window") if name in replaced]
    if not fields:
        return None
    types = replaced.get("layer_types", config.layer_types)
    sliding = types.count(SLIDING) if isinstance(types, tuple) else 0
    cites = (*served.arg_cite("json_model_override_args"), *config_cite(config, *fields))
    if sliding and not stated_sliding(config):
        return warn(
            f"--json-model-override-args replaces {', '.join(fields)}: {sliding} sliding layers become full",
            "drop the override and compare the accept length",
            cites,
        )
    return fine(
        f"--json-model-override-args replaces {', '.join(fields)}, and no sliding layer becomes full", cites
    )


@lint(
    "DC48",
    "a drafter that looks at everything is served as far as it was trained",
    source="vllm-project/speculators#684: full attention 2.30 at 2k and 1.09 at 16k, with a window 1.58 and 1.56; "
    "deepseek-ai/DeepSpec#59 (training is capped at 4096)",
    subject="drafter and launch",
    applies=lambda served: (
        served.drafter is not None
        and served.arguments_known
        and served.family in ("dflash", "dspark", "eagle")
    ),
    aliases=("L10",),
)
def far_beyond_training(served: Served) -> Judgement | None:
    config = drafter(served)
    full = set(config.layer_types) == {FULL} if config.layer_types else config.sliding_window is None
    context, origin, more = served.context()
    if not full or context is None or context <= _LONG or _of_the_target(config):
        return None
    if any(served.number(name) is not None for name in _WINDOWS):
        return None
    say = warn if served.family == "eagle" else note
    return say(
        f"every layer is full, and {origin} is more than {_LONG} tokens: a drafter trained on short text loses past the "
        "length it was trained at",
        "compare acceptance at 1k and at the length in question (commit-probe), with and without a draft window",
        config_cite(config, "layer_types", "sliding_window"),
        more,
        context=context,
    )


def _of_the_target(config: ModelConfig) -> bool:
    """A next-token head that came with the target was trained as far as the target was."""
    return any(word in name.lower() for name in config.architectures for word in ("nextn", "mtp"))


LINTS = (window_set, window_holds_block, forced_full, far_beyond_training)
