"""What lints of GPUs judge: every card of one host, its driver, and what a sampler saw of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ddprobe.facts import Gpu, GpuDriver, GpuFault, GpuLink, GpuProcess, GpuWindow
from ddprobe.lints import pasted_cards
from ddprobe.lints.lint import Judgement, Lint
from ddprobe.model import Cite, Fact, Outcome

BUSY = pasted_cards.BUSY
FEW = 8
"""Cards that a sentence lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cards:
    """NVIDIA's cards of one host. Those that only the bus knows (no index) are in none of these."""

    gpus: tuple[Gpu, ...] = ()
    driver: GpuDriver | None = None
    links: tuple[GpuLink, ...] = ()
    processes: tuple[GpuProcess, ...] = ()
    faults: tuple[GpuFault, ...] = ()
    windows: tuple[GpuWindow, ...] = ()
    pasted: tuple[GpuWindow, ...] = ()
    """What somebody pasted of nvidia-smi: clocks and what holds them, and no more."""

    @classmethod
    def of_facts(cls, facts: Sequence[Fact]) -> Cards | None:
        """What is known of cards; None when nothing is."""
        cards = cls(
            gpus=tuple(
                f for f in facts if isinstance(f, Gpu) and f.vendor == "nvidia" and f.index is not None
            ),
            driver=next((f for f in facts if isinstance(f, GpuDriver) and f.vendor == "nvidia"), None),
            links=tuple(f for f in facts if isinstance(f, GpuLink)),
            processes=tuple(f for f in facts if isinstance(f, GpuProcess)),
            faults=tuple(f for f in facts if isinstance(f, GpuFault)),
            windows=tuple(f for f in facts if isinstance(f, GpuWindow)),
            pasted=pasted_cards.windows(facts),
        )
        known = (cards.gpus, cards.driver, cards.faults, cards.windows, cards.pasted)
        return cards if any(known) else None

    @property
    def of(self) -> str:
        return ""

    def served(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """Each inference server with the cards that it holds, two or more of them."""
        held: dict[str, set[int]] = {}
        for one in self.processes:
            if one.server and one.gpu is not None:
                held.setdefault(one.server, set()).add(one.gpu)
        return tuple((server, tuple(sorted(cards))) for server, cards in held.items() if len(cards) > 1)


def cards_lint(
    id: str, text: str, *, source: str, subject: str, applies: Callable[[Cards], bool]
) -> Callable[[Callable[[Cards], Judgement | None]], Lint[Cards]]:
    """Turns a function that judges a host's cards into a lint."""

    def wrap(judge: Callable[[Cards], Judgement | None]) -> Lint[Cards]:
        return Lint(id, text, source, subject, applies, judge)

    return wrap


def sampled(cards: Cards) -> bool:
    """Cards that were asked, or that a sampler saw."""
    return bool(cards.gpus or cards.windows)


def asked(cards: Cards) -> bool:
    return bool(cards.gpus)


def unsaid(gpus: Sequence[Gpu], told: Callable[[Gpu], bool], field: str) -> tuple[Gpu, ...]:
    """Cards that have something and do not tell of it: a card of their kind does, or the cell of a field that begins so
    holds something else than `[N/A]`. Where no card of a kind tells of it, the kind does not have it.
    """
    kinds = {gpu.name for gpu in gpus if told(gpu)}
    return tuple(
        gpu
        for gpu in gpus
        if any(name.startswith(field) for name, _ in gpu.unread)
        or (not told(gpu) and bool(kinds) and (not gpu.name or gpu.name in kinds))
    )


def in_part(judged: Judgement, silent: Sequence[Gpu], what: str) -> Judgement:
    """The judgement with the cards named of which it is not known. What no warning comes of is unknown then."""
    if not silent:
        return judged
    return replace(
        judged,
        outcome=judged.outcome if judged.outcome >= Outcome.WARN else Outcome.UNKNOWN,
        summary=f"{judged.summary}; not known: {what} of {named([gpu.index for gpu in silent])}",
        cites=(*judged.cites, *cites(silent)),
    )


def named(indexes: Sequence[int | None]) -> str:
    """`GPU 0`, or `GPUs 0, 1, 5`."""
    every = sorted({index for index in indexes if index is not None})
    if len(every) == 1:
        return f"GPU {every[0]}"
    listed = ", ".join(str(index) for index in every[:FEW])
    return f"GPUs {listed}" + (f" and {len(every) - FEW} more" if len(every) > FEW else "")


def cites(facts: Sequence[Fact]) -> tuple[Cite, ...]:
    """Where they can be checked: of the first few of them."""
    return tuple(dict.fromkeys(cite for fact in facts for cite in fact.source))[:8]


def under_load(gpu: Gpu) -> bool:
    return gpu.utilization is not None and gpu.utilization >= BUSY
