"""Where speculation pays: break-even commit, gain and the length from which it loses, by hand."""

from __future__ import annotations

from typing import Any

import pytest

from ddprobe import statistics
from ddprobe.facts import CommitPoint, SpeculationGain
from ddprobe.probes.draft import _gain


def point(context: int, ms: float | None, commit: float | None = 4.0, **more: Any) -> CommitPoint:
    return CommitPoint(
        **{
            "arm": "repeat", "context_tokens": context, "purpose": "step-time", "commit_mean": commit, "commit_low": 3.8,
            "commit_high": 4.2, "step_ms": ms, **more,
        }
    )  # fmt: skip


def gain(context: int, high: float | None) -> SpeculationGain:
    return SpeculationGain(
        arm="repeat", context_tokens=context, plain_ms=8.0, break_even=2.0, gain_low=0.1, gain_high=high
    )


def test_a_step_must_commit_its_time_over_that_of_a_token() -> None:
    """A step of 20 ms against 8 ms a token: 2.5 tokens; with 4 committed it is 1.6 times as fast."""
    (found,) = _gain.gains([point(1024, 20.0, step_ms_from=19.0, step_ms_to=21.0)], ((1024, 8.0),))
    assert (found.plain_ms, found.break_even, found.gain) == (8.0, 2.5, 1.6)
    assert (found.break_even_low, found.break_even_high) == (19 / 8, 21 / 8)
    assert found.gain_low == pytest.approx(3.8 / (21 / 8))
    assert found.gain_high == pytest.approx(4.2 / (19 / 8))
    assert found.base == ""


def test_the_plain_servers_own_interval_widens_it() -> None:
    beside = point(
        1024, 8.0, 1.0, purpose="plain", base="http://b:1", step_ms_from=7.5, step_ms_to=8.5
    )  # fmt: skip
    (found,) = _gain.gains([point(1024, 20.0, step_ms_from=19.0, step_ms_to=21.0)], ((1024, 8.0),), [beside])
    assert (found.break_even_low, found.break_even_high) == (19 / 8.5, 21 / 7.5)
    assert found.base == "http://b:1"


def test_between_two_lengths_the_time_without_is_on_the_line_and_beyond_them_unknown() -> None:
    ladder = [point(context, 20.0) for context in (512, 1024, 2048, 4096, 8192)]
    found = list(_gain.gains(ladder, ((1024, 8.0), (3072, 12.0))))
    assert [(each.context_tokens, each.plain_ms) for each in found] == [(1024, 8.0), (2048, 10.0)]


def test_what_is_not_timed_or_counted_has_no_gain() -> None:
    assert list(_gain.gains([point(1024, None)], ((1024, 8.0),))) == []
    assert list(_gain.gains([point(1024, 20.0)], ((1024, 0.0),))) == []
    (found,) = _gain.gains(
        [point(1024, 20.0, None, commit_low=None, commit_high=None)], ((1024, 8.0),)
    )  # fmt: skip
    assert (found.break_even, found.gain, found.gain_low, found.gain_high) == (2.5, None, None, None)


@pytest.mark.parametrize(
    ("highs", "start"),
    [
        ((1.5, 0.99, 0.5), 2048),
        ((1.5, 1.0, 0.5), 4096),
        ((0.9, 1.2, 0.5), 4096),
        ((0.9, 0.8, 0.7), 1024),
        ((1.5, 1.2, 1.0), None),
        ((0.9, 0.8, None), None),
        ((), None),
    ],
)
def test_it_loses_from_where_it_surely_does_at_every_longer_length(
    highs: tuple[float | None, ...], start: int | None
) -> None:
    ladder = [gain(context, high) for context, high in zip((1024, 2048, 4096), highs, strict=False)]
    assert _gain.loses_from(list(reversed(ladder))) == start


@pytest.mark.parametrize(
    ("place", "near", "value"),
    [(10, 0.0, 1.0), (20, 0.0, 2.0), (15, 0.0, 1.5), (11, 0.1, 1.0), (11, 0.05, 1.1), (9, 0.0, None), (21, 0.0, None), (21, 0.1, 2.0)],
)  # fmt: skip
def test_a_value_between_two_places(place: float, near: float, value: float | None) -> None:
    assert statistics.between(((20, 2.0), (10, 1.0)), place, near) == pytest.approx(value)


def test_of_no_pairs_there_is_no_value() -> None:
    assert statistics.between((), 10) is None
    assert statistics.between(((10, 1.0),), 10) == 1.0
