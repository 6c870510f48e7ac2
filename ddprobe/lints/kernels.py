"""Is a verify step cheap on this hardware: attention kernel, CUDA graphs, replicated KV?"""

from __future__ import annotations

import re

from ddprobe import gpu_cards
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
    target,
    unknown,
    warn,
)
from ddprobe.lints.served import Served, config_cite
from ddprobe.model import Cite

_LINES = 2
"""Decode lines without CUDA graphs that say something: each is a window of tens of steps."""
LONG = 16384
"""From this context on, walking a prefix serially dominates a verify step."""
_MLA_ELSEWHERE = re.compile(r"\b(H100|H200|H800|H20|GH200|B100|B200|B300|GB200|GB300)\b", re.IGNORECASE)


_TRITON_ON_VLLM = ("TRITON_ATTN", "TRITON_MLA")


def _knows_target(served: Served) -> bool:
    return speculates_on_sglang(served) and served.target is not None


def _verifies(served: Served) -> bool:
    """A server of which it can be said what verifies: by its target, or by the backend that it names."""
    if served.engine == "vllm":
        return bool(served.algorithm) and str(served.arg("attention_backend")).upper() in _TRITON_ON_VLLM
    return _knows_target(served) or (speculates_on_sglang(served) and _backend(served)[0] == "triton")


def _backend(served: Served) -> tuple[str, tuple[Cite, ...]]:
    """The backend that verifies: the prefill one, unless --speculative-attention-mode says decode."""
    mode = "decode" if served.arg("speculative_attention_mode") == "decode" else "prefill"
    for name in (f"{mode}_attention_backend", "attention_backend"):
        value = served.arg(name)
        if isinstance(value, str) and value:
            return value, served.arg_cite(name)
    return "", served.arg_cite("attention_backend")


@lint(
    "SA01",
    "verify does not walk a long prefix serially",
    source="verify goes through extend_attention_fwd, which has no split-KV (8 thread blocks on 188 SMs at batch 1); "
    "sglang#39316, vllm#53930, vllm#52218",
    subject="launch and target",
    applies=_verifies,
    aliases=("L33",),
)
def verify_kernel(served: Served) -> Judgement:
    config = served.target
    backend, cites = _backend(served)
    cites += config_cite(config, "kv_lora_rank")
    mla = config is not None and config.kv_lora_rank is not None
    workstation = any(map(gpu_cards.sm120, served.gpus))
    said = f"attention backend {backend}"
    if not backend and mla:
        if any(_MLA_ELSEWHERE.search(gpu) for gpu in served.gpus):
            return fine(
                f"no attention backend is set; SGLang's default on {served.gpus[0]} is not triton", cites
            )
        if not workstation:
            return unknown(
                "the target has MLA and no attention backend is set: SGLang takes triton except on Hopper and SM100, and "
                "the GPU is not known",
                "set --attention-backend yourself",
                cites,
            )
        backend, said = "triton", "the default attention backend, triton"
    if not backend:
        return unknown(
            "no attention backend is set, and the server did not say which it took: where flashinfer is missing, or the "
            "target has attention sinks, that may be triton",
            "set --attention-backend yourself, or let the server answer",
            cites,
        )
    if backend != "triton" and served.engine != "vllm":
        return fine(f"verify does not run on triton ({said})", cites)
    context, origin, context_cites = served.context()
    context = need(context, "the context length served")
    cites += context_cites
    if context < LONG:
        return fine(f"verify runs on triton, and the context served ({context}) stays below {LONG}", cites)
    advice = (
        "try --attention-backend flashinfer without a draft tree (check that greedy output stays the same), or "
        "switch speculation off at long context"
    )
    summary = (
        f"verify runs on {said}, {'MLA, ' if mla else ''}without split-KV: a step walks up to {context} tokens serially "
        f"({origin}; trouble begins at {LONG})"
    )
    if mla and workstation:
        return fail(f"{summary} on {served.gpus[0]}", advice, cites, context=context)
    return warn(summary, advice, cites, context=context)


@lint(
    "SA09",
    "decoding runs from CUDA graphs",
    source="an eager verify step costs tens of milliseconds; tonyd2wild GLM-5.3-Flash-NVFP4-DFlash2-2x-DGX-Spark#7, "
    "mit-han-lab/fastrl#4",
    subject="launch",
    applies=lambda served: (
        (speculates_on_sglang(served) and served.arg("device") != "cpu")
        or (served.engine == "vllm" and bool(served.algorithm) and served.arg("enforce_eager") is not None)
    ),
    aliases=("L38",),
)
def cuda_graphs(served: Served) -> Judgement:
    if served.engine == "vllm":
        cites = served.arg_cite("enforce_eager")
        if served.switched_on("enforce_eager"):
            return warn(
                "--enforce-eager is on: every step is launched kernel by kernel",
                "drop --enforce-eager",
                cites,
            )
        return fine("--enforce-eager is off", cites)
    for name in ("disable_cuda_graph", "disable_decode_cuda_graph"):
        if served.switched_on(name):
            flag = flag_of(name)
            return fail(
                f"{flag} is on: every step is launched kernel by kernel",
                f"drop {flag}",
                served.arg_cite(name),
            )
    if served.arg("cuda_graph_backend_decode") == "disabled":
        return fail(
            "--cuda-graph-backend-decode disabled: every step is launched kernel by kernel",
            "drop --cuda-graph-backend-decode disabled",
            served.arg_cite("cuda_graph_backend_decode"),
        )
    graphs = served.arg("cuda_graph_config")
    decode = graphs.get("decode") if isinstance(graphs, dict) else None
    if isinstance(decode, dict) and decode.get("backend") == "disabled":
        return fail(
            "cuda_graph_config.decode.backend is disabled: every step is launched kernel by kernel",
            "drop --cuda-graph-backend-decode disabled",
            served.arg_cite("cuda_graph_config"),
        )
    if (seen := _seen_without_graphs(served)) is not None:
        return seen
    most, name = served.chosen("cuda_graph_max_bs_decode"), "cuda_graph_max_bs_decode"
    if most is None:
        most, name = served.chosen("cuda_graph_max_bs"), "cuda_graph_max_bs"
    running = served.number("max_running_requests")
    if isinstance(most, int) and running is not None and most < running:
        return warn(
            f"{flag_of(name)} {most} is below max_running_requests {running}: larger batches run eagerly",
            f"raise it to {running}",
            served.arg_cite(name),
            served.arg_cite("max_running_requests"),
        )
    return fine("CUDA graphs are not switched off", served.arg_cite("disable_cuda_graph"))


def _seen_without_graphs(served: Served) -> Judgement | None:
    """What its log says: lines without graphs beside lines with them, at as few requests or only at more."""
    bins = [bin for log in served.logs for bin in log.bins if bin.graph_share is not None]
    lost = [bin for bin in bins if not bin.graph_share]
    lines, every = sum(bin.lines for bin in lost), sum(bin.lines for bin in bins)
    if lines < _LINES:
        return None
    where = tuple(cite for log in served.logs for cite in log.source)[:4]
    graphed = [bin.running for bin in bins if bin.graph_share]
    fewest = min(bin.running for bin in lost)
    told = f"{lines} of {every} decode lines ran without CUDA graphs"
    if graphed and fewest > max(graphed):
        return warn(
            f"{told}: those with {fewest} running requests and more",
            "raise --cuda-graph-max-bs to the batches that are served",
            where,
            lines=lines,
        )
    return fail(
        f"{told}, with {fewest} running request{'s' * (fewest != 1)} already: such a step is launched kernel by kernel",
        "read in the start-up log why they were not captured, or which lengths and batches were",
        where,
        lines=lines,
    )


@lint(
    "SA15",
    "tensor parallelism spreads the target's KV",
    source="MLA's latent KV is replicated on every tensor-parallel rank",
    subject="launch and target",
    applies=_knows_target,
)
def replicated_kv(served: Served) -> Judgement:
    config = target(served)
    tp = parts(served, "tp_size")
    cites = (*served.arg_cite("tp_size"), *config_cite(config, "kv_lora_rank"))
    if (
        config.kv_lora_rank is not None
        and tp > 1
        and parts(served, "dcp_size") == 1
        and not served.switched_on("enable_dp_attention")
    ):
        return note(
            f"the target has MLA and tp_size is {tp}: its KV is replicated {tp} times, and reading it gets no faster with "
            "more GPUs",
            "try --dcp-size where it is supported",
            cites,
        )
    return fine("the target's KV is not replicated" if tp > 1 else "tp_size 1", cites)


LINTS = (verify_kernel, cuda_graphs, replicated_kv)
