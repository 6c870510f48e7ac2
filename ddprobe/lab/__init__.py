"""The lab: a made-up GPU host inside this process, reached by SSH on loopback like any other.

It needs no GPU, no network and no set-up, and touches none of the laptop's own files or processes: every question is
answered from a made-up tree of files, processes and listeners. Framing, quoting and the watchdog are not proven here
but on a real sshd. Everything it says is marked as the lab's.
"""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ddprobe.lab.scenarios import DEFAULT, SCENARIOS, Scenario, scenario
from ddprobe.model import LAB_TAG, Host

__all__ = ["DEFAULT", "Lab", "Scenario", "running", "scenarios", "up"]


@dataclass(frozen=True, slots=True)
class Lab:
    """A lab host that is up."""

    scenario: Scenario
    host: Host
    hosts_file: Path
    """An inventory that holds it, for another `ddprobe`."""

    @property
    def ddprobe_command(self) -> str:
        return shlex.join(["ddprobe", "inspect-config", "--hosts", str(self.hosts_file), self.host.name])

    @property
    def ssh_command(self) -> str:
        """How the `ssh` program gets there. Such a person meets a banner and an apology: there is no shell."""
        host = self.host
        options = [
            f"UserKnownHostsFile={host.known_hosts}",
            "GlobalKnownHostsFile=/dev/null",
            "IdentitiesOnly=yes",
        ]
        words = ["ssh", "-F", "none", "-p", str(host.port), "-i", str(host.identity_file)]
        words += [word for option in options for word in ("-o", option)]
        return shlex.join([*words, f"{host.user}@{host.address}"])


def scenarios() -> tuple[Scenario, ...]:
    """Every scenario the lab can play."""
    return SCENARIOS


@contextmanager
def up(name: str = DEFAULT) -> Iterator[Lab]:
    """A lab host, from here to the end of the `with`. Raises `UsageError` for a name that is no scenario's."""
    chosen = scenario(name)
    # Paramiko takes a tenth of a second to import; `lab scenarios` need not wait for it.
    from ddprobe.lab.server import Sshd, new_key

    machine = chosen.build()
    client_key, private = new_key()
    sshd = Sshd(machine, client_key)
    with tempfile.TemporaryDirectory(prefix="ddprobe-lab-") as folder:
        identity, known = Path(folder, "key"), Path(folder, "known_hosts")
        identity.touch(0o600)
        identity.write_text(private)
        sshd.start()
        try:
            known.write_text(sshd.known_hosts_line)
            host = Host(
                name=machine.hostname,
                address="127.0.0.1",
                user=machine.user,
                port=sshd.port,
                identity_file=str(identity),
                known_hosts=str(known),
                # A jump host that ssh_config names for every host is not on the way to this one.
                jump="none",
                gpu_bandwidth=machine.gpu_bandwidth,
                tags=(LAB_TAG,),
            )
            yield Lab(chosen, host, _hosts_file(Path(folder, "hosts.yaml"), host))
        finally:
            sshd.stop()


@contextmanager
def running(scenario: str = DEFAULT) -> Iterator[Host]:
    """A lab host to connect to, from here to the end of the `with`."""
    with up(scenario) as lab:
        yield lab.host


def _hosts_file(path: Path, host: Host) -> Path:
    names = ("address", "user", "port", "identity_file", "known_hosts", "jump")
    lines = ["# ddprobe lab: gone when the lab is", f"default: {host.name}", "hosts:", f"  {host.name}:"]
    for name in names:
        value = getattr(host, name)
        quoted = value if isinstance(value, int) else "'" + value.replace("'", "''") + "'"
        lines.append(f"    {name}: {quoted}")
    lines.append(f"    tags: [{', '.join(host.tags)}]")
    if host.gpu_bandwidth is not None:
        lines.append("    # GB/s on the lab's clock, which runs faster than the hardware that is made up")
        lines.append(f"    gpu_bandwidth: {host.gpu_bandwidth:.0f}")
    path.write_text("\n".join(lines) + "\n")
    return path
