"""Do the cards of one server reach the host and each other well, and are they alike?"""

from __future__ import annotations

from collections.abc import Sequence

from ddprobe.facts import Gpu, GpuWindow
from ddprobe.lints.cards import Cards, asked, cards_lint, cites, in_part, named, under_load, unsaid
from ddprobe.lints.lint import Judgement, NotKnown, fine, note, warn

FAR = {"SYS": "across the processors", "NODE": "across host bridges", "PHB": "through the host's bridge"}


@cards_lint(
    "GP07",
    "under load the PCIe link is as wide and as fast as it can be",
    source="nvidia-smi pcie.link.gen and pcie.link.width; links slow down while a card is idle, and do not narrow",
    subject="PCIe links",
    applies=asked,
)
def pcie(cards: Cards) -> Judgement | None:
    known = [gpu for gpu in cards.gpus if gpu.pcie_width is not None and gpu.pcie_width_max is not None]
    if not known:
        raise NotKnown("the width of the PCIe links")
    silent = [gpu for gpu in cards.gpus if gpu not in known]
    seen = _best_gen(cards.windows)
    narrow = [gpu for gpu in known if (gpu.pcie_width or 0) < (gpu.pcie_width_max or 0)]
    slow = [
        gpu
        for gpu in known
        if gpu not in narrow
        and (gen := _gen_under_load(gpu, seen)) is not None
        and gen < (gpu.pcie_gen_max or 0)
    ]
    if not narrow and not slow:
        loaded = sum(_gen_under_load(gpu, seen) is not None for gpu in known)
        told = (
            f"speed judged under load on {loaded} of {len(known)}"
            if loaded
            else "speed not judged: no card was under load"
        )
        full = fine(
            f"PCIe links of {len(known)} card{'s' if len(known) > 1 else ''} at full width; {told}",
            cites(known),
        )
        return in_part(full, silent, "the width of the link")
    parts = []
    if narrow:
        one = narrow[0]
        parts.append(f"{named([gpu.index for gpu in narrow])} × {one.pcie_width} of {one.pcie_width_max}")
    if slow:
        one = slow[0]
        parts.append(
            f"{named([gpu.index for gpu in slow])} at generation {_gen_under_load(one, seen)} of {one.pcie_gen_max} under load"
        )
    below = warn(
        f"PCIe links below what card and slot can do: {'; '.join(parts)}",
        "seat the card again, check riser and slot (bifurcation in the BIOS); weights load slower over it, and tensor "
        "parallelism without NVLink decodes slower",
        cites((*narrow, *slow)),
    )
    return in_part(below, silent, "the width of the link")


def _best_gen(windows: tuple[GpuWindow, ...]) -> dict[int, int]:
    """The fastest generation that a sampler saw of each card."""
    best: dict[int, int] = {}
    for window in windows:
        if window.pcie_gen is not None:
            best[window.index] = max(best.get(window.index, 0), window.pcie_gen)
    return best


def _gen_under_load(gpu: Gpu, seen: dict[int, int]) -> int | None:
    if gpu.index is not None and gpu.index in seen:
        return seen[gpu.index]
    return gpu.pcie_gen if under_load(gpu) else None


@cards_lint(
    "GP09",
    "the cards of one server reach each other directly",
    source="nvidia-smi topo -m; NCCL takes shared memory where P2P does not cross a host bridge",
    subject="GPU topology",
    applies=lambda cards: bool(cards.served()),
)
def topology(cards: Cards) -> Judgement | None:
    if not cards.links:
        raise NotKnown("how the cards reach each other (nvidia-smi topo -m)")
    kinds = {(link.first, link.second): link for link in cards.links}
    for server, held in cards.served():
        every = [(a, b) for i, a in enumerate(held) for b in held[i + 1 :]]
        pairs = [kinds[pair] for pair in every if pair in kinds]
        if not pairs:
            raise NotKnown(f"how the cards of {server} reach each other")
        far = [link for link in pairs if link.kind in FAR]
        worst = next((kind for kind in FAR if any(link.kind == kind for link in far)), "")
        if worst:
            count = sum(link.kind == worst for link in far)
            judged = warn if worst in ("SYS", "NODE") else note
            return judged(
                f"{server} spreads over {named(held)}, and {count} of {len(pairs)} pairs of them reach each other {FAR[worst]} "
                f"({worst}): all-reduce after every layer goes that way",
                "take cards under one switch or joined by NVLink where there are such (CUDA_VISIBLE_DEVICES), or fewer of "
                "them; what a step pays for it shows in its part that does not grow with context",
                cites(far[:2]),
                pairs=count,
            )
        if len(pairs) < len(every):
            unseen = next(pair for pair in every if pair not in kinds)
            raise NotKnown(f"how {named(unseen)} of {server} reach each other")
    served = ", ".join(server for server, _ in cards.served())
    return fine(f"cards of {served} reach each other by NVLink or a PCIe switch", cites(cards.links[:2]))


@cards_lint(
    "GP12",
    "the cards are alike, and whole",
    source="tensor parallelism waits for the slowest card and the smallest memory; a MIG instance is a part of a card",
    subject="GPUs",
    applies=asked,
)
def alike(cards: Cards) -> Judgement | None:
    silent = unsaid(cards.gpus, _tells_of_mig, "mig.")
    unnamed = [gpu for gpu in cards.gpus if any(field == "name" for field, _ in gpu.unread)]
    found = in_part(_kinds(cards, silent), unnamed, "the name")
    return in_part(found, silent, "the MIG mode")


def _kinds(cards: Cards, silent: Sequence[Gpu]) -> Judgement:
    sliced = [gpu for gpu in cards.gpus if gpu.mig]
    for server, held in cards.served():
        mixed = sorted({gpu.name for gpu in cards.gpus if gpu.index in held and gpu.name})
        if len(mixed) > 1:
            return warn(
                f"{server} spreads over cards that differ: {', '.join(mixed[:4])}",
                "give one server cards of one kind: every step waits for the slowest",
                cites([gpu for gpu in cards.gpus if gpu.index in held]),
            )
    if sliced:
        count = sum(gpu.mig_instances or 0 for gpu in sliced)
        return note(
            f"{named([gpu.index for gpu in sliced])} cut up by MIG ({count} instance{'s' if count != 1 else ''}): a server in "
            "one has a part of the card's bandwidth and of its memory",
            "compare what is measured with that part, not with the whole card",
            cites(sliced),
        )
    names = sorted({gpu.name for gpu in cards.gpus if gpu.name})
    if len(names) > 1:
        return note(
            f"the host has cards that differ: {', '.join(names[:4])}",
            "CUDA and nvidia-smi may number them differently: set CUDA_DEVICE_ORDER=PCI_BUS_ID",
            cites(cards.gpus),
        )
    known = sum(_tells_of_mig(gpu) and gpu not in silent for gpu in cards.gpus)
    kind = names[0] if names else "a card without a name"
    if known < len(cards.gpus):
        return fine(
            f"{len(cards.gpus)} × {kind}; known not to be cut up by MIG: {known} of them", cites(cards.gpus)
        )
    return fine(f"{len(cards.gpus)} × {kind}, none cut up by MIG", cites(cards.gpus))


def _tells_of_mig(gpu: Gpu) -> bool:
    """By its mode, or by a list of devices in which it has no instance."""
    return gpu.mig is not None or gpu.mig_instances is not None


LINTS = (pcie, topology, alike)
