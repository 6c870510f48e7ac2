"""vLLM: `vllm serve MODEL …` or its OpenAI server module, its workers titled `VLLM::EngineCore`, `VLLM::Worker_TP0`."""

from __future__ import annotations

import posixpath
import re
from typing import Any, ClassVar

from ddprobe.engines.base import Answers, Engine, document, items, mapping, python_run, text, whole_number
from ddprobe.engines.vllm_generation import VLLMGeneration
from ddprobe.facts import ServerState
from ddprobe.parsing import prometheus
from ddprobe.parsing.server_args import Dialect

# Flags without a value, so that the model's name may follow one.
_SWITCHES = re.compile(
    r"(enable|disable|no)_\w+\Z|(trust_remote_code|enforce_eager|headless|async_scheduling"
    r"|aggregate_engine_logging|calculate_kv_scales|return_tokens_as_token_ids|skip_tokenizer_init)\Z"
)
# vLLM's own name → the shared one.
_SHARED = {
    "model": "model_path",
    "max_model_len": "context_length",
    "tensor_parallel_size": "tp_size",
    "pipeline_parallel_size": "pp_size",
    "data_parallel_size": "dp_size",
}
_SPECULATIVE = {
    "method": "speculative_algorithm",
    "model": "speculative_draft_model_path",
    "revision": "speculative_draft_model_revision",
    "num_speculative_tokens": "num_speculative_tokens",
}
# Flags that stand for one field of --speculative-config.
_SPECULATIVE_FLAGS = {
    "spec_method": "method",
    "spec_model": "model",
    "spec_tokens": "num_speculative_tokens",
}


class VLLM(Engine):
    """vLLM's dialect, release 0.32."""

    name = "vllm"
    generation = VLLMGeneration()
    title = "vLLM"
    package = "vllm"
    default_port = 8000
    needle = "bin/[v]llm|[v]llm[./]entrypoints"
    rank_needle = "VLLM:[:]"
    rank_titles = ("VLLM::Worker", "VLLM::EngineCore")
    paths = ("/health", "/version", "/v1/models", "/metrics")
    essential = "/v1/models"
    config_file = "config"
    environment_matters = (
        "variables that change its behaviour (VLLM_…) or where its modules come from (PYTHONPATH)"
    )
    flags: ClassVar = {
        "model_path": "--model",
        "context_length": "--max-model-len",
        "tp_size": "--tensor-parallel-size",
        "pp_size": "--pipeline-parallel-size",
        "dp_size": "--data-parallel-size",
        "speculative_algorithm": "--speculative-config.method",
        "speculative_draft_model_path": "--speculative-config.model",
        "speculative_draft_model_revision": "--speculative-config.revision",
        "num_speculative_tokens": "--speculative-config.num_speculative_tokens",
    }
    dialect = Dialect(
        aliases={
            "tp": "tensor_parallel_size",
            "pp": "pipeline_parallel_size",
            "dp": "data_parallel_size",
            "q": "quantization",
            "sc": "speculative_config",
            "cc": "compilation_config",
            "O": "optimization_level",
        },
        switches=_SWITCHES,
        many=frozenset({"served_model_name", "lora_modules", "middleware", "api_key", "cuda_graph_sizes"}),
        texts=frozenset({"model", "tokenizer", "served_model_name", "revision", "api_key", "host"}),
        positional="model",
        single_dash=True,
    )

    def arguments(self, argv: tuple[str, ...]) -> tuple[str, ...] | None:
        run = python_run(argv)
        if run is None:
            named = bool(argv) and posixpath.basename(argv[0]) == "vllm"
            return argv[2:] if named and argv[1:2] == ("serve",) else None
        if run.module == "vllm.entrypoints.openai.api_server" or run.script.endswith(
            "vllm/entrypoints/openai/api_server.py"
        ):
            return run.rest
        command = run.module == "vllm.entrypoints.cli.main" or posixpath.basename(run.script) == "vllm"
        return run.rest[1:] if command and run.rest[:1] == ("serve",) else None

    def canonical(self, values: dict[str, Any]) -> dict[str, Any]:
        found = _nested(values)
        for name, shared in _SHARED.items():
            if name in found:
                found[shared] = found[name]
        short = {field: found[flag] for flag, field in _SPECULATIVE_FLAGS.items() if flag in found}
        speculative = found.get("speculative_config")
        if short and (speculative is None or isinstance(speculative, dict)):
            speculative = found["speculative_config"] = {**(speculative or {}), **short}
        if isinstance(speculative, dict):
            for name, shared in _SPECULATIVE.items():
                if name in speculative:
                    found[shared] = speculative[name]
        return found

    def state(self, base: str, answers: Answers) -> ServerState:
        health = answers.get("/health")
        models = items(mapping(document(answers, "/v1/models")).get("data"))
        model = models[0] if models else {}
        metrics = answers.get("/metrics")
        values = prometheus.totals(metrics.text) if metrics is not None and metrics.whole else {}
        running = values.get("vllm:num_requests_running")
        waiting = values.get("vllm:num_requests_waiting")
        return ServerState(
            engine=self.name,
            base=base,
            healthy=health.status == 200 if health is not None and health.status is not None else None,
            version=text(mapping(document(answers, "/version")).get("version")),
            model=text(model.get("root")) or text(model.get("id")),
            context_length=whole_number(model.get("max_model_len")),
            running_requests=None if running is None else int(running),
            waiting_requests=None if waiting is None else int(waiting),
            token_usage=values.get("vllm:kv_cache_usage_perc"),
        )


def _nested(values: dict[str, Any]) -> dict[str, Any]:
    """`--speculative-config.method ngram` is one field of the JSON that `--speculative-config` takes."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        outer, dot, inner = name.partition(".")
        if not dot:
            found[name] = value
            continue
        held = found.get(outer)
        found[outer] = {**(held if isinstance(held, dict) else {}), inner: value}
    return found
