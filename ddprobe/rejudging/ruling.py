"""The verdicts on one host, and the ledger of its hypotheses."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from ddprobe import runner
from ddprobe.facts import EvidenceFile
from ddprobe.model import Fact, Finding, Host, Hypothesis, Report, StepRecord, Verdict
from ddprobe.verdicts.collected import nothing
from ddprobe.verdicts.collected.inconclusive import UNMEASURED


def ruled(
    host: Host,
    facts: Sequence[Fact],
    findings: Sequence[Finding],
    *,
    collected: bool = True,
    files: Sequence[EvidenceFile] = (),
) -> tuple[tuple[Verdict, ...], tuple[Hypothesis, ...]]:
    """The verdicts on one host, and the ledger of its hypotheses. Of files that say nothing there is no ledger."""
    if files and not facts:
        return (dataclasses.replace(nothing.verdict(files), host=host.name),), ()
    found = runner.conclude(host, facts, findings, collected=collected)
    if [verdict.kind for verdict in found] == [UNMEASURED]:
        (verdict,) = found
        found = (dataclasses.replace(verdict, reasons=(*verdict.reasons, *nothing.beside(files))),)
    step = StepRecord(id="", probe="", host=host.name, status="done", facts=tuple(facts))
    report = Report(name="", version="", started=0.0, steps=(step,), findings=tuple(findings), verdicts=found)
    return found, runner.with_hypotheses(report, {host.name: host.gpu_bandwidth}).hypotheses
