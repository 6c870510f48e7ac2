"""Is the server started in a way that lets its drafter work?"""

from __future__ import annotations

from ddprobe.lints.lint import (
    Judgement,
    fail,
    fine,
    flag_of,
    lint,
    need,
    note,
    parts,
    speculates_on_sglang,
    warn,
)
from ddprobe.lints.served import NEWEST_READ, Served, beside_cite, config_cite, newer_than_read

_HOOK = "sglang 0.5.23 srt/arg_groups/speculative_hook.py"


def _blocks(served: Served) -> bool:
    return speculates_on_sglang(served) and served.family in ("dflash", "dspark")


@lint(
    "SA00",
    "the server speculates",
    source="--speculative-algorithm",
    subject="launch",
    applies=lambda served: bool(served.name) or served.arguments_known or served.drafter is not None,
)
def speculates(served: Served) -> Judgement:
    if not served.arguments_known and not served.algorithm and not served.says_off:
        if served.elsewhere:
            need(None, f"the server's arguments: those in {served.elsewhere} were not read")
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
            "not speculating: no speculative algorithm is set, so no drafter lint applies",
            "set --speculative-algorithm and --speculative-draft-model-path to speculate",
            cites,
        )
    path = served.arg("speculative_draft_model_path")
    if served.engine == "sglang" and served.algorithm == "DFLASH" and not path and served.given is not None:
        return fail(
            "DFLASH is asked for and no drafter is given: SGLang raises at start",
            "add --speculative-draft-model-path",
            cites,
        )
    by = f"drafter {path}" if path else "no drafter of its own"
    limits = ""
    if served.engine != "sglang":
        limits = "; only the lints that hold for every engine are applied"
    elif newer_than_read(served.version):
        limits = f"; {served.version} is newer than {NEWEST_READ}, where these lints were read"
    return fine(f"speculates with {served.algorithm}, {by}{limits}", cites)


@lint(
    "SA07",
    "no EAGLE knobs on a block drafter",
    source=f"{_HOOK}:325-362, 757-790",
    subject="launch",
    # What a fork with a draft tree makes of them, no release tells.
    applies=lambda served: _blocks(served) and "TREE" not in served.algorithm and served.tree_budget is None,
)
def eagle_knobs(served: Served) -> Judgement:
    names = ("speculative_eagle_topk", "speculative_num_steps")
    odd = {name: served.chosen(name) for name in names if served.chosen(name) not in (None, 1)}
    if odd:
        said = " and ".join(f"{flag_of(name)} {value}" for name, value in odd.items())
        return note(
            f"{said}: {served.algorithm} overrides them to 1", "drop them", served.arg_cite(next(iter(odd)))
        )
    return fine("no EAGLE knobs", ())


@lint(
    "SA08",
    "the number of requests that may run at once was chosen",
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
    aliases=("L34",),
)
def paged_tree(served: Served) -> Judgement:
    ngram = served.algorithm == "NGRAM"
    topk = served.number("speculative_ngram_max_bfs_breadth" if ngram else "speculative_eagle_topk")
    topk = 10 if topk is None and ngram else topk
    page, backend = served.number("page_size"), served.arg("attention_backend")
    if served.resolved is None and topk is None and page not in (None, 1):
        # Left alone, it is chosen by the target's architecture.
        need(None, f"the topk that SGLang chose beside page_size {page}")
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
    aliases=("L37",),
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
    stages = parts(served, "pp_size")
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
    source="sglang 0.5.23 srt/arg_groups/fields/spec.py (speculative_draft_kv_cache_dtype); tokenspeed#1012 (2.7 to 1.79)",
    subject="launch",
    applies=speculates_on_sglang,
    aliases=("L29",),
)
def draft_kv(served: Served) -> Judgement:
    kind, own = served.arg("kv_cache_dtype"), served.arg("speculative_draft_kv_cache_dtype")
    cites = served.arg_cite("kv_cache_dtype")
    if isinstance(kind, str) and kind.startswith("fp8") and not own:
        if served.family in ("dflash", "dspark") and _without_scales(served):
            return warn(
                f"--kv-cache-dtype {kind} holds for the drafter's KV too, and 0 of its tensors are KV scales: 1.0 is taken",
                "compare acceptance with --speculative-draft-kv-cache-dtype auto",
                cites,
                beside_cite(served.drafter, "header") or beside_cite(served.drafter, "index"),
            )
        return note(
            f"--kv-cache-dtype {kind} holds for the drafter's KV too",
            "compare acceptance with --speculative-draft-kv-cache-dtype auto",
            cites,
        )
    return fine("the drafter's KV is not fp8 by inheritance", cites)


def _without_scales(served: Served) -> bool:
    """True when the drafter's tensors are known, and none is a scale of its KV."""
    names = served.drafter.tensors if served.drafter is not None else None
    return names is not None and not any(name.endswith(("k_scale", "v_scale", "kv_scale")) for name in names)


LINTS = (
    override,
    parallelism,
    draft_kv,
    speculates,
    eagle_knobs,
    running_requests,
    paged_tree,
    hierarchical_cache,
    disaggregated_radix,
    grammar,
)
