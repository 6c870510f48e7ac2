"""The made-up hosts of the scenarios: what each serves, and on what."""

from __future__ import annotations

from ddprobe.lab import models
from ddprobe.lab.install import ADMIN_KEY, Serving, machine
from ddprobe.lab.machine import Machine
from ddprobe.lab.tree import File


def founding_story() -> Machine:
    """The host of the investigation that ddprobe replays."""
    drafter = models.KIMI_DRAFTER
    return machine(
        Serving(
            hostname="lab-gpu01",
            gpu="NVIDIA RTX PRO 6000 Blackwell Server Edition",
            gpus=8,
            target="moonshotai/Kimi-K2.6",
            target_files={
                "config.json": models.document(models.KIMI_TARGET),
                "tokenizer_config.json": models.document(models.KIMI_TOKENS),
                **models.shards(64, 9.28),
            },
            drafter="z-lab/Kimi-K2.6-DFlash",
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
                "speculative_ddtree_budget": 16,
                "enable_metrics": True,
                "host": "127.0.0.1",
                "port": 30000,
                "admin_api_key": ADMIN_KEY,
            },
            environment={"SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN": "1"},
            architecture="KimiK25ForConditionalGeneration",
            model_type="kimi_k25",
            token_capacity=412160,
            throughput=0.7,
            accept_length=1.0,
            verify_calls=2240,
            generated=2256,
            weight_gb=72.4,
            kv_cache_gb=13.2,
            log=_FOUNDING_LOG,
        )
    )


def healthy() -> Machine:
    """A host on which nothing is wrong."""
    drafter = models.QWEN_DRAFTER
    return machine(
        Serving(
            hostname="lab-gpu02",
            gpu="NVIDIA H100 80GB HBM3",
            gpus=1,
            target="Qwen/Qwen3-4B",
            target_files={
                "config.json": models.document(models.QWEN_TARGET),
                "tokenizer_config.json": models.document(models.QWEN_TOKENS),
                **models.shards(3, 2.68),
            },
            drafter="z-lab/Qwen3-4B-DFlash-b16",
            drafter_files={
                "config.json": models.document(drafter),
                "model.safetensors": models.drafter_weights(drafter),
            },
            given={
                "model_path": "Qwen/Qwen3-4B",
                "context_length": 40960,
                "attention_backend": "flashinfer",
                "speculative_algorithm": "DFLASH",
                "speculative_draft_model_path": "z-lab/Qwen3-4B-DFlash-b16",
                "speculative_num_draft_tokens": 16,
                "max_running_requests": 32,
                "enable_metrics": True,
                "host": "127.0.0.1",
                "port": 30000,
            },
            environment={"SGLANG_EXPOSE_OWN_ENV_VARS": "1"},
            architecture="Qwen3ForCausalLM",
            model_type="qwen3",
            token_capacity=395216,
            throughput=611.4,
            accept_length=6.2,
            verify_calls=5120,
            generated=31680,
            weight_gb=8.1,
            kv_cache_gb=54.9,
            log=_HEALTHY_LOG,
        )
    )


_FOUNDING_LOG = """\
[2026-04-30 09:12:03] ddprobe lab: a made-up log
[2026-04-30 09:12:41 TP0] Initialized DFLASH draft runner. attention_backend=triton, model=DFlashDraftModel, block_size=8, draft_window_size=None, compact_cache=False
[2026-04-30 09:12:41 TP0] DFLASH draft runner ready. mask_token=[UNK], mask_token_id=163838, mask_token_id_override=163838, noise_embed_scale=1.0
[2026-04-30 09:31:07 TP0] Prefill batch, #new-seq: 1, #new-token: 1412, #cached-token: 0, token usage: 0.00, #running-req: 0, #queue-req: 0, #pending-token: 0, cuda graph: False, input throughput (token/s): 811.20
[2026-04-30 09:31:08 TP0] Decode batch, #running-req: 1, #token: 1450, token usage: 0.00, accept len: 1.00, accept rate: 0.00, cuda graph: True, gen throughput (token/s): 118.04, #queue-req: 0
[2026-04-30 09:31:08 TP0] DFLASH verify: steps=40 avg_commit_len=1.00 avg_accepted_depth=3.00 step_ms=8.47
[2026-04-30 10:02:55 TP0] Decode batch, #running-req: 1, #token: 185340, token usage: 0.45, accept len: 1.00, accept rate: 0.00, cuda graph: True, gen throughput (token/s): 0.70, #queue-req: 0
[2026-04-30 10:02:55 TP0] DFLASH verify: steps=40 avg_commit_len=1.00 avg_accepted_depth=3.00 step_ms=1430.11
"""

_HEALTHY_LOG = """\
[2026-04-30 09:12:03] ddprobe lab: a made-up log
[2026-04-30 09:12:20] Initialized DFLASH draft runner. attention_backend=flashinfer, model=DFlashDraftModel, block_size=16, draft_window_size=None, compact_cache=False
[2026-04-30 09:31:08] Decode batch, #running-req: 1, #token: 1450, token usage: 0.00, accept len: 6.20, accept rate: 0.35, cuda graph: True, gen throughput (token/s): 611.40, #queue-req: 0
"""
