"""Asks `rocm-smi` and `amd-smi` for JSON and reads of it what both call by some name.

{"card0": {"Card Series": "AMD Instinct MI300X OAM", "GPU use (%)": "3", "VRAM Total Memory (B)": "206141652992"},
 "system": {"Driver version": "6.12.12"}}
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ddprobe.model import Command
from ddprobe.parsing import bounded_json

TIMEOUT = 20.0
ANY_EXIT = tuple(range(256))
MIB = 1024 * 1024
ROCM = Command(
    key="rocm-smi",
    argv=(
        "rocm-smi", "--showproductname", "--showbus", "--showuniqueid", "--showdriverversion", "--showuse",
        "--showmemuse", "--showmeminfo", "vram", "--showpower", "--showtemp", "--showclocks", "--json",
    ),
    timeout=TIMEOUT, alone=True, exits=ANY_EXIT,
)  # fmt: skip
STATIC = Command(
    key="amd-static", argv=("amd-smi", "static", "--json"), timeout=TIMEOUT, alone=True, exits=ANY_EXIT
)
METRIC = Command(
    key="amd-metric", argv=("amd-smi", "metric", "--json"), timeout=TIMEOUT, alone=True, exits=ANY_EXIT
)
MODULE = Command(key="amdgpu", argv=("grep", "-s", "-e", "", "/sys/module/amdgpu/version"), exits=(0, 1, 2))

_NUMBER = re.compile(r"-?\d{1,15}(\.\d{1,9})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """What was understood of one card. None is "it does not say"."""

    index: int
    name: str = ""
    bus: str = ""
    driver: str = ""
    utilization: float | None = None
    memory_total_mib: float | None = None
    memory_used_mib: float | None = None
    power_w: float | None = None
    temperature_c: float | None = None
    clock_mhz: float | None = None


def rocm(text: str) -> tuple[Card, ...]:
    """The cards of `rocm-smi … --json`; empty when it is no such JSON."""
    data = _json(text)
    if not isinstance(data, dict):
        return ()
    system = data.get("system")
    driver = str(system.get("Driver version", "")) if isinstance(system, dict) else ""
    found = []
    for name, told in data.items():
        number = re.fullmatch(r"card(\d{1,3})", name)
        if number and isinstance(told, dict):
            found.append(_rocm_card(int(number[1]), told, driver))
    return tuple(sorted(found, key=lambda card: card.index))


def _rocm_card(index: int, told: Mapping[str, Any], driver: str) -> Card:
    used, total = _first(told, "VRAM Total Used Memory"), _first(told, "VRAM Total Memory")
    return Card(
        index=index,
        name=_word(told, "Card Series", "Card series", "Card Model", "Device Name"),
        bus=_word(told, "PCI Bus").lower(),
        driver=driver[:40],
        utilization=_first(told, "GPU use"),
        memory_total_mib=total / MIB if total is not None else None,
        memory_used_mib=used / MIB if used is not None else None,
        power_w=_first(told, "Current Socket Graphics Package Power", "Average Graphics Package Power"),
        temperature_c=_first(told, "Temperature (Sensor junction)", "Temperature (Sensor edge)"),
        clock_mhz=_first(told, "sclk clock speed"),
    )


def amd(static: str, metric: str) -> tuple[Card, ...]:
    """The cards of `amd-smi static --json` with what `amd-smi metric --json` adds; empty when it is no such JSON."""
    measured = dict(_entries(_json(metric)))
    return tuple(
        Card(
            index=index,
            name=str(_at(told, "asic", "market_name") or _at(told, "board", "product_name") or "")[:80],
            bus=str(_at(told, "bus", "bdf") or "").lower()[:20],
            driver=str(_at(told, "driver", "version") or "")[:40],
            utilization=_value(_at(measured.get(index), "usage", "gfx_activity")),
            memory_total_mib=_value(_at(told, "vram", "size")),
            memory_used_mib=_value(_at(measured.get(index), "mem_usage", "used_vram")),
            power_w=_value(_at(measured.get(index), "power", "socket_power")),
            temperature_c=_value(_at(measured.get(index), "temperature", "hotspot")),
            clock_mhz=_value(_at(measured.get(index), "clock", "gfx_0", "clk")),
        )
        for index, told in _entries(_json(static))
    )


def _entries(data: Any) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Each card with its number; newer versions put the list under `gpu_data`."""
    listed = data.get("gpu_data") if isinstance(data, dict) else data
    for told in listed if isinstance(listed, list) else ():
        if isinstance(told, dict) and isinstance(told.get("gpu"), int) and not isinstance(told["gpu"], bool):
            yield told["gpu"], told


def _json(text: str) -> Any:
    """The JSON, warnings before it aside; None when there is none."""
    start = min((place for place in (text.find("{"), text.find("[")) if place >= 0), default=-1)
    if start < 0:
        return None
    try:
        return bounded_json.loads(text[start:])
    except ValueError:
        return None


def _at(data: Any, *names: str) -> Any:
    for name in names:
        data = data.get(name) if isinstance(data, dict) else None
    return data


def _value(told: Any) -> float | None:
    """`{"value": 140, "unit": "W"}`, or the number itself."""
    if isinstance(told, dict):
        told = told.get("value")
    if isinstance(told, bool) or not isinstance(told, int | float | str):
        return None
    return _number(str(told))


def _first(told: Mapping[str, Any], *begins: str) -> float | None:
    """The number of the first entry whose name begins so."""
    for begin in begins:
        for name, value in told.items():
            if name.startswith(begin) and (number := _number(str(value))) is not None:
                return number
    return None


def _word(told: Mapping[str, Any], *names: str) -> str:
    for name in names:
        value = told.get(name)
        if isinstance(value, str) and value and value != "N/A":
            return value[:80]
    return ""


def _number(text: str) -> float | None:
    found = _NUMBER.search(text)
    return float(found.group()) if found else None
