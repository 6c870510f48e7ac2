"""llama.cpp: one `llama-server` process without workers."""

from __future__ import annotations

import posixpath
from typing import Any, ClassVar

from ddprobe.engines.base import Answers, Engine, document, items, mapping, text, whole_number
from ddprobe.engines.llamacpp_generation import LlamaCppGeneration
from ddprobe.facts import ServerState
from ddprobe.parsing.server_args import Dialect

_ALIASES = {
    "m": "model_path",
    "model": "model_path",
    "hf": "hf_repo",
    "hfr": "hf_repo",
    "md": "speculative_draft_model_path",
    "model-draft": "speculative_draft_model_path",
    "spec-draft-model": "speculative_draft_model_path",
    "hfd": "hf_repo_draft",
    "hfrd": "hf_repo_draft",
    "spec-draft-hf": "hf_repo_draft",
    "spec-type": "speculative_algorithm",
    "spec-draft-n-max": "num_speculative_tokens",
    "draft": "num_speculative_tokens",
    "draft-n": "num_speculative_tokens",
    "draft-max": "num_speculative_tokens",
    "c": "ctx_size",
    "cd": "ctx_size_draft",
    "np": "parallel",
    "n-parallel": "parallel",
    "n": "n_predict",
    "predict": "n_predict",
    "b": "batch_size",
    "ub": "ubatch_size",
    "t": "threads",
    "tb": "threads_batch",
    "fa": "flash_attn",
    "ngl": "n_gpu_layers",
    "gpu-layers": "n_gpu_layers",
    "ngld": "spec_draft_ngl",
    "gpu-layers-draft": "spec_draft_ngl",
    "n-gpu-layers-draft": "spec_draft_ngl",
    "sm": "split_mode",
    "ts": "tensor_split",
    "mg": "main_gpu",
    "dev": "device",
    "devd": "device_draft",
    "spec-draft-device": "device_draft",
    "ctk": "cache_type_k",
    "ctv": "cache_type_v",
    "ctkd": "cache_type_k_draft",
    "spec-draft-type-k": "cache_type_k_draft",
    "ctvd": "cache_type_v_draft",
    "spec-draft-type-v": "cache_type_v_draft",
    "a": "alias",
    "cb": "cont_batching",
    "kvu": "kv_unified",
    "cram": "cache_ram",
    "ot": "override_tensor",
    "lv": "verbosity",
    "v": "verbose",
    "s": "seed",
}


REMOVED = frozenset({"--draft", "--draft-n", "--draft-max", "--draft-min", "--draft-n-min"})
"""Flags at which builds that know --spec-type do not start (seen with b11434): older ones draft with a draft model alone."""


class LlamaCpp(Engine):
    """llama-server's dialect, builds b10434 to b11434."""

    name = "llamacpp"
    generation = LlamaCppGeneration()
    title = "llama.cpp"
    package = ""
    default_port = 8080
    needle = "[l]lama-server"
    certificate = "ssl_cert_file"
    environment_matters = "arguments given by variables (LLAMA_ARG_…)"
    variables = "LLAMA_ARG_"
    paths = ("/health", "/props", "/slots", "/v1/models")
    essential = "/props"
    flags: ClassVar = {
        "model_path": "--model",
        "context_length": "--ctx-size (each slot)",
        "speculative_algorithm": "--spec-type",
        "speculative_draft_model_path": "--model-draft",
        "num_speculative_tokens": "--spec-draft-n-max",
    }
    dialect = Dialect(
        aliases=_ALIASES,
        texts=frozenset(
            {"model_path", "speculative_draft_model_path", "alias", "api_key", "host", "tensor_split"}
        ),
        single_dash=True,
    )

    def arguments(self, argv: tuple[str, ...]) -> tuple[str, ...] | None:
        return argv[1:] if argv and posixpath.basename(argv[0]) == "llama-server" else None

    def given(self, argv: tuple[str, ...], environment: tuple[tuple[str, str], ...] = ()) -> dict[str, Any]:
        """As all engines; what newer builds have removed is named beside, as `removed_flags`."""
        words = {word.partition("=")[0] for word in self.arguments(argv) or ()}
        removed = ", ".join(sorted(words & REMOVED))
        return {
            **super().given(argv, environment),
            **({"removed_flags": removed} if removed else {}),
        }

    def canonical(self, values: dict[str, Any]) -> dict[str, Any]:
        """`-c` is shared by the slots, and one request's limit is its share, unless they have one KV cache for all.

        Without `-np` there is one for all.
        """
        context, slots = values.get("ctx_size"), values.get("parallel")
        if not isinstance(context, int) or isinstance(context, bool) or context <= 0:
            return values
        if not isinstance(slots, int) or slots <= 0 or values.get("kv_unified") in (True, 1):
            slots = 1
        return {**values, "context_length": context // slots}

    def state(self, base: str, answers: Answers) -> ServerState:
        health = answers.get("/health")
        props = mapping(document(answers, "/props"))
        settings = mapping(props.get("default_generation_settings"))
        slots = items(document(answers, "/slots"))
        models = items(mapping(document(answers, "/v1/models")).get("data"))
        kinds = [text(mapping(slot.get("params")).get("speculative.types")) for slot in slots]
        details = (
            ("slots", str(props["total_slots"]) if "total_slots" in props else ""),
            (
                "slots with speculation",
                str(sum(slot.get("speculative") is True for slot in slots)) if slots else "",
            ),
            ("speculation, as of each slot's last request", ", ".join(dict.fromkeys(filter(None, kinds)))),
        )
        return ServerState(
            engine=self.name,
            base=base,
            healthy=health.status == 200 if health is not None and health.status is not None else None,
            version=text(props.get("build_info")),
            model=text(props.get("model_path")) or text(models[0].get("id") if models else ""),
            context_length=whole_number(settings.get("n_ctx")),
            running_requests=sum(slot.get("is_processing") is True for slot in slots) if slots else None,
            details=tuple((name, value) for name, value in details if value),
        )
