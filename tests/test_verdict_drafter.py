"""Verdicts on the drafter itself at their limits: dead, half wired, healthy, or a hard text; and how sure each is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ddprobe.facts import CommitPoint, ModelConfig, PlannedPoint, ServerArgs, ServerProcess
from ddprobe.model import Cite, Fact, Finding, Outcome, Verdict
from ddprobe.verdicts import drafter_dead, healthy, standing, text_difficulty
from ddprobe.verdicts.case import Case
from tests.test_verdicts import (
    CONTROLS,
    EASY,
    FAR,
    FINE,
    FULL_LAST,
    HARD,
    LONG,
    MIDDLE,
    NEAR,
    SERVER,
    SHORT,
    check,
    facts,
    judged,
    ladder,
    lint,
    point,
    setup,
)

# --- dead -------------------------------------------------------------------------------------------------


def dead(
    *points: CommitPoint, known: tuple[Fact, ...] = (), findings: tuple[Finding, ...] = ()
) -> Verdict | None:
    ruling = drafter_dead.judge(Case((*points, *known), findings))
    return None if ruling is None else ruling.verdict  # fmt: skip


@pytest.mark.parametrize(
    ("context", "drafted", "is_dead"),
    [(2048, 100, True), (2049, 100, False), (SHORT, 1, True), (SHORT, 0, False), (SHORT, None, True)],
)
def test_dead_is_told_at_2k_or_less_where_something_was_drafted(
    context: int, drafted: int | None, is_dead: bool
) -> None:
    assert (dead(point("repeat", context, 1.0, drafted_steps=drafted)) is not None) is is_dead


@pytest.mark.parametrize(
    ("other", "is_dead"),
    [
        pytest.param(point("prose", SHORT, 1.7, 0.1), False, id="drafted, the whole interval"),
        pytest.param(point("prose", SHORT, 1.7, 0.2), True, id="its interval reaches the limit"),
        pytest.param(replace(point("prose", SHORT, 1.7), commit_low=None), False, id="no interval, and a mean above"),
        pytest.param(replace(point("prose", SHORT, 1.5), commit_low=None), True, id="no interval, and a mean at the limit"),
        pytest.param(point("prose", SHORT, 1.7, 0.1, steps=20), True, id="too few steps to count"),
    ],
)  # fmt: skip
def test_text_that_is_drafted_shows_a_living_drafter(other: CommitPoint, is_dead: bool) -> None:
    assert (dead(point("repeat", SHORT, 1.0), other) is not None) is is_dead


def test_the_best_of_the_others_is_told() -> None:
    verdict = dead(point("repeat", SHORT, 1.0), point("code", SHORT, 1.3), point("prose", SHORT, 1.2))
    assert verdict is not None
    (told,) = [reason for reason in verdict.reasons if reason.startswith("no text does better")]
    assert told.startswith("no text does better: of 2 other points the best is this: code commits 1.30 of 8")
    alone = dead(point("repeat", SHORT, 1.0))
    assert alone is not None
    assert not any("does better" in reason for reason in alone.reasons)


@pytest.mark.parametrize(
    ("shares", "kind", "told"),
    [
        pytest.param(
            (0.0, 0.0), "first_position", "its acceptance is below 3.0%", id="no first draft: 3 / 100 steps"
        ),
        pytest.param(
            (0.34, 0.0, 0.0), "after_first", "the first draft is right in 34%", id="none after the first"
        ),
        pytest.param((0.34, 0.1, 0.0), "", "", id="some second ones"),
        pytest.param((0.34, 0.0, 0.1), "", "", id="some third ones"),
        pytest.param((0.34,), "", "", id="one draft a step"),
        pytest.param(None, "", "", id="not known"),
    ],
)
def test_at_which_position_a_draft_ends(shares: tuple[float, ...] | None, kind: str, told: str) -> None:
    verdict = dead(point("repeat", SHORT, 1.0, per_position=shares))
    assert verdict is not None
    assert verdict.kind == kind
    assert any(told in reason for reason in verdict.reasons)
    assert any("first draft" in reason for reason in verdict.reasons) is bool(kind)


@pytest.mark.parametrize(
    ("config", "findings", "missing"),
    [
        (None, (), "the drafter's config.json"), (None, (lint("DC01"),), "the drafter's config.json"), (FULL_LAST, (), "the cause"),
        (FULL_LAST, (lint("DC01"),), ""), (FULL_LAST, (lint("DC01", Outcome.WARN),), ""),
    ],
)  # fmt: skip
def test_what_is_missing_to_name_the_cause(
    config: ModelConfig | None, findings: tuple[Finding, ...], missing: str
) -> None:
    known = (*CONTROLS, *(() if config is None else (config,)))
    verdict = dead(point("repeat", SHORT, 1.0), known=known, findings=findings)
    assert verdict is not None
    assert len(verdict.missing) == bool(missing)
    assert missing in "".join(verdict.missing)


def test_a_sound_drafter_would_be_this_much_faster() -> None:
    """85 % of a ceiling of 8 are 6.8: against 1.0 that is 6.8 times, against 3.4 twice; unknown without a ceiling."""
    weak = point("repeat", SHORT, 3.4, conditional=(0.7, 0.7))
    for found, ceiling, explains in (
        (point("repeat", SHORT, 1.0), 8, 6.8), (weak, 8, 2.0), (point("repeat", SHORT, 1.0), None, 1.0),
    ):  # fmt: skip
        ruling = drafter_dead.judge(Case((replace(found, ceiling=ceiling),), (lint("DC04"),)))
        assert ruling is not None
        assert ruling.explains == pytest.approx(explains)


def test_a_weak_drafter_without_a_ceiling_is_not_judged() -> None:
    weak = point("repeat", SHORT, 3.4, conditional=(0.7, 0.7), ceiling=None)
    assert dead(weak, findings=(lint("DC04"),)) is None


def test_four_causes_are_named_at_most() -> None:
    causes = tuple(lint(f"DC0{n}") for n in range(1, 7))
    verdict = dead(point("repeat", SHORT, 1.0), findings=causes)
    assert verdict is not None
    assert [reason[:4] for reason in verdict.reasons if reason.startswith("DC")] == [
        "DC01",
        "DC02",
        "DC03",
        "DC04",
    ]


# --- healthy ----------------------------------------------------------------------------------------------


def well(*points: CommitPoint, extra: tuple[Fact, ...] = (), **of_setup: Any) -> Verdict | None:
    ruling = healthy.judge(Case(facts(*points, extra=extra, **of_setup)))
    return None if ruling is None else ruling.verdict


ALL = (*EASY, *NEAR, *FAR, *FINE)


@pytest.mark.parametrize(
    ("points", "of_setup", "confidence"),
    [
        pytest.param(ALL, {}, "high", id="everything"),
        pytest.param(ALL, {"drafter": ""}, "medium", id="nobody knows what drafts"),
        pytest.param((*EASY, *NEAR, *FAR), {}, "medium", id="no prose"),
        pytest.param((*EASY, *NEAR, *FAR), {"drafter": ""}, None, id="no prose, and nobody knows what drafts"),
        pytest.param((*EASY, *FINE), {}, "medium", id="no far copy"),
        pytest.param(EASY, {}, None, id="easy text alone"),
        pytest.param((*EASY, *HARD), {}, None, id="hard prose alone"),
        pytest.param((*EASY, *NEAR, *FAR, *HARD), {}, "medium", id="hard prose, and far copies"),
        pytest.param((*EASY, *NEAR, *FAR, *ladder("prose", 4.0, 3.0, 2.5)), {}, "medium", id="prose that fades, and far copies"),
        pytest.param((*EASY, *ladder("prose", 4.0, 3.0, 2.5)), {}, None, id="prose that fades"),
        pytest.param((*EASY, *NEAR, *ladder("far-copy far", 7.1, 7.0, 1.9), *FINE), {}, None, id="far text is lost"),
        pytest.param((*EASY, *ladder("far-copy far", 7.1, 7.0, 1.9), *FINE), {}, None, id="far text falls, nothing near"),
        pytest.param((*EASY, *FAR, *FINE), {}, "medium", id="far text holds, nothing near"),
        pytest.param((*EASY, *ladder("far-copy near", 7.2, 7.2, 1.9), *FAR, *FINE), {}, None, id="the near one falls"),
        pytest.param((EASY[0], NEAR[0], FAR[0], FINE[0]), {}, "medium", id="one length"),
        pytest.param((*EASY[:2], *NEAR[:2], *FAR[:2], *FINE[:2]), {}, "high", id="two lengths"),
    ],
)  # fmt: skip
def test_what_healthy_needs(
    points: tuple[CommitPoint, ...], of_setup: dict[str, Any], confidence: str | None
) -> None:
    verdict = well(*points, **of_setup)
    assert (verdict.confidence if verdict else None) == confidence


@pytest.mark.parametrize("label", ["far-copy near", "far-copy far"])
def test_a_far_copy_that_was_planned_and_not_measured_might_speak_against_it(label: str) -> None:
    known = setup(ALL)
    known = replace(known, points=(*known.points, PlannedPoint(label, 4096, 4, 1, 1, 1)))
    assert healthy.judge(Case((known, *ALL, *CONTROLS))) is None


def test_healthy_points_without_their_run() -> None:
    ruling = healthy.judge(Case((*ALL, *CONTROLS)))
    assert ruling is not None
    assert (ruling.verdict.confidence, ruling.explains) == ("medium", 1.0)
    assert any("what kind of drafter" in text for text in ruling.verdict.missing)


@pytest.mark.parametrize(("commit", "among"), [(6.8, True), (6.79, False)])
def test_the_better_drafters_reach_85_percent_of_the_ceiling(commit: float, among: bool) -> None:
    verdict = well(*ladder("repeat", 7.9, commit, 7.9), *NEAR, *FAR, *FINE)
    assert verdict is not None
    assert any("is not among them" in reason for reason in verdict.reasons) is not among
    assert verdict.confidence == ("high" if among else "medium")


def test_healthy_tells_the_longest_of_each_text() -> None:
    verdict = well(*ALL)
    assert verdict is not None
    assert [reason.split(" commits")[0] for reason in verdict.reasons[:3]] == [
        "repeat",
        "far-copy far",
        "prose",
    ]
    assert "6.90 of 8" in verdict.reasons[1]
    assert "7.00 of 8" not in verdict.reasons[1]
    assert verdict.reasons[3] == "this holds up to 128k, the longest prompt that was measured"
    assert verdict.cites == (Cite("repeat-1024"), Cite("repeat-131072"), Cite("far-copy far-131072"))


def test_healthy_says_what_it_left_out() -> None:
    left_out = tuple(f"prose at {n}k: too long" for n in range(6))
    verdict = well(*ALL, left_out=left_out)
    assert verdict is not None
    assert verdict.missing == left_out[:4]


def test_one_length_is_told_once() -> None:
    verdict = well(EASY[0], NEAR[0], FAR[0], FINE[0])
    assert verdict is not None
    assert " and " not in verdict.reasons[0]


# --- hard text --------------------------------------------------------------------------------------------


def hard(*points: CommitPoint, controls: tuple[Fact, ...] = CONTROLS, **of_setup: Any) -> Verdict | None:
    ruling = text_difficulty.judge(Case(facts(*points, controls=controls, **of_setup)))
    return None if ruling is None else ruling.verdict


@pytest.mark.parametrize(
    ("points", "is_hard"),
    [
        pytest.param((*EASY, *NEAR, *FAR, *HARD), True, id="easy and far text are drafted, prose is not"),
        pytest.param((*EASY, *NEAR, *HARD), False, id="no far copy"),
        pytest.param((*EASY, *FAR, *HARD), False, id="nothing near beside it"),
        pytest.param((*NEAR, *FAR, *HARD), False, id="no easy text"),
        pytest.param((*ladder("repeat", 4.7, 4.7, 4.7), *NEAR, *FAR, *HARD), False, id="easy text is weak"),
        pytest.param((*EASY, *NEAR, *FAR, *HARD[:1]), False, id="prose at one length"),
        pytest.param((*EASY, *NEAR, *FAR, *HARD[:1], *ladder("prose", 2.5, contexts=(LONG,))), False, id="hard at the shortest only"),
        pytest.param((*EASY, *NEAR, *FAR, *ladder("prose", 2.2, 1.9, 1.9)), False, id="hard at the longest only"),
        pytest.param((*EASY, *NEAR, *FAR, HARD[0], replace(HARD[1], steps=20), HARD[2]), False, id="one length of prose does not count"),
        pytest.param((*EASY, *NEAR, *FAR, *ladder("prose", 2.0, 1.6, 1.4, half=0.05)), False, id="harder and harder"),
        pytest.param((*EASY, *NEAR, *FAR), False, id="no prose"),
    ],
)  # fmt: skip
def test_hard_text_needs_everything_else_to_be_well(points: tuple[CommitPoint, ...], is_hard: bool) -> None:
    assert (hard(*points) is not None) is is_hard


def test_hard_text_is_told_beside_easy_text_of_the_same_length() -> None:
    verdict = hard(*EASY, *NEAR, *FAR, *HARD)
    assert verdict is not None
    assert verdict.reasons[1].startswith("repeat commits 7.80 of 8")
    assert verdict.reasons[2].startswith("far-copy far commits 6.90 of 8")
    assert (verdict.confidence, verdict.missing) == ("high", ())
    ruling = text_difficulty.judge(Case(facts(*EASY, *NEAR, *FAR, *HARD)))
    assert ruling is not None
    assert ruling.explains == pytest.approx(7.8 / 1.6)


def test_hard_text_is_unsure_where_nobody_knows_what_drafts() -> None:
    verdict = hard(*EASY, *NEAR, *FAR, *HARD, drafter="")
    assert verdict is not None
    assert verdict.confidence == "low"
    assert any("what kind of drafter" in text for text in verdict.missing)
    bare = text_difficulty.judge(Case((*EASY, *NEAR, *FAR, *HARD, *CONTROLS)))
    assert bare is not None
    assert bare.verdict.confidence == "low"


# --- what stands in the way -------------------------------------------------------------------------------


def test_what_the_server_says_is_the_ceiling_before_what_points_know() -> None:
    points = (point("repeat", SHORT, 4.0, ceiling=16), point("repeat", LONG, 4.0, ceiling=4))
    assert standing.ceiling(Case((setup(points, ceiling=8), *points))) == 8
    assert standing.ceiling(Case((setup(points, ceiling=None), *points))) == 16
    assert standing.ceiling(Case(points)) == 16
    assert standing.ceiling(Case(())) is None


def test_the_worst_easy_text_at_its_shortest_tells_the_drafter() -> None:
    points = (*EASY, *ladder("repeat-wide", 5.0, 2.0, 1.0), *ladder("repeat-long", 1.0, 1.0, 1.0))
    found = standing.short_point(Case(points))
    assert found is not None
    assert (found.arm, found.context_tokens) == ("repeat-wide", SHORT)
    assert standing.short_point(Case(FINE)) is None


@pytest.mark.parametrize(
    ("points", "works"),
    [
        pytest.param(EASY, True, id="well at each"),
        pytest.param((*EASY, *ladder("repeat-long", 7.9, 7.9, 7.9)), True, id="a long period as well"),
        pytest.param((*EASY, *ladder("repeat-long", 7.9, 7.9, 3.0)), False, id="a long period falls"),
        pytest.param(
            (*EASY, *ladder("repeat-long", 3.0, 3.0, 3.0)),
            True,
            id="a long period is level: that is all it must be",
        ),
        pytest.param((*EASY, *ladder("repeat-wide", 4.7, 4.7, 4.7)), False, id="a wide one is weak"),
        pytest.param(ladder("repeat", 4.9, 4.9, 4.7), False, id="weak at the longest"),
        pytest.param((EASY[0], replace(EASY[1], copied=0.5), EASY[2]), False, id="one length does not count"),
        pytest.param((), False, id="no easy text"),
    ],
)
def test_easy_text_works(points: tuple[CommitPoint, ...], works: bool) -> None:
    assert standing.easy_works(Case(points)) is works


@pytest.mark.parametrize(
    ("first", "cached", "other", "confidence"),
    [
        (True, True, True, "high"), (True, True, None, "high"), (True, True, False, "medium"), (False, True, True, "medium"),
        (True, False, True, "medium"), (None, True, True, "medium"), (True, None, True, "medium"),
    ],
)  # fmt: skip
def test_controls_allow_confidence_when_each_agrees(
    first: bool | None, cached: bool | None, other: bool | None, confidence: str
) -> None:
    made = (check("first-again", first), check("cold-cached", cached), check("same-prompt", other))
    assert standing.certainty(Case(made)) == confidence
    assert standing.certainty(Case(made[1:])) == standing.certainty(Case(made[:1])) == "medium"
    missing = standing.controls_missing(Case(made))
    assert len(missing) == (first is None) + (cached is None)
    assert len(standing.controls_missing(Case(()))) == 2


@pytest.mark.parametrize(
    ("steps", "nothing"),
    [([(100, 0)], True), ([(100, 0), (100, 1)], False), ([(100, 0), (100, None)], False), ([(0, None), (100, 0)], True), ([(0, 0)], False), ([], False)],
)  # fmt: skip
def test_nothing_was_drafted_where_every_step_says_so(
    steps: list[tuple[int, int | None]], nothing: bool
) -> None:
    points = tuple(
        point("repeat", SHORT + n, 1.0, steps=measured, drafted_steps=drafted)
        for n, (measured, drafted) in enumerate(steps)
    )
    assert standing.drafted_nothing(Case(points)) is nothing


@pytest.mark.parametrize(
    ("value", "forged"), [("4", True), ("1", True), ("0.5", True), ("0", False), ("-1", False), ("", False), ("no", False)]
)  # fmt: skip
def test_any_length_above_nought_forges_acceptance(value: str, forged: bool) -> None:
    switch = (("SGLANG_SIMULATE_ACC_LEN", value),)
    process = ServerProcess(engine="sglang", pid=47, argv=("python",), environment=switch)
    assert standing.simulates(Case((process,))) == ((switch[0][0], value) if forged else ("", ""))
    mine, other = Case((setup(()), process)), Case((setup((), server="sglang pid 48"), process))
    assert (bool(standing.simulates(mine)[0]), standing.simulates(other)) == (forged, ("", ""))
    assert process.name == SERVER
    asked = ServerArgs(engine="llamacpp", origin="command line", values=(("spec_synth_len", value),))
    assert bool(standing.simulates(Case((asked,)))[0]) is forged


@pytest.mark.parametrize(
    ("prose", "repeat", "hard_", "fine"),
    [
        pytest.param(2.0, 7.9, True, False, id="little, and far less than repeated text"),
        pytest.param(2.01, 7.9, False, True, id="not little"),
        pytest.param(2.0, 4.0, False, True, id="half of repeated text"),
        pytest.param(2.0, 4.01, True, False, id="less than half"),
        pytest.param(2.0, None, False, False, id="little, and nothing beside it"),
        pytest.param(3.0, None, False, True, id="not little, and nothing beside it"),
    ],
)
def test_prose_is_hard_or_fine_or_neither(
    prose: float, repeat: float | None, hard_: bool, fine: bool
) -> None:
    text = replace(point("prose", SHORT, prose), commit_low=None)
    beside = () if repeat is None else (point("repeat", SHORT, repeat),)
    control = standing.control(Case((text, *beside, point("repeat", MIDDLE, 7.9))))
    assert (control.hard(text), control.fine(text)) == (hard_, fine)


def test_a_point_moved_when_its_mean_or_its_intervals_did() -> None:
    """7.2 of 8.0 is a tenth less; a check that does not agree over less than that is no drift."""
    moved = check("first-again", False, 8.0, 7.2)
    first, again = (
        point("repeat", SHORT, 8.0, 0.5),
        replace(point("repeat", SHORT, 7.2, 0.5), purpose="again"),
    )
    assert standing.drifted(Case((first, again, moved))) == ""
    for changed in (
        replace(again, commit_mean=7.19),
        replace(again, commit_high=7.4),
        replace(again, commit_mean=None),
    ):
        assert standing.drifted(Case((first, changed, moved))) == moved.text
    assert standing.drifted(Case((again, moved))) == moved.text
    assert standing.drifted(Case((replace(first, commit_mean=None), again, moved))) == moved.text
    assert standing.drifted(Case((first, again, check("first-again", None)))) == ""


# --- which verdicts are asked -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("known", "names"),
    [
        pytest.param(facts(*ALL), ["healthy"], id="all is well"),
        pytest.param(facts(*ALL, drafter="lookup"), ["inconclusive"], id="looked up"),
        pytest.param(facts(*ALL, extra=(check("prompt-length", False),)), ["inconclusive"], id="other lengths than asked for"),
        pytest.param(facts(*ALL, extra=(check("prompt-length", None),)), ["healthy"], id="lengths that nobody checked"),
        pytest.param((setup(ALL, planned_only=True), *ALL), [], id="planned only"),
        pytest.param(ALL, [], id="no probe"),
    ],
)  # fmt: skip
def test_texts_and_lengths_are_compared_where_they_can_be(known: tuple[Fact, ...], names: list[str]) -> None:
    assert [verdict.name for verdict in judged(known)] == names


def test_a_sentence_is_said_once() -> None:
    for verdict in judged(facts(*ALL, *ALL)):
        for told in (verdict.reasons, verdict.cites, verdict.ruled_out):
            assert len(told) == len(dict.fromkeys(told))
