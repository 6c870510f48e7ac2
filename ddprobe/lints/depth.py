"""How deep a block is right: position by position, as logs and counters state it."""

from __future__ import annotations

from ddprobe.facts import Acceptance
from ddprobe.lints.lint import Judgement, fine, note, warn
from ddprobe.lints.measured import Measured, cites
from ddprobe.lints.metrics import EASY, metric

IDLE = 0.02
"""Share of steps below which a position is hardly ever right."""
LEAST_POSITIONS = 4
ALIVE = 0.1
"""Share from which the first position is alive."""


def _stated(measured: Measured) -> list[Acceptance]:
    """Figures position by position, of enough positions to have a second half; each run's whole before its windows."""
    deep = [s for s in measured.stated if s.per_position and len(s.per_position) >= LEAST_POSITIONS]
    return sorted(deep, key=lambda stated: stated.window.startswith("one log window"))


def _only_first(stated: Acceptance) -> bool:
    shares = stated.per_position or ()
    return shares[0] >= ALIVE and all(share < IDLE for share in shares[1:])


@metric(
    "RT14",
    "as many tokens are drafted as are ever right",
    source="AEON-7/Qwen3.6-27B-AEON-Ultimate-Uncensored-DFlash#6: with k = 15 the accept rate is 9.1 %, the length 2.37",
    applies=lambda measured: bool(_stated(measured)),
    aliases=("L41",),
)
def too_many(measured: Measured) -> Judgement:
    for stated in _stated(measured):
        shares = stated.per_position or ()
        if stated.text in EASY or shares[0] < ALIVE or _only_first(stated):
            continue
        half = shares[len(shares) // 2 :]
        if max(half) < IDLE:
            used = sum(share >= IDLE for share in shares)
            return note(
                f"{len(shares)} tokens are drafted per step, and positions {used + 1} to {len(shares)} are right in less "
                f"than {IDLE:.0%} of the steps ({stated.origin}): the accept rate is low by that choice",
                f"read the commit length, not the rate; on such text {used + 1} drafts a step cost less",
                cites((stated,)),
                drafted=len(shares),
                used=used,
            )
    return fine("the second half of a block is right now and then", cites(_stated(measured)))


@metric(
    "RT15",
    "more than the first position of a block is alive",
    source="vllm-project/speculators#613: the first position leans on the committed token (.34), all masked ones fail (0)",
    applies=lambda measured: bool(_stated(measured)),
)
def first_alone(measured: Measured) -> Judgement:
    for stated in _stated(measured):
        if _only_first(stated):
            shares = stated.per_position or ()
            return warn(
                f"position 1 is right in {shares[0]:.1%} of the steps, and positions 2 to {len(shares)} in less than "
                f"{IDLE:.0%} each ({stated.origin}): the committed token is used, the masked slots are not",
                "compare rotation, mask token and taps of the drafter's config.json with how it was trained, and measure "
                "repeated text at 1k",
                cites((stated,)),
                first=shares[0],
            )
    return fine("later positions are right too, or none is", cites(_stated(measured)))


LINTS = (too_many, first_alone)
