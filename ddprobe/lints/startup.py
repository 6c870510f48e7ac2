"""Does the log of the start show that something was not loaded, replaced, cut or lost?

Some of these see in a log what other lints conclude from files and arguments: they have the id of those. What a log shows
counts before what a file lets one expect.
"""

from __future__ import annotations

from collections.abc import Callable

from ddprobe.facts import LogEvent
from ddprobe.lints.lint import Judgement, Lint, fail, fine, note, warn
from ddprobe.lints.started import Started, cites

Judge = Callable[[Started], Judgement | None]


def seen(
    id: str, text: str, *, source: str, aliases: tuple[str, ...] = ()
) -> Callable[[Judge], Lint[Started]]:
    """Turns a function that judges a start into a lint."""

    def wrap(judge: Judge) -> Lint[Started]:
        return Lint(id, text, source, "start-up log", lambda started: bool(started.events), judge, aliases)

    return wrap


def _clean(started: Started, summary: str) -> Judgement | None:
    """Content, where a whole start was read; else nothing can be said."""
    if not started.whole:
        return None
    return fine(summary, cites(started.found("launched", "ready")))


def _lines(events: tuple[LogEvent, ...]) -> int:
    return sum(event.count for event in events)


def _said(events: tuple[LogEvent, ...]) -> str:
    """`3 lines; the first: Parameter … not found in params_dict`."""
    count = _lines(events)
    told = "1 line" if count == 1 else f"{count} lines; the first"
    return f"{told}: {events[0].text[:200]}"


def _drafters(started: Started, *kinds: str) -> tuple[LogEvent, ...]:
    return tuple(event for event in started.found(*kinds) if started.value(event, "draft") == "yes")


# --- weights ----------------------------------------------------------------------------------------------


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
        f"the drafter's weights were not loaded whole ({_said(found)}): what is missing stays random",
        "fetch or convert the drafter again, or use a release whose loader knows these names",
        cites(found),
        lines=_lines(found),
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
            f"weights and model do not match ({_said(found)})",
            "compare the names with those of the drafter: a skipped one may be its own",
            cites(found),
            lines=_lines(found),
        )
    return None if drafters else _clean(started, "no line of the start speaks of skipped or missing weights")


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
            f"the KV cache is fp8 and the checkpoint has no scales: 1.0 is taken ({_said(found)})",
            "compare acceptance with --kv-cache-dtype auto, for the drafter too; a checkpoint with scales undoes it",
            cites(found),
        )
    return _clean(started, "no line of the start speaks of missing KV scales")


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


# --- the drafter as it runs -------------------------------------------------------------------------------


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
        judged = fail if served > trained else note
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
            f"the server found no block size in the drafter's config.json and took a default ({_said(assumed)})",
            "pass --speculative-num-draft-tokens with the trained block size",
            cites(assumed),
        )
    return None


@seen(
    "DC35",
    "the drafter is as long as the context served",
    source="sglang 0.5.23 srt/configs/model_config.py:1291-1324; vllm prints the target's length, then the drafter's: "
    "vllm#58080",
    aliases=("L01",),
)
def length(started: Started) -> Judgement | None:
    overridden = started.found("length_overridden")
    if overridden:
        return fail(
            f"the drafter's max_position_embeddings was overridden ({_said(overridden)}): beyond its own length its "
            "positions were never trained",
            "cap --context-length at the drafter's own length, and unset SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN",
            cites(overridden),
        )
    for run in dict.fromkeys(event.run for event in started.found("max_model_len")):
        told = [event for event in started.found("max_model_len") if event.run == run]
        lengths = [started.number(event, "length") for event in told]
        first, *rest = [length for length in lengths if length is not None] or [0]
        # An engine that does not draft tells one length.
        shorter = [length for length in rest if length < first]
        if shorter:
            return fail(
                f"the drafter takes {shorter[0]} positions and {first} are served: past {shorter[0]} nothing sound is "
                "drafted",
                f"set --max-model-len {shorter[0]}, or give the drafter the same RoPE scaling as the target",
                cites(told),
                drafter=shorter[0],
                served=first,
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
    asked, taken = started.value(found[0], "asked"), started.value(found[0], "taken")
    told = f"{asked} was asked for and {taken} is taken" if taken else found[0].text[:200]
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
        f"graphs are off ({_said(found)}): every step is launched kernel by kernel",
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
            f"requests with a temperature were verified greedily ({_said(found)}): their distribution is not the target's",
            "send temperature 0, or use a build whose kernels verify samples",
            cites(found),
        )
    return _clean(started, "no line speaks of a fallback to greedy verification")


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
            f"the draft window has no effect ({_said(found)})",
            "drop the flag, or use an algorithm and draft backend that honour it",
            cites(found),
        )
    return _clean(started, "no line of the start says that a window is ignored")


@seen(
    "ST04",
    "no RoPE parameter was filled in by default",
    source="sglang 0.5.23 srt/layers/rotary_embedding/factory.py:45-52",
)
def rope(started: Started) -> Judgement | None:
    found = started.found("rope_key_missing")
    if found:
        return warn(
            f"a RoPE parameter is not in the config and a default was taken ({_said(found)})",
            "write the trained value into config.json",
            cites(found),
        )
    return _clean(started, "no line of the start speaks of a missing RoPE parameter")


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
            f"the server gave speculation up ({_said(found)})",
            "remove what the line names as the reason",
            cites(found),
        )
    return _clean(started, "no line of the start says that speculation was given up")


@seen(
    "ST06",
    "the fused draft kernels are used",
    source="sglang 0.5.23 srt/speculative/dflash_worker_v2.py:1000-1090, 1950-2000, 2251, 2530",
)
def fused(started: Started) -> Judgement | None:
    found = started.found("slow_path")
    if found:
        return note(
            f"a slower path is taken ({_said(found)})",
            "acceptance does not depend on it; step times do",
            cites(found),
        )
    return _clean(started, "no line speaks of a slower path")


# --- ends -------------------------------------------------------------------------------------------------


@seen(
    "SE01",
    "the server did not die",
    source="a traceback, and what the engine writes when one of its processes ends",
)
def alive(started: Started) -> Judgement | None:
    crashes = started.found("crash")
    died = started.found("died")
    if not crashes and not died:
        return _clean(started, "no process of the server died")
    first = cause(crashes) or (died or crashes)[0]
    phase = {"start": "at its start", "serving": "while it served"}.get(started.value(first, "phase"), "")
    return fail(
        f"the server died{' ' + phase if phase else ''}: {first.text[:300]}",
        "read the lines before it; what was measured until then may still count",
        cites(tuple(dict.fromkeys((first, *died[:1])))),
    )


def cause(crashes: tuple[LogEvent, ...]) -> LogEvent | None:
    """The first exception that is not about another one; the first of all where each is."""
    own = [event for event in crashes if "secondary" not in dict(event.values)]
    return next(iter(own or crashes), None)


@seen("SE02", "memory was enough", source="torch.OutOfMemoryError, cudaMalloc, the kernel's OOM killer")
def memory(started: Started) -> Judgement | None:
    found = started.found("out_of_memory")
    if found:
        return fail(
            f"memory ran out ({_said(found)})",
            "lower --mem-fraction-static (vLLM: --gpu-memory-utilization), the context length or the running requests",
            cites(found),
        )
    return _clean(started, "no line speaks of memory that ran out")


@seen(
    "SE03",
    "the GPU reported no error",
    source="NVIDIA Xid errors in the kernel log; sglang#32855 (Xid 13 at 218k tokens with DSPARK)",
)
def xid(started: Started) -> Judgement | None:
    found = started.found("xid")
    if found:
        numbers = ", ".join(dict.fromkeys(started.value(event, "xid") for event in found))
        return fail(
            f"the GPU reported Xid {numbers} ({_said(found)})",
            "look the number up in NVIDIA's list; send no longer prompts than those that went well",
            cites(found),
        )
    return _clean(started, "no line speaks of an Xid error")


LINTS = (
    mask_embedding,
    target_layers,
    block_size,
    length,
    draft_weights,
    backend,
    graphs,
    sampling,
    alive,
    memory,
    xid,
    weights,
    kv_scales,
    window,
    rope,
    kept_on,
    fused,
)
