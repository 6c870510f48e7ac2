"""What of nvidia-smi's answers is damaged: cards that it cannot reach, values that are none, rows that are not whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ddprobe.facts import Gpu
from ddprobe.model import Cite, Evidence, Finding, Gap, Outcome
from ddprobe.parsing import nvidia_smi
from ddprobe.probes.gpu import _cards, _ladder

FEW = 4
"""Cards, fields and lines that a sentence lists."""
_LOST, _RESET = "gpu is lost", "requires reset"
"""What stands in the cells of a card that is gone, or that works again after a reset alone."""


# --- cards -------------------------------------------------------------------------------------------------


def findings(gpus: Sequence[Gpu], host: str) -> Iterator[Finding]:
    """Of cards with cells that hold no value."""
    lost = [gpu for gpu in gpus if _says(gpu, _LOST)]
    reset = [gpu for gpu in gpus if gpu not in lost and _says(gpu, _RESET)]
    if lost:
        yield _unreachable(
            "gpu.lost",
            lost,
            host,
            "look for XID 79 in the kernel's log; a card that cannot be reached comes back with a reset, a reboot or a power "
            "cycle. What was measured since then does not count",
        )
    if reset:
        yield _unreachable(
            "gpu.reset",
            reset,
            host,
            "end what uses the card, and reset it (nvidia-smi --gpu-reset -i N) or reboot the host; the kernel's log has the XID "
            "that led to it",
        )
    odd = [gpu for gpu in gpus if gpu.unread and gpu not in lost and gpu not in reset]
    if odd:
        yield Finding(
            id="gpu.unread",
            outcome=Outcome.UNKNOWN,
            subject=host,
            summary="nvidia-smi gives no value that a card can have: "
            + "; ".join(f"{gpu.label}: {_fields(gpu)}" for gpu in odd[:FEW])
            + _more(len(odd), "card")
            + ". These are taken as unknown",
            cites=tuple(dict.fromkeys(cite for gpu in odd[:FEW] for cite in gpu.source)),
            measured=(("cards", len(odd)), ("cells", sum(len(gpu.unread) for gpu in odd))),
            advice="see the kernel's log, whether this user may use the devices under /dev, and nvidia-smi -q of the card",
        )


def _says(gpu: Gpu, words: str) -> bool:
    return any(words in cell.lower() for _, cell in gpu.unread)


def _unreachable(id: str, gpus: Sequence[Gpu], host: str, advice: str) -> Finding:
    told = "; ".join(f"{gpu.label}: {_fields(gpu)}" for gpu in gpus[:FEW])
    return Finding(
        id=id,
        outcome=Outcome.FAIL,
        subject=host,
        summary=f"nvidia-smi lists {len(gpus)} card{'s' if len(gpus) > 1 else ''} that it cannot ask: {told}"
        + _more(len(gpus), "card"),
        cites=tuple(dict.fromkeys(cite for gpu in gpus[:FEW] for cite in gpu.source)),
        measured=(("cards", len(gpus)),),
        advice=advice,
    )


def _fields(gpu: Gpu) -> str:
    """`temperature.gpu is 9999`, or `[GPU is lost] at memory.total, memory.used and 25 more`."""
    by_cell: dict[str, list[str]] = {}
    for field, cell in gpu.unread:
        by_cell.setdefault(cell, []).append(field)
    told = [
        f"{fields[0]} is {cell}"
        if len(fields) == 1
        else f"{cell} at {', '.join(fields[:2])}{_more(len(fields), '', 2)}"
        for cell, fields in list(by_cell.items())[:FEW]
    ]
    return ", ".join(told) + _more(len(by_cell), "value")


def _more(count: int, what: str, shown: int = FEW) -> str:
    rest = count - shown
    return f" and {rest} more" + (f" {what}{'s' if rest > 1 else ''}" if what else "") if rest > 0 else ""


# --- answers -----------------------------------------------------------------------------------------------


def gaps(evidence: Evidence) -> Iterator[Gap]:
    """Of answers with rows that are not whole, that are of no card, or that are more than are read."""
    found = _cards.query(evidence)
    if found is not None:
        yield from _of_cards(found, evidence)
    yield from _of_rows("remapped", nvidia_smi.read(_ladder.text_of(evidence, "remapped"), nvidia_smi.ROWS))
    told = nvidia_smi.read(_ladder.text_of(evidence, "apps"), nvidia_smi.APPS)
    yield from _of_rows("apps", told)
    odd = [row for row in told.rows if nvidia_smi.place(row["pid"]) is None]
    if odd:
        yield Gap(
            SUBJECTS["apps"],
            f"{_rows(len(odd))} no process by a number: {_cell(odd[0]['pid'])}",
            (Cite("apps"),),
        )


SUBJECTS = {
    "smi": "nvidia-smi --query-gpu",
    "remapped": "nvidia-smi --query-remapped-rows",
    "apps": "nvidia-smi --query-compute-apps",
}


def whole(found: _cards.Query) -> bool:
    """Whether each row of the answer is of a card that can be told apart: who is missing in it is missing on the host."""
    return not (found.told.torn or found.told.more or found.nameless)


def _of_cards(found: _cards.Query, evidence: Evidence) -> Iterator[Gap]:
    key, told = found.result.key, found.told
    if told.rows:
        yield from _of_rows(key, told, SUBJECTS["smi"])
    if found.nameless:
        cells = ", ".join(list(found.nameless[0].values())[:4])
        yield Gap(
            SUBJECTS["smi"],
            f"{_rows(len(found.nameless))} no card by its number: {_cell(cells)}; how these cards are is unknown",
            (Cite(key),),
        )
    if not told.more and len(told.rows) > _cards.MOST_CARDS:
        yield Gap(
            SUBJECTS["smi"],
            f"{len(told.rows)} rows, of which {len(found.rows)} cards were taken",
            (Cite(key),),
        )
    listed = nvidia_smi.instances(_ladder.text_of(evidence, "list"))
    missing = sorted(set(listed) - {nvidia_smi.place(row.get("index")) for row in told.rows})
    if missing and told.rows and whole(found) and not nvidia_smi.lost(found.stray):
        yield Gap(
            SUBJECTS["smi"],
            f"nvidia-smi -L lists {', '.join(f'GPU {index}' for index in missing[:FEW])}{_more(len(missing), 'card')}, and no "
            "row is of it: how it is, is unknown",
            (Cite(key), Cite("list")),
        )


def _of_rows(key: str, told: nvidia_smi.Told, subject: str = "") -> Iterator[Gap]:
    if told.torn:
        number, line = told.torn[0]
        yield Gap(
            subject or SUBJECTS[key],
            f"line {number} is cut short, or damaged: {_cell(line)}{_more(len(told.torn), 'line', 1)}; what it says is unknown",
            tuple(Cite(key, f"line {number}") for number, _ in told.torn[:FEW]),
        )
    if told.more:
        yield Gap(
            subject or SUBJECTS[key],
            f"of {nvidia_smi.MOST_ROWS + told.more} lines the first {nvidia_smi.MOST_ROWS} were read",
            (Cite(key),),
        )


def _rows(count: int) -> str:
    return f"{count} rows name" if count > 1 else "1 row names"


def _cell(text: str) -> str:
    return f"`{text[:80]}{'…' if len(text) > 80 else ''}`"
