"""Verdicts on time over what others collected, on their limits and beside them."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from ddprobe.facts import DecodeBin, DecodeSeries, ModelConfig, PlainSpeed
from ddprobe.model import Fact, Outcome
from tests.collected_facts import ruling, verdict
from tests.test_collected import SPECULATES, bins, fail, graphs, judged, log, names, point, repeat, timed

ATTENTION = "attention_kernel_bottleneck"


def ladder(
    *pairs: tuple[float, float], contexts: tuple[int, ...] = (1024, 16384, 65536, 131072)
) -> tuple[Fact, ...]:
    """Repeated text with (commit, milliseconds) at these lengths."""
    return tuple(
        point("repeat", context, commit, ms) for context, (commit, ms) in zip(contexts, pairs, strict=False)
    )


# --- attention: what counts as a slope --------------------------------------------------------------------


def test_what_is_explained_is_how_much_longer_a_step_takes() -> None:
    assert ruling(ATTENTION, *timed(20, 30, 50)).explains == 2.5


@pytest.mark.parametrize(("dip", "found"), [(36.0, True), (35.9, False)])
def test_a_length_may_be_a_tenth_faster_than_the_one_before(dip: float, found: bool) -> None:
    assert (ATTENTION in names(*timed(20, 40, dip, 60))) is found


def test_the_commit_holds_down_to_three_quarters_of_the_first() -> None:
    held = verdict(ATTENTION, *ladder((8.0, 20), (7.9, 40), (6.0, 80)))
    assert "meanwhile the commit stays: 8.00 and 6.00" in held.reasons
    assert (held.confidence, len(held.ruled_out)) == ("medium", 1)
    fallen = verdict(ATTENTION, *ladder((8.0, 20), (7.9, 40), (5.9, 80)))
    assert any(reason.startswith("the commit falls too (8.00 to 5.90)") for reason in fallen.reasons)
    assert (fallen.confidence, fallen.ruled_out) == ("low", ())


def test_a_commit_lost_in_between_and_made_good_holds() -> None:
    assert verdict(ATTENTION, *ladder((7.9, 20), (5.0, 40), (7.9, 80))).confidence == "medium"
    assert verdict(ATTENTION, *ladder((5.0, 20), (7.9, 40), (5.0, 80))).confidence == "medium"


def test_two_lengths_are_a_weak_slope() -> None:
    assert verdict(ATTENTION, *timed(20, 60)).confidence == "low"
    assert verdict(ATTENTION, *timed(20, 30, 60)).confidence == "medium"


def test_a_cause_or_a_roofline_makes_a_slope_sure() -> None:
    target = ModelConfig(
        role="target", path="t", num_hidden_layers=36, num_key_value_heads=8, head_dim=128, dtype="bfloat16"
    )
    assert verdict(ATTENTION, *timed(20, 100, 400), target, bandwidth=8000.0).confidence == "high"
    serial = dataclasses.replace(fail("SA01"), outcome=Outcome.WARN)
    caused = verdict(ATTENTION, *timed(20, 30, 60), findings=(serial,))
    assert (caused.confidence, caused.kind) == ("high", "serial_prefix")
    assert caused.next[0].startswith("switch speculation off")
    assert "mend SA01" in caused.next
    assert verdict(ATTENTION, *timed(20, 60), findings=(serial,)).confidence == "low"


FIVE_LENGTHS = "step times at five lengths: fewer do not tell a line from a curve"


def test_what_a_slope_lacks() -> None:
    four = timed(20, 30, 40, 60)
    five = (*four, point("repeat", 262144, 7.9, 80))
    assert FIVE_LENGTHS in verdict(ATTENTION, *four).missing
    assert FIVE_LENGTHS not in verdict(ATTENTION, *five).missing
    target = ModelConfig(
        role="target", path="t", num_hidden_layers=1, num_key_value_heads=1, head_dim=128, dtype="bfloat16"
    )
    plain = PlainSpeed(context_tokens=2048, tok_s=1.0)
    without = verdict(ATTENTION, *four).missing
    known = verdict(ATTENTION, *four, target, plain).missing
    assert [text.split(":")[0] for text in without] == [
        "step times at five lengths",
        "the target's config.json",
        "the same lengths with speculation off",
    ]
    assert known == (FIVE_LENGTHS,)


def test_five_times_what_the_memory_takes_is_the_kernel_and_less_is_not() -> None:
    """2 × 64 × 256 × 4 bytes = 2^17 per token, at 2^30 bytes a second: 1000 / 2^13 ms; five times 64512 tokens: 39375 ms."""
    target = ModelConfig(
        role="target", path="t", num_hidden_layers=1, num_key_value_heads=64, head_dim=256, dtype="float32"
    )

    def found(longest: float) -> bool:
        return ATTENTION in names(*timed(39375, 39375, longest), target, bandwidth=1.073741824)

    assert found(78750)
    assert found(78751)
    # A slope is from end to end: 39375 more in 64512 tokens, and not in the 49152 of the last two lengths alone.
    assert not found(78749)


@pytest.mark.parametrize(("longest", "told"), [(25.0, True), (24.9, False)])
def test_a_quarter_more_is_worth_a_word(longest: float, told: bool) -> None:
    (found,) = judged(*timed(20, 20, longest))
    assert found.name == "healthy"
    assert any("what the drafter does holds" in reason for reason in found.reasons) is told


@pytest.mark.parametrize(("longest", "flat"), [(24.9, True), (25.0, False)])
def test_a_step_time_that_stays_shows_that_the_drafts_are_what_is_lost(longest: float, flat: bool) -> None:
    found = verdict("long_context_bug", *ladder((7.9, 20), (7.9, 20), (1.0, longest)))
    assert any("the loss is the drafts'" in reason for reason in found.reasons) is flat
    short = verdict("long_context_bug", *ladder((7.9, 20), (1.0, 20)))
    assert not any("the loss is the drafts'" in reason for reason in short.reasons)


def test_repeated_text_is_looked_at_before_any_other() -> None:
    prose = [
        point("prose", context, 2.0, ms)
        for context, ms in ((1024, 20), (16384, 60), (65536, 200), (131072, 400))
    ]
    assert ATTENTION not in names(*timed(20, 21, 22), *prose)
    assert ATTENTION in names(*prose)


def test_one_step_time_is_no_slope_and_hides_none() -> None:
    steep = log(*bins(3.2, 3.15, 3.1, tok_s=(64.0, 30.0, 10.0)))
    assert names(point("repeat", 1024, 7.9, 20), steep) == [ATTENTION]
    assert names(point("repeat", 1024, 7.9, 20), point("repeat", 16384, 7.9), steep)[0] == ATTENTION


def test_a_step_time_without_a_length_is_no_point_of_a_slope() -> None:
    assert ATTENTION not in names(point("repeat", 0, 7.9, 10), *timed(20, 21))
    assert ATTENTION not in names(point("repeat", 0, 7.9, 10), point("repeat", 1024, 7.9, 20))


def test_the_steepest_log_speaks() -> None:
    """3.2 tokens at 64 a second are 50 ms a step; 3.2 at 8 are 400."""
    flat = log(*bins(3.2, 3.2, 3.2, tok_s=(64.0, 64.0, 64.0)))
    steep = log(*bins(3.2, 3.2, 3.2, tok_s=(64.0, 32.0, 8.0)), run="b")
    for logs in ((flat, steep), (steep, flat)):
        found = verdict(ATTENTION, *logs)
        assert found.reasons[0].startswith("a step takes 50 ms at 1.5k and 400 ms at 24k, 8.0 times as long")


def test_of_a_log_only_ranges_of_one_number_of_requests_are_compared() -> None:
    alone = bins(3.2, 3.2, 3.2, tok_s=(64.0, 60.0, 56.0))
    crowd = tuple(dataclasses.replace(bin, running=8, tok_s=5.0) for bin in alone[:2])
    assert ATTENTION not in names(log(*alone, *crowd))
    # Of as many ranges each, those of fewer requests.
    crowd = tuple(
        dataclasses.replace(bin, running=8, tok_s=tok_s)
        for bin, tok_s in zip(alone, (64.0, 20.0, 5.0), strict=True)
    )
    assert ATTENTION not in names(log(*crowd, *alone))
    more = (*crowd, dataclasses.replace(crowd[-1], low=1 << 17, high=1 << 18, tok_s=2.0))
    assert ATTENTION in names(log(*alone, *more))


def test_a_range_without_throughput_is_no_point_of_a_slope() -> None:
    first, second, third = bins(3.2, 3.2, 3.2, tok_s=(64.0, 30.0, 10.0))
    assert ATTENTION not in names(log(first, second, dataclasses.replace(third, tok_s=None)))


# --- launches ---------------------------------------------------------------------------------------------


def ranges(graphed: dict[str, Any], plain: dict[str, Any]) -> DecodeSeries:
    """A range from graphs at 20 ms a step, and one without at 40, each with what is told."""
    known: dict[str, Any] = {
        "low": 1024, "high": 2048, "running": 2, "lines": 8, "commit_mean": 4.0, "commit_low": 4.0, "commit_high": 4.0,
        "rate_mean": 0.4,
    }  # fmt: skip
    first = {**known, "tok_s": 200.0, "graph_share": 1.0, **graphed}
    second = {**known, "tok_s": 100.0, "graph_share": 0.0, **plain}
    return log(DecodeBin(**first), DecodeBin(**second))


@pytest.mark.parametrize(
    ("graphed", "plain", "found"),
    [
        ({"graph_share": 0.9}, {}, True),
        ({"graph_share": 0.89}, {}, False),
        ({}, {"graph_share": 0.1}, True),
        ({}, {"graph_share": 0.11}, False),
        ({"lines": 2}, {"lines": 2}, True),
        ({"lines": 1}, {}, False),
        ({}, {"lines": 1}, False),
        ({}, {"low": 2048, "high": 4096}, True),
        ({}, {"low": 2048, "high": 4100}, False),
        ({"low": 2048, "high": 4096}, {}, True),
        ({"low": 2048, "high": 4100}, {}, False),
        ({}, {"running": 4}, True),
        ({}, {"running": 5}, False),
        ({"running": 200}, {}, True),
        ({}, {"graph_share": None}, False),
        ({}, {"tok_s": None}, False),
    ],
)
def test_ranges_are_alike_in_all_but_the_graphs(
    graphed: dict[str, Any], plain: dict[str, Any], found: bool
) -> None:
    assert ("launch_or_cpu_bound" in names(ranges(graphed, plain))) is found


def test_the_largest_difference_is_told_with_its_lines() -> None:
    found = ruling("launch_or_cpu_bound", graphs(1.0, 0.0, ms=(20, 40)), graphs(1.0, 0.0, ms=(20, 60)))
    assert found.explains == pytest.approx(3.0)
    assert found.verdict.reasons == (
        "with CUDA graphs a step takes 20 ms (2 running, 8 lines), without them 60 ms (4 running, 8 lines), at like "
        "contexts",
    )


# --- the machine ------------------------------------------------------------------------------------------


def twice(again: float, commit: float = 8.0, **other: Any) -> tuple[Fact, ...]:
    return (
        point("repeat", 1024, 8.0, 40.0),
        point("repeat", 16384, 8.0, 41.0),
        point("repeat #2", 1024, commit, again, **other),
    )


@pytest.mark.parametrize(("again", "kind"), [(60.0, "slower"), (20.0, "faster")])
def test_the_machine_may_get_faster_or_slower(again: float, kind: str) -> None:
    found = ruling("gpu_state", *twice(again))
    assert (found.verdict.kind, found.explains) == (kind, max(again, 40.0) / min(again, 40.0))


def test_a_tenth_is_no_change() -> None:
    assert "gpu_state" not in names(*twice(44.0))
    assert "gpu_state" in names(*twice(44.01))


@pytest.mark.parametrize(("commit", "found"), [(7.2, True), (7.19, False)])
def test_a_tenth_of_the_commit_is_the_same(commit: float, found: bool) -> None:
    assert ("gpu_state" in names(*twice(60.0, commit))) is found


def test_the_greatest_move_of_several_is_told() -> None:
    facts = (*twice(60.0), point("repeat #3", 1024, 8.0, 100.0), point("repeat #4", 1024, 8.0, 50.0))
    assert "40 ms a step at first and 100 ms another time" in verdict("gpu_state", *facts).reasons[0]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(point("repeat #2", 1024, 8.0), id="no step time"),
        pytest.param(point("repeat #2", 1024, None, 60.0), id="no commit"),
        pytest.param(point("repeat #2", 1024, 8.0, 60.0, cached_tokens=1000), id="from the cache"),
        pytest.param(point("repeat #2", 2048, 8.0, 60.0), id="another length"),
        pytest.param(point("repeat-wide", 1024, 8.0, 60.0), id="another text"),
        pytest.param(point("repeat #2b", 1024, 8.0, 60.0), id="another series"),
    ],
)
def test_only_the_same_measured_again_shows_the_machine(other: Fact) -> None:
    assert "gpu_state" not in names(
        point("repeat", 1024, 8.0, 40.0), point("repeat", 16384, 8.0, 41.0), other
    )


def test_texts_without_a_length_are_not_compared() -> None:
    assert "gpu_state" not in names(point("code", 0, 3.0, 40.0), point("code #2", 0, 3.0, 60.0))


# --- without speculation ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("tok_s", "found"), [(89.9, True), (90.0, False)])
def test_a_tenth_slower_than_without_is_a_loss(tok_s: float, found: bool) -> None:
    facts = (point("repeat", 1024, 7.9, tok_s=tok_s), PlainSpeed(context_tokens=1024, tok_s=100.0))
    assert ("spec_net_loss" in names(*facts)) is found


def test_the_greatest_loss_is_told() -> None:
    facts = (
        point("repeat", 1024, 7.9, tok_s=50.0),
        point("code", 1024, 3.0, tok_s=80.0),
        point("prose", 16384, 2.0, tok_s=20.0),
        PlainSpeed(context_tokens=1024, tok_s=100.0),
        PlainSpeed(context_tokens=16384, tok_s=80.0),
    )
    found = ruling("spec_net_loss", *facts)
    assert found.explains == 4.0
    assert found.verdict.reasons == (
        "prose at 16k gives 20 tok/s with speculation, and 80 without: 4.0 times slower",
    )
    assert found.verdict.missing == ()
    easy = verdict("spec_net_loss", facts[0], *facts[3:])
    assert easy.missing == ("the same with ordinary text: repeated text is the best case",)


def test_a_point_without_throughput_or_length_is_not_compared() -> None:
    plain = (PlainSpeed(context_tokens=1024, tok_s=100.0), PlainSpeed(context_tokens=0, tok_s=100.0))
    assert "spec_net_loss" not in names(*repeat(7.9, 7.9, 7.9), *plain)
    assert "spec_net_loss" not in names(point("repeat", 0, 7.9, tok_s=5.0), *plain)


def test_speculation_that_pays_is_not_told_of() -> None:
    facts = (*timed(20, 21, 22), PlainSpeed(context_tokens=1024, tok_s=100.0), SPECULATES)
    assert names(*facts) == ["healthy"]
