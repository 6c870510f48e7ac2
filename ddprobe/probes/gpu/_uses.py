"""What stands around the cards: links between them, processes on them, and what the kernel's log says of them."""

from __future__ import annotations

from ddprobe.errors import Unanswered
from ddprobe.facts import Gpu, GpuFault, GpuLink, GpuProcess
from ddprobe.model import Cite, Evidence
from ddprobe.parsing import nvidia_smi, proc, xid
from ddprobe.probes import _processes
from ddprobe.probes.gpu import _ladder


def links(evidence: Evidence) -> tuple[GpuLink, ...]:
    found, _ = nvidia_smi.topology(_ladder.text_of(evidence, "topology"))
    return tuple(
        GpuLink(first=first, second=second, kind=kind, source=(Cite("topology"),))
        for first, second, kind in found
    )


def processes(evidence: Evidence, gpus: tuple[Gpu, ...]) -> tuple[GpuProcess, ...]:
    """Who holds memory of the cards, with their containers and servers."""
    index = {gpu.uuid: gpu.index for gpu in gpus if gpu.uuid}
    owners = proc.owners(_ladder.text_of(evidence, "app-owners"))
    groups = proc.by_pid(_ladder.text_of(evidence, "app-groups"))
    servers = _servers(evidence)
    found = []
    for row in _ladder.apps(evidence):
        pid = nvidia_smi.place(row["pid"])
        if pid is None:
            continue
        found.append(
            GpuProcess(
                pid=pid,
                gpu=index.get(row["gpu_uuid"]),
                uuid=row["gpu_uuid"][:60],
                name=nvidia_smi.words(row["process_name"]),
                memory_mib=nvidia_smi.mebibytes(row["used_gpu_memory"]),
                user=owners.get(pid, ""),
                container=proc.container(groups.get(pid, ())),
                server=servers.get(pid, ""),
                visible=pid in owners,
                source=(Cite("apps"),),
            )
        )
    return tuple(found)


def _servers(evidence: Evidence) -> dict[int, str]:
    """The server that each process belongs to; empty where the process table could not be searched."""
    try:
        running = _processes.read(evidence).running
    except Unanswered:
        return {}
    return {pid: run.server.name for run in running for pid in (run.server.pid, *run.server.ranks)}


def faults(evidence: Evidence, gpus: tuple[Gpu, ...]) -> tuple[GpuFault, ...]:
    """What the kernel's log says of the cards."""
    key = "dmesg" if _ladder.read_log(evidence, "dmesg") else "kernel-journal"
    index = {gpu.bus: gpu.index for gpu in gpus if gpu.bus}
    running = _ladder.text_of(evidence, "uptime").partition(" ")[0]
    now = float(running) if running.replace(".", "", 1).isdecimal() and len(running) < 20 else None
    return tuple(
        GpuFault(
            kind=line.kind,
            number=line.number,
            bus=line.bus,
            gpu=index.get(line.bus),
            moment=_when(line, now),
            text=line.text,
            count=line.count,
            source=(Cite(key, f"line {line.at}"),),
        )
        for line in xid.lines(_ladder.text_of(evidence, key))
        if line.kind != "bus" or line.bus in index
    )


def _when(line: xid.Line, now: float | None) -> str:
    """How long before this look, where both are told in seconds since the host's start."""
    if line.uptime is None or now is None or now < line.uptime:
        return line.moment
    hours = (now - line.uptime) / 3600
    return f"{hours:.1f} h ago" if hours < 48 else f"{hours / 24:.0f} days ago"
