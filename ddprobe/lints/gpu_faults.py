"""Does the kernel's log speak of faults, and do driver and libraries belong together?"""

from __future__ import annotations

from ddprobe.facts import GpuFault
from ddprobe.lints import xids
from ddprobe.lints.cards import Cards, asked, cards_lint, cites, in_part, named
from ddprobe.lints.lint import Judgement, NotKnown, fail, fine, note, warn
from ddprobe.model import Cite

_ADVICE = {
    "gone": "end the servers, then reset the card (nvidia-smi -r) or reboot the host; what was measured since then does not count",
    "hardware": "end the servers and reset the card; if it comes back, run dcgmi diag and have the card replaced",
    "watch": "see what the servers' logs say of that time, and whether it comes again",
    "program": "mostly a program's fault: see the server's log at that time for a kernel that failed",
}
_ORDER = ("gone", "hardware", "watch", "program")


@cards_lint(
    "GP06",
    "the kernel's log has no XID",
    source=xids.SOURCE,
    subject="GPU faults",
    applies=lambda cards: (
        bool(cards.faults) or (cards.driver is not None and cards.driver.log_read is not None)
    ),
)
def faults(cards: Cards) -> Judgement | None:
    found = [fault for fault in cards.faults if fault.kind in ("xid", "sxid", "driver", "bus")]
    if not found:
        if cards.driver is not None and not cards.driver.log_read:
            raise NotKnown("the kernel's log, which this user may not read")
        return fine(
            "no XID and no complaint of the driver in the kernel's log", _read_in(cards, "dmesg", "journal")
        )
    levels = {fault: _level(fault) for fault in found}
    level = min(levels.values(), key=_ORDER.index)
    worst = [fault for fault in found if levels[fault] == level]
    shown = "; ".join(_words(fault) for fault in worst[-4:])
    more = len(found) - min(len(worst), 4)
    judged = fail if level in ("gone", "hardware") else warn if level == "watch" else note
    return judged(
        shown + (f"; and {more} further kind{'s' if more > 1 else ''} of line" if more else ""),
        _ADVICE[level],
        cites(worst),
        lines=sum(fault.count for fault in found),
    )


def _read_in(cards: Cards, *keys: str) -> tuple[Cite, ...]:
    """Those of the driver's sources that have one of these words in their name."""
    sources = cards.driver.source if cards.driver is not None else ()
    return tuple(cite for cite in sources if any(key in cite.artefact for key in keys))


def _level(fault: GpuFault) -> str:
    if fault.kind == "xid":
        return xids.meaning(fault.number).level
    if fault.kind == "driver":
        gone = ("fallen off the bus", "RmInitAdapter failed", "GPU is lost", "GPU reset")
        return "gone" if any(words in fault.text for words in gone) else "watch"
    return "hardware" if fault.kind == "sxid" and "Non-fatal" not in fault.text else "watch"


def _words(fault: GpuFault) -> str:
    where = named([fault.gpu]) if fault.gpu is not None else fault.bus or "a card"
    times = f"{fault.count} times, last " if fault.count > 1 else ""
    when = (
        f" ({times}{fault.moment})" if fault.moment else f" ({fault.count} times)" if fault.count > 1 else ""
    )
    if fault.kind == "xid":
        return f"XID {fault.number} on {where}: {xids.meaning(fault.number).text}{when}"
    if fault.kind == "sxid":
        return f"SXid {fault.number} of an NVSwitch: {fault.text[:120]}{when}"
    return f"{where}: {fault.text[:160]}{when}"


@cards_lint(
    "GP11",
    "the loaded kernel module is of the version of its libraries",
    source="NVML: Driver/library version mismatch; /proc/driver/nvidia/version",
    subject="GPU driver",
    applies=lambda cards: cards.driver is not None and bool(cards.driver.module),
)
def mismatch(cards: Cards) -> Judgement | None:
    driver = cards.driver
    if driver is None:
        return None
    advice = (
        "the libraries were updated under a loaded module: end what uses the cards and reload it, or reboot the host; "
        "in a container, use an image that leaves libcuda to the host"
    )
    if "version mismatch" in driver.complaint:
        return fail(
            f"the kernel module is {driver.module}, and nvidia-smi says: {driver.complaint}",
            advice,
            cites((driver,)),
        )
    if not driver.tool_version:
        raise NotKnown("the version of the driver's libraries")
    if driver.tool_version != driver.module:
        return fail(
            f"the kernel module is {driver.module}, and its libraries are of {driver.tool_version}",
            advice,
            cites((driver,)),
        )
    return fine(f"module and libraries are both {driver.module}", _read_in(cards, "driver", "smi"))


@cards_lint(
    "GP10",
    "the driver stays loaded between uses (persistence mode)",
    source="NVIDIA driver persistence documentation; nvidia-smi persistence_mode",
    subject="GPU driver",
    applies=asked,
)
def persistence(cards: Cards) -> Judgement | None:
    known = [gpu for gpu in cards.gpus if gpu.persistence is not None]
    if not known:
        raise NotKnown("persistence mode")
    silent = [gpu for gpu in cards.gpus if gpu.persistence is None]
    off = [gpu for gpu in known if gpu.persistence is False]
    if not off:
        on = fine(
            f"persistence mode is on for {len(known)} card{'s' if len(known) > 1 else ''}", cites(known)
        )
        return in_part(on, silent, "persistence mode")
    found = note(
        f"persistence mode is off for {named([gpu.index for gpu in off])}: while nothing uses a card, the driver is unloaded, "
        "and the next start and each nvidia-smi take seconds",
        "run nvidia-persistenced (or nvidia-smi -pm 1; undo it with -pm 0)",
        cites(off),
    )
    return in_part(found, silent, "persistence mode")


LINTS = (faults, persistence, mismatch)
