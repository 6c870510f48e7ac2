"""Contexts that a text does not fit into: what was asked for by name and not measured is missing from the answer."""

from __future__ import annotations

from typing import Any

import pytest

from ddprobe import runner
from ddprobe.facts import CommitPoint, CommitSetup
from ddprobe.lab import hosts
from ddprobe.model import Host, HostRecord, Probe, Report, Step, StepRecord, exit_code
from ddprobe.probes.draft.commit import DraftCommit
from ddprobe.probes.draft.step_time import DraftStepTime
from tests.lab_session import LabSession
from tests.silent import SilentWriter


def probed(probe: Probe) -> tuple[StepRecord, int]:
    """The step, and the exit code of a run of it alone."""
    session = LabSession(hosts.healthy())
    step = Step("measured", probe)
    held = runner.collect(step, session.host, session, SilentWriter(), lambda *_: None)
    record, found = runner.judge(step, held.evidence, held.broken, lambda _host, _step, key: key)
    report = Report(
        name="x",
        version="",
        started=0.0,
        hosts=(HostRecord(name=session.host.name),),
        steps=(record,),
        findings=tuple(found),
        verdicts=runner.conclude(Host(name=session.host.name), record.facts, found),
    )
    return record, exit_code(report)


def measured(record: StepRecord) -> list[tuple[str, int]]:
    points = [fact for fact in record.facts if isinstance(fact, CommitPoint)]
    return [(p.arm, p.context_tokens) for p in points if p.purpose in ("point", "step-time")]


@pytest.mark.parametrize("plan", [False, True])
@pytest.mark.parametrize("arms", ["repeat", "repeat,prose", ""])
def test_a_probe_that_measures_nothing_is_not_done(arms: str, plan: bool) -> None:
    record, code = probed(DraftCommit(contexts="5", arms=arms, plan=plan))
    assert measured(record) == []
    (reason,) = record.reasons
    assert reason.startswith("context 5: not sent: the text of repeat takes ")
    assert (record.status, code) == ("incomplete", 4)
    (setup,) = [fact for fact in record.facts if isinstance(fact, CommitSetup)]
    assert setup.left_out[0].startswith("repeat at 5 tokens: its text takes ")


def test_nor_is_one_of_step_times() -> None:
    record, code = probed(DraftStepTime(contexts="5,9"))
    assert [reason.split(":")[0] for reason in record.reasons] == ["context 5", "context 9"]
    assert code == 4


QUICK: dict[str, Any] = {"steps": 16, "prompts": 1}


def test_one_length_of_several_that_no_text_fits_into_is_missing() -> None:
    record, _ = probed(DraftCommit(contexts="5,128", arms="repeat", **QUICK))
    assert measured(record) == [("repeat", 128)]
    assert [reason.split(":")[0] for reason in record.reasons] == ["context 5"]


def test_an_arm_that_was_named_and_fits_nowhere_is_missing() -> None:
    record, _ = probed(DraftCommit(contexts="128", arms="repeat,prose", **QUICK))
    assert measured(record) == [("repeat", 128)]
    (reason,) = record.reasons
    assert reason.startswith("prose: not sent: its text takes ")


def test_a_length_that_is_too_short_for_some_texts_alone_is_no_gap() -> None:
    record, _ = probed(DraftCommit(contexts="128,1k", arms="repeat,prose", **QUICK))
    assert ("prose", 1024) in measured(record)
    assert ("prose", 128) not in measured(record)
    assert record.reasons == ()
    # An arm that nobody named may be left out.
    record, _ = probed(DraftCommit(contexts="128", **QUICK))
    assert measured(record) == [("repeat", 128)]
    assert record.reasons == ()
