"""Did the machine itself change while it was measured?"""

from __future__ import annotations

from ddprobe.facts import CommitPoint
from ddprobe.model import Verdict
from ddprobe.verdicts import standing, thresholds, words
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.ruling import Ruling


def judge(case: Case) -> Ruling | None:
    """The first point, measured again at the end, commits the same and takes another time per step."""
    first, again = case.first, case.again
    if first is None or again is None or first.step_ms is None or again.step_ms is None or not first.step_ms:
        return None
    if standing.drifted(case) or min(first.timed_steps, again.timed_steps) < thresholds.MIN_TIMED_STEPS:
        return None
    moved = again.step_ms / first.step_ms
    if abs(moved - 1) <= thresholds.DRIFT or not _apart(first, again):
        return None
    slower = moved > 1
    check = case.check("first-again")
    return Ruling(
        Verdict(
            name="gpu_state",
            kind="slower" if slower else "faster",
            confidence="medium",
            reasons=(
                f"the same text takes {words.steps_of(first)} at the beginning and {words.steps_of(again)} at the end "
                f"({moved - 1:+.0%}), and commits the same",
            ),
            cites=words.cites(check, first, again),
            ruled_out=("the drafter: what it commits did not change",),
            missing=("the GPU's clocks, power and temperature at both times",),
            next=(
                "ddprobe gpu (clocks and the reasons that hold them down, power limit, other processes)",
                "measure again once the machine is warm and alone: step times of this run cannot be compared",
            ),
        ),
        explains=max(moved, 1 / moved),
    )


def _apart(first: CommitPoint, again: CommitPoint) -> bool:
    """Whether the bulk of the step times does not overlap: a median alone moves on a busy machine."""
    ends = (first.step_ms_low, first.step_ms_high, again.step_ms_low, again.step_ms_high)
    if None in ends:
        return False
    a_low, a_high, b_low, b_high = (end or 0.0 for end in ends)
    return b_low > a_high or a_low > b_high
