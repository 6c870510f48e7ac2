"""`inconclusive` says first what lints that fail advise: it comes before measuring again."""

from __future__ import annotations

from ddprobe import render, verdicts
from ddprobe.cli import explanations
from ddprobe.facts import Acceptance, CommitPoint, CommitRequest, CommitSetup
from ddprobe.model import Fact, Finding, Outcome, Verdict
from ddprobe.verdicts.collected.inconclusive import LADDER

COUNTED = Acceptance(commit=1.8, rate=0.1, draft_tokens=8, steps=40, window="the whole log", origin="a log")


def finding(id: str, outcome: Outcome = Outcome.FAIL) -> Finding:
    return Finding(id=id, outcome=outcome, subject="s", summary=f"{id} is wrong", advice=f"mend {id}")


def ruled(*findings: Finding) -> Verdict:
    (verdict,) = verdicts.judge_collected((COUNTED,), findings)
    assert verdict.name == "inconclusive"
    return verdict


def test_a_lint_on_the_launch_comes_first() -> None:
    told = ruled(finding("SA09"))
    assert told.next == ("mend SA09", LADDER)
    assert "SA09: SA09 is wrong" in told.reasons


def test_the_drafter_comes_before_the_card() -> None:
    assert ruled(finding("GP01"), finding("DC09")).next == ("mend DC09", "mend GP01", LADDER)


def test_a_few_are_enough() -> None:
    told = ruled(*(finding(f"SA{number}") for number in range(20, 30)))
    assert told.next == ("mend SA20", "mend SA21", "mend SA22", "mend SA23", LADDER)


def test_a_warning_is_no_error() -> None:
    told = ruled(finding("SA09", Outcome.WARN), finding("SA10", Outcome.UNKNOWN))
    assert told.next == (LADDER,)


def test_on_a_host() -> None:
    setup = CommitSetup(engine="sglang", base="http://127.0.0.1:1")
    request = CommitRequest(
        key="a", purpose="point", arm="prose", context_tokens=1024, prompt=0, error="refused"
    )

    def first(outcome: Outcome) -> str:
        (told,) = verdicts.judge((setup, request), (finding("SA09", outcome),))
        return told.next[0]

    assert first(Outcome.FAIL) == "mend SA09"
    assert first(Outcome.WARN).startswith("ddprobe server")


def test_it_lists_its_kinds() -> None:
    (page,) = explanations.pages("inconclusive")
    assert {
        "nothing_recognised",
        "no_measurement",
        "prompt_length",
        "state_effect",
        "lookup",
        "weak_drafter",
    } <= set(page["kinds"])


def test_no_confidence_is_shown_of_what_is_open() -> None:
    told = Verdict(name="inconclusive", confidence="high")
    assert render.confidence(told, ", ") == ""
    assert render.confidence(Verdict(name="healthy", confidence="high"), ", ") == ", high confidence"


def points(arm: str) -> tuple[CommitPoint, ...]:
    return tuple(
        CommitPoint(arm=arm, context_tokens=context, requests=1, steps=20, commit_mean=1.9, ceiling=8)
        for context in (1024, 65536)
    )


def test_what_is_there_is_not_asked_for() -> None:
    two = "the same text at two lengths"
    open_question = "whether the text was the same at each length"

    def missing(*facts: Fact) -> str:
        return " | ".join(verdicts.judge_collected(facts, ())[0].missing)

    assert two in missing(COUNTED)
    assert two in missing(points("prose")[0])
    assert two not in missing(*points("prose"))
    assert open_question in missing(*points("text"))
    assert open_question not in missing(*points("prose"))
