"""The reports of a folder, each as far as it can be told at a glance: nothing of its evidence is looked at."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from ddprobe import plainfile
from ddprobe.errors import UsageError
from ddprobe.model import Finding, Outcome
from ddprobe.store.damage import DAMAGED, glance
from ddprobe.store.files import EVENTS, REPORT

ELSEWHERE = "name a folder of reports with --reports"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSummary:
    """A report among others."""

    folder: Path
    name: str
    started: float
    seconds: float = 0.0
    hosts: tuple[str, ...] = ()
    steps: int = 0
    outcome: Outcome | None = None
    """None when the report cannot be read."""
    word: str = ""
    """How the run ended, in the one word that the views use."""
    verdicts: tuple[str, ...] = ()
    """Their names, as they are ranked."""
    interrupted: bool = False
    lab: bool = False
    trouble: str = ""
    """Why it cannot be read, or what of it is not as it was written."""


def holds_report(folder: Path) -> bool:
    """Whether it is the folder of a report, also where that can no longer be read."""
    return any(os.path.lexists(folder / name) for name in (EVENTS, REPORT))


def report_folders(reports_dir: Path) -> list[Path]:
    """The folders of reports in it; none where there is no such folder. Raises `UsageError` where it cannot be read."""
    try:
        return [folder for folder in reports_dir.iterdir() if holds_report(folder)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read {reports_dir}: {plainfile.said(error)}", ELSEWHERE) from None


def list_reports(reports_dir: Path) -> tuple[ReportSummary, ...]:
    """Every report of a folder, newest first. One that is damaged, or cannot be read, is listed with its trouble."""
    summaries = [_summary(folder) for folder in report_folders(reports_dir)]
    return tuple(sorted(summaries, key=lambda summary: (summary.started, summary.folder.name), reverse=True))


def _summary(folder: Path) -> ReportSummary:
    from ddprobe import render

    try:
        found = glance(folder)
    except UsageError as error:
        return ReportSummary(folder=folder, name=folder.name, started=0.0, trouble=error.message)
    report = found.report
    if found.damage:
        # As it is shown: what rests on what is lost is unknown.
        unknown = Finding(id=DAMAGED, outcome=Outcome.UNKNOWN, subject=folder.name, summary="")
        report = replace(report, findings=(*report.findings, unknown))
    return ReportSummary(
        folder=folder,
        name=report.name,
        started=report.started,
        seconds=report.seconds,
        hosts=tuple(host.name for host in report.hosts),
        steps=len(report.steps),
        outcome=report.outcome,
        word=render.verdict_word(report),
        verdicts=tuple(verdict.name for verdict in report.verdicts),
        interrupted=report.interrupted,
        lab=report.lab,
        trouble="; ".join(f"{each.path} {each.how}" for each in found.damage),
    )
