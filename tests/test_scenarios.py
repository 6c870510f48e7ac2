"""Every scenario of the lab gets its verdict, and none a wrong one: the real probe, the real judging, other seeds.

Commit lengths emerge from the lab's mechanisms, so the right verdict has to be found in them each time anew: other
filler, other nonces, another order of lengths, another language of the target, another drafter.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from ddprobe import lab, runner, statistics, verdicts
from ddprobe.facts import CommitPoint
from ddprobe.lab import hosts
from ddprobe.lab.engine.wiring import Parts
from ddprobe.lab.machine import Machine
from ddprobe.model import Host, HttpResult, Result, Step, Verdict
from ddprobe.probes.draft.commit import DraftCommit
from ddprobe.redact import Redactor
from tests.lab_session import LabSession
from tests.silent import SilentWriter

SEEDS = 20
BOTTLENECK = "attention_kernel_bottleneck"


@dataclass(frozen=True)
class Right:
    """The verdicts of a scenario with their kinds, the first one first; and the shortest measurement that shows them."""

    verdicts: tuple[tuple[str, str], ...]
    short: dict[str, Any]


RIGHT = {
    "founding-story": Right(
        (("metric_inconsistency", "commit_path"), (BOTTLENECK, "serial_prefix")),
        {"contexts": "1k,4k,16k", "arms": "repeat"},
    ),
    "healthy": Right((("healthy", ""),), {"contexts": "2k,16k"}),
    "hard-text": Right((("text_difficulty", ""),), {"contexts": "2k,16k"}),
    "rope-cliff": Right((("long_context_bug", "rope_position"),), {"contexts": "1k,24k,40k", "arms": "repeat"}),
    "window-not-applied": Right(
        (("long_context_bug", "window_ignored"),), {"contexts": "1k,4k,16k", "arms": "repeat"}
    ),
    "dead-drafter": Right((("drafter_dead", "first_position"),), {"contexts": "1k,4k", "arms": "repeat"}),
    "not-speculating": Right((("not_speculating", "off"),), {"contexts": "1k,4k"}),
    "metric-lies": Right((("metric_inconsistency", "metric"),), {"contexts": "1k,4k", "arms": "repeat,prose"}),
    "slow-attention": Right(((BOTTLENECK, "serial_prefix"),), {"contexts": "1k,4k,16k", "arms": "repeat"}),
    "cache-loses-draft-kv": Right((("cache_state_bug", "draft_kv_lost"),), {"contexts": "1k,4k", "arms": "repeat"}),
    "simulated-acceptance": Right(
        (("simulated_acceptance", "switch"),), {"contexts": "1k,4k", "arms": "repeat,prose"}
    ),
}


class AsItCame(Redactor):
    """The lab has no secrets but its own, and redaction has tests of its own: a tenth of a second for each run."""

    def result(self, result: Result) -> Result:
        return result


def probed(machine: Machine, **settings: Any) -> tuple[tuple[CommitPoint, ...], tuple[Verdict, ...]]:
    """What the probe measures on this machine, and what that is judged to be."""
    session = LabSession(machine)
    session.redactor = AsItCame()
    step = Step("commit", DraftCommit(**settings))
    held = runner.collect(step, session.host, session, SilentWriter(), lambda *_: None)
    record, findings = runner.judge(step, held.evidence, held.broken, lambda _host, _step, key: key)
    assert record.reasons == ()
    found = verdicts.judge(record.facts, findings, session.host.gpu_bandwidth)
    return tuple(fact for fact in record.facts if isinstance(fact, CommitPoint)), found


def told(found: tuple[Verdict, ...]) -> tuple[tuple[str, str], ...]:
    return tuple((verdict.name, verdict.kind) for verdict in found)


def machine(name: str) -> Machine:
    return next(one for one in lab.scenarios() if one.name == name).build()
