"""What benchmarks print and save of speculation, by the formula that each of them uses."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ddprobe import evidence
from ddprobe.evidence import benchmarks
from ddprobe.evidence.document import of_bytes
from ddprobe.facts import Acceptance, Claim

SGLANG = """\
============ Serving Benchmark Result ============
Backend:                                 sglang
Max request concurrency:                 1
Total generated tokens:                  4096
Accept length:                           1.04
Mean TPOT (ms):                          15.10
==================================================
"""
VLLM = """\
============ Serving Benchmark Result ============
Successful requests:                     16
---------------Speculative Decoding---------------
Acceptance rate (%):                     12.91
Acceptance length:                       1.39
Drafts:                                  11234
Draft tokens:                            33702
Accepted tokens:                         4351
Per-position acceptance (%):
  Position 0:                            25.10
  Position 1:                            9.30
  Position 2:                            4.33
==================================================
"""
EXAMPLE = """\
total_num_output_tokens: 16990
num_drafts: 4816
num_draft_tokens: 33712
num_accepted_tokens: 12208
mean acceptance length: 3.53
--------------------------------------------------
acceptance at token 0: 0.72
acceptance at token 1: 0.54
"""
V0 = (
    "INFO metrics.py:250] Speculative metrics: Draft acceptance rate: 0.607, System efficiency: 0.510, Number of speculative "
    "tokens: 4, Number of accepted tokens: 32594, Number of draft tokens: 53716, Number of emitted tokens: 34244.\n"
)
LLAMA = "n_draft   = 16\nn_predict = 371\nn_drafted = 912\nn_accept  = 313\naccept    = 34.320%\n"
EAGLE = "#questions: 80, Throughput: 276.30 token/s, Acceptance length: 5.36\n"
SAVED = {
    "spec_decode_acceptance_rate": 12.91,
    "spec_decode_acceptance_length": 1.387,
    "spec_decode_num_drafts": 11234,
    "spec_decode_draft_tokens": 33702,
    "spec_decode_accepted_tokens": 4351,
    "spec_decode_per_position_acceptance_rates": [0.25, 0.09, 0.043],
}


def figures(text: str) -> list[Acceptance]:
    document = of_bytes("a", text.encode())
    found = benchmarks.recognise(document, document.sample())
    return [fact for fact in found.facts if isinstance(fact, Acceptance)] if found else []


def figure(text: str) -> Acceptance:
    (only,) = figures(text)
    return only


def test_sglang_prints_the_lifetime_mean_of_the_server() -> None:
    """`sglang/benchmark/serving.py` asks /server_info for it when the benchmark is over."""
    told = figure(SGLANG)
    assert (told.commit, told.rate, told.steps, told.window) == (1.04, None, None, "lifetime")
    assert told.source[0].at == "line 1"


def test_vllm_prints_counters_and_a_rate_in_percent() -> None:
    for text in (
        VLLM,
        json.dumps(SAVED),
        json.dumps([SAVED]),
        json.dumps({"a": 1}) + "\n" + json.dumps(SAVED),
    ):
        told = figure(text)
        assert told.commit == pytest.approx(1 + 4351 / 11234)
        assert told.rate == pytest.approx(4351 / 33702)
        assert (told.steps, told.draft_tokens, told.window) == (11234, 3, "the whole benchmark")
        assert told.per_position is not None
        assert len(told.per_position) == 3
        assert told.per_position[1] == pytest.approx(0.09, abs=0.004)


def test_a_saved_rate_in_percent_is_no_claim_of_a_share() -> None:
    """Above 1 it would be a metric that lies."""
    reading = evidence.recognise(of_bytes("a", json.dumps(SAVED).encode()))
    assert [type(fact) for found in reading.found for fact in found.facts] == [Acceptance]


def test_the_example_of_vllm() -> None:
    told = figure(EXAMPLE)
    assert told.commit == pytest.approx(3.53, abs=0.006)
    assert told.rate == pytest.approx(12208 / 33712)
    assert (told.steps, told.draft_tokens, told.per_position) == (4816, 7, (0.72, 0.54))


def test_vllm_before_v1_counts_tokens_behind_a_wrong_one_as_accepted() -> None:
    """53716 drafts of 4 a step are 13429 steps; they emitted 34244 tokens: 51 % of the 5 that each might, as it says."""
    told = figure(V0)
    assert (told.steps, told.draft_tokens) == (13429, 4)
    assert told.commit == pytest.approx(34244 / 13429)
    assert told.rate == pytest.approx((34244 - 13429) / 53716)
    assert told.commit is not None
    assert told.commit / 5 == pytest.approx(0.510, abs=0.0005)


def test_llama_speculative_emits_what_it_accepts_and_one_more_a_step() -> None:
    told = figure(LLAMA)
    assert told.steps == 58
    assert told.commit == pytest.approx(371 / 58)
    assert told.rate == pytest.approx(0.3432, abs=0.00005)


def test_sglangs_eagle_benchmark() -> None:
    assert (figure(EAGLE).commit, figure(EAGLE).steps) == (5.36, None)


def test_several_in_one_text_are_several_runs() -> None:
    told = figures("before:\n" + VLLM + "after:\n" + VLLM.replace("4351", "9351") + EAGLE + EXAMPLE + EXAMPLE)
    assert [one.steps for one in told] == [11234, 11234, None, 4816, 4816]
    assert len({one.run for one in told}) == 5


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Accept length: 1.04\n",  # a sentence with a number: a claim
        "mean acceptance length: 3.53\n",
        "Position 0: 12.0\nPosition 1: 3.0\n",
        VLLM.replace("11234", "0").replace("1.39", "0.00"),
        EXAMPLE.replace("12208", "99999"),  # more right than were drafted
        LLAMA.replace("371", "300"),  # fewer than were accepted
        json.dumps({"spec_decode_num_drafts": "many", "spec_decode_draft_tokens": None}),
        '{"spec_decode_num_drafts": ' + "[" * 3000,
    ],
)
def test_what_is_no_summary_or_cannot_be(text: str) -> None:
    assert figures(text) == []


@pytest.mark.parametrize("text", [SGLANG, VLLM, EXAMPLE, V0, LLAMA, EAGLE, json.dumps(SAVED)])
def test_each_is_known_for_what_it_is_among_all_recognisers(text: str) -> None:
    found = evidence.recognise(of_bytes("a", text.encode())).found
    facts: list[Any] = [fact for each in found for fact in each.facts]
    assert [type(fact) for fact in facts] == [Acceptance]
    assert not any(isinstance(fact, Claim) for fact in facts)


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        # 4096 - 16 tokens of decoding at 1.04 a step.
        (SGLANG.replace("Total gen", "Successful requests:    16\nTotal gen"), 3923),
        (SGLANG, None),
        (SGLANG.replace("Total gen", "Successful requests:    4096\nTotal gen"), None),
    ],
    ids=["requests and tokens", "tokens alone", "nothing was decoded"],
)
def test_a_lifetime_mean_covers_at_least_what_the_benchmark_did(text: str, steps: int | None) -> None:
    document = of_bytes("a", text.encode())
    found = benchmarks.recognise(document, document.sample())
    assert found is not None
    (stated,) = (fact for fact in found.facts if isinstance(fact, Acceptance))
    assert (stated.commit, stated.steps, stated.window) == (1.04, steps, "lifetime")
