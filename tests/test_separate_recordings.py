"""Figures of separate recordings in one folder are of separate runs: they may differ."""

from __future__ import annotations

import json

from ddprobe import evidence, lints
from ddprobe.evidence.document import of_bytes
from ddprobe.model import Finding, Outcome

SHORT = {"completion_tokens": 6, "verify_steps": 2}
LONG = {"completion_tokens": 200, "verify_steps": 100}


def found(**documents: object) -> dict[str, Finding]:
    readings = [
        evidence.recognise(of_bytes(key, json.dumps(told).encode())) for key, told in documents.items()
    ]
    facts = evidence.facts(evidence.ordered(readings))
    return {finding.id: finding for finding in lints.judge(list(facts))}


def requests(*records: object) -> dict[str, object]:
    return {"num_speculative_tokens": 5, "requests": list(records)}


def tools(first: float, second: float) -> dict[str, float]:
    return {"server_mean_acceptance_length": first, "bench_average_acceptance_length": second}


def test_two_averages_of_one_recording() -> None:
    """206 tokens in 102 steps are 2.02 pooled; (3 + 2) / 2 = 2.5 is the mean of the two requests."""
    told = found(a=requests(SHORT, LONG), b=tools(2.02, 2.5))["MC05"]
    assert told.outcome is Outcome.FAIL
    assert "the first is pooled over steps, the second the mean of requests" in told.summary


def test_one_of_them_tells_that_it_is_the_same_run() -> None:
    assert found(a=requests(SHORT, LONG), b=tools(3.4, 2.5))["MC05"].outcome is Outcome.FAIL


def test_figures_of_another_run() -> None:
    told = found(a=requests(SHORT, LONG), b=tools(3.4, 4.4))["MC05"]
    assert (told.outcome, dict(told.measured)) == (Outcome.INFO, {"mean": 2.5, "pooled": 206 / 102})


def test_requests_of_two_recordings_are_not_averaged() -> None:
    """Each recording holds one request, or several that are alike: no average of all of them is of any run."""
    assert "MC05" not in found(a=requests(SHORT), b=requests(LONG), c=tools(2.02, 2.5))
    told = found(
        a=requests(SHORT, {**SHORT, "id": 2}), b=requests(LONG, {**LONG, "id": 2}), c=tools(2.02, 2.5)
    )
    assert told["MC05"].outcome is Outcome.PASS
