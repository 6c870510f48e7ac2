"""What a made-up SGLang says of itself: the shape that the real one has, fewer keys; its numbers are the engine's own."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ddprobe.lab.engine.engine import Engine
from ddprobe.lab.engine.server import SimulatedServer
from ddprobe.lab.http import Response, json_response

_DEFAULTS: Mapping[str, Any] = {
    "tokenizer_mode": "auto",
    "load_format": "auto",
    "trust_remote_code": False,
    "context_length": None,
    "is_embedding": False,
    "revision": None,
    "json_model_override_args": "{}",
    "dtype": "auto",
    "quantization": None,
    "kv_cache_dtype": "auto",
    "mem_fraction_static": 0.88,
    "max_running_requests": 48,
    "chunked_prefill_size": 8192,
    "max_prefill_tokens": 16384,
    "schedule_policy": "fcfs",
    "page_size": 1,
    "swa_full_tokens_ratio": 0.8,
    "disable_radix_cache": False,
    "disable_overlap_schedule": False,
    "nnodes": 1,
    "node_rank": 0,
    "tp_size": 1,
    "dcp_size": 1,
    "pp_size": 1,
    "dp_size": 1,
    "ep_size": 1,
    "enable_dp_attention": False,
    "enable_dp_lm_head": False,
    "device": "cuda",
    "random_seed": 7,
    "host": "127.0.0.1",
    "port": 30000,
    "api_key": None,
    "admin_api_key": None,
    "served_model_name": None,
    "weight_version": "default",
    "stream_interval": 1,
    "log_level": "info",
    "enable_metrics": False,
    "decode_log_interval": 40,
    "attention_backend": None,
    "decode_attention_backend": None,
    "prefill_attention_backend": None,
    "sampling_backend": "flashinfer",
    "grammar_backend": "xgrammar",
    "disable_cuda_graph": False,
    "triton_attention_num_kv_splits": 8,
    "speculative_algorithm": None,
    "speculative_draft_model_path": None,
    "speculative_draft_model_revision": None,
    "speculative_num_steps": 1,
    "speculative_eagle_topk": 1,
    "speculative_num_draft_tokens": None,
    "speculative_accept_threshold_single": 1.0,
    "speculative_accept_threshold_acc": 1.0,
    "speculative_attention_mode": "prefill",
    "speculative_draft_attention_backend": None,
    "speculative_draft_window_size": None,
    "speculative_draft_kv_cache_dtype": None,
    "speculative_draft_model_quantization": None,
    "enable_hierarchical_cache": False,
    "disaggregation_mode": "null",
    "model_impl": "auto",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """An SGLang server, as it was started, and the engine in it."""

    arguments: Sequence[str]
    """The words after `sglang.launch_server`."""
    given: Mapping[str, Any]
    """What these words set, under canonical names."""
    architectures: tuple[str, ...]
    model_type: str
    version: str
    weight_gb: float
    kv_cache_gb: float
    engine: Engine

    @property
    def token_capacity(self) -> int:
        return self.engine.ledger.capacity

    @property
    def settings(self) -> dict[str, Any]:
        values = {**_DEFAULTS, **self.given}
        values["tokenizer_path"] = values["model_path"]
        values["served_model_name"] = values["served_model_name"] or values["model_path"]
        backend = values["attention_backend"]
        values["speculative_draft_attention_backend"] = (
            values["speculative_draft_attention_backend"] or backend
        )
        return values


def server(running: Running, clock: Callable[[], float]) -> SimulatedServer:
    """The server with all its answers."""
    now = clock()

    def info() -> Response:
        return json_response(_server_info(running))

    def model() -> Response:
        return json_response(_model_info(running))

    gets: dict[str, Callable[[], Response]] = {
        "/get_server_info": info,
        "/get_model_info": model,
        "/v1/models": lambda: json_response(_models(running, now)),
        "/metrics": lambda: Response(
            _metrics(running).encode(), type="text/plain; version=0.0.4; charset=utf-8"
        ),
        "/health": Response,
        "/ping": Response,
    }
    if running.engine.version >= (0, 5, 6):
        gets |= {"/server_info": info, "/model_info": model}
    if running.engine.version >= (0, 5, 8):
        gets |= {"/v1/loads": lambda: json_response(_loads(running, clock()))}
    if running.engine.version >= (0, 5, 20):
        gets |= {"/ready": Response}
    return SimulatedServer(running.engine, gets)


def _server_info(running: Running) -> dict[str, Any]:
    settings, ledger = running.settings, running.engine.ledger
    state = {
        **settings,
        "world_size": settings["tp_size"],
        "effective_max_running_requests_per_dp": settings["max_running_requests"],
        "last_gen_throughput": ledger.throughput,
        "memory_usage": {
            "weight": running.weight_gb,
            "kvcache": running.kv_cache_gb,
            "token_capacity": running.token_capacity,
        },
    }
    if ledger.lifetime is not None:
        state["avg_spec_accept_length"] = ledger.lifetime
    return {
        **settings,
        "launch_command": shlex.join(running.arguments),
        "status": "ready",
        "max_total_num_tokens": running.token_capacity,
        "max_req_input_len": (settings["context_length"] or running.token_capacity) - 6,
        "internal_states": [state],
        "kv_events": None,
        "version": running.version,
        "frontend": "python",
        "lab": True,
        "lab_seconds_per_second": running.engine.pace,
    }


def _model_info(running: Running) -> dict[str, Any]:
    settings = running.settings
    return {
        "model_path": settings["model_path"],
        "served_model_name": settings["served_model_name"],
        "tokenizer_path": settings["tokenizer_path"],
        "is_generation": True,
        "preferred_sampling_params": None,
        "weight_version": settings["weight_version"],
        "load_format": settings["load_format"],
        "reasoning_parser": None,
        "tool_call_parser": None,
        "disaggregation_mode": "null",
        "has_image_understanding": False,
        "has_audio_understanding": False,
        "model_type": running.model_type,
        "architectures": list(running.architectures),
        "lab": True,
    }


def _loads(running: Running, now: float) -> dict[str, Any]:
    ledger = running.engine.ledger
    load: dict[str, Any] = {
        "timestamp": now,
        "dp_rank": 0,
        "num_running_reqs": running.engine.running,
        "num_waiting_reqs": 0,
        "num_used_tokens": 0,
        "max_total_num_tokens": running.token_capacity,
        "max_running_requests": running.settings["max_running_requests"],
        "token_usage": 0.0,
        "gen_throughput": ledger.throughput,
        "cache_hit_rate": 0.0,
        "utilization": 0.0,
        "memory": {
            "weight_gb": running.weight_gb,
            "kv_cache_gb": running.kv_cache_gb,
            "graph_gb": 1.9,
            "token_capacity": running.token_capacity,
        },
        "queues": {"waiting": 0, "grammar": 0, "paused": 0, "retracted": 0},
    }
    if ledger.draft_tokens is not None:
        load["speculative"] = {
            "accept_length": round(ledger.accept_length or 0.0, 4),
            "accept_rate": round(ledger.accept_rate or 0.0, 4),
        }
    return {
        "version": running.version,
        "accelerator": "cuda",
        "num_accelerators": running.settings["tp_size"],
        "loads": [load],
        "lab": True,
    }


def _models(running: Running, now: float) -> dict[str, Any]:
    name = running.settings["served_model_name"]
    card = {
        "id": name,
        "object": "model",
        "created": int(now),
        "owned_by": "sglang",
        "root": name,
        "parent": None,
        "max_model_len": running.settings["context_length"],
    }
    return {"object": "list", "data": [card], "lab": True}


def _metrics(running: Running) -> str:
    model = f'engine_type="unified",model_name="{running.settings["served_model_name"]}"'
    rank = f'{model},moe_ep_rank="0",pp_rank="0",tp_rank="0"'
    ledger, settings = running.engine.ledger, running.settings
    speculates = ledger.draft_tokens is not None
    rows = [
        ("prompt_tokens_total", "counter", model, ledger.prompt_tokens),
        ("cached_tokens_total", "counter", f'cache_source="device",{model}', ledger.cached),
        ("generation_tokens_total", "counter", model, ledger.generated),
        ("num_running_reqs", "gauge", rank, running.engine.running),
        ("num_queue_reqs", "gauge", rank, 0),
        ("token_usage", "gauge", rank, 0.0),
        ("gen_throughput", "gauge", rank, ledger.throughput),
        ("spec_accept_length", "gauge", rank, round(ledger.accept_length or 0.0, 4)),
        ("spec_accept_rate", "gauge", rank, round(ledger.accept_rate or 0.0, 4)),
        ("spec_num_steps", "gauge", rank, int(speculates)),
        ("spec_num_draft_tokens", "gauge", rank, settings["speculative_num_draft_tokens"] or 0),
    ]
    if ledger.verify_calls:
        rows.append(("spec_verify_calls_total", "counter", model, ledger.verify_calls))
    lines = ["# ddprobe lab: a simulated server"]
    for name, kind, labels, value in rows:
        lines += [f"# TYPE sglang:{name} {kind}", f"sglang:{name}{{{labels}}} {float(value)}"]
    return "\n".join(lines) + "\n"
