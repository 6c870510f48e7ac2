"""Is nothing drafted at all, by arguments, start-up lines and counters?"""

from __future__ import annotations

from ddprobe.facts import CommitPoint, ServerArgs
from ddprobe.lints.served import Served
from ddprobe.model import Fact, Outcome, Verdict
from ddprobe.verdicts import words
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.collected import causes, figures
from ddprobe.verdicts.not_speculating import FLAGS
from ddprobe.verdicts.ruling import Ruling

DRAFTER = "speculative_draft_model_path"
UNUSED = ("SA17", "EN04", "ST05")
"""Lints on a drafter that is given and not used."""


def judge(case: Case) -> Ruling | None:
    """The arguments speculate not, or every source counts no draft; and none shows one.

    Drafts that are all rejected are drafts: a commit of 1.00 alone says nothing here.
    """
    if _drafted(case):
        return None
    served = figures.server(case)
    off, told = _off(served)
    unused = case.found(Outcome.FAIL, *UNUSED)
    off = off or bool(unused)
    idle = _idle(case)
    if not off and not idle:
        return None
    engine = served.engine if served is not None else ""
    staged = _staged(case)
    reasons = [*told, *idle, *(f"{finding.id}: {finding.summary}" for finding in unused), *staged]
    facts: list[Fact] = [*case.every(ServerArgs), *case.every(CommitPoint), *case.processes, *case.logs]
    return Ruling(
        Verdict(
            name="not_speculating",
            kind="off" if off else "never_drafts",
            confidence="high" if off and (idle or staged or unused) else "medium",
            reasons=tuple(reasons),
            cites=words.cites(*facts) + causes.cites(unused),
            ruled_out=("a dead drafter: its drafts would be counted, and rejected",) if idle else (),
            missing=() if idle else ("counters or log lines of the drafts: are there any?",),
            next=(
                *causes.advice(unused),
                f"check {FLAGS.get(engine, 'the flags that name a drafter')} on the server's command line, and which names "
                "of variables this version reads",
                "the start-up log tells whether the drafter was loaded, or why it was refused",
            ),
        ),
        explains=float(figures.ceiling(case) or 1) if staged or idle or unused else 1.0,
    )


def _drafted(case: Case) -> bool:
    """Whether any source shows a draft, right or wrong."""
    if any((point.drafted_steps or 0) > 0 for point in case.every(CommitPoint)):
        return True
    if any((point.commit_mean or 0) > 1.02 for point in case.every(CommitPoint)):
        return True
    stated = [figure for figure in case.stated if (figure.steps is None or figure.steps > 0)]
    drafts = any(figure.commit is not None or figure.rate is not None for figure in stated)
    return drafts or any(figures.speaking(log) for log in case.logs)


def _off(served: Served | None) -> tuple[bool, list[str]]:
    if served is None or not served.arguments_known:
        return False, []
    kind = str(served.arg("speculative_algorithm") or "").lower()
    if served.engine == "llamacpp" and served.arg(DRAFTER) and kind in ("", "none"):
        # Newer builds draft only with --spec-type, older ones with -md alone: the counters must say which this is.
        return False, []
    if served.algorithm:
        return False, []
    return True, ["the server's arguments name no speculation: it decodes one token a step"]


def _idle(case: Case) -> list[str]:
    """Sources that would show a draft, and show none."""
    points = [p for p in case.every(CommitPoint) if p.purpose in ("point", "cold")]
    told = []
    if points and all(point.drafted_steps == 0 for point in points):
        told.append(f"no token was drafted in any of {words.count(len(points), 'point')}")
    empty = [log for log in case.logs if log.lines and log.off_lines == log.lines]
    if empty and len(empty) == len(case.logs):
        lines = sum(log.lines for log in empty)
        told.append(f"none of {words.count(lines, 'decode line')} has an acceptance figure")
    counted = [figure for figure in case.stated if figure.steps == 0]
    if counted and len(counted) == len(case.stated):
        told.append(f"{counted[0].origin} counts no draft")
    return told


def _staged(case: Case) -> list[str]:
    """That somebody meant to speculate: a drafter named where this server does not read it."""
    names = [
        name
        for process in case.processes
        for name, value in process.environment
        if value and ("SPECULATIVE" in name or "DRAFT" in name)
    ]
    told = [f"a drafter is meant all the same: {words.listed(names[:3])} set"] if names else []
    told += [
        f"{event.kind}: {event.text[:120]}"
        for event in case.events
        if event.kind in ("draft_unused", "speculation_off")
    ][:2]
    served = figures.server(case)
    if served is not None and served.drafter is not None and not served.algorithm:
        told.append("a drafter's configuration lies beside it, unused")
    return told
