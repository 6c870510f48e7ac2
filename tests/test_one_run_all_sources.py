"""One run of a server as each of its sources tells it: requests, /server_info, /metrics and its log give one pair.

`data/one-run/` holds what real servers said of one run each. What a run comes to is reckoned by hand from its counts.
Sources of one span agree within 2 %; where spans or definitions differ, the analysis says so.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ddprobe import evidence, lints
from ddprobe.evidence import counters, decode_logs, points
from ddprobe.evidence.document import of_bytes
from ddprobe.facts import Acceptance, CommitRequest
from ddprobe.model import Fact, Finding, Outcome
from ddprobe.parsing import acceptance
from ddprobe.parsing.acceptance import Canonical

RUNS = Path(__file__).parent / "data" / "one-run"
SAME = 0.02


def text(run: str, *names: str) -> str:
    return "".join((RUNS / run / name).read_text(encoding="utf-8") for name in names)


def facts(recogniser: object, content: str, key: str = "d") -> tuple[Fact, ...]:
    found = recogniser.recognise(of_bytes(key, content.encode()), content[:65536])  # type: ignore[attr-defined]
    assert found is not None
    return tuple(found.facts)


def figure(recogniser: object, content: str, origin: str = "") -> Acceptance:
    """The one figure of acceptance in it, of that origin: of all that it tells, and of no part."""
    (found,) = (
        fact
        for fact in facts(recogniser, content)
        if isinstance(fact, Acceptance)
        and fact.origin.startswith(origin)
        and fact.context_tokens is None
        and not re.search(", (?:low|high)est of", fact.window)
    )
    return found


def requests(run: str) -> list[CommitRequest]:
    found = facts(points, text(run, "requests.json"))
    return [fact for fact in found if isinstance(fact, CommitRequest)]


def together(*known: tuple[str, str]) -> list[Finding]:
    """What is found in documents, each a file of a run and the part of it that is given."""
    readings = [
        evidence.recognise(of_bytes(f"{number}", content.encode()))
        for number, (_, content) in enumerate(known)
    ]
    return lints.judge(evidence.facts(readings))


def spans(*known: tuple[str, str]) -> Finding:
    (found,) = (finding for finding in together(*known) if finding.id == "MC14")
    return found


# --- llama.cpp: every source counts, and all of them the same six requests ---------------------------------

LLAMA = "llamacpp-draft"
# Of 64 tokens 46 drafts, of 32 tokens 22: three requests of each, 17 and 9 steps.
STEPS, ACCEPTED, DRAFTED = 78, 204, 366


def test_llamacpp_log_counters_and_requests_are_one_pair() -> None:
    pairs = [
        figure(decode_logs, text(LLAMA, "server.log"), "draft acceptance line"),
        figure(counters, text(LLAMA, "metrics-before.txt", "metrics-after.txt")),
    ]
    for pair in pairs:
        assert pair.commit == pytest.approx(1 + ACCEPTED / STEPS, rel=SAME), pair.origin
        assert pair.rate == pytest.approx(ACCEPTED / DRAFTED, rel=SAME), pair.origin
        assert pair.steps == STEPS, pair.origin
    counted = [
        acceptance.from_timings(
            r.output_tokens or 0, r.num_draft_tokens or 0, r.num_accepted_draft_tokens or 0
        )
        for r in requests(LLAMA)
    ]
    assert sum(each.steps or 0 for each in counted) == STEPS
    assert sum(r.num_accepted_draft_tokens or 0 for r in requests(LLAMA)) == ACCEPTED
    assert sum(r.num_draft_tokens or 0 for r in requests(LLAMA)) == DRAFTED


def test_llamacpp_counters_by_position_add_up_to_the_same() -> None:
    told = figure(counters, text(LLAMA, "metrics-before.txt", "metrics-after.txt"))
    assert told.per_position == pytest.approx((72 / 78, 66 / 78, 66 / 78, 0, 0))
    assert 1 + sum(told.per_position or ()) == pytest.approx(told.commit)


def test_llamacpp_the_analysis_says_that_its_sources_agree() -> None:
    found = spans(
        ("log", text(LLAMA, "server.log")),
        ("metrics", text(LLAMA, "metrics-before.txt", "metrics-after.txt")),
        ("requests", text(LLAMA, "requests.json")),
    )
    assert found.outcome is Outcome.PASS
    assert "3 sources agree" in found.summary
    assert found.summary.count("3.62 (") == 3
    assert "6 requests, 78 steps" in found.summary


# --- SGLang: what its sources count is not one span --------------------------------------------------------

# (run, K, lifetime mean at the end as the server logs it, its steps)
SGLANG = [
    ("sglang-dflash", 3, 301 / 145, 145),
    ("sglang-standalone", 3, 306 / 127, 127),
    ("sglang-ngram", 7, 317 / 75, 75),
]


@pytest.mark.parametrize(("run", "k", "mean", "steps"), SGLANG)
def test_sglang_logs_the_mean_of_its_lifetime(run: str, k: int, mean: float, steps: int) -> None:
    told = figure(decode_logs, text(run, "server.log"), "avg_spec_accept_length")
    assert told.commit == pytest.approx(mean, abs=1e-12)
    assert (mean * steps) == pytest.approx(round(mean * steps))
    assert told.rate == pytest.approx((mean - 1) / k)
    assert told.window == "lifetime"


@pytest.mark.parametrize(("run", "k", "mean"), [row[:3] for row in SGLANG[:2]])
def test_sglang_log_lines_come_to_the_lifetime_mean(run: str, k: int, mean: float) -> None:
    told = figure(decode_logs, text(run, "server.log"), "decode log")
    assert told.commit == pytest.approx(mean, rel=SAME)
    assert told.rate == pytest.approx((mean - 1) / k, rel=2 * SAME)
    assert told.draft_tokens == k


def test_sglang_few_log_lines_are_weighed_by_who_ran_at_their_end_only() -> None:
    """18 lines of 4 forward passes each: who ran in the first three of them is not told, and moves the mean by 3 %."""
    run, k, mean, _ = SGLANG[2]
    told = figure(decode_logs, text(run, "server.log"), "decode log")
    assert told.draft_tokens == k
    assert not acceptance.from_length(told.commit or 0.0).agrees(mean, SAME)
    assert acceptance.from_length(told.commit or 0.0).agrees(mean, 0.03)
    found = spans(("log", text(run, "server.log")))
    assert found.outcome is Outcome.INFO
    assert "weigh requests differently" in found.summary


@pytest.mark.parametrize(("run", "k", "mean"), [row[:3] for row in SGLANG])
def test_sglang_metrics_hold_the_lifetime_mean_between_what_cut_steps_leave_open(
    run: str, k: int, mean: float
) -> None:
    """Counters are of tokens that were returned: of each of 22 requests a last step is cut, by K tokens at most."""
    told = figure(counters, text(run, "metrics-before.txt", "metrics-after.txt"))
    between = acceptance.from_tokens(303 - 8, told.steps or 0, k, requests=22)
    assert told.window == "between two scrapes"
    assert told.commit == pytest.approx(between.commit)
    assert told.draft_tokens == k
    assert between.agrees(mean, SAME)
    assert told.commit is not None
    assert told.commit < mean


@pytest.mark.parametrize(("run", "k"), [row[:2] for row in SGLANG])
def test_sglang_every_request_gives_one_pair_by_every_definition(run: str, k: int) -> None:
    told = requests(run)
    assert len(told) == 11
    for record, request in zip(json.loads(text(run, "requests.json")), told, strict=True):
        info = record["meta_info"]
        counts = acceptance.from_counts(
            info["spec_verify_ct"], info["spec_num_correct_drafts"], info["spec_num_proposed_drafts"]
        )
        assert request.mean_acceptance_length == pytest.approx(counts.commit)
        assert request.draft_acceptance_rate == pytest.approx(counts.rate)
        others: list[Canonical] = [
            acceptance.from_histogram(info["spec_correct_drafts_histogram"], k),
            acceptance.from_tokens(info["completion_tokens"], info["spec_verify_ct"], k),
            acceptance.from_rate(info["spec_accept_rate"], k),
        ]
        for other in others:
            assert other.agrees(counts.commit or 0.0, SAME), (info, other)
    assert not [f for f in lints.judge(told) if f.outcome is Outcome.FAIL]


@pytest.mark.parametrize(
    ("run", "early"), [("sglang-dflash", 1.0), ("sglang-standalone", 2.25), ("sglang-ngram", 1.0)]
)
def test_sglang_a_snapshot_before_the_traffic_is_said_to_be_of_another_span(run: str, early: float) -> None:
    """/server_info was asked after the warm-up alone: its lifetime mean is that of one request."""
    snapshot = text(run, "server_info-early.json")
    stated = figure(points, snapshot, "/server_info")
    assert (stated.commit, stated.window) == (early, "lifetime")
    found = spans(("log", text(run, "server.log")), ("info", snapshot))
    assert found.outcome is Outcome.INFO
    assert f"/server_info avg_spec_accept_length {early:.2f} (lifetime)" in found.summary
    assert "different spans" in found.summary
    assert "a snapshot taken before the traffic says nothing of it" in found.advice
    assert not [
        finding
        for finding in together(("log", text(run, "server.log")), ("info", snapshot))
        if finding.id == "MC12"
    ]


def test_sglang_some_of_the_requests_are_another_span() -> None:
    """11 of 23 requests: 93 accepted in 73 steps, 2.27 per step, where the server's lifetime says 2.08."""
    found = spans(
        ("log", text("sglang-dflash", "server.log")), ("requests", text("sglang-dflash", "requests.json"))
    )
    assert found.outcome is Outcome.INFO
    assert "requests 2.27 (11 requests, 73 steps)" in found.summary
    assert dict(found.measured)["counted"] == pytest.approx(1 + 93 / 73)
