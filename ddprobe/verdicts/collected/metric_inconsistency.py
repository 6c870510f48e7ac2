"""Do figures of one run, or of one name, contradict each other?"""

from __future__ import annotations

import dataclasses

from ddprobe.facts import DecodeSeries
from ddprobe.model import Finding, Outcome, Verdict
from ddprobe.parsing.accept_rates import CORRECT, WITH_BONUS
from ddprobe.verdicts import metric_inconsistency, thresholds, words
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.collected import causes, figures
from ddprobe.verdicts.ruling import Ruling

OF_METRICS = "MC"
"""Checks on figures begin so."""


def judge(case: Case) -> Ruling | None:
    """Accept rates by two formulas; a check on figures that fails; or what any evidence of a probe contradicts."""
    failed = _failed(case)
    found = _formulas(case) or _counted(case, failed) or metric_inconsistency.judge(_unsaid(case))
    if found is None:
        return _checks(failed) if failed else None
    verdict = found.verdict
    more = tuple(text for text in causes.named(failed) if text not in verdict.reasons)
    return dataclasses.replace(
        found,
        verdict=dataclasses.replace(
            verdict, reasons=(*verdict.reasons, *more), cites=(*verdict.cites, *causes.cites(failed))
        ),
    )


def _unsaid(case: Case) -> Case:
    """The case without what people say."""
    said = figures.statements(case)
    return dataclasses.replace(case, facts=tuple(fact for fact in case.facts if fact not in said))


def _failed(case: Case) -> tuple[Finding, ...]:
    return tuple(f for f in case.findings if f.outcome is Outcome.FAIL and f.id.startswith(OF_METRICS))


def _checks(failed: tuple[Finding, ...]) -> Ruling:
    return Ruling(
        Verdict(
            name="metric_inconsistency",
            kind="metric",
            confidence="high" if len(failed) > 1 else "medium",
            reasons=causes.named(failed),
            cites=causes.cites(failed),
            ruled_out=("rounding, the prefill's token and a cut last step: they are allowed for",),
            missing=("per-request counts from each source: tokens, verify steps, accepted drafts",),
            next=(
                *causes.advice(failed),
                "compare commit lengths over the same requests, never rates of unknown formula",
            ),
        ),
    )


# --- counters ---------------------------------------------------------------------------------------------


def _counted(case: Case, failed: tuple[Finding, ...]) -> Ruling | None:
    """Counters state more per step than the requests of the same steps returned."""
    counts = [
        (r, r.num_spec_steps, r.output_tokens)
        for r in case.requests
        if r.num_spec_steps and r.output_tokens is not None
    ]
    if not counts:
        return None
    known = [request for request, _, _ in counts]
    steps = sum(own for _, own, _ in counts)
    # The first token of a request comes from its prefill.
    returned = sum(tokens for _, _, tokens in counts)
    low, high = (returned - len(known)) / steps, returned / steps
    for figure in figures.figures(case):
        commit = figures.commit(figure)
        same_run = figure.steps is not None and abs(figure.steps - steps) <= thresholds.SAME_RUN * steps
        if not same_run or low * (1 - thresholds.CLAIM) <= commit <= high * (1 + thresholds.CLAIM):
            continue
        return Ruling(
            Verdict(
                name="metric_inconsistency",
                kind="metric",
                # MC04 is this very comparison; any other check makes it two ways to the same.
                confidence="high" if any(finding.id != "MC04" for finding in failed) else "medium",
                reasons=(
                    f"{figure.origin} states {commit:.2f} tokens per step ({figure.steps} steps), and the "
                    f"{words.count(len(known), 'request')} of these steps returned {high:.2f} per step",
                    "tokens that are accepted behind the end of an answer are counted there, and thrown away: the shorter the "
                    "answers, the more"
                    if commit > high  # equivalent: what lies between is left out
                    else "fewer are counted than came",
                ),
                cites=words.cites(figure, *known),
                ruled_out=("rounding, the prefill's token and a cut last step: they are allowed for",),
                missing=("accepted drafts per request, from the same source",),
                next=("trust the tokens that were returned, over the steps that returned them",),
            ),
        )
    return None


# --- formulas ---------------------------------------------------------------------------------------------


def _formulas(case: Case) -> Ruling | None:
    """Rates of one name by different formulas, or by one that hides that nothing is right."""
    logs = [log for log in case.logs if log.rate_definition and figures.speaking(log)]
    counting_bonus = [log for log in logs if log.rate_definition != CORRECT]
    hiding = [log for log in counting_bonus if figures.gets_nothing(log)]
    several = len({log.rate_definition for log in logs}) > 1
    if not (several or (hiding and any(claim.what == "accept rate" for claim in case.claims))):
        return None
    told = [
        f"{words.count(log.lines, 'line')} with accept length {figures.log_best(log):.2f} at most: rate = {log.rate_definition}"
        + (f" with K = {log.draft_tokens}" if log.draft_tokens else "")
        for log in logs
    ]
    dead = [
        f"accept length {figures.log_best(log):.2f}{_rate(log)} is next to nothing right: the bonus token alone makes that rate"
        for log in hiding
    ]
    return Ruling(
        Verdict(
            name="metric_inconsistency",
            kind="rate_formula",
            confidence="high" if several else "medium",
            reasons=(
                "one name, accept rate, and different formulas"
                if several
                else "an accept rate that counts the bonus token",
                *told,
                *dead,
            ),
            cites=words.cites(*logs),
            ruled_out=("a real difference between these rates: they are not of the same thing",),
            missing=("the engine's version or commit behind each log",),
            next=(
                "compare accept lengths, never these rates: (length - 1) / K is the share of drafts that were right",
                "ddprobe grep 'accept_rate|accept rate' shows which formula the installed version has",
            ),
        ),
    )


def _rate(log: DecodeSeries) -> str:
    """What the log itself prints beside its best length, by a formula that counts the bonus token."""
    if not log.draft_tokens:
        return ""
    below = log.draft_tokens + 1 if log.rate_definition == WITH_BONUS else log.draft_tokens
    return f" beside a rate of {figures.log_best(log) / below:.2f}"
