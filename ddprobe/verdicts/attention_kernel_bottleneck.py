"""Does a step's time grow with context faster than reading the KV cache does?"""

from __future__ import annotations

from ddprobe.facts import CommitPoint, VerifyPath
from ddprobe.model import Outcome, Verdict
from ddprobe.parsing import sizes
from ddprobe.verdicts import bandwidth, levers, thresholds, verifying, words
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.excluded import excluded
from ddprobe.verdicts.gpu_state import shifted
from ddprobe.verdicts.growth import CONTEXTS, five, growth, law, windows
from ddprobe.verdicts.ladder import arm_of
from ddprobe.verdicts.ruling import Ruling

REGIMES = ("curved", "knee")
"""Remarks on a law that say more than a kernel is at work."""


def judge(case: Case) -> Ruling | None:
    """The slope of the step time over context is at least five times that of reading the target's KV cache.

    Without the target's configuration there is no such line to compare with, and no verdict; on a processor that is
    no GPU neither.
    """
    found = growth(case)
    if found is None or found.roofline is None or len(found.points) < CONTEXTS or not found.beyond_memory:
        return None
    fitted = law(case)
    if fitted is None or fitted.form == "flat" or shifted(fitted):
        return None
    if fitted.remark("unclear") and len(fitted.contexts) >= 5:
        # Of fewer lengths an interval is too wide to say so: a bend of the law is taken for noise.
        return None
    if (
        fitted.weighted
        and fitted.form == "knee"
        and fitted.b.value < thresholds.ROOFLINE * found.roofline.ms_per_token
    ):
        # Two levels make a slope between them, and neither grows.
        return None
    points, line, short, long = found.points, found.line, found.short, found.long
    reached = bandwidth.reached(case, fitted)
    path = verify_path(case)
    roofline = found.roofline.ms_per_token
    lints = [*case.found(Outcome.FAIL, "SA01"), *case.found(Outcome.WARN, "SA01")]
    straight = line.r_squared >= thresholds.LINEAR and line.intercept >= 0
    reasons = [
        found.told,
        f"that is {line.slope * 1e3:.3g} µs per token of context; reading {found.roofline.bytes_per_token:.0f} bytes of KV "
        f"per token takes {roofline * 1e3:.3g} µs ({found.roofline.card}): {line.slope / roofline:.0f} times as much, "
        f"{roofline / line.slope:.1%} of the roofline",
        *([bandwidth.told(*reached)] if reached is not None else []),
        *(f"{finding.id}: {finding.summary}" for finding in lints),
        *bandwidth.blocks(case, tuple(lints)),
        *([path.told] if path is not None else []),
        *(text for kind, text in fitted.remarks if kind in REGIMES),
        *idle_memory(case),
    ]
    missing = []
    if len(points) < 5:
        missing.append(f"step times at five lengths or more: {len(points)} do not tell a line from a curve")
    if line.intercept < 0:
        missing.append(
            f"why the line begins below zero ({words.short(line.intercept)} ms): the time grows faster than the context, or short "
            "contexts take another path"
        )
    missing += found.missing
    return Ruling(
        Verdict(
            name="attention_kernel_bottleneck",
            kind="serial_prefix" if lints or path is not None else "",
            confidence="medium" if straight and not _unsteady(case) else "low",
            reasons=tuple(reasons),
            cites=words.cites(*points, case.config("target"))
            + tuple(cite for finding in lints for cite in finding.cites)
            + (path.source if path is not None else ()),
            ruled_out=excluded(case),
            missing=tuple(missing),
            next=(
                *levers.attention(case),
                *dict.fromkeys(finding.advice for finding in lints if finding.advice),
                *_more_lengths(case, short, long, len(points)),
                "compare with speculation off at the same lengths (--baseline): plain decoding may take another kernel",
            ),
        ),
        explains=found.ratio,
    )


def _more_lengths(case: Case, short: CommitPoint, long: CommitPoint, known: int) -> tuple[str, ...]:
    """The command that measures a slope; nothing where a ladder of step times has enough lengths already."""
    lengths = five(short.context_tokens, long.context_tokens)
    if short.purpose != "step-time":
        return (words.command(case, [arm_of(short.arm)], lengths),)
    if known >= len(lengths):
        return ()
    return (f"ddprobe step-time --contexts {','.join(map(sizes.short, lengths))}",)


def verify_path(case: Case) -> VerifyPath | None:
    """What the installed engine's source says of the backend that verifies here, where it was read and is serial."""
    used = verifying.backend(case)
    serial = (path for path in case.every(VerifyPath) if path.split_kv is False)
    return next((path for path in serial if path.backend == used), None)


def idle_memory(case: Case) -> list[str]:
    """In words, that the cards' own counters show memory and most of the SMs idle; nothing where they do not, or do not tell."""
    seen = [w for w in windows(case) if w.dram_active is not None]
    if not seen:
        return []
    memory = max(w.dram_active or 0.0 for w in seen)
    if memory >= thresholds.IDLE_DRAM:
        return []
    busy = [w.sm_active for w in seen if w.sm_active is not None]
    sms = f", {max(busy):.0%} of the SMs" if busy and max(busy) < thresholds.FEW_SMS else ""
    return [
        f"the GPUs' counters saw memory at work in {memory:.1%} of the cycles at the most{sms} "
        f"({words.count(sum(w.samples for w in seen), 'sample')}): the kernel waits for latency, not for bandwidth"
    ]


def _unsteady(case: Case) -> bool:
    checks = [case.check(name) for name in ("first-again", "step-time-again")]
    made = [check for check in checks if check is not None]
    return not made or any(check.agrees is not True for check in made)
