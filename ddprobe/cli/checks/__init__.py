"""What on this laptop would keep ddprobe from reaching a host or keeping a report. Looks, and changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ddprobe.cli.checks import place, ssh
from ddprobe.cli.checks.check import Check
from ddprobe.model import Outcome


def run(hosts_file: str | None, reports: Path, home: Path) -> Iterator[Check]:
    """Every check, in the order in which a run would need the thing. `home` is where `.ssh` is."""
    yield place.python()
    yield place.packages()
    yield ssh.ssh_program()
    yield ssh.agent()
    yield from ssh.keys(home / ".ssh")
    yield ssh.ssh_config(home / ".ssh" / "config")
    yield ssh.known_hosts(home / ".ssh" / "known_hosts")
    found, check = place.hosts(hosts_file)
    yield check
    if found is not None:
        yield from (Check(Outcome.WARN, "hosts file", warning) for warning in found.warnings)
        for host in found.hosts:
            yield from ssh.host_prerequisites(host)
    yield place.reports_folder(reports)
    yield place.terminal()
