"""What an inconclusive verdict says: what stands in the way, what is missing, and the command that would settle it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ddprobe.facts import CommitPoint, CommitRequest
from ddprobe.model import Fact, Verdict
from ddprobe.verdicts import inconclusive
from ddprobe.verdicts.case import Case
from tests.test_verdicts import (
    CONTROLS,
    EASY,
    FAR,
    FINE,
    HARD,
    LONG,
    MIDDLE,
    NEAR,
    SHORT,
    check,
    facts,
    ladder,
    point,
    setup,
)


def told(*points: CommitPoint, extra: tuple[Fact, ...] = (), **of_setup: Any) -> Verdict:
    return inconclusive.judge(Case(facts(*points, extra=extra, **of_setup))).verdict


def says(verdict: Verdict, text: str) -> bool:
    return any(text in reason for reason in verdict.reasons)


def lacks(verdict: Verdict, text: str) -> bool:
    return any(text in missing for missing in verdict.missing)


# --- nothing measured -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("speculating", "said"), [(False, True), (True, False), (None, False)])
def test_a_server_that_does_not_speculate_is_named_where_nothing_was_measured(
    speculating: bool | None, said: bool
) -> None:
    verdict = told(point("repeat", SHORT, None), speculating=speculating)
    assert verdict.kind == "no_measurement"
    assert says(verdict, "it does not speculate") is said


def test_what_failed_is_told_three_times_at_most() -> None:
    failed = tuple(
        CommitRequest(
            key=f"{n}", purpose="point", arm="repeat", context_tokens=SHORT, prompt=n, error=f"HTTP 50{n}"
        )
        for n in range(4)
    )
    sound = replace(failed[0], key="s", error="")
    verdict = inconclusive.judge(Case((*failed, sound))).verdict
    assert verdict.reasons == ("no request gave a measurement", "HTTP 500", "HTTP 501", "HTTP 502")
    assert "--arms repeat,far-copy,prose" in verdict.next[1]
    asked = inconclusive.judge(Case((setup((), arms=("code",)), *failed))).verdict
    assert "--arms code" in asked.next[1]


# --- a state, lengths, looking up -------------------------------------------------------------------------


@pytest.mark.parametrize(("drafter", "memory"), [("lookup", True), ("model", False)])
def test_a_lookup_keeps_a_memory(drafter: str, memory: bool) -> None:
    moved = check("first-again", False, 7.9, 1.0)
    verdict = told(*EASY, extra=(moved,), drafter=drafter)
    assert verdict.kind == "state_effect"
    assert says(verdict, "keeps a memory of earlier requests") is memory
    assert verdict.next[0].endswith("--contexts 1k --arms repeat")


def test_a_state_is_measured_at_the_shortest_length_there_is() -> None:
    moved = check("first-again", False, 7.9, 1.0)
    assert "--contexts 16k " in told(*EASY[1:], point("verbatim", 0, 7.9), extra=(moved,)).next[0]
    assert "--contexts" not in told(point("verbatim", 0, 7.9), extra=(moved,)).next[0]


@pytest.mark.parametrize(("agrees", "kind"), [(False, "prompt_length"), (True, ""), (None, "")])
def test_lengths_that_are_not_what_was_asked_for(agrees: bool | None, kind: str) -> None:
    assert told(*EASY, extra=(check("prompt-length", agrees),)).kind == kind


@pytest.mark.parametrize(
    ("drafted", "kind", "arms"), [(0, "nothing_to_look_up", "repeat-long"), (100, "lookup", "prose,code")]
)
def test_looking_up_asks_for_a_text_it_can_or_cannot_find(drafted: int, kind: str, arms: str) -> None:
    verdict = told(*ladder("repeat", 1.0, 1.0, 1.0, drafted_steps=drafted), drafter="lookup", method="")
    assert verdict.kind == kind
    assert verdict.next[0].endswith(f"--arms {arms}")
    assert says(verdict, "it found nothing to draft") is (drafted == 0)
    assert says(verdict, "the drafter looks repeated text up")
    assert says(told(*EASY, drafter="lookup", method="NGRAM"), "the drafter NGRAM looks")


# --- weak -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("points", "kind", "said"),
    [
        pytest.param((point("repeat", LONG, 1.5, 0.0),), "", "no short prompt was measured", id="at the limit of the dead"),
        pytest.param((point("repeat", LONG, 1.51, 0.0),), "weak_drafter", "alive, and below 4.80", id="beyond it"),
        pytest.param((point("repeat", LONG, 4.79),), "weak_drafter", "alive, and below 4.80", id="just too weak"),
        pytest.param((point("repeat", LONG, 4.8),), "", "never leaves a drafter's window", id="good enough"),
        pytest.param((point("repeat", LONG, 1.0, drafted_steps=0),), "", "nothing was drafted for it", id="not drafted"),
        pytest.param((point("repeat", LONG, 1.0, drafted_steps=1),), "", "no short prompt was measured", id="one step drafted"),
        pytest.param((point("repeat", LONG, 1.0), point("code", SHORT, 1.6), point("prose", SHORT, 3.0)), "", "would be dead, but prose commits 3.00", id="other text is drafted"),
        pytest.param((point("repeat", LONG, 1.5, 0.0), point("code", SHORT, 1.5, 0.0)), "", "no short prompt was measured", id="other text is as dead"),
    ],
)  # fmt: skip
def test_what_repeated_text_says_between_dead_and_well(
    points: tuple[CommitPoint, ...], kind: str, said: str
) -> None:
    verdict = told(*points)
    assert verdict.kind == kind
    assert says(verdict, said)
    short = "dead" in said or "short" in said or "nothing was" in said
    assert lacks(verdict, "repeated text at 2048 tokens or fewer") is short
    if short:
        assert verdict.next == ("ddprobe commit-probe --contexts 512,1k --arms repeat,repeat-wide,code",)


@pytest.mark.parametrize(
    ("curve", "told_"),
    [((0.7, 0.68, None, 0.72), "right: 0.70 0.68 0.72"), (None, ""), ((None,), "")],
)
def test_a_weak_drafter_shows_its_curve(curve: tuple[float | None, ...] | None, told_: str) -> None:
    verdict = told(point("repeat", SHORT, 3.0, conditional=curve))
    assert says(verdict, "acceptance of each position") is bool(told_)
    assert says(verdict, told_)


# --- what is missing --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("points", "of_setup", "text", "missing"),
    [
        pytest.param(EASY, {}, "how many tokens a step drafts", False, id="the ceiling is known"),
        pytest.param(tuple(replace(p, ceiling=None) for p in EASY), {"ceiling": None}, "how many tokens a step drafts", True, id="it is not"),
        pytest.param(EASY, {}, "repeated text (arm repeat)", False, id="repeated text was measured"),
        pytest.param(FINE, {}, "repeated text (arm repeat)", True, id="it was not"),
        pytest.param(tuple(replace(p, steps=20) for p in EASY), {}, "repeated text (arm repeat)", True, id="it does not count"),
        pytest.param((*EASY, *NEAR, *FAR), {}, "a far copy that counts", False, id="far copies work"),
        pytest.param((*EASY, *NEAR), {}, "a far copy that counts", True, id="they do not"),
        pytest.param((*EASY, *FINE), {}, "the same prose at two lengths", False, id="prose"),
        pytest.param((*EASY, FINE[0]), {}, "the same prose at two lengths", True, id="prose at one length"),
        pytest.param((*EASY, *FINE[:2], replace(FINE[2], steps=20)), {}, "the same prose at two lengths", True, id="one of three does not count"),
        pytest.param(EASY, {"drafter": ""}, "what kind of drafter", True, id="nobody knows what drafts"),
        pytest.param(EASY, {}, "what kind of drafter", False, id="a model"),
        pytest.param(EASY, {"speculating": None}, "whether the server speculates", False, id="drafts are counted"),
        pytest.param(tuple(replace(p, drafted_steps=None) for p in EASY), {"speculating": None}, "whether the server speculates", True, id="nobody counts them"),
        pytest.param(tuple(replace(p, drafted_steps=None) for p in EASY), {}, "whether the server speculates", False, id="the server says that it does"),
        pytest.param((EASY[0], *(replace(p, drafted_steps=None) for p in EASY[1:])), {"speculating": None}, "whether the server speculates", False, id="one point counts them"),
    ],
)  # fmt: skip
def test_what_is_missing_for_more(
    points: tuple[CommitPoint, ...], of_setup: dict[str, Any], text: str, missing: bool
) -> None:
    assert lacks(told(*points, **of_setup), text) is missing


def test_points_without_their_run_ask_for_everything() -> None:
    verdict = inconclusive.judge(Case(EASY)).verdict
    assert not lacks(verdict, "what kind of drafter")
    assert not lacks(verdict, "whether the server speculates")
    assert len([text for text in verdict.missing if "first point once more" in text]) == 1
    assert inconclusive.judge(Case((*EASY, check("first-again", False, 7.9, 1.0)))).verdict.kind == ""


@pytest.mark.parametrize(
    ("points", "said"),
    [(EASY, True), (ladder("repeat-long", 7.9, 7.9, 7.8), True), ((*EASY, *NEAR), False), (FINE, False)],
)
def test_text_repeated_nearby_says_nothing_of_long_contexts(
    points: tuple[CommitPoint, ...], said: bool
) -> None:
    assert says(told(*points), "never leaves a drafter's window") is said


@pytest.mark.parametrize(
    ("points", "command"),
    [
        pytest.param((*EASY, *NEAR, *FAR), "--arms prose", id="prose is wanting"),
        pytest.param((*EASY, *FINE), "--arms far-copy", id="far copies are"),
        pytest.param(HARD, "--arms repeat,far-copy", id="easy ones are"),
        pytest.param((*EASY, *NEAR, *FAR, *FINE), "--arms code,repeat", id="nothing is: what the run had"),
    ],
)
def test_the_next_command_measures_what_is_wanting(points: tuple[CommitPoint, ...], command: str) -> None:
    assert told(*points, arms=("code", "repeat")).next[0].endswith(command)


@pytest.mark.parametrize(("steps", "option"), [(64, ""), (63, " --steps 64"), (100, "")])
def test_too_few_steps_ask_for_64(steps: int, option: str) -> None:
    (command,) = told(replace(EASY[0], steps=steps), *EASY[1:]).next
    assert command.partition(" --steps")[1:] == (((" --steps"), " 64") if option else ("", ""))


def test_a_failed_point_has_no_steps_to_add_to() -> None:
    (command,) = told(*EASY, replace(point("prose", SHORT, None), steps=0)).next
    assert "--steps" not in command


@pytest.mark.parametrize(("steps", "asked"), [(100, 400), (64, 256), (200, 800)])
def test_intervals_that_meet_ask_for_four_times_the_steps(steps: int, asked: int) -> None:
    wide = ladder("repeat", 7.9, 7.9, 5.0, half=3.0, steps=steps)
    (command,) = told(*wide, *NEAR, *FAR, *FINE).next
    assert command.endswith(f"--arms repeat --steps {asked}")
    assert lacks(told(*wide), "more steps: the intervals")


# --- what falls, and is no limit --------------------------------------------------------------------------


def test_a_dip_is_told_with_where_it_is_made_good() -> None:
    verdict = told(*ladder("repeat", 7.9, 2.0, 7.8))
    assert says(verdict, "repeat commits 2.00 of 8")
    assert says(verdict, "all is well again is no limit on length")
    assert not says(told(*ladder("repeat", 7.9, 7.9, 2.0)), "well again")


@pytest.mark.parametrize(
    ("near", "far", "window", "said"),
    [
        pytest.param((7.2, 7.2, 7.2), (7.1, 2.0, 6.9), 2048, "at a greater length both are alike again", id="lost in between"),
        pytest.param((7.2, 7.2, 7.2), (2.0, 7.0, 6.9), 2048, "weaker than the near copy even where it lies close", id="lost within the window"),
        pytest.param((7.2, 7.2, 7.2), (2.0, 2.1, 2.2), None, "far-copy far commits 2.00", id="lost everywhere, no window known"),
        pytest.param((7.2,), (2.0,), None, "weaker than the near copy", id="at the one length there is"),
    ],
)  # fmt: skip
def test_a_far_copy_that_is_lost_for_another_reason(
    near: tuple[float, ...], far: tuple[float, ...], window: int | None, said: str
) -> None:
    places = (SHORT, MIDDLE, LONG)[: len(near)]
    points = (
        *ladder("far-copy near", *near, contexts=places),
        *ladder("far-copy far", *far, contexts=places),
    )
    assert says(told(*points, window=window), said)


@pytest.mark.parametrize(
    ("far", "window"),
    [((7.1, 7.0, 6.9), 2048), ((7.1, 2.0, 1.9), 2048), ((7.1, 2.0, 1.9), None), ((2.0, 2.0, 2.0), 512)],
)
def test_a_far_copy_that_is_well_or_lost_beyond_the_window_is_no_contradiction(
    far: tuple[float, ...], window: int | None
) -> None:
    points = (*NEAR, *ladder("far-copy far", *far))
    assert not says(told(*points, window=window), "distance is not why")
    assert not says(told(*NEAR, window=window), "distance is not why")


def test_the_shortest_of_several_weak_lengths_is_shown() -> None:
    points = (*NEAR, *ladder("far-copy far", 2.0, 2.1, 2.2))
    (text,) = [
        reason for reason in told(*points, window=None).reasons if "even where it lies close" in reason
    ]
    assert text.startswith("far-copy far commits 2.00")
    (text,) = [
        reason for reason in told(*points, window=MIDDLE).reasons if "even where it lies close" in reason
    ]
    assert text.startswith("far-copy far commits 2.00")
    dips = (*ladder("far-copy near", *(7.2,) * 4, contexts=(SHORT, 4096, MIDDLE, LONG)),
            *ladder("far-copy far", 7.1, 2.0, 2.1, 7.0, contexts=(SHORT, 4096, MIDDLE, LONG)))  # fmt: skip
    (text,) = [reason for reason in told(*dips).reasons if "alike again" in reason]
    assert text.startswith("far-copy far commits 2.00")


def test_each_text_is_told_from_end_to_end() -> None:
    verdict = told(*EASY, FINE[0])
    assert verdict.reasons[0].startswith("prose commits 2.90 of 8")
    assert " and " not in verdict.reasons[0]
    assert "at 1k and 7.80 of 8" in verdict.reasons[1]


def test_a_person_reads_eight_sentences_at_most() -> None:
    texts = tuple(point(f"text {n:02}", SHORT, 2.0 + n / 10) for n in range(12))
    verdict = told(*texts)
    assert len(verdict.reasons) == 8
    assert len(told(*texts[:5]).reasons) == 5
    refused = tuple(replace(p, steps=20) for p in texts)
    assert len(told(*refused).missing) == 8


def test_controls_that_were_not_made_are_missing() -> None:
    assert not lacks(told(*EASY), "first point once more")
    bare = inconclusive.judge(Case(facts(*EASY, controls=CONTROLS[1:]))).verdict
    assert lacks(bare, "first point once more")
