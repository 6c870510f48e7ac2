"""Was the same server faster without speculation?"""

from __future__ import annotations

from ddprobe.facts import CommitPoint, PlainSpeed
from ddprobe.model import Verdict
from ddprobe.parsing import sizes
from ddprobe.verdicts import thresholds, words
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.collected import figures
from ddprobe.verdicts.ruling import Ruling


def judge(case: Case) -> Ruling | None:
    """Tokens per second with speculation stay below those without it at the same length."""
    pairs = [
        (point, plain)
        for point, plain in compared(case)
        if (point.tok_s or 0) < plain * (1 - thresholds.DRIFT)
    ]
    if not pairs:
        return None
    point, plain = max(pairs, key=lambda pair: pair[1] / (pair[0].tok_s or 1))
    return Ruling(
        Verdict(
            name="spec_net_loss",
            kind="",
            confidence="medium",
            reasons=(
                f"{point.arm}{figures.place(point)} gives {words.short(point.tok_s or 0)} tok/s with speculation, and "
                f"{words.short(plain)} without: {plain / (point.tok_s or 1):.1f} times slower",
            ),
            cites=words.cites(point, *case.every(PlainSpeed)),
            missing=("the same with ordinary text: repeated text is the best case",)
            if figures.easy_text(point)
            else (),
            next=(
                f"switch speculation off from {sizes.short(point.context_tokens)} on, or try a shorter draft",
            ),
        ),
        explains=plain / (point.tok_s or 1),
    )


def compared(case: Case) -> list[tuple[CommitPoint, float]]:
    """Points with their throughput, and that without speculation at the same length."""
    plain = {speed.context_tokens: speed.tok_s for speed in case.every(PlainSpeed)}
    return [
        (point, plain[point.context_tokens])
        for line in figures.lines(case)
        for point in line.points
        if point.tok_s and point.context_tokens and point.context_tokens in plain
    ]
