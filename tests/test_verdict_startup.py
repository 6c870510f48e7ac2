"""A server that died at its start, at the limits: which run, which exception, and what is known of its launch."""

from __future__ import annotations

from typing import Any

import pytest

from ddprobe.facts import LogEvent, ModelConfig, ServerArgs
from ddprobe.model import Fact, Finding, Outcome, Verdict
from ddprobe.verdicts import startup_incompatible
from ddprobe.verdicts.case import Case
from tests.test_verdicts import lint


def event(kind: str, line: int, text: str = "ValueError: bad", run: str = "a", **values: str) -> LogEvent:
    return LogEvent(kind=kind, text=text, line=line, run=run, values=tuple(values.items()))


def args(**values: Any) -> ServerArgs:
    return ServerArgs(engine="sglang", origin="log", values=tuple(values.items()))


SPECULATES = args(speculative_algorithm="EAGLE3")
PLAIN = args(speculative_algorithm=None)
CRASH = event("crash", 10, phase="start")
DIED = event("died", 20, "killed")


def judged(*known: Fact, findings: tuple[Finding, ...] = ()) -> Verdict | None:
    ruling = startup_incompatible.judge(Case(known, findings))
    return None if ruling is None else ruling.verdict


def told(*known: Fact, findings: tuple[Finding, ...] = ()) -> Verdict:
    verdict = judged(*known, findings=findings)
    assert verdict is not None
    return verdict


@pytest.mark.parametrize(
    ("events", "line"),
    [
        pytest.param((CRASH, event("crash", 11, phase="start")), 10, id="the first exception"),
        pytest.param(
            (event("crash", 9, phase="start", secondary="yes"), CRASH), 10, id="not one that another caused"
        ),
        pytest.param((event("crash", 9, phase="start", secondary="yes"),), 9, id="unless there is no other"),
        pytest.param((event("crash", 9, phase="serving"), CRASH), 10, id="not one while it served"),
        pytest.param((DIED,), 20, id="its end alone"),
        pytest.param((event("crash", 10), DIED), 10, id="an exception before its end"),
        pytest.param((event("crash", 10),), None, id="an exception of nobody knows when"),
        pytest.param((event("died", 20, phase="serving"),), None, id="it ended while it served"),
        pytest.param((event("ready", 9), CRASH), 10, id="an earlier start came up"),
        pytest.param((CRASH, event("ready", 11)), None, id="it came up after all"),
        pytest.param((event("ready", 9, last="12"), CRASH), None, id="ready was said again after it"),
        pytest.param((event("ready", 9, last="9"), CRASH), 10, id="and not after it"),
        pytest.param((event("out_of_memory", 5, phase="start"),), 5, id="memory"),
        pytest.param((event("draft_failed", 5, phase="start"),), 5, id="the drafter"),
        pytest.param((event("warning", 5, phase="start"),), None, id="a warning"),
    ],
)
def test_what_a_run_died_of(events: tuple[LogEvent, ...], line: int | None) -> None:
    verdict = judged(*events, SPECULATES)
    assert (verdict is not None) is (line is not None)
    if verdict is not None:
        assert f"(line {line})" in verdict.reasons[0]


@pytest.mark.parametrize(
    ("events", "line"),
    [
        pytest.param((CRASH, event("crash", 30, run="b", phase="start")), 30, id="the last of two that died"),
        pytest.param((CRASH, event("ready", 30, run="b")), None, id="another came up"),
        pytest.param((CRASH, event("warning", 30, run="b")), 10, id="another tells no end"),
        pytest.param((event("warning", 30, run="b"), CRASH), 10, id="in whatever order"),
        pytest.param((CRASH, event("warning", 30, run="b"), event("warning", 30, run="c")), 10, id="two others tell no end"),
        pytest.param((event("ready", 1, run="b"), event("crash", 2, run="c", phase="start"), CRASH), None, id="one of three came up"),
    ],
)  # fmt: skip
def test_a_start_that_never_worked(events: tuple[LogEvent, ...], line: int | None) -> None:
    verdict = judged(*events, SPECULATES)
    assert (verdict is not None) is (line is not None)
    if verdict is not None:
        assert f"(line {line})" in verdict.reasons[0]


ABOUT = event("crash", 10, "ValueError: the draft model has 5 layers", phase="start")


@pytest.mark.parametrize(
    ("known", "findings", "confidence", "speculation"),
    [
        pytest.param((CRASH, DIED, SPECULATES), (), "high", "it was started with speculation", id="it speculates, and died"),
        pytest.param((CRASH, DIED, args(speculative_draft_model_path="/d")), (), "high", "it was started with speculation", id="a drafter is named"),
        pytest.param((CRASH, SPECULATES), (), "medium", "it was started with speculation", id="it speculates, and no word of its end"),
        pytest.param((ABOUT, DIED, PLAIN), (), "high", "its arguments name no speculation, the exception does", id="the exception speaks of it"),
        pytest.param((ABOUT, DIED), (), "high", "", id="nobody knows, the exception speaks of it"),
        pytest.param((CRASH, DIED), (), "medium", "", id="nobody knows"),
        pytest.param((CRASH,), (), "low", "", id="nobody knows anything"),
        pytest.param((CRASH, DIED, PLAIN), (), None, "", id="no speculation"),
        pytest.param((CRASH, DIED, PLAIN), (lint("DC43"),), "medium", "its arguments name no", id="no speculation, and a lint on it"),
        pytest.param((CRASH, DIED, PLAIN), (lint("DC43", Outcome.WARN),), None, "", id="a warning is none"),
    ],
)  # fmt: skip
def test_how_sure_it_is_that_speculation_was_why(
    known: tuple[Fact, ...], findings: tuple[Finding, ...], confidence: str | None, speculation: str
) -> None:
    verdict = judged(*known, findings=findings)
    assert (verdict.confidence if verdict else None) == confidence
    if verdict is not None:
        assert any(speculation in reason for reason in verdict.reasons)
        assert len(verdict.reasons) == 1 + bool(speculation) + len(findings)


@pytest.mark.parametrize(
    ("known", "missing"),
    [
        pytest.param((), ["the server's arguments", "the engine's version", "the drafter's config.json"], id="nothing known"),
        pytest.param((SPECULATES,), ["the engine's version", "the drafter's config.json"], id="arguments"),
        pytest.param((ServerArgs(engine="sglang", origin="log", version="0.5.23", values=SPECULATES.values),), ["the drafter's config.json"], id="with a version"),
        pytest.param((SPECULATES, ModelConfig(role="drafter", path="/d")), ["the engine's version"], id="and a configuration"),
    ],
)  # fmt: skip
def test_what_is_missing_of_a_launch(known: tuple[Fact, ...], missing: list[str]) -> None:
    verdict = told(CRASH, DIED, *known)
    assert [text for text in missing if not any(one.startswith(text) for one in verdict.missing)] == []
    assert len(verdict.missing) == len(missing)


def test_the_advice_of_lints_comes_before_what_is_tried_in_general() -> None:
    memory = event("crash", 10, "torch.OutOfMemoryError: CUDA out of memory", phase="start")
    general = told(memory, DIED, SPECULATES)
    assert general.kind == "out_of_memory"
    assert general.next[0].startswith("lower --mem-fraction-static")
    linted = told(memory, DIED, SPECULATES, findings=(lint("DC43", advice="name its quantisation"),))
    assert linted.next == ("name its quantisation", general.next[-1])
    assert told(CRASH, DIED, SPECULATES).next == general.next[-1:]
