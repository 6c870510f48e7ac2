"""The ledger: what is supported, what is refuted and by what, and what nobody tested."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest

from ddprobe import verdicts
from ddprobe.facts import Claim, CommitCheck, CommitPoint, CommitSetup, ModelConfig, PlannedPoint
from ddprobe.model import Fact, Finding, HostRecord, Hypothesis, Outcome, Report, Verdict
from ddprobe.render import markdown, terminal
from ddprobe.reportjson import from_report, to_report
from ddprobe.verdicts.hypotheses import HYPOTHESES

SHORT, MIDDLE, LONG = 1024, 16384, 131072


def point(arm: str, context: int, commit: float, ms: float = 20.0, half: float = 0.1) -> CommitPoint:
    return CommitPoint(
        arm=arm,
        context_tokens=context,
        requests=4,
        prompt_tokens=context,
        cached_tokens=0,
        steps=100,
        drafted_steps=100,
        commit_mean=commit,
        commit_low=max(1.0, commit - half),
        commit_high=min(8.0, commit + half),
        ceiling=8,
        step_ms=ms,
        step_ms_low=ms * 0.95,
        step_ms_high=ms * 1.05,
        timed_steps=90,
        tok_s=commit / ms * 1000,
        copied=None if arm == "prose" else 1.0,
    )


def ladder(
    arm: str, *commits: float, ms: tuple[float, float, float] = (20, 21, 22)
) -> tuple[CommitPoint, ...]:
    contexts = (SHORT, MIDDLE, LONG)
    return tuple(point(arm, c, commit, t) for c, commit, t in zip(contexts, commits, ms, strict=True))


def check(name: str, agrees: bool) -> CommitCheck:
    return CommitCheck(
        name=name, agrees=agrees, text=f"{name}: 7.90 and 7.85", first=7.9, second=7.85, steps=64
    )


def probed(*points: CommitPoint, **other: Any) -> tuple[Fact, ...]:
    known: dict[str, Any] = {
        "engine": "sglang",
        "base": "http://127.0.0.1:30000",
        "speculating": True,
        "drafter": "model",
        "ceiling": 8,
        "window": 2048,
        "points": tuple(PlannedPoint(p.arm, p.context_tokens, 4, 4000, 1000, 2000) for p in points),
    }
    return (CommitSetup(**{**known, **other}), *points)


def ledger(
    facts: tuple[Fact, ...], findings: tuple[Finding, ...] = (), *, collected: bool = False
) -> dict[str, Hypothesis]:
    judge = verdicts.judge_collected if collected else verdicts.judge
    return {one.name: one for one in verdicts.ledger(facts, findings, judge(facts, findings))}


def statuses(found: dict[str, Hypothesis], status: str) -> set[str]:
    return {name for name, one in found.items() if one.status == status}


WHOLE = (
    *ladder("repeat", 7.9, 7.9, 7.9),
    *ladder("far-copy near", 7.5, 7.5, 7.5),
    *ladder("far-copy", 7.5, 7.4, 7.4),
    *ladder("prose", 4.0, 4.0, 4.0),
)
CONTROLS = (
    check("first-again", True),
    check("cold-cached", True),
    check("step-time-again", True),
    check("sources", True),
)


def test_there_are_nine_and_none_without_a_verdict() -> None:
    assert len(HYPOTHESES) == 9
    assert verdicts.ledger((), (), ()) == ()
    assert list(ledger((), collected=True)) == list(HYPOTHESES)


def test_nothing_known_tests_nothing() -> None:
    found = ledger((), collected=True)
    assert statuses(found, "untested") == set(HYPOTHESES)
    assert all(one.evidence == "" for one in found.values())


def test_a_sound_server_with_every_control_refutes_all_but_launches() -> None:
    found = ledger((*probed(*WHOLE), *CONTROLS))
    assert statuses(found, "untested") == {"cpu_or_launch_bound"}
    assert statuses(found, "supported") == set()
    assert "first-again: 7.90 and 7.85" not in found["kv_lost_on_cache_hit"].evidence
    assert "cold-cached: 7.90 and 7.85" in found["kv_lost_on_cache_hit"].evidence


def test_easy_text_refutes_positions_and_not_the_far_context() -> None:
    """The founding experiment: repeated text that holds says nothing of what stands far back."""
    found = ledger(probed(*ladder("repeat", 7.9, 7.9, 7.9)))
    assert found["positions"].status == "refuted"
    assert found["drafter_long_context"].status == "untested"
    assert "a far copy was not measured" in found["drafter_long_context"].evidence
    assert found["text_hard"].status == "untested"


def test_a_collapse() -> None:
    drafter = ModelConfig(role="drafter", path="config.json", max_position_embeddings=40960)
    found = ledger((*ladder("repeat", 7.9, 7.9, 1.0), drafter), collected=True)
    assert statuses(found, "supported") == {"drafter_long_context", "positions"}
    assert found["text_hard"].status == "refuted"
    assert found["text_hard"].evidence.startswith(
        "long_context_bug (rope_position): repeat commits 7.90 of 8"
    )


def test_a_dead_drafter_is_no_matter_of_length_or_text() -> None:
    found = ledger(ladder("repeat", 1.0, 1.0, 1.0), collected=True)
    assert {"drafter_long_context", "positions", "text_hard"} <= statuses(found, "refuted")


def test_hard_text() -> None:
    found = ledger((*ladder("repeat", 7.9, 7.9, 7.9), *ladder("prose", 1.9, 1.9, 1.9)), collected=True)
    assert statuses(found, "supported") == {"text_hard"}
    assert found["positions"].status == "refuted"


def test_attention_refutes_launches() -> None:
    found = ledger(ladder("repeat", 7.9, 7.9, 7.9, ms=(20, 40, 200)), collected=True)
    assert statuses(found, "supported") == {"attention_kernel"}
    assert found["cpu_or_launch_bound"].status == "refuted"
    assert found["cpu_or_launch_bound"].evidence.startswith("launches take as long at any length")


def test_step_times_that_stay_refute_attention() -> None:
    assert ledger(ladder("repeat", 7.9, 7.9, 7.9), collected=True)["attention_kernel"].status == "refuted"
    two = ladder("repeat", 7.9, 7.9, 7.9)[:2]
    assert ledger(two, collected=True)["attention_kernel"].status == "untested"


@pytest.mark.parametrize(
    ("outcome", "status"),
    [(Outcome.FAIL, "supported"), (Outcome.PASS, "refuted"), (Outcome.UNKNOWN, "untested")],
)
def test_the_window_is_a_question_to_the_installed_source(outcome: Outcome, status: str) -> None:
    finding = Finding(
        id="DC21", outcome=outcome, subject="drafter", summary="the installed SGLang applies it or not"
    )
    assert ledger((), (finding,), collected=True)["window_not_applied"].status == status


def test_a_metric_that_contradicts_itself() -> None:
    pair = (
        Claim(what="commit length", value=1.0, origin="avg_commit_len"),
        Claim(what="accepted depth", value=3.0, origin="avg_accepted_depth"),
    )
    assert statuses(ledger(pair, collected=True), "supported") == {"metric_wrong"}


def report() -> Report:
    facts = ladder("repeat", 7.9, 7.9, 7.9, ms=(20, 40, 200))
    found = verdicts.judge_collected(facts, ())
    return Report(
        name="analyse",
        version="1",
        started=1.0,
        hosts=(HostRecord(name="evidence"),),
        verdicts=tuple(Verdict(name=v.name, reasons=v.reasons, host="evidence") for v in found),
        hypotheses=verdicts.ledger(facts, (), found),
    )


def test_the_ledger_goes_through_json() -> None:
    data = from_report(report())
    assert [one["name"] for one in data["hypotheses"]] == list(HYPOTHESES)
    assert to_report(data) == report()


def test_views_show_what_is_supported_first() -> None:
    text = markdown.text(report())
    assert "## Hypotheses" in text
    assert text.index("attention kernel is slow | supported") < text.index(
        "positions or YaRN are wrong | refuted"
    )
    drawn = StringIO()
    terminal.show(report(), folder=None, file=drawn, width=100)
    shown = drawn.getvalue()
    assert (
        "● supported the target's attention kernel is slow: attention_kernel_bottleneck: a step takes 20 ms"
        in shown
    )
    assert "untested: " in shown
    quiet = StringIO()
    terminal.show(report(), folder=None, file=quiet, quiet=True)
    assert "Hypotheses" not in quiet.getvalue()
