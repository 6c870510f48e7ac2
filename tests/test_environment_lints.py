"""What lints of the environment say of servers that run as somebody, and of environments that were only collected."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ddprobe import lints
from ddprobe.facts import ServerProcess
from ddprobe.model import Cite, Fact, Outcome
from tests.test_lints import by_id, facts_of

FORGED = {"environment": {"SGLANG_SIMULATE_ACC_LEN": "3.5"}}


def changed(case: dict[str, Any], **process: Any) -> list[Fact]:
    return [
        replace(fact, **process) if isinstance(fact, ServerProcess) else fact
        for fact in facts_of(case, pid=process.get("pid", 41))
    ]


@pytest.mark.parametrize(
    ("user", "who"),
    [("root", "connect as root"), ("alice", "connect as alice or root"), ("", "the server's user or root")],
)
def test_who_may_see_it(user: str, who: str) -> None:
    found = by_id(lints.judge(changed({"environment_seen": False}, user=user)))["EN03"]
    assert found.outcome is Outcome.INFO
    assert found.advice.endswith(who)


def test_a_collected_environment_is_of_no_running_server() -> None:
    found = by_id(lints.judge(changed(FORGED, pid=0, source=(Cite("collected/env.txt", "line 3"),))))
    assert "EN03" not in found
    assert found["EN01"].outcome is Outcome.FAIL
    assert found["EN01"].cites == (Cite("collected/env.txt", "SGLANG_SIMULATE_ACC_LEN"),)


def test_of_a_running_server_its_environment_is_cited_and_nothing_else() -> None:
    sources = (Cite("cmdline-41", "pid 41"), Cite("environ-41", "pid 41"), Cite("environ-42", "pid 42"))
    found = by_id(lints.judge(changed(FORGED, source=sources)))["EN01"]
    assert found.cites == (Cite("environ-41", "SGLANG_SIMULATE_ACC_LEN"),)


def test_arguments_alone_tell_of_no_environment() -> None:
    facts = [fact for fact in facts_of(FORGED) if not isinstance(fact, ServerProcess)]
    found = by_id(lints.judge(facts))
    assert not {"EN01", "EN02", "EN03", "EN04", "SA19"} & set(found)
    assert not [finding.summary for finding in found.values() if "has a bug" in finding.summary]
