"""SGLang: `python -m sglang.launch_server …` or `sglang serve …`, its workers titled `sglang::scheduler_TP0`."""

from __future__ import annotations

import posixpath
from typing import ClassVar

from ddprobe.engines.base import (
    Answers,
    Engine,
    document,
    items,
    mapping,
    number,
    python_run,
    text,
    total,
    whole_number,
)
from ddprobe.engines.sglang_generation import SGLangGeneration
from ddprobe.facts import ServerState
from ddprobe.parsing.server_args import Dialect

_MODULES = frozenset({"sglang.launch_server", "sglang.srt.entrypoints.http_server"})


class SGLang(Engine):
    """SGLang's dialect, releases 0.4.10 to 0.5.23."""

    name = "sglang"
    generation = SGLangGeneration()
    title = "SGLang"
    package = "sglang"
    default_port = 30000
    needle = "sglang[./]launch_[s]erver|sglang[./]srt[./]entrypoints[./]http_[s]erver|bin/[s]glang"
    rank_needle = "sglang:[:]"
    rank_titles = ("sglang::scheduler",)
    # /health runs a generation and takes a second; /ready does not.
    paths = ("/server_info", "/model_info", "/v1/models", "/v1/loads", "/ready")
    essential = "/server_info"
    argument_paths = ("/server_info", "/get_server_info")
    config_file = "config"
    environment_matters = (
        "variables that change its behaviour (SGLANG_SIMULATE_ACC_LEN and its like) or where its modules come from "
        "(PYTHONPATH)"
    )
    not_arguments = frozenset({"internal_states", "launch_command", "kv_events", "env_vars"})
    older: ClassVar = {"/server_info": "/get_server_info", "/model_info": "/get_model_info"}
    dialect = Dialect(
        aliases={
            "model": "model_path",
            "tp": "tp_size",
            "tensor-parallel-size": "tp_size",
            "pp": "pp_size",
            "pipeline-parallel-size": "pp_size",
            "dp": "dp_size",
            "data-parallel-size": "dp_size",
            "ep": "ep_size",
            "expert-parallel-size": "ep_size",
            "attention-data-parallel-size": "attn_dp_size",
            "attention-context-parallel-size": "attn_cp_size",
            "decode-context-parallel-size": "dcp_size",
            "moe-data-parallel-size": "moe_dp_size",
            "nccl-init-addr": "dist_init_addr",
            "speculative-draft-model": "speculative_draft_model_path",
            "speculative-draft": "speculative_draft_model_path",  # while no other flag began so
            "enable-hicache": "enable_hierarchical_cache",
            "stream-output": "incremental_streaming_output",
            "fp8-gemm-backend": "fp8_gemm_runner_backend",
            "fp4-gemm-backend": "fp4_gemm_runner_backend",
            "hierarchical-sparse-attention-extra-config": "hisparse_config",
        },
        shortened=(
            "attention_backend", "context_length", "json_model_override_args",
            "kv_cache_dtype", "max_running_requests", "mem_fraction_static", "model_path", "page_size",
            "speculative_algorithm", "speculative_attention_mode", "speculative_dflash_block_size",
            "speculative_draft_kv_cache_dtype", "speculative_draft_model_path", "speculative_draft_model_quantization",
            "speculative_draft_window_size", "speculative_dspark_block_size", "speculative_eagle_topk",
            "speculative_ngram_max_bfs_breadth", "speculative_num_draft_tokens", "speculative_num_steps",
        ),
        many=frozenset(
            {
                "cuda_graph_bs", "cuda_graph_bs_decode", "cuda_graph_bs_prefill", "piecewise_cuda_graph_tokens",
                "lora_paths", "lora_target_modules", "numa_node", "gc_threshold", "debug_tensor_dump_layers",
                "encoder_urls", "log_requests_target", "custom_weight_loader", "bucket_time_to_first_token",
                "bucket_inter_token_latency", "bucket_e2e_request_latency", "prompt_tokens_buckets",
                "generation_tokens_buckets", "prefill_delayer_forward_passes_buckets",
                "prefill_delayer_wait_seconds_buckets", "tokenizer_metrics_allowed_custom_labels",
                "uvicorn_access_log_exclude_prefixes", "allowed_media_domains",
            }
        ),
        texts=frozenset(
            {
                "model_path", "tokenizer_path", "served_model_name", "revision", "api_key", "host", "chat_template",
                "speculative_draft_model_path", "speculative_draft_model_revision", "weight_version",
            }
        ),
    )  # fmt: skip

    def arguments(self, argv: tuple[str, ...]) -> tuple[str, ...] | None:
        run = python_run(argv)
        if run is None:
            named = bool(argv) and posixpath.basename(argv[0]) == "sglang"
            return _served(argv[2:]) if named and argv[1:2] == ("serve",) else None
        if run.module in _MODULES or run.script.endswith(
            ("sglang/launch_server.py", "sglang/srt/entrypoints/http_server.py")
        ):
            return run.rest
        command = posixpath.basename(run.script) == "sglang" and run.rest[:1] == ("serve",)
        return _served(run.rest[1:]) if command else None

    def state(self, base: str, answers: Answers) -> ServerState:
        info = mapping(document(answers, "/server_info", "/get_server_info"))
        model = mapping(document(answers, "/model_info", "/get_model_info"))
        served = items(mapping(document(answers, "/v1/models")).get("data"))
        told = mapping(document(answers, "/v1/loads"))
        ranks = items(info.get("internal_states"))
        loads = items(told.get("loads"))
        rank = ranks[0] if ranks else {}
        usages = [usage for load in loads if (usage := number(load.get("token_usage"))) is not None]
        return ServerState(
            engine=self.name,
            base=base,
            healthy=_healthy(info, answers),
            version=text(info.get("version")) or text(told.get("version")),
            model=text(model.get("model_path")) or text(info.get("model_path")),
            draft_model=text(info.get("speculative_draft_model_path")),
            context_length=whole_number(served[0].get("max_model_len") if served else None)
            or whole_number(info.get("context_length")),
            running_requests=total(loads, "num_running_reqs"),
            waiting_requests=total(loads, "num_waiting_reqs"),
            token_usage=max(usages, default=None),
            accept_length_lifetime=number(rank.get("avg_spec_accept_length")),
            details=_details(info, model, rank, loads),
        )


def _served(words: tuple[str, ...]) -> tuple[str, ...]:
    """`sglang serve MODEL …` is `sglang serve --model-path MODEL …`."""
    return ("--model-path", *words) if words and not words[0].startswith("-") else words


def _healthy(info: dict[str, object], answers: Answers) -> bool | None:
    """What /ready says; older releases have no /ready and say it in their status."""
    ready = answers.get("/ready")
    if ready is not None and ready.status in (200, 503):
        return ready.status == 200
    return info.get("status") == "ready" if "status" in info else None


def _details(
    info: dict[str, object],
    model: dict[str, object],
    rank: dict[str, object],
    loads: list[dict[str, object]],
) -> tuple[tuple[str, str], ...]:
    """Numbers worth a look that have no field of their own."""
    first = loads[0] if loads else {}
    speculative = mapping(first.get("speculative"))
    memory = mapping(rank.get("memory_usage"))
    architectures = model.get("architectures")
    named = [
        ("status", info.get("status")),
        ("architecture", ", ".join(map(str, architectures)) if isinstance(architectures, list) else None),
        ("token capacity (max_total_num_tokens)", info.get("max_total_num_tokens")),
        ("longest input (max_req_input_len)", info.get("max_req_input_len")),
        ("requests at once, per DP rank", rank.get("effective_max_running_requests_per_dp")),
        ("last generation throughput, token/s", rank.get("last_gen_throughput")),
        ("weights, GB", memory.get("weight")),
        ("KV cache, GB", memory.get("kvcache")),
        ("cache hit rate, last window", first.get("cache_hit_rate")),
        ("accept length, last window", speculative.get("accept_length")),
        ("accept rate, last window", speculative.get("accept_rate")),
    ]
    return tuple(
        (name, f"{value:g}" if isinstance(value, float) else str(value)[:200])
        for name, value in named
        if value is not None
    )
