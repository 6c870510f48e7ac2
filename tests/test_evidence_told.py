"""What people write: the story told in prose, tables of points, and what a code host gives of an issue."""

from __future__ import annotations

import json

import pytest

from ddprobe import evidence, rejudging
from ddprobe.evidence import tables
from ddprobe.evidence.document import of_bytes
from ddprobe.facts import Acceptance, Claim, CommitPoint, DecodeSeries, ServerArgs
from ddprobe.model import Fact, Host, Hypothesis, Verdict

STORY = """\
Kimi K2.6 with a DFlash drafter on 8 cards does 118 tok/s at 1.4k, 0.7 tok/s at 185k.
The metrics say avg_commit_len=1.00 avg_accepted_depth=3.00 and the cards look idle.
The same repeated text gives 7.88/7.00/7.00/7.88 at 1k/16k/64k/128k.
"""
TABLE = """\
By length, on our build:

| context | accept len | tok/s |
|:--------|-----------:|------:|
| 1k      | 4.1        | 95    |
| **64k** | ~1.3       | 20    |
| 128k    | -          | 9.5   |
| 200k    | n/a        |       |
"""


def facts(text: str) -> tuple[Fact, ...]:
    return evidence.facts([evidence.recognise(of_bytes("f", text.encode()))])


def judged(text: str) -> tuple[tuple[Verdict, ...], dict[str, Hypothesis]]:
    reading = evidence.recognise(of_bytes("f", text.encode()))
    known, found = rejudging.judge_files([reading], "collected", {})
    verdicts, ledger = rejudging.ruled(Host(name="collected"), known, found)
    return verdicts, {one.name: one for one in ledger}


def claims(text: str) -> list[tuple[str, float, str]]:
    return [(f.what, f.value, f.window) for f in facts(text) if isinstance(f, Claim)]


def points(text: str) -> list[CommitPoint]:
    return [fact for fact in facts(text) if isinstance(fact, CommitPoint)]


# --- prose -------------------------------------------------------------------------------------------------


def test_the_story() -> None:
    assert claims(STORY) == [
        ("commit length", 1.0, "the whole log"),
        ("accepted depth", 3.0, "the whole log"),
        ("throughput", 118.0, "at 1.4k"),
        ("throughput", 0.7, "at 185k"),
        ("commit length", 7.88, "at 1k"),
        ("commit length", 7.0, "at 16k"),
        ("commit length", 7.0, "at 64k"),
        ("commit length", 7.88, "at 128k"),
    ]
    verdicts, ledger = judged(STORY)
    assert [verdict.name for verdict in verdicts] == ["metric_inconsistency"]
    assert ledger["metric_wrong"].status == "supported"
    assert (ledger["attention_kernel"].status, ledger["attention_kernel"].evidence) == (
        "untested",
        "a statement in text: throughput 118 at 1.4k and 0.7 at 185k; nothing measured shows it",
    )
    assert ledger["drafter_long_context"].status == "untested"
    assert ledger["drafter_long_context"].evidence == (
        "a statement in text: commit length 7.88 at 1k and 7.88 at 128k; nothing measured shows it"
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("It does 118 tok/s at 1.4k, 0.7 at 185k with the same drafter.", [118.0, 0.7]),
        ("It does 118 tok/s at 1.4k and only 0.7 at 185k with the same drafter.", [118.0, 0.7]),
        ("It does 118 tok/s at 1.4k with 0.9 of the memory at 185k in use.", [118.0]),
        ("It does 118 tok/s, and 0.7 at 185k is what we fear.", [118.0]),
    ],
)
def test_speeds_at_lengths(text: str, told: list[float]) -> None:
    assert [value for what, value, _ in claims(text) if what == "throughput"] == told


@pytest.mark.parametrize(
    "text",
    [
        "Our accept rate went 7.88/7.00/7.88 at 1k/16k/64k as the dashboard shows.",
        "We measured 7.88/7.00 at 1k/16k/64k on the same machine twice.",
        "The figures were 0.88/0.70/0.88 at 1k/16k/64k on the same machine.",
        "The speed in tok/s was 7.88/7.00/7.88 at 1k/16k/64k on one card.",
    ],
)
def test_other_series_are_no_lengths(text: str) -> None:
    assert not [one for one in claims(text) if one[0] == "commit length"]


def test_a_length_in_prose() -> None:
    assert claims("We get an accept length 1.35 on long prompts.") == [("accept length", 1.35, "")]


# --- tables ------------------------------------------------------------------------------------------------


def test_a_table_of_points() -> None:
    found = points(TABLE)
    assert [(p.context_tokens, p.commit_mean, p.tok_s) for p in found] == [
        (1024, 4.1, 95.0),
        (65536, 1.3, 20.0),
        (131072, None, 9.5),
    ]
    assert [cite.at for point in found for cite in point.source] == ["line 5", "line 6", "line 7"]


def test_other_columns() -> None:
    told = "Context Length | Arm | Acceptance Rate | Step time (ms) | verify steps | note\n-|-|-|-|-|-\n"
    told = told.replace("-|-|-|-|-|-", "--|--|--|--|--|--") + "16,384 | repeat | 45% | 21.5 | 64 | 9\n"
    (point,) = points(told)
    assert (point.context_tokens, point.arm, point.accept_rate) == (16384, "repeat", 0.45)
    assert (point.step_ms, point.steps) == (21.5, 64)


@pytest.mark.parametrize(
    "text",
    [
        "| model | accept len |\n|---|---|\n| a | 4.1 |\n",
        "| context | model |\n|---|---|\n| 1k | a |\n",
        "| context | accept len | accept len |\n|---|---|---|\n| 1k | 4 | 5 |\n",
        "| context | accept len |\n|---|---|\n| short | 4.1 |\n",
        "a | b\n",
    ],
    ids=["no length", "no measure", "two of one name", "no number", "no table"],
)
def test_other_tables(text: str) -> None:
    assert tables.recognise(of_bytes("f", text.encode()), text) is None


# --- issues ------------------------------------------------------------------------------------------------

BODY = """\
It is slow since the update, with an accept length 1.35 on long prompts.

```
[2026-09-10 12:00:00] server_args=ServerArgs(model_path='/m', speculative_algorithm='DFLASH')
[2026-09-10 12:01:00] Decode batch. #running-req: 1, #token: 2000, token usage: 0.01, accept len: 2.00, \
cuda graph: True, gen throughput (token/s): 60.0, #queue-req: 0
```
"""


def test_an_issue_as_a_code_host_answers() -> None:
    for body in (BODY, BODY.replace("\n", "\r\n")):
        issue = json.dumps({"url": "u", "number": 1, "user": {"login": "a"}, "title": "t", "body": body})
        found = facts(issue)
        assert {type(fact) for fact in found} >= {ServerArgs, DecodeSeries, Claim}
    comments = json.dumps([{"id": 1, "body": "no figure here"}, {"id": 2, "body": BODY}])
    assert [type(fact) for fact in facts(comments)].count(ServerArgs) == 1
    nested = json.dumps({"title": "t", "body": "", "comments": [{"body": BODY}]})
    assert [type(fact) for fact in facts(nested)].count(ServerArgs) == 1


def test_a_body_that_is_none() -> None:
    assert facts(json.dumps({"body": None, "title": "accept length 1.35 on long prompts here"})) == ()
    assert facts('{"body": "' + "accept length 1.35") == ()


# --- llama.cpp ---------------------------------------------------------------------------------------------


def request(prompt: int, accepted: int, head: str = "") -> str:
    return (
        f"{head}prompt eval time =    1234.56 ms / {prompt:5d} tokens (    0.25 ms per token,  4000.00 tokens per second)\n"
        "       eval time =    2000.00 ms /   120 tokens (   16.67 ms per token,    60.00 tokens per second)\n"
        f"      total time =    3234.56 ms / {prompt + 120:5d} tokens\n"
        f"draft acceptance rate = {accepted / 200:.5f} (   {accepted} accepted /   200 generated)\n"
    )


@pytest.mark.parametrize(
    "head", ["", "slot print_timing: id  0 | task {} | \n"], ids=["bare", "with its task"]
)
def test_accept_by_context(head: str) -> None:
    log = (
        request(900, 150, head.format(1))
        + request(16000, 90, head.format(2))
        + request(60000, 10, head.format(3))
    )
    found = [(f.context_tokens, f.rate) for f in facts(log) if isinstance(f, Acceptance) and f.context_tokens]
    assert found == [(1020, 0.75), (16120, 0.45), (60120, 0.05)]


def test_requests_of_several_slots_have_no_place() -> None:
    """Without a line on when each was launched nobody knows how many ran at once."""
    log = "".join(
        request(900 * 8**at, 100, f"slot print_timing: id  {at} | task {at} | \n") for at in range(3)
    )
    assert not [f for f in facts(log) if isinstance(f, Acceptance) and f.context_tokens]


def test_timings_of_another_tool_are_no_requests_without_drafts() -> None:
    bare = request(900, 150).rpartition("draft")[0]
    assert not [fact for fact in facts(bare * 9) if isinstance(fact, DecodeSeries) and fact.off_lines]
