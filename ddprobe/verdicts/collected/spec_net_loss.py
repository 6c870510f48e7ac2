"""Was the same server faster without speculation?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class _Beside:
    """Speeds with and without speculation, with as many requests at once."""

    running: int
    context_tokens: int
    text: str
    speed: float
    plain: float
    facts: tuple[BatchSpeed, ...]

    @property
    def slower(self) -> bool:
        return self.speed < self.plain * (1 - thresholds.DRIFT)


def _beside(case: Case) -> list[_Beside]:
    """Both speeds of one statement, or of two that are alike in all else."""
    every = case.every(BatchSpeed)
    plain = [one for one in every if one.tok_s is None and one.plain_tok_s]
    found = []
    for one in every:
        if not one.tok_s:
            continue
        others = [one] if one.plain_tok_s else [other for other in plain if _alike(one, other)]
        speeds = {other.plain_tok_s for other in others}
        if len(speeds) == 1 and (without := speeds.pop()):
            facts = (one,) if others == [one] else (one, others[0])
            found.append(_Beside(one.running, one.context_tokens, one.text, one.tok_s, without, facts))
    return found


def _alike(one: BatchSpeed, other: BatchSpeed) -> bool:
    near = abs(one.context_tokens - other.context_tokens) <= thresholds.SAME_PROMPTS * other.context_tokens
    return one.running == other.running and near


def _at_once(case: Case) -> Ruling | None:
    """Requests at once take the room that drafts are verified in: beyond some number drafting costs more than it gains."""
    every = _beside(case)
    slower = [one for one in every if one.slower]
    if not slower:
        return None
    worst = max(slower, key=lambda one: one.plain / one.speed)
    series = [one for one in every if (one.text, one.context_tokens) == (worst.text, worst.context_tokens)]
    begins = worst.running
    for one in sorted(series, key=lambda one: -one.running):
        if one.running <= worst.running:
            if not one.slower:
                break
            begins = one.running
    wins = [one for one in series if one.running < begins and one.speed > one.plain]
    best = max(wins, key=lambda one: one.speed / one.plain, default=None)
    told = [
        _told(worst),
        f"it loses from {begins} at once on" if begins < worst.running else "",
        f"with {best.running} at once it is {best.speed / best.plain:.2g} times faster" if best else "",
    ]
    joined = len(worst.facts) > 1
    return Ruling(
        Verdict(
            name="spec_net_loss",
            kind="",
            confidence="low" if joined else "medium",
            reasons=tuple(filter(None, told)),
            cites=words.cites(
                *worst.facts, *(fact for one in series if one is not worst for fact in one.facts)
            ),
            missing=(
                "how many requests run at once in ordinary use",
                *(("that nothing but speculation differs between the two runs",) if joined else ()),
            ),
            next=(
                f"switch speculation off where {begins} or more requests run at once, or try a shorter draft or a chain in place "
                "of a tree",
            ),
        ),
        explains=worst.plain / worst.speed,
    )


def _told(one: _Beside) -> str:
    place = f" at {sizes.short(one.context_tokens)}" if one.context_tokens else ""
    text = f" ({one.text})" if one.text else ""
    return (
        f"{words.count(one.running, 'request')} at once{place}: {words.short(one.speed)} tok/s with speculation{text}, "
        f"{words.short(one.plain)} without, {one.plain / one.speed:.1f} times slower"
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
    # What a step commits need not be known of a speed.
    timed = [
        point for point in case.every(CommitPoint) if point.purpose == "point" and point.commit_mean is None
    ]
    return [
        (point, point.tok_s, plain[point.context_tokens])
        for point in (*(point for line in figures.lines(case) for point in line.points), *timed)
        if point.tok_s and point.context_tokens and point.context_tokens in plain
    ]
