"""Does a step's time grow with context faster than reading the KV cache does?"""

from __future__ import annotations

from ddprobe.model import Outcome, Verdict
from ddprobe.verdicts import thresholds, words
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.excluded import excluded
from ddprobe.verdicts.growth import CONTEXTS, five, growth
from ddprobe.verdicts.ladder import arm_of
from ddprobe.verdicts.ruling import Ruling


def judge(case: Case) -> Ruling | None:
    """The slope of the step time over context is at least five times that of reading the target's KV cache.

    Without the target's configuration there is no such line to compare with, and no verdict; on a processor that is
    no GPU neither.
    """
    found = growth(case)
    if found is None or found.roofline is None or len(found.points) < CONTEXTS or not found.beyond_memory:
        return None
    points, line, short, long = found.points, found.line, found.short, found.long
    roofline = found.roofline.ms_per_token
    lints = [*case.found(Outcome.FAIL, "SA01"), *case.found(Outcome.WARN, "SA01")]
    straight = line.r_squared >= thresholds.LINEAR and line.intercept >= 0
    reasons = [
        found.told,
        f"that is {line.slope * 1e3:.3g} µs per token of context; reading {found.roofline.bytes_per_token:.0f} bytes of KV "
        f"per token takes {roofline * 1e3:.3g} µs ({found.roofline.card}): {line.slope / roofline:.0f} times as much, "
        f"{roofline / line.slope:.1%} of the roofline",
        *(f"{finding.id}: {finding.summary}" for finding in lints),
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
            kind="serial_prefix" if lints else "",
            confidence="medium" if straight and not _unsteady(case) else "low",
            reasons=tuple(reasons),
            cites=words.cites(*points, case.config("target"))
            + tuple(cite for finding in lints for cite in finding.cites),
            ruled_out=excluded(case),
            missing=tuple(missing),
            next=(
                *dict.fromkeys(finding.advice for finding in lints if finding.advice),
                words.command(case, [arm_of(short.arm)], five(short.context_tokens, long.context_tokens)),
                "compare with speculation off at the same lengths (--baseline): plain decoding may take another kernel",
            ),
        ),
        explains=found.ratio,
    )


def _unsteady(case: Case) -> bool:
    check = case.check("first-again")
    return check is None or check.agrees is not True
