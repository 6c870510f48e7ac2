"""What measurements exclude, and where they exclude nothing: one table an explanation."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ddprobe.facts import Account, CommitCheck, CommitPoint, CommitRequest
from ddprobe.model import Fact, Outcome
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.excluded import by_name, excluded
from tests.test_verdicts import EASY, FAR, MIDDLE, NEAR, SHORT, check, ladder, lint, point, setup


def told(name: str, *known: Fact) -> str:
    return by_name(Case(known))[name]


def planned(*points: CommitPoint, **of_setup: object) -> tuple[Fact, ...]:
    return (setup(points, **of_setup), *points)


def test_nothing_known_excludes_nothing() -> None:
    assert excluded(Case(())) == ()


# --- a dead drafter ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("points", "text"),
    [
        pytest.param((point("repeat", SHORT, 4.8),), "a dead drafter: repeat commits 4.80 of 8", id="six tenths of the ceiling"),
        pytest.param((point("repeat", SHORT, 4.79),), "", id="less: weak, and not excluded"),
        pytest.param((point("repeat", SHORT, 7.9, ceiling=None),), "", id="no ceiling known"),
        pytest.param((point("prose", SHORT, 7.9),), "", id="no repeated text"),
    ],
)  # fmt: skip
def test_repeated_text_that_works_is_no_dead_drafters(points: tuple[CommitPoint, ...], text: str) -> None:
    assert told("drafter_dead", *points).startswith(text)
    assert bool(told("drafter_dead", *points)) == bool(text)


# --- a limit on positions ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("points", "holds"),
    [
        pytest.param(EASY, True, id="level"),
        pytest.param(EASY[:2], True, id="two lengths"),
        pytest.param(EASY[:1], False, id="one length compares nothing"),
        pytest.param(ladder("repeat", 7.9, 7.9, 5.9), False, id="it falls"),
        pytest.param(ladder("repeat", 3.0, 3.0, 3.0), False, id="level, and weak"),
        pytest.param(ladder("repeat", 1.5, 1.5, 1.5, ceiling=None), False, id="level, and dead; no ceiling known"),
        pytest.param(ladder("repeat", 1.6, 1.6, 1.6, ceiling=None), True, id="not dead, and no ceiling known"),
        pytest.param((EASY[0], replace(EASY[1], steps=20), EASY[2]), False, id="one length does not count"),
        pytest.param((*EASY, *ladder("repeat-wide", 7.9, 7.9, 1.0)), False, id="another period falls"),
        pytest.param((*EASY, *ladder("repeat-long", 7.9, 7.9, 1.0)), False, id="a long period falls"),
        pytest.param(ladder("repeat-long", 7.9, 7.9, 7.9), False, id="a long period alone is no easy text"),
        pytest.param(ladder("repeat-wide", 7.9, 7.9, 7.9), True, id="a wide one is"),
    ],
)  # fmt: skip
def test_easy_text_that_holds_excludes_a_limit_between_its_lengths(
    points: tuple[CommitPoint, ...], holds: bool
) -> None:
    assert bool(told("long_context_bug", *points)) is holds


def test_a_limit_is_excluded_between_the_shortest_and_the_longest() -> None:
    text = told("long_context_bug", *EASY)
    assert "repeat commits 7.90 of 8" in text
    assert "at 1k and 7.80 of 8" in text
    assert "at 128k, and falls nowhere" in text
    assert "16k" not in text


def test_the_shortest_length_tells_whether_it_works() -> None:
    """Later lengths may be a little below what working takes, and above a collapse."""
    assert told("long_context_bug", *ladder("repeat", 4.8, 4.8, 4.7))
    assert not told("long_context_bug", *ladder("repeat", 4.7, 4.8, 4.8))
    both = (*ladder("repeat", 4.8, 4.8, 4.8), *ladder("repeat-wide", 2.0, 2.0, 2.0))
    assert "repeat commits 4.80" in told("long_context_bug", *both)


@pytest.mark.parametrize("name", ["drafter_dead", "long_context_bug", "far_kv"])
def test_easy_text_excludes_nothing_of_a_drafter_that_looks_it_up(name: str) -> None:
    points = (*EASY, *NEAR, *FAR)
    assert told(name, *planned(*points))
    assert not told(name, *planned(*points, drafter="lookup"))


# --- lost distant KV --------------------------------------------------------------------------------------


def test_a_pair_at_the_longest_length_excludes_lost_kv() -> None:
    text = told("far_kv", *planned(*NEAR, *FAR))
    assert text.startswith("lost distant KV: far-copy far commits 6.90 of 8")
    assert text.count("at 128k") == 2
    assert told("far_kv", *planned(*NEAR)) == told("far_kv", *planned(*FAR)) == ""


# --- the run ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("agrees", "tells"), [(True, True), (False, False), (None, False)])
def test_a_cold_and_a_cached_prompt_alike_exclude_the_cache(agrees: bool | None, tells: bool) -> None:
    assert bool(told("cache_state_bug", check("cold-cached", agrees))) is tells
    assert told("cache_state_bug") == ""


@pytest.mark.parametrize(
    ("again", "time", "tells"),
    [
        (True, None, True), (True, True, True), (True, False, False), (False, None, False), (False, True, False),
        (None, None, False),
    ],
)  # fmt: skip
def test_a_first_point_that_comes_out_the_same_excludes_a_changing_state(
    again: bool | None, time: bool | None, tells: bool
) -> None:
    known: list[CommitCheck] = [check("first-again", again)]
    known += [check("step-time-again", time)] if time is not None else []
    assert bool(told("gpu_state", *known)) is tells
    assert told("gpu_state", check("step-time-again", None), check("first-again")) != ""
    assert told("gpu_state", check("step-time-again")) == ""


def sources(accounts: int, *disagreements: str) -> CommitRequest:
    origins = ("meta_info", "stream", "usage")[:accounts]
    return CommitRequest(
        key="r", purpose="point", arm="repeat", context_tokens=MIDDLE, prompt=0,
        accounts=tuple(Account(origin=origin, steps=10, accepted=20) for origin in origins), disagreements=disagreements,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("known", "text"),
    [
        pytest.param((check("sources"),), "sources that contradict each other: sources: 7.9", id="checked"),
        pytest.param((check("sources", False), sources(2)), "", id="checked, and they do not agree"),
        pytest.param((check("sources", None), sources(2)), "", id="checked, and not to be told"),
        pytest.param((sources(2), sources(3)), "sources that contradict each other: they agree in each of 2 requests", id="two requests"),
        pytest.param((sources(2), sources(1)), "sources that contradict each other: they agree in each of 1 request", id="one of two compares"),
        pytest.param((sources(1),), "", id="one source agrees with nobody"),
        pytest.param((sources(2), sources(2, "3 against 4")), "", id="one of two does not agree"),
        pytest.param((), "", id="no request"),
    ],
)  # fmt: skip
def test_sources_that_agree_exclude_a_wrong_metric(known: tuple[Fact, ...], text: str) -> None:
    assert told("metric_inconsistency", *known).startswith(text)
    assert bool(told("metric_inconsistency", *known)) == bool(text)


@pytest.mark.parametrize(
    ("outcome", "tells"), [(Outcome.PASS, True), (Outcome.FAIL, False), (Outcome.UNKNOWN, False)]
)
def test_an_environment_that_was_read_excludes_forged_acceptance(outcome: Outcome, tells: bool) -> None:
    assert bool(by_name(Case((), (lint("EN01", outcome),)))["simulated_acceptance"]) is tells
    assert told("simulated_acceptance") == ""


def test_a_verdict_does_not_exclude_itself() -> None:
    case = Case(planned(*EASY, *NEAR, *FAR))
    whole = excluded(case)
    assert len(whole) == 3
    assert excluded(case, "far_kv") == whole[:2]
    assert excluded(case, "drafter_dead", "long_context_bug") == whole[2:]
