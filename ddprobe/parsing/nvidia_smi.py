"""Asks `nvidia-smi` and reads what it answers: CSV of a query, the list of cards, the topology matrix, its version.

index, name, memory.used [MiB], clocks.current.sm [MHz]
0, NVIDIA H100 80GB HBM3, 71234 MiB, 1980 MHz
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ddprobe.model import Command

TIMEOUT = 20.0
"""Seconds. With many cards and without persistence mode the driver first wakes each of them."""
ANY_EXIT = tuple(range(256))
"""Whatever it ends with is an answer: the code and the sentence say what is wrong."""
CARD_FIELDS = (
    "index", "name", "uuid", "pci.bus_id", "driver_version", "memory.total", "memory.used", "utilization.gpu",
    "utilization.memory", "power.draw", "enforced.power.limit", "power.default_limit", "temperature.gpu",
    "temperature.memory", "clocks.sm", "clocks.max.sm", "clocks.mem", "clocks.max.mem", "pstate",
    "clocks_event_reasons.active", "persistence_mode", "mig.mode.current", "ecc.mode.current",
    "ecc.errors.uncorrected.volatile.total", "ecc.errors.uncorrected.aggregate.total",
    "ecc.errors.corrected.volatile.total", "pcie.link.gen.current", "pcie.link.gen.max", "pcie.link.width.current",
    "pcie.link.width.max", "compute_cap",
)  # fmt: skip
OLDEST_FIELDS = (
    "index", "name", "uuid", "pci.bus_id", "driver_version", "memory.total", "memory.used", "utilization.gpu",
    "temperature.gpu", "pstate",
)  # fmt: skip
"""What every driver of ten years knows."""
TRIES = 16
"""Times that cards are queried: again without each field that an older version does not know, the last time for the oldest."""
SAID = 4000
"""Characters of an answer in which a complaint is looked for."""
RENAMED = {"clocks_event_reasons.active": "clocks_throttle_reasons.active"}
"""What a driver before 535 calls a field."""
APPS = ("gpu_uuid", "pid", "used_gpu_memory", "process_name")
"""The name last: it may hold commas."""
ROWS = (
    "gpu_uuid", "remapped_rows.correctable", "remapped_rows.uncorrectable", "remapped_rows.pending",
    "remapped_rows.failure",
)  # fmt: skip
REASONS = {
    0x1: "gpu_idle",
    0x2: "applications_clocks_setting",
    0x4: "sw_power_cap",
    0x8: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake_slowdown",
    0x100: "display_clock_setting",
}
"""Bits of `clocks_event_reasons.active`, as NVML numbers them."""

HEADING = 64
"""Lines among which the header is looked for: complaints of lost cards come before it."""
MOST_ROWS = 1024
"""Rows of an answer that are read: no host has more cards, and few have more processes on them."""
FREE_TEXT = ("name", "process_name")
"""Fields that may hold a comma, where they stand last."""

_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_LOST = re.compile(r"Unable to determine the device handle|GPU is lost|requires reset", re.IGNORECASE)
_ROW = re.compile(r"\s*(?:\d{1,15}|(?:GPU|MIG)-[^,]*|\[[^,]*|N/A)\s*(?:,|\Z)")
"""How a row begins, cut or not; a sentence does not: with the number of a card or its UUID, or what stands in its place."""
_NUMBER = re.compile(r"-?\d{1,15}(?:\.\d{1,9})?(?=\s|%|\Z)")
_NOT_VALID = re.compile(r'Field "([a-z0-9_.]{1,80})" is not a valid field to query')
_KIND = re.compile(r"NV\d{1,3}|PIX|PXB|PHB|NODE|SYS|NS|CNS|NVL\w*|C2C")
_CARD = re.compile(r"GPU(\d{1,3})\Z")
_MIG = re.compile(r"^\s+MIG\s", re.MULTILINE)
_LISTED = re.compile(r"^GPU (\d{1,3}): (.*?)(?: \(UUID: (GPU-[0-9a-fA-F-]+)\))?$")


def query(key: str, what: str, fields: Sequence[str]) -> Command:
    """One look by `--query-gpu`, `--query-compute-apps` or `--query-remapped-rows`, with a header."""
    argv = ("nvidia-smi", f"--query-{what}={','.join(fields)}", "--format=csv")
    return Command(key=key, argv=argv, timeout=TIMEOUT, alone=True, exits=ANY_EXIT)


def ask(key: str, *words: str) -> Command:
    """`nvidia-smi -L`, `--version` or `topo -m`."""
    return Command(key=key, argv=("nvidia-smi", *words), timeout=TIMEOUT, alone=True, exits=ANY_EXIT)


def accepted(fields: Sequence[str], complaint: str) -> tuple[str, ...]:
    """The fields without those that this version does not know, or with their older names; the same where all are known."""
    unknown = set(_NOT_VALID.findall(complaint[:SAID])) & set(fields)
    return tuple(
        RENAMED.get(field, "") if field in unknown else field
        for field in fields
        if field not in unknown or field in RENAMED
    )


def next_try(fields: Sequence[str], complaint: str, tried: int) -> tuple[str, ...]:
    """The fields to ask for after an answer to the query number `tried`; the same where there is nothing more to try."""
    fewer = accepted(fields, complaint)
    if fewer == tuple(fields) or not fewer or tried >= TRIES:
        return tuple(fields)
    return tuple(field for field in fewer if field in OLDEST_FIELDS) if tried == TRIES - 1 else fewer


def knows_not(complaint: str) -> bool:
    """Whether it does not know a field that it was asked for."""
    return _NOT_VALID.search(complaint[:SAID]) is not None


@dataclass(frozen=True, slots=True)
class Told:
    """An answer as it came: its rows, and what stands beside them."""

    rows: tuple[dict[str, str], ...] = ()
    stray: str = ""
    """What it said beside them: the first line that is no row, of a lost card where one is."""
    torn: tuple[tuple[int, str], ...] = ()
    """Lines that begin as a row and are no whole one, with their numbers."""
    more: int = 0
    """Lines beyond those that are read."""


def rows(text: str, fields: Sequence[str]) -> tuple[dict[str, str], ...]:
    """Cells by the field asked for, behind the header. Empty where no line is the header of these fields: nothing of the
    answer can be trusted then. What stands before it, or between rows, is a complaint: see `stray`.
    """
    return read(text, fields).rows


def stray(text: str, fields: Sequence[str]) -> str:
    """What it said beside the rows of its answer: `Unable to determine the device handle for GPU3: …`; empty for nothing."""
    return read(text, fields).stray


def lost(complaint: str) -> bool:
    """Whether it complains of a card that it lists and cannot reach."""
    return _LOST.search(complaint) is not None


def read(text: str, fields: Sequence[str]) -> Told:
    """Its rows and what stands beside them; of what comes before the header only where there is one."""
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    head = next((at for at, (_, line) in enumerate(lines[:HEADING]) if _heads(line, fields)), None)
    if head is None:
        return Told()
    found: list[dict[str, str]] = []
    torn: list[tuple[int, str]] = []
    other = [line for _, line in lines[:head]]
    behind = lines[head + 1 :]
    ended = text.count("\n")
    for number, line in behind[:MOST_ROWS]:
        cells = _cells(line, fields)
        if cells is not None:
            found.append(dict(zip(fields, cells, strict=True)))
        else:
            other.append(line)
        # Of a last line without an end nobody knows how its last cell went on.
        if _ROW.match(line) if cells is None else number > ended:
            torn.append((number, line.strip()[:200]))
    told = [each for each in (line.strip("\0 \t\r") for line in other) if each]
    said = next((each for each in told if _LOST.search(each)), told[0] if told else "")
    return Told(tuple(found), said[:200], tuple(torn), max(0, len(behind) - MOST_ROWS))


def _cells(line: str, fields: Sequence[str]) -> list[str] | None:
    """None for a line that has another number of cells: a comma within one would shift all behind it."""
    cells = [cell.strip() for cell in line.split(",", len(fields) - 1)]
    whole = len(cells) == len(fields) and ("," not in cells[-1] or fields[-1] in FREE_TEXT)
    return cells if whole else None


def _heads(line: str, fields: Sequence[str]) -> bool:
    """Whether the header names these fields. Some have a longer name there: `clocks.current.sm` for `clocks.sm`."""
    cells = line.split(",")
    return len(cells) == len(fields) and all(map(_same, cells, fields))


def _same(cell: str, field: str) -> bool:
    return _family(cell) == _family(field)


def _family(name: str) -> str:
    """What stands before the first dot, under the newer of its names."""
    return name.strip().partition(" ")[0].partition(".")[0].replace("throttle", "event")


def number(cell: str | None) -> float | None:
    """The number of a cell, its unit aside; None for `[N/A]`, `[Not Supported]`, `ERR!` and the like."""
    found = _NUMBER.match(cell.strip()) if cell else None
    return float(found.group()) if found else None


def whole(cell: str | None) -> int | None:
    value = number(cell)
    return int(value) if value is not None and value == int(value) else None


def amount(cell: str | None) -> float | None:
    """A number that cannot be below nothing: memory, a clock, a power."""
    value = number(cell)
    return value if value is not None and value >= 0 else None


def percent(cell: str | None) -> float | None:
    """A share of the time; None for one above the whole."""
    value = amount(cell)
    return value if value is not None and value <= 100 else None


def mebibytes(cell: str | None) -> float | None:
    """Memory; None for more than any card has."""
    return _up_to(16 * 1024 * 1024, cell)


def megahertz(cell: str | None) -> float | None:
    """A clock; None for one that no card runs at. The memory of GeForce cards is told at 14000 and more."""
    return _up_to(50_000, cell)


def watts(cell: str | None) -> float | None:
    """Power; None for more than any card draws."""
    return _up_to(10_000, cell)


def celsius(cell: str | None) -> float | None:
    """A temperature; None for one at which no card works."""
    value = number(cell)
    return value if value is not None and -90 <= value <= 200 else None


def _up_to(most: float, cell: str | None) -> float | None:
    value = amount(cell)
    return value if value is not None and value <= most else None


def place(cell: str | None) -> int | None:
    """A card's number, or a count."""
    value = whole(cell)
    return value if value is not None and value >= 0 else None


def switch(cell: str | None) -> bool | None:
    """`Enabled`, `Yes`, `1`; None for what it does not tell."""
    return {"enabled": True, "yes": True, "1": True, "disabled": False, "no": False, "0": False}.get(
        (cell or "").strip().lower()
    )


def words(cell: str | None) -> str:
    """A cell of text; empty for what it does not tell."""
    text = (cell or "").strip()
    return "" if text.startswith("[") or text in ("N/A", "ERR!") else text[:120]


def reasons(cell: str | None) -> tuple[str, ...] | None:
    """The clock reasons of a mask (`0x0000000000000004`), in the order of its bits; None where it is no mask."""
    text = (cell or "").strip()
    if not re.fullmatch(r"0[xX][0-9a-fA-F]{1,16}", text):
        return None
    mask = int(text, 16)
    known = tuple(name for bit, name in REASONS.items() if mask & bit)
    rest = mask & ~sum(REASONS)
    return (*known, f"0x{rest:x}") if rest else known


def bus(cell: str | None) -> str:
    """`0000:17:00.0` of `00000000:17:00.0`; empty where it is no PCI address."""
    found = re.fullmatch(
        r"(?:0{4})?([0-9a-f]{4}):([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])", (cell or "").strip().lower()
    )
    return f"{found[1]}:{found[2]}:{found[3]}.{found[4]}" if found else ""


def instances(text: str) -> dict[int, int]:
    """How many MIG devices each card has, from `nvidia-smi -L`; cards without any are in it with 0."""
    found: dict[int, int] = {}
    at: int | None = None
    for line in text.split("\n"):
        if card := _LISTED.match(line):
            at = int(card[1])
            found[at] = 0
        elif at is not None and _MIG.match(line):
            found[at] += 1
    return found


def topology(text: str) -> tuple[tuple[tuple[int, int, str], ...], Mapping[int, str]]:
    """The links (first card, second, kind) of `nvidia-smi topo -m`, each once, and the NUMA node of each card."""
    lines = _ANSI.sub("", text).split("\n")
    head = next((number for number, line in enumerate(lines) if re.match(r"\s+GPU0\b", line)), None)
    if head is None:
        return (), {}
    columns = [cell.strip() for cell in lines[head].split("\t")][1:]
    links: list[tuple[int, int, str]] = []
    numa: dict[int, str] = {}
    for line in lines[head + 1 :]:
        first, *cells = [cell.strip() for cell in line.split("\t")]
        card = _CARD.match(first)
        if not card:
            continue
        for column, cell in zip(columns, cells, strict=False):
            other = _CARD.match(column)
            if other and int(other[1]) > int(card[1]) and _KIND.fullmatch(cell):
                links.append((int(card[1]), int(other[1]), cell))
            elif column == "NUMA Affinity" and re.fullmatch(r"[\d,-]{1,40}", cell):
                numa[int(card[1])] = cell
    return tuple(links), numa


def cuda(text: str) -> str:
    """The newest CUDA that the driver runs, from `nvidia-smi --version`; empty where it does not say."""
    found = re.search(r"^CUDA Version\s*:\s*(\d{1,3}\.\d{1,3})\s*$", text, re.MULTILINE)
    return found[1] if found else ""


def complaint(stdout: str, stderr: str) -> str:
    """What it said in place of an answer: its first line that says something."""
    for line in (*stdout.split("\n"), *stderr.split("\n")):
        if line.strip():
            return line.strip()[:200]
    return ""
