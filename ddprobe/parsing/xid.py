"""What the kernel's log says of GPUs: XIDs, other words of the driver, tasks that hang.

[ 8123.412345] NVRM: Xid (PCI:0000:41:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.
2026-11-30T12:00:00+0000 gpu1 kernel: NVRM: Xid (PCI:0000:41:00): 13, pid=4801, name=python3, Graphics Exception …
[ 9001.000000] INFO: task nvidia-smi:91244 blocked for more than 120 seconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

MOST = 200
"""Kinds of line that are kept, the latest of them."""

_LINE = re.compile(
    r"^(?:<\d+>)?(?:\[\s*(?P<uptime>\d{1,12}\.\d{1,9})\] ?|\[(?P<human>\w{3} \w{3} +\d+ [\d:]{8} \d{4})\] ?"
    r"|(?P<iso>\d{4}-\d\d-\d\dT[\d:]{8}\S{0,12}) \S+ kernel: )?(?P<text>.*)$"
)
_XID = re.compile(r"NVRM: Xid \(PCI:(?P<bus>[0-9a-fA-F:.]{7,16})\): (?P<number>\d{1,4}),?\s*(?P<rest>.*)")
_SXID = re.compile(r"SXid \(PCI:(?P<bus>[0-9a-fA-F:.]{7,16})\): (?P<number>\d{1,5}),?\s*(?P<rest>.*)")
_STUCK = re.compile(
    r"INFO: task (?P<task>\S{1,64}):(?P<pid>\d{1,9}) blocked for more than (?P<seconds>\d+) seconds"
)
_BUS = re.compile(
    r"\b(?P<bus>[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]): .*(PCIe Bus Error|AER:)", re.IGNORECASE
)
_DRIVER = re.compile(
    r"NVRM: (?!loading|GPU at PCI|Xid).{0,40}(fallen off the bus|API mismatch|RmInitAdapter failed|GPU is lost|_kgspBootGspRm|"
    r"nvAssert|rm_init_adapter failed|os_pci_init_handle)|amdgpu.*(GPU reset|ring \S+ timeout|\*ERROR\*|RAS)"
)
_OF_GPU = re.compile(r"nv|amdgpu|kfd|python|sglang|vllm|llama|VLLM|cuda|pt_", re.IGNORECASE)
_ADDRESS = re.compile(r"\b([0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2})(\.[0-7])?\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One kind of line, as often as it stands there; moment and number of the last of them."""

    kind: str
    """`xid`, `sxid`, `driver`, `stuck` or `bus`."""
    number: int | None = None
    bus: str = ""
    """PCI address with its function, in lower case."""
    moment: str = ""
    uptime: float | None = None
    """Seconds since the host's start, where the log counts so."""
    text: str = ""
    at: int = 0
    """Line of the log, from 1."""
    count: int = 1


def lines(text: str) -> tuple[Line, ...]:
    """What is said of GPUs, each kind (number, card) once with its count, in the order of their last line."""
    found: dict[tuple[str, int | None, str, str], Line] = {}
    for line in _lines(text):
        key = (line.kind, line.number, line.bus, line.text if line.kind in ("driver", "stuck") else "")
        before = found.pop(key, None)
        found[key] = replace(line, count=before.count + 1) if before is not None else line
    return tuple(found.values())[-MOST:]


def _lines(text: str) -> Iterator[Line]:
    for at, raw in enumerate(text.split("\n"), 1):
        if not any(
            word in raw
            for word in ("NVRM", "SXid", "blocked for more than", "AER", "amdgpu", "PCIe Bus Error")
        ):
            continue
        found = _LINE.match(raw[:1000])
        if not found:
            continue
        said = _read(found["text"])
        if said is not None:
            yield replace(
                said,
                at=at,
                moment=(found["uptime"] and f"{found['uptime']} s after start")
                or found["human"]
                or found["iso"]
                or "",
                uptime=float(found["uptime"]) if found["uptime"] else None,
            )


def _read(text: str) -> Line | None:
    if found := _XID.search(text):
        return Line(
            kind="xid",
            number=int(found["number"]),
            bus=address(found["bus"]),
            text=found["rest"].strip()[:200],
        )
    if found := _SXID.search(text):
        return Line(
            kind="sxid",
            number=int(found["number"]),
            bus=address(found["bus"]),
            text=found["rest"].strip()[:200],
        )
    if found := _STUCK.search(text):
        if not _OF_GPU.search(found["task"]):
            return None
        return Line(kind="stuck", number=int(found["pid"]), text=found.group()[:200])
    if found := _DRIVER.search(text):
        where = _ADDRESS.search(text)
        return Line(kind="driver", bus=address(where.group()) if where else "", text=text.strip()[:200])
    if found := _BUS.search(text):
        return Line(kind="bus", bus=address(found["bus"]), text=text.strip()[:200])
    return None


def address(bus: str) -> str:
    """`0000:41:00.0` of `0000:41:00`, `PCI:0000:41:00` or `41:00.0`."""
    plain = bus.lower()
    if re.fullmatch(r"[0-9a-f]{2}:[0-9a-f]{2}(\.[0-7])?", plain):
        plain = f"0000:{plain}"
    return plain if "." in plain else f"{plain}.0"
