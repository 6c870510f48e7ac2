"""Is the drafter run as it was trained: chain or tree, attention backend, draft window?"""

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
    speculates_on_sglang,
    unknown,
    warn,
)
from ddprobe.lints.served import Served, config_cite
from ddprobe.parsing.version import before

_HOOK = "sglang 0.5.23 srt/arg_groups/speculative_hook.py"


def _dflash(served: Served) -> bool:
    return speculates_on_sglang(served) and served.family == "dflash"


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


LINTS = (tree, draft_backend, draft_window, draft_window_holds_block, old_flag)
