"""Was the same server faster without speculation?"""

from __future__ import annotations

from collections.abc import Sequence

from ddprobe.facts import CommitPoint, PlainSpeed
from ddprobe.model import Verdict
from ddprobe.parsing import sizes
from ddprobe.verdicts import thresholds, words
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.collected import figures
from ddprobe.verdicts.ruling import Ruling

Compared = tuple[CommitPoint, float, float]
"""A point, its tokens per second, and those without speculation."""


def judge(case: Case) -> Ruling | None:
    """Tokens per second with speculation stay below those without it at the same length."""
    every = compared(case)
    slower = [each for each in every if _loses(each)]
    if not slower:
        return None
    point, speed, plain = max(slower, key=lambda each: each[2] / each[1])
    begins = _from([each for each in every if each[0].arm == point.arm], point.context_tokens)
    return Ruling(
        Verdict(
            name="spec_net_loss",
            kind="",
            confidence="medium",
            reasons=(
                f"{point.arm}{figures.place(point)} gives {words.short(speed)} tok/s with speculation, and "
                f"{words.short(plain)} without: {plain / speed:.1f} times slower",
                *([f"it loses from {sizes.short(begins)} on"] if begins < point.context_tokens else []),
            ),
            cites=words.cites(point, *case.every(PlainSpeed)),
            missing=("the same with ordinary text: repeated text is the best case",)
            if figures.easy_text(point)
            else (),
            next=(f"switch speculation off from {sizes.short(begins)} on, or try a shorter draft",),
        ),
        explains=plain / speed,
    )


def _loses(each: Compared) -> bool:
    _, speed, plain = each
    return speed < plain * (1 - thresholds.DRIFT)


def _from(every: Sequence[Compared], worst: int) -> int:
    """The length from which on speculation loses at each, up to the one where it loses most."""
    begins = worst
    for each in sorted(every, key=lambda each: -each[0].context_tokens):
        if each[0].context_tokens <= worst:
            if not _loses(each):
                break
            begins = each[0].context_tokens
    return begins


def compared(case: Case) -> list[Compared]:
    """Points with their tokens per second, and those without speculation at the same length."""
    plain = {speed.context_tokens: speed.tok_s for speed in case.every(PlainSpeed)}
    return [
        (point, point.tok_s, plain[point.context_tokens])
        for line in figures.lines(case)
        for point in line.points
        if point.tok_s and point.context_tokens and point.context_tokens in plain
    ]
