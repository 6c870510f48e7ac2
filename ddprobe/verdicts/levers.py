"""What to change where a verify step's attention is slow: exact flags in the order in which to try them, each with its way back.

The order is that of certainty: what surely works first (no speculation), what may work and must be checked next, what helps
little while the kernel waits for latency last.
"""

from __future__ import annotations

from ddprobe import gpu_cards
from ddprobe.facts import ServerArgs, SpeculationGain
from ddprobe.parsing import sizes
from ddprobe.verdicts import thresholds, verifying
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.growth import timed

SMALLEST = 2
"""Draft tokens of a block that still drafts."""


def attention(case: Case) -> tuple[str, ...]:
    """The levers for the engine that serves; those that no engine shares are left out where it is not known."""
    known = engine(case)
    if known == "vllm":
        return _vllm(case)
    return _sglang(case) if known in ("sglang", "") else ()


def engine(case: Case) -> str:
    """`sglang`, `vllm` or `llamacpp`; empty where nobody says."""
    if case.setup is not None:
        return case.setup.engine
    return next((args.engine for args in case.every(ServerArgs)), "")


def _sglang(case: Case) -> tuple[str, ...]:
    config = case.config("target")
    mla = config is not None and config.kv_lora_rank is not None
    found = [
        f"switch speculation off{_where(case)}: start without --speculative-algorithm (plain decoding on triton splits the KV: "
        "--triton-attention-num-kv-splits); put the flag back to undo it; then measure again: ddprobe step-time",
        _other_kernel(case),
        "--kv-cache-dtype fp8_e4m3 halves the bytes, which helps little while the kernel waits for latency; "
        "--kv-cache-dtype auto undoes it; then check accept length and step time",
    ]
    found += _smaller(case, "--speculative-num-draft-tokens")
    if mla and _number(case, "tp_size", 1) > 1 and _number(case, "dcp_size", 1) == 1:
        found.append(
            f"--dcp-size {_number(case, 'tp_size', 1)}, where this version has it, spreads the latent over the GPUs that each "
            "read all of it now; drop it to undo it; then check output and step time"
        )
    if mla:
        found.append(
            "vLLM with --attention-backend TRITON_MLA splits the KV in verify, too; compare step time at the same lengths"
        )
    return tuple(found)


def _other_kernel(case: Case) -> str:
    """Another backend for the verify step than the one that has it."""
    named = verifying.stated(case)
    check = (
        "then check that greedy output is what it is without speculation (RT05), and measure step time again"
    )
    if named not in ("", verifying.TRITON):
        return f"verify in another kernel than {named}: another --attention-backend; set it back to undo it; {check}"
    return (
        f"verify in another kernel{_serial(case)}: a chain, no draft tree, with --attention-backend flashinfer; or keep triton "
        "for prefill with --decode-attention-backend flashinfer --speculative-attention-mode decode; drop them to undo it; "
        f"{check}"
    )


def _serial(case: Case) -> str:
    """The kernel that is slow, by its name, where the target and the card are those of which it is known."""
    config = case.config("target")
    mla = config is not None and config.kv_lora_rank is not None
    serial = mla and verifying.backend(case) == verifying.TRITON and any(map(gpu_cards.sm120, case.gpus))
    return " than Triton MLA verify, which is serial on SM120" if serial else ""


def _vllm(case: Case) -> tuple[str, ...]:
    return (
        f"switch speculation off{_where(case)}: start without --speculative-config; put it back to undo it; then measure again: "
        "ddprobe step-time",
        "another --attention-backend (FLASHINFER, FLASH_ATTN); drop the flag to undo it; then check that greedy output is "
        "what it is without speculation (RT05), and measure step time again",
        "--kv-cache-dtype fp8 halves the bytes; --kv-cache-dtype auto undoes it; then check accept length and step time",
        *_smaller(case, "num_speculative_tokens in --speculative-config"),
    )


def _where(case: Case) -> str:
    """From which length on, where a measurement without speculation tells."""
    lost = [
        gain.context_tokens
        for gain in case.every(SpeculationGain)
        if gain.gain_high is not None and gain.gain_high < 1
    ]
    if lost:
        return f" from {sizes.short(min(lost))} on"
    points = [p for p in timed(case) or case.points if p.commit_mean is not None and p.step_ms]
    if points and all((p.commit_mean or 0.0) <= thresholds.NOTHING_RIGHT for p in points):
        return " (a step commits one token at every length: it gains nothing)"
    return " beyond the length where it no longer pays"


def _smaller(case: Case, flag: str) -> list[str]:
    """Half the block, where it is known and can be halved."""
    drafts = case.setup.ceiling if case.setup is not None else None
    drafts = drafts or _number(case, "speculative_num_draft_tokens", 0)
    half = drafts // 2
    if half < SMALLEST:
        return []
    # One draft block of vLLM's has the bonus token beside it.
    half -= "num_speculative" in flag
    return [
        f"a smaller block: {flag} {half} (now {drafts - ('num_speculative' in flag)}); set it back to undo it; then compare tok/s, "
        "not accept length"
    ]


def _number(case: Case, name: str, otherwise: int) -> int:
    value = case.argument(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else otherwise
