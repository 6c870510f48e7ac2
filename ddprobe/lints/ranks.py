"""Do the data-parallel ranks of one server draft alike?"""

from __future__ import annotations

from ddprobe.lints.lint import Judgement, fail, fine, warn
from ddprobe.lints.measured import Measured, cites
from ddprobe.lints.metrics import metric

FEWEST = 4
"""Decode lines of a rank that say something of it."""
LESS = 0.5
"""Of the tokens beyond the first that the best rank commits, one that gets less than this share drafts otherwise."""
NOTHING = 1.05
ALIVE = 1.5


@metric(
    "RT16",
    "the ranks of one server draft alike",
    source="SGLang logs each data-parallel rank by its name; the ranks run the same drafter on their shares of the requests",
    applies=lambda measured: any(_known(log.ranks) for log in measured.logs),
)
def ranks_alike(measured: Measured) -> Judgement:
    every = [(log, known) for log in measured.logs if (known := _known(log.ranks))]
    for log, known in every:
        worst = min(known, key=lambda rank: rank[2])
        best = max(known, key=lambda rank: rank[2])
        if worst[2] - 1 >= LESS * (best[2] - 1):
            continue
        dead = worst[2] <= NOTHING and best[2] >= ALIVE
        judged = fail if dead else warn
        return judged(
            f"{_told(worst)}, and {_told(best)}: the mean over all of them is of neither"
            + ("; that rank's drafter gets nothing right" if dead else ""),
            "send the same prompts to both ranks; compare what each says while it starts (weights, taps, memory), and restart",
            cites((log,)),
            worst=worst[2],
            best=best[2],
        )
    count = max(len(known) for _, known in every)
    return fine(f"{count} ranks commit alike", cites([log for log, _ in every]))


def _known(ranks: tuple[tuple[str, int, float], ...]) -> list[tuple[str, int, float]]:
    found = [rank for rank in ranks if rank[1] >= FEWEST]
    return found if len(found) > 1 else []


def _told(rank: tuple[str, int, float]) -> str:
    name, lines, commit = rank
    return f"{name} commits {commit:.2f} ({lines} decode lines)"


LINTS = (ranks_alike,)
