"""AMD's cards: recognised, with what their tools give."""

from __future__ import annotations

from collections.abc import Iterator

from ddprobe.facts import Gpu, GpuDriver
from ddprobe.model import Cite, CommandResult, Evidence
from ddprobe.parsing import amd_smi, pci
from ddprobe.probes.gpu import _cards, _ladder


def cards(evidence: Evidence) -> Iterator[Gpu | GpuDriver]:
    """AMD's cards: recognised, with what their tools give."""
    on_bus = [
        device
        for device in pci.with_links(_ladder.devices(evidence), _ladder.text_of(evidence, "links"))
        if device.vendor == "amd"
    ]
    if not on_bus:
        return
    key, told = "rocm-smi", amd_smi.rocm(_ladder.text_of(evidence, "rocm-smi"))
    if not told:
        key = "amd-static"
        told = amd_smi.amd(_ladder.text_of(evidence, key), _ladder.text_of(evidence, "amd-metric"))
    asked = [
        evidence.command(each) for each in ("rocm-smi", "amd-static", "amd-metric") if evidence.has(each)
    ]
    how = _ladder.held_back(evidence) or ("answers" if told else _amd_state(asked))
    module = _ladder.text_of(evidence, "amdgpu").partition(":")[0].strip()
    yield GpuDriver(
        vendor="amd",
        module=module or next((card.driver for card in told if card.driver), ""),
        tool={"rocm-smi": "rocm-smi", "amd-static": "amd-smi"}[key] if told else "",
        state=how,
        complaint=asked[-1].trouble if asked and how in ("hangs", "cut") else "",
        stuck=tuple(str(each) for each in _ladder.sleepers(evidence) if each.in_driver),
        log_read=_cards.log_read(evidence),
        nodes=len(on_bus),
        source=tuple(Cite(each) for each in ("displays", "rocm-smi", "amd-static") if evidence.has(each)),
    )
    known = {card.bus for card in told}
    for card in told:
        link = next((device for device in on_bus if device.bus == card.bus), _cards.NO_LINK)
        yield Gpu(
            vendor="amd",
            index=card.index,
            name=card.name,
            bus=card.bus,
            driver=card.driver,
            memory_total_mib=card.memory_total_mib,
            memory_used_mib=card.memory_used_mib,
            utilization=card.utilization,
            power_w=card.power_w,
            temperature_c=card.temperature_c,
            sm_clock_mhz=card.clock_mhz,
            pcie_gen=link.gen,
            pcie_gen_max=link.gen_max,
            pcie_width=link.width,
            pcie_width_max=link.width_max,
            source=(Cite(key, f"card {card.index}"),),
        )
    for device in on_bus if not told or all(known) else ():
        if device.bus not in known:
            yield Gpu(vendor="amd", bus=device.bus, source=(Cite("displays"),))


def _amd_state(asked: list[CommandResult]) -> str:
    if not asked:
        return "unasked"
    if any(result.timed_out for result in asked):
        return "hangs"
    if any(not result.whole for result in asked):
        return "cut"
    if all(result.exit_code in _cards.NO_PROGRAM for result in asked):
        return "absent"
    return "refuses" if any(result.exit_code for result in asked) else "garbled"
