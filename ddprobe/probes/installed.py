"""The installed engine source that `source.grep` and `source.read` look at: which of the packages, and in words."""

from __future__ import annotations

import posixpath
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ddprobe.errors import Unanswered
from ddprobe.facts import Discovered, SourcePackage
from ddprobe.model import Asked, CommandResult, Evidence, Fact, Host
from ddprobe.probes.discovery import ALSO_INSTALLED, Discovery, discover, understand


@dataclass(frozen=True, slots=True)
class Chosen:
    """The package to look at, or why there is none."""

    package: SourcePackage | None
    missing: str = ""
    also: tuple[Discovered, ...] = ()
    """Other packages on the host."""

    @property
    def path(self) -> str:
        """The package's folder; empty when there is none."""
        return self.package.path if self.package else ""

    def the(self) -> SourcePackage:
        """The package. Raises `Unanswered` when there is none."""
        if self.package is None:
            raise Unanswered("package", self.missing)
        return self.package

    def facts(self) -> Iterator[Fact]:
        if self.package is not None:
            yield self.package
        yield from self.also


def find(host: Host) -> Generator[Asked, Any, Chosen]:
    """Ask the host what is installed."""
    try:
        return _choose(host, (yield from discover(host)))
    except Unanswered as error:
        return _choose(host, Discovery(notes=(f"{error.key}: {error.reason}",)))


def understood(evidence: Evidence) -> Chosen:
    """The same from a transcript."""
    try:
        return _choose(evidence.host, understand(evidence))
    except Unanswered as error:
        return _choose(evidence.host, Discovery(notes=(f"{error.key}: {error.reason}",)))


def _choose(host: Host, discovery: Discovery) -> Chosen:
    """The inventory's package, else a running server's, else what is installed."""
    package = next(iter(discovery.packages), None)
    given = posixpath.normpath(host.package) if host.package else ""
    if given and (package is None or package.path != given):
        named = next((each for each in discovery.packages if each.path == given), None)
        package = named or SourcePackage(
            engine=host.engine or posixpath.basename(given),
            path=given,
            version="",
            origin="`package` of the inventory",
        )
    if package is None:
        notes = f" ({'; '.join(discovery.notes)})" if discovery.notes else ""
        return Chosen(
            None,
            f"no installed engine source was found on the host{notes}; "
            "give its folder (the one that holds srt/) as `package` in the hosts file",
        )
    elsewhere = [
        Discovered(what="package", value=f"{each.path} {each.version}".strip(), origin=each.origin)
        for each in discovery.packages
        if each.path != package.path
    ]
    elsewhere += [
        each for each in discovery.found if each.what == "package" and each.origin == ALSO_INSTALLED
    ]
    also = {each.value: each for each in elsewhere if each.value.split(" ")[0] != package.path}
    return Chosen(package, also=tuple(also.values()))


def title(package: SourcePackage) -> str:
    """`sglang 0.5.23`"""
    return f"{package.engine} {package.version}".strip() or "the package"


def of(facts: Sequence[Fact]) -> SourcePackage | None:
    """The package among a step's facts."""
    return next((fact for fact in facts if isinstance(fact, SourcePackage)), None)


def others(facts: Sequence[Fact]) -> str:
    """What else is installed, in a sentence; empty when nothing is."""
    rest = [fact.value for fact in facts if isinstance(fact, Discovered) and fact.what == "package"]
    return f"Not looked at, but also installed: {', '.join(rest)}." if rest else ""


def complaint(result: CommandResult) -> str:
    """The last line a command wrote on stderr."""
    return result.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2][:300]
