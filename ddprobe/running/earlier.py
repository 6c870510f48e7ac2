"""Going on from an earlier report: what of it still stands is taken over, with its evidence."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ddprobe import reportjson, store
from ddprobe.model import Artefact, Host, Report, StepRecord
from ddprobe.running.course import Done
from ddprobe.store import ReportWriter

Settings = tuple[tuple[str, Any], ...]


WHERE = (
    "address", "user", "port", "jump", "transport", "container",
    "engine", "url", "package", "python", "drafter", "target", "log",
)  # fmt: skip
"""What a host is asked at, and about: another machine under the same name is another host."""


class Earlier:
    """A report to go on from. A step stands that got its whole answer to the same question, if its evidence is whole."""

    def __init__(self, folder: Path, report: Report | None = None) -> None:
        """`report`: what this version reads in the folder, where another wrote it.

        Raises `UsageError` when there is no report in the folder.
        """
        self.folder = folder.parent if folder.is_file() else folder
        self.report: Report = report or store.load(self.folder)
        # What was altered since is no evidence: the step that it is of is asked again.
        self._altered = {one.path for one in store.damage(self.folder, self.report)}
        self._steps = {(step.host, step.id): step for step in self.report.steps}

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts that it is on."""
        return tuple(host.name for host in self.report.hosts)

    def knows(self, host: Host) -> bool:
        """Whether it is on this host: one of another address is another under the same name."""
        if host.name not in self.hosts:
            return False
        then = store.known_host(self.folder, host.name)
        return all(getattr(then, name) == getattr(host, name) for name in WHERE)

    def kept(self, host: Host, step: str, probe: str, settings: Settings) -> Done | None:
        """The step as it was then, with what was found; None where it must run again. `host`: as a report keeps it."""
        record = self._steps.get((host.name, step))
        if record is None or record.status != "done" or record.probe != probe:
            return None
        if not self.knows(host):
            return None
        if _comparable(record.settings) != _comparable(settings) or not self._whole(record):
            return None
        found = tuple(f for f in self.report.findings if (f.host, f.step) == (host.name, step))
        name = record.kept_from or self.folder.resolve().name
        return Done(dataclasses.replace(record, kept_from=name), found)

    def adopt(self, done: Done, writer: ReportWriter) -> None:
        """Copy the step's evidence into the new report, to the same paths."""
        for artefact in done.record.artefacts:
            writer.adopt(done.record.host, done.record.id, artefact, self._read())

    def _whole(self, record: StepRecord) -> bool:
        paths = _paths(record.artefacts)
        try:
            return self._altered.isdisjoint(paths) and all(
                store.inside(self.folder, path).is_file() for path in paths
            )
        except (OSError, ValueError):
            return False

    def _read(self) -> Callable[[str], bytes]:
        return lambda path: store.read(self.folder, path)


def _paths(artefacts: tuple[Artefact, ...]) -> tuple[str, ...]:
    return tuple(path for artefact in artefacts for path in store.paths_of(artefact))


def _comparable(settings: Settings) -> str:
    """The settings as a report keeps them: a list and a tuple are the same there."""
    return reportjson.text(reportjson.encode(dict(settings)))
