"""What the measurements rule out, and by which of them: the second half of every verdict."""

from __future__ import annotations

from ddprobe.verdicts import standing, thresholds, words
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.ladder import EASY, WIDE, ladders, mean
from ddprobe.verdicts.reach import reach


def excluded(case: Case, *but: str) -> tuple[str, ...]:
    """One sentence for each other explanation that the evidence excludes."""
    return tuple(text for name, text in by_name(case).items() if text and name not in but)


def by_name(case: Case) -> dict[str, str]:
    """Each explanation that measurements can exclude, with the sentence that excludes it; empty where they do not."""
    # Easy text says nothing of a drafter that looks text up.
    lookup = standing.looks_up(case)
    return {
        "drafter_dead": "" if lookup else _dead(case),
        "long_context_bug": "" if lookup else _position(case),
        "far_kv": "" if lookup else _far(case),
        "cache_state_bug": _cache(case),
        "gpu_state": _drift(case),
        "metric_inconsistency": _sources(case),
        "simulated_acceptance": "forged acceptance: the server's environment was read, and sets no SGLANG_SIMULATE_ACC_LEN (EN01)"
        if standing.no_simulation_seen(case)
        else "",
    }


def _dead(case: Case) -> str:
    point = standing.short_point(case)
    if point is None or not standing.works(case, point):
        return ""
    return f"a dead drafter: {words.commits([point], standing.ceiling(case))}"


def _position(case: Case) -> str:
    every = ladders(case, *EASY, WIDE)
    found = [ladder for ladder in every if ladder.whole and len(ladder.points) > 1 and ladder.arm in EASY]
    if not found or not all(ladder.level for ladder in every):
        return ""
    first = found[0].points[0]
    if mean(first) <= thresholds.dead_below(standing.ceiling(case)) or standing.works(case, first) is False:
        return ""
    ladder = found[0]
    ends = (ladder.points[0], ladder.points[-1])
    return (
        f"a limit on positions between these lengths: {words.commits(ends, standing.ceiling(case))}, and falls nowhere "
        "between"
    )


def _far(case: Case) -> str:
    found = reach(case)
    if not found.works or found.far is None or found.near is None:
        return ""
    near, far = found.pairs[-1]
    if found.inside(far):
        return ""
    most = standing.ceiling(case)
    return f"lost distant KV: {words.commits([far], most)}; {words.commits([near], most)}"


def _cache(case: Case) -> str:
    check = case.check("cold-cached")
    return f"the prefix cache: {check.text}" if check is not None and check.agrees else ""


def _drift(case: Case) -> str:
    check, time = case.check("first-again"), case.check("step-time-again")
    if check is None or not check.agrees or (time is not None and time.agrees is False):
        return ""
    return f"a state that changes on the way: {check.text}"


def _sources(case: Case) -> str:
    check = case.check("sources")
    if check is not None:
        return f"sources that contradict each other: {check.text}" if check.agrees else ""
    compared = [request for request in case.requests if len(request.accounts) > 1]
    if not compared or any(request.disagreements for request in case.requests):
        return ""
    return (
        f"sources that contradict each other: they agree in each of {words.count(len(compared), 'request')}"
    )
