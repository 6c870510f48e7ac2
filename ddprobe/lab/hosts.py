"""The made-up hosts of the scenarios: what each serves, on what, and which part of it works badly.

Nothing here says how long a commit is or what is wrong: that comes out of the engine that is built from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ddprobe.lab import models
from ddprobe.lab.engine.decoding import Law
from ddprobe.lab.engine.heat import Heat
from ddprobe.lab.engine.wiring import Parts
from ddprobe.lab.install import ADMIN_KEY, machine
from ddprobe.lab.machine import Machine
from ddprobe.lab.serving import Serving
from ddprobe.lab.tree import File

_SERIAL_ATTENTION = Law(step=0.0085, per_token=7.7e-6)
"""Few thread blocks walk through the whole context one after the other."""
_PARALLEL_ATTENTION = Law(step=0.010, per_token=55e-9)
"""Each step reads the whole KV cache, 147 kB a token, at four fifths of the memory's bandwidth."""
HOT_AFTER = 0.6
"""Seconds of steps, on the lab's clock, until the hot host's clock begins to fall."""
_NO_SPECULATION: Mapping[str, Any] = {"speculative_algorithm": None}


def founding_story() -> Machine:
    """The host of the investigation that ddprobe replays."""
    return _kimi(
        "lab-gpu01",
        {"speculative_ddtree_budget": 16},
        Parts(law=_SERIAL_ATTENTION, learnt=0.62, hints=0.4, commits_accepted=False),
    )


def slow_attention() -> Machine:
    """The same hardware and kernel, and a drafter that works."""
    return _kimi("lab-gpu03", {}, Parts(law=_SERIAL_ATTENTION))


def healthy() -> Machine:
    """A host on which nothing is wrong."""
    return _qwen("lab-gpu02", Parts(law=_PARALLEL_ATTENTION))


def hard_text() -> Machine:
    """Little of what the target says can be foreseen."""
    return _qwen("lab-gpu04", Parts(law=_PARALLEL_ATTENTION, learnt=0.05, hints=0.05))


def rope_cliff() -> Machine:
    """The drafter's positions are stretched to 32k, and the server lets more in."""
    yarn = {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 4096}
    return _qwen("lab-gpu05", Parts(law=_PARALLEL_ATTENTION), drafter={"rope_scaling": yarn})


def window_not_applied() -> Machine:
    """The drafter was trained with a window, and its configuration does not say in which layers."""
    return _qwen("lab-gpu06", Parts(law=_PARALLEL_ATTENTION), drafter={"layer_types": None})


def dead_drafter() -> Machine:
    """A conversion lost some of the drafter's weights: the server starts with random ones in their place."""
    return _qwen("lab-gpu07", Parts(law=_PARALLEL_ATTENTION), lost=("hidden_norm.", "layers.0."))


def not_speculating() -> Machine:
    """Started without the arguments that ask for speculation."""
    return _qwen("lab-gpu08", Parts(law=_PARALLEL_ATTENTION), given=_NO_SPECULATION)


def metric_lies() -> Machine:
    """Accepted tokens are counted with the root of their path."""
    return _qwen("lab-gpu09", Parts(law=_PARALLEL_ATTENTION, counts_root=True))


def cache_loses_draft_kv() -> Machine:
    """A second-level cache gives back the target's part of a prefix and not the drafter's."""
    return _qwen(
        "lab-gpu10",
        Parts(law=_PARALLEL_ATTENTION, cached_states=False),
        given={"enable_hierarchical_cache": True},
    )


def simulated_acceptance() -> Machine:
    """A benchmark's variable was left in the environment."""
    return _qwen("lab-gpu11", Parts(law=_PARALLEL_ATTENTION), environment={"SGLANG_SIMULATE_ACC_LEN": "6"})


def hot_gpus() -> Machine:
    """A fan stands still: after some seconds of work the clock is held down, and every step takes longer."""
    heat = Heat(after=HOT_AFTER, ramp=HOT_AFTER / 2, clock_mhz=1980.0, floor_mhz=990.0)
    return _qwen("lab-gpu12", Parts(law=_PARALLEL_ATTENTION, heat=heat))


# --- the two kinds of host ---------------------------------------------------------------------------------


def _kimi(hostname: str, given: Mapping[str, Any], parts: Parts) -> Machine:
    drafter = models.KIMI_DRAFTER
    return machine(
        Serving(
            hostname=hostname,
            gpu="NVIDIA RTX PRO 6000 Blackwell Server Edition",
            gpus=8,
            bandwidth=1792.0,
            target="moonshotai/Kimi-K2.6",
            target_config=models.KIMI_TARGET,
            target_files={
                "config.json": models.document(models.KIMI_TARGET),
                "tokenizer_config.json": models.document(models.KIMI_TOKENS),
                **models.shards(64, 9.28),
            },
            special_tokens=163584,
            drafter="z-lab/Kimi-K2.6-DFlash",
            drafter_config=drafter,
            drafter_files={
                "config.json": models.document(drafter),
                "model.safetensors": models.drafter_weights(drafter),
                "README.md": File(
                    content=b"# Kimi-K2.6-DFlash\n\nddprobe lab: a stand-in for a model card.\n"
                ),
            },
            given={
                "model_path": "moonshotai/Kimi-K2.6",
                "tp_size": 8,
                "trust_remote_code": True,
                "context_length": 262144,
                "attention_backend": "triton",
                "mem_fraction_static": 0.9,
                "speculative_algorithm": "DFLASH",
                "speculative_draft_model_path": "z-lab/Kimi-K2.6-DFlash",
                "speculative_num_draft_tokens": 8,
                **given,
                "enable_metrics": True,
                "host": "127.0.0.1",
                "port": 30000,
                "admin_api_key": ADMIN_KEY,
            },
            environment={"SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN": "1"},
            token_capacity=412160,
            weight_gb=72.4,
            kv_cache_gb=13.2,
            parts=parts,
            pace=0.0125,
            served=((1412, 161), (185300, 161)),
        )
    )


def _qwen(
    hostname: str,
    parts: Parts,
    *,
    drafter: Mapping[str, Any] | None = None,
    lost: tuple[str, ...] = (),
    given: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Machine:
    """`drafter` and `given` change fields of the configuration and arguments; None takes one out.

    `lost`: parameters whose names begin so are missing from the drafter's weights.
    """
    config = _without_none({**models.QWEN_DRAFTER, **(drafter or {})}, drafter)
    arguments = {
        "model_path": "Qwen/Qwen3-4B-Instruct-2507",
        "context_length": 163840,
        "attention_backend": "flashinfer",
        "speculative_algorithm": "DFLASH",
        "speculative_draft_model_path": "lab/Qwen3-4B-Instruct-2507-DFlash-b16",
        "speculative_num_draft_tokens": 16,
        "max_running_requests": 32,
        "enable_metrics": True,
        "host": "127.0.0.1",
        "port": 30000,
    }
    if given is _NO_SPECULATION:
        arguments = {name: value for name, value in arguments.items() if not name.startswith("speculative_")}
    else:
        arguments |= given or {}
    return machine(
        Serving(
            hostname=hostname,
            gpu="NVIDIA H100 80GB HBM3",
            gpus=1,
            bandwidth=3350.0,
            target="Qwen/Qwen3-4B-Instruct-2507",
            target_config=models.QWEN_TARGET,
            target_files={
                "config.json": models.document(models.QWEN_TARGET),
                "tokenizer_config.json": models.document(models.QWEN_TOKENS),
                **models.shards(3, 2.68),
            },
            special_tokens=151643,
            drafter="lab/Qwen3-4B-Instruct-2507-DFlash-b16",
            drafter_config=config,
            drafter_files={
                "config.json": models.document(config),
                "model.safetensors": models.drafter_weights(config, without=lost),
            },
            given=arguments,
            environment={"SGLANG_EXPOSE_OWN_ENV_VARS": "1", **(environment or {})},
            token_capacity=395216,
            weight_gb=8.1,
            kv_cache_gb=54.9,
            parts=replace(parts, trained=not lost),
            pace=0.2,
            served=((1412, 257),),
        )
    )


def _without_none(config: Mapping[str, Any], changed: Mapping[str, Any] | None) -> Mapping[str, Any]:
    return {name: value for name, value in config.items() if value is not None or name not in (changed or {})}
