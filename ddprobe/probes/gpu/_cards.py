"""From the ladder's transcript to facts: NVIDIA's cards, and how far their driver answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ddprobe.errors import Unanswered
from ddprobe.facts import Gpu, GpuDriver
from ddprobe.model import Cite, CommandResult, Evidence
from ddprobe.parsing import nvidia_cells, nvidia_proc, nvidia_smi, pci
from ddprobe.probes.gpu import _ladder

SMI = (*_ladder.SMI, "remapped", "apps", "list", "topology", "version")
"""Keys under which nvidia-smi was asked, in order."""
NOT_FOUND = 127
"""The exit code of a program that is not there."""
NO_PROGRAM = (126, NOT_FOUND)
"""Of one that is not there, or that this user may not start."""


@dataclass(frozen=True, slots=True)
class Query:
    """The last query of the cards: with which fields, and what came."""

    result: CommandResult
    fields: tuple[str, ...]
    rows: tuple[dict[str, str], ...]
    told: nvidia_smi.Told
    """The answer as it came, of which `rows` are each card once."""
    stray: str = ""
    """What it said beside the rows: of a card that it cannot reach, of a damaged one."""

    @property
    def nameless(self) -> tuple[dict[str, str], ...]:
        """Rows that do not say which card they are of."""
        return tuple(row for row in self.told.rows if nvidia_smi.place(row.get("index")) is None)


MOST_CARDS = 256
"""Rows of cards that are taken: what lists more is no host."""


def query(evidence: Evidence) -> Query | None:
    """None when nvidia-smi was not asked."""
    asked = [r for r in evidence.results if isinstance(r, CommandResult) and r.key.startswith("smi")]
    if not asked:
        return None
    last = asked[-1]
    fields = tuple(str(last.question.argv[1]).partition("=")[2].split(","))
    # Where one card of many cannot be reached it tells of the others, and may end with an error.
    text = last.text if last.whole else ""
    told = nvidia_smi.read(text, fields)
    complaint = told.stray or (nvidia_smi.complaint("", _ladder.said(last)[1]) if told.rows else "")
    return Query(last, fields, _distinct(told.rows), told, complaint)


def _distinct(rows: tuple[dict[str, str], ...]) -> tuple[dict[str, str], ...]:
    """Each card once, as it stands first; what says neither its number nor its place is no card that can be told apart."""
    first: dict[tuple[str, str], dict[str, str]] = {}
    for row in rows:
        number = str(place) if (place := nvidia_smi.place(row.get("index"))) is not None else ""
        if number or nvidia_smi.bus(row.get("pci.bus_id")):
            first.setdefault((number, "" if number else row.get("pci.bus_id", "")), row)
    return tuple(first.values())[:MOST_CARDS]


def state(evidence: Evidence) -> tuple[str, str]:
    """How nvidia-smi answered (as `GpuDriver.state` has it), and what it complained of."""
    found = query(evidence)
    if why := _ladder.held_back(evidence):
        return why, "files under /proc/driver/nvidia cannot be read in time" if why == "hangs" else ""
    if found is None:
        return ("unasked" if _ladder.wants_nvidia(evidence) else "absent"), ""
    for key in SMI:
        if evidence.has(key) and evidence.command(key).timed_out:
            return "hangs", f"{short(evidence.command(key))}: {evidence.command(key).trouble}"
    result = found.result
    if not result.whole:
        return "cut", result.trouble
    if result.exit_code in NO_PROGRAM and not result.stdout.strip():
        return "absent", ""
    complaint = nvidia_smi.complaint(*_ladder.said(result))
    if found.rows:
        return "answers", found.stray if result.exit_code != 0 or nvidia_smi.lost(found.stray) else ""
    if nvidia_smi.knows_not(complaint):
        return "garbled", complaint
    if result.exit_code != 0 or complaint.startswith("No devices were found"):
        return (
            "refuses",
            f"exit code {result.exit_code}: {complaint}" if complaint else f"exit code {result.exit_code}",
        )
    return "garbled", nvidia_smi.stray(result.text, found.fields) or complaint


def short(result: CommandResult) -> str:
    """What was asked, without the fields of a query: `nvidia-smi --query-gpu`."""
    return " ".join(str(word).partition("=")[0] for word in result.question.argv if word != "--format=csv")


def driver(evidence: Evidence) -> GpuDriver | None:
    """The driver as a whole; None where nothing speaks of a card."""
    on_bus = _ladder.devices(evidence)
    module = _ladder.text_of(evidence, "driver")
    how, complaint = state(evidence)
    listed = nvidia_proc.cards(_ladder.text_of(evidence, "cards"))
    ours = [device for device in on_bus if device.vendor == "nvidia"]
    stuck = tuple(str(each) for each in _ladder.sleepers(evidence) if each.in_driver)
    if not (ours or module.strip() or listed or stuck or how not in ("absent", "unasked")):
        return None
    found = query(evidence)
    versions = {nvidia_smi.words(row.get("driver_version")) for row in found.rows} if found else set()
    return GpuDriver(
        module=nvidia_proc.driver(module),
        open_module=nvidia_proc.is_open(module),
        tool="nvidia-smi" if how == "answers" else "",
        tool_version=", ".join(sorted(versions - {""})),
        cuda=nvidia_smi.cuda(_ladder.text_of(evidence, "version")),
        state=how,
        complaint=complaint[:300],
        stuck=stuck,
        log_read=log_read(evidence),
        dcgm=_dcgm(evidence),
        nodes=len(ours)
        if evidence.has("displays") and evidence.command("displays").whole and on_bus
        else None,
        source=tuple(
            Cite(key)
            for key in ("driver", "displays", "sleeping", "dmesg", "kernel-journal", "smi")
            if evidence.has(key)
        ),
    )


def log_read(evidence: Evidence) -> bool | None:
    """Whether the kernel's log was read; None when it was not asked for."""
    if not evidence.has("dmesg"):
        return None
    return _ladder.read_log(evidence, "dmesg") or _ladder.read_log(evidence, "kernel-journal")


def _dcgm(evidence: Evidence) -> str:
    """`dcgmi`'s version, from `Version : 3.3.5`; `installed` where it does not say."""
    try:
        result = evidence.command("dcgm")
        lines = result.text.split("\n") if result.exit_code == 0 else []
    except Unanswered:
        return ""
    for line in lines:
        name, _, value = line.partition(":")
        if name.strip().lower() == "version" and value.strip():
            return value.strip()[:40]
    return "installed" if lines else ""


# --- cards -------------------------------------------------------------------------------------------------


def cards(evidence: Evidence) -> tuple[Gpu, ...]:
    """Every card of NVIDIA: as nvidia-smi tells of it, else as the driver's files and the bus do."""
    links = pci.with_links(_ladder.devices(evidence), _ladder.text_of(evidence, "links"))
    on_bus = {device.bus: device for device in links if device.vendor == "nvidia"}
    listed = {card.bus: card for card in nvidia_proc.cards(_ladder.text_of(evidence, "cards"))}
    found = query(evidence)
    told = [(nvidia_smi.bus(row.get("pci.bus_id")), row) for row in found.rows] if found else []
    around = _around(evidence)
    rows = [_queried(row, on_bus.get(bus, NO_LINK), around) for bus, row in told]
    known = {bus for bus, _ in told}
    for bus in sorted((set(listed) | set(on_bus)) - known):
        card, device = listed.get(bus, nvidia_proc.Card(bus=bus)), on_bus.get(bus, NO_LINK)
        rows.append(
            Gpu(
                name=card.model,
                bus=bus,
                uuid=card.uuid,
                minor=card.minor,
                pcie_gen=device.gen,
                pcie_gen_max=device.gen_max,
                pcie_width=device.width,
                pcie_width_max=device.width_max,
                details=(("on the bus", GONE),) if device.gone else (),
                source=tuple(Cite(key) for key in ("cards", "displays", "links") if evidence.has(key)),
            )
        )
    return tuple(rows)


NO_LINK = pci.Device(bus="", vendor="")
"""Of a card that the bus does not list."""
GONE = "it no longer answers"


@dataclass(frozen=True, slots=True)
class _Around:
    """What the other answers say of the cards, read once for all of them."""

    key: str
    remapped: dict[str, dict[str, str]]
    instances: dict[int, int]
    numa: Mapping[int, str]


def _around(evidence: Evidence) -> _Around:
    found = query(evidence)
    remapped: dict[str, dict[str, str]] = {}
    for row in nvidia_smi.rows(_ladder.text_of(evidence, "remapped"), nvidia_smi.ROWS):
        remapped.setdefault(row["gpu_uuid"], row)
    return _Around(
        key=found.result.key if found else "smi",
        remapped=remapped,
        instances=nvidia_smi.instances(_ladder.text_of(evidence, "list")),
        numa=nvidia_smi.topology(_ladder.text_of(evidence, "topology"))[1],
    )


def _queried(row: dict[str, str], device: pci.Device, around: _Around) -> Gpu:
    whole, switch = nvidia_smi.place, nvidia_smi.switch
    memory, clock, power = nvidia_smi.mebibytes, nvidia_smi.megahertz, nvidia_smi.watts
    reasons = row.get("clocks_event_reasons.active") or row.get("clocks_throttle_reasons.active")
    index, uuid = whole(row.get("index")), nvidia_smi.words(row.get("uuid"))
    remapped = around.remapped.get(uuid, {})
    bus = nvidia_smi.bus(row.get("pci.bus_id"))
    return Gpu(
        index=index,
        name=nvidia_smi.words(row.get("name")),
        bus=bus,
        uuid=uuid,
        driver=nvidia_smi.words(row.get("driver_version")),
        compute_capability=nvidia_smi.words(row.get("compute_cap")),
        memory_total_mib=memory(row.get("memory.total")),
        memory_used_mib=nvidia_cells.used(row),
        utilization=nvidia_smi.percent(row.get("utilization.gpu")),
        memory_utilization=nvidia_smi.percent(row.get("utilization.memory")),
        power_w=power(row.get("power.draw")),
        power_limit_w=power(row.get("enforced.power.limit")),
        power_default_w=power(row.get("power.default_limit")),
        temperature_c=nvidia_smi.celsius(row.get("temperature.gpu")),
        memory_temperature_c=nvidia_smi.celsius(row.get("temperature.memory")),
        sm_clock_mhz=clock(row.get("clocks.sm")),
        sm_clock_max_mhz=clock(row.get("clocks.max.sm")),
        memory_clock_mhz=clock(row.get("clocks.mem")),
        memory_clock_max_mhz=clock(row.get("clocks.max.mem")),
        performance_state=nvidia_smi.words(row.get("pstate")),
        clock_reasons=nvidia_smi.reasons(reasons),
        persistence=switch(row.get("persistence_mode")),
        mig=switch(row.get("mig.mode.current")),
        mig_instances=around.instances.get(index) if index is not None else None,
        ecc=switch(row.get("ecc.mode.current")),
        ecc_uncorrected=whole(row.get("ecc.errors.uncorrected.volatile.total")),
        ecc_uncorrected_ever=whole(row.get("ecc.errors.uncorrected.aggregate.total")),
        ecc_corrected=whole(row.get("ecc.errors.corrected.volatile.total")),
        rows_remapped=whole(remapped.get("remapped_rows.uncorrectable")),
        rows_pending=switch(remapped.get("remapped_rows.pending")),
        rows_failed=switch(remapped.get("remapped_rows.failure")),
        pcie_gen=_either(whole(row.get("pcie.link.gen.current")), device.gen),
        pcie_gen_max=_either(whole(row.get("pcie.link.gen.max")), device.gen_max),
        pcie_width=_either(whole(row.get("pcie.link.width.current")), device.width),
        pcie_width_max=_either(whole(row.get("pcie.link.width.max")), device.width_max),
        numa=around.numa.get(index, "") if index is not None else "",
        unread=(*nvidia_cells.unread(row), *nvidia_cells.unread(remapped)),
        source=(Cite(around.key, f"GPU {index}" if index is not None else bus),),
    )


def _either(told: int | None, on_bus: int | None) -> int | None:
    return told if told is not None else on_bus
