"""What the arms and controls say before any verdict: does easy text work, is prose hard, may lengths be compared?"""

from __future__ import annotations

from dataclasses import dataclass

from ddprobe.facts import CommitPoint
from ddprobe.model import Outcome
from ddprobe.verdicts import thresholds
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.ladder import EASY, PROSE, WIDE, Ladder, apart, ladders, mean

SIMULATION = "SGLANG_SIMULATE_ACC_LEN"


def ceiling(case: Case) -> int | None:
    """Most tokens that a step can commit, as the server says or as any point knows it."""
    if case.setup is not None and case.setup.ceiling is not None:
        return case.setup.ceiling
    return max((point.ceiling for point in case.points if point.ceiling is not None), default=None)


def short_point(case: Case) -> CommitPoint | None:
    """Repeated text at the shortest length that counts; the worst text, where there are several."""
    first = [ladder.points[0] for ladder in ladders(case, *EASY) if ladder.points]
    return min(first, key=lambda p: (mean(p), p.context_tokens, p.arm)) if first else None


def works(case: Case, point: CommitPoint) -> bool | None:
    """Whether this repeated text is drafted well; None where the ceiling is not known."""
    most = thresholds.ceiling_of(point, ceiling(case))
    return None if most is None else mean(point) >= thresholds.works_from(most)


def easy_works(case: Case) -> bool:
    """Repeated text is drafted well at every planned length, and holds to the longest."""
    easy, wide = ladders(case, *EASY), ladders(case, WIDE)
    return (
        bool(easy)
        and all(ladder.whole and ladder.level for ladder in (*easy, *wide))
        and all(works(case, point) is True for ladder in easy for point in ladder.points)
    )


@dataclass(frozen=True, slots=True)
class Control:
    """Prose: the same hard text at every length."""

    ladder: Ladder | None
    ceiling: int | None
    easy: Ladder | None

    @property
    def whole(self) -> bool:
        return self.ladder is not None and self.ladder.whole

    @property
    def ends(self) -> tuple[CommitPoint, CommitPoint] | None:
        """The shortest and the longest length; None with fewer than two."""
        if self.ladder is None or len(self.ladder.points) < 2:
            return None
        return self.ladder.points[0], self.ladder.points[-1]

    @property
    def kept(self) -> bool:
        """Prose commits at the longest length what it does at the shortest, as far as the samples tell."""
        if self.ends is None:
            return True
        short, long = self.ends
        return mean(long) >= thresholds.SAME * mean(short) or not apart(short, long)

    def hard(self, point: CommitPoint) -> bool:
        """Prose is hard for this drafter at this length: little in itself, and little beside repeated text."""
        return _little(point) and self._little_beside(point) is True

    def fine(self, point: CommitPoint) -> bool:
        """It is not hard there. Little in itself, and nothing to hold it against: neither hard nor fine."""
        return not _little(point) or self._little_beside(point) is False

    def _little_beside(self, point: CommitPoint) -> bool | None:
        beside = self.easy.at(point.context_tokens) if self.easy is not None else None
        return None if beside is None else mean(point) < thresholds.HARD_SHARE * mean(beside)


def _little(point: CommitPoint) -> bool:
    low = point.commit_low if point.commit_low is not None else mean(point)
    return low <= thresholds.HARD


def control(case: Case) -> Control:
    prose = ladders(case, PROSE)
    easy = ladders(case, *EASY)
    return Control(
        ladder=next(iter(prose), None),
        ceiling=ceiling(case),
        easy=next((ladder for ladder in easy if ladder.points), None),
    )


def looks_up(case: Case) -> bool:
    """The drafter looks repeated text up, by the server's own word: easy text says nothing of it."""
    return case.setup is not None and case.setup.drafter == "lookup"


# --- what stands in the way -------------------------------------------------------------------------------


def drifted(case: Case) -> str:
    """In words, that the first point gave another commit at the end; empty when it did not, or was not repeated."""
    check = case.check("first-again")
    if check is None or check.agrees is not False:
        return ""
    first, again = case.first, case.again
    if first is not None and again is not None and None not in (first.commit_mean, again.commit_mean):
        low, high = sorted((first, again), key=mean)
        if not apart(high, low) and mean(low) >= (1 - thresholds.DRIFT) * mean(high):
            return ""
    return check.text


def certainty(case: Case) -> str:
    """The confidence that the controls of the run allow: high only when each was made and agrees."""
    made = [case.check(name) for name in ("first-again", "cold-cached")]
    agreed = all(check is not None and check.agrees is True for check in made)
    return "high" if agreed and not any(check.agrees is False for check in case.checks) else "medium"


def controls_missing(case: Case) -> tuple[str, ...]:
    """Controls that were not made, or could not be told."""
    wanted = {
        "first-again": "the first point once more at the end (does a state change on the way?)",
        "cold-cached": "the same prompt cold and from the prefix cache (does the cache change the answer?)",
    }
    checks = {name: case.check(name) for name in wanted}
    return tuple(text for name, text in wanted.items() if (c := checks[name]) is None or c.agrees is None)


def drafted_nothing(case: Case) -> bool:
    """Every measured step of every point had no draft. False where a source does not say."""
    measured = [point for point in case.points if point.steps]
    return bool(measured) and all(point.drafted_steps == 0 for point in measured)


def simulates(case: Case) -> tuple[str, str]:
    """The setting that forges acceptance and its value; two empty texts where none is seen."""
    for process in case.processes:
        value = dict(process.environment).get(SIMULATION, "")
        if case.server in ("", process.name) and _positive(value):
            return SIMULATION, value
    asked = case.argument("spec_synth_len")
    return ("--spec-synth-len", str(asked)) if _positive(asked) else ("", "")


def _positive(value: object) -> bool:
    try:
        return float(str(value)) > 0
    except ValueError:
        return False


def no_simulation_seen(case: Case) -> bool:
    return bool(case.found(Outcome.PASS, "EN01"))
