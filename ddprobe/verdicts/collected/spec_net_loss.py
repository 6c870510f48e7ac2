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
    slower = [each for each in compared(case) if each[1] < each[2] * (1 - thresholds.DRIFT)]
    if not slower:
        return None
    point, speed, plain = max(slower, key=lambda each: each[2] / each[1])
    return Ruling(
        Verdict(
            name="spec_net_loss",
            kind="",
            confidence="medium",
            reasons=(
                f"{point.arm}{figures.place(point)} gives {words.short(speed)} tok/s with speculation, and "
                f"{words.short(plain)} without: {plain / speed:.1f} times slower",
            ),
            cites=words.cites(point, *case.every(PlainSpeed)),
            missing=("the same with ordinary text: repeated text is the best case",)
            if figures.easy_text(point)
            else (),
            next=(
                f"switch speculation off from {sizes.short(point.context_tokens)} on, or try a shorter draft",
            ),
        ),
        explains=plain / speed,
    )


def compared(case: Case) -> list[tuple[CommitPoint, float, float]]:
    """Points with their tokens per second, and those without speculation at the same length."""
    plain = {speed.context_tokens: speed.tok_s for speed in case.every(PlainSpeed)}
    return [
        (point, point.tok_s, plain[point.context_tokens])
        for line in figures.lines(case)
        for point in line.points
        if point.tok_s and point.context_tokens and point.context_tokens in plain
    ]
