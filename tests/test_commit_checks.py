"""The controls of a commit probe: told apart only where the numbers tell them apart."""

from __future__ import annotations

from typing import Any

import pytest

from ddprobe.facts import CommitRequest
from ddprobe.probes.draft import _commit_checks as checks


def request(*commits: int, ms: float = 8.0, **more: Any) -> CommitRequest:
    given: dict[str, Any] = {
        "key": "k",
        "purpose": "point",
        "arm": "repeat",
        "context_tokens": 1024,
        "prompt": 0,
        "prompt_tokens": 1024,
        "cached_tokens": 1000,
        "output_tokens": 1 + sum(commits),
        "step_commits": commits,
        "step_ms": (ms,) * len(commits),
        "output_hash": "aa",
        **more,
    }
    return CommitRequest(**given)


ALL_RIGHT = request(*[8] * 17)


def test_the_same_from_the_cache() -> None:
    check = checks.cold_cached([(ALL_RIGHT, ALL_RIGHT)])
    assert check.agrees is True
    assert (check.first, check.second, check.steps) == (8.0, 8.0, 34)
    assert (
        "commits 8.00 per step computed whole and 8.00 from the cache (1000 tokens) (34 steps)" in check.text
    )


def test_less_from_the_cache_every_time() -> None:
    lost = request(*[1] * 60)
    assert checks.cold_cached([(ALL_RIGHT, lost)] * 2).agrees is False


def test_less_from_the_cache_once_is_chance() -> None:
    assert checks.cold_cached([(ALL_RIGHT, request(*[1] * 60)), (ALL_RIGHT, ALL_RIGHT)]).agrees is True


def test_more_from_the_cache_is_no_loss() -> None:
    assert checks.cold_cached([(request(*[1] * 60), ALL_RIGHT)]).agrees is True


@pytest.mark.parametrize("served", [0, 100])
def test_a_cache_that_served_nothing_proves_nothing(served: int) -> None:
    check = checks.cold_cached([(ALL_RIGHT, request(*[1] * 60, cached_tokens=served))])
    assert check.agrees is None
    assert f"served {served} of 1024 tokens" in check.text


def test_a_failed_request_proves_nothing() -> None:
    assert checks.cold_cached([(ALL_RIGHT, request(error="HTTP 500"))]).agrees is None


def test_without_any_commit_length_nothing_is_proved() -> None:
    silent = request(output_tokens=65)
    assert checks.cold_cached([(silent, silent)]).agrees is None


def test_greedy_output_repeats_or_not() -> None:
    assert checks.same_prompt(ALL_RIGHT, ALL_RIGHT).agrees is True
    assert checks.same_prompt(ALL_RIGHT, request(8, output_hash="bb")).agrees is False
    assert checks.same_prompt(ALL_RIGHT, request(8, output_hash="")).agrees is None


def test_nothing_drifted() -> None:
    again = [request(*[8] * 17, ms=9.0)]
    assert checks.first_again([ALL_RIGHT] * 4, again).agrees is True
    check = checks.step_time_again([ALL_RIGHT] * 4, again)
    assert check.agrees is True
    assert check.text.endswith(
        "took 8 ms at the start and 9 ms at the end: no drift, less than 1.25 times as long"
    )


def test_prompts_that_differ_among_themselves_are_no_drift() -> None:
    """The first prompt is easier than the three others, and it alone is sent again."""
    easy, hard = request(*[8] * 17, prompt=0), [request(*[5] * 17, prompt=n) for n in (1, 2, 3)]
    check = checks.first_again([easy, *hard], [request(*[8] * 17, prompt=0)])
    assert check.agrees is True
    assert (check.first, check.second, check.steps) == (8.0, 8.0, 34)
    assert checks.first_again([easy, *hard], [request(*[5] * 17, prompt=0)]).agrees is False


def test_the_step_time_drifted() -> None:
    again = [request(*[8] * 17, ms=16.0)]
    assert checks.first_again([ALL_RIGHT] * 4, again).agrees is True
    check = checks.step_time_again([ALL_RIGHT] * 4, again)
    assert check.agrees is False
    assert check.text.endswith("the step time drifted")


def test_step_times_that_are_not_known_prove_nothing() -> None:
    assert checks.step_time_again([ALL_RIGHT], [request(8, 8, 8, step_ms=())]).agrees is None


def test_a_drift_below_half_a_millisecond_is_none() -> None:
    assert checks.step_time_again([request(*[8] * 17, ms=0.1)], [request(*[8] * 17, ms=0.3)]).agrees is True


def test_the_servers_state_changed() -> None:
    check = checks.first_again([ALL_RIGHT] * 4, [request(*[1] * 100)])
    assert check.agrees is False
    assert "8.00 per step at the start and 1.00 at the end" in check.text


def test_counts_stand_in_where_the_order_is_not_known() -> None:
    # 10 steps with none right, 10 with all seven: the mean is 4.5.
    counted = request(step_commits=(), step_ms=(), acceptance_histogram=(10, 0, 0, 0, 0, 0, 0, 10))
    assert checks.compare([counted], [counted]) == (4.5, 4.5, False)
    mean_only = request(step_commits=(), step_ms=(), num_spec_steps=8, num_accepted_draft_tokens=24)
    assert checks.compare([mean_only], [mean_only])[0] == 4.0


def test_small_samples_are_not_told_apart() -> None:
    # 3.0 and 2.25 over eight steps each, spread 2.1 and 1.8: less than one standard error of the difference.
    assert checks.compare([request(1, 1, 1, 1, 5, 5, 5, 5)], [request(1, 1, 1, 1, 1, 3, 5, 5)])[2] is False


def test_two_step_times_that_differ_say_what_they_are_within() -> None:
    """Without a request's first two steps they took 1.2 to 2.0 ms, evenly: a tenth of that way in is 1.28."""
    spread = request(*[8] * 11, step_ms=tuple(1 + n / 10 for n in range(11)))
    check = checks.step_time_again([spread], [request(*[8] * 11, ms=1.5)])
    assert check.agrees is True
    assert check.text.endswith("no drift, within the spread of the steps (10–90 %: 1.28–1.92 ms)")
    near = checks.step_time_again([request(*[8] * 11, ms=1.12)], [request(*[8] * 11, ms=1.55)])
    assert near.agrees is True
    assert near.text.endswith(
        "took 1.12 ms at the start and 1.55 ms at the end: no drift, less than 0.5 ms apart"
    )
    same = checks.step_time_again([request(*[8] * 11)], [request(*[8] * 11)])
    assert same.text.endswith("took 8 ms at the start and 8 ms at the end: no drift")
