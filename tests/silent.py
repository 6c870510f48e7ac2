"""A report writer that keeps nothing, for tests of what runs before a report."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ddprobe.model import Artefact, Finding, Host, HostRecord, PlaybookRecord, Report, Result, StepRecord
from ddprobe.store import ReportWriter


class SilentWriter(ReportWriter):
    def __init__(self) -> None:
        self.trouble = ""

    def plan(self, hosts: Sequence[Host], steps: Sequence[StepRecord]) -> None:
        pass

    def playbook(self, record: PlaybookRecord) -> None:
        pass

    def begin(self, record: StepRecord) -> None:
        pass

    def answer(self, host: str, step: str, result: Result) -> None:
        pass

    def artefact_path(self, host: str, step: str, key: str) -> str:
        return key

    def artefacts(self, host: str, step: str) -> tuple[Artefact, ...]:
        return ()

    def step(self, record: StepRecord, findings: Sequence[Finding]) -> None:
        pass

    def host(self, record: HostRecord) -> None:
        pass

    def finish(self, report: Report, mask: Callable[[bytes], bytes] = bytes) -> None:
        pass
