"""Does the log of the start show that weights, scales or a mask embedding were not loaded as they should be?"""

from __future__ import annotations

from ddprobe.facts import LogEvent
from ddprobe.lints.lint import Judgement, fail, fine, warn
from ddprobe.lints.started import Started, cites, clean, lines, said, seen


def _drafters(started: Started, *kinds: str) -> tuple[LogEvent, ...]:
    return tuple(event for event in started.found(*kinds) if started.value(event, "draft") == "yes")


@seen(
    "DC45",
    "the weights hold every parameter of the drafter",
    source="sglang srt/models/*: load_weights goes on after a tensor that it does not know; sglang#35797, sglang#33245",
    aliases=("L30",),
)
def draft_weights(started: Started) -> Judgement | None:
    found = _drafters(started, "weights_skipped", "weights_uninitialised")
    if not found:
        return None
    return fail(
        f"the drafter's weights were not loaded whole ({said(found)}): what is missing stays random",
        "fetch or convert the drafter again, or use a release whose loader knows these names",
        cites(found),
        lines=lines(found),
    )


@seen(
    "ST01",
    "no weights were skipped, left over or left random",
    source="sglang srt/models/*, vllm model_executor/model_loader, llama.cpp src/llama-model-loader.cpp; sglang#35797",
    aliases=("L30",),
)
def weights(started: Started) -> Judgement | None:
    drafters = _drafters(started, "weights_skipped", "weights_uninitialised")
    found = tuple(
        event
        for event in started.found("weights_skipped", "weights_uninitialised", "weights_unused")
        if event not in drafters
    )
    if found:
        return warn(
            f"weights and model do not match ({said(found)})",
            "compare the names with those of the drafter: a skipped one may be its own",
            cites(found),
            lines=lines(found),
        )
    return None if drafters else clean(started, "no line of the start speaks of skipped or missing weights")


@seen(
    "ST02",
    "KV scales are there where the KV cache is quantised",
    source="sglang srt/model_executor/model_runner_components/load_model_utils.py:139, vllm kv_cache.py; tokenspeed#1012",
    aliases=("L29", "L30"),
)
def kv_scales(started: Started) -> Judgement | None:
    found = started.found("kv_scales_missing")
    if found:
        return warn(
            f"the KV cache is fp8 and the checkpoint has no scales: 1.0 is taken ({said(found)})",
            "compare acceptance with --kv-cache-dtype auto, for the drafter too; a checkpoint with scales undoes it",
            cites(found),
        )
    return clean(started, "no line of the start speaks of missing KV scales")


@seen(
    "DC10",
    "a trained mask embedding beside the drafter is merged",
    source="sglang 0.5.23 srt/speculative/dflash_worker_v2.py:1318-1378; sglang#27924",
)
def mask_embedding(started: Started) -> Judgement | None:
    found = started.found("mask_embedding_merged")
    if not found:
        return None
    return fine(f"merged: {found[0].text[:160]}", cites(found))
