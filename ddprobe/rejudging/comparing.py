"""What changed between what an old report says, and what its evidence says today."""

from __future__ import annotations

from ddprobe.facts import Rejudged
from ddprobe.model import Report
from ddprobe.store import DAMAGED

CHANGED = "analyse.changed"


def compared(then: Report, now: Report, folder: str, host: str) -> Rejudged:
    """What is told of a host today, against what the report says itself."""
    before = _words(then, host)
    after = _words(now, host)
    same = [f for f in then.findings if f.host == host and f.id != CHANGED] == [
        f for f in now.findings if f.host == host and f.id != DAMAGED
    ] and [v for v in then.verdicts if v.host == host] == [v for v in now.verdicts if v.host == host]
    both = before.keys() & after.keys()
    return Rejudged(
        report=folder,
        version=then.version,
        version_now=now.version,
        same=same,
        added=tuple(after[key][0] for key in after if key not in before),
        removed=tuple(before[key][0] for key in before if key not in after),
        changed=tuple(
            f"{before[key][0]} → {after[key][0]}"
            if before[key][0] != after[key][0]
            else f"{after[key][0]} (in words)"
            for key in after
            if key in both and before[key] != after[key]
        ),
    )


def _words(report: Report, host: str) -> dict[tuple[str, ...], tuple[str, object]]:
    """Everything that is judged, by what it is about: in words, and whole. The second of two alike is told apart."""
    told: dict[tuple[str, ...], tuple[str, object]] = {}
    for finding in report.findings:
        if finding.host != host or finding.id in (CHANGED, DAMAGED):
            continue
        key: tuple[str, ...] = ("finding", finding.step, finding.id, finding.subject)
        while key in told:
            key = (*key, "again")
        told[key] = (f"{finding.id} {finding.outcome.label}: {finding.subject}", finding)
    for verdict in report.verdicts:
        if verdict.host == host:
            name = f"{verdict.name} ({verdict.kind})" if verdict.kind else verdict.name
            told["verdict", verdict.name] = (f"verdict {name}, {verdict.confidence}", verdict)
    return told
