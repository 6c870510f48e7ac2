"""The ladder: what is asked of a host about its GPUs, in an order that survives a driver that hangs.

First what touches no driver (files under /proc and /sys, the kernel's log, who sleeps in the kernel), the tools of the
driver last, one after another. After one of them that did not answer in time, nothing more is asked of it: a process
that hangs in the driver cannot be ended, and each further one would be left behind on the host.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

from ddprobe.errors import Unanswered
from ddprobe.model import MIB, Asked, Command, CommandResult, Evidence, Glob, Host, Result
from ddprobe.parsing import amd_smi, nvidia_proc, nvidia_smi, pci, proc
from ddprobe.probes import _processes

LOG_CAP = 16 * MIB
MOST_SLEEPERS = 32
MOST_APPS = nvidia_smi.MOST_ROWS
SMI = ("smi", *(f"smi-{attempt}" for attempt in range(2, nvidia_smi.TRIES + 1)))
"""Keys of the queries of the cards, in order."""
SLEEPING = Command(
    key="sleeping", argv=("grep", "-s", "-H", "-e", "^State:.D", Glob("/proc/[0-9]*/status")), exits=(0, 1, 2)
)
DMESG = Command(key="dmesg", argv=("dmesg",), cap=LOG_CAP, exits=nvidia_smi.ANY_EXIT, alone=True)
JOURNAL = Command(
    key="kernel-journal",
    argv=("journalctl", "-q", "--no-pager", "-k", "-o", "short-iso", "-n", "5000"),
    cap=LOG_CAP,
    exits=nvidia_smi.ANY_EXIT,
    alone=True,
)
UPTIME = Command(key="uptime", argv=("cat", "/proc/uptime"), exits=(0, 1))
DCGM = Command(key="dcgm", argv=("dcgmi", "-v"), exits=nvidia_smi.ANY_EXIT, alone=True)
REMAPPED = nvidia_smi.query("remapped", "remapped-rows", nvidia_smi.ROWS)
APPS = nvidia_smi.query("apps", "compute-apps", nvidia_smi.APPS)
LIST = nvidia_smi.ask("list", "-L")
TOPOLOGY = nvidia_smi.ask("topology", "topo", "-m")
VERSION = nvidia_smi.ask("version", "--version")

_IN_DRIVER = re.compile(r"nv|uvm|os_acquire|rm_|_nv|amdgpu|kfd|ttm_|dma_fence")
_OF_DRIVER = re.compile(r"nvidia|nv-|nvsm|dcgm|amd-smi|rocm-smi")


@dataclass(frozen=True, slots=True)
class Sleeper:
    """A process in uninterruptible sleep, seen so twice."""

    pid: int
    name: str
    wait: str
    """The kernel's function that it waits in; empty where it does not say."""

    @property
    def in_driver(self) -> bool:
        return bool(_IN_DRIVER.match(self.wait) or _OF_DRIVER.match(self.name))

    def __str__(self) -> str:
        return f"{self.name} pid {self.pid}" + (f" (in {self.wait})" if self.wait else "")


def climb(host: Host) -> Generator[Asked, Any, None]:
    """All the questions, rung by rung."""
    seen: list[Result] = []
    seen += yield (
        nvidia_proc.CARDS, nvidia_proc.DRIVER, pci.DISPLAYS, pci.VENDORS, SLEEPING, UPTIME, DMESG,
    )  # fmt: skip
    about = tuple(_second(Evidence(host, tuple(seen))))
    if about:
        seen += yield about
    evidence = Evidence(host, tuple(seen))
    if held_back(evidence):
        return
    if wants_nvidia(evidence):
        answered = yield from _nvidia(host)
        if answered:
            yield from _users(host, answered)
    if any(device.vendor == "amd" for device in devices(evidence)):
        yield from _amd()


def _second(evidence: Evidence) -> list[Command]:
    """Links, a second look at who sleeps, and the journal where dmesg is refused."""
    asked: list[Command] = []
    if on_bus := devices(evidence):
        asked.append(pci.ask_links(on_bus))
    if pids := asleep(evidence):
        status = tuple(f"/proc/{pid}/status" for pid in pids)
        # No command line: to read one of a process that hangs can hang too.
        asked.append(_of("sleepers", "^(Name|State):", status))
        asked.append(_of("wchan", "", tuple(f"/proc/{pid}/wchan" for pid in pids)))
    if not read_log(evidence, "dmesg"):
        asked.append(JOURNAL)
    return asked


def _of(key: str, pattern: str, paths: Sequence[str]) -> Command:
    return Command(
        key=key, argv=("grep", "-a", "-s", "-H", "-E", "-e", pattern, *paths), exits=(0, 1, 2), alone=True
    )


def _nvidia(host: Host) -> Generator[Asked, Any, Evidence | None]:
    """Ask nvidia-smi, one thing after another. None when it does not answer, or no longer does."""
    fields: tuple[str, ...] = nvidia_smi.CARD_FIELDS
    seen: list[Result] = []
    for tried, key in enumerate(SMI, 1):
        answer = yield nvidia_smi.query(key, "gpu", fields)
        seen.append(answer)
        fewer = nvidia_smi.next_try(fields, "\n".join(said(answer)), tried)
        if not answer.whole or fewer == fields:
            break
        fields = fewer
    # Its code is no matter: with one card lost it tells of the others, and ends with an error.
    if not answer.whole or not nvidia_smi.rows(answer.text, fields):
        return None
    for question in (REMAPPED, APPS, LIST, TOPOLOGY, VERSION):
        answer = yield question
        seen.append(answer)
        if not answer.whole:
            return None
    answer = yield DCGM
    return Evidence(host, (*seen, answer))


def _users(host: Host, evidence: Evidence) -> Generator[Asked, Any, None]:
    """Whose the processes on the cards are, and which inference servers run."""
    pids = tuple(sorted({pid for row in apps(evidence) if (pid := nvidia_smi.whole(row["pid"]))}))[:MOST_APPS]
    owned: tuple[Command, ...] = ()
    if pids:
        folders = tuple(f"/proc/{pid}" for pid in pids)
        owned = (
            Command(key="app-owners", argv=("ls", "-l", "-d", "/proc/self", *folders), exits=(0, 1, 2)),
            _of("app-groups", "", tuple(f"/proc/{pid}/cgroup" for pid in pids)),
        )
    seen = yield (*owned, *_processes.first(host))
    try:
        about = _processes.second(_processes.candidates(Evidence(host, tuple(seen))))
    except Unanswered:
        return
    if about:
        yield about


def _amd() -> Generator[Asked, Any, None]:
    answer = yield amd_smi.ROCM
    if answer.whole and not amd_smi.rocm(answer.text):
        static = yield amd_smi.STATIC
        if static.whole and amd_smi.amd(static.text, ""):
            yield amd_smi.METRIC
    yield amd_smi.MODULE


# --- what the answers say of how to go on ------------------------------------------------------------------


def devices(evidence: Evidence) -> tuple[pci.Device, ...]:
    """The cards on the bus; none where it could not be looked at."""
    return pci.cards(text_of(evidence, "displays"), text_of(evidence, "vendors"))


def held_back(evidence: Evidence) -> str:
    """Why no tool of a driver is started, as `GpuDriver.state` has it; empty when nothing speaks against it."""
    if any(sleeper.in_driver for sleeper in sleepers(evidence)):
        return "stuck"
    unread = [key for key in ("cards", "driver") if evidence.has(key) and evidence.command(key).timed_out]
    if unread and evidence.result("displays").whole:
        return "hangs"
    return "" if evidence.result("sleeping").whole else "unasked"


def wants_nvidia(evidence: Evidence) -> bool:
    """Whether nvidia-smi is worth a try: cards of NVIDIA, or none at all that can be seen (a guest of Windows has it so)."""
    kinds = {device.vendor for device in devices(evidence)}
    return "nvidia" in kinds or not kinds or bool(nvidia_proc.driver(text_of(evidence, "driver")))


def asleep(evidence: Evidence) -> tuple[int, ...]:
    """Processes in uninterruptible sleep at the first look, the latest of them first."""
    return tuple(reversed(proc.pids(text_of(evidence, "sleeping"))))[:MOST_SLEEPERS]


def sleepers(evidence: Evidence) -> tuple[Sleeper, ...]:
    """Those that still slept at the second look: an ordinary wait for a disk is over by then."""
    names: dict[int, str] = {}
    still: set[int] = set()
    for pid, lines in proc.by_pid(text_of(evidence, "sleepers")).items():
        for line in lines:
            name, _, value = line.partition(":")
            if name == "Name":
                names[pid] = value.strip()[:32]
            elif name == "State" and value.strip().startswith("D"):
                still.add(pid)
    waits = {
        pid: lines[0].strip()[:60] for pid, lines in proc.by_pid(text_of(evidence, "wchan")).items() if lines
    }
    waits = {pid: wait for pid, wait in waits.items() if wait != "0"}
    return tuple(Sleeper(pid, names.get(pid, "a process"), waits.get(pid, "")) for pid in sorted(still))


def read_log(evidence: Evidence, key: str) -> bool:
    """Whether the kernel's log came under this key: dmesg that ended well, or a journal that shows a line."""
    try:
        result = evidence.command(key)
        return bool(result.exit_code == 0 and result.text.strip())
    except Unanswered:
        return False


def apps(evidence: Evidence) -> tuple[dict[str, str], ...]:
    """Processes on the cards, as nvidia-smi lists them."""
    return nvidia_smi.rows(text_of(evidence, "apps"), nvidia_smi.APPS)


def text_of(evidence: Evidence, key: str) -> str:
    """The answer; empty where there is none."""
    try:
        return evidence.text(key)
    except Unanswered:
        return ""


def said(result: CommandResult) -> tuple[str, str]:
    """Both streams as text, whole or not."""
    return result.stdout.decode("utf-8", "replace"), result.stderr.decode("utf-8", "replace")
