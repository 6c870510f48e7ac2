"""Where a server's log is: a file that its output goes to, one that another process or a container's runtime writes, or
the journal. Found from what /proc tells of its descriptors 1 and 2; nothing is run but `ls`, `grep`, `head` and `cat`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ddprobe import engines
from ddprobe.engines.base import text
from ddprobe.errors import Unanswered
from ddprobe.facts import ServerArgs
from ddprobe.model import MIB, Command, Evidence, Gap, Glob
from ddprobe.parsing import proc
from ddprobe.probes import _processes

MAX_PLACES = 8
_INPUTS = "inputs"
_READERS = "readers"
_OUTPUTS = ((2, "stderr"), (1, "stdout"))
_PIPE = re.compile(r"pipe:\[\d+\]$")
_UNIT = re.compile(r"/([A-Za-z0-9][A-Za-z0-9@:_.\\-]{0,200}\.service)(?:/|$)")
_DELETED = " (deleted)"
_ID = re.compile(r"[0-9a-f]{12}$")
# Where runtimes keep what a container prints, by the beginning of the container's id.
_KEPT = (
    "/var/lib/docker/containers/{0}*/{0}*-json.log",
    "/var/lib/containers/storage/overlay-containers/{0}*/userdata/ctr.log",
    "/home/*/.local/share/containers/storage/overlay-containers/{0}*/userdata/ctr.log",
    "/var/log/containers/*-{0}*.log",
)
_ELSEWHERE = "name the log with --log PATH, or save it and run ddprobe analyse on the file"


@dataclass(frozen=True, slots=True)
class Place:
    """A log to read: a file by its path on the host, or a unit's journal."""

    path: str
    origin: str
    server: str = ""
    journal: str = ""
    """The option of `journalctl` that names such a unit; empty for a file."""


@dataclass(frozen=True, slots=True)
class Places:
    """What was found, and why there is nothing where there is nothing."""

    found: tuple[Place, ...] = ()
    missing: tuple[Gap, ...] = ()
    arguments: tuple[ServerArgs, ...] = ()
    """Each server's command line: what its log says is judged by what it was told."""


def further(evidence: Evidence) -> tuple[Command, ...]:
    """Who reads the pipes that servers write to, and what their containers' runtimes keep."""
    asked = []
    running = _processes.read(evidence).running
    outputs = _outputs(evidence)
    for run in running:
        server = run.server
        if not any(_PIPE.match(target) for target in outputs.get(server.pid, {}).values()) and not (
            server.container and server.pid not in outputs
        ):
            continue
        if kept := _kept(server.container):
            asked.append(_listed(f"kept-{server.pid}", kept))
        else:
            asked.append(_listed(_INPUTS, (Glob("/proc/[0-9]*/fd/0"),)))
    return tuple(dict.fromkeys(asked))


def readers(evidence: Evidence) -> tuple[Command, ...]:
    """What the processes that read those pipes write to."""
    pids = sorted({pid for pids in _readers_of(evidence).values() for pid in pids})[:MAX_PLACES]
    if not pids:
        return ()
    folders = tuple(f"/proc/{pid}/fd" for pid in pids)
    return (Command(key=_READERS, argv=("ls", "-l", "/dev/null", *folders), exits=(0, 1, 2)),)


def places(evidence: Evidence) -> Places:
    """The logs of every server that runs. Raises `Unanswered` when the processes could not be searched."""
    processes = _processes.read(evidence)
    outputs = _outputs(evidence)
    found: list[Place] = []
    missing: list[Gap] = []
    for run in processes.running:
        server = run.server
        own: list[Place] = []
        reasons: list[str] = []
        named = text(run.engine.given(server.argv, server.environment).get("log_file"))
        if named.startswith("/"):
            own.append(
                Place(server.root + named, f"log file on the command line of pid {server.pid}", server.name)
            )
        held = outputs.get(server.pid)
        if held is None:
            reasons.append(f"its descriptors cannot be seen (it is {server.user or 'another user'}'s)")
        for number, stream in _OUTPUTS if held is not None else ():
            if target := (held or {}).get(number, ""):
                where = f"{stream} of pid {server.pid}"
                own += _place(evidence, server.pid, server.name, server.root, target, where, reasons)
        if server.container and held is None:
            own += _of_container(evidence, server.pid, server.name, reasons)
        own = list({place.path: place for place in reversed(own)}.values())[::-1]
        found += own
        if not own:
            why = "; ".join(dict.fromkeys(reasons)) or "its stdout and stderr are closed"
            missing.append(Gap(f"log of {server.name}", f"{why}: {_ELSEWHERE}"))
    unique = tuple({place.path: place for place in reversed(found)}.values())[::-1]
    if len(unique) > MAX_PLACES:
        missing.append(Gap("logs", f"{len(unique)} were found; the first {MAX_PLACES} were read"))
    arguments = tuple(engines.command_line(run.server) for run in processes.running)
    return Places(unique[:MAX_PLACES], tuple(missing), arguments)


def _place(
    evidence: Evidence, pid: int, server: str, root: str, target: str, where: str, reasons: list[str]
) -> list[Place]:
    """What one descriptor comes to; why to nothing goes to `reasons`."""
    if _PIPE.match(target):
        if evidence.has(f"kept-{pid}"):
            return _of_container(evidence, pid, server, reasons)
        return _behind_pipe(evidence, target, server, where, reasons)
    if target.startswith("socket:"):
        if unit := _unit(evidence, pid):
            name, option = unit
            return [Place(name, f"journal of the unit of pid {pid}", server, journal=option)]
        reasons.append(f"{where} is a socket, and of no systemd unit")
    elif target.endswith(_DELETED):
        reasons.append(f"{where} goes to {target.removesuffix(_DELETED)}, which was deleted (rotated away?)")
    elif target == "/dev/null":
        reasons.append(f"{where} goes to /dev/null: nothing is kept")
    elif target.startswith("/dev/"):
        reasons.append(f"{where} goes to a terminal ({target}): nothing is kept")
    elif target.startswith("/"):
        return [Place(root + target, where, server)]
    else:
        reasons.append(f"{where} goes to {target[:80]}")
    return []


def _behind_pipe(evidence: Evidence, pipe: str, server: str, where: str, reasons: list[str]) -> list[Place]:
    pids = _readers_of(evidence).get(pipe, ())
    try:
        held = proc.open_files(evidence.text(_READERS)) if pids else {}
    except Unanswered as error:
        held = {}
        reasons.append(f"what reads {where} could not be seen ({error.reason})")
    found = [
        Place(target, f"written by pid {pid}, which reads {where}", server)
        for pid in pids
        for number, target in sorted(held.get(pid, {}).items())
        if number > 0
        and target.startswith("/")
        and not target.startswith("/dev/")
        and not target.endswith(_DELETED)
    ]
    if not found:
        reasons.append(f"{where} goes into a pipe, and what reads it writes to no file that can be seen")
    return found


def _of_container(evidence: Evidence, pid: int, server: str, reasons: list[str]) -> list[Place]:
    key = f"kept-{pid}"
    try:
        listed = evidence.text(key).split("\n") if evidence.has(key) else []
    except Unanswered as error:
        reasons.append(f"what its container's runtime keeps could not be listed ({error.reason})")
        return []
    found = [
        Place(path, "kept by its container's runtime", server) for path in listed if path.startswith("/")
    ]
    if not found:
        reasons.append(
            "its container's runtime reads what it prints, and no log file of it can be seen (often root's alone; "
            "docker logs CONTAINER shows it)"
        )
    return found


def _readers_of(evidence: Evidence) -> dict[str, tuple[int, ...]]:
    """The processes whose standard input is a pipe, by pipe."""
    try:
        inputs = proc.standard_inputs(evidence.text(_INPUTS)) if evidence.has(_INPUTS) else {}
    except Unanswered:
        return {}
    wanted = {
        target for held in _outputs(evidence).values() for target in held.values() if _PIPE.match(target)
    }
    found: dict[str, tuple[int, ...]] = {}
    for pid, target in sorted(inputs.items()):
        if target in wanted:
            found[target] = (*found.get(target, ()), pid)
    return found


def _outputs(evidence: Evidence) -> dict[int, dict[int, str]]:
    """Descriptors 1 and 2 of each candidate that may be looked into."""
    if not evidence.has("fd"):
        return {}
    held = proc.open_files(evidence.text("fd"))
    return {
        pid: {number: target for number, target in files.items() if number in (1, 2)}
        for pid, files in held.items()
        if files
    }


def _unit(evidence: Evidence, pid: int) -> tuple[str, str] | None:
    """The systemd unit that a process is of, and the option that names it."""
    lines = proc.by_pid(evidence.text("cgroup")).get(pid, ())
    units = [found for line in lines for found in _UNIT.findall(line)]
    if not units or units[-1].startswith("user@"):
        return None
    return units[-1], "--user-unit" if units[0].startswith("user@") else "-u"


def _kept(container: str) -> tuple[Glob, ...]:
    identifier = container.rpartition(" ")[2]
    return tuple(Glob(form.format(identifier)) for form in _KEPT) if _ID.match(identifier) else ()


def _listed(key: str, paths: tuple[Glob, ...]) -> Command:
    how = ("-l", "-d") if key == _INPUTS else ("-1", "-d")
    return Command(key=key, argv=("ls", *how, *paths), exits=(0, 1, 2), cap=4 * MIB)
