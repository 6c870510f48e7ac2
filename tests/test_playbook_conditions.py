"""What a playbook's data decides: false, true, or not to be told, each with what is so in words."""

from __future__ import annotations

from typing import Any

import pytest

from ddprobe.model import Outcome
from ddprobe.playbook import Condition, Expectation, Reference
from ddprobe.playbookfile.conditions import expected, holds, wanted
from ddprobe.playbookfile.values import Scope, StepResult

COMMIT = StepResult(
    id="commit",
    status="done",
    outcome=Outcome.WARN,
    verdicts=("inconclusive", "gpu_state"),
    findings=("DC21",),
    output={
        "lowest": 1.5,
        "commit": (7.9, 1.5),
        "contexts": (),
        "url": "http://127.0.0.1:1",
        "hot": True,
        "one": 1,
    },
)
HALF = StepResult(id="half", status="incomplete", outcome=Outcome.UNKNOWN, reasons=("cut",))
GONE = StepResult(id="gone", status="skipped", outcome=Outcome.SKIP, reasons=("commit: not so",))
SCOPE = Scope(
    vars={"least": 2.0},
    steps={"commit": COMMIT, "half": HALF, "gone": GONE},
    verdicts=("inconclusive",),
)


def on(step: str, **parts: Any) -> Condition:
    return Condition(step=step, **parts)


@pytest.mark.parametrize(
    ("condition", "held", "reason"),
    [
        (on("commit", statuses=("done",)), True, "commit is done"),
        (on("gone", statuses=("done", "incomplete")), False, "gone is skipped, not done or incomplete"),
        (on("commit", outcomes=(Outcome.WARN, Outcome.FAIL)), True, "commit: outcome is warn"),
        (on("commit", outcomes=(Outcome.PASS,)), False, "commit: outcome is warn, not pass"),
        (on("half", outcomes=(Outcome.UNKNOWN,)), True, "half: outcome is unknown"),
        (on("commit", verdicts=("gpu_state",)), True, "commit: the verdict is inconclusive, gpu_state"),
        (on("half", verdicts=("healthy",)), False, "half: the verdict is none, not healthy"),
        (on("commit", findings=("DC20", "DC21")), True, "commit found DC21"),
        (on("commit", findings=("DC20",)), False, "commit did not find DC20"),
        (on("half", findings=("DC20",)), None, "half did not find DC20"),
        (on("commit", field="lowest", least=1.5), True, "commit.lowest is 1.5 (at least 1.5)"),
        (on("commit", field="lowest", least=1.51), False, "commit.lowest is 1.5, below 1.51"),
        # A limit that is none, from a report of then or a host's field: not to be told, and no bug.
        (
            on("commit", field="lowest", least="few"),
            None,
            "commit.lowest is 1.5, and few is no number to be at least",
        ),
        (
            on("commit", field="lowest", most=("a", "b")),
            None,
            "commit.lowest is 1.5, and a, b is no number to be at most",
        ),
        (
            on("commit", field="lowest", most=True),
            None,
            "commit.lowest is 1.5, and true is no number to be at most",
        ),
        (on("commit", field="hot", equals="true"), False, "commit.hot is true, not the text 'true'"),
        (on("commit", field="one", equals="1"), False, "commit.one is 1, not the text '1'"),
        (on("commit", field="lowest", most=1.4), False, "commit.lowest is 1.5, above 1.4"),
        (on("commit", field="lowest", least=1, most=2), True, "commit.lowest is 1.5 (at least 1, at most 2)"),
        (
            on("commit", field="lowest", least=Reference("vars", "least")),
            False,
            "commit.lowest is 1.5, below 2",
        ),
        (
            on("commit", field="lowest", least=Reference("vars", "most")),
            None,
            "commit.lowest is 1.5, and its limit is not known: the var 'most' is not set",
        ),
        (on("commit", field="commit", least=2), False, "commit.commit is 7.9, 1.5, below 2"),
        (on("commit", field="commit", most=8), True, "commit.commit is 7.9, 1.5 (at most 8)"),
        (
            on("commit", field="contexts", least=1),
            None,
            "commit.contexts is empty: no number to be held against a limit",
        ),
        (
            on("commit", field="url", least=1),
            None,
            "commit.url is http://127.0.0.1:1: no number to be held against a limit",
        ),
        (on("commit", field="url", equals="http://127.0.0.1:1"), True, "commit.url is http://127.0.0.1:1"),
        (
            on("commit", field="contexts", equals=1),
            None,
            "commit.contexts is empty: nothing to be held against a limit",
        ),
        (on("commit", field="hot", equals=False), False, "commit.hot is true, not false"),
        (on("commit", field="one", equals=True), False, "commit.one is 1, not true"),
        (on("commit", field="hot", equals=1), False, "commit.hot is true, not 1"),
        (on("commit", field="lowest", known=True), True, "commit.lowest is known"),
        (on("commit", field="absent", known=True), False, "commit.absent is not known"),
        (on("commit", field="absent", known=False), True, "commit.absent is not known"),
        (on("commit", field="lowest", known=True, least=2), False, "commit.lowest is 1.5, below 2"),
        (
            on("half", field="lowest", least=1),
            None,
            "half.lowest is not known: the step 'half' got no whole answer: cut, so there is no 'lowest'",
        ),
        (on("later", statuses=("done",)), None, "the step 'later' is not over"),
        (
            on("commit", statuses=("done",), verdicts=("gpu_state",)),
            True,
            "commit is done; commit: the verdict is inconclusive, gpu_state",
        ),
        (on("half", findings=("DC20",), statuses=("done",)), False, "half is incomplete, not done"),
        (on("", verdicts=("healthy",)), False, "the host: the verdict is inconclusive, not healthy"),
        (on("", outcomes=(Outcome.UNKNOWN,)), True, "the host: outcome is unknown"),
    ],
)
def test_a_condition(condition: Condition, held: bool | None, reason: str) -> None:
    found = holds(condition, SCOPE)
    assert (found.holds, found.reason) == (held, reason)


def test_of_several_false_decides_before_unknown() -> None:
    unknown, false, true = (
        on("half", findings=("DC20",)),
        on("gone", statuses=("done",)),
        on("commit", statuses=("done",)),
    )
    assert wanted((true, unknown, false), SCOPE).holds is False
    assert wanted((true, unknown), SCOPE).reason == "half did not find DC20"
    assert wanted((true, unknown), SCOPE).holds is None
    assert wanted((true, true), SCOPE).holds is True
    assert wanted((), SCOPE).holds is True


@pytest.mark.parametrize(
    ("condition", "otherwise", "outcome", "summary"),
    [
        (
            on("commit", field="lowest", least=1),
            Outcome.FAIL,
            Outcome.PASS,
            "it pays: commit.lowest is 1.5 (at least 1)",
        ),
        (
            on("commit", field="lowest", least=2),
            Outcome.FAIL,
            Outcome.FAIL,
            "it pays: commit.lowest is 1.5, below 2",
        ),
        (
            on("commit", field="lowest", least=2),
            Outcome.WARN,
            Outcome.WARN,
            "it pays: commit.lowest is 1.5, below 2",
        ),
        (
            on("half", field="lowest", least=2),
            Outcome.FAIL,
            Outcome.UNKNOWN,
            "it pays: half.lowest is not known: the step 'half' got no whole answer: cut, so there is no 'lowest'",
        ),
        (
            on("gone", outcomes=(Outcome.PASS,)),
            Outcome.FAIL,
            Outcome.UNKNOWN,
            "it pays: gone: outcome is skip, not pass; the step 'gone' was skipped: commit: not so",
        ),
        (on("gone", statuses=("done",)), Outcome.FAIL, Outcome.FAIL, "it pays: gone is skipped, not done"),
        (
            on("", verdicts=("healthy",)),
            Outcome.FAIL,
            Outcome.FAIL,
            "it pays: the host: the verdict is inconclusive, not healthy",
        ),
    ],
)
def test_an_expectation_is_a_finding(
    condition: Condition, otherwise: Outcome, outcome: Outcome, summary: str
) -> None:
    found = expected(Expectation(words="it pays", condition=condition, otherwise=otherwise, number=3), SCOPE)
    assert (found.id, found.outcome, found.summary) == ("EXPECT03", outcome, summary)
    assert found.subject == (condition.step or "host")


def test_a_number_is_told_as_measured() -> None:
    one = Expectation(words="it pays", condition=on("commit", field="lowest", least=2))
    assert expected(one, SCOPE).measured == (("lowest", 1.5),)
