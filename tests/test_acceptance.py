"""Figures of acceptance: every definition gives one pair of numbers. Counts are those of recorded runs, reckoned by hand."""

from __future__ import annotations

import json

import pytest

from ddprobe import lints
from ddprobe.evidence import counters, points
from ddprobe.evidence.document import of_bytes
from ddprobe.facts import Acceptance, CommitRequest
from ddprobe.model import Fact, Outcome
from ddprobe.parsing import acceptance
from ddprobe.parsing.acceptance import Canonical


def facts(recogniser: object, text: str, key: str = "d") -> tuple[Fact, ...]:
    found = recogniser.recognise(of_bytes(key, text.encode()), text)  # type: ignore[attr-defined]
    assert found is not None
    return tuple(found.facts)


def request(record: dict[str, object]) -> CommitRequest:
    (found,) = (f for f in facts(points, json.dumps(record)) if isinstance(f, CommitRequest))
    return found


# --- definitions -------------------------------------------------------------------------------------------


def test_counts_give_commit_and_rate() -> None:
    found = acceptance.from_counts(17, 46, 81)
    assert found.commit == pytest.approx(63 / 17)
    assert found.rate == pytest.approx(46 / 81)
    assert (found.steps, found.draft_tokens) == (
        17,
        None,
    )  # 81 is no multiple of 17: the last draft was trimmed


def test_k_follows_where_every_step_drafted_as_many() -> None:
    assert acceptance.from_counts(17, 48, 85).draft_tokens == 5


@pytest.mark.parametrize(("steps", "accepted"), [(0, 0), (None, 3), (5, None)])
def test_no_steps_or_no_count_is_no_commit(steps: int | None, accepted: int | None) -> None:
    assert acceptance.from_counts(steps, accepted, 0).commit is None


def test_zero_accepted_is_one() -> None:
    found = acceptance.from_counts(31, 0, 93)
    assert (found.commit, found.rate, found.draft_tokens) == (1.0, 0.0, 3)


def test_histogram_counts_no_bonus() -> None:
    # 3·0 + 1·1 + 1·2 + 1·3 + 1·6 + 2·7 = 26 in 9 steps, 7 drafted in each
    found = acceptance.from_histogram((3, 1, 1, 1, 0, 0, 1, 2), 7)
    assert found.commit == pytest.approx(35 / 9)
    assert found.rate == pytest.approx(26 / 63)


def test_a_length_gives_a_rate_where_k_is_known() -> None:
    assert acceptance.from_length(2.94, 3).rate == pytest.approx(0.6467, abs=1e-4)
    assert acceptance.from_length(2.94).rate is None
    assert acceptance.from_length(9.0, 7).rate is None  # beyond the ceiling: no rate is made up


def test_a_rate_gives_a_length_by_drafts_per_step() -> None:
    assert acceptance.from_rate(0.319, 2.94).commit == pytest.approx(1.938, abs=1e-3)
    assert acceptance.from_rate(0.25, 15).commit == 4.75
    assert acceptance.from_rate(0.25).commit is None


def test_tokens_over_steps_hold_the_prefills_token() -> None:
    found = acceptance.from_tokens(64, 63, 7)
    assert found.commit == 1.0  # SGLang prints 64 / 63 = 1.016
    assert found.low == 1.0
    assert found.high == pytest.approx(1 + 7 / 63)
    assert acceptance.from_tokens(1, 0).commit is None


def test_llamacpp_timings_tell_steps_by_subtraction() -> None:
    found = acceptance.from_timings(64, 81, 46)
    assert found.steps == 17
    assert found.commit == pytest.approx(63 / 17)
    assert acceptance.from_timings(64, 0, 0).commit is None


# --- one run, all its sources ------------------------------------------------------------------------------


def agree(truth: float, *figures: Canonical) -> None:
    for figure in figures:
        assert figure.agrees(truth, 0.02), figure


def test_sglang_dflash_all_right() -> None:
    """0.5.23, block 4, prompt `Hello`: 8 steps, 24 of 24. The log says 4.00 and 1.00."""
    told = request(
        {
            "meta_info": {
                "completion_tokens": 32,
                "prompt_tokens": 5,
                "cached_tokens": 0,
                "finish_reason": {"type": "length", "length": 32},
                "spec_accept_rate": 1.0,
                "spec_accept_length": 4.0,
                "spec_num_correct_drafts": 24,
                "spec_num_proposed_drafts": 24,
                "spec_verify_ct": 8,
                "spec_correct_drafts_histogram": [0, 0, 0, 8],
            }
        }
    )
    assert told.mean_acceptance_length == 4.0
    assert told.draft_acceptance_rate == 1.0
    assert (told.finish, told.output_tokens, told.prompt_tokens) == ("length", 32, 5)
    agree(
        4.0,
        acceptance.from_counts(8, 24, 24),
        acceptance.from_histogram((0, 0, 0, 8), 3),
        acceptance.from_tokens(32, 8, 3),
        acceptance.from_length(4.00, 3),
        acceptance.from_rate(1.00, 3),
    )


def test_sglang_dflash_none_right() -> None:
    """The same server, `The quick brown fox`: 31 steps, 0 of 93; /server_info and log say 1.0 and 0.00."""
    told = request(
        {
            "meta_info": {
                "completion_tokens": 32,
                "spec_accept_rate": 0.0,
                "spec_accept_length": 1.032258064516129,
                "spec_num_correct_drafts": 0,
                "spec_num_proposed_drafts": 93,
                "spec_verify_ct": 31,
                "spec_correct_drafts_histogram": [31],
            }
        }
    )
    assert told.mean_acceptance_length == 1.0
    server = {"speculative_num_draft_tokens": 4, "internal_states": [{"avg_spec_accept_length": 1.0}]}
    (lifetime,) = (f for f in facts(points, json.dumps(server)) if isinstance(f, Acceptance))
    assert (lifetime.commit, lifetime.rate, lifetime.draft_tokens) == (1.0, 0.0, 3)
    agree(
        1.0,
        acceptance.from_counts(31, 0, 93),
        acceptance.from_histogram((31,), 3),
        acceptance.from_tokens(32, 31, 3),
        acceptance.from_length(1.00, 3),
        acceptance.from_rate(0.00, 3),
    )
    # 1.032 is further off than 2 %: the prefill's token is in it, one token in 31 steps.
    assert outcome("MC06", told) is Outcome.PASS


def test_sglang_dflash_the_whole_run() -> None:
    """The server's last word is 301 / 145 = 2.076; its counters say (303 - 23) / 147 = 1.905, 8 % less.

    They count tokens that were returned: of each of 23 requests the last step is cut, by 3 tokens at most.
    """
    lifetime = acceptance.from_length(2.075862068965517, 3)
    by_tokens = acceptance.from_tokens(303, 147, 3, requests=23)
    assert by_tokens.commit == pytest.approx(280 / 147)
    assert by_tokens.agrees(lifetime.commit or 0.0)
    assert not acceptance.from_length(280 / 147).agrees(lifetime.commit or 0.0)


def test_sglang_ngram() -> None:
    """0.5.20, 7 drafts a step: 9 steps, 26 of 63; the stated 3.556 is 32 / 9, its last step cut."""
    told = request(
        {
            "meta_info": {
                "completion_tokens": 32,
                "spec_accept_rate": 0.4126984126984127,
                "spec_accept_length": 3.5555555555555554,
                "spec_num_correct_drafts": 26,
                "spec_num_proposed_drafts": 63,
                "spec_verify_ct": 9,
                "spec_accepted_drafts": 26,
                "spec_proposed_drafts": 63,
                "spec_correct_drafts_histogram": [3, 1, 1, 1, 0, 0, 1, 2],
            }
        }
    )
    agree(
        35 / 9,
        acceptance.from_counts(told.num_spec_steps, told.num_accepted_draft_tokens, told.num_draft_tokens),
        acceptance.from_histogram(told.acceptance_histogram or (), 7),
        acceptance.from_rate(0.4126984, 7),
        acceptance.from_tokens(32, 9, 7),
    )
    assert outcome("MC06", told) is Outcome.PASS
    assert outcome("MC01", told) is Outcome.PASS


def test_llamacpp_draft_model() -> None:
    """b10434: timings, the counters' difference and the log line `0.56790 (46 accepted / 81 generated), mean len = 3.71`."""
    told = request(
        {"timings": {"cache_n": 0, "prompt_n": 16, "predicted_n": 64, "draft_n": 81, "draft_n_accepted": 46}}
    )
    assert (told.num_spec_steps, told.num_accepted_draft_tokens, told.num_draft_tokens) == (None, 46, 81)
    text = "\n".join(
        f"llamacpp:spec_decode_num_{name}_total {value}"
        for name, value in (("drafts", 17), ("draft_tokens", 81), ("accepted_tokens", 46))
    )
    (counted,) = (f for f in facts(counters, text) if isinstance(f, Acceptance))
    assert counted.commit == pytest.approx(63 / 17)
    assert counted.rate == pytest.approx(0.56790, abs=1e-5)
    agree(
        counted.commit or 0.0,
        acceptance.from_timings(64, 81, 46),
        acceptance.from_counts(17, 46, 81),
        acceptance.from_length(3.71),
        acceptance.from_rate(0.56790, 81 / 17),
    )


def test_vllm_draft_model() -> None:
    """0.32.0: the request's block counts the whole last step, its 64 tokens show 3.71 per step, the block 3.82."""
    block = {
        "mean_acceptance_length": 3.823529411764706,
        "draft_acceptance_rate": 0.5647058823529412,
        "acceptance_histogram": [1, 0, 0, 16, 0, 0],
        "num_spec_steps": 17,
        "num_accepted_draft_tokens": 48,
        "num_draft_tokens": 85,
    }
    told = request({"usage": {"completion_tokens": 64}, "speculative_decoding": block})
    assert told.output_tokens == 64
    agree(
        1 + 48 / 17,
        acceptance.from_counts(17, 48, 85),
        acceptance.from_histogram((1, 0, 0, 16, 0, 0), 5),
        acceptance.from_rate(0.5647, 5),
        acceptance.from_tokens(64, 17, 5),
    )
    assert acceptance.from_tokens(64, 17, 5).commit == pytest.approx(
        63 / 17
    )  # by itself 3 % below: the cut last step


def outcome(id: str, *known: Fact) -> Outcome:
    (found,) = (f for f in lints.judge(list(known)) if f.id == id)
    return found.outcome
