"""Asks and reads what the PCI bus says of graphics cards under /sys, without a word to their driver.

/sys/bus/pci/devices/0000:17:00.0/vendor:0x10de
/sys/bus/pci/devices/0000:17:00.0/current_link_speed:32.0 GT/s PCIe
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ddprobe.model import Command, Glob

NVIDIA, AMD = "0x10de", "0x1002"
DISPLAYS = Command(
    key="displays",
    # 0x03: display controllers; 0x12: accelerators without a display.
    argv=("grep", "-s", "-H", "-E", "-e", "^0x(03|12)", Glob("/sys/bus/pci/devices/*/class")),
    exits=(0, 1, 2),
)
VENDORS = Command(
    key="vendors",
    argv=("grep", "-s", "-H", "-E", "-e", f"^({NVIDIA}|{AMD})", Glob("/sys/bus/pci/devices/*/vendor")),
    exits=(0, 1, 2),
)
MOST = 64

_VALUE = re.compile(
    r"^/sys/bus/pci/devices/([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])/(\w{1,40}):(.*)$", re.MULTILINE
)
_GENERATIONS = {
    "2.5": 1,
    "5.0": 2,
    "5": 2,
    "8.0": 3,
    "8": 3,
    "16.0": 4,
    "16": 4,
    "32.0": 5,
    "32": 5,
    "64.0": 6,
    "64": 6,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A graphics card on the bus. None is "it does not say"."""

    bus: str
    vendor: str
    """`nvidia` or `amd`."""
    gen: int | None = None
    gen_max: int | None = None
    width: int | None = None
    width_max: int | None = None
    gone: bool = False
    """It no longer answers on the bus: its registers read as all ones."""


def cards(displays: str, vendors: str) -> tuple[Device, ...]:
    """NVIDIA's and AMD's cards by address, from the answers to `DISPLAYS` and `VENDORS`."""
    shown = {bus for bus, name, _ in _VALUE.findall(displays) if name == "class"}
    told = {bus: value.strip() for bus, name, value in _VALUE.findall(vendors) if name == "vendor"}
    kinds = {NVIDIA: "nvidia", AMD: "amd"}
    found = [Device(bus=bus, vendor=kinds[told[bus]]) for bus in sorted(shown) if told.get(bus) in kinds]
    return tuple(found[:MOST])


def ask_links(devices: Sequence[Device]) -> Command:
    """Each card's link to the bus: speed and width, as they are and as they could be."""
    names = ("current_link_speed", "max_link_speed", "current_link_width", "max_link_width")
    paths = tuple(f"/sys/bus/pci/devices/{device.bus}/{name}" for device in devices for name in names)
    return Command(key="links", argv=("grep", "-s", "-H", "-e", "", *paths), exits=(0, 1, 2), alone=True)


def with_links(devices: Sequence[Device], text: str) -> tuple[Device, ...]:
    """The cards with their links, from the answer to `ask_links`."""
    told = {(bus, name): value.strip() for bus, name, value in _VALUE.findall(text)}

    def speed(bus: str, name: str) -> int | None:
        return _GENERATIONS.get(told.get((bus, name), "").partition(" ")[0])

    def width(bus: str, name: str) -> int | None:
        value = told.get((bus, name), "")
        return int(value) if re.fullmatch(r"[1-9]\d?", value) and int(value) <= 32 else None

    return tuple(
        Device(
            bus=one.bus,
            vendor=one.vendor,
            gen=speed(one.bus, "current_link_speed"),
            gen_max=speed(one.bus, "max_link_speed"),
            width=width(one.bus, "current_link_width"),
            width_max=width(one.bus, "max_link_width"),
            gone=told.get((one.bus, "current_link_width")) == "63",
        )
        for one in devices
    )
