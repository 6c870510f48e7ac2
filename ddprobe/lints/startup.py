"""Does the log of the start show that something that was asked for was replaced, cut or given up?

Some of these see in a log what other lints conclude from files and arguments: they have the id of those. What a log shows
counts before what a file lets one expect.
"""

from __future__ import annotations

from ddprobe.lints import ends, loading
from ddprobe.lints.lint import Judgement, fail, note, warn
from ddprobe.lints.started import Started, cites, clean, said, seen


@seen(
    "DC05",
    "the drafter was trained for a target of this depth",
    source="sglang 0.5.23 srt/model_executor/model_runner_components/spec_aux_hidden_state.py:236-245",
    aliases=("L16",),
)
def target_layers(started: Started) -> Judgement | None:
    found = started.found("target_layers_differ")
    if not found:
        return None
    trained, served = (started.value(found[0], name) for name in ("trained", "served"))
    return fail(
        f"the server says that the drafter was trained for {trained} target layers and the target has {served}",
        "use the drafter of this target",
        cites(found),
    )


@seen(
    "DC11",
    "the block size served is the one trained",
    source="sglang 0.5.23 srt/speculative/dflash_worker_v2.py:507-519, srt/arg_groups/speculative_hook.py:389-425",
    aliases=("L21",),
)
def block_size(started: Started) -> Judgement | None:
    for event in started.found("block_mismatch"):
        served, trained = started.number(event, "served"), started.number(event, "trained")
        if served is None or trained is None:
            continue
        judged = fail if served > trained else note  # equivalent: the line is written where they differ
        return judged(
            f"the server drafts blocks of {served}, and the drafter was trained with {trained}",
            f"set --speculative-num-draft-tokens {trained}",
            cites((event,)),
            served=served,
            trained=trained,
        )
    assumed = started.found("block_assumed")
    if assumed:
        return warn(
            f"the server found no block size in the drafter's config.json and took a default ({said(assumed)})",
            "pass --speculative-num-draft-tokens with the trained block size",
            cites(assumed),
        )
    return None


@seen(
    "DC35",
    "the drafter is as long as the context served",
    source="sglang 0.5.23 srt/configs/model_config.py:1291-1324; vllm prints the target's length, then the drafter's: "
    "vllm#58080; llama.cpp src/llama-context.cpp (n_ctx_seq > n_ctx_train)",
    aliases=("L01",),
)
def length(started: Started) -> Judgement | None:
    overridden = started.found("length_overridden")
    if overridden:
        return fail(
            f"the drafter's max_position_embeddings was overridden ({said(overridden)}): beyond its own length its "
            "positions were never trained",
            "cap --context-length at the drafter's own length, and unset SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN",
            cites(overridden),
        )
    for run in dict.fromkeys(event.run for event in started.found("max_model_len")):
        told = [event for event in started.found("max_model_len") if event.run == run]
        lengths = [started.number(event, "length") for event in told]
        known = [length for length in lengths if length is not None]
        if not known:
            continue
        # The target's comes first; an engine that does not draft tells no other.
        served, shortest = known[0], min(known)
        if shortest < served:
            return fail(
                f"the drafter takes {shortest} positions and {served} are served: past {shortest} nothing sound is "
                "drafted",
                f"set --max-model-len {shortest}, or give the drafter the same RoPE scaling as the target",
                cites(told),
                drafter=shortest,
                served=served,
            )
    return _trained_shorter(started)


def _trained_shorter(started: Started) -> Judgement | None:
    """llama.cpp says of each model how long it was trained. A RoPE that the command line scales is not in that line."""
    for event in started.found("context"):
        trained = started.number(event, "trained")
        if started.value(event, "draft") != "yes" or trained is None:
            continue
        slots = [each for each in started.found("slot_context") if each.run == event.run]
        lengths = [length for each in slots if (length := started.number(each, "length")) is not None]
        served = max(lengths, default=started.number(event, "length"))
        if served is not None and trained < served:
            return warn(
                f"the drafter was trained for {trained} positions, and a request may have {served}: past {trained} drafts are "
                "made at positions it was not trained for",
                f"serve with --ctx-size {trained} (each slot), or scale the drafter's RoPE on purpose",
                cites((event, *slots)),
                drafter=trained,
                served=served,
            )
    return None


@seen(
    "SA03",
    "the draft worker takes this attention backend",
    source="sglang 0.5.23 srt/speculative/draft_worker_common.py:48-62",
)
def backend(started: Started) -> Judgement | None:
    found = started.found("fallback_backend")
    if not found:
        return None
    first = found[0]
    asked, taken = started.value(first, "asked"), started.value(first, "taken")
    told = f"{asked} was asked for and {taken} is taken" if taken else first.text[:200]
    return warn(
        f"the draft worker fell back to another attention backend: {told}",
        "set --speculative-draft-attention-backend on purpose",
        cites(found),
    )


@seen(
    "SA09",
    "decoding runs from CUDA graphs",
    source="sglang 0.5.23 srt/speculative/dflash_worker_v2.py:702-740, srt/arg_groups/attention_hook.py:126-145; vllm "
    "config/vllm.py",
    aliases=("L38",),
)
def graphs(started: Started) -> Judgement | None:
    if any(arguments.get("device") == "cpu" for arguments in started.arguments):
        return None
    found = started.found("graph_off")
    if not found:
        return None
    return fail(
        f"graphs are off ({said(found)}): every step is launched kernel by kernel",
        "remove what the line names as the reason, and look for `cuda graph: True` in the decode log",
        cites(found),
    )


@seen(
    "SA14",
    "sampled requests are verified as sampled",
    source="sglang 0.5.23 srt/speculative/dflash_worker_v2.py:2290-2318",
)
def sampling(started: Started) -> Judgement | None:
    found = started.found("greedy_fallback")
    if found:
        return warn(
            f"requests with a temperature were verified greedily ({said(found)}): their distribution is not the target's",
            "send temperature 0, or use a build whose kernels verify samples",
            cites(found),
        )
    return clean(started, "no line speaks of a fallback to greedy verification")


@seen(
    "ST03",
    "the draft window that was set is in effect",
    source="sglang 0.5.23 srt/arg_groups/speculative_hook.py:208-220",
    aliases=("L07",),
)
def window(started: Started) -> Judgement | None:
    found = started.found("window_ignored")
    if found:
        return warn(
            f"the draft window has no effect ({said(found)})",
            "drop the flag, or use an algorithm and draft backend that honour it",
            cites(found),
        )
    return clean(started, "no line of the start says that a window is ignored")


@seen(
    "ST04",
    "no RoPE parameter was filled in by default",
    source="sglang 0.5.23 srt/layers/rotary_embedding/factory.py:45-52",
)
def rope(started: Started) -> Judgement | None:
    found = started.found("rope_key_missing")
    if found:
        return warn(
            f"a RoPE parameter is not in the config and a default was taken ({said(found)})",
            "write the trained value into config.json",
            cites(found),
        )
    return clean(started, "no line of the start speaks of a missing RoPE parameter")


@seen(
    "ST05",
    "the server kept speculation on",
    source="vllm and llama.cpp go on without a drafter after a line in their log; llama.cpp#25345",
    aliases=("L31",),
)
def kept_on(started: Started) -> Judgement | None:
    found = started.found("speculation_off", "draft_failed")
    if found:
        return fail(
            f"the server gave speculation up ({said(found)})",
            "remove what the line names as the reason",
            cites(found),
        )
    return clean(started, "no line of the start says that speculation was given up")


@seen(
    "ST06",
    "the fused draft kernels are used",
    source="sglang 0.5.23 srt/speculative/dflash_worker_v2.py:1000-1090, 1950-2000, 2251, 2530",
)
def fused(started: Started) -> Judgement | None:
    found = started.found("slow_path")
    if found:
        return note(
            f"a slower path is taken ({said(found)})",
            "acceptance does not depend on it; step times do",
            cites(found),
        )
    return clean(started, "no line speaks of a slower path")


LINTS = (
    loading.mask_embedding,
    target_layers,
    block_size,
    length,
    loading.draft_weights,
    backend,
    graphs,
    sampling,
    ends.alive,
    ends.memory,
    ends.xid,
    loading.weights,
    loading.kv_scales,
    window,
    rope,
    kept_on,
    fused,
)
