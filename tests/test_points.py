"""From one answer to the record of a request, from requests to a point: worked out by hand."""

from __future__ import annotations

import random
from typing import Any

import pytest

from ddprobe.engines.generation import Generated, StreamedStep
from ddprobe.facts import Account, CommitRequest
from ddprobe.model import Cite
from ddprobe.probes.draft._points import point
from ddprobe.probes.draft._requests import request_fact


def record(generated: Generated, ceiling: int | None = 4, **more: Any) -> CommitRequest:
    return request_fact(
        generated,
        key="r1",
        purpose="point",
        arm="repeat",
        context_tokens=1024,
        prompt=0,
        max_tokens=32,
        ceiling=ceiling,
        **more,
    )


def streamed(*tokens: int, start: float = 1.0, each: float = 0.01) -> tuple[StreamedStep, ...]:
    return tuple(StreamedStep(count, start + each * (at + 1)) for at, count in enumerate(tokens))


# 32 tokens of a drafter that is always right, K = 3: the eighth step is cut after 3 of its 4 tokens.
PERFECT = Generated(
    prompt_tokens=1024,
    cached_tokens=1000,
    output_tokens=32,
    ids=tuple(range(32)),
    finish="length",
    first_token_at=1.0,
    steps=streamed(4, 4, 4, 4, 4, 4, 4, 3),
    last_step_cut=True,
    accounts=(
        Account(
            origin="meta_info histogram",
            steps=8,
            accepted=24,
            drafted=24,
            histogram=(0, 0, 0, 8),
            last_step_whole=True,
        ),
        Account(
            origin="meta_info",
            steps=8,
            accepted=24,
            drafted=24,
            reported_commit=4.0,
            reported_rate=1.0,
            last_step_whole=True,
        ),
        Account(origin="stream", steps=8, accepted=23, histogram=(0, 0, 1, 7), last_step_whole=False),
    ),
)


# --- one request -------------------------------------------------------------------------------------------


def test_a_cut_last_step_that_the_account_counts_whole_counts_whole() -> None:
    found = record(PERFECT, source_cite=Cite("r1"), seconds=1.1)
    assert found.num_spec_steps == 8
    assert found.num_accepted_draft_tokens == 24
    assert found.num_draft_tokens == 24
    assert found.acceptance_histogram == (0, 0, 0, 8)
    assert found.step_commits == (4,) * 8
    assert found.step_ms == pytest.approx([10.0] * 8)
    assert found.undrafted_steps == 0
    assert found.mean_acceptance_length == 4.0
    assert found.origin == "meta_info histogram"
    assert found.disagreements == ()
    assert (found.prompt_tokens, found.cached_tokens, found.output_tokens) == (1024, 1000, 32)
    assert found.first_token_ms == 1000.0
    assert found.source == (Cite("r1"),)
    assert len(found.accounts) == 3


def test_a_last_step_that_the_account_cuts_too_is_left_out_as_cut() -> None:
    # 5 steps of 4, then one of 2 that its worker counts as 1 accepted: 16 in 6 steps.
    account = Account(
        origin="meta_info", steps=6, accepted=16, drafted=18, histogram=(0, 1, 0, 5), last_step_whole=False
    )
    found = record(
        Generated(output_tokens=23, steps=streamed(4, 4, 4, 4, 4, 2), last_step_cut=True, accounts=(account,))
    )
    assert (found.num_spec_steps, found.num_accepted_draft_tokens, found.num_draft_tokens) == (5, 15, 15)
    assert found.acceptance_histogram == (0, 0, 0, 5)
    assert found.disagreements == ()


def test_a_cut_last_step_counts_whole_step_by_step() -> None:
    # Drafts of 3: 3 right, none without a draft, then 2 right of which the end of the output lets one token out.
    steps = (StreamedStep(4, 1.01, 3, 3), StreamedStep(1, 1.02, 0, 0), StreamedStep(1, 1.03, 3, 2))
    whole = Account(
        origin="block", steps=2, accepted=5, drafted=6, histogram=(0, 0, 1, 1), last_step_whole=True
    )
    found = record(
        Generated(output_tokens=7, first_token_at=1.0, steps=steps, last_step_cut=True, accounts=(whole,))
    )
    assert found.disagreements == ()
    assert found.step_commits == (4, 1, 3)
    assert (found.num_spec_steps, found.undrafted_steps, found.num_accepted_draft_tokens) == (2, 1, 5)
    assert found.acceptance_histogram == (0, 0, 1, 1)
    assert len(found.step_ms) == 3


def test_whole_last_steps_make_a_mean_without_bias() -> None:
    """Outputs end after 33 tokens; steps commit 1, 2, 3 or 4 alike, 2.5 in the mean. Long steps are cut more often."""
    draw = random.Random(5)
    kept: list[CommitRequest] = []
    whole: list[CommitRequest] = []
    for _ in range(4000):
        steps: list[int] = []
        while sum(steps) < 32:
            steps.append(draw.randint(1, 4))
        shown = (*steps[:-1], steps[-1] - (sum(steps) - 32))
        for counts_whole, into in ((True, whole), (False, kept)):
            counted = steps if counts_whole else shown
            account = Account(
                origin="meta_info",
                steps=len(steps),
                accepted=sum(counted) - len(steps),
                last_step_whole=counts_whole,
            )
            into.append(
                record(
                    Generated(
                        output_tokens=33, steps=streamed(*shown), last_step_cut=True, accounts=(account,)
                    )
                )
            )

    def mean(found: list[CommitRequest]) -> float:
        assert not any(request.disagreements for request in found)
        return sum(sum(request.step_commits) for request in found) / sum(
            len(request.step_commits) for request in found
        )

    assert mean(whole) == pytest.approx(2.5, abs=0.015)
    # Left out, as it must be where nobody knows it: low, and by no more than the doc says.
    assert mean(kept) == pytest.approx(2.5, abs=0.1)
    assert mean(kept) < 2.49


def test_a_last_step_that_was_not_cut_stays() -> None:
    account = Account(origin="meta_info", steps=3, accepted=4, drafted=9, last_step_whole=True)
    # 4 + 1 + 2 = 7 tokens, and 3 steps + 4 accepted: the last one's 2 are all it committed.
    found = record(
        Generated(output_tokens=8, steps=streamed(4, 1, 2), last_step_cut=None, accounts=(account,))
    )
    assert found.step_commits == (4, 1, 2)
    assert (found.num_spec_steps, found.num_accepted_draft_tokens) == (3, 4)
    assert found.acceptance_histogram == (1, 1, 0, 1)
    full = record(Generated(output_tokens=9, steps=streamed(4, 4), last_step_cut=True))
    assert full.step_commits == (4, 4)


def test_steps_without_a_draft_are_counted() -> None:
    # The counters know 2 steps with 5 right each; the stream shows 8 more that gave one token.
    account = Account(origin="/metrics", steps=2, accepted=10, drafted=10, last_step_whole=True)
    found = record(
        Generated(
            output_tokens=21,
            steps=streamed(1, 1, 1, 6, 1, 1, 6, 1, 1, 1),
            last_step_cut=False,
            accounts=(account,),
        ),
        ceiling=6,
    )
    assert (found.num_spec_steps, found.undrafted_steps) == (2, 8)
    assert found.mean_acceptance_length == 6.0
    measured = point([found], ceiling=6)
    assert (measured.steps, measured.drafted_steps) == (10, 2)
    assert measured.commit_mean == 2.0
    assert measured.drafted_commit_mean == 6.0
    assert measured.histogram is None


def test_steps_without_a_draft_follow_from_the_tokens_when_nothing_streams() -> None:
    account = Account(origin="/metrics", steps=2, accepted=10, drafted=10, last_step_whole=True)
    found = record(Generated(output_tokens=21, accounts=(account,)), ceiling=6)
    assert (found.num_spec_steps, found.undrafted_steps) == (2, 8)
    assert found.step_commits == ()
    measured = point([found], ceiling=6)
    assert (measured.steps, measured.commit_mean) == (10, 2.0)
    assert (measured.commit_low, measured.commit_high) == (None, None)


def test_what_the_stream_says_of_each_step_is_taken_as_it_is() -> None:
    steps = (
        StreamedStep(1, 1.01, 0, 0),
        StreamedStep(4, 1.02, 5, 3),
        StreamedStep(6, 1.03, 5, 5),
        StreamedStep(3, 1.04, 4, 2),
        StreamedStep(1, 1.05, 0, 0),
    )
    account = Account(
        origin="stream", steps=3, accepted=10, drafted=14, histogram=(0, 0, 1, 1, 0, 1), last_step_whole=False
    )
    other = Account(origin="timings", accepted=10, drafted=14, last_step_whole=False)
    found = record(
        Generated(
            output_tokens=16,
            first_token_at=1.0,
            steps=steps,
            last_step_cut=True,
            cut_steps=2,
            accounts=(account, other),
        ),
        ceiling=6,
    )
    assert found.step_commits == (1, 4, 6)
    assert (found.num_spec_steps, found.undrafted_steps, found.num_draft_tokens) == (2, 1, 10)
    assert found.acceptance_histogram == (0, 0, 0, 1, 0, 1)
    assert found.disagreements == ()
    assert found.step_ms == pytest.approx([10.0] * 3)


def test_nothing_drafted_is_an_answer_of_its_own() -> None:
    account = Account(origin="timings", steps=0, accepted=0, drafted=0, last_step_whole=False)
    found = record(
        Generated(output_tokens=5, steps=streamed(1, 1, 1, 1), last_step_cut=False, accounts=(account,))
    )
    assert (found.num_spec_steps, found.undrafted_steps) == (0, 4)
    assert found.mean_acceptance_length is None
    measured = point([found], ceiling=4)
    assert (measured.steps, measured.drafted_steps, measured.commit_mean) == (4, 0, 1.0)
    assert measured.drafted_commit_mean is None
    assert (measured.accept_rate, measured.histogram, measured.per_position) == (None, None, None)
    assert not measured.saturated


def test_a_server_that_does_not_speculate_has_steps_without_a_draft() -> None:
    generated = Generated(output_tokens=5, steps=streamed(1, 1, 1, 1), last_step_cut=False)
    told = record(generated, speculating=False)
    assert (told.num_spec_steps, told.undrafted_steps) == (0, 4)
    silent = record(generated)
    assert (silent.num_spec_steps, silent.undrafted_steps) == (None, None)
    measured = point([silent], ceiling=4)
    assert (measured.commit_mean, measured.drafted_steps) == (1.0, None)


def test_who_says_nothing_is_not_known() -> None:
    found = record(Generated(output_tokens=32))
    assert (found.num_spec_steps, found.undrafted_steps, found.num_draft_tokens) == (None, None, None)
    measured = point([found], ceiling=4)
    assert (measured.steps, measured.commit_mean, measured.share_of_ceiling) == (0, None, None)
    assert (measured.drafted_steps, measured.step_ms, measured.tok_s, measured.failed) == (
        None,
        None,
        None,
        0,
    )


def test_accepted_tokens_without_steps_are_kept() -> None:
    account = Account(origin="timings", accepted=20, drafted=40, last_step_whole=False)
    found = record(Generated(output_tokens=32, accounts=(account,)))
    assert (found.num_spec_steps, found.num_accepted_draft_tokens, found.num_draft_tokens) == (None, 20, 40)
    assert found.draft_acceptance_rate == 0.5
    assert point([found], ceiling=4).commit_mean is None


def test_an_error_measures_nothing() -> None:
    found = record(Generated(error="the engine is dead", output_tokens=3, steps=streamed(1, 1)))
    assert found.error == "the engine is dead"
    assert found.step_commits == ()
    measured = point([found, record(PERFECT)], ceiling=4)
    assert (measured.requests, measured.failed, measured.steps) == (2, 1, 8)


def test_copying_and_circles_are_told_apart() -> None:
    generated = Generated(output_tokens=20, ids=(1, 2, 3, 4) * 5)
    assert record(generated, expected_ids=(1, 2, 3, 4) * 5).copied == 1.0
    assert record(generated, expected_ids=(1, 2, 3, 4) * 5).loop == ""
    circle = record(generated)
    assert circle.copied is None
    assert circle.loop == "4 tokens, 5 times"
    assert record(Generated(output_tokens=20, text="la la la la")).loop == ""


def test_the_same_output_has_the_same_hash() -> None:
    first = record(Generated(ids=(1, 23)))
    assert first.output_hash == record(Generated(ids=(1, 23), text="other")).output_hash
    assert first.output_hash != record(Generated(ids=(12, 3))).output_hash
    assert len(first.output_hash) == 16
    assert record(Generated()).output_hash == ""


# --- sources that contradict each other --------------------------------------------------------------------


def test_accepted_but_not_committed() -> None:
    # 31 steps that stream one token each, while 3 are said to be accepted in every one.
    account = Account(origin="meta_info histogram", steps=31, accepted=93, drafted=217, last_step_whole=True)
    found = record(
        Generated(output_tokens=32, steps=streamed(*[1] * 31), last_step_cut=True, accounts=(account,)),
        ceiling=8,
    )
    assert found.disagreements == ("meta_info histogram says 93 accepted in 31 steps, the stream 0 in 31",)
    assert set(found.step_commits) == {1}
    assert (found.num_spec_steps, found.num_accepted_draft_tokens) == (31, 93)
    measured = point([found], ceiling=8)
    assert measured.commit_mean == 1.0
    assert measured.drafted_commit_mean == 4.0


def test_a_histogram_and_its_own_sums_say_it_once() -> None:
    both = [Account(origin=f"meta_info{what}", steps=31, accepted=93) for what in (" histogram", "")]
    others = [*both, Account(origin="/metrics", steps=31, accepted=93)]
    found = [
        record(
            Generated(output_tokens=32, steps=streamed(*[1] * 31), last_step_cut=True, accounts=tuple(one)),
            ceiling=8,
        ).disagreements
        for one in (both, others)
    ]
    assert found[0] == ("meta_info histogram says 93 accepted in 31 steps, the stream 0 in 31",)
    assert found[1] == (*found[0], "/metrics says 93 accepted in 31 steps, the stream 0 in 31")


def test_accepted_but_not_committed_is_seen_without_a_stream() -> None:
    account = Account(origin="meta_info", steps=31, accepted=93, last_step_whole=True)
    found = record(Generated(output_tokens=32, accounts=(account,)), ceiling=8)
    assert found.disagreements == (
        "meta_info says 93 accepted in 31 steps, that is 124 tokens, the output holds 31 after the first",
    )
    assert found.undrafted_steps is None
    assert point([found], ceiling=8).commit_mean is None


def test_committed_but_not_counted() -> None:
    # The stream shows 8 steps of 4, the server counts none right.
    account = Account(origin="meta_info", steps=8, accepted=0, last_step_whole=True)
    found = record(
        Generated(output_tokens=33, steps=streamed(*[4] * 8), last_step_cut=False, accounts=(account,))
    )
    assert found.disagreements == ("meta_info says 0 accepted in 8 steps, the stream 24 in 8",)


def test_what_the_end_cut_off_is_no_contradiction() -> None:
    whole = Account(origin="/metrics", steps=3, accepted=9, last_step_whole=True)
    found = record(
        Generated(output_tokens=10, steps=streamed(4, 4, 1), last_step_cut=True, accounts=(whole,))
    )
    assert found.disagreements == ()
    one_more = Account(origin="/metrics", steps=3, accepted=10, last_step_whole=True)
    found = record(
        Generated(output_tokens=10, steps=streamed(4, 4, 1), last_step_cut=True, accounts=(one_more,))
    )
    assert found.disagreements == (
        "/metrics says 10 accepted in 3 steps, at most 9 were drafted",
        "/metrics says 10 accepted in 3 steps, the stream 6 in 3",
    )


def test_two_accounts_must_agree_up_to_the_cut() -> None:
    first = Account(origin="block", steps=8, accepted=24, last_step_whole=True)
    for other, agrees in (
        (Account(origin="/metrics", steps=8, accepted=24, last_step_whole=True), True),
        (Account(origin="/metrics", steps=8, accepted=23, last_step_whole=True), False),
        (Account(origin="/metrics", steps=8, accepted=23, last_step_whole=False), True),
        (Account(origin="/metrics", accepted=24, last_step_whole=True), True),
        (Account(origin="/metrics", steps=9, last_step_whole=True), False),
    ):
        generated = Generated(
            output_tokens=32,
            steps=streamed(*[4] * 7, 3),
            last_step_cut=True,
            accounts=(first, other),
        )
        assert (record(generated).disagreements == ()) is agrees, other
    odd = Account(origin="/metrics", steps=9, last_step_whole=True)
    generated = Generated(output_tokens=32, accounts=(first, odd))
    assert record(generated).disagreements == (
        "block says 24 accepted in 8 steps, /metrics accepted not known in 9 steps",
    )


def test_a_source_must_agree_with_itself() -> None:
    account = Account(
        origin="meta_info",
        steps=9,
        accepted=25,
        drafted=20,
        histogram=(0, 0, 0, 7, 1),
        reported_commit=1.0,
        reported_rate=0.5,
    )
    found = record(Generated(accounts=(account,)))
    assert found.disagreements == (
        "meta_info says 9 steps, its histogram holds 8",
        "meta_info says 4 accepted in one step, at most 3 are drafted",
        "meta_info says 25 accepted of 20 drafted",
        "meta_info states a mean of 1.000, its own counts give 3.778",
        "meta_info states an accept rate of 0.500, its own counts give 1.250",
    )


def test_a_stated_mean_may_hold_the_token_of_the_prefill_and_miss_what_was_cut() -> None:
    # 64 tokens in 63 steps without a right draft: 1.016. 65 tokens at a ceiling of 8: 8.125.
    for steps, accepted, stated in ((63, 0, 64 / 63), (8, 56, 8.125), (1, 3, 2.0)):
        account = Account(origin="meta_info", steps=steps, accepted=accepted, reported_commit=stated)
        assert record(Generated(accounts=(account,)), ceiling=8).disagreements == ()


def test_merged_pieces_are_no_contradiction_and_no_steps() -> None:
    # 16 steps of 2; the stream shows one pair of them as one piece of 4.
    account = Account(origin="meta_info", steps=16, accepted=16, drafted=48, last_step_whole=True)
    found = record(
        Generated(
            output_tokens=33,
            steps=streamed(2, 2, 4, *[2] * 12),
            last_step_cut=False,
            accounts=(account,),
        )
    )
    assert found.disagreements == ()
    assert found.step_commits == ()
    assert found.merged_chunks == 1
    assert (found.num_spec_steps, found.undrafted_steps) == (16, 0)
    assert point([found], ceiling=4).commit_mean == 2.0


def test_pieces_larger_than_a_step_are_no_steps() -> None:
    account = Account(origin="meta_info", steps=8, accepted=24, histogram=(0, 0, 0, 8), last_step_whole=True)
    found = record(
        Generated(
            output_tokens=33,
            first_token_at=1.0,
            steps=streamed(4, 8, 4, 4, 4, 8),
            merged=2,
            last_step_cut=False,
            accounts=(account,),
        )
    )
    assert found.step_commits == ()
    assert found.merged_chunks == 2
    assert len(found.step_ms) == 4
    assert found.disagreements == ()
    measured = point([found], ceiling=4)
    assert (measured.commit_mean, measured.saturated) == (4.0, True)


def test_the_stream_must_bring_what_the_server_counts() -> None:
    found = record(Generated(output_tokens=32, steps=streamed(4, 4), last_step_cut=False))
    assert found.disagreements == ("the stream brought 8 tokens after the first, the server counts 31",)


# --- a point -----------------------------------------------------------------------------------------------


def request(*commits: int, **more: Any) -> CommitRequest:
    fields: dict[str, Any] = {
        "key": "r", "purpose": "point", "arm": "prose", "context_tokens": 4096, "prompt": 0, "step_commits": commits,
        "num_spec_steps": len(commits), "num_accepted_draft_tokens": sum(commits) - len(commits),
        "num_draft_tokens": 3 * len(commits), "undrafted_steps": 0,
        "acceptance_histogram": tuple(commits.count(k + 1) for k in range(4)), "origin": "meta_info",
    }  # fmt: skip
    return CommitRequest(**(fields | more))


def test_a_point_takes_its_requests_together() -> None:
    first = request(1, 2, 4, 1, prompt_tokens=4100, cached_tokens=10, copied=0.5, loop="2 tokens, 9 times")
    second = request(4, 4, prompt_tokens=4110, cached_tokens=11, copied=1.0, origin="stream")
    found = point([first, second], ceiling=4, purpose="again", seed=3)
    assert (found.arm, found.context_tokens, found.purpose) == ("prose", 4096, "again")
    assert (found.requests, found.failed, found.steps, found.drafted_steps) == (2, 0, 6, 6)
    assert found.commit_mean == pytest.approx(16 / 6)
    assert found.share_of_ceiling == pytest.approx((16 / 6 - 1) / 3)
    assert found.accept_rate == pytest.approx(10 / 18)
    assert found.histogram == (2, 1, 0, 3)
    assert found.per_position == pytest.approx((4 / 6, 3 / 6, 3 / 6))
    assert found.conditional == pytest.approx((4 / 6, 3 / 4, 1.0))
    assert (found.prompt_tokens, found.cached_tokens) == (4110, 10)
    assert (found.copied, found.loops) == (0.75, 1)
    assert found.origin == "meta_info + stream"
    assert found.commit_low is not None
    assert found.commit_high is not None
    assert 1.0 <= found.commit_low <= 16 / 6 <= found.commit_high <= 4.0


def test_positions_that_were_never_reached_have_no_condition() -> None:
    found = point([request(1, 1, 2, 1)], ceiling=4)
    assert found.per_position == (0.25, 0.0, 0.0)
    assert found.conditional == (0.25, 0.0, None)


def test_a_saturated_point_is_called_so_its_first_step_aside() -> None:
    assert point([request(1, 4, 4), request(4, 4)], ceiling=4).saturated
    assert not point([request(4, 4, 3)], ceiling=4).saturated
    assert not point([request(4, 4, 4)], ceiling=8).saturated
    assert not point([request(4)], ceiling=4).saturated
    assert not point([request(4, 4)], ceiling=None).saturated
    assert point([request(4, 4)], ceiling=None).share_of_ceiling is None


def test_saturated_is_no_certainty() -> None:
    found = point([request(*[4] * 16) for _ in range(4)], ceiling=4)
    assert (found.commit_mean, found.commit_low, found.commit_high) == (4.0, 4.0 - 3 / 64, 4.0)


def test_counts_alone_give_a_mean_and_an_interval_over_requests() -> None:
    bare = {"step_commits": (), "acceptance_histogram": None}
    found = point([request(*[2] * 16, **bare), request(*[3] * 16, **bare)], ceiling=4)
    assert (found.commit_mean, found.steps) == (2.5, 32)
    assert (found.commit_low, found.commit_high) == (1.0, 4.0)
    assert found.histogram is None


def test_a_request_that_is_silent_makes_totals_unknown() -> None:
    silent = request(
        num_spec_steps=None, num_accepted_draft_tokens=None, undrafted_steps=None, step_commits=()
    )
    found = point([request(2, 2), silent], ceiling=4)
    assert (found.steps, found.commit_mean) == (2, 2.0)
    assert (found.drafted_steps, found.drafted_commit_mean, found.histogram, found.accept_rate) == (
        None, None, None, None,
    )  # fmt: skip


def test_times_leave_the_first_steps_and_merged_pieces_out() -> None:
    first = request(2, 2, 2, 2, 2, 2, step_ms=(90.0, 50.0, 10.0, 25.0, 0.0, 12.0))
    second = request(2, 2, 2, step_ms=(70.0, 60.0, 14.0))
    found = point([first, second], ceiling=4)
    assert found.timed_steps == 3
    assert found.step_ms == 12.0
    assert found.step_ms_low == pytest.approx(10.4)
    assert found.step_ms_high == pytest.approx(13.6)
    assert found.tok_s == pytest.approx(2 / 12 * 1000)


def test_steps_that_arrive_in_bursts_have_a_pace_and_no_times_of_their_own() -> None:
    # Three steps at once, every 30 ms: single gaps are 29.98, 0.01 and 0.01 ms, and a step takes 10 ms.
    bursts = (90.0, 50.0) + (29.98, 0.01, 0.01) * 5
    found = point([request(*[2] * 17, step_ms=bursts)], ceiling=4)
    assert found.step_ms == pytest.approx(10.0)
    assert (found.step_ms_low, found.step_ms_high) == (None, None)
    assert found.timed_steps == 15
    assert found.tok_s == pytest.approx(200.0)
