"""How often is a verdict wrong by chance alone, and how small a fall is found? Drafters thrown with dice, judged as others."""

from __future__ import annotations

import functools
import random
from collections import Counter
from collections.abc import Callable

import pytest

from ddprobe import statistics, verdicts
from ddprobe.facts import CommitCheck, CommitPoint, CommitRequest, CommitSetup, PlannedPoint
from ddprobe.model import Fact
from ddprobe.probes.draft import _points

CONTEXTS = (1024, 16384, 65536, 131072)
CEILING = 8
STEPS = 16
"""Of each of four prompts: the least that a probe sends."""
RUNS = 40


@pytest.fixture(autouse=True)
def _coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "bootstrap", functools.partial(statistics.bootstrap, resamples=300))


def request(draw: random.Random, arm: str, context: int, chance: float, steps: int) -> CommitRequest:
    """Each draft is right with that chance if those before it are; prompts differ a little among themselves."""
    own = min(0.999, max(0.0, chance + draw.gauss(0, 0.005 if chance > 0.8 else 0.02)))
    commits = []
    for _ in range(steps):
        right = 0
        while right < CEILING - 1 and draw.random() < own:
            right += 1
        commits.append(right + 1)
    return CommitRequest(
        key="k",
        purpose="point",
        arm=arm,
        context_tokens=context,
        prompt=0,
        prompt_tokens=context,
        cached_tokens=0,
        num_spec_steps=steps,
        undrafted_steps=0,
        num_accepted_draft_tokens=sum(commits) - steps,
        num_draft_tokens=steps * (CEILING - 1),
        acceptance_histogram=tuple(commits.count(k + 1) for k in range(CEILING)),
        step_commits=tuple(commits),
        copied=None if arm == "prose" else 1.0,
    )


def point(draw: random.Random, arm: str, context: int, chance: float, steps: int = STEPS) -> CommitPoint:
    requests = [request(draw, arm, context, chance, steps) for _ in range(4)]
    return _points.point(requests, ceiling=CEILING, seed=draw.randrange(1 << 30))


Chance = Callable[[str, int], float]


def judged(chance: Chance) -> Counter[str]:
    """What so many probes of this drafter come out as."""
    draw = random.Random(11)
    found: Counter[str] = Counter()
    for _ in range(RUNS):
        points = tuple(
            # The probe asks for as many tokens of prose as of a copy, which makes more steps.
            point(draw, arm, context, chance(arm, context), STEPS * (3 if arm == "prose" else 1))
            for arm in ("repeat", "far-copy near", "far-copy far", "prose")
            for context in CONTEXTS
        )
        setup = CommitSetup(
            engine="sglang",
            base="http://127.0.0.1:30000",
            speculating=True,
            method="DFLASH",
            drafter="model",
            draft_tokens=CEILING - 1,
            ceiling=CEILING,
            window=2048,
            points=tuple(PlannedPoint(p.arm, p.context_tokens, 4, 1, 1, 1) for p in points),
        )
        checks = (
            CommitCheck(name=name, agrees=True, text=name, steps=64)
            for name in ("first-again", "cold-cached")
        )
        known: tuple[Fact, ...] = (setup, *points, *checks)
        found[" and ".join(verdict.name for verdict in verdicts.judge(known, ()))] += 1
    return found


def drafter(easy: float, far: float, prose: float) -> Chance:
    chances = {"repeat": easy, "far-copy near": easy, "far-copy far": far, "prose": prose}
    return lambda arm, _context: chances[arm]


@pytest.mark.parametrize(
    ("drafter_of", "right"),
    [
        pytest.param(drafter(0.97, 0.96, 0.65), "healthy", id="prose commits 2.8"),
        pytest.param(drafter(0.97, 0.96, 0.35), "text_difficulty", id="prose commits 1.5"),
        pytest.param(drafter(0.97, 0.96, 0.10), "text_difficulty", id="prose commits 1.1"),
        pytest.param(drafter(0.90, 0.88, 0.35), "text_difficulty", id="far copies a little weaker"),
    ],
)
def test_nothing_is_broken_and_nothing_is_said_to_be(drafter_of: Chance, right: str) -> None:
    found = judged(drafter_of)
    wrong = RUNS - found[right] - found["inconclusive"]
    assert wrong <= RUNS // 40, found
    assert found[right] >= 0.8 * RUNS, found


def test_a_fall_by_half_is_found_in_every_run() -> None:
    """Repeated text commits 7.2 up to 16k and 3.6 from 64k on: 16 steps of four prompts tell them apart."""

    def halved(arm: str, context: int) -> float:
        if arm == "prose":
            return 0.35
        return 0.97 if context < 65536 else 0.75

    assert judged(halved) == {"long_context_bug": RUNS}


def test_far_text_that_falls_by_half_is_found_in_every_run() -> None:
    def lost(arm: str, context: int) -> float:
        if arm == "prose":
            return 0.35
        return 0.75 if arm == "far-copy far" and context > 2048 else 0.97

    assert judged(lost) == {"long_context_bug": RUNS}


def test_prose_that_fades_is_called_so() -> None:
    """2.45 down to 1.66 while copies hold."""

    def fading(arm: str, context: int) -> float:
        return 0.6 - 0.2 * CONTEXTS.index(context) / 3 if arm == "prose" else 0.97

    found = judged(fading)
    assert found["long_context_decay"] >= 0.9 * RUNS, found
    assert not [name for name in found if "bug" in name or "dead" in name]


@pytest.mark.parametrize(("chance", "truth"), [(0.1, 1.11), (0.3, 1.4285), (0.6, 2.458), (0.9, 5.695)])
def test_nineteen_intervals_in_twenty_hold_the_truth(chance: float, truth: float) -> None:
    """1 + p + p² + … + p⁷, the scatter between prompts aside, which the interval allows for."""
    draw = random.Random(7)
    points = [point(draw, "prose", 1024, chance) for _ in range(200)]
    held = sum((p.commit_low or 0) <= truth <= (p.commit_high or 0) for p in points)
    assert held / len(points) >= 0.9
