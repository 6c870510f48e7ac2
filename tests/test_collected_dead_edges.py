"""A dead drafter by what others measured, at the limits and beside them."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from ddprobe.facts import Acceptance, Claim, DecodeSeries
from ddprobe.model import Fact, Outcome
from tests.collected_facts import (
    BUG,
    DEAD,
    figure,
    of,
    reasons,
    ruling,
    verdict,
)
from tests.test_collected import bins, fail, log, names, point, repeat

# --- dead -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ceiling", "commit", "dead"),
    [
        pytest.param(21, 3.99, True, id="less than 3 of 20 drafts"),
        pytest.param(21, 4.0, False, id="3 of 20 drafts"),
        pytest.param(2, 1.14, True, id="less than 15 % of one draft"),
        pytest.param(2, 1.16, False, id="more than 15 % of one draft"),
        pytest.param(None, 1.5, True, id="1.5 where nobody says of how many"),
        pytest.param(None, 1.51, False, id="more than 1.5 where nobody says of how many"),
        pytest.param(1, 1.0, True, id="of blocks that cannot hold a draft"),
    ],
)
def test_dead_is_a_share_of_the_drafts(ceiling: int | None, commit: float, dead: bool) -> None:
    assert (DEAD in names(*of(ceiling, commit, commit))) is dead


@pytest.mark.parametrize(("commit", "found"), [(4.99, True), (5.0, False)])
def test_half_of_the_drafts_is_not_miswired(commit: float, found: bool) -> None:
    assert (DEAD in names(*of(9, commit, commit), findings=(fail("DC01"),))) is found
    assert DEAD not in names(*of(None, 1.6, 1.6), findings=(fail("DC01"),))


@pytest.mark.parametrize(("other", "found"), [(1.9, True), (2.0, True), (2.01, False), (2.9, False)])
def test_twice_as_much_on_every_other_text_is_no_easy_text(other: float, found: bool) -> None:
    assert (DEAD in names(*repeat(1.0, 1.0, 1.0), point("prose", 1024, other))) is found


def test_a_little_more_on_another_text_is_no_sign_of_life() -> None:
    told = reasons(DEAD, *repeat(1.3, 1.2, 1.1), point("prose", 1024, 1.5), point("prose", 16384, 1.4))
    assert "nor is any other text: prose commits 1.50 of 8 (100 steps) at 1k at best" in told
    assert "at greater lengths it is no better: repeat commits 1.10 of 8 (100 steps) at 64k" in told


def test_one_length_tells_of_no_greater_ones() -> None:
    told = reasons(DEAD, point("repeat", 1024, 1.0))
    assert "at greater lengths" not in told
    assert "nor is any other" not in told
    assert "drafted elsewhere" not in told


def test_an_error_makes_a_working_table_beside_it_a_control() -> None:
    """Of the same text both with and without the fault: the error found tells them apart."""
    facts = (*repeat(1.1, 1.1, 1.1), point("prose", 512, 1.06), point("prose #2", 512, 5.2))
    assert verdict(DEAD, *facts).confidence == "medium"
    assert verdict(DEAD, *facts, findings=(fail("DC17"),)).confidence == "high"
    assert "the same text is drafted elsewhere (prose #2 commits 5.20" in reasons(DEAD, *facts)
    unsized = [dataclasses.replace(fact, steps=0) for fact in facts]
    assert verdict(DEAD, *unsized, findings=(fail("DC17"),)).confidence == "medium"


@pytest.mark.parametrize(("stated", "told"), [(2.0, False), (2.01, True), (2.4, True)])
def test_a_reference_that_works_is_named(stated: float, told: bool) -> None:
    figure = Acceptance(commit=stated, steps=500, origin="another log")
    assert ("a reference does: another log states" in reasons(DEAD, *repeat(1.0, 1.0, 1.0), figure)) is told


def test_the_best_of_several_references_is_named_and_none_that_states_a_rate_only() -> None:
    others = (
        Acceptance(commit=3.0, origin="a"),
        Acceptance(commit=5.0, origin="b"),
        Acceptance(rate=0.9, origin="c"),
    )
    assert "a reference does: b states 5.00" in reasons(DEAD, *repeat(1.0, 1.0, 1.0), *others)


def test_a_reference_is_twice_as_good_at_least() -> None:
    stated = [Acceptance(commit=commit, origin="another log") for commit in (2.8, 2.81)]
    assert "a reference" not in reasons(DEAD, *repeat(1.4, 1.4, 1.4), stated[0])
    assert "a reference" in reasons(DEAD, *repeat(1.4, 1.4, 1.4), stated[1])


def test_what_a_dead_drafter_costs_is_what_a_sound_one_would_commit() -> None:
    """0.85 × 8 = 6.8 tokens a step in place of 1.0; twice, where the block is not known."""
    assert ruling(DEAD, *repeat(1.0, 1.0, 1.0)).explains == pytest.approx(6.8)
    assert ruling(DEAD, *of(None, 1.0, 1.0)).explains == 2.0
    assert ruling(DEAD, log(*bins(1.0, 1.0))).explains == pytest.approx(6.8)
    assert ruling(DEAD, log(*bins(1.0, 1.0), draft_tokens=None)).explains == 2.0


# --- dead, by logs --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("facts", "found"),
    [
        pytest.param((figure(1.05),), True, id="one step in twenty"),
        pytest.param((figure(1.06),), False, id="more than that"),
        pytest.param((figure(1.0, 32),), True, id="32 steps"),
        pytest.param((figure(1.0, 31),), False, id="31 steps"),
        pytest.param((figure(1.0, 16), figure(1.0, 16)), True, id="32 steps in two windows"),
        pytest.param((figure(1.0, None),), False, id="nobody says how many"),
        pytest.param((figure(1.0, 31), figure(1.0, None)), False, id="31 and nobody says how many"),
        pytest.param((figure(1.0, 32), figure(1.0, None)), True, id="32 and nobody says how many"),
        pytest.param((figure(1.1), DecodeSeries(engine="sglang", lines=4)), False, id="and a log that states nothing"),
        pytest.param((figure(1.0), figure(3.0)), False, id="another window does better"),
        pytest.param((log(*bins(1.0, lines=2)),), True, id="two lines"),
        pytest.param((log(*bins(1.0, lines=1)),), False, id="one line"),
        pytest.param((log(*bins(1.0, 1.2, lines=3)),), False, id="mean of 1.1"),
    ],
)  # fmt: skip
def test_nothing_right_in_logs_and_counters(facts: tuple[Fact, ...], found: bool) -> None:
    assert (DEAD in names(*facts)) is found


@pytest.mark.parametrize(("steps", "confidence"), [(63, "low"), (64, "medium")])
def test_few_steps_are_said_with_low_confidence(steps: int, confidence: str) -> None:
    found = verdict(DEAD, figure(1.0, steps))
    assert found.confidence == confidence
    assert ("64 verify steps: here are 63" in found.missing) is (steps == 63)


def jumping(mean: float, best: float) -> Any:
    (bin,) = bins(mean, lines=8)
    return log(dataclasses.replace(bin, commit_high=best))


@pytest.mark.parametrize(
    ("mean", "best", "found"),
    [(1.05, 1.2, True), (1.05, 1.21, False), (1.06, 1.2, False), (1.0, 1.05, True)],
)
def test_a_single_line_may_jump(mean: float, best: float, found: bool) -> None:
    assert (DEAD in names(jumping(mean, best))) is found


def test_a_jump_in_a_counter_is_no_jump_of_a_line() -> None:
    assert DEAD not in names(figure(1.1))
    assert DEAD not in names(jumping(1.0, 1.1), log(*bins(1.5, 1.5), run="b"))


def test_the_mean_of_a_log_is_that_of_its_lines() -> None:
    """15 lines of 1.0 and one of 1.2 are 1.0125; as many of each are 1.1."""
    rare, often = bins(1.0, 1.2, lines=15), bins(1.0, 1.2, lines=8)
    assert DEAD in names(log(rare[0], dataclasses.replace(rare[1], lines=1)))
    assert DEAD not in names(log(*often))


@pytest.mark.parametrize(("commit", "found"), [(3.99, True), (4.0, False)])
def test_a_weak_log_with_an_error_is_below_a_share_of_its_drafts(commit: float, found: bool) -> None:
    """1 + 0.15 × 20 = 4.0."""
    weak = log(*bins(commit, commit), draft_tokens=20)
    assert (DEAD in names(weak, findings=(fail("DC01"),))) is found


def test_an_error_that_explains_nothing_right_makes_it_sure() -> None:
    nothing = log(*bins(1.0, 1.0))
    assert verdict(DEAD, nothing).confidence == "medium"
    assert verdict(DEAD, nothing, findings=(fail("DC28"),)).confidence == "high"
    assert "even hard text gives" in reasons(DEAD, nothing)
    assert "even hard text gives" not in reasons(DEAD, log(*bins(1.3, 1.3)), findings=(fail("DC28"),))
    assert DEAD not in names(log(*bins(1.3, 1.3), draft_tokens=None), findings=(fail("DC28"),))


@pytest.mark.parametrize(("value", "dead"), [(0.9, True), (1.0, False)])
def test_a_stated_depth_of_a_draft_is_no_dead_drafter(value: float, dead: bool) -> None:
    depth = Claim(what="accepted depth", value=value, origin="decode log", run="b")
    assert (DEAD in names(log(*bins(1.0, 1.0)), depth)) is dead
    length = dataclasses.replace(depth, what="accept length")
    assert DEAD in names(log(*bins(1.0, 1.0)), length)


@pytest.mark.parametrize(
    ("shares", "told"),
    [
        ((0.34, 0.0, 0.0), True),
        ((0.34, 0.0), False),
        ((0.34, 0.01, 0.0), False),
        ((0.34, 0.0, 0.01), False),
        ((0.0, 0.0, 0.0), False),
        (None, False),
    ],
)
def test_only_the_first_draft_is_ever_right(shares: tuple[float, ...] | None, told: bool) -> None:
    found = reasons(DEAD, *repeat(1.3, 1.3, 1.3), figure(1.3, per_position=shares))
    assert ("the first draft is right in 34% of the steps" in found) is told
    assert ("no later one ever" in found) is told


def test_what_a_dead_drafter_excludes() -> None:
    assert (
        verdict(DEAD, *repeat(1.0, 1.0, 1.0)).ruled_out[0]
        == "hard text: repeated text is the easiest there is"
    )
    (logged,) = verdict(DEAD, log(*bins(1.0, 1.0))).ruled_out
    assert logged.startswith("switched-off speculation")


# --- what counts as a cause -----------------------------------------------------------------------------


def test_errors_on_length_stand_before_others_where_length_is_the_question() -> None:
    told = verdict(BUG, *repeat(7.9, 7.9, 1.0), findings=(fail("DC01"), fail("DC35"), fail("ST03"))).reasons
    assert told[-3:] == ("DC35: wrong", "ST03: wrong", "DC01: wrong")


def test_a_warning_is_no_cause() -> None:
    warned = dataclasses.replace(fail("DC01"), outcome=Outcome.WARN)
    assert DEAD not in names(*repeat(3.0, 3.0, 3.0), findings=(warned,))


def test_an_error_of_the_server_on_length_is_a_cause_of_a_fall() -> None:
    assert "SA04: wrong" in reasons(BUG, *repeat(7.9, 7.9, 1.0), findings=(fail("SA04"),))
    assert "SA09: wrong" not in reasons(BUG, *repeat(7.9, 7.9, 1.0), findings=(fail("SA09"),))
