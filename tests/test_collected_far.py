"""A far copy by what others measured: when it is lost, when that is by design, and what is said where it holds."""

from __future__ import annotations

import pytest

from ddprobe.facts import CommitPoint
from ddprobe.model import Finding, Outcome
from ddprobe.verdicts import hypotheses
from ddprobe.verdicts.case import Case
from tests.collected_facts import BUG, DECAY, TEXT, drafter, reasons, verdict
from tests.test_collected import judged, names, point, repeat

CONTEXTS = (1024, 16384, 65536)


def far(*commits: float, near: bool = False, **other: int) -> tuple[CommitPoint, ...]:
    label = "far-copy near" if near else "far-copy"
    return tuple(point(label, c, commit, **other) for c, commit in zip(CONTEXTS, commits, strict=False))


EASY = repeat(7.9, 7.9, 7.8)
SLIDING = drafter(layer_types=("sliding_attention",) * 5)
MIXED = drafter(layer_types=("sliding_attention", "full_attention"))
TRIMS = Finding(
    id="SA04", outcome=Outcome.WARN, subject="launch", summary="a window trims all layers", advice="drop it"
)


def test_what_stands_far_back_is_lost() -> None:
    found = verdict(BUG, *EASY, *far(6.9, 2.0, 1.9), MIXED)
    assert (found.kind, found.confidence) == ("far_kv", "medium")
    assert found.reasons[0] == "far-copy commits 6.90 of 8 (100 steps) at 1k and 1.90 of 8 (100 steps) at 64k"
    assert found.missing == ("the near copy at the same length (arm far-copy near)",)
    assert "healthy" not in names(*EASY, *far(6.9, 2.0, 1.9))


@pytest.mark.parametrize(
    ("commits", "lost"),
    [
        # Of 5.9 beyond the first, half is 2.95.
        ((6.9, 6.9, 3.94), True),
        ((6.9, 6.9, 3.95), False),
        ((6.9, 1.9, 6.8), False),
        ((1.9, 1.9, 1.0), False),
        ((6.9,), False),
    ],
    ids=["less than half", "half", "as good again at a greater length", "weak from the start", "one length"],
)
def test_when_it_is_lost(commits: tuple[float, ...], lost: bool) -> None:
    assert (BUG in names(*EASY, *far(*commits))) is lost


def test_a_near_copy_at_the_same_length_is_what_it_is_held_against() -> None:
    facts = (*EASY, *far(6.9, 6.9, 1.9), *far(6.9, 6.9, 6.5, near=True))
    assert "far-copy near commits 6.50 of 8 (100 steps) at 64k" in reasons(BUG, *facts)
    # The near copy is as weak there: distance is not why.
    assert BUG not in names(*EASY, *far(6.9, 6.9, 1.9), *far(6.9, 6.9, 2.5, near=True))


def test_repeated_text_that_falls_too_is_no_matter_of_distance() -> None:
    found = verdict(BUG, *repeat(7.9, 7.9, 1.0), *far(6.9, 2.0, 1.9))
    assert found.kind != "far_kv"


def test_a_drafter_that_sees_its_window_only() -> None:
    found = verdict(DECAY, *EASY, *far(6.9, 2.0, 1.9), SLIDING)
    assert found.kind == "window_by_design"
    assert "all 5 layers of the drafter slide" in found.reasons[-1]
    assert BUG not in names(*EASY, *far(6.9, 2.0, 1.9), SLIDING)


def test_a_launch_argument_that_trims_the_full_layer() -> None:
    found = verdict(DECAY, *EASY, *far(6.9, 2.0, 1.9), MIXED, findings=(TRIMS,))
    assert found.kind == "window_by_design"
    assert found.next[0] == "drop it"
    assert not any("full-attention layer would" in text for text in found.next)


@pytest.mark.parametrize(
    ("steps", "confidence"), [(100, "medium"), (15, "low"), (16, "medium")], ids=["many", "few", "enough"]
)
def test_few_steps_are_less_sure(steps: int, confidence: str) -> None:
    assert verdict(BUG, *EASY, *far(6.9, 2.0, 1.9, steps=steps)).confidence == confidence


def test_without_repeated_text_it_is_told_all_the_same() -> None:
    found = verdict(BUG, *far(6.9, 2.0, 1.9))
    assert found.kind == "far_kv"
    assert len(found.reasons) == 2


@pytest.mark.parametrize(
    ("easy", "found"),
    [((7.9, 7.9, 7.8), True), ((4.4, 4.4, 4.4), False), ((7.9, 7.9, 7.0), False)],
    ids=["works and is level", "level and weak", "works and falls a little"],
)
def test_repeated_text_must_hold_for_distance_to_be_why(easy: tuple[float, ...], found: bool) -> None:
    kinds = [verdict.kind for verdict in judged(*repeat(*easy), *far(6.9, 2.0, 1.9))]
    assert ("far_kv" in kinds) is found


@pytest.mark.parametrize(
    ("first", "ceiling", "lost"),
    [
        # Half of the drafts of 8: 1 + 0.5 × 7.
        (4.5, 8, True),
        (4.49, 8, False),
        # Where nobody knows how many are drafted, more than 1.5 is alive.
        (1.51, None, True),
        (1.5, None, False),
    ],
)
def test_the_far_copy_must_be_alive_where_it_is_near(first: float, ceiling: int | None, lost: bool) -> None:
    points = (point("far-copy", 1024, first, ceiling=ceiling), point("far-copy", 65536, 1.1, ceiling=ceiling))
    assert (BUG in names(*points)) is lost


def test_which_near_copy_is_held_against_it() -> None:
    """The near copy of another length is none, and then the far copy's own beginning is."""
    other = (point("far-copy near", 16384, 6.5),)
    found = verdict(BUG, *EASY, *far(6.9, 6.9, 1.9), *other)
    assert found.reasons[0].startswith("far-copy commits 6.90 of 8 (100 steps) at 1k and 1.90")
    assert "the near copy at the same length (arm far-copy near)" in found.missing
    beside = verdict(BUG, *EASY, *far(6.9, 6.9, 1.9), *far(6.9, 6.9, 6.5, near=True), MIXED)
    assert beside.missing == ()


@pytest.mark.parametrize(("commits", "holds"), [((6.9,), False), ((6.9, 6.8), True), ((6.9, 6.0), False)])
def test_a_far_copy_holds_at_two_lengths_at_least(commits: tuple[float, ...], holds: bool) -> None:
    healthy = verdict("healthy", *EASY, *far(*commits))
    assert any("is seen" in reason for reason in healthy.reasons) is holds


# --- where it holds ----------------------------------------------------------------------------------------


def test_a_far_copy_that_holds_is_not_asked_for() -> None:
    healthy = verdict("healthy", *EASY, *far(6.9, 6.8, 6.7))
    assert healthy.reasons[1] == "far-copy commits 6.70 of 8 (100 steps) at 64k: what stands far back is seen"
    assert not any("far copy" in text for text in healthy.missing)
    assert any("far copy" in text for text in verdict("healthy", *EASY).missing)
    hard = (point("prose", 1024, 1.8), point("prose", 65536, 1.8))
    assert not any("far copy" in text for text in verdict(TEXT, *EASY, *hard, *far(6.9, 6.8, 6.7)).missing)


def test_the_drafter_at_long_context_is_refuted_by_it() -> None:
    def told(*facts: CommitPoint) -> tuple[str, str]:
        ledger = hypotheses.ledger(Case(facts, ()), judged(*facts))
        (one,) = [h for h in ledger if h.name == "drafter_long_context"]
        return one.status, one.evidence

    status, why = told(*EASY, *far(6.9, 6.8, 6.7))
    assert status == hypotheses.REFUTED
    assert why.endswith("far-copy commits 6.70 of 8 (100 steps) at 64k: from afar as well")
    assert told(*EASY)[0] == hypotheses.UNTESTED


# --- prose that fades --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("commits", "edge"), [((3.9, 1.3, 1.2), True), ((3.9, 3.4, 2.9), False)], ids=["in one step", "evenly"]
)
def test_most_of_a_loss_in_one_step_is_an_edge_that_is_not_resolved(
    commits: tuple[float, ...], edge: bool
) -> None:
    prose = tuple(point("prose", c, commit) for c, commit in zip(CONTEXTS, commits, strict=True))
    found = verdict(DECAY, *EASY, *prose)
    assert any("in one step" in text for text in found.missing) is edge
    assert (found.confidence == "low") is edge
