"""Is the drafter run as it was trained: chain or tree, attention backend, draft window?"""

from __future__ import annotations

from ddprobe.engines import sglang_reading
from ddprobe.engines.sglang_reading import FULL, OLD_WINDOW_FLAG_UNTIL, SLIDING
from ddprobe.lints.lint import (
    Judgement,
    drafter,
    fail,
    fine,
    flag_of,
    lint,
    need,
    speculates_on_sglang,
    unknown,
    warn,
)
from ddprobe.lints.served import Served, config_cite
from ddprobe.parsing.version import before

_HOOK = "sglang 0.5.23 srt/arg_groups/speculative_hook.py"
_TARGET_BACKENDS = ("prefill_attention_backend", "attention_backend")
_WINDOW, _OLD_WINDOW = "speculative_draft_window_size", "speculative_dflash_draft_window_size"


def _dflash(served: Served) -> bool:
    return speculates_on_sglang(served) and served.family == "dflash"


def _is_on(value: object) -> bool:
    return value not in (None, False) and str(value).lower() not in ("off", "false", "no", "none", "0", "")


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
        {name for each in args for name, value in each.values if "ddtree" in name.lower() and _is_on(value)}
    )
    if "DDTREE" in served.algorithm or flags:
        said = served.algorithm if "DDTREE" in served.algorithm else flag_of(flags[0])
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
    # As resolved, the draft's own argument is what came of it; the other two are what it would be taken from.
    own = "speculative_draft_attention_backend"
    asked = ((own, served.chosen(own)), *((name, served.arg(name)) for name in _TARGET_BACKENDS))
    name, backend = next(((name, value) for name, value in asked if isinstance(value, str)), ("", ""))
    if not name:
        return fine("no attention backend is asked for: SGLang chooses one that drafts")
    cites = served.arg_cite(name)
    fallback = "set --speculative-draft-attention-backend flashinfer (or fa3, fa4, triton) yourself"
    if backend not in sglang_reading.DRAFT_BACKENDS:
        return warn(
            f"the DFLASH draft worker does not take attention backend {backend!r}, only "
            f"{', '.join(sglang_reading.DRAFT_BACKENDS)}: it falls back to flashinfer (on ROCm and XPU to triton)",
            fallback,
            cites,
        )
    if backend == "trtllm_mha" and served.drafter is not None:
        types = set(sglang_reading.layers(served.drafter, served.version).types or ())
        if types != {SLIDING} and served.drafter.is_causal is not True:
            return warn(
                "the DFLASH draft worker takes trtllm_mha only where all layers slide or is_causal is true: it falls back "
                "to flashinfer (to fa4 on SM100)",
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
    aliases=("L09",),
)
def draft_window(served: Served) -> Judgement:
    flag, window = _window(served)
    if window is None:
        return fine("no draft window is set: no layer is cut")
    config = drafter(served)
    layers = sglang_reading.layers(config, served.version)
    types = need(layers.types, "the drafter's layers")
    cites = (*served.arg_cite(flag), *config_cite(config, "layer_types", "sliding_window"))
    said = f"{flag_of(flag)} {window}"
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
    aliases=("L09",),
)
def draft_window_holds_block(served: Served) -> Judgement:
    flag, window = _window(served)
    if window is None:
        return fine("no draft window is set")
    block = need(served.block_size(), "the block size served")
    cites = (*served.arg_cite(flag), *served.arg_cite("speculative_num_draft_tokens"))
    said = f"{flag_of(flag)} {window}"
    if window < block:
        return fail(
            f"{said} is smaller than a block of {block}: the server raises",
            f"set it to {block} or more, or drop it",
            cites,
        )
    return fine(f"{said} holds a block of {block}", cites)


def _window(served: Served) -> tuple[str, int | None]:
    """The draft window, under the name it was given by."""
    name = _WINDOW if served.number(_WINDOW) is not None else _OLD_WINDOW
    return name, served.number(name)


@lint(
    "SA06",
    "the draft window's flag exists in this version",
    source="--speculative-dflash-draft-window-size: 0.5.11 to 0.5.19",
    subject="launch and engine",
    applies=_dflash,
)
def old_flag(served: Served) -> Judgement:
    if served.given is None or served.given.get(_OLD_WINDOW) is None:
        return fine("the draft window's old flag is not used")
    cites = served.arg_cite(_OLD_WINDOW)
    old, advice = flag_of(_OLD_WINDOW), f"write {flag_of(_WINDOW)}"
    has = before(served.version, OLD_WINDOW_FLAG_UNTIL)
    if has is None:
        return unknown(
            f"{old} is gone since {OLD_WINDOW_FLAG_UNTIL}; the version is not known",
            advice,
            cites,
        )
    if not has:
        return fail(
            f"{old} is gone since {OLD_WINDOW_FLAG_UNTIL}; this is {served.version}",
            advice,
            cites,
        )
    return fine(f"SGLang {served.version} still has {old}", cites)


LINTS = (tree, draft_backend, draft_window, draft_window_holds_block, old_flag)
