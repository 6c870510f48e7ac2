"""Is the server started in a way that lets its drafter work?"""

from __future__ import annotations

from ddprobe.engines import sglang_reading
from ddprobe.engines.sglang_reading import FULL, OLD_WINDOW_FLAG_UNTIL, SLIDING
from ddprobe.lints.lint import (
    Judgement,
    drafter,
    fail,
    fine,
    lint,
    need,
    note,
    speculates_on_sglang,
    unknown,
    warn,
)
from ddprobe.lints.served import NEWEST_READ, Served, config_cite, newer_than_read
from ddprobe.parsing.version import before

_HOOK = "sglang 0.5.23 srt/arg_groups/speculative_hook.py"


def _blocks(served: Served) -> bool:
    return speculates_on_sglang(served) and served.family in ("dflash", "dspark")


def _dflash(served: Served) -> bool:
    return speculates_on_sglang(served) and served.family == "dflash"


@lint(
    "SA00",
    "the server speculates",
    source="--speculative-algorithm",
    subject="launch",
    applies=lambda served: bool(served.name) or served.arguments_known or served.drafter is not None,
)
def speculates(served: Served) -> Judgement:
    if not served.arguments_known:
        if served.process is not None:
            need(None, "the server's arguments")
        return note(
            "no running server uses this drafter: it is judged as SGLang would read it, and no launch is judged",
            "",
            config_cite(served.drafter, "architectures"),
        )
    cites = served.arg_cite("speculative_algorithm")
    if not served.algorithm:
        return note(
            "not speculating: no speculative algorithm is set, so 0 drafter lints apply",
            "set --speculative-algorithm and --speculative-draft-model-path to speculate",
            cites,
        )
    path = served.arg("speculative_draft_model_path")
    by = f"drafter {path}" if path else "no drafter of its own"
    limits = ""
    if served.engine != "sglang":
        limits = "; only the lints that hold for every engine are applied"
    elif newer_than_read(served.version):
        limits = f"; {served.version} is newer than {NEWEST_READ}, where these lints were read"
    return fine(f"speculates with {served.algorithm}, {by}{limits}", cites)


@lint(
    "SA02",
    "no full draft tree forces the slow verify path",
    source="sglang#29907: DDTree needs the triton backend, page_size 1 and no overlap",
    subject="launch",
    applies=speculates_on_sglang,
)
def tree(served: Served) -> Judgement:
    args = [args for args in (served.given, served.resolved) if args is not None]
    flags = sorted(
        {
            name
            for each in args
            for name, value in each.values
            if "ddtree" in name.lower() and value not in (None, False)
        }
    )
    if "DDTREE" in served.algorithm or flags:
        said = served.algorithm if "DDTREE" in served.algorithm else "--" + flags[0].replace("_", "-")
        return warn(
            f"a DDTree draft tree is on ({said}): it forces the triton backend, page_size 1 and no overlap",
            "compare with chain DFLASH (no tree) on another attention backend",
            served.arg_cite(flags[0] if flags else "speculative_algorithm"),
        )
    return fine("no DDTree", served.arg_cite("speculative_algorithm"))


@lint(
    "SA03",
    "the drafter runs on the attention backend asked for",
    source=f"{_HOOK}:883-988",
    subject="launch",
    applies=_dflash,
)
def draft_backend(served: Served) -> Judgement:
    name = next(
        (
            name
            for name in (
                "speculative_draft_attention_backend", "prefill_attention_backend", "attention_backend",
            )
            if isinstance(served.chosen(name), str)
        ),
        "",
    )  # fmt: skip
    if not name:
        return fine("no attention backend is asked for: SGLang chooses one that drafts")
    backend, cites = str(served.chosen(name)), served.arg_cite(name)
    fallback = "set --speculative-draft-attention-backend flashinfer (or fa3, fa4, triton) yourself"
    if backend not in sglang_reading.DRAFT_BACKENDS:
        return warn(
            f"the DFLASH draft worker does not take attention backend {backend!r} (1 of "
            f"{len(sglang_reading.DRAFT_BACKENDS)} is needed) and falls back to another",
            fallback,
            cites,
        )
    if backend == "trtllm_mha" and served.drafter is not None:
        types = set(sglang_reading.layers(served.drafter, served.version).types or ())
        if types != {SLIDING} and served.drafter.is_causal is not True:
            return warn(
                "the DFLASH draft worker takes trtllm_mha only where all layers slide or is_causal is true, and falls back",
                fallback,
                cites,
                config_cite(served.drafter, "layer_types", "is_causal"),
            )
    return fine(f"the draft worker takes attention backend {backend!r}", cites)


@lint(
    "SA04",
    "no draft window cuts a layer that looks far",
    source="sglang 0.5.23 srt/speculative/dflash_worker_v2.py:403-406, 1209-1225; sglang#23553",
    subject="drafter and launch",
    applies=_dflash,
)
def draft_window(served: Served) -> Judgement:
    window = served.number("speculative_draft_window_size")
    flag = "speculative_draft_window_size"
    if window is None:
        flag = "speculative_dflash_draft_window_size"
        window = served.number(flag)
    if window is None:
        return fine("no draft window is set: no layer is cut", ())
    config = drafter(served)
    layers = sglang_reading.layers(config, served.version)
    types = need(layers.types, "the drafter's layers")
    cites = (*served.arg_cite(flag), *config_cite(config, "layer_types", "sliding_window"))
    said = f"--{flag.replace('_', '-')} {window}"
    if FULL in types:
        return warn(
            f"{said} trims all {len(types)} layers, the {types.count(FULL)} full one{'s' * (types.count(FULL) > 1)} "
            "too: nothing farther back can be copied, and no KV memory is saved",
            "compare acceptance with and without it",
            cites,
        )
    if config.sliding_window is not None and window < config.sliding_window:
        return warn(
            f"{said} is shorter than the trained sliding_window {config.sliding_window}",
            f"set it to {config.sliding_window} or drop it",
            cites,
        )
    return fine(f"{said} covers the {len(types)} sliding layers", cites)


@lint(
    "SA05",
    "a draft window holds at least a block",
    source=f"{_HOOK}:427-436",
    subject="launch",
    applies=_dflash,
)
def draft_window_holds_block(served: Served) -> Judgement:
    window = served.number("speculative_draft_window_size")
    if window is None:
        return fine("no draft window is set", ())
    block = served.number("speculative_num_draft_tokens")
    if block is None:
        block = served.drafter.block_size if served.drafter is not None else None
    block = need(block, "the block size served")
    cites = (
        *served.arg_cite("speculative_draft_window_size"),
        *served.arg_cite("speculative_num_draft_tokens"),
    )
    if window < block:
        return fail(
            f"--speculative-draft-window-size {window} is smaller than a block of {block}: the server raises",
            f"set it to {block} or more, or drop it",
            cites,
        )
    return fine(f"--speculative-draft-window-size {window} holds a block of {block}", cites)


@lint(
    "SA06",
    "the draft window's flag exists in this version",
    source="--speculative-dflash-draft-window-size: 0.5.11 to 0.5.19",
    subject="launch and engine",
    applies=_dflash,
)
def old_flag(served: Served) -> Judgement:
    old = "speculative_dflash_draft_window_size"
    if served.given is None or served.given.get(old) is None:
        return fine("the draft window's old flag is not used", ())
    cites = served.arg_cite(old)
    advice = "write --speculative-draft-window-size"
    has = before(served.version, OLD_WINDOW_FLAG_UNTIL)
    if has is None:
        return unknown(
            f"--speculative-dflash-draft-window-size is gone since {OLD_WINDOW_FLAG_UNTIL}; the version is not known",
            advice,
            cites,
        )
    if not has:
        return fail(
            f"--speculative-dflash-draft-window-size is gone since {OLD_WINDOW_FLAG_UNTIL}; this is {served.version}",
            advice,
            cites,
        )
    return fine(f"SGLang {served.version} still has --speculative-dflash-draft-window-size", cites)


@lint(
    "SA07",
    "no EAGLE knobs on a block drafter",
    source=f"{_HOOK}:325-362, 757-790",
    subject="launch",
    applies=_blocks,
)
def eagle_knobs(served: Served) -> Judgement:
    names = ("speculative_eagle_topk", "speculative_num_steps")
    odd = {name: served.chosen(name) for name in names if served.chosen(name) not in (None, 1)}
    if odd:
        said = " and ".join(f"--{name.replace('_', '-')} {value}" for name, value in odd.items())
        return note(
            f"{said}: {served.algorithm} overrides them to 1", "drop them", served.arg_cite(next(iter(odd)))
        )
    return fine("no EAGLE knobs", ())


@lint(
    "SA08",
    "how many requests may run at once was chosen",
    source=f"{_HOOK}:439-449",
    subject="launch",
    applies=speculates_on_sglang,
)
def running_requests(served: Served) -> Judgement:
    cites = served.arg_cite("max_running_requests")
    if served.given is None:
        value = need(served.number("max_running_requests"), "max_running_requests as given")
        return fine(f"max_running_requests is {value}", cites)
    value = served.given.get("max_running_requests")
    if value is None:
        return note(
            "--max-running-requests is not set: speculation resets it to 48", "set it on purpose", cites
        )
    return fine(f"--max-running-requests {value}", cites)


@lint(
    "SA10",
    "a draft tree and pages go together on this backend",
    source=f"{_HOOK}:1268-1281, 1337-1349",
    subject="launch",
    applies=lambda served: speculates_on_sglang(served) and served.family not in ("dflash", "dspark"),
)
def paged_tree(served: Served) -> Judgement:
    ngram = served.algorithm == "NGRAM"
    topk = served.number("speculative_ngram_max_bfs_breadth" if ngram else "speculative_eagle_topk")
    topk = 10 if topk is None and ngram else topk
    page, backend = served.number("page_size"), served.arg("attention_backend")
    cites = (*served.arg_cite("speculative_eagle_topk"), *served.arg_cite("page_size"))
    if page is None or page <= 1 or topk is None or topk <= 1:
        return fine(f"topk {topk or 1}, page_size {page or 1}", cites)
    good = ("flashinfer",) if ngram else ("flashinfer", "fa3", "triton")
    backend = need(backend if isinstance(backend, str) else None, "the attention backend")
    if backend not in good:
        return fail(
            f"topk {topk} > 1 with page_size {page} > 1 runs on {', '.join(good)} only, not on {backend}",
            "set --page-size 1, or another --attention-backend",
            cites,
            served.arg_cite("attention_backend"),
        )
    return fine(f"topk {topk} with page_size {page} runs on {backend}", cites)


@lint(
    "SA11",
    "no cache tier returns prefixes without draft state",
    source="sglang#30393, sglang#21125, sglang#27805",
    subject="launch",
    applies=speculates_on_sglang,
)
def hierarchical_cache(served: Served) -> Judgement:
    cites = served.arg_cite("enable_hierarchical_cache")
    if served.switched_on("enable_hierarchical_cache"):
        return warn(
            "--enable-hierarchical-cache is on: a prefix may hit the cache while the draft's state for it is missing",
            "send a long prompt twice and compare acceptance cold and cached",
            cites,
        )
    return fine("no hierarchical cache", cites)


@lint(
    "SA12",
    "disaggregated decode keeps no radix cache beside this algorithm",
    source=f"{_HOOK}:164-173",
    subject="launch",
    applies=speculates_on_sglang,
)
def disaggregated_radix(served: Served) -> Judgement:
    radix = "disaggregation_decode_enable_radix_cache"
    cites = served.arg_cite(radix)
    if (
        served.arg("disaggregation_mode") == "decode"
        and served.switched_on(radix)
        and served.algorithm not in ("DSPARK", "EAGLE", "EAGLE3", "NEXTN")
    ):
        return fail(
            f"--disaggregation-decode-enable-radix-cache does not go with {served.algorithm}: the server raises",
            "drop the flag",
            cites,
        )
    return fine("no radix cache in a disaggregated decoder", cites)


@lint(
    "SA13",
    "no grammar cuts what was accepted",
    source="sglang 0.5.23 srt/managers/scheduler_components/batch_result_processor.py:808-835",
    subject="launch",
    applies=speculates_on_sglang,
)
def grammar(served: Served) -> Judgement:
    parser, backend = served.arg("tool_call_parser"), served.arg("grammar_backend")
    if backend == "none":
        return fine("--grammar-backend none: nothing is cut", served.arg_cite("grammar_backend"))
    if isinstance(parser, str) and parser:
        return note(
            f"--tool-call-parser {parser}: requests with a grammar may commit fewer tokens than were accepted",
            "measure without tools and without structured output",
            served.arg_cite("tool_call_parser"),
        )
    return fine("no tool parser; only requests that bring a grammar are cut", ())


@lint(
    "DC37",
    "no override changes drafter and target at once",
    source="sglang 0.5.23 srt/configs/model_config.py:962, srt/arg_groups/speculative_hook.py:394-404",
    subject="launch",
    applies=speculates_on_sglang,
)
def override(served: Served) -> Judgement:
    value = served.arg("json_model_override_args")
    cites = served.arg_cite("json_model_override_args")
    if value in (None, {}, "", "{}"):
        return fine("no --json-model-override-args", cites)
    fields = ", ".join(sorted(map(str, value))[:8]) if isinstance(value, dict) else str(value)[:80]
    return warn(
        f"--json-model-override-args ({fields}) is laid over both the target and the drafter",
        "edit a copy of the config.json that is meant, and drop the flag",
        cites,
    )


@lint(
    "DC41",
    "parallelism that a block drafter supports",
    source=f"{_HOOK}:289-318, 707-743",
    subject="launch",
    applies=_blocks,
)
def parallelism(served: Served) -> Judgement:
    stages = served.number("pp_size") or 1
    if stages > 1 and not (served.family == "dspark" and served.arg("disaggregation_mode") == "prefill"):
        return fail(
            f"pp_size {stages}: {served.algorithm} runs with pp_size 1 only",
            "set --pp-size 1",
            served.arg_cite("pp_size"),
        )
    if served.switched_on("enable_dp_attention") and not served.switched_on("enable_dp_lm_head"):
        return fail(
            f"{served.algorithm} with --enable-dp-attention needs --enable-dp-lm-head",
            "add --enable-dp-lm-head",
            served.arg_cite("enable_dp_attention"),
        )
    return fine("pp_size 1, and no DP attention without --enable-dp-lm-head", served.arg_cite("pp_size"))


@lint(
    "DC44",
    "the drafter's KV type was chosen",
    source="sglang 0.5.23 srt/arg_groups/fields/spec.py (speculative_draft_kv_cache_dtype)",
    subject="launch",
    applies=speculates_on_sglang,
)
def draft_kv(served: Served) -> Judgement:
    kind, own = served.arg("kv_cache_dtype"), served.arg("speculative_draft_kv_cache_dtype")
    cites = served.arg_cite("kv_cache_dtype")
    if isinstance(kind, str) and kind.startswith("fp8") and not own:
        return note(
            f"--kv-cache-dtype {kind} holds for the drafter's KV too",
            "compare acceptance with --speculative-draft-kv-cache-dtype auto",
            cites,
        )
    return fine("the drafter's KV is not fp8 by inheritance", cites)


LINTS = (
    override,
    parallelism,
    draft_kv,
    speculates,
    tree,
    draft_backend,
    draft_window,
    draft_window_holds_block,
    old_flag,
    eagle_knobs,
    running_requests,
    paged_tree,
    hierarchical_cache,
    disaggregated_radix,
    grammar,
)
