"""Verdicts on length at their limits: where an edge lies, which limit explains it, and how sure that is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ddprobe.facts import CommitPoint, CommitRequest, Limit, ModelConfig, PlannedPoint
from ddprobe.model import Fact, Finding, Outcome, Verdict
from ddprobe.verdicts import long_context_bug, long_context_decay, words
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.ladder import ladders
from tests.test_verdicts import (
    CONTROLS,
    EASY,
    FAR,
    FINE,
    FULL_LAST,
    LONG,
    MIDDLE,
    NEAR,
    SHORT,
    check,
    facts,
    ladder,
    lint,
    setup,
)

POSITIONS, WINDOW, CHUNK = "rope_position", "sliding_window_kv", "chunk_boundary"


def bug(
    points: tuple[CommitPoint, ...],
    *known: Fact,
    findings: tuple[Finding, ...] = (),
    controls: bool = True,
    **of_setup: Any,
) -> Verdict | None:
    made = CONTROLS if controls else ()
    of_setup = {"window": None, **of_setup}
    ruling = long_context_bug.judge(Case((setup(points, **of_setup), *points, *made, *known), findings))
    return None if ruling is None else ruling.verdict  # fmt: skip


def found(*args: Any, **more: Any) -> Verdict:
    verdict = bug(*args, **more)
    assert verdict is not None
    return verdict


def edge(good: int = MIDDLE, bad: int = LONG, low: float = 1.0) -> tuple[CommitPoint, ...]:
    """All is well up to `good`, and nothing from `bad` on."""
    return ladder("repeat", 7.9, 7.9, low, contexts=(SHORT, good, bad))


def limits(verdict: Verdict) -> str:
    """Which limits it says lie within the edge."""
    (text,) = [reason for reason in verdict.reasons if "within it" in reason]
    return text.split("; ", 1)[1]


NOTHING = "no configured limit lies within it"


# --- which texts ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("short", "sound"), [(1.5, False), (1.51, True)])
def test_what_is_dead_at_its_shortest_does_not_fall(short: float, sound: bool) -> None:
    points = ladder("repeat", short, 1.0, contexts=(SHORT, LONG), half=0.01)
    assert (bug(points) is not None) is sound


def test_the_easiest_text_that_falls_is_shown_and_the_others_are_named() -> None:
    wide, longer = ladder("repeat-wide", 7.9, 7.9, 2.0), ladder("repeat-long", 7.9, 7.9, 3.0)
    alone = found(edge())
    assert not any("too" in reason.split() for reason in alone.reasons)
    both = found((*edge(), *wide))
    assert both.reasons[0].startswith("repeat commits")
    assert "repeat-wide falls too" in both.reasons
    every = found((*wide, *longer, *edge(), *ladder("far-copy near", 7.2, 7.2, 1.0)))
    assert every.reasons[0].startswith("repeat commits")
    assert "repeat-long, repeat-wide and far-copy near fall too" in every.reasons


def test_a_long_period_that_falls_alone_is_a_bug_too() -> None:
    verdict = found((*EASY, *ladder("repeat-long", 7.9, 7.9, 2.0)))
    assert verdict.reasons[0].startswith("repeat-long commits")


# --- within the edge --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tokens", "within"),
    [(9799, False), (9800, True), (10000, True), (15000, True), (20000, True), (20001, False)],
)
def test_a_limit_lies_between_the_last_good_length_and_the_first_bad_one(tokens: int, within: bool) -> None:
    """Prompts may be a few tokens shorter than asked: two hundredths below the last good length still count."""
    verdict = found(edge(10000, 20000), limits=(Limit(tokens, "the limit", POSITIONS),))
    assert limits(verdict) == (f"within it lies the limit ({tokens} tokens)" if within else NOTHING)
    assert verdict.kind == (POSITIONS if within else "")


def request(context: int, output: int | None, arm: str = "repeat") -> CommitRequest:
    return CommitRequest(
        key="r", purpose="point", arm=arm, context_tokens=context, prompt=0, output_tokens=output
    )


@pytest.mark.parametrize(
    ("requests", "tokens", "within"),
    [
        pytest.param((request(20000, 64),), 20064, True, id="the last token it wrote"),
        pytest.param((request(20000, 64),), 20065, False, id="one beyond it"),
        pytest.param((request(20000, 64), request(20000, 100)), 20100, True, id="the one that wrote most"),
        pytest.param((request(20000, 64), request(10000, 500)), 20065, False, id="another length wrote more"),
        pytest.param((request(20000, 64, "prose"),), 20064, False, id="another text"),
        pytest.param((request(20000, None),), 20000, True, id="nobody knows what it wrote: its prompt"),
        pytest.param((request(20000, None),), 20001, False, id="and no more"),
    ],
)
def test_a_request_reaches_as_far_as_it_wrote(
    requests: tuple[CommitRequest, ...], tokens: int, within: bool
) -> None:
    verdict = found(edge(10000, 20000), *requests, limits=(Limit(tokens, "the limit", POSITIONS),))
    assert (limits(verdict) != NOTHING) is within
    told = "and its output" in verdict.reasons[1]
    assert told is (within and tokens > 20000)


@pytest.mark.parametrize(
    ("tokens", "told"),
    [
        pytest.param(12000, "lies the chunk (12000 tokens)", id="its first end"),
        pytest.param(6000, NOTHING, id="12000 and 18000 are two"),
        pytest.param(9000, "lies a multiple of the chunk (18000 tokens)", id="its second end"),
        pytest.param(11000, "lies the chunk (11000 tokens)", id="22000 is beyond"),
        pytest.param(20000, "lies the chunk (20000 tokens)", id="the first bad length"),
        pytest.param(9800, "lies the chunk (9800 tokens)", id="the last good one, with its slack"),
        pytest.param(4900, NOTHING, id="9800 lies on it; 14700 and 19600 are two"),
        pytest.param(0, NOTHING, id="no chunks"),
    ],
)
def test_a_chunk_ends_at_its_multiples(tokens: int, told: str) -> None:
    verdict = found(edge(10000, 20000), limits=(Limit(tokens, "the chunk", CHUNK),))
    assert limits(verdict).endswith(told)
    assert verdict.kind == ("" if told == NOTHING else CHUNK)


def test_only_chunks_end_at_multiples() -> None:
    assert limits(found(edge(10000, 20000), limits=(Limit(9000, "positions", POSITIONS),))) == NOTHING


# --- the kind ---------------------------------------------------------------------------------------------


def test_anything_rarer_than_a_chunk_explains_an_edge() -> None:
    within = (Limit(12000, "the chunk", CHUNK), Limit(15000, "positions", POSITIONS))
    assert found(edge(10000, 20000), limits=within).kind == POSITIONS


@pytest.mark.parametrize(
    ("good", "bad", "kind"),
    [(100, 0, "draft_length_limit"), (100, 1, ""), (0, 0, ""), (None, 0, ""), (100, None, "")],
)
def test_drafting_ends_where_nothing_is_drafted_any_more(
    good: int | None, bad: int | None, kind: str
) -> None:
    short, before, after = edge()
    points = (short, replace(before, drafted_steps=good), replace(after, drafted_steps=bad))
    verdict = found(points)
    assert verdict.kind == kind
    assert any("nothing is drafted any more" in reason for reason in verdict.reasons) is bool(kind)


@pytest.mark.parametrize(
    ("window", "arm", "commits", "kind"),
    [
        pytest.param(2048, "repeat", (7.9, 4.5, 1.5), "window_ignored", id="a slope beyond the window"),
        pytest.param(LONG - 1, "repeat", (7.9, 4.5, 1.5), "window_ignored", id="just beyond"),
        pytest.param(LONG, "repeat", (7.9, 4.5, 1.5), "", id="up to its end"),
        pytest.param(None, "repeat", (7.9, 4.5, 1.5), "", id="no window"),
        pytest.param(2048, "repeat", (7.9, 7.9, 1.5), "", id="an edge"),
        pytest.param(2048, "repeat-long", (7.9, 4.5, 1.5), "", id="a long period: its source lies far"),
    ],
)
def test_easy_text_that_slopes_beyond_a_window_says_that_it_is_ignored(
    window: int | None, arm: str, commits: tuple[float, ...], kind: str
) -> None:
    assert found(ladder(arm, *commits), window=window, findings=(lint("DC21"),)).kind == kind


@pytest.mark.parametrize(
    ("id", "kind"), [("DC20", "window_ignored"), ("DC22", "window_ignored"), ("DC23", WINDOW)]
)
def test_a_window_in_the_edge_is_ignored_where_a_lint_says_so(id: str, kind: str) -> None:
    verdict = found(edge(), limits=(Limit(32768, "the window", WINDOW),), findings=(lint(id),))
    assert verdict.kind == kind


# --- how sure, and what is missing ------------------------------------------------------------------------

LIMIT = Limit(20000, "the limit", POSITIONS)
SLOPE = ladder("repeat", 7.9, 5.0, 1.5)


@pytest.mark.parametrize(
    ("points", "given", "findings", "confidence"),
    [
        pytest.param(edge(), (), (), "high", id="an edge"),
        pytest.param(SLOPE, (), (), "medium", id="a slope without a reason"),
        pytest.param(SLOPE, (Limit(4096, "the limit", POSITIONS),), (), "high", id="a slope with a limit"),
        pytest.param(SLOPE, (), (lint("DC34"),), "high", id="a slope with an error"),
        pytest.param(SLOPE, (), (lint("DC34", Outcome.WARN),), "medium", id="a warning explains nothing"),
    ],
)
def test_an_edge_or_an_explanation_makes_it_sure(
    points: tuple[CommitPoint, ...], given: tuple[Limit, ...], findings: tuple[Finding, ...], confidence: str
) -> None:
    assert found(points, limits=given, findings=findings).confidence == confidence
    assert found(points, limits=given, findings=findings, controls=False).confidence == "medium"


def missing(verdict: Verdict, text: str) -> bool:
    return any(text in one for one in verdict.missing)


@pytest.mark.parametrize(("bad", "open_"), [(12500, False), (12501, True), (13000, True), (10100, False)])
def test_an_edge_is_known_when_its_sides_are_a_quarter_apart(bad: int, open_: bool) -> None:
    assert missing(found(edge(10000, bad)), "the edge itself") is open_


@pytest.mark.parametrize(
    ("given", "findings", "open_"),
    [
        pytest.param((LIMIT, Limit(30000, "the window", WINDOW)), (), True, id="two kinds"),
        pytest.param(
            (LIMIT, Limit(30000, "the window", WINDOW)), (lint("DC34"),), False, id="a lint names one"
        ),
        pytest.param((LIMIT, Limit(30000, "another", POSITIONS)), (), False, id="two of one kind"),
        pytest.param((LIMIT,), (), False, id="one"),
        pytest.param((), (), False, id="none"),
    ],
)
def test_which_of_several_limits_it_is(
    given: tuple[Limit, ...], findings: tuple[Finding, ...], open_: bool
) -> None:
    assert missing(found(edge(), limits=given, findings=findings), "which of these limits") is open_


@pytest.mark.parametrize(
    ("config", "given", "open_"), [(None, (), True), (None, (LIMIT,), False), (FULL_LAST, (), False)]
)
def test_a_configuration_would_name_the_limits(
    config: ModelConfig | None, given: tuple[Limit, ...], open_: bool
) -> None:
    known = () if config is None else (config,)
    assert missing(found(edge(), *known, limits=given), "the drafter's config.json") is open_


def test_the_next_command_measures_both_sides() -> None:
    """Seven hundredths on each side of a limit within the edge; without one, the middle of the edge."""
    assert any("--contexts 18600,21400 --arms repeat" in text for text in found(edge(), limits=(LIMIT,)).next)
    assert any("--contexts 16k,72k,128k --arms repeat" in text for text in found(edge()).next)


# --- far text ---------------------------------------------------------------------------------------------

LOST = ladder("far-copy far", 7.1, 2.0, 1.9)


@pytest.mark.parametrize(
    ("points", "config", "window", "confidence"),
    [
        pytest.param((*EASY, *NEAR, *LOST), FULL_LAST, 2048, "high", id="easy, near and far text, and the layers"),
        pytest.param((*EASY, *NEAR, *LOST), None, 2048, "medium", id="nobody knows the layers"),
        pytest.param((*EASY, *NEAR, *LOST), replace(FULL_LAST, layer_types=None), 2048, "medium", id="the config names none"),
        pytest.param((*EASY, *NEAR, *LOST), FULL_LAST, None, "medium", id="no window known"),
        pytest.param((*EASY, *LOST), FULL_LAST, 2048, "medium", id="nothing near"),
        pytest.param((*NEAR, *LOST), FULL_LAST, 2048, "medium", id="no easy text"),
    ],
)  # fmt: skip
def test_lost_far_text_is_sure_with_everything_beside_it(
    points: tuple[CommitPoint, ...], config: ModelConfig | None, window: int | None, confidence: str
) -> None:
    known = () if config is None else (config,)
    verdict = found(points, *known, window=window)
    assert (verdict.kind, verdict.confidence) == ("far_kv", confidence)
    assert missing(verdict, "layer_types") is (config is None or config.layer_types is None)
    assert missing(verdict, "the near copy") is (points[3:6] != NEAR and points[:3] != NEAR)
    assert any("window is 2048 tokens" in reason for reason in verdict.reasons) is (window is not None)


def test_far_text_is_told_from_its_shortest_length_on() -> None:
    verdict = found((*EASY, *NEAR, *LOST), window=2048)
    assert verdict.reasons[0].startswith("far-copy far commits 7.10 of 8")
    assert "and 1.90 of 8" in verdict.reasons[0]
    assert "--contexts 1905,2191,128k --arms far-copy" in verdict.next[0]
    alone = found((*ladder("repeat", 7.9, contexts=(LONG,)), *ladder("far-copy near", 7.2, contexts=(LONG,)), LOST[2]), window=2048)  # fmt: skip
    assert alone.reasons[0].startswith("far-copy far commits 1.90 of 8")


def test_without_a_window_far_text_is_measured_from_1k_on() -> None:
    assert "--contexts 1k,128k --arms far-copy" in found((*EASY, *NEAR, *LOST)).next[0]


# --- decay ------------------------------------------------------------------------------------------------


def decay(
    *points: CommitPoint, known: tuple[Fact, ...] = (), controls: tuple[Fact, ...] = CONTROLS
) -> Verdict | None:
    ruling = long_context_decay.judge(Case((*facts(*points, controls=controls), *known)))
    return None if ruling is None else ruling.verdict  # fmt: skip


FADES = ladder("prose", 3.4, 2.8, 2.2)


@pytest.mark.parametrize(
    ("points", "decays"),
    [
        pytest.param((*EASY, *NEAR, *FAR, *FADES), True, id="prose fades beside all that holds"),
        pytest.param((*NEAR, *FAR, *FADES), False, id="without easy text"),
        pytest.param((*EASY, *FADES), False, id="without far text"),
        pytest.param((*EASY, *NEAR, *FAR, *FINE), False, id="prose holds"),
        pytest.param((*EASY, *NEAR, *FAR, FADES[0], replace(FADES[1], steps=20), FADES[2]), False, id="one length does not count"),
        pytest.param((*EASY, *NEAR, *FAR), False, id="no prose"),
        pytest.param((*EASY, *NEAR, *FAR, FADES[0]), False, id="prose at one length"),
        pytest.param((*EASY[:2], *ladder("repeat", 2.0, contexts=(LONG,)), *NEAR, *FAR, *FADES), False, id="easy text collapses"),
        pytest.param((*EASY, *ladder("repeat-long", 7.9, 7.9, 2.0), *NEAR, *FAR, *FADES), False, id="a long period collapses"),
    ],
)  # fmt: skip
def test_prose_decays_while_the_rest_holds(points: tuple[CommitPoint, ...], decays: bool) -> None:
    assert (decay(*points) is not None) is decays


@pytest.mark.parametrize(
    ("points", "decays"),
    [
        pytest.param(ladder("repeat", 8.0, 7.4, 6.7), True, id="84 % are left"),
        pytest.param(ladder("repeat", 8.0, 7.4, 6.8), False, id="85 %"),
        pytest.param(ladder("repeat", 8.0, 7.4, 6.7, half=0.7), False, id="the intervals meet"),
        pytest.param(ladder("repeat", 8.0, 6.7, contexts=(SHORT, LONG)), True, id="two lengths"),
        pytest.param(ladder("repeat", 8.0, contexts=(SHORT,)), False, id="one"),
        pytest.param(ladder("repeat", 4.7, 4.3, 3.9), False, id="weak from the beginning"),
        pytest.param((*EASY, *ladder("repeat-wide", 8.0, 7.4, 6.7)), True, id="a wide period"),
        pytest.param((*ladder("repeat", 8.0, 7.4, 6.7), *NEAR, *ladder("far-copy far", 7.1, 2.0, 1.9)), False, id="far text is lost"),
    ],
)  # fmt: skip
def test_repeated_text_decays_a_little_with_each_length(
    points: tuple[CommitPoint, ...], decays: bool
) -> None:
    verdict = decay(*points)
    assert (verdict is not None and verdict.kind == "" and "easiest" in verdict.reasons[0]) is decays


def test_of_two_easy_texts_that_decay_the_easier_is_shown() -> None:
    verdict = decay(*ladder("repeat-wide", 8.0, 7.4, 6.7), *ladder("repeat", 8.0, 7.4, 6.6))
    assert verdict is not None
    assert verdict.reasons[0].startswith("repeat commits")


def test_a_ladder_with_a_hole_does_not_decay() -> None:
    points = ladder("repeat", 8.0, 7.4, 6.7)
    assert decay(points[0], replace(points[1], steps=20), points[2]) is None


@pytest.mark.parametrize(
    ("prose", "confidence", "told"),
    [
        pytest.param((3.4, 2.8, 2.2), "medium", "", id="even steps"),
        pytest.param((3.4, 3.4, 2.2), "low", "why most of it is lost in one step", id="one step"),
        pytest.param((3.4, 2.2, 1.2), "low", "", id="even, and steep"),
    ],
)
def test_a_slope_is_surer_than_a_step(prose: tuple[float, ...], confidence: str, told: str) -> None:
    verdict = decay(*EASY, *NEAR, *FAR, *ladder("prose", *prose), known=(FULL_LAST,))
    assert verdict is not None
    assert verdict.confidence == confidence
    assert [text.split(":")[0] for text in verdict.missing] == ([told] if told else [])
    assert verdict.reasons[1].startswith("no single step" if not told else "where it is lost")


def test_two_lengths_tell_no_slope() -> None:
    ends = [p for line in (EASY, NEAR, FAR, FADES) for p in (line[0], line[-1])]
    verdict = decay(*ends)
    assert verdict is not None
    assert verdict.missing == (
        "lengths in between: three or more tell a slope from an edge",
        "the drafter's config.json: for which length was it trained?",
    )
    assert verdict.reasons[1] == "where it is lost is not resolved"
    assert verdict.next[0] == "ddprobe commit-probe --contexts 1k,11520,128k --arms prose"


def test_lengths_between_are_measured_next() -> None:
    """1k to 16k: 4k lies the same factor from both; 16k to 128k: 46341, in whole 256 tokens."""
    verdict = decay(*EASY, *NEAR, *FAR, *FADES)
    assert verdict is not None
    assert verdict.next[0] == "ddprobe commit-probe --contexts 1k,4k,16k,46336,128k --arms prose"


SLIDING = replace(FULL_LAST, layer_types=("sliding_attention",) * 6)


@pytest.mark.parametrize(("near", "confidence"), [(NEAR, "high"), ((), "medium")])
def test_a_loss_by_design_is_sure_beside_a_near_copy(near: tuple[CommitPoint, ...], confidence: str) -> None:
    verdict = decay(*EASY, *near, *LOST, known=(SLIDING,))
    assert verdict is not None
    assert (verdict.kind, verdict.confidence) == ("window_by_design", confidence)
    assert verdict.reasons[0].startswith("far-copy far commits 7.10 of 8")
    assert any(reason.startswith("far-copy near commits") for reason in verdict.reasons) is bool(near)


def test_nothing_lost_is_no_design() -> None:
    assert decay(*EASY, *NEAR, *FAR, known=(SLIDING,)) is None
    assert decay(*EASY, *NEAR, *LOST, known=(FULL_LAST,)) is None


def test_what_a_decay_explains() -> None:
    ruling = long_context_decay.judge(
        Case(facts(*EASY, *NEAR, *FAR, *ladder("prose", 4.0, 3.0, 2.0, half=0.05)))
    )
    assert ruling is not None
    assert ruling.explains == pytest.approx(2.0)


# --- ladders ----------------------------------------------------------------------------------------------


def test_a_ladder_lists_what_does_not_count() -> None:
    points = (EASY[0], replace(EASY[1], steps=20))
    plan = PlannedPoint("repeat", LONG, 4, 1, 1, 1)
    known = replace(setup(points), points=(*setup(points).points, plan))
    (line,) = ladders(Case((known, *points)))
    assert line.troubles == ("repeat at 16k: 20 steps, 64 are needed", "repeat at 128k: not measured")
    assert not line.whole
    assert [p.context_tokens for p in line.points] == [SHORT]


def test_no_check_of_another_name_is_taken_for_one() -> None:
    assert Case((check("sources"),)).check("first-again") is None


@pytest.mark.parametrize(
    ("limit", "lengths"), [(163834, "1k,163834"), (163840, "1k,160k"), (None, "1k,160k"), (2048, "1k,2k")]
)
def test_a_command_asks_for_no_more_than_the_server_takes(limit: int | None, lengths: str) -> None:
    facts = (replace(setup(()), context_limit=limit),)
    told = words.command(Case(facts, ()), ["repeat"], [163840, 1024])
    assert told == f"ddprobe commit-probe --contexts {lengths} --arms repeat"
