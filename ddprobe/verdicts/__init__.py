"""Verdicts: one a file, each from facts and findings alone. Here they are asked in order and ranked.

A verdict that voids what was measured (forged acceptance, tokens that are accepted and never come out) silences those
on the drafter. So does a first point that came out otherwise at the end, lengths that are not what was asked for, and a
drafter that looks repeated text up: easy text says nothing of it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from ddprobe.model import Fact, Finding, Hypothesis, Verdict
from ddprobe.verdicts import (
    attention_kernel_bottleneck,
    cache_state_bug,
    collected,
    drafter_dead,
    gpu_state,
    healthy,
    hypotheses,
    inconclusive,
    launch_or_cpu_bound,
    long_context_bug,
    long_context_decay,
    metric_inconsistency,
    not_speculating,
    of_logs,
    simulated_acceptance,
    spec_net_loss,
    standing,
    text_difficulty,
    times_only,
)
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.ruling import Judge, Ruling

SOURCES: tuple[Judge, ...] = (simulated_acceptance.judge, metric_inconsistency.judge)
"""Whether the numbers can be trusted at all."""
SERVER: tuple[Judge, ...] = (not_speculating.judge, cache_state_bug.judge, spec_net_loss.judge)
"""What the server does, whatever drafts for it."""
DRAFTER: tuple[Judge, ...] = (
    drafter_dead.judge,
    long_context_bug.judge,
    long_context_decay.judge,
    text_difficulty.judge,
)
"""What the drafter can do; texts and lengths are compared."""
TIME: tuple[Judge, ...] = (attention_kernel_bottleneck.judge, launch_or_cpu_bound.judge, gpu_state.judge)
"""Where the time goes, whatever is committed."""


def judge(
    facts: Sequence[Fact], findings: Sequence[Finding], gpu_bandwidth: float | None = None
) -> tuple[Verdict, ...]:
    """The verdicts on one host, the one that explains most of the lost speed first.

    One that voids what was measured comes before all others: what they explain cannot be weighed until it is settled.
    Without evidence of a commit probe, those that the servers' logs support, and empty where they support none. With
    such evidence, and no verdict, it is `inconclusive`.
    """
    case = Case(tuple(facts), tuple(findings), gpu_bandwidth)
    if not _probed(case):
        return _ranked(of_logs.judge(case))
    found = _rulings(case)
    if not found and case.step_times and not case.points:
        return _ranked([times_only.judge(case)])
    if not found:
        found = [healthy.judge(case) if _comparable(case) else None]
    return _ranked([ruling for ruling in found if ruling is not None] or [inconclusive.judge(case)])


def judge_collected(
    facts: Sequence[Fact], findings: Sequence[Finding], gpu_bandwidth: float | None = None
) -> tuple[Verdict, ...]:
    """The verdicts on evidence that somebody collected: never none. Where a commit probe is among it, its rules count."""
    case = Case(tuple(facts), tuple(findings), gpu_bandwidth)
    if _probed(case):
        return judge(facts, findings, gpu_bandwidth)
    return _ranked(collected.judge(case))


def ledger(
    facts: Sequence[Fact],
    findings: Sequence[Finding],
    found: Sequence[Verdict],
    gpu_bandwidth: float | None = None,
) -> tuple[Hypothesis, ...]:
    """What the evidence says of each hypothesis; none where there is no verdict."""
    return hypotheses.ledger(Case(tuple(facts), tuple(findings), gpu_bandwidth), found)


def _probed(case: Case) -> bool:
    """Whether a commit probe sent requests, or step times were measured."""
    return (
        case.setup is not None
        and not case.setup.planned_only
        and bool(case.points or case.step_times or case.requests)
    )


def _ranked(found: Iterable[Ruling]) -> tuple[Verdict, ...]:
    ranked = sorted(found, key=lambda ruling: (not ruling.voids, -ruling.explains))
    return tuple(_plain(ruling.verdict) for ruling in ranked)


def _rulings(case: Case) -> list[Ruling | None]:
    sources = _ask(SOURCES, case)
    if any(ruling.voids for ruling in sources):
        return [*sources, *_ask(TIME, case)]
    server = _ask(SERVER, case)
    idle = any(ruling.verdict.name == "not_speculating" for ruling in server)
    drafter = _ask(DRAFTER, case) if _comparable(case) and not idle else []
    return [*sources, *server, *drafter, *_ask(TIME, case)]


def _ask(judges: Iterable[Judge], case: Case) -> list[Ruling]:
    return [ruling for one in judges if (ruling := one(case)) is not None]


def _comparable(case: Case) -> bool:
    """Whether texts and lengths of this run may be compared to say something of a drafter."""
    lengths = case.check("prompt-length")
    return (
        not standing.looks_up(case)
        and not standing.drifted(case)
        and (lengths is None or lengths.agrees is not False)
    )


def _plain(verdict: Verdict) -> Verdict:
    """The verdict, each sentence said and each place cited once (two steps may have found the same)."""
    return dataclasses.replace(
        verdict,
        reasons=tuple(dict.fromkeys(verdict.reasons)),
        cites=tuple(dict.fromkeys(verdict.cites)),
        ruled_out=tuple(dict.fromkeys(verdict.ruled_out)),
    )
