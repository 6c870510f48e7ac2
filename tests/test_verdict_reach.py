"""How far a drafter sees, at the limits: which far copies say something, and what they are held against."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ddprobe.facts import CommitPoint, ModelConfig
from ddprobe.model import Fact, Outcome
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.excluded import by_name
from ddprobe.verdicts.reach import FarLoss, by_design, far_loss, held_afar, reach
from tests.test_verdicts import EASY, LONG, MIDDLE, SHORT, ladder, lint, point, setup

NEAR_LABEL, FAR_LABEL = "far-copy near", "far-copy far"


def copies(
    near: tuple[float | None, ...], far: tuple[float | None, ...], *known: Fact, **of_setup: Any
) -> Case:
    """Near and far copies at 1k, 16k and 128k; None is a length that was not measured."""
    places = (SHORT, MIDDLE, LONG)
    points = [
        point(label, place, commit)
        for label, commits in ((NEAR_LABEL, near), (FAR_LABEL, far))
        for place, commit in zip(places, commits, strict=False)
        if commit is not None
    ]
    return Case((setup(tuple(points), **of_setup), *points, *known))


GOOD = (7.2, 7.2, 7.2)


@pytest.mark.parametrize(
    ("near", "far", "works"),
    [
        pytest.param(GOOD, (7.1, 7.0, 6.9), True, id="both alike"),
        pytest.param(GOOD, (7.1, 7.0, 5.4), True, id="three quarters of the near one"),
        pytest.param(GOOD, (7.1, 7.0, 5.39), False, id="less"),
        pytest.param((7.2, 7.2, 2.0), (7.1, 7.0, 1.9), False, id="alike, and both fall"),
        pytest.param((7.2, 7.2, 5.3), (7.1, 7.0, 5.3), False, id="both fall a little too much"),
        pytest.param((), (7.1, 7.0, 6.9), False, id="nothing near beside it"),
        pytest.param(GOOD, (), False, id="nothing far"),
        pytest.param((7.2, 7.2, None), (None, None, 6.9), False, id="no two at one length"),
    ],
)
def test_far_copies_work_beside_near_ones(
    near: tuple[float | None, ...], far: tuple[float | None, ...], works: bool
) -> None:
    assert reach(copies(near, far)).works is works


@pytest.mark.parametrize("refused", [NEAR_LABEL, FAR_LABEL])
def test_a_copy_that_does_not_count_works_at_no_length(refused: str) -> None:
    case = copies(GOOD, GOOD)
    short = tuple(
        replace(f, steps=20)
        if isinstance(f, CommitPoint) and (f.arm, f.context_tokens) == (refused, LONG)
        else f
        for f in case.facts
    )
    assert reach(case).works
    assert not reach(Case(short)).works


def test_a_far_copy_alone_has_no_pair_and_may_be_lost() -> None:
    """Without a near one it is held against itself at the shortest length."""
    case = copies((), (7.1, 7.0, 1.9))
    assert reach(case).pairs == reach(case).lost == reach(case).kept == ()
    loss = far_loss(case)
    assert loss is not None
    assert (loss.near, loss.far.context_tokens) == (None, LONG)
    assert loss.short is not None
    assert loss.ratio == pytest.approx(7.1 / 1.9)


@pytest.mark.parametrize(
    ("window", "inside"), [(None, False), (MIDDLE - 1, False), (MIDDLE, True), (LONG, True)]
)
def test_a_passage_lies_within_the_window_up_to_its_end(window: int | None, inside: bool) -> None:
    found = reach(copies(GOOD, GOOD, window=window))
    assert found.far is not None
    assert found.inside(found.far.points[1]) is inside


@pytest.mark.parametrize(
    ("far", "lengths"),
    [
        pytest.param((7.1, 2.0, 1.9), [MIDDLE, LONG], id="from one length on"),
        pytest.param((7.1, 2.0, 6.9), [], id="all is well again"),
        pytest.param((7.1, 7.0, 1.9), [LONG], id="at the longest"),
        pytest.param((2.0, 7.0, 1.9), [LONG], id="what comes before all is well does not count"),
        pytest.param((7.1, 7.0, 6.9), [], id="nowhere"),
    ],
)
def test_a_loss_is_kept_where_nothing_longer_is_well(far: tuple[float, ...], lengths: list[int]) -> None:
    assert [p.context_tokens for _, p in reach(copies(GOOD, far)).kept] == lengths


def test_a_length_whose_samples_do_not_tell_ends_no_loss() -> None:
    """At 128k the interval meets that of the near copy: it neither holds nor is it lost."""
    case = copies(GOOD, (7.1, 2.0, 3.0))
    vague = tuple(
        replace(f, commit_high=7.5)
        if isinstance(f, CommitPoint) and (f.arm, f.context_tokens) == (FAR_LABEL, LONG)
        else f
        for f in case.facts
    )
    assert [p.context_tokens for _, p in reach(Case(vague)).kept] == [MIDDLE]


def lost(case: Case) -> int | None:
    """The length of the worst loss."""
    found = far_loss(case)
    return None if found is None else found.far.context_tokens


@pytest.mark.parametrize(
    ("near", "far", "window", "length"),
    [
        pytest.param(GOOD, (7.1, 2.0, 1.9), 2048, LONG, id="the worst of two"),
        pytest.param(GOOD, (7.1, 1.9, 2.0), 2048, MIDDLE, id="the worst comes first"),
        pytest.param(GOOD, (7.1, 2.0, 2.0), 2048, LONG, id="the longer of two alike"),
        pytest.param(GOOD, (2.0, 2.0, 2.0), 2048, None, id="weak within the window too"),
        pytest.param(GOOD, (2.0, 2.0, 2.0), 512, LONG, id="all of them beyond the window"),
        pytest.param(GOOD, (2.0, 2.0, 2.0), None, None, id="weak at every length, and no window known"),
        pytest.param(GOOD, (7.1, 2.0, 2.0), None, LONG, id="no window known, and the shortest is well"),
        pytest.param(GOOD, (7.1, 2.0, 2.0), MIDDLE, None, id="lost up to the window's end"),
        pytest.param(GOOD, (7.1, 7.0, 6.9), 2048, None, id="nothing is lost"),
        pytest.param((7.2,), (1.9,), None, None, id="one pair, lost, and no window known"),
        pytest.param((), (7.1, 7.0, 1.9), None, LONG, id="alone, and no window known"),
        pytest.param((), (7.1, 7.0, 1.9), LONG, None, id="within the window, and nothing near beside it"),
        pytest.param((), (7.1, 2.0, 6.9), 2048, None, id="alone, and well again"),
        pytest.param((7.2, 7.2, 2.0), (7.1, 7.0, 1.9), 2048, None, id="the near one falls as far"),
    ],
)
def test_a_far_passage_is_lost(
    near: tuple[float, ...], far: tuple[float, ...], window: int | None, length: int | None
) -> None:
    assert lost(copies(near, far, window=window)) == length


def test_easy_text_that_falls_hides_what_is_lost_far_back() -> None:
    assert lost(copies(GOOD, (7.1, 2.0, 1.9), *EASY)) == LONG
    for arm in ("repeat", "repeat-wide", "repeat-long"):
        assert lost(copies(GOOD, (7.1, 2.0, 1.9), *ladder(arm, 7.9, 7.9, 1.0))) is None


def test_the_shortest_far_copy_is_told_beside_a_longer_one() -> None:
    loss = far_loss(copies(GOOD, (7.1, 7.0, 1.9)))
    assert loss is not None
    assert (loss.short.context_tokens if loss.short else None) == SHORT
    assert loss.ratio == pytest.approx(7.2 / 1.9)
    alone = far_loss(copies((7.2,), (1.9,), window=512))
    assert alone is not None
    assert alone.short is None


def test_a_loss_is_held_against_the_near_copy_first() -> None:
    far, near, short = point(FAR_LABEL, LONG, 2.0), point(NEAR_LABEL, LONG, 6.0), point(FAR_LABEL, SHORT, 8.0)
    assert FarLoss(far, near, short, None).ratio == pytest.approx(3.0)
    assert FarLoss(far, None, short, None).ratio == pytest.approx(4.0)


# --- by design --------------------------------------------------------------------------------------------

SLIDING = ModelConfig(role="drafter", path="/d", layer_types=("sliding_attention",) * 3)


@pytest.mark.parametrize(
    ("layers", "design"),
    [
        (("sliding_attention",) * 3, True), (("sliding_attention", "full_attention"), False), (("full_attention",), False),
        ((), False), (None, False),
    ],
)  # fmt: skip
def test_only_a_drafter_whose_every_layer_slides_sees_its_window_alone(
    layers: tuple[str, ...] | None, design: bool
) -> None:
    case = Case((replace(SLIDING, layer_types=layers),))
    assert bool(by_design(case)) is design
    assert by_design(Case(())) == ""


@pytest.mark.parametrize("outcome", [Outcome.FAIL, Outcome.WARN])
def test_the_first_lint_on_a_trimmed_window_says_why(outcome: Outcome) -> None:
    first = replace(lint("SA04", outcome), summary="the window cuts layer 5")
    assert by_design(Case((), (first, lint("SA04", outcome)))) == "the window cuts layer 5"
    assert by_design(Case((), (lint("SA04", Outcome.PASS),))) == ""


# --- what far copies exclude ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("far", "window", "told"),
    [
        pytest.param((7.1, 7.0, 6.9), 2048, True, id="from beyond the window"),
        pytest.param((7.1, 7.0, 6.9), LONG, False, id="from within it"),
        pytest.param((7.1, 7.0, 1.9), 2048, False, id="it is lost"),
        pytest.param((7.1, 7.0), 2048, True, id="from 16k"),
    ],
)
def test_distant_kv_is_not_lost_where_a_copy_comes_from_afar(
    far: tuple[float, ...], window: int, told: bool
) -> None:
    text = by_name(copies(GOOD[: len(far)], far, window=window))["far_kv"]
    assert bool(text) is told
    if told:
        longest = {2: "16k", 3: "128k"}[len(far)]
        assert text.startswith(f"lost distant KV: far-copy far commits {far[-1]:.2f} of 8")
        assert text.endswith(f"at {longest}")
        assert "far-copy near commits 7.20 of 8" in text


def test_held_afar_is_the_longest() -> None:
    found = held_afar(copies(GOOD, (7.1, 7.0, 6.9)))
    assert found is not None
    assert found.context_tokens == LONG
    assert held_afar(copies((), ())) is None
