"""Did the machine itself change while it was measured?"""

from __future__ import annotations

from collections.abc import Sequence

from ddprobe.facts import CommitPoint, GpuWindow, StepFit
from ddprobe.model import Verdict
from ddprobe.verdicts import growth, standing, thresholds, words
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.ruling import Ruling

HOT = ("sw_thermal_slowdown", "hw_thermal_slowdown")
HELD = (*HOT, "hw_slowdown", "hw_power_brake_slowdown")
"""Reasons that are a fault, or heat."""
CAPPED = ("sw_power_cap",)
"""Ordinary under full load."""


def judge(case: Case) -> Ruling | None:
    """A text that was measured again took another time, the law of a ladder holds only beside a shift in time, or the cards'
    own clocks say that they were held down. Nothing of a server on a CPU: what else runs there moves its steps.
    """
    if growth.on_cpu(case):
        return None
    return _measured_again(case) or _moved(case) or _throttled(case)


def shifted(law: StepFit | None) -> bool:
    """Whether steps moved in time by so much that no slope of this run counts."""
    return law is not None and law.shift is not None and _size(law.shift.value) >= thresholds.DROPPED


def _measured_again(case: Case) -> Ruling | None:
    """The first point, measured again at the end, commits the same and takes another time per step."""
    first, again = case.first, case.again
    if first is None or again is None or first.step_ms is None or again.step_ms is None or not first.step_ms:
        return None
    if standing.drifted(case) or min(first.timed_steps, again.timed_steps) < thresholds.MIN_TIMED_STEPS:
        return None
    if abs(again.step_ms - first.step_ms) <= thresholds.DRIFT * first.step_ms or not _apart(first, again):
        return None
    moved = again.step_ms / first.step_ms
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


def _moved(case: Case) -> Ruling | None:
    """The ladder of step times, beside a shift that its repetitions or the clocks show."""
    law = growth.law(case)
    if law is None or law.shift is None or _size(law.shift.value) < 1 + thresholds.DRIFT:
        return None
    moved, seen = law.shift, _at_work(case)
    slower = moved.value > 1
    clocks = _clocks(seen)
    fell = clocks is not None and clocks[0] < thresholds.CLOCK_FELL * clocks[1]
    why = _reasons(seen)
    ends = (
        f", 95 % {moved.low:.2f}–{moved.high:.2f}" if moved.low is not None and moved.high is not None else ""
    )
    reasons = [
        f"later in the run a step took {moved.value:.2f} times as long as at the same length before ({words.count(law.points, 'median')} at "
        f"{words.count(len(law.contexts), 'length')}{ends})"
    ]
    if clocks is not None and fell:
        reasons.append(
            f"meanwhile the SM clock fell from {clocks[1]:.0f} to {clocks[0]:.0f} MHz ({clocks[0] / clocks[1]:.0%}; "
            f"{words.count(sum(w.samples for w in seen), 'sample')})"
        )
    if why:
        reasons.append(f"the cards name {words.listed(why)} as what held their clocks")
    unplaced = law.remark("shift_unplaced")
    if unplaced:
        reasons.append(unplaced)
    elif shifted(law):
        reasons.append(_beside(law))
    return Ruling(
        Verdict(
            name="gpu_state",
            kind="clock_drop" if fell else "slower" if slower else "faster",
            confidence="high" if fell else "medium",
            reasons=tuple(reasons),
            cites=words.cites(law, *seen),
            missing=() if clocks is not None else ("the GPU's clocks, power and temperature at both times",),
            next=_todo(why),
        ),
        explains=_size(moved.value),
    )


def _beside(law: StepFit) -> str:
    if law.form == "flat":
        return "at one clock the step time does not grow with context: what grows is the time that passed"
    return (
        f"at one clock a step would take {words.short(law.at(law.contexts[0]))} ms at the shortest length and "
        f"{words.short(law.at(law.contexts[-1]))} ms at the longest: to be measured again once the machine is steady"
    )


def _throttled(case: Case) -> Ruling | None:
    """Clocks that were held down by heat or hardware all the time: nothing moved, and everything is slow."""
    seen = _at_work(case)
    why = [name for name in _reasons(seen) if name in HELD]
    held = [w for w in seen if set(w.clock_reasons or ()) & set(HELD)]
    shares = [w.sm_clock_mhz / w.sm_clock_max_mhz for w in held if w.sm_clock_mhz and w.sm_clock_max_mhz]
    if not why or not shares or min(shares) >= thresholds.CLOCK_FELL:
        return None
    samples = sum(w.samples for w in held)
    return Ruling(
        Verdict(
            name="gpu_state",
            kind="throttled",
            confidence="medium",
            reasons=(
                f"{words.listed(why)} held the SM clock at {min(shares):.0%} of its highest while steps were measured "
                f"({words.count(samples, 'sample')} of {words.count(len({w.index for w in held}), 'GPU')})",
            ),
            cites=words.cites(*held),
            missing=("the same step times at full clock: how much of them is the clock's",),
            next=_todo(why),
        ),
        explains=1 / min(shares),
    )


def _at_work(case: Case) -> tuple[GpuWindow, ...]:
    """What was seen of cards on which a kernel ran, or that do not say: what holds an idle one's clock holds no step."""
    return tuple(window for window in growth.windows(case) if window.utilization_high != 0)


def _clocks(seen: Sequence[GpuWindow]) -> tuple[float, float] | None:
    """The lowest and the highest of the medians, of the card that fell most."""
    cards = {
        index: [w.working_clock_mhz for w in seen if w.index == index and w.working_clock_mhz]
        for index in {w.index for w in seen}
    }
    known = [(min(clocks), max(clocks)) for clocks in cards.values() if clocks]
    return min(known, key=lambda ends: ends[0] / ends[1]) if known else None


def _reasons(seen: Sequence[GpuWindow]) -> list[str]:
    return sorted({reason for w in seen for reason in w.clock_reasons or () if reason in (*HELD, *CAPPED)})


def _todo(why: Sequence[str]) -> tuple[str, ...]:
    found = []
    if set(why) & set(HOT):
        found.append("check fans, airflow and the room: heat holds the clock down")
    if set(why) & set(CAPPED):
        found.append(
            "the power limit binds (nvidia-smi -q -d POWER): whoever looks after the host may raise it with -pl"
        )
    return (
        *found,
        "ddprobe gpu (clocks and the reasons that hold them down, power limit, other processes)",
        "measure again once the machine is warm and alone: step times of this run cannot be compared",
    )


def _size(factor: float) -> float:
    """How many times as long, or as short."""
    return max(factor, 1 / factor) if factor > 0 else 1.0


def _apart(first: CommitPoint, again: CommitPoint) -> bool:
    """Whether the bulk of the step times does not overlap: a median alone moves on a busy machine."""
    if first.step_ms_low is None or first.step_ms_high is None:
        return False
    if again.step_ms_low is None or again.step_ms_high is None:
        return False
    return again.step_ms_low > first.step_ms_high or first.step_ms_low > again.step_ms_high
