"""Lines of a server's log that matter when it starts or dies: one line in, its kind and values out.

    Initialized DFLASH draft runner. attention_backend=flashinfer, model=DFlashDraftModel, block_size=8, …  draft_runner
    DFLASH block size mismatch: using speculative_num_draft_tokens=16 but draft config block_size=8.      block_mismatch
    Parameter model.layers.61.eh_proj.weight not found in params_dict                                    weights_skipped

The formats are SGLang's, vLLM's and llama.cpp's own; a new one is a row in `CATALOGUE`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

LONGEST = 2048
"""Characters of a line that are looked at: what is looked for stands at its beginning."""


@dataclass(frozen=True, slots=True)
class Said:
    """What a line says."""

    kind: str
    values: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class _Row:
    kind: str
    needle: str
    """Text without which the pattern cannot match."""
    pattern: re.Pattern[str]


_ONLY_AT_START = re.compile(
    r"is greater than the derived context_length|Not enough memory\. Please try|speculative decoding (?:requires|only supports|is not supported)"
    r"|(?:DFLASH|DSPARK|EAGLE\d?|NEXTN|UNO) (?:speculative decoding |tree mode )?(?:requires|only supports|does not support)"
    r"|Please check your hidden size|size mismatch for [\w.]+|does not recognize this architecture|annot find the config file for"
    r"|Unknown quantization method|is larger than the maximum number of tokens that can be stored in KV cache"
    r"|exceeds the model's maximum context|User-specified max_model_len"
)


def _row(kind: str, needle: str, pattern: str = "") -> _Row:
    return _Row(kind, needle, re.compile(pattern or re.escape(needle)))


CATALOGUE: tuple[_Row, ...] = (
    # --- it starts, and it is up
    _row("launched", "server_args=", r"server_args=(?:ServerArgs\(|\{)"),
    _row("launched", "non-default args: {"),
    _row("launched", "LLM engine", r"Initializing an? (?:V\d )?LLM engine\b.* with config"),
    _row("launched", "initializing ...", r"(?:llama_server|\bmain): initializing \.\.\."),
    _row("ready", "The server is fired up and ready to roll"),
    _row("ready", "listening on http", r"(?:llama_server|main|server): (?:server is )?listening on http"),
    _row("app_started", "Application startup complete"),
    # --- the drafter, as it was loaded
    _row("draft_loading", "oading draft", r"[Ll]oading draft(?:er)? model"),
    _row("weights_begin", "Load weight begin"),
    _row(
        "draft_runner",
        "draft runner. ",
        r"Initialized (?P<algorithm>[\w-]+) draft runner\. attention_backend=(?P<attention_backend>[^,]*), "
        r"model=(?P<model>[^,]*), block_size=(?P<block_size>[^,]*), draft_window_size=(?P<draft_window_size>[^,]*)",
    ),
    _row(
        "draft_runner",
        "Initialized DDTree worker",
        r"Initialized (?P<algorithm>DDTree) worker\. block_size=(?P<block_size>[^,]*), "
        r"tree_budget=(?P<tree_budget>[^,]*), max_tree_nodes=(?P<max_tree_nodes>\S+)",
    ),
    _row(
        "draft_ready",
        "draft runner ready",
        r"draft runner ready\. mask_token=(?P<mask_token>.*?), mask_token_id=(?P<mask_token_id>[^,]*), "
        r"mask_token_id_override=(?P<mask_token_id_override>[^,]*)",
    ),
    _row(
        "mask_embedding_merged",
        "Merged trained mask embedding",
        r"Merged trained mask embedding.*?(?:mask_token_id=(?P<mask_token_id>\d+))",
    ),
    _row(
        "mask_token_added",
        "mask token to tokenizer",
        r"Added \w+ mask token to tokenizer\. token=(?P<token>.*?), mask_token_id=(?P<mask_token_id>\d+)",
    ),
    _row("max_model_len", "Using max model len", r"Using max model len (?P<length>\d+)"),
    # llama.cpp: of a model and its context, and of what one request may have
    _row(
        "context",
        "n_ctx_train (",
        r"n_ctx(?:_per|_pre)?(?:_seq)? \((?P<length>\d{1,15})\) [<>]=? n_ctx_train \((?P<trained>\d{1,15})\)",
    ),
    _row("slot_context", "n_ctx_slot = ", r"(?:n_slots = (?P<slots>\d{1,6}), |new slot,? )n_ctx_slot = (?P<length>\d{1,15})"),
    _row("slot_context", "new slot, n_ctx = ", r"new slot, n_ctx = (?P<length>\d{1,15})"),
    _row(
        "context_capped",
        "exceeds the training context",
        r"slot context \((?P<asked>\d{1,15})\) exceeds the training context of the model \((?P<trained>\d{1,15})\) - capping",
    ),
    _row("batch", "n_batch ", r"llama_\w+: n_batch\s+= (?P<tokens>\d{1,15})"),
    _row("requests_reset", "Max running requests is reset", r"Max running requests is reset to (?P<requests>\d+)"),
    # --- what it complains of
    _row(
        "block_mismatch",
        "block size mismatch",
        r"block size mismatch: using speculative_num_draft_tokens=(?P<served>\d+) but draft config block_size=(?P<trained>\d+)",
    ),
    _row("block_assumed", "Failed to infer", r"Failed to infer \w+ block_size from draft model config; defaulting"),
    _row(
        "target_layers_differ",
        "num_target_layers=",
        r"Draft config num_target_layers=(?P<trained>\d+) differs from runtime target num_hidden_layers=(?P<served>\d+)",
    ),
    _row(
        "length_overridden",
        "draft model's max_position_embeddings",
        r"Overriding the draft model's max_position_embeddings to (?P<length>\d+)",
    ),
    _row(
        "fallback_backend",
        "draft worker",
        r"(?P<algorithm>\w+) draft worker (?:only supports|does not support) attention_backend.*?"
        r"(?:got '?(?P<asked>\w+)'?.*?Falling back to '?(?P<taken>\w+)'?)?\.?\s*$",
    ),
    _row(
        "window_ignored",
        "has no effect with",
        r"--speculative-(?:dflash-)?draft-window-size has no effect with speculative_algorithm=(?P<algorithm>\S+)",
    ),
    _row(
        "graph_off",
        "isable ",
        r"Disable (?P<what>\w+ draft|decode) (?:cuda|CUDA) graph because (?P<why>.*)",
    ),
    _row("graph_off", "graph is disabled", r"^(?!.*[Pp]iecewise)(?!.*prefill).*\b[Cc](?:uda|UDA) ?graph is disabled (?P<why>.*)"),
    _row("graph_off", "Enforce eager set", r"Enforce eager set, (?P<why>disabling .*CUDAGraphs)"),
    _row(
        "greedy_fallback",
        "falling back to greedy",
        r"non-greedy verification is unavailable.*falling back to greedy argmax",
    ),
    _row("slow_path", "falling back to", r"(?P<what>DFLASH|DSPARK|EAGLE).*failed[;,] falling back to (?P<taken>[\w -]+)"),
    _row("slow_path", "fused KV materialization disabled", r"(?P<what>\w+) fused KV materialization disabled: (?P<why>.*)"),
    _row(
        "rope_key_missing",
        "rope_scaling (type=",
        r"rope_scaling \(type=(?P<type>[^)]*)\) missing key '(?P<key>\w+)', defaulting to (?P<default>[^.]*(?:\.\d+)?)",
    ),
    _row("speculation_off", "peculative decoding", r"[Ss]peculative decoding (?:is |will be |has been )?(?:disabled|not supported|turned off)\b(?P<why>.*)"),
    _row("dtype_cast", "Casting torch", r"Casting torch\.(?P<stored>\w+) to torch\.(?P<taken>\w+)"),
    # --- weights
    _row(
        "weights_skipped",
        "not found in",
        r"(?:Parameter|Weight|Audio param)?\s*'?(?P<tensor>[\w]+(?:\.[\w-]+)+)'? not found in (?:params_dict|model|the model)",
    ),
    _row("weights_skipped", "kipping", r"[Ss]kipping (?:unexpected |unknown |loading )?(?:weight|parameter|param|tensor):? '?(?P<tensor>\w+(?:\.[\w-]+)+)"),
    _row(
        "weights_uninitialised",
        "nitialized from",
        r"(?:[Ww]eights? (?:of .{0,200}? )?(?:are|were|is|was) not initialized from (?:the )?(?:model )?checkpoints?)"
        r"[^{\[]*(?P<tensors>[{\[].{0,400})?",
    ),
    _row("weights_uninitialised", "not found in the checkpoint", r"(?P<count>\d+) parameters were not found in the checkpoint"),
    _row("weights_unused", "not used when initializing", r"Some weights of the model checkpoint.* were not used when initializing"),
    _row("weights_unused", "unused tensor", r"unused tensor '?(?P<tensor>\w+(?:\.[\w-]+)+)"),
    _row(
        "kv_scales_missing",
        "scaling factor",
        r"(?:no scaling factors provided|does not provide a \w+ scaling factor|Using KV cache scaling factor 1\.0)",
    ),
    # --- memory and hardware
    _row("out_of_memory", "ut of memory", r"(?:CUDA|HIP|device|Vulkan) (?:error: )?out of memory|torch\.(?:cuda\.)?OutOfMemoryError|Out of memory: Killed"),
    _row("out_of_memory", "Not enough memory", r"Not enough memory\. Please try"),
    _row("out_of_memory", "cudaMalloc failed", r"cudaMalloc failed: out of memory"),
    _row("xid", "Xid", r"NVRM: Xid \((?P<device>[^)]*)\): (?P<xid>\d+)"),
    # --- it dies
    _row("died", "Scheduler hit an exception"),
    _row("died", "SIGQUIT received"),
    _row("died", "ngine core initialization failed"),
    _row("died", "EngineDeadError"),
    _row("died", "WorkerProc initialization failed"),
    _row("died", "Engine core proc", r"Engine core proc \S+ died"),
    _row("died", "EngineCore", r"EngineCore (?:failed to start|encountered a fatal error|hit an exception)"),
    _row("died", "Received sigquit from a child process"),
    _row("died", "exiting due to model loading error"),
    _row("died", "Fatal Python error"),
    _row("died", "Segmentation fault"),
    _row("died", "GGML_ASSERT", r"GGML_ASSERT\(.*\) failed"),
    _row("died", "error: ", r"(?:launch_server|vllm|api_server|llama-server)\S*(?: serve)?: error: (?P<why>.*)"),
    _row("draft_failed", "draft", r"(?:failed to (?:load|create) (?:the )?draft (?:model|context)|draft model .{0,80}(?:not|in)compatible|vocab.{0,40}draft.{0,60}(?:must match|not compatible|incompatible))"),
)  # fmt: skip

TRACEBACK = "Traceback (most recent call last)"
# vLLM's `(EngineCore pid=2) ERROR 11-30 15:38:49 [core.py:906] `, SGLang's `[2026-06-14 10:00:40 TP0] `, a time, a level.
_PREFIX = re.compile(
    r"(?:\x1b\[[\d;]*m|\([\w .]+ pid=\d+(?:,[^)]*)?\)\s|\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[^\]]*\]\s"
    r"|(?:ERROR|WARNING|INFO|CRITICAL)(?::|\s\d\d-\d\d \d\d:\d\d:\d\d)\s?|\[[\w.]+:\d+\] ?|\d{4}-\d\d-\d\d[T ]\S+\s)"
)
_EXCEPTION = re.compile(
    r"(?P<type>(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Fault|Unavailable))(?:: (?P<message>.*))?\Z", re.DOTALL
)  # fmt: skip
_SECONDARY = re.compile(
    r"(?:root cause|stack trace|EngineDeadError|Broken ?Pipe|ConnectionReset|EOFError|SystemExit|KeyboardInterrupt"
    r"|died before|CancelledError|ChildProcessError|one child failed)"
)
_RANK = re.compile(r"\b([DPE]P\d+ )?TP\d+")


def read(line: str) -> Said | None:
    """What the line says; None for the many that say nothing of a start."""
    line = line[:LONGEST]
    for row in CATALOGUE:
        if row.needle in line and (found := row.pattern.search(line)):
            values = tuple((name, value.strip()) for name, value in found.groupdict().items() if value)
            return Said(row.kind, values)
    return None


def bare(line: str) -> str:
    """The line without what the logger put before it."""
    at = 0
    while found := _PREFIX.match(line, at):
        at = found.end()
    return line[at:]


def exception(line: str) -> tuple[str, str] | None:
    """The type and message of an exception, where the line (without prefix) is the last of a traceback."""
    if line[:1].isspace() or not (found := _EXCEPTION.match(line[:LONGEST])):
        return None
    return found["type"].rpartition(".")[2], (found["message"] or "").strip()


def only_at_start(said: str) -> bool:
    """Whether an exception is of a kind that servers raise over what they were started with, and never while they serve."""
    return bool(_ONLY_AT_START.search(said))


def is_secondary(text: str) -> bool:
    """True for an exception that only passes on that something else went wrong."""
    return bool(_SECONDARY.search(text))


def rank(line: str) -> str:
    """`TP0` of the rank that wrote the line; empty where none is named."""
    found = _RANK.search(line[:96])
    return found.group() if found else ""
