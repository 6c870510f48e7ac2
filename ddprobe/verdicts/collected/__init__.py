"""Verdicts over evidence that others collected: bare means, logs, counters and arguments, in place of a commit probe.

A missing or small sample lowers the confidence and is named as missing; it forbids nothing. Means that reach the
ceiling at every length speak for a working drafter, and say nothing of text that stands far back.
"""

from __future__ import annotations

from ddprobe.verdicts import cache_state_bug, simulated_acceptance, startup_incompatible
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.collected import (
    apart,
    attention_kernel_bottleneck,
    drafter_dead,
    far_copy,
    figures,
    gpu_state,
    healthy,
    inconclusive,
    launch_or_cpu_bound,
    long_context,
    metric_inconsistency,
    not_speculating,
    spec_net_loss,
    text_difficulty,
    verify_not_lossless,
)
from ddprobe.verdicts.ruling import Judge, Ruling

SERVER: tuple[Judge, ...] = (
    startup_incompatible.judge,
    simulated_acceptance.judge,
    metric_inconsistency.judge,
    not_speculating.judge,
    verify_not_lossless.judge,
    spec_net_loss.judge,
)
"""What holds whatever drafts."""
DRAFTER: tuple[Judge, ...] = (
    cache_state_bug.judge,
    drafter_dead.judge,
    long_context.judge,
    far_copy.judge,
    text_difficulty.judge,
)
TIME: tuple[Judge, ...] = (attention_kernel_bottleneck.judge, launch_or_cpu_bound.judge, gpu_state.judge)


def judge(case: Case) -> list[Ruling]:
    """Every verdict that this evidence supports, unranked; `healthy` or `inconclusive` where there is no other.

    Where it holds several starts with other arguments, each is judged with what is told of it.
    """
    starts = apart.starts(case)
    if not starts:
        return _of_one(case)
    found = [ruling for start in starts for ruling in apart.named(start, starts, _of_one(start.case))]
    return found or [apart.open_question(inconclusive.judge(apart.without_arguments(case)), starts)]


def _of_one(case: Case) -> list[Ruling]:
    found = _ask(SERVER, case)
    names = {ruling.verdict.name for ruling in found}
    settled = any(ruling.voids for ruling in found) or names & {"not_speculating", "startup_incompatible"}
    if not settled and not figures.looks_up(case):
        found += _ask(DRAFTER, case)
    found += _ask(TIME, case)
    if found:
        return found
    return [healthy.judge(case) or inconclusive.judge(case)]


def _ask(judges: tuple[Judge, ...], case: Case) -> list[Ruling]:
    return [ruling for one in judges if (ruling := one(case)) is not None]
