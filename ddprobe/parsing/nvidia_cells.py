"""Cells of nvidia-smi's rows that should hold a value and hold none: of a lost card, or one that no card can have.

1, NVIDIA H100, GPU-7a1c0001, 00000000:1A:00.0, [GPU is lost], [GPU is lost], 9999
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ddprobe.parsing import nvidia_smi

WITHOUT = frozenset(
    {
        "", "n/a", "not supported", "not available", "not found", "function not found", "deprecated",
        "requested functionality has been deprecated",
    }
)  # fmt: skip
"""What stands in the cell of something that the card does not have. All else that is no value is trouble."""
READERS: Mapping[str, Callable[[str | None], object]] = {
    "index": nvidia_smi.place,
    "memory.": nvidia_smi.mebibytes,
    "utilization.": nvidia_smi.percent,
    "power.": nvidia_smi.watts,
    "enforced.power.limit": nvidia_smi.watts,
    "temperature.": nvidia_smi.celsius,
    "clocks.": nvidia_smi.megahertz,
    "clocks_": nvidia_smi.reasons,
    "persistence_mode": nvidia_smi.switch,
    "mig.mode.": nvidia_smi.switch,
    "ecc.mode.": nvidia_smi.switch,
    "ecc.errors.": nvidia_smi.place,
    "pcie.link.": nvidia_smi.place,
    "remapped_rows.correctable": nvidia_smi.place,
    "remapped_rows.uncorrectable": nvidia_smi.place,
    "remapped_rows.": nvidia_smi.switch,
}
"""How a field is read, by how its name begins; the first that fits. Any other is a text."""


def unread(row: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """The fields of a row that hold no value though the card has such a thing, each with its cell."""
    return tuple((field, cell.strip()[:60]) for field, cell in row.items() if not _told(field, cell, row))


def used(row: Mapping[str, str]) -> float | None:
    """The memory in use; None for more than there is."""
    value, most = nvidia_smi.mebibytes(row.get("memory.used")), nvidia_smi.mebibytes(row.get("memory.total"))
    return None if value is not None and most is not None and value > most else value


def _told(field: str, cell: str, row: Mapping[str, str]) -> bool:
    if cell.strip().strip("[]").lower() in WITHOUT:
        return True
    if field == "memory.used":
        return used(row) is not None
    read = next((reader for begins, reader in READERS.items() if field.startswith(begins)), None)
    return read(cell) is not None if read else bool(nvidia_smi.words(cell))
