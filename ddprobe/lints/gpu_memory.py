"""Is the cards' memory sound, and whose is it?"""

from __future__ import annotations

from ddprobe.facts import Gpu, GpuProcess
from ddprobe.lints.cards import Cards, asked, cards_lint, cites, in_part, named, unsaid
from ddprobe.lints.lint import Judgement, NotKnown, fail, fine, note, warn

MUCH_MIB = 1024.0
"""Memory held by others from which the KV cache of a server is smaller for it."""


@cards_lint(
    "GP04",
    "memory has had no uncorrected errors",
    source="NVIDIA GPU memory error management; nvidia-smi ecc.errors.uncorrected",
    subject="GPU memory",
    applies=asked,
)
def uncorrected(cards: Cards) -> Judgement | None:
    known = [gpu for gpu in cards.gpus if gpu.ecc_uncorrected is not None]
    silent = [gpu for gpu in cards.gpus if gpu.ecc and gpu.ecc_uncorrected is None]
    silent += [gpu for gpu in unsaid(cards.gpus, _counts, "ecc.") if gpu not in silent]
    if known:
        return in_part(_counted(known, cards), silent, "the count of errors")
    if not silent and all(gpu.ecc is False for gpu in cards.gpus):
        return note(
            "ECC is off: errors of memory are neither corrected nor counted",
            "turn it on where the card has it (nvidia-smi -e 1, then a reset; undo it with -e 0)",
            cites(cards.gpus),
        )
    if not silent and all(gpu.ecc is None for gpu in cards.gpus):
        return None  # a card without ECC
    raise NotKnown("counts of uncorrected errors")


def _counts(gpu: Gpu) -> bool:
    """Whether it tells its count, or that there is none."""
    return gpu.ecc_uncorrected is not None or gpu.ecc is False


def _counted(known: list[Gpu], cards: Cards) -> Judgement:
    now = [gpu for gpu in known if gpu.ecc_uncorrected]
    if now:
        count = sum(gpu.ecc_uncorrected or 0 for gpu in now)
        return fail(
            f"{count} uncorrected error{'s' if count > 1 else ''} of memory on {named([gpu.index for gpu in now])} since the "
            "driver was loaded",
            "end the servers and reset the card; if the errors come back, have it replaced",
            cites(now),
            errors=count,
        )
    ever = [gpu for gpu in known if gpu.ecc_uncorrected_ever]
    if ever:
        count = sum(gpu.ecc_uncorrected_ever or 0 for gpu in ever)
        return note(
            f"no uncorrected error since the driver was loaded, and {count} in the life of {named([gpu.index for gpu in ever])}",
            "see whether rows were remapped (GP05), and watch whether more come",
            cites(ever),
            errors=count,
        )
    none = f"no uncorrected error of memory on {len(known)} card{'s' if len(known) > 1 else ''}"
    off = [gpu for gpu in cards.gpus if gpu.ecc is False and gpu not in known]
    if off:
        return note(
            f"{none}; ECC is off on {named([gpu.index for gpu in off])}, whose errors are neither corrected nor counted",
            "turn it on there (nvidia-smi -e 1, then a reset; undo it with -e 0)",
            cites((*known, *off)),
        )
    return fine(none, cites(known))


@cards_lint(
    "GP05",
    "no row of memory waits to be replaced, and none could not be",
    source="NVIDIA GPU memory error management, row remapping; nvidia-smi --query-remapped-rows",
    subject="GPU memory",
    applies=lambda cards: any(map(_tells_of_rows, cards.gpus)),
)
def rows(cards: Cards) -> Judgement | None:
    silent = unsaid(cards.gpus, _tells_of_rows, "remapped_rows.")
    return in_part(_remapped(cards), silent, "remapped rows")


def _tells_of_rows(gpu: Gpu) -> bool:
    return gpu.rows_pending is not None or gpu.rows_failed is not None


def _remapped(cards: Cards) -> Judgement:
    failed = [gpu for gpu in cards.gpus if gpu.rows_failed]
    if failed:
        return fail(
            f"a row of memory could not be replaced on {named([gpu.index for gpu in failed])}",
            "take the card out of service and have it replaced",
            cites(failed),
        )
    pending = [gpu for gpu in cards.gpus if gpu.rows_pending]
    if pending:
        return warn(
            f"a row of memory waits to be replaced on {named([gpu.index for gpu in pending])}",
            "reset the card when its servers can be ended: the row is replaced at the reset",
            cites(pending),
        )
    replaced = sum(gpu.rows_remapped or 0 for gpu in cards.gpus)
    return fine(
        f"no row waits to be replaced ({replaced} were, after uncorrectable errors)"
        if replaced
        else "no row was remapped",
        cites(cards.gpus),
    )


@cards_lint(
    "GP08",
    "memory of the server's cards is the server's",
    source="SGLang and vLLM size the KV cache by what is free at start; nvidia-smi --query-compute-apps",
    subject="GPU memory",
    applies=lambda cards: any(one.server for one in cards.processes),
)
def others(cards: Cards) -> Judgement | None:
    served = {one.gpu for one in cards.processes if one.server and one.gpu is not None}
    theirs = [
        one
        for one in cards.processes
        if not one.server and one.gpu in served and (one.memory_mib is None or one.memory_mib >= MUCH_MIB)
    ]
    if theirs:
        held = sum(one.memory_mib or 0 for one in theirs)
        amount = f"{held:.0f} MiB" if held else "an unknown amount"
        return warn(
            f"{len(theirs)} other process{'es hold' if len(theirs) > 1 else ' holds'} {amount} on the server's cards "
            f"({_listed(theirs)})",
            "end them or move them to another card: they take memory from the KV cache, and time when they compute",
            cites(theirs),
            mib=held,
        )
    lost = [
        (gpu, mib)
        for gpu in cards.gpus
        if gpu.index in served and (mib := _unaccounted(gpu, cards)) >= 2 * MUCH_MIB
    ]
    if lost:
        gpu, mib = max(lost, key=lambda each: each[1])
        return note(
            f"{mib:.0f} MiB of {gpu.label} are held by no process that is shown (limit {2 * MUCH_MIB:.0f} MiB)",
            "a desktop, a process of another container, or one that ended badly holds it",
            cites((gpu,)),
            mib=mib,
        )
    return fine(
        f"no other process holds {MUCH_MIB:.0f} MiB or more on {named(sorted(served))}",
        cites(cards.processes),
    )


def _listed(theirs: list[GpuProcess]) -> str:
    shown = ", ".join(f"{one.name or 'a process'} pid {one.pid} on GPU {one.gpu}" for one in theirs[:4])
    return shown + (f" and {len(theirs) - 4} more" if len(theirs) > 4 else "")


def _unaccounted(gpu: Gpu, cards: Cards) -> float:
    """Memory in use that no process accounts for; 0 where that is not known of every process."""
    held = [one.memory_mib for one in cards.processes if one.gpu == gpu.index]
    if gpu.memory_used_mib is None or gpu.mig or None in held:
        return 0.0
    return gpu.memory_used_mib - sum(each for each in held if each is not None)


LINTS = (uncorrected, rows, others)
