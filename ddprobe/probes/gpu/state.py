"""What GPUs does the host have, and how are they?

Cards, driver, memory, clocks and the reasons that hold them, links, processes with their containers, errors of memory,
XIDs. Files under /proc and /sys, the kernel's log and who sleeps in the kernel are looked at first; nvidia-smi is asked
last, with a timeout. Once a driver hangs, nothing more is asked of it. AMD's cards are recognised, with what rocm-smi
or amd-smi gives.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ddprobe.blocks import Block
from ddprobe.facts import Gpu, GpuDriver
from ddprobe.model import Cite, Conversation, Evidence, Fact, Finding, Gap, Host, Outcome, Probe
from ddprobe.parsing import nvidia_smi
from ddprobe.probes import _outputs
from ddprobe.probes.gpu import _amd, _cards, _damage, _ladder, _state_view, _uses

_READ = {
    "cards": "/proc/driver/nvidia/gpus",
    "driver": "/proc/driver/nvidia/version",
    "displays": "the classes of PCI devices",
    "vendors": "the vendors of PCI devices",
    "sleeping": "the states of processes",
    "links": "the PCIe links of the cards",
}
"""What is read without the driver's tools, in words."""


@dataclass(frozen=True, kw_only=True)
class GpuState(Probe):
    """Climbs from the kernel's files to the driver's own tool, and stops where the driver hangs."""

    findings: ClassVar[dict[str, str]] = {
        "gpu.none": "the host has no GPU that can be seen",
        "gpu.wedged": "the driver hangs: nvidia-smi did not answer in time, or processes are stuck in the driver",
        "gpu.refused": "the driver's tool ended with an error",
        "gpu.lost": "the driver lists a card and cannot reach it",
        "gpu.reset": "the driver lists a card that works again after a reset alone",
        "gpu.unread": "some values of a card could not be read, or are none that a card can have, and are unknown",
        "gpu.missing": "the PCI bus lists more cards than the driver sees",
        "gpu.no_tool": "there is a card and no tool of its driver to ask",
        "gpu.log": "the kernel's log may not be read, so XIDs are unknown",
        "gpu.amd": "AMD's cards are recognised; lints judge NVIDIA's only",
    }
    outputs: ClassVar[dict[str, str]] = _outputs.GPUS

    @classmethod
    def output(cls, facts: Sequence[Fact], findings: Sequence[Finding]) -> Mapping[str, Any]:
        return _outputs.of_gpus(facts, findings)

    def collect(self, host: Host) -> Conversation:
        yield from _ladder.climb(host)

    def interpret(self, evidence: Evidence) -> Iterator[Fact | Finding | Gap]:
        evidence.result("displays")
        driver, gpus = _cards.driver(evidence), _cards.cards(evidence)
        others = tuple(_amd.cards(evidence))
        if driver is not None:
            yield driver
        yield from gpus
        yield from others
        yield from _uses.links(evidence)
        yield from _uses.processes(evidence, gpus)
        yield from _uses.faults(evidence, (*gpus, *(each for each in others if isinstance(each, Gpu))))
        yield from _gaps(evidence)
        host = evidence.host.name
        yield from _damage.findings(gpus, host)
        if driver is not None:
            yield from _of_driver(driver, gpus, host, evidence)
        for each in others:
            if isinstance(each, GpuDriver):
                yield from _of_amd(each, host)
        if driver is None and not others:
            yield from _none(evidence)

    def show(self, facts: Sequence[Fact]) -> Iterator[Block]:
        yield from _state_view.blocks(facts)


def _none(evidence: Evidence) -> Iterator[Finding | Gap]:
    """No GPU, where all that could show one was answered whole and shows none."""
    found = _cards.query(evidence)
    seen = ("displays", "vendors", "driver")
    if found is None or not all(evidence.has(key) and evidence.result(key).whole for key in seen):
        return
    cite = Cite(found.result.key)
    if found.result.exit_code != _cards.NOT_FOUND:
        said = nvidia_smi.complaint(*_ladder.said(found.result))
        why = f"exit code {found.result.exit_code}" + (f": {said}" if said else "")
        yield Gap("nvidia-smi", f"{why}; it is there, so whether there is a GPU is unknown", (cite,))
        return
    yield Finding(
        id="gpu.none",
        outcome=Outcome.WARN,
        subject=evidence.host.name,
        summary="no GPU: the PCI bus lists none of NVIDIA or AMD, no driver of NVIDIA is loaded, and there is no "
        "nvidia-smi",
        cites=(Cite("displays"), Cite("driver"), cite),
    )


def _gaps(evidence: Evidence) -> Iterator[Gap]:
    """What got no whole answer; a tool that refused or is not there has a finding of its own."""
    for key, what in _READ.items():
        if evidence.has(key) and not evidence.result(key).whole:
            yield Gap(what, evidence.command(key).trouble, (Cite(key),))
    for key in (*_cards.SMI, "rocm-smi", "amd-static"):
        if evidence.has(key) and not evidence.result(key).whole:
            yield Gap(_cards.short(evidence.command(key))[:80], evidence.command(key).trouble, (Cite(key),))
    how, complaint = _cards.state(evidence)
    if how == "unasked" and not _ladder.held_back(evidence):
        yield Gap(
            "nvidia-smi", "no answer of it came, so how the cards are, and whether there are any, is unknown"
        )
    found = _cards.query(evidence)
    yield from _damage.gaps(evidence)
    if how == "garbled" and not (found and found.told.rows):
        said = f" It begins: {complaint}" if complaint else " It is empty."
        yield Gap(
            "nvidia-smi",
            f"it answered, and not in the form that was asked for.{said}",
            (Cite(_key(evidence)),),
        )


def _key(evidence: Evidence) -> str:
    found = _cards.query(evidence)
    return found.result.key if found is not None else "driver"


def _of_driver(driver: GpuDriver, gpus: tuple[Gpu, ...], host: str, evidence: Evidence) -> Iterator[Finding]:
    cite = (Cite(_key(evidence)),)
    if driver.state in ("hangs", "stuck"):
        yield _wedged(driver, host, evidence)
    elif driver.state == "refuses":
        yield Finding(
            id="gpu.refused",
            outcome=Outcome.FAIL,
            subject=host,
            summary=f"nvidia-smi gives no answer: {driver.complaint}",
            cites=cite,
            advice=_advice(driver.complaint),
        )
    elif driver.state == "absent":
        yield Finding(
            id="gpu.no_tool",
            outcome=Outcome.UNKNOWN,
            subject=host,
            summary="there is no nvidia-smi in the PATH of this user: what the cards do now is unknown",
            cites=cite,
            advice="give the user's PATH the folder of nvidia-smi, or look inside the container that has it",
        )
    elif driver.state == "answers" and driver.complaint:
        yield _complained(driver, gpus, host, cite)
    seen = [gpu for gpu in gpus if gpu.index is not None]
    found = _cards.query(evidence)
    all_told = driver.state == "answers" and found is not None and _damage.whole(found)
    if all_told and driver.nodes is not None and driver.nodes > len(seen):
        hidden = [gpu for gpu in gpus if gpu.index is None]
        lost = ", ".join(gpu.bus for gpu in hidden if gpu.bus)
        # One that the driver lists, or that reads as all ones, was there; any other may be kept from this user on purpose.
        fell = any(gpu.name or gpu.details for gpu in hidden)
        yield Finding(
            id="gpu.missing",
            outcome=Outcome.FAIL if fell else Outcome.WARN,
            subject=host,
            summary=f"the PCI bus lists {driver.nodes} card{'s' if driver.nodes != 1 else ''} of NVIDIA, and nvidia-smi shows {len(seen)}"
            + (f"; not shown: {lost}" if lost else ""),
            cites=(Cite("displays"), *cite),
            measured=(("on_bus", driver.nodes), ("shown", len(seen))),
            advice="look for XID 79 in the kernel's log; a card that fell off the bus comes back with a reboot or a power cycle. "
            "A card handed to a virtual machine, or kept from this container, is not shown either",
        )
    if driver.log_read is False:
        yield _no_log(host, evidence)


def _wedged(driver: GpuDriver, host: str, evidence: Evidence) -> Finding:
    if driver.state == "hangs":
        late = (
            k for k in (*_cards.SMI, "cards", "driver") if evidence.has(k) and evidence.command(k).timed_out
        )
        key = next(late, "driver")
        asked = key in _cards.SMI
        what = (
            f"nvidia-smi did not answer within {nvidia_smi.TIMEOUT:.0f} s"
            if asked
            else f"{driver.complaint}, so nvidia-smi was not started"
        )
    else:
        count = len(driver.stuck)
        what = (
            f"{count} process{'es are' if count > 1 else ' is'} stuck in the driver, seen twice in uninterruptible sleep: "
            f"{', '.join(driver.stuck[:4])}{f' and {count - 4} more' if count > 4 else ''}; nvidia-smi was not started"
        )
        key = "sleepers"
    return Finding(
        id="gpu.wedged",
        outcome=Outcome.FAIL,
        subject=host,
        summary=f"the driver hangs: {what}. Nothing more was asked of it",
        cites=(Cite(key),),
        measured=(("stuck", len(driver.stuck)),),
        advice="start no further nvidia-smi there: it cannot be ended. Read the kernel's log for the XID, end the servers, then "
        "reset the card or reboot the host",
    )


def _complained(driver: GpuDriver, gpus: tuple[Gpu, ...], host: str, cites: tuple[Cite, ...]) -> Finding:
    """It told of cards, and of trouble beside them."""
    told = sum(gpu.index is not None for gpu in gpus)
    lost = nvidia_smi.lost(driver.complaint)
    return Finding(
        id="gpu.lost" if lost else "gpu.refused",
        outcome=Outcome.FAIL if lost else Outcome.WARN,
        subject=host,
        summary=f"nvidia-smi tells of {told} card{'s' if told != 1 else ''}, and complains: {driver.complaint}",
        cites=cites,
        measured=(("told", told),),
        advice="look for XID 79 in the kernel's log; a card that cannot be reached comes back with a reset, a reboot or a power cycle"
        if lost
        else "see the kernel's log; what it tells of the cards stands",
    )


def _advice(complaint: str) -> str:
    if "version mismatch" in complaint:
        return "the driver's libraries were updated under a loaded module: end what uses the cards and reload it, or reboot"
    if "No devices" in complaint:
        return "look for XID 79 or RmInitAdapter in the kernel's log; in a container, start it with the cards (--gpus all)"
    if "communicate with the NVIDIA driver" in complaint:
        return (
            "the kernel module is not loaded: see `dkms status` and the kernel's log, and load or rebuild it"
        )
    if "Unknown Error" in complaint:
        return "in a container, its control group lost the devices (a daemon-reload does that): start the container again"
    return "see the kernel's log, and whether this user may use the devices under /dev"


def _no_log(host: str, evidence: Evidence) -> Finding:
    return Finding(
        id="gpu.log",
        outcome=Outcome.UNKNOWN,
        subject=host,
        summary="the kernel's log may not be read by this user, so whether there were XIDs is unknown",
        cites=tuple(Cite(key) for key in ("dmesg", "kernel-journal") if evidence.has(key)),
        advice="connect as root or as a member of the group adm or systemd-journal",
    )


def _of_amd(driver: GpuDriver, host: str) -> Iterator[Finding]:
    if driver.state in ("hangs", "stuck"):
        yield Finding(
            id="gpu.wedged",
            outcome=Outcome.FAIL,
            subject=host,
            summary="the driver of AMD's cards hangs: "
            + (driver.complaint or f"stuck in it: {', '.join(driver.stuck[:4])}")
            + ". Nothing more was asked of it",
            cites=driver.source,
            advice="read the kernel's log for amdgpu, and reboot the host",
        )
        return
    count = driver.nodes or 0
    told = (
        f"{driver.tool} was read"
        if driver.tool
        else f"neither rocm-smi nor amd-smi told of them ({driver.state})"
    )
    yield Finding(
        id="gpu.amd",
        outcome=Outcome.INFO if driver.tool else Outcome.UNKNOWN,
        subject=host,
        summary=f"{count} card{'s' if count != 1 else ''} of AMD on the PCI bus; {told}. The reasons of clocks, errors of memory "
        "and links between them are not judged",
        cites=driver.source,
    )
