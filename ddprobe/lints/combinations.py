"""Flags that do not go together, or that leave a drafter unused or cut short."""

from __future__ import annotations

import re

from ddprobe.lints.lint import (
    Judgement,
    drafter,
    fail,
    fine,
    lint,
    need,
    note,
    parts,
    speculates_on_sglang,
    unknown,
    warn,
)
from ddprobe.lints.positions import truthy
from ddprobe.lints.served import Served, config_cite
from ddprobe.model import Cite
from ddprobe.parsing.version import before

_SPEC_V2 = "SGLANG_ENABLE_SPEC_V2"
_NO_DRAFT = ("torch_native", "flex_attention")
_AMPERE = re.compile(r"\b(A10|A16|A40|A6000|A5000|A4000|A2|RTX 30\d\d)\b")
_MANY = 8
"""Drafts per step from which a ratio says little without a stop."""


def _environment(served: Served) -> dict[str, str]:
    return dict(served.process.environment) if served.process is not None else {}


def _environment_cite(served: Served, name: str) -> tuple[Cite, ...]:
    sources = served.process.source if served.process is not None else ()
    return tuple(Cite(source.artefact, name) for source in sources[-1:])


@lint(
    "SA16",
    "the drafter's own context holds the server's",
    source="ikawrakow/ik_llama.cpp#732 (speed halves once it is full), llama.cpp#22554 (drafting stops); vLLM 0.32.0 run "
    "with max_model_len 2048 for the drafter: 6.00 tokens per step below it, 1.00 above",
    subject="launch",
    applies=lambda served: (
        (served.engine == "llamacpp" and served.number("ctx_size_draft") is not None)
        or (served.engine == "vllm" and served.drafter_length is not None)
    ),
    aliases=("L11",),
)
def draft_context(served: Served) -> Judgement:
    return _vllm_length(served) if served.engine == "vllm" else _llamacpp_length(served)


def _vllm_length(served: Served) -> Judgement:
    draft = need(served.drafter_length, "the drafter's length")
    whole, origin, context_cites = served.context()
    cites = served.arg_cite("speculative_config"), context_cites
    name = f"max_model_len {draft} of the speculative config"
    if not whole:
        return unknown(
            f"{name} is the drafter's; the server's own length is not known", "set --max-model-len", *cites
        )
    if draft < whole:
        return fail(
            f"{name} is below {origin}: no draft is right past {draft}",
            f"set it to {whole} or drop it (vLLM then takes the shorter of the two models' own)",
            *cites,
        )
    return fine(f"{name} is enough for {origin}", *cites)


def _llamacpp_length(served: Served) -> Judgement:
    """The drafter has a context for each slot; the target's is shared among the slots, unless they use one together."""
    draft, whole = served.number("ctx_size_draft"), served.number("ctx_size")
    cites = served.arg_cite("ctx_size_draft"), served.arg_cite("ctx_size")
    if not draft:
        return fine("-cd 0: the drafter's context is taken from its model", *cites)
    if not whole:
        return unknown(
            f"-cd {draft} is set and -c is not: the server's context is not known", "set -c", *cites
        )
    slots = served.number("parallel") or 1
    shared = slots > 1 and not served.switched_on("kv_unified")
    longest, name = (
        (whole // slots, f"a slot's {whole // slots} of -c {whole}") if shared else (whole, f"-c {whole}")
    )
    if draft < longest:
        return fail(
            f"-cd {draft} is below {name}: past {draft} tokens the drafter has no context left",
            f"set -cd {longest} or drop it",
            *cites,
        )
    return fine(f"-cd {draft} holds {name}", *cites)


@lint(
    "SA17",
    "a drafter that is given is used",
    source="llama.cpp#25345: --spec-type is none unless given",
    subject="launch",
    applies=lambda served: (
        served.engine == "llamacpp" and served.arg("speculative_draft_model_path") is not None
    ),
    aliases=("L31",),
)
def drafter_used(served: Served) -> Judgement:
    kind = served.arg("speculative_algorithm")
    cites = served.arg_cite("speculative_draft_model_path"), served.arg_cite("speculative_algorithm")
    if isinstance(kind, str) and kind not in ("", "none"):
        return fine(f"--spec-type {kind} uses the drafter", *cites)
    if kind is None and served.drafted is not None:
        shown = served.drafted.source[:1]
        return fine(
            "--spec-type is not given, and drafts are counted: this build drafts without it", *cites, shown
        )
    if kind is None and isinstance(older := served.arg("removed_flags"), str):
        return fine(
            f"{older} is given, at which builds that know --spec-type do not start: this older one drafts without it",
            *cites,
        )
    return fail(
        f"--model-draft is given and --spec-type is {kind or 'not'}: builds that know --spec-type draft nothing then",
        "add --spec-type draft-simple (or draft-dflash, draft-eagle3, draft-mtp, as the drafter is)",
        *cites,
    )


@lint(
    "SA18",
    "steps and draft tokens of a chain agree",
    source="sglang 0.5.23 srt/arg_groups/speculative_hook.py:1254-1266; sglang#8228, SpecForge#310",
    subject="launch",
    applies=lambda served: (
        speculates_on_sglang(served)
        and served.family == "eagle"
        and isinstance(served.chosen("speculative_num_steps"), int)
        and isinstance(served.chosen("speculative_num_draft_tokens"), int)
        and served.chosen("speculative_eagle_topk") in (None, 1)
    ),
    aliases=("L32",),
)
def chain(served: Served) -> Judgement:
    steps = int(served.chosen("speculative_num_steps"))
    tokens = int(served.chosen("speculative_num_draft_tokens"))
    cites = served.arg_cite("speculative_num_steps"), served.arg_cite("speculative_num_draft_tokens")
    if tokens != steps + 1:
        return warn(
            f"topk 1 with {steps} steps drafts {steps} tokens and verifies {steps + 1}, not {tokens}: newer SGLang corrects "
            "the number, older ones pad",
            f"set --speculative-num-draft-tokens {steps + 1}",
            *cites,
        )
    return fine(f"{steps} steps, {tokens} draft tokens", *cites)


@lint(
    "SA19",
    "backend and speculation go together in this version",
    source="sglang#36352 (torch_native), sglang#14077 (spec v2 with topk > 1)",
    subject="launch",
    applies=lambda served: (
        speculates_on_sglang(served)
        and (served.arg("attention_backend") in _NO_DRAFT or _SPEC_V2 in _environment(served))
    ),
    aliases=("L34",),
)
def refused(served: Served) -> Judgement:
    backend = served.arg("attention_backend")
    if backend in _NO_DRAFT:
        return fail(
            f"attention backend {backend} has no draft or verify path: the first request ends the server",
            "set --attention-backend flashinfer, fa3 or triton",
            served.arg_cite("attention_backend"),
        )
    on = truthy(_environment(served)[_SPEC_V2])
    topk = parts(served, "speculative_eagle_topk")
    cites = _environment_cite(served, _SPEC_V2), served.arg_cite("speculative_eagle_topk")
    if not on or topk <= 1:
        return fine(f"{_SPEC_V2}={_environment(served)[_SPEC_V2]} with topk {topk}", *cites)
    old = before(served.version, "0.5.12")
    said = f"{_SPEC_V2} is on with topk {topk} > 1"
    if old is None:
        return unknown(
            f"{said}: releases before 0.5.12 end with a tensor size error, and the version is not known",
            f"unset {_SPEC_V2} or set --speculative-eagle-topk 1",
            *cites,
        )
    if old:
        return fail(
            f"{said}: SGLang {served.version} (< 0.5.12) ends with a tensor size error",
            f"unset {_SPEC_V2} or set --speculative-eagle-topk 1",
            *cites,
        )
    return fine(f"{said}, which SGLang {served.version} takes", *cites)


@lint(
    "SA20",
    "some attention backend takes the drafter on this GPU",
    source="vllm#40382 (non-causal, head_dim 256, sm_86: 0.19.2), vllm#41559 (non-causal with fp8 KV: 0.20.0)",
    subject="drafter and engine",
    applies=lambda served: (
        served.engine == "vllm"
        and served.family == "dflash"
        and served.drafter is not None
        and served.drafter.is_causal is not True
        and (_wide_on_ampere(served) or str(served.arg("kv_cache_dtype") or "") in ("fp8", "fp8_e4m3"))
    ),
    aliases=("L35",),
)
def backend_exists(served: Served) -> Judgement:
    limit = "0.20.1" if str(served.arg("kv_cache_dtype") or "").startswith("fp8") else "0.20.0"
    config = drafter(served)
    what = f"head_dim {config.head_dim} on sm_86" if limit == "0.20.0" else "an fp8 KV cache"
    cites = config_cite(config, "head_dim"), served.arg_cite("kv_cache_dtype")
    old = before(served.version, limit)
    advice = "upgrade vLLM, or set --kv-cache-dtype auto"
    if old is None:
        return unknown(
            f"a non-causal drafter with {what} has no backend in vLLM before {limit}; the version is not known",
            advice,
            *cites,
        )
    if old:
        return fail(
            f"a non-causal drafter with {what} has no backend in vLLM {served.version} (< {limit})",
            advice,
            *cites,
        )
    return fine(f"vLLM {served.version} has a backend for {what}", *cites)


def _wide_on_ampere(served: Served) -> bool:
    wide = drafter(served).head_dim
    return wide is not None and wide >= 256 and any(_AMPERE.search(gpu) for gpu in served.gpus)


@lint(
    "SA21",
    "no parallel mode leaves the drafter's state behind",
    source="sglang#16274 (DP attention), vllm-ascend#13665 (2.5 to 1.3 when prefill and decode are apart)",
    subject="launch",
    applies=lambda served: bool(served.algorithm) and _apart(served) != "",
    aliases=("L36",),
)
def apart(served: Served) -> Judgement:
    name = _apart(served)
    return warn(
        f"{name} is on together with speculation: the drafter's state may not follow a request",
        "run the same commit probe against a plain instance and compare",
        served.arg_cite(name),
    )


def _apart(served: Served) -> str:
    if served.switched_on("enable_dp_attention") and served.family not in ("dflash", "dspark"):
        return "enable_dp_attention"
    if served.arg("disaggregation_mode") in ("prefill", "decode"):
        return "disaggregation_mode"
    return "kv_transfer_config" if served.arg("kv_transfer_config") else ""


@lint(
    "SA22",
    "a cached prefix brings the drafter's state with it",
    source="vllm#47930: the drafter's KV comes of the target's hidden states, which cached tokens never produce",
    subject="launch",
    applies=lambda served: (
        served.engine == "vllm" and served.family in ("dflash", "dspark") and served.arguments_known
    ),
    aliases=("L37",),
)
def cached_prefix(served: Served) -> Judgement:
    on, cites = served.arg("enable_prefix_caching"), served.arg_cite("enable_prefix_caching")
    if on is False:
        return fine("prefix caching is off", cites)
    advice = "send a long prompt twice and compare acceptance cold and cached"
    if on is True:
        return warn(
            "--enable-prefix-caching is on beside a block drafter: after a cache hit it may draft from empty rows",
            advice,
            cites,
        )
    return note("prefix caching is on by default beside a block drafter", advice, cites)


@lint(
    "SA23",
    "drafting stops where the drafter is unsure",
    source="llama.cpp#25908, llama.cpp#25792: p_min is 0 by default, so whole blocks are drafted and the ratio falls",
    subject="launch",
    applies=lambda served: (
        served.engine == "llamacpp"
        and bool(served.algorithm)
        and "NGRAM" not in served.algorithm
        and _many(served) is not None
    ),
    aliases=("L40",),
)
def stops_early(served: Served) -> Judgement:
    name = "spec_draft_p_min" if served.arg("spec_draft_p_min") is not None else "draft_p_min"
    given = served.arg(name)
    cites = served.arg_cite("num_speculative_tokens"), served.arg_cite(name)
    if not given:
        return note(
            f"up to {_many(served)} tokens are drafted with p_min 0: the accept rate is low by that choice alone",
            "read accepted tokens per step, not the ratio; --spec-draft-p-min 0.75 stops earlier",
            *cites,
        )
    return fine(f"drafting stops below p_min {given}", *cites)


def _many(served: Served) -> int | None:
    """The drafts of a step, where they are many."""
    most = served.number("num_speculative_tokens")
    return most if most is not None and most >= _MANY else None


LINTS = (
    draft_context,
    drafter_used,
    chain,
    refused,
    backend_exists,
    apart,
    cached_prefix,
    stops_early,
)
