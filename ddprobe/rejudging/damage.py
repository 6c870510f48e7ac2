"""What the folder of a report has lost, and what of a step is left without it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from ddprobe import store
from ddprobe.facts import EvidenceFile
from ddprobe.facts.files import FILES
from ddprobe.model import Cite, Fact, Finding, Outcome, StepRecord
from ddprobe.store import DAMAGED, EVENTS, MANIFEST, REPORT, Kept

MOST_TOLD = 20
"""Damaged files that are told one by one."""


def damaged(kept: Kept) -> tuple[Finding, ...]:
    """What the folder of a report has lost, a file a finding."""
    steps = {
        path: step
        for step in kept.report.steps
        for answer in step.artefacts
        for path in store.paths_of(answer)
    }
    found: list[Finding] = []
    for each in kept.damage[:MOST_TOLD]:
        step = steps.get(each.path)
        rests = "what rests on it is unknown"
        if each.path == REPORT:
            rests = f"what {EVENTS} and the evidence tell is taken"
        found.append(
            Finding(
                id=DAMAGED,
                outcome=Outcome.UNKNOWN,
                subject=each.path,
                summary=f"{each.path} {each.how}" + ("" if each.path == MANIFEST else f": {rests}"),
                advice="take the report from where it was written first, or look at the host again",
                host=step.host if step else "",
                step=step.id if step else "",
            )
        )
    if further := kept.damage[MOST_TOLD:]:
        summary = (
            f"{len(further)} more files are missing or not what was written, {further[0].path} the first"
        )
        found.append(
            Finding(id=DAMAGED, outcome=Outcome.UNKNOWN, subject="the report's folder", summary=summary)
        )
    return tuple(found)


def without(
    step: StepRecord, found: Sequence[Finding], lost: Mapping[str, str]
) -> tuple[StepRecord, list[Finding]]:
    """The step as it was told, without what rests on lost files."""
    paths = [path for answer in step.artefacts for path in store.paths_of(answer) if path in lost]
    if not paths:
        return step, list(found)
    facts: tuple[Fact, ...]
    if step.probe == FILES:
        facts = tuple(
            dataclasses.replace(fact, recognised=(), trouble=f"what was kept of it {lost[paths[0]]}")
            for fact in step.facts
            if isinstance(fact, EvidenceFile)
        )
    else:
        facts = tuple(fact for fact in step.facts if _rests_elsewhere(fact.source, lost))
        found = [finding for finding in found if _rests_elsewhere(finding.cites, lost)]
    reasons = tuple(f"{path} {lost[path]}" for path in paths)
    told = dataclasses.replace(step, facts=facts, status="incomplete", reasons=(*step.reasons, *reasons))
    return told, list(found)


def _rests_elsewhere(cites: Sequence[Cite], lost: Mapping[str, str]) -> bool:
    """Whether all that is cited is as it was written; of what cites nothing nobody knows on what it rests."""
    return bool(cites) and not any(cite.artefact in lost for cite in cites)
