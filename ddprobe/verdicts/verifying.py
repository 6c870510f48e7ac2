"""Which attention backend a verify step of this server takes: as its arguments say, else SGLang's own choice where it is known."""

from __future__ import annotations

from ddprobe import gpu_cards
from ddprobe.verdicts.case import Case

TRITON = "triton"


def stated(case: Case) -> str:
    """The backend of prefill, unless --speculative-attention-mode says decode; empty where no argument names one."""
    mode = "decode" if case.argument("speculative_attention_mode") == "decode" else "prefill"
    names = (f"{mode}_attention_backend", "attention_backend")
    return next((value for name in names if isinstance(value := case.argument(name), str) and value), "")


def presumed(case: Case) -> bool:
    """Whether no argument names a backend and SGLang takes triton by itself: an MLA target on a workstation Blackwell."""
    config = case.config("target")
    mla = config is not None and config.kv_lora_rank is not None
    return not stated(case) and mla and any(map(gpu_cards.sm120, case.gpus))


def backend(case: Case) -> str:
    """The backend's name; empty where neither tells."""
    return stated(case) or (TRITON if presumed(case) else "")
