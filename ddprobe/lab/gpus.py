"""The made-up host's cards: what `nvidia-smi`, the PCI bus and the kernel's log say of them.

Clocks, temperature and load come from the simulated engine at the moment of asking: a card is busy while a request is
computed, and its clock is the one that the step under way goes by.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ddprobe.lab.engine.engine import Engine
from ddprobe.lab.tree import File, Tree

IDLE_MHZ = 345.0
UPTIME = 1041377.40
"""Seconds since the made-up host's start, as its /proc/uptime has it."""
SW_THERMAL = 0x20
IDLE = 0x1


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A kind of card by its data sheet."""

    memory_mib: int
    power_w: int
    idle_w: int
    sm_mhz: int
    memory_mhz: int
    capability: str
    pcie_gen: int = 5


CARDS: Mapping[str, Card] = {
    "NVIDIA H100 80GB HBM3": Card(
        memory_mib=81559, power_w=700, idle_w=72, sm_mhz=1980, memory_mhz=2619, capability="9.0"
    ),
    "NVIDIA RTX PRO 6000 Blackwell Server Edition": Card(
        memory_mib=97887, power_w=600, idle_w=33, sm_mhz=2430, memory_mhz=12481, capability="12.0"
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One card at one moment."""

    index: int
    busy: bool
    mhz: float
    celsius: float
    reasons: int


@dataclass(slots=True, kw_only=True)
class Gpus:
    """All cards of one machine, which are alike and serve one engine together."""

    name: str
    addresses: Sequence[str]
    driver: str
    ranks: Sequence[int]
    """The process on each card."""
    used_mib: int
    engine: Engine | None = None
    card: Card = field(init=False)

    def __post_init__(self) -> None:
        self.card = CARDS[self.name]

    def at(self, moment: float) -> tuple[Reading, ...]:
        """Every card at this moment, seconds since the epoch."""
        busy = self.engine is not None and self.engine.busy(moment)
        heat = self.engine.model.heat if self.engine is not None else None
        mhz, celsius = (
            heat.at(moment) if heat is not None else (float(self.card.sm_mhz), 44.0 if busy else 34.0)
        )
        slowed = heat is not None and mhz < heat.clock_mhz
        return tuple(
            Reading(
                index=index,
                busy=busy,
                mhz=mhz if busy else IDLE_MHZ,
                celsius=celsius,
                reasons=(SW_THERMAL if slowed else 0) if busy else IDLE,
            )
            for index in range(len(self.addresses))
        )

    def uuid(self, index: int) -> str:
        return f"GPU-1ab00000-0000-4000-8000-{index:012x}"

    def cells(self, reading: Reading, moment: float) -> dict[str, str]:
        """Each field of `--query-gpu` with its unit."""
        card, index = self.card, reading.index
        stamp = time.strftime("%Y/%m/%d %H:%M:%S", time.gmtime(moment)) + f".{int(moment % 1 * 1000):03d}"
        power = card.idle_w + (
            0.55 * (card.power_w - card.idle_w) * reading.mhz / card.sm_mhz if reading.busy else 0.0
        )
        reasons = f"0x{reading.reasons:016x}"
        gen = card.pcie_gen if reading.busy else 1
        return {
            "timestamp": stamp,
            "index": str(index),
            "name": self.name,
            "uuid": self.uuid(index),
            "pci.bus_id": f"0000{self.addresses[index].upper()}",
            "driver_version": self.driver,
            "memory.total": f"{card.memory_mib} MiB",
            "memory.used": f"{self.used_mib} MiB",
            "utilization.gpu": f"{100 if reading.busy else 0} %",
            "utilization.memory": f"{11 if reading.busy else 0} %",
            "power.draw": f"{power:.2f} W",
            "enforced.power.limit": f"{card.power_w}.00 W",
            "power.limit": f"{card.power_w}.00 W",
            "power.default_limit": f"{card.power_w}.00 W",
            "temperature.gpu": f"{reading.celsius:.0f}",
            "temperature.memory": "N/A",
            "clocks.sm": f"{reading.mhz:.0f} MHz",
            "clocks.max.sm": f"{card.sm_mhz} MHz",
            "clocks.mem": f"{card.memory_mhz if reading.busy else 405} MHz",
            "clocks.max.mem": f"{card.memory_mhz} MHz",
            "pstate": "P0" if reading.busy else "P8",
            "clocks_event_reasons.active": reasons,
            "clocks_throttle_reasons.active": reasons,
            "persistence_mode": "Enabled",
            "mig.mode.current": "[N/A]" if card.capability.startswith("12") else "Disabled",
            "ecc.mode.current": "Enabled",
            "ecc.errors.uncorrected.volatile.total": "0",
            "ecc.errors.uncorrected.aggregate.total": "0",
            "ecc.errors.corrected.volatile.total": "0",
            "pcie.link.gen.current": str(gen),
            "pcie.link.gen.max": str(card.pcie_gen),
            "pcie.link.width.current": "16",
            "pcie.link.width.max": "16",
            "compute_cap": card.capability,
        }

    def apps(self) -> list[dict[str, str]]:
        """Each field of `--query-compute-apps`."""
        several = len(self.ranks) > 1
        return [
            {
                "gpu_uuid": self.uuid(index),
                "pid": str(pid),
                "used_gpu_memory": f"{self.used_mib - 620} MiB",
                "process_name": f"sglang::scheduler_TP{index}" if several else "sglang::scheduler",
            }
            for index, pid in enumerate(self.ranks)
        ]

    def rows(self) -> list[dict[str, str]]:
        """Each field of `--query-remapped-rows`."""
        names = ("correctable", "uncorrectable")
        return [
            {"gpu_uuid": self.uuid(index), **{f"remapped_rows.{name}": "0" for name in names},
             "remapped_rows.pending": "No", "remapped_rows.failure": "No"}
            for index in range(len(self.addresses))
        ]  # fmt: skip

    def topology(self) -> str:
        """`topo -m`: cards of one half of the machine under one host bridge each, halves across the processors."""
        count, half = len(self.addresses), max(1, len(self.addresses) // 2)
        head = [f"GPU{index}" for index in range(count)] + ["CPU Affinity", "NUMA Affinity", "GPU NUMA ID"]
        lines = ["\t" + "\t".join(head)]
        for row in range(count):
            kinds = [
                " X " if row == column else "NODE" if row // half == column // half else "SYS"
                for column in range(count)
            ]
            side = min(row // half, 1)
            lines.append("\t".join([f"GPU{row}", *kinds, f"{side * 64}-{side * 64 + 63}", str(side), "N/A"]))
        return "\n".join([*lines, "", "Legend:", "", "  X    = Self", "ddprobe lab: made up", ""])


def add_to(tree: Tree, gpus: Gpus, now: int) -> None:
    """What the PCI bus says of the cards."""
    speeds = {1: "2.5 GT/s PCIe", 4: "16.0 GT/s PCIe", 5: "32.0 GT/s PCIe"}
    for address in gpus.addresses:
        values = {
            "class": "0x030200", "vendor": "0x10de", "current_link_speed": speeds[1],
            "max_link_speed": speeds[gpus.card.pcie_gen], "current_link_width": "16", "max_link_width": "16",
        }  # fmt: skip
        for name, value in values.items():
            path = f"/sys/bus/pci/devices/{address}/{name}"
            tree.add(path, File(content=f"{value}\n".encode(), size=4096, mode=0o444, modified=now))


def kernel_log(gpus: Gpus | None) -> str:
    """What `dmesg` says: the start, and nothing bad since."""
    lines = ["[    0.000000] Linux version 6.8.0-52-generic (ddprobe lab) #1 SMP PREEMPT_DYNAMIC"]
    if gpus is not None:
        lines += [
            f"[   11.204811] nvidia {address}: enabling device (0000 -> 0003)" for address in gpus.addresses
        ]
        lines.append(
            f"[   12.771204] NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  {gpus.driver}  Release Build"
        )
    return "\n".join(lines) + "\n"
