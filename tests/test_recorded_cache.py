"""Requests that somebody recorded, computed and from the cache: when do they say that the cache loses the drafter's state?"""

from __future__ import annotations

import json
from typing import Any

import pytest

from ddprobe import evidence, rejudging
from ddprobe.evidence.document import of_bytes
from ddprobe.facts import CommitCheck
from ddprobe.model import Host, Verdict


def record(cached: int, steps: int, tokens: int = 257, prompt: int = 8000) -> dict[str, Any]:
    """Older SGLang's: 50 steps of 257 tokens commit 5.12, 250 of them 1.02."""
    told = {
        "completion_tokens": tokens,
        "spec_verify_ct": steps,
        "spec_accept_length": round(tokens / steps, 2),
    }
    return {"meta_info": {"prompt_tokens": prompt, "cached_tokens": cached, **told}}


def text(*records: dict[str, Any]) -> str:
    return "".join(f"request {n}: {json.dumps(each)}\n" for n, each in enumerate(records, 1))


def judged(told: str) -> tuple[Verdict, CommitCheck | None]:
    reading = evidence.recognise(of_bytes("f", told.encode()))
    known, found = rejudging.judge_files([reading], "collected", {})
    check = next((fact for fact in known if isinstance(fact, CommitCheck)), None)
    return rejudging.ruled(Host(name="collected"), known, found)[0][0], check


def test_a_drafter_that_the_cache_costs_its_drafts() -> None:
    verdict, check = judged(text(record(0, 50), record(7999, 250)))
    assert (verdict.name, verdict.kind, verdict.confidence) == ("cache_state_bug", "draft_kv_lost", "medium")
    assert verdict.reasons[0] == (
        "requests of 8000 prompt tokens commit 5.12 (50 steps, 1 request) computed and 1.02 (250 steps, 1 request) from the cache"
    )
    assert "whether both had the same prompt" in verdict.missing
    assert check is not None
    assert (check.agrees, check.steps) == (False, 300)


@pytest.mark.parametrize(
    ("records", "agrees"),
    [
        ((record(0, 50), record(7999, 52)), True),
        # 257 tokens in 120 steps: 2.13, more than half of the drafts that were right cold, or less.
        ((record(0, 80), record(7999, 120)), None),
        ((record(0, 50), record(7999, 120)), False),
        ((record(0, 50), record(4000, 250)), None),
        ((record(0, 50), record(7999, 250, prompt=9000)), None),
        ((record(0, 3, 16), record(7999, 15, 16)), None),
        ((record(0, 50),), None),
        ((record(0, 50), record(0, 250)), None),
    ],
    ids=[
        "kept",
        "a little less",
        "far less",
        "half a prompt",
        "another prompt",
        "too few steps",
        "alone",
        "no cache",
    ],
)
def test_what_makes_a_check(records: tuple[dict[str, Any], ...], agrees: bool | None) -> None:
    verdict, check = judged(text(*records))
    assert (check.agrees if check is not None else None) is agrees
    assert (verdict.name == "cache_state_bug") is (agrees is False)


def test_many_of_a_kind_count_together() -> None:
    cold, cached = [record(0, 50)] * 4, [record(7999, 50), *[record(7999, 250)] * 3]
    _, check = judged(text(*cold, *cached))
    assert check is not None
    # 4 × 256 tokens in 200 steps, and in 50 + 3 × 250 = 800.
    assert (check.first, check.second) == (5.12, 1.28)


def test_older_records_alone_say_what_a_step_commits() -> None:
    verdict, _ = judged(text(record(0, 50)))
    assert verdict.reasons == ("the requests' own count states 5.12 tokens per step (1 request, 50 steps)",)
    assert "the context length of each number" not in verdict.missing


@pytest.mark.parametrize(
    ("cold", "cached", "checked"),
    [(800, 7200, True), (801, 7200, False), (800, 7199, False)],
    ids=["a tenth and nine tenths", "more than a tenth", "less than nine tenths"],
)
def test_how_much_of_a_prompt_makes_it_cold_or_cached(cold: int, cached: int, checked: bool) -> None:
    _, check = judged(text(record(cold, 50), record(cached, 250)))
    assert (check is not None) is checked


@pytest.mark.parametrize(
    ("tokens", "agrees"),
    [
        # Cold: 401 tokens in 100 steps are 4.00; 85 % of 3.00 beyond the first are 2.55, half of them 1.5.
        (356, True), (355, None), (251, None), (250, False),
    ],
)  # fmt: skip
def test_what_the_cache_leaves(tokens: int, agrees: bool | None) -> None:
    _, check = judged(text(record(0, 100, 401), record(7999, 100, tokens)))
    assert (check.agrees if check is not None else None) is agrees


@pytest.mark.parametrize(("steps", "checked"), [(16, True), (15, False)])
def test_how_many_steps_it_takes(steps: int, checked: bool) -> None:
    _, check = judged(text(record(0, steps, 1 + 5 * steps), record(7999, 250)))
    assert (check is not None) is checked


def test_of_several_lengths_the_one_that_loses_is_told() -> None:
    kept = (record(0, 50, prompt=4000), record(3999, 50, prompt=4000))
    lost = (record(0, 50), record(7999, 250))
    for records in ((*kept, *lost), (*lost, *kept)):
        verdict, check = judged(text(*records))
        assert check is not None
        assert (check.context_tokens, check.agrees) == (8000, False)
        assert verdict.name == "cache_state_bug"
        # Only those requests are its evidence.
        assert "took 7999 tokens" in verdict.reasons[1]


def test_a_check_that_is_there_already_is_the_one() -> None:
    rows = [
        {"text": "repeat", "ctx_tokens": 1024, "commit_len": 6.0, "verify_steps": 90, "cached_tokens": cached}
        for cached in (0, 1000)
    ]
    told = text(record(0, 50), record(7999, 250)) + json.dumps({"points": rows}) + "\n"
    verdict, check = judged(told)
    assert check is not None
    assert (check.context_tokens, check.agrees) == (1024, True)
    assert verdict.name != "cache_state_bug"


def test_a_record_without_a_prompt_is_left_alone() -> None:
    bare = {
        "meta_info": {
            "completion_tokens": 257,
            "spec_verify_ct": 50,
            "spec_accept_length": 5.12,
            "cached_tokens": 0,
        }
    }
    _, check = judged(text(bare, record(7999, 250)))
    assert check is None
