"""Verdicts over collected evidence, by name, and facts of it that several tests share."""

from __future__ import annotations

from typing import Any

from ddprobe.facts import Acceptance, CommitPoint, ModelConfig
from ddprobe.model import Fact, Finding, Verdict
from ddprobe.verdicts import collected
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.ruling import Ruling
from tests.test_collected import point

DEAD, BUG, DECAY, TEXT = "drafter_dead", "long_context_bug", "long_context_decay", "text_difficulty"
TARGET = ModelConfig(role="target", path="t")


def ruling(
    name: str, *facts: Fact, findings: tuple[Finding, ...] = (), bandwidth: float | None = None
) -> Ruling:
    """The one of that name, with what it explains."""
    every = collected.judge(Case(tuple(facts), tuple(findings), bandwidth))
    (found,) = [one for one in every if one.verdict.name == name]
    return found


def verdict(name: str, *facts: Fact, **other: Any) -> Verdict:
    return ruling(name, *facts, **other).verdict


def reasons(name: str, *facts: Fact, **other: Any) -> str:
    return "\n".join(verdict(name, *facts, **other).reasons)


def of(
    ceiling: int | None, *commits: float, contexts: tuple[int, ...] = (1024, 16384, 65536)
) -> tuple[CommitPoint, ...]:
    """Repeated text in blocks of that size."""
    pairs = zip(contexts, commits, strict=False)
    return tuple(point("repeat", context, commit, ceiling=ceiling) for context, commit in pairs)


def figure(commit: float | None, steps: int | None = 640, **other: Any) -> Acceptance:
    return Acceptance(commit=commit, steps=steps, origin="/metrics", **other)


def drafter(**known: Any) -> ModelConfig:
    return ModelConfig(role="drafter", path="config.json", **known)
