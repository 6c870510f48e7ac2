"""`nvidia-smi`: its CSV (`--query-gpu=… --format=csv`), its table, its log (`-q`), and what `dmon` prints."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ddprobe.evidence.document import Document, Found
from ddprobe.facts import GpuSample
from ddprobe.model import Cite

MOST = 5000
"""Samples taken; a longer log of them is read no further."""

_HEADER = re.compile(
    r"^\s*(index|timestamp|name|uuid|pci\.|utilization\.|memory\.|power\.|clocks|temperature)"
)
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_TABLE = re.compile(r"^\|\s+(\d+)\s+(\S.*?)\s+(On|Off|N/A)\s+\|", re.MULTILINE)
_USAGE = re.compile(
    r"\|\s*\S+\s+(?P<temp>\d+)C\s+\S+\s+(?P<power>\d+|N/A)W?\s*/\s*(?P<limit>\d+|N/A)W?\s*\|"
    r"\s*(?P<used>\d+)MiB\s*/\s*(?P<total>\d+)MiB\s*\|\s*(?P<busy>\d+)%"
)
_FIELDS: Mapping[str, str] = {
    "utilization.gpu": "utilization",
    "utilization.memory": "memory_utilization",
    "memory.used": "memory_used_mib",
    "memory.total": "memory_total_mib",
    "power.draw": "power_w",
    "power.draw.instant": "power_w",
    "power.limit": "power_limit_w",
    "power.default_limit": "power_default_w",
    "temperature.gpu": "temperature_c",
    "clocks.sm": "sm_clock_mhz",
    "clocks.current.sm": "sm_clock_mhz",
    "clocks.max.sm": "sm_clock_max_mhz",
}
_REASON = re.compile(r"clocks_(?:event|throttle)_reasons\.(\w+)")
_BITS = {
    0x2: "applications_clocks_setting",
    0x4: "sw_power_cap",
    0x8: "hw_slowdown",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake_slowdown",
}
_CARD = re.compile(r"GPU [0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]")
_CLOCKS = re.compile(r"Clocks (?:Event|Throttle) Reasons|HW Slowdown")
_LOGGED = (
    ("power_w", ("GPU Power Readings", "Instantaneous Power Draw")),
    ("power_w", ("GPU Power Readings", "Power Draw")),
    ("power_w", ("Power Readings", "Power Draw")),
    ("power_limit_w", ("GPU Power Readings", "Current Power Limit")),
    ("power_limit_w", ("Power Readings", "Power Limit")),
    ("power_default_w", ("GPU Power Readings", "Default Power Limit")),
    ("power_default_w", ("Power Readings", "Default Power Limit")),
    ("utilization", ("Utilization", "Gpu")),
    ("utilization", ("Utilization", "GPU")),
    ("temperature_c", ("Temperature", "GPU Current Temp")),
    ("memory_used_mib", ("FB Memory Usage", "Used")),
    ("memory_total_mib", ("FB Memory Usage", "Total")),
    ("sm_clock_mhz", ("Clocks", "SM")),
    ("sm_clock_max_mhz", ("Max Clocks", "SM")),
)
_MONITORED: Mapping[str, str] = {
    "pwr": "power_w",
    "gtemp": "temperature_c",
    "sm": "utilization",
    "mem": "memory_utilization",
    "pclk": "sm_clock_mhz",
    "fb": "memory_used_mib",
}
"""The columns of `dmon`."""
_MONITOR = re.compile(r"^#\s*(?:Date\s+Time\s+)?gpu\s+.*\b(?:pwr|sm|pclk)\b", re.MULTILINE)
_NO_FAULT = frozenset({"active", "supported", "gpu_idle", "sync_boost"})


def recognise(document: Document, sample: str) -> Found | None:
    """GPUs at one or many moments; None when the document is neither form of nvidia-smi's output."""
    found = tuple(_table(document.key, sample)) if "NVIDIA-SMI" in sample else ()
    if not found and "NVSMI LOG" in sample:
        found = tuple(_log(document))
    if not found and _MONITOR.search(sample):
        found = tuple(_dmon(document))
    if not found and _looks_like_csv(sample):
        found = tuple(_csv(document))
    if not found:
        return None
    return Found(f"nvidia-smi, {len(found)} sample{'s' if len(found) > 1 else ''}", found)


def _looks_like_csv(sample: str) -> bool:
    head = sample.lstrip("\ufeff \r\n").partition("\n")[0]
    names = [_name(cell) for cell in head.split(",")]
    return bool(_HEADER.match(head)) and len(names) > 1 and any(name in _FIELDS for name in names)


def _name(cell: str) -> str:
    """`utilization.gpu` of `utilization.gpu [%]`."""
    return cell.strip().partition(" ")[0].lower()


def _csv(document: Document) -> Iterator[GpuSample]:
    names: list[str] = []
    made = 0
    for number, line in enumerate(document.lines(), 1):
        if not line.strip() or made >= MOST:
            continue
        cells = next(csv.reader([line[:4000]], skipinitialspace=True), [])
        if not names:
            names = [_name(cell) for cell in cells]
            continue
        if len(cells) != len(names) or [_name(cell) for cell in cells] == names:
            continue
        made += 1
        yield _row(dict(zip(names, cells, strict=True)), Cite(document.key, f"line {number}"))


def _dmon(document: Document) -> Iterator[GpuSample]:
    """A heading, a line of units, and a line for each card and moment; a dash is no value."""
    names: list[str] = []
    made = 0
    for number, line in enumerate(document.lines(), 1):
        if _MONITOR.match(line):
            names = line.lstrip("# ").lower().split()
            continue
        cells = line.split()
        if not names or len(cells) != len(names) or made >= MOST:
            continue
        row = dict(zip(names, cells, strict=True))
        if not row["gpu"].isdecimal() or len(row["gpu"]) > 3:
            continue
        made += 1
        numbers: dict[str, Any] = {
            field: value
            for name, field in _MONITORED.items()
            if (value := _number(row.get(name))) is not None
        }
        yield GpuSample(
            index=int(row["gpu"]),
            moment=f"{row.get('date', '')} {row.get('time', '')}".strip()[:40],
            source=(Cite(document.key, f"line {number}"),),
            **numbers,
        )


def _row(row: Mapping[str, str], cite: Cite) -> GpuSample:
    numbers = {
        field: value for name, field in _FIELDS.items() if (value := _number(row.get(name))) is not None
    }
    index = row.get("index", "").strip()
    return GpuSample(
        index=int(index) if index.isascii() and index.isdigit() and len(index) < 4 else None,
        name=(row.get("name") or row.get("gpu_name") or "").strip()[:80],
        moment=row.get("timestamp", "").strip()[:40],
        throttled_by=_reasons(row),
        source=(cite,),
        **numbers,
    )


def _number(cell: str | None) -> float | None:
    """The number before a unit; `[N/A]` is none."""
    found = _NUMBER.match(cell.strip()) if cell else None
    return float(found.group()) if found and len(found.group()) < 16 else None


def _reasons(row: Mapping[str, str]) -> tuple[str, ...]:
    """Reasons that slow the clocks down; idle and clocks that were set are none."""
    found = []
    for name, cell in row.items():
        reason = _REASON.match(name)
        if reason and reason.group(1) == "active" and cell.strip().lower().startswith("0x"):
            found += [said for bit, said in _BITS.items() if _hex(cell) & bit]
        elif reason and reason.group(1) not in _NO_FAULT and cell.strip().lower() == "active":
            found.append(reason.group(1))
    return tuple(dict.fromkeys(found))


def _hex(cell: str) -> int:
    try:
        return int(cell.strip()[:20], 16)
    except ValueError:
        return 0


def _log(document: Document) -> Iterator[GpuSample]:
    """`nvidia-smi -q`: a card's header, then sections with `name : value`."""
    told: dict[tuple[str, str], str] = {}
    section, at, index = "", 0, -1
    for number, line in enumerate(document.lines(), 1):
        name, colon, value = (part.strip() for part in line.partition(" : "))
        if _CARD.fullmatch(line.rstrip()):
            if index >= 0:
                yield _of_log(told, index, Cite(document.key, f"line {at}"))
            told, section, at, index = {}, "", number, index + 1
        elif not colon:
            section = name
        elif _CLOCKS.fullmatch(section) and value == "Active":
            told[("reasons", re.sub(r"\W+", "_", name).lower())] = value
        else:
            told.setdefault((section, name), value)
    if index >= 0:
        yield _of_log(told, index, Cite(document.key, f"line {at}"))


def _of_log(told: Mapping[tuple[str, str], str], index: int, cite: Cite) -> GpuSample:
    numbers: dict[str, Any] = {
        field: value for field, place in _LOGGED if (value := _number(told.get(place))) is not None
    }
    return GpuSample(
        index=index,
        name=next((value for (_, name), value in told.items() if name == "Product Name"), "")[:80],
        throttled_by=tuple(n for s, n in told if s == "reasons" and n in _BITS.values()),
        source=(cite,),
        **numbers,
    )


def _table(key: str, sample: str) -> Iterator[GpuSample]:
    """Two lines of the table a GPU: its name, then its temperature, power, memory and use."""
    for found in _TABLE.finditer(sample):
        usage = _USAGE.search(sample, found.end(), found.end() + 400)
        if usage is None:
            continue
        told = {name: _number(cell) for name, cell in usage.groupdict().items()}
        yield GpuSample(
            index=int(found.group(1)[:4]),
            name=found.group(2)[:80],
            utilization=told["busy"],
            memory_used_mib=told["used"],
            memory_total_mib=told["total"],
            power_w=told["power"],
            power_limit_w=told["limit"],
            temperature_c=told["temp"],
            source=(Cite(key, f"line {sample.count(chr(10), 0, found.start()) + 1}"),),
        )
