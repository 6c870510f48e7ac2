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
