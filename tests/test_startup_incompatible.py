"""A server that died at its start: when that is the verdict, and when it is not."""

from __future__ import annotations

from typing import Any

import pytest

from ddprobe.evidence import launch, startup
from ddprobe.evidence.document import of_bytes
from ddprobe.facts import CommitPoint, DecodeSeries
from ddprobe.model import Cite, Fact, Finding, Outcome, Verdict
from ddprobe.verdicts import startup_incompatible
from ddprobe.verdicts.case import Case

ARGS = (
    "server_args=ServerArgs(model_path='/m', quantization='awq', speculative_algorithm='EAGLE3', "
    "speculative_draft_model_path='/d', speculative_draft_model_quantization=None)"
)
PLAIN = "server_args=ServerArgs(model_path='/m', quantization='awq', speculative_algorithm=None)"
DEATH = (
    "[2026-06-14 10:00:40 TP0] Scheduler hit an exception: Traceback (most recent call last):\n"
    "ValueError: Cannot find the config file for awq"
)
READY = "[2026-06-14 10:01:40] The server is fired up and ready to roll!"


def facts(**documents: str) -> tuple[Fact, ...]:
    found: list[Fact] = []
    for key, text in documents.items():
        document = of_bytes(key, text.encode())
        for recognise in (launch.recognise, startup.recognise):
            told = recognise(document, document.sample())
            found += told.facts if told else ()
    return tuple(found)


def judged(known: tuple[Fact, ...], *findings: Finding) -> Verdict | None:
    ruling = startup_incompatible.judge(Case(known, findings))
    return ruling.verdict if ruling else None


def fault(id: str, **other: Any) -> Finding:
    known: dict[str, Any] = {
        "subject": "drafter and launch",
        "summary": "does not go together",
        "advice": "change it",
    }
    return Finding(id=id, outcome=Outcome.FAIL, **{**known, **other})


def test_arguments_and_an_exception_in_two_files() -> None:
    verdict = judged(facts(a=ARGS, b=DEATH), fault("DC43"))
    assert verdict is not None
    assert (verdict.name, verdict.kind, verdict.confidence) == (
        "startup_incompatible",
        "quantization",
        "high",
    )
    assert "Cannot find the config file for awq" in verdict.reasons[0]
    assert "DC43: does not go together" in verdict.reasons
    assert verdict.next[0] == "change it"
    assert Cite("b", "line 2") in verdict.cites


def test_one_log_that_ends_at_its_start() -> None:
    verdict = judged(facts(log=f"{ARGS}\n{DEATH}"))
    assert verdict is not None
    assert verdict.confidence == "high"


def test_memory_that_ran_out_is_a_kind_of_its_own() -> None:
    verdict = judged(
        facts(log=f"{ARGS}\n{DEATH.replace('Cannot find the config file for awq', 'CUDA out of memory')}")
    )
    assert verdict is not None
    assert verdict.kind == "out_of_memory"


def test_without_arguments_less_is_certain() -> None:
    unknown = judged(facts(log=DEATH))
    about = judged(facts(log=DEATH.replace("awq", "the draft model")))
    assert unknown is not None
    assert about is not None
    assert (unknown.confidence, about.confidence) == ("medium", "high")
    assert any("was it told to speculate" in text for text in unknown.missing)


def test_a_traceback_after_the_launch_without_a_word_of_death() -> None:
    trace = "Traceback (most recent call last):\n  File x\nKeyError: 'embed_tokens'"
    verdict = judged(facts(log=f"{ARGS}\n{trace}"))
    assert verdict is not None
    assert (verdict.kind, verdict.confidence) == ("vocabulary", "medium")


@pytest.mark.parametrize(
    ("line", "kind", "confidence"),
    [
        (
            "ValueError: Target model's context_length (131072) is greater than the derived context_length (40960).",
            "context_length",
            "medium",
        ),
        ("ValueError: DFLASH speculative decoding requires setting --speculative-draft-model-path.", "arguments", "medium"),
        ("RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.", "out_of_memory", "low"),
        ("RuntimeError: size mismatch for draft_model.fc.weight", "shape", "medium"),
    ],
)  # fmt: skip
def test_an_exception_of_the_start_needs_nothing_beside_it(line: str, kind: str, confidence: str) -> None:
    verdict = judged(facts(log=line + "\n"))
    assert verdict is not None
    assert (verdict.kind, verdict.confidence) == (kind, confidence)


# --- against ----------------------------------------------------------------------------------------------


def test_a_server_that_came_up() -> None:
    assert judged(facts(log=f"{ARGS}\n{READY}")) is None
    assert judged(facts(log=f"{ARGS}\n{READY}\n{DEATH}")) is None
    assert (
        judged(facts(log=f"{ARGS}\nTraceback (most recent call last):\nImportError: no x\n{READY}")) is None
    )


def test_one_run_died_and_another_came_up() -> None:
    assert judged(facts(a=f"{ARGS}\n{DEATH}", b=f"{ARGS}\n{READY}")) is None


@pytest.mark.parametrize("line", ["ValueError: bad", "KeyError: 'draft'", "RuntimeError: shape mismatch"])
def test_an_exception_of_nobody_knows_when(line: str) -> None:
    assert judged(facts(log=line + "\n")) is None


def test_a_server_without_speculation_that_died_of_something_else() -> None:
    assert judged(facts(log=f"{PLAIN}\n{DEATH}")) is None


def test_measurements_show_that_it_served() -> None:
    known = facts(log=f"{ARGS}\n{DEATH}")
    assert judged((*known, CommitPoint(arm="repeat", context_tokens=1024, commit_mean=3.0))) is None
    assert judged((*known, DecodeSeries(engine="sglang", lines=40))) is None


def test_a_lone_traceback_is_of_anything() -> None:
    assert judged(facts(log="Traceback (most recent call last):\n  File x\nValueError: bad draft")) is None


def test_nothing_is_said_of_nothing() -> None:
    assert judged(()) is None
    assert judged(facts(log=ARGS)) is None
