"""Do drafts count for nothing, by points and logs of others?"""

from __future__ import annotations

from ddprobe.facts import Acceptance, CommitPoint
from ddprobe.model import Fact, Finding, Verdict
from ddprobe.verdicts import thresholds, words
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.collected import causes, figures
from ddprobe.verdicts.collected.figures import Line, mean
from ddprobe.verdicts.ruling import Ruling, weakest

SHORTEST = 2 * thresholds.SHORT
"""Longest context at which repeated text shows the drafter itself, where nobody chose the lengths."""


def judge(case: Case) -> Ruling | None:
    """Repeated text is not drafted even at a short length; or, without any, nothing at all is, in every log line."""
    line = figures.easy(case)
    if line is not None:
        return _by_points(case, line)
    return _by_logs(case)


# --- points -----------------------------------------------------------------------------------------------


def _by_points(case: Case, line: Line) -> Ruling | None:
    point, share = line.short, line.share(line.short)
    if point.context_tokens > SHORTEST:
        return None
    wired = causes.wiring(case)
    dead = mean(point) <= thresholds.DEAD if share is None else share < thresholds.DEAD_SHARE
    half = share is not None and not dead and share < thresholds.ALIVE_SHARE and bool(wired)
    if not dead and not half:
        return None
    others = [other for ordinary in figures.ordinary(case) for other in ordinary.points]
    better = [other for other in others if mean(other) > max(thresholds.DEAD, 2 * mean(point))]
    if better and len(better) == len(others):
        # The easiest text is worse than every other one: it was no easy text here, or the tables were mixed.
        return None
    reasons = [
        f"{figures.told([point], line.ceiling)}: "
        + (
            "next to nothing on the easiest text there is"
            if dead
            else "alive, and far below what repeated text gives"
        )
    ]
    longer = [p for p in line.points if p is not point]
    if longer:
        reasons.append(f"at greater lengths it is no better: {figures.told(longer[-1:], line.ceiling)}")
    if others and not better:
        best = max(others, key=lambda p: (mean(p), p.arm, p.context_tokens))
        reasons.append(f"nor is any other text: {figures.told([best], line.ceiling)} at best")
    if better:
        reasons.append(
            f"the same text is drafted elsewhere ({figures.told(better[:1], line.ceiling)}), so neither text nor model is "
            "to blame"
        )
    reasons += [*_elsewhere(case, point), *_after_first(case)]
    sure = figures.sure([point])
    return _ruling(
        case,
        "" if dead else "miswired",
        # Another configuration that works may be another table; where an error tells the two apart, it is a control.
        weakest("medium", sure) if not dead or (better and not wired) else sure,
        reasons,
        (point, *longer, *others),
        wired,
        _lost(line, point),
        figures.few([point]),
    )


def _elsewhere(case: Case, point: CommitPoint) -> list[str]:
    """That a log or tool shows drafts that are right: another stack, or another day."""
    well = [f for f in figures.figures(case) if figures.commit(f) > max(thresholds.HARD, 2 * mean(point))]
    if not well:
        return []
    best = max(well, key=lambda figure: (figures.commit(figure), figure.origin))
    return [
        f"a reference does: {best.origin} states {best.commit:.2f} tokens per step in another run, so such a drafter can "
        "work"
    ]


def _lost(line: Line, point: CommitPoint) -> float:
    most = thresholds.ceiling_of(point, line.ceiling)
    return thresholds.EXPECTED * most / mean(point) if most else 2.0


# --- logs -------------------------------------------------------------------------------------------------


def _by_logs(case: Case) -> Ruling | None:
    """Without repeated text: nothing right in any line, or next to nothing and an error that explains it."""
    if any(claim.what == "accepted depth" and claim.value >= 1 for claim in case.claims):
        # Drafts are right, by the log's own word: what becomes of them is another question.
        return None
    if figures.ordinary(case):
        return None
    every = figures.figures(case)
    bins = [bin for log in case.logs for bin in figures.speaking(log)]
    commits = [*map(figures.commit, every), *map(figures.bin_best, bins)]
    if not commits:
        return None
    wired = causes.wiring(case)
    most = figures.ceiling(case)
    best = max(commits)
    nothing = best <= thresholds.NOTHING_RIGHT or (
        best <= thresholds.NOTHING_AT_BEST and bool(case.logs) and all(map(figures.gets_nothing, case.logs))
    )
    weak = most is not None and best < 1 + thresholds.DEAD_SHARE * (most - 1) and bool(wired)
    if not (nothing or weak) or not _enough(case, every, nothing) or figures.far_only(case):
        return None
    scope = f" of {most}" if most else ""
    reasons = [
        f"no log and no counter comes to more than {best:.2f}{scope} tokens per step"
        + ("; even hard text gives 1.1 to 1.6" if nothing else ""),
        *_after_first(case),
    ]
    few = _few(case, every)
    return _ruling(
        case,
        "",
        "low" if not nothing or few else "high" if wired else "medium",
        reasons,
        (*every, *case.logs),
        wired,
        thresholds.EXPECTED * most / best if most else 2.0,
        (*few, "repeated text at 1k: it alone excludes hard text for good"),
    )


def _enough(case: Case, every: tuple[Acceptance, ...], nothing: bool) -> bool:
    """Of few steps only "nothing right" says something."""
    least = thresholds.FEWEST_STEPS if nothing else thresholds.MIN_STEPS
    return _steps(every) >= least or _lines(case) >= thresholds.LOG_LINES


def _few(case: Case, every: tuple[Acceptance, ...]) -> tuple[str, ...]:
    lines = _lines(case)
    if _steps(every) >= thresholds.MIN_STEPS or lines >= thresholds.FEW:
        return ()
    if not lines:
        return (f"{thresholds.MIN_STEPS} verify steps: here are {_steps(every)}",)
    return (f"more of the log: {words.count(lines, 'decode line')} of {thresholds.FEW} at least",)


def _steps(every: tuple[Acceptance, ...]) -> int:
    return sum(figure.steps or 0 for figure in every)


def _lines(case: Case) -> int:
    return sum(bin.lines for log in case.logs for bin in figures.speaking(log))


def _after_first(case: Case) -> list[str]:
    """That only the first position of the draft is ever right."""
    for figure in figures.figures(case):
        shares = figure.per_position
        if shares and len(shares) > 2 and shares[0] > 0 and not any(shares[1:]):
            return [
                f"the first draft is right in {shares[0]:.0%} of the steps and no later one ever: positions or masks within "
                "the block are wrong"
            ]
    return []


# --- words ------------------------------------------------------------------------------------------------


def _ruling(
    case: Case,
    kind: str,
    confidence: str,
    reasons: list[str],
    facts: tuple[Fact, ...],
    wired: tuple[Finding, ...],
    explains: float,
    few: tuple[str, ...],
) -> Ruling:
    easy = figures.easy(case) is not None
    missing = list(few)
    if not wired:
        missing += [
            "the cause: the drafter's config.json, the names of its weights, and start-up lines on skipped or missing ones"
        ]
    return Ruling(
        Verdict(
            name="drafter_dead",
            kind=kind,
            confidence=confidence,
            reasons=(*reasons, *causes.named(wired)),
            cites=words.cites(*facts) + causes.cites(wired),
            ruled_out=(
                "hard text: repeated text is the easiest there is",
                "context: it is so at the shortest length",
            )
            if easy
            else ("switched-off speculation: drafts are made, and are not right",),
            missing=tuple(missing),
            next=(
                *causes.advice(wired),
                "check taps, mask token, RoPE and the weights that the start-up log skips (ddprobe inspect-config)",
                "until it is found: switch speculation off, every draft costs and none counts",
            ),
        ),
        explains=explains,
    )
