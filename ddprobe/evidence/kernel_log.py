"""The kernel's log, from `dmesg` or `journalctl -k`: what the driver says of cards there."""

from __future__ import annotations

from ddprobe.evidence.document import Document, Found
from ddprobe.facts import GpuFault
from ddprobe.model import Cite
from ddprobe.parsing import xid

LARGEST = 16 * 1024 * 1024
_OURS = ("NVRM: ", "SXid (")
_KINDS = ("xid", "sxid", "driver")


def recognise(document: Document, sample: str) -> Found | None:
    """XIDs and other complaints of the driver; None where the document has none."""
    if not any(word in sample for word in _OURS):
        return None
    text = document.whole()
    if text is None or len(text) > LARGEST:
        return None
    faults = tuple(
        GpuFault(
            kind=line.kind,
            number=line.number,
            bus=line.bus,
            moment=line.moment,
            text=line.text,
            count=line.count,
            source=(Cite(document.key, f"line {line.at}"),),
        )
        for line in xid.lines(text)
        if line.kind in _KINDS
    )
    if not faults:
        return None
    return Found(f"kernel log, {len(faults)} kind{'s' * (len(faults) != 1)} of line on GPUs", faults)
