"""What a person sees of a host's GPUs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ddprobe.blocks import Block, Pairs, Paragraph, Table
from ddprobe.facts import Gpu, GpuDriver, GpuFault, GpuLink, GpuProcess
from ddprobe.model import Fact

_STATES = {
    "answers": "answers",
    "hangs": "hangs: nothing more was asked of it",
    "stuck": "hangs: processes are stuck in it, so its tool was not started",
    "refuses": "its tool ended with an error",
    "garbled": "its tool wrote something unreadable",
    "absent": "its tool is not there",
    "unasked": "not asked: how the cards are is unknown",
    "cut": "the answer of its tool did not come whole",
}
_BENIGN = frozenset({"gpu_idle", "applications_clocks_setting"})
UNKNOWN = "?"
MANY = 3
"""Cards that are alike from which they are one row."""


def blocks(facts: Sequence[Fact]) -> Iterator[Block]:
    """The driver, the cards, their links, who uses them, and what the kernel's log says."""
    gpus = [fact for fact in facts if isinstance(fact, Gpu)]
    for driver in (fact for fact in facts if isinstance(fact, GpuDriver)):
        yield Pairs(_driver(driver), "Driver")
    if gpus:
        yield _cards(gpus)
        yield Paragraph(
            "Busy is the share of the last moments in which any kernel ran: 100 % does not say that a card is used well.",
            "dim",
        )
    links = [fact for fact in facts if isinstance(fact, GpuLink)]
    if links:
        yield _links(links, gpus)
    processes = [fact for fact in facts if isinstance(fact, GpuProcess)]
    if processes:
        yield _processes(processes)
    faults = [fact for fact in facts if isinstance(fact, GpuFault)]
    if faults:
        yield _faults(faults)


def _driver(driver: GpuDriver) -> tuple[tuple[str, str], ...]:
    kind = {True: " (open)", False: " (proprietary)", None: ""}[driver.open_module]
    rows = (
        ("vendor", {"nvidia": "NVIDIA", "amd": "AMD"}.get(driver.vendor, driver.vendor)),
        ("kernel module", f"{driver.module}{kind}" if driver.module else "none seen"),
        ("libraries", driver.tool_version),
        ("newest CUDA", driver.cuda),
        ("cards on the PCI bus", str(driver.nodes) if driver.nodes is not None else ""),
        ("driver", _STATES.get(driver.state, driver.state)),
        ("it said", driver.complaint),
        ("stuck in it", "\n".join(driver.stuck)),
        ("kernel's log", {True: "read", False: "may not be read", None: ""}[driver.log_read]),
        ("DCGM", driver.dcgm),
    )
    return tuple((name, value) for name, value in rows if value)


def _cards(gpus: Sequence[Gpu]) -> Table:
    rows = [(row, any(map(_marked, alike))) for alike in _alike(gpus) for row in _rows(alike)]
    return Table(
        ("GPU", "name", "bus", "memory MiB", "busy %", "SM MHz", "held by", "W", "°C", "PCIe", "ECC", "MIG"),
        tuple(row for row, _ in rows),
        "GPUs",
        emphasis=tuple(place for place, (_, marked) in enumerate(rows) if marked),
        spare=(2, 11, 10, 9),
    )


def _marked(gpu: Gpu) -> bool:
    return bool(set(gpu.clock_reasons or ()) - _BENIGN or gpu.ecc_uncorrected or gpu.unread)


def _alike(gpus: Sequence[Gpu]) -> Iterator[list[Gpu]]:
    """Cards with numbers in a row that differ in nothing that is shown but number and place."""
    run: list[Gpu] = []
    for gpu in gpus:
        last = run[-1] if run else None
        if last is not None and not (
            last.index is not None and gpu.index == last.index + 1 and _shown(gpu) == _shown(last)
        ):
            yield run
            run = []
        run.append(gpu)
    if run:
        yield run


def _shown(gpu: Gpu) -> tuple[bool, str, tuple[str, ...]]:
    _, name, _, *others = _card(gpu)
    return _marked(gpu), name, tuple(others)


def _rows(alike: Sequence[Gpu]) -> list[tuple[str, ...]]:
    """One row for many that are alike, one each for few."""
    if len(alike) < MANY:
        return [_card(gpu) for gpu in alike]
    first, last = alike[0], alike[-1]
    _, name, _, *others = _card(first)
    bus = f"{first.bus} … {last.bus}" if first.bus and last.bus else ""
    return [(f"{first.index}–{last.index}", name, bus, *others)]


def _card(gpu: Gpu) -> tuple[str, ...]:
    return (
        str(gpu.index) if gpu.index is not None else "–",
        gpu.name or UNKNOWN,
        gpu.bus,
        _of(gpu.memory_used_mib, gpu.memory_total_mib),
        _n(gpu.utilization),
        _of(gpu.sm_clock_mhz, gpu.sm_clock_max_mhz),
        UNKNOWN if gpu.clock_reasons is None else ", ".join(gpu.clock_reasons) or "nothing",
        _of(gpu.power_w, gpu.power_limit_w),
        _n(gpu.temperature_c),
        _pcie(gpu),
        _ecc(gpu),
        _mig(gpu),
    )


def _n(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.0f}"


def _of(value: float | None, most: float | None) -> str:
    return (
        UNKNOWN
        if value is None and most is None
        else f"{_n(value)} / {_n(most)}"
        if most is not None
        else _n(value)
    )


def _pcie(gpu: Gpu) -> str:
    if gpu.pcie_gen is None and gpu.pcie_width is None:
        return UNKNOWN
    now = f"gen {gpu.pcie_gen or UNKNOWN} × {gpu.pcie_width or UNKNOWN}"
    if gpu.pcie_gen_max is None or (gpu.pcie_gen, gpu.pcie_width) == (gpu.pcie_gen_max, gpu.pcie_width_max):
        return now
    return f"{now} (of {gpu.pcie_gen_max} × {gpu.pcie_width_max or UNKNOWN})"


def _ecc(gpu: Gpu) -> str:
    if not gpu.ecc:
        return (
            "off"
            if gpu.ecc is False
            else UNKNOWN
            if gpu.ecc_uncorrected is None
            else str(gpu.ecc_uncorrected)
        )
    return f"{UNKNOWN if gpu.ecc_uncorrected is None else gpu.ecc_uncorrected} uncorrected"


def _mig(gpu: Gpu) -> str:
    if gpu.mig is None:
        return "–"
    return f"{gpu.mig_instances or 0} instances" if gpu.mig else "off"


def _links(links: Sequence[GpuLink], gpus: Sequence[Gpu]) -> Table:
    indexes = sorted({place for link in links for place in (link.first, link.second)})
    kinds = {(link.first, link.second): link.kind for link in links}
    rows = tuple(
        (
            f"GPU {row}",
            *(
                "X" if row == column else kinds.get((min(row, column), max(row, column)), UNKNOWN)
                for column in indexes
            ),
        )
        for row in indexes
    )
    numa = ", ".join(f"GPU {gpu.index} on {gpu.numa}" for gpu in gpus if gpu.numa and gpu.index is not None)
    return Table(
        ("", *(f"GPU {column}" for column in indexes)),
        rows,
        "How they reach each other",
        "NV#: NVLinks; PIX, PXB: PCIe switches; PHB, NODE: through the host's bridge; SYS: between processors."
        + (f" NUMA: {numa}." if numa else ""),
    )


def _processes(processes: Sequence[GpuProcess]) -> Table:
    rows = tuple(
        (
            f"GPU {one.gpu}" if one.gpu is not None else UNKNOWN,
            str(one.pid),
            one.name or UNKNOWN,
            _n(one.memory_mib),
            (one.user or UNKNOWN) if one.visible else "not visible here",
            one.container or ("no" if one.visible else UNKNOWN),
            one.server or "–",
        )
        for one in processes
    )
    return Table(
        ("GPU", "pid", "process", "memory MiB", "user", "container", "server"),
        rows,
        "Processes on them",
        spare=(5,),
    )


def _faults(faults: Sequence[GpuFault]) -> Table:
    rows = tuple(
        (
            f"XID {one.number}"
            if one.kind == "xid"
            else f"SXid {one.number}"
            if one.kind == "sxid"
            else one.kind,
            f"GPU {one.gpu}" if one.gpu is not None else one.bus or "–",
            str(one.count),
            one.moment or UNKNOWN,
            one.text,
        )
        for one in faults[-20:]
    )
    return Table(("what", "card", "times", "last", "text"), rows, "What the kernel's log says of them")
