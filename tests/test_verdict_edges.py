"""Verdicts at their limits: the value that just counts, and the one that just does not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ddprobe.facts import Account, Claim, CommitPoint, CommitRequest, CommitSetup, ModelConfig
from ddprobe.model import Fact
from ddprobe.verdicts import (
    cache_state_bug,
    drafter_dead,
    long_context_decay,
    metric_inconsistency,
    spec_net_loss,
    thresholds,
)
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.growth import five, growth, timed
from ddprobe.verdicts.ladder import collapsed, doubt, holds, ladders
from ddprobe.verdicts.simulated_acceptance import judge as simulated
from ddprobe.verdicts.standing import control, drifted, easy_works, works
from tests.test_verdicts import LONG, MIDDLE, SHORT, check, facts, judged, ladder, lint, only, point, setup

EMPTY = Case(())


def case(*known: Fact) -> Case:
    return Case(known)


# --- which points count -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "counts"),
    [
        ({"steps": 64}, True), ({"steps": 63}, False), ({"copied": 0.95}, True), ({"copied": 0.949}, False),
        ({"copied": None}, False), ({"commit_mean": None}, False), ({"loops": 1}, True), ({"saturated": True}, True),
    ],
)  # fmt: skip
def test_repeated_text_counts(changes: dict[str, Any], counts: bool) -> None:
    assert (doubt(EMPTY, replace(point("repeat", SHORT, 7.9), **changes)) == "") is counts


@pytest.mark.parametrize(
    ("changes", "counts"),
    [({}, True), ({"steps": 64}, True), ({"loops": 1}, False), ({"saturated": True}, False), ({"copied": 0.1}, True)],
)  # fmt: skip
def test_prose_counts(changes: dict[str, Any], counts: bool) -> None:
    assert (doubt(EMPTY, replace(point("prose", SHORT, 2.9), **changes)) == "") is counts


@pytest.mark.parametrize(
    ("cached", "prompt", "counts"),
    [(100, 1000, True), (101, 1000, False), (0, 1000, True), (None, 1000, False), (0, None, False)],
)
def test_what_the_cache_served_counts_no_more_where_the_cache_changes_answers(
    cached: int | None, prompt: int | None, counts: bool
) -> None:
    served = replace(point("repeat", SHORT, 7.9), cached_tokens=cached, prompt_tokens=prompt)
    assert (doubt(case(check("cold-cached", False, 7.9, 1.0)), served) == "") is counts
    assert doubt(case(check("cold-cached")), served) == ""
    assert doubt(case(setup((), cold=True), check("cold-cached", False, 7.9, 1.0)), served) == ""


# --- dead, half wired, working ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ceiling", "limit"), [(None, 1.5), (8, 1.5), (16, 1.5), (5, 1.5), (4, 1.45), (3, 1.3), (2, 1.15)]
)
def test_dead_at_or_below(ceiling: int | None, limit: float) -> None:
    assert thresholds.dead_below(ceiling) == pytest.approx(limit)


@pytest.mark.parametrize(("commit", "well"), [(4.8, True), (4.79, False), (8.0, True), (1.0, False)])
def test_repeated_text_is_drafted_well_from_six_tenths_of_the_ceiling(commit: float, well: bool) -> None:
    assert works(EMPTY, point("repeat", SHORT, commit)) is well
    assert easy_works(case(point("repeat", SHORT, commit))) is well


def test_without_a_ceiling_nobody_knows_whether_it_works() -> None:
    assert works(EMPTY, point("repeat", SHORT, 8.0, ceiling=None)) is None


@pytest.mark.parametrize(("commit", "dead"), [(1.5, True), (1.51, False), (4.9, False)])
def test_repeated_text_at_the_limit_of_the_dead(commit: float, dead: bool) -> None:
    assert (only(facts(point("repeat", SHORT, commit, 0.0))).name == "drafter_dead") is dead


def test_dead_is_sure_only_when_the_whole_interval_is() -> None:
    def confidence(half: float, **other: Any) -> str:
        return only(facts(point("repeat", SHORT, 1.25, half, **other))).confidence

    assert confidence(0.25) == "high"
    assert confidence(0.26) == "medium"
    assert confidence(0.25, drafted_steps=None) == "medium"


@pytest.mark.parametrize(
    ("shares", "commit", "miswired"),
    [
        ((0.75, 0.5), 3.0, True), ((0.75, 0.49), 3.0, False), ((0.75, 0.5), 4.79, True), ((0.75, 0.5), 4.8, False),
        ((0.75,), 3.0, False), ((0.75, None, 0.5), 3.0, True),
    ],
)  # fmt: skip
def test_miswired_is_flat_within_a_quarter(
    shares: tuple[float | None, ...], commit: float, miswired: bool
) -> None:
    weak = point("repeat", SHORT, commit, conditional=shares)
    found = drafter_dead.judge(Case((weak,), (lint(drafter_dead.HALF_WIRED[0]),)))
    assert (found is not None) is miswired
    assert drafter_dead.judge(case(weak)) is None


# --- two lengths ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("after", "kept"), [(6.0, True), (5.99, False)])
def test_a_collapse_is_below_three_quarters(after: float, kept: bool) -> None:
    before, later = point("repeat", SHORT, 8.0, 0.1), point("repeat", LONG, after, 0.1)
    assert holds(before, later) is kept
    assert collapsed(before, later) is not kept


def test_a_collapse_needs_intervals_that_do_not_meet() -> None:
    before = point("repeat", SHORT, 4.0, 1.0)
    assert not collapsed(before, point("repeat", LONG, 2.0, 1.0))
    assert collapsed(before, point("repeat", LONG, 2.0, 0.99))
    assert not collapsed(before, replace(point("repeat", LONG, 2.0), commit_high=None))
    assert not collapsed(replace(before, commit_low=None), point("repeat", LONG, 2.0, 0.1))


@pytest.mark.parametrize(("long", "kept"), [(3.4, True), (3.39, False)])
def test_prose_that_keeps_85_percent_has_not_decayed(long: float, kept: bool) -> None:
    prose = ladder("prose", 4.0, 4.0, long, half=0.05)
    assert control(case(*prose)).kept is kept


def test_prose_whose_samples_do_not_tell_is_kept() -> None:
    assert control(case(*ladder("prose", 4.0, 4.0, 3.0, half=0.5))).kept
    assert control(case(point("prose", SHORT, 4.0))).kept


@pytest.mark.parametrize(
    ("prose", "low", "repeat", "hard"),
    [(2.1, 2.0, 7.9, True), (2.2, 2.01, 7.9, False), (1.9, 1.8, 3.8, False), (1.9, 1.8, 3.81, True)],
)
def test_hard_is_little_in_itself_and_little_beside_repeated_text(
    prose: float, low: float, repeat: float, hard: bool
) -> None:
    text = replace(point("prose", SHORT, prose), commit_low=low)
    assert control(case(point("repeat", SHORT, repeat), text)).hard(text) is hard
    assert not control(case(text)).hard(text)


def test_a_fall_names_the_length_before_and_the_first_one_after() -> None:
    points = ladder("repeat", 7.9, 7.8, 1.2, 1.1, 7.5, contexts=(1024, 2048, 4096, 8192, 16384))
    (found,) = ladders(case(*points), "repeat")
    fall = found.fall()
    assert fall is not None
    lengths = (fall.short, fall.good, fall.bad, fall.worst, fall.recovers)
    assert [p.context_tokens if p else None for p in lengths] == [1024, 2048, 4096, 8192, 16384]
    assert fall.edge
    assert fall.ratio == pytest.approx(7.9 / 1.1)


@pytest.mark.parametrize(("middle", "edge"), [(7.0, True), (6.99, False), (2.0, True)])
def test_an_edge_holds_three_quarters_of_the_fall(middle: float, edge: bool) -> None:
    (found,) = ladders(case(*ladder("repeat", 8.0, middle, 4.0)), "repeat")
    fall = found.fall()
    assert fall is not None
    assert fall.edge is edge


@pytest.mark.parametrize(
    ("commits", "smooth"),
    [((4.0, 3.0, 2.0), True), ((4.0, 3.5, 2.0), False), ((4.0, 3.48, 2.0), True), ((4.0, 2.0), None)],
)
def test_a_slope_has_no_step_of_three_quarters(commits: tuple[float, ...], smooth: bool | None) -> None:
    points = ladder("prose", *commits, contexts=(SHORT, MIDDLE, LONG)[: len(commits)])
    assert long_context_decay.smooth(points) is smooth


@pytest.mark.parametrize(("long", "kind"), [(2.0, ""), (1.99, "steep")])
def test_steep_is_below_half(long: float, kind: str) -> None:
    easy = (
        *ladder("repeat", 7.9, 7.9, 7.8),
        *ladder("far-copy near", 7.2, 7.1, 7.2),
        *ladder("far-copy far", 7.1, 7.0, 6.9),
    )
    verdict = only(facts(*easy, *ladder("prose", 4.0, (4.0 + long) / 2, long, half=0.05)))
    assert (verdict.name, verdict.kind) == ("long_context_decay", kind)


# --- controls ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("again", "half", "moved"), [(7.2, 0.1, True), (7.2, 0.5, False), (7.0, 0.5, True), (8.0, 0.5, False)]
)
def test_the_first_point_has_drifted_when_it_moved_by_a_tenth_or_apart(
    again: float, half: float, moved: bool
) -> None:
    first = point("repeat", SHORT, 8.0, half)
    repeated = replace(point("repeat", SHORT, again, half), purpose="again")
    told = drifted(case(first, repeated, check("first-again", False, 8.0, again)))
    assert bool(told) is moved
    assert drifted(case(first, repeated, check("first-again"))) == ""


@pytest.mark.parametrize(
    ("first", "second", "kind"),
    [
        (7.9, 1.0, "draft_kv_lost"),
        (1.0, 7.9, "draft_replayed"),
        (2.0, 2.0, ""),
        (None, 2.0, ""),
        (2.0, None, ""),
    ],
)
def test_what_the_cache_does(first: float | None, second: float | None, kind: str) -> None:
    made = replace(check("cold-cached", False), first=first, second=second)
    ruling = cache_state_bug.judge(case(made))
    assert ruling is not None
    assert ruling.verdict.kind == kind
    assert ruling.explains == pytest.approx(7.9 if kind else 1.0)


def request(key: str, streamed: tuple[int, int], told: tuple[int, int], **other: Any) -> CommitRequest:
    """(steps, accepted) as the stream shows them, and as the server counts."""
    accounts = (
        Account(origin="stream", steps=streamed[0], accepted=streamed[1]),
        Account(origin="meta_info", steps=told[0], accepted=told[1]),
    )
    known: dict[str, Any] = {"purpose": "point", "arm": "repeat", "context_tokens": SHORT, "prompt": 0}
    return CommitRequest(key=key, accounts=accounts, **{**known, **other})


# --- figures ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "value", "possible"),
    [
        ("accept rate", 1.02, True), ("accept rate", 1.021, False), ("accept length", 0.98, True),
        ("accept length", 0.979, False), ("accept length", 0.0, True), ("commit length", 8 * 1.1, True),
        ("commit length", 8.81, False), ("throughput", 900.0, True), ("accepted depth", 0.5, True),
    ],
)  # fmt: skip
def test_a_figure_that_cannot_be(what: str, value: float, possible: bool) -> None:
    claim = Claim(origin="/metrics", what=what, value=value, window="lifetime")
    assert (metric_inconsistency._impossible(claim, 8) == "") is possible


@pytest.mark.parametrize(
    ("length", "agrees"), [(4.0, True), (4.4, True), (4.43, False), (3.58, True), (3.5, False)]
)
def test_a_length_is_a_depth_and_one(length: float, agrees: bool) -> None:
    depth = Claim(origin="log", what="accepted depth", value=3.0, window="w")
    claim = Claim(origin="log", what="commit length", value=length, window="w")
    assert (metric_inconsistency._beside_depth(claim, [claim, depth]) == "") is agrees
    assert metric_inconsistency._beside_depth(claim, [claim, replace(depth, window="other")]) == ""
    assert metric_inconsistency._beside_depth(depth, [claim, depth]) == ""


@pytest.mark.parametrize(("steps", "spoken"), [(32, True), (31, False)])
def test_two_requests_of_64_steps_in_all_make_it_sure(steps: int, spoken: bool) -> None:
    pair = [
        request(
            key,
            (steps, 0),
            (steps, 3 * steps),
            num_spec_steps=steps,
            disagreements=("stream 0, meta_info 96",),
        )
        for key in ("a", "b")
    ]
    ruling = metric_inconsistency.judge(case(*pair))
    assert ruling is not None
    assert ruling.verdict.kind == "commit_path"
    assert (ruling.verdict.confidence == "high") is spoken
    assert ruling.explains == pytest.approx(4.0)
    assert ruling.voids


@pytest.mark.parametrize(
    ("streamed", "told", "lost"),
    [(50, 100, True), (51, 100, False), (50, 99, False), (0, 300, True)],
)
def test_accepted_and_not_committed(streamed: int, told: int, lost: bool) -> None:
    pair = [request(key, (100, streamed), (100, told)) for key in ("a", "b")]
    pooled = metric_inconsistency._pooled(pair)
    assert pooled is not None
    assert (pooled.steps, pooled.requests, pooled.origin) == (200, 2, "meta_info")
    assert pooled.not_committed is lost


@pytest.mark.parametrize(("shares", "same"), [((0.5, 0.4), True), ((0.5, 0.39), False)])
def test_two_histograms_within_a_tenth_are_one_rule(shares: tuple[float, float], same: bool) -> None:
    points = [
        point(arm, SHORT, 3.0, histogram=(0, 0, round(100 * share), round(100 * (1 - share)), 0, 0, 0, 0))
        for arm, share in zip(("repeat", "random"), shares, strict=True)
    ]
    assert (simulated(case(setup(tuple(points)), *points)) is not None) is same


def recorded(tokens: int, histogram: tuple[int, ...]) -> CommitRequest:
    return CommitRequest(
        key="a", purpose="point", arm="", context_tokens=tokens, prompt=0, acceptance_histogram=histogram
    )


@pytest.mark.parametrize(
    ("lengths", "histograms", "forged"),
    [
        ((100, 100, 400), ((0, 0, 0, 64, 0, 0, 0, 0),) * 3, True),
        ((100, 100, 399), ((0, 0, 0, 64, 0, 0, 0, 0),) * 3, False),
        ((100, 400), ((0, 0, 0, 64, 0, 0, 0, 0),) * 2, False),
        ((100, 100, 400), ((0, 0, 0, 31, 0, 0, 0, 0),) * 3, False),
        ((100, 100, 400), ((0, 0, 30, 34, 0, 0, 0, 0),) * 3, True),
        ((100, 100, 400), ((0, 0, 30, 34, 0, 0, 0, 0), (0, 0, 34, 30, 0, 0, 0, 0), (0, 0, 5, 59, 0, 0, 0, 0)), False),
        ((100, 100, 400), ((0, 0, 30, 30, 4, 0, 0, 0),) * 3, False),
        ((100, 100, 400), ((64, 0, 0, 0, 0, 0, 0, 0),) * 3, False),
        ((100, 100, 400), ((0, 0, 0, 0, 0, 0, 0, 64),) * 3, False),
    ],
    ids=["alike", "lengths near each other", "two", "few steps", "two bins", "two bins in other shares", "three bins", "nothing right", "all right"],
)  # fmt: skip
def test_recorded_requests_whose_steps_are_all_alike_are_forged(
    lengths: tuple[int, ...], histograms: tuple[tuple[int, ...], ...], forged: bool
) -> None:
    requests = [recorded(*each) for each in zip(lengths, histograms, strict=True)]
    ruling = simulated(Case(tuple(requests), ()))
    assert (ruling is not None) is forged
    if ruling is not None:
        assert (ruling.verdict.kind, ruling.verdict.confidence) == ("histogram", "medium")
        assert "3 requests of 100 to 400 tokens" in ruling.verdict.reasons[0]


# --- time -------------------------------------------------------------------------------------------------


def clocked(*times: float, steps: int = 32, **other: Any) -> tuple[CommitPoint, ...]:
    points = ladder("repeat", *([7.9] * len(times)), contexts=(1024, 4096, 16384, 65536)[: len(times)])
    return tuple(
        replace(p, step_ms=ms, step_ms_low=ms * 0.99, step_ms_high=ms * 1.01, timed_steps=steps, **other)
        for p, ms in zip(points, times, strict=True)
    )


def test_a_step_time_needs_32_timed_steps() -> None:
    assert len(timed(case(*clocked(8.0, 9.0)))) == 2
    assert timed(case(*clocked(8.0, 9.0, steps=31))) == ()


@pytest.mark.parametrize(("long", "grown"), [(10.0, True), (9.99, False)])
def test_growth_is_a_quarter_more(long: float, grown: bool) -> None:
    assert (growth(case(*clocked(8.0, long))) is not None) is grown


@pytest.mark.parametrize(("lengths", "said"), [(2, True), (3, False)])
def test_a_slope_needs_three_lengths(lengths: int, said: bool) -> None:
    found = growth(case(*clocked(8.0, 16.0, 64.0)[:lengths]))
    assert found is not None
    assert any(f"{lengths} give no slope" in text for text in found.missing) is said


def test_the_line_through_the_step_times() -> None:
    points = clocked(9.024, 12.096, 24.384, 73.536)
    exact = growth(case(*(replace(p, prompt_tokens=None) for p in points)))
    assert exact is not None
    # 0.001 ms per token, from 8 ms on.
    assert exact.line.slope == pytest.approx(0.001)
    assert exact.line.intercept == pytest.approx(8.0)
    assert exact.line.r_squared == pytest.approx(1.0)
    assert exact.ratio == pytest.approx(73.536 / 9.024)


CONFIG = ModelConfig(
    role="target", path="/m", num_hidden_layers=32, num_key_value_heads=8, head_dim=128, dtype="bfloat16",
    num_attention_heads=32,
)  # fmt: skip


def test_what_reading_the_cache_takes() -> None:
    # 32 layers × 8 heads × 128 × 2 (K and V) × 2 bytes = 131072 bytes a token; at 1000 GB/s 0.000131 ms.
    found = growth(Case((*clocked(8.0, 16.0, 64.0), CONFIG), gpu_bandwidth=1000.0))
    assert found is not None
    assert found.roofline is not None
    assert found.roofline.bytes_per_token == 131072
    assert found.roofline.ms_per_token == pytest.approx(0.000131072)
    assert found.missing == ()


@pytest.mark.parametrize(("times", "beyond"), [(4.99, False), (5.01, True)])
def test_beyond_memory_is_five_times_the_roofline(times: float, beyond: bool) -> None:
    rise = 0.000131072 * times
    points = tuple(
        replace(
            p, step_ms=1 + rise * p.context_tokens, step_ms_low=None, step_ms_high=None, prompt_tokens=None
        )
        for p in clocked(1.0, 1.0, 1.0, 1.0)
    )
    found = growth(Case((*points, CONFIG), gpu_bandwidth=1000.0))
    assert found is not None
    assert found.beyond_memory is beyond
    assert f"{1 / times:.0%} of that growth (1000 GB/s, the host's gpu_bandwidth)" in found.explained


@pytest.mark.parametrize(
    ("changes", "size"),
    [
        ({}, 131072), ({"layer_types": ("full_attention",) * 8 + ("sliding_attention",) * 24}, 32768),
        ({"dtype": "float32"}, 262144), ({"num_key_value_heads": None}, 524288), ({"head_dim": None, "hidden_size": 4096}, 131072),
        ({"kv_lora_rank": 512, "qk_rope_head_dim": 64}, 36864), ({"kv_lora_rank": 512}, 32768), ({"dtype": ""}, 131072),
    ],
)  # fmt: skip
def test_bytes_of_the_cache_per_token(changes: dict[str, Any], size: int) -> None:
    found = growth(case(*clocked(8.0, 16.0), replace(CONFIG, **changes)))
    assert found is not None
    assert found.roofline is not None
    assert found.roofline.bytes_per_token == size


def test_five_lengths() -> None:
    assert five(1024, 16384) == [1024, 2048, 4096, 8192, 16384]
    assert five(512, 8192) == [512, 1024, 2048, 4096, 8192]


# --- speed ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("context", "plain"),
    [(2048, 10.0), (8192, 20.0), (5120, 15.0), (3072, pytest.approx(35 / 3)), (512, None), (65536, None)],
)
def test_a_baseline_between_two_lengths(context: int, plain: Any) -> None:
    baseline = ((2048, 10.0), (8192, 20.0))
    assert spec_net_loss._without(baseline, point("prose", context, 2.0)) == plain


def test_a_point_of_64_steps_half_of_them_timed_says_what_speculation_costs() -> None:
    def timed_points(**changes: Any) -> list[CommitPoint]:
        fits = replace(point("prose", SHORT, 2.0, steps=64), step_ms=20.0, timed_steps=32)
        return spec_net_loss._timed(case(replace(fits, **changes)), "prose")

    assert len(timed_points()) == 1
    assert timed_points(steps=63) == timed_points(timed_steps=31) == timed_points(step_ms=None) == []
    assert timed_points(commit_mean=None) == timed_points(arm="repeat") == []


@pytest.mark.parametrize(
    ("context", "plain"), [(1862, 10.0), (1861, None), (2275, 10.0), (9102, 20.0), (9103, None)]
)
def test_a_baseline_holds_a_tenth_around_its_length(context: int, plain: float | None) -> None:
    assert spec_net_loss._without(((2048, 10.0), (8192, 20.0)), point("prose", context, 2.0)) == plain


@pytest.mark.parametrize(("step_ms", "loses"), [(20.0, False), (20.1, True)])
def test_speculation_that_just_pays_loses_nothing(step_ms: float, loses: bool) -> None:
    spent = replace(point("prose", SHORT, 2.0), step_ms=step_ms, timed_steps=100)
    found = spec_net_loss.judge(case(setup((spent,), baseline=((SHORT, 10.0),)), spent))
    assert (found is not None) is loses


@pytest.mark.parametrize(("steps", "contradicted"), [(64, True), (63, False)])
def test_a_claim_is_held_against_64_steps(steps: int, contradicted: bool) -> None:
    counted = request("a", (steps, 0), (steps, 0), num_spec_steps=steps, num_accepted_draft_tokens=0)
    claim = Claim(origin="/metrics", what="accept length", value=3.0, window="during the probe")
    told = metric_inconsistency._beside_measured(case(counted, claim), claim)
    assert bool(told) is contradicted
    assert (
        metric_inconsistency._beside_measured(case(counted, claim), replace(claim, window="lifetime")) == ""
    )
    assert metric_inconsistency._beside_measured(case(counted, claim), replace(claim, value=1.0)) == ""


@pytest.mark.parametrize(
    ("depth", "streamed", "deep"), [(3.0, 50, True), (3.0, 51, False), (1.0, 0, True), (0.9, 0, False)]
)
def test_a_stated_depth_beside_one_token_a_step(depth: float, streamed: int, deep: bool) -> None:
    claims = (
        Claim(origin="log", what="accepted depth", value=depth, window="w"),
        Claim(origin="log", what="commit length", value=1.0, window="w"),
    )
    pooled = metric_inconsistency._pooled([request("a", (100, streamed), (100, streamed))])
    assert metric_inconsistency._deep(case(*claims), pooled) is deep
    assert not metric_inconsistency._deep(case(*claims), None)
    assert not metric_inconsistency._deep(case(claims[0]), pooled)


@pytest.mark.parametrize(("steps", "shown"), [(64, 1.0), (63, None)])
def test_steps_as_they_came_out(steps: int, shown: float | None) -> None:
    streamed = request("a", (1, 0), (1, 0), step_commits=(1,) * steps)
    assert metric_inconsistency._shown(case(streamed)) == shown


def test_a_bare_setup_says_nothing() -> None:
    assert judged((CommitSetup(engine="sglang", base="x", planned_only=True),)) == ()
