"""Was the same server faster without speculation?"""

from __future__ import annotations

from collections.abc import Sequence

from ddprobe.facts import BatchSpeed, CommitPoint, PlainSpeed
from ddprobe.model import Verdict
from ddprobe.parsing import sizes
from ddprobe.verdicts import thresholds, words
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.collected import figures
from ddprobe.verdicts.ruling import Ruling

Compared = tuple[CommitPoint, float, float]
"""A point, its tokens per second, and those without speculation."""


def judge(case: Case) -> Ruling | None:
    """Tokens per second with speculation stay below those without it at the same length, or with as many requests at once."""
    found = [ruling for ruling in (_by_length(case), _at_once(case)) if ruling is not None]
    return max(found, key=lambda ruling: ruling.explains, default=None)


def _by_length(case: Case) -> Ruling | None:
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


def _at_once(case: Case) -> Ruling | None:
    """Requests at once take the room that drafts are verified in: beyond some number drafting costs more than it gains."""
    every = case.every(BatchSpeed)
    slower = [speed for speed in every if speed.tok_s < speed.plain_tok_s * (1 - thresholds.DRIFT)]
    if not slower:
        return None
    worst = max(slower, key=lambda speed: speed.plain_tok_s / speed.tok_s)
    series = [one for one in every if (one.text, one.context_tokens) == (worst.text, worst.context_tokens)]
    begins = worst.running
    for one in sorted(series, key=lambda one: -one.running):
        if one.running <= worst.running:
            if one not in slower:
                break
            begins = one.running
    wins = [one for one in series if one.running < begins and one.tok_s > one.plain_tok_s]
    best = max(wins, key=lambda one: one.tok_s / one.plain_tok_s, default=None)
    faster = (
        f"with {best.running} at once it is {best.tok_s / best.plain_tok_s:.2g} times faster" if best else ""
    )
    return Ruling(
        Verdict(
            name="spec_net_loss",
            kind="",
            confidence="medium",
            reasons=tuple(
                filter(
                    None,
                    (
                        _slower(worst),
                        f"it loses from {begins} at once on" if begins < worst.running else "",
                        faster,
                    ),
                )
            ),
            cites=words.cites(worst, *(one for one in series if one is not worst)),
            missing=("how many requests run at once in ordinary use",),
            next=(
                f"switch speculation off where {begins} or more requests run at once, or try a shorter draft or a chain in place of a tree",
            ),
        ),
        explains=worst.plain_tok_s / worst.tok_s,
    )


def _slower(one: BatchSpeed) -> str:
    place = f" at {sizes.short(one.context_tokens)}" if one.context_tokens else ""
    text = f" ({one.text})" if one.text else ""
    return (
        f"{words.count(one.running, 'request')} at once{place}: {words.short(one.tok_s)} tok/s with speculation{text}, "
        f"{words.short(one.plain_tok_s)} without, {one.plain_tok_s / one.tok_s:.1f} times slower"
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
