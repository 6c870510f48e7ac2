"""A text that is sent as it is: never beyond what the person or the server allows, and never at a cost that no plan tells."""

from __future__ import annotations

from typing import Any

import pytest

from ddprobe import runner
from ddprobe.facts import CommitRequest, CommitSetup
from ddprobe.lab import hosts
from ddprobe.model import HttpResult, Step, StepRecord
from ddprobe.probes.draft import _commit_plan as plan
from ddprobe.probes.draft.commit import DraftCommit
from tests.lab_session import LabSession
from tests.silent import SilentWriter

SHORT = "The cat sat on the mat. " * 20
LONG = "The cat sat on the mat. " * 2000
"""About 7 tokens a sentence."""


def probed(**settings: Any) -> tuple[StepRecord, list[str]]:
    """The step, and the keys of what was asked over HTTP."""
    session = LabSession(hosts.healthy())
    step = Step("commit", DraftCommit(arms="verbatim", steps=64, **settings))
    held = runner.collect(step, session.host, session, SilentWriter(), lambda *_: None)
    record, _ = runner.judge(step, held.evidence, held.broken, lambda _host, _step, key: key)
    return record, [result.key for result in held.evidence.results if isinstance(result, HttpResult)]


def setup(record: StepRecord) -> CommitSetup:
    (found,) = [fact for fact in record.facts if isinstance(fact, CommitSetup)]
    return found


def test_a_text_beyond_max_context_is_not_sent() -> None:
    record, asked = probed(text=LONG, max_context="1k")
    assert not [fact for fact in record.facts if isinstance(fact, CommitRequest)]
    assert not any("verbatim" in key for key in asked)
    (reason,) = [reason for reason in record.reasons if "verbatim" in reason]
    assert "not sent: it has 1" in reason
    assert "--max-context is 1024" in reason
    assert setup(record).left_out[0].startswith("verbatim: it has 1")


def test_a_text_within_it_is_sent_twice() -> None:
    record, asked = probed(text=SHORT, max_context="1k")
    sent = [fact for fact in record.facts if isinstance(fact, CommitRequest)]
    assert [request.purpose for request in sent] == ["point", "cached"]
    assert record.reasons == ()
    # Of 480 bytes there are 480 tokens at most: nobody has to count them.
    assert not any("tokens-text" in key for key in asked)


def test_a_text_longer_than_the_server_takes_is_not_sent() -> None:
    record, asked = probed(text=LONG * 20)
    assert not any("verbatim-point" in key for key in asked)
    assert any("the server's limit is" in reason for reason in record.reasons)


@pytest.mark.parametrize(("text", "fits"), [(SHORT, True), (LONG, False)])
def test_a_plan_tells_what_it_costs(text: str, fits: bool) -> None:
    record, _ = probed(text=text, max_context="1k", plan=True)
    points = setup(record).points
    if fits:
        (point,) = points
        words = len(text.split())
        assert (point.prompts, point.prompt_tokens, point.prefill_tokens) == (2, 2 * words, words)
        assert point.output_tokens > 0
    else:
        assert points == ()
        assert "--max-context is 1024" in setup(record).left_out[0]


# --- what fits ---------------------------------------------------------------------------------------------


def room(**given: int | None) -> plan.Room:
    known: dict[str, Any] = {"context_limit": 4096, "kv_tokens": None, "max_context": None, "output": 100}
    return plan.Room(**{**known, "draft": 7, **given})


@pytest.mark.parametrize(
    ("size", "given", "holds"),
    [
        # 4096 - 100 of output - 7 of a draft - 8 of margin.
        (3981, {}, True),
        (3982, {}, False),
        (3981, {"kv_tokens": 4095}, False),
        (1024, {"max_context": 1024}, True),
        (1025, {"max_context": 1024}, False),
        (10**6, {"context_limit": None}, True),
    ],
)
def test_what_fits_whatever_its_tokens(size: int, given: dict[str, int | None], holds: bool) -> None:
    assert room(**given).holds("x" * size) is holds


@pytest.mark.parametrize(
    ("tokens", "given", "output"),
    [
        (3981, {}, 100),
        (3991, {}, 90),
        (4079, {}, 2),
        (4080, {}, 0),
        (1024, {"max_context": 1024}, 100),
        (1025, {"max_context": 1024}, 0),
        (3000, {"kv_tokens": 3020}, 5),
        (3000, {"kv_tokens": 3016}, 0),
    ],
)
def test_a_text_that_was_counted(tokens: int, given: dict[str, int | None], output: int) -> None:
    most, why = room(**given).verbatim(tokens, "x")
    assert (most, bool(why)) == (output, output == 0)


@pytest.mark.parametrize(
    ("size", "given", "sent"),
    [
        # At most a token a byte: within what the person allows only if it surely is.
        (1024, {"max_context": 1024}, True),
        (1025, {"max_context": 1024}, False),
        # The server says itself where less than eight characters make a token.
        (4000 * 8, {}, True),
        (4100 * 8, {}, False),
    ],
)
def test_a_text_that_nobody_counted(size: int, given: dict[str, int | None], sent: bool) -> None:
    assert (room(**given).verbatim(None, "x" * size)[1] == "") is sent
