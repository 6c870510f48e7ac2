"""The record of a run, and the exit code that it comes to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ddprobe.model.conclusions import Fact, Finding, Hypothesis, LedgerLine, Verdict
from ddprobe.model.outcome import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """How a host was reached: part of the evidence."""

    transport: str
    address: str = ""
    user: str = ""
    port: int | None = None
    host_key: str = ""
    """`ssh-ed25519 SHA256:…`"""
    connect_seconds: float = 0.0
    notes: tuple[str, ...] = ()
    """What a person should know of the road: noisy shell, curl in place of forwarding, what could not be honoured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRecord:
    """A host of a run, and how it went."""

    name: str
    connection: Connection | None = None
    error: str = ""
    """Why it could not be reached or refused us; empty when it was reached."""
    advice: str = ""
    survivors: int = 0
    """Processes of ours that the last look had to end. Anything but 0 is a failure of ddprobe."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Artefact:
    """One answer as stored: the question in words, how it ended, and the files that hold its bytes."""

    key: str
    question: str
    kind: str
    """`command` or `http`."""
    files: tuple[tuple[str, str], ...]
    """(`stdout`, path within the report), …"""
    exit_code: int | None = None
    status: int | None = None
    started: float = 0.0
    seconds: float = 0.0
    size: int = 0
    truncated: bool = False
    timed_out: bool = False
    trouble: str = ""
    via: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """One step on one host: what was asked, what is known from it, how it ended."""

    id: str
    probe: str
    host: str
    status: str
    """`done`, `incomplete` (something asked got no whole answer), `interrupted`, `not_run`, `skipped` (not wanted here)."""
    settings: tuple[tuple[str, Any], ...] = ()
    reasons: tuple[str, ...] = ()
    """Why it is not `done`."""
    started: float = 0.0
    seconds: float = 0.0
    artefacts: tuple[Artefact, ...] = ()
    facts: tuple[Fact, ...] = ()
    kept_from: str = ""
    """The report that it was taken over from; empty when this run asked it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaybookRecord:
    """The playbook that a run carried out, and with what."""

    name: str
    about: str = ""
    file: str = ""
    digest: str = ""
    """SHA-256 of the file, in hex."""
    vars: tuple[tuple[str, Any], ...] = ()
    """As used: defaults and `--set`."""
    hypotheses: tuple[str, ...] = ()
    """Names of those that the report's ledger is to answer; all where it declares none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A run, whole. Everything that can be derived (outcome, exit code) is, and is not stored beside its origin."""

    name: str
    version: str
    started: float
    seconds: float = 0.0
    lab: bool = False
    interrupted: bool = False
    playbook: PlaybookRecord | None = None
    hosts: tuple[HostRecord, ...] = ()
    steps: tuple[StepRecord, ...] = ()
    findings: tuple[Finding, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    hypotheses: tuple[Hypothesis, ...] = ()
    redactions: int = 0
    trouble: str = ""
    """Why the report's folder does not hold all of this; empty when it does."""

    @property
    def outcome(self) -> Outcome:
        """The worst finding or verdict. A step that got its whole answer and judges nothing (`read`) counts as *info*, a
        run that was broken off as *unknown*.
        """
        answered = [Outcome.INFO for step in self.steps if step.status == "done"]
        judged = [verdict.outcome for verdict in self.verdicts]
        broken = [Outcome.UNKNOWN] if self.interrupted else []
        return Outcome.worst([finding.outcome for finding in self.findings] + judged + answered + broken)


def summed(hypotheses: Iterable[Hypothesis]) -> tuple[LedgerLine, ...]:
    """The ledgers of all hosts as one, in the order of the hypotheses."""
    lines: dict[str, dict[str, list[str]]] = {}
    texts: dict[str, str] = {}
    for one in hypotheses:
        texts.setdefault(one.name, one.text)
        found = lines.setdefault(one.name, {"supported": [], "refuted": [], "untested": []})
        found.get(one.status, found["untested"]).append(one.host)
    return tuple(
        LedgerLine(name=name, text=texts[name], **{status: tuple(hosts) for status, hosts in found.items()})
        for name, found in lines.items()
    )


EXPECTED = "EXPECT"
"""How the ids begin of findings that say whether a playbook's expectation was met."""
FAIL_ON = {"fail": Outcome.FAIL, "warn": Outcome.WARN, "never": None}


def exit_code(report: Report, fail_on: str = "fail") -> int:
    """The exit code of a finished run: the first of 130, 1, 3, 4 that holds, else 0.

    *unknown* never counts for 1; the verdict `inconclusive`, a step without a whole answer, an expectation of the
    playbook that cannot be told, or an answer that could not be written to the report's folder, counts for 4.
    """
    limit = FAIL_ON[fail_on]
    if report.interrupted:
        return 130
    judged = [f.outcome for f in report.findings] + [v.outcome for v in report.verdicts]
    if limit is not None and any(o >= limit and o is not Outcome.UNKNOWN for o in judged):
        return 1
    if any(host.error for host in report.hosts):
        return 3
    if report.trouble or any(step.status == "incomplete" for step in report.steps):
        return 4
    if any(f.outcome is Outcome.UNKNOWN and f.id.startswith(EXPECTED) for f in report.findings):
        return 4
    if any(verdict.outcome is Outcome.UNKNOWN for verdict in report.verdicts):
        return 4
    return 0


Progress = Callable[[str, str], None]
"""(host, what is happening now; empty when it is done with): called as a run goes on, from any thread."""
