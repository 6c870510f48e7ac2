"""What runs on a host and where its source is, found from the process table: what every probe begins with.

Three round trips: which processes may be servers; what Linux says of them; where their packages are. Every
question is a plain read of /proc or a listing. What could not be seen is said in `notes`, never guessed.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any

from ddprobe import engines
from ddprobe.facts import Discovered, ServerArgs, ServerProcess, SourcePackage
from ddprobe.model import Asked, Cite, Evidence, Host, Result
from ddprobe.probes import _packages, _processes
from ddprobe.probes._shelf import Installed

ALSO_INSTALLED = "also installed"
"""Origin of a package that no server was found to run from."""


@dataclass(frozen=True, slots=True)
class Discovery:
    """What was found, and in words what could not be seen."""

    servers: tuple[ServerProcess, ...] = ()
    packages: tuple[SourcePackage, ...] = ()
    """The inventory's first, then those of running servers; only where neither is known, what is installed."""
    found: tuple[Discovered, ...] = ()
    notes: tuple[str, ...] = ()
    blind: tuple[str, ...] = ()
    """Those of the notes that leave open whether a further server runs."""
    arguments: tuple[ServerArgs, ...] = ()
    """Each server's command line, in the order of `servers`."""
    strays: tuple[tuple[int, int], ...] = ()
    """Workers that belong to no server found, each with its parent."""


def discover(host: Host) -> Generator[Asked, Any, Discovery]:
    """Ask the host what runs on it. Raises `Unanswered` when its processes cannot be searched."""
    answers: list[Result] = []
    answers += yield _processes.first(host)
    about = _processes.second(_processes.candidates(Evidence(host, tuple(answers))))
    if about:
        answers += yield about
    running = _processes.read(Evidence(host, tuple(answers)))
    places = _packages.third(host, running)
    if places:
        answers += yield places
    return understand(Evidence(host, tuple(answers)))


def understand(evidence: Evidence) -> Discovery:
    """The same from a transcript. Raises `Unanswered` when the processes could not be searched."""
    processes = _processes.read(evidence)
    servers = {run.server.pid: run.server for run in processes.running}
    packages: list[SourcePackage] = []
    found: list[Discovered] = []
    notes = [*processes.notes, *(note for run in processes.running for note in run.notes)]
    for shelf in _packages.read(evidence, processes):
        engine = next(name for name, each in engines.TABLE.items() if each.package == shelf.package)
        if shelf.given:
            packages.append(_as_fact(engine, shelf.given, "the inventory"))
        for server, installed, why in shelf.of_servers:
            path = installed.path.removeprefix(server.root)
            servers[server.pid] = replace(server, package=path, version=installed.version)
            packages.append(_as_fact(engine, installed, why))
            found.append(_found("package", installed.path, why, f"near-{shelf.package}"))
        for installed in shelf.others:
            value = f"{installed.path} {installed.version}".strip()
            found.append(_found("package", value, ALSO_INSTALLED, f"elsewhere-{shelf.package}"))
        notes += shelf.notes
        if not packages and not any(server.engine == engine for server in servers.values()):
            packages += [_as_fact(engine, each, "installed; no server runs") for each in shelf.others]
    everything = _at_url(evidence.host, tuple(servers.values()))
    return Discovery(
        servers=everything,
        packages=tuple(dict.fromkeys(packages)),
        found=(*found, *(each for server in everything for each in _of_server(server))),
        notes=tuple(notes),
        blind=processes.notes,
        arguments=tuple(engines.command_line(server) for server in everything),
        strays=processes.strays,
    )


def _at_url(host: Host, servers: tuple[ServerProcess, ...]) -> tuple[ServerProcess, ...]:
    """The inventory's `url` is where the only server is asked, or of several the one on its port."""
    if not host.url:
        return servers
    url = host.url.rstrip("/")
    port = url.rpartition(":")[2]
    return tuple(
        replace(server, base=url) if len(servers) == 1 or server.base.endswith(f":{port}") else server
        for server in servers
    )


def _as_fact(engine: str, installed: Installed, origin: str) -> SourcePackage:
    return SourcePackage(engine=engine, path=installed.path, version=installed.version, origin=origin)


def _found(what: str, value: str, origin: str, key: str) -> Discovered:
    return Discovered(what=what, value=value, origin=origin, source=(Cite(key),))


def _of_server(server: ServerProcess) -> tuple[Discovered, ...]:
    """What was concluded of one server, and from what."""
    line, key = f"command line of pid {server.pid}", f"cmdline-{server.pid}"
    found = [_found("engine", engines.TABLE[server.engine].title, line, key)]
    if server.python:
        found.append(_found("python", server.python, line, key))
    if server.base and server.listens:
        found.append(_found("url", server.base, f"listening sockets of pid {server.pid}", "listeners"))
    return tuple(found)
