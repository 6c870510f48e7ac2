"""What is known, each with its source: plain values that lints and verdicts judge.

They do not care where a fact came from: a live host, an old report, or files pasted into a ticket. A field that
is None was absent or could not be read; a lint says *unknown* where that matters.
"""

from __future__ import annotations

from ddprobe.facts.commit import (
    Account,
    Claim,
    CommitCheck,
    CommitPoint,
    CommitRequest,
    CommitSetup,
    Limit,
    PlannedPoint,
)
from ddprobe.facts.hosts import Discovered, Reach, ServerArgs, ServerProcess, ServerState
from ddprobe.facts.logs import Acceptance, DecodeBin, DecodeSeries, LogEvent
from ddprobe.facts.models import ModelConfig, Rope
from ddprobe.facts.source import SourceHit, SourcePackage, SourceRange, SourceSearch

__all__ = [
    "Acceptance",
    "Account",
    "Claim",
    "CommitCheck",
    "CommitPoint",
    "CommitRequest",
    "CommitSetup",
    "DecodeBin",
    "DecodeSeries",
    "Discovered",
    "Limit",
    "LogEvent",
    "ModelConfig",
    "PlannedPoint",
    "Reach",
    "Rope",
    "ServerArgs",
    "ServerProcess",
    "ServerState",
    "SourceHit",
    "SourcePackage",
    "SourceRange",
    "SourceSearch",
]
