"""What is known, each with its source: plain values that lints and verdicts judge.

They do not care where a fact came from: a live host, an old report, or files pasted into a ticket. A field that
is None was absent or could not be read; a lint says *unknown* where that matters.
"""

from __future__ import annotations

from ddprobe.facts.commit import (
    Account,
    BatchSpeed,
    Claim,
    CommitCheck,
    CommitPoint,
    CommitRequest,
    CommitSetup,
    Limit,
    PlainSpeed,
    PlannedPoint,
    SpeculationGain,
)
from ddprobe.facts.files import EvidenceFile, Rejudged
from ddprobe.facts.gpu import Gpu, GpuDriver, GpuFault, GpuLink, GpuProcess, GpuSample, GpuWindow
from ddprobe.facts.hosts import Discovered, Reach, ServerArgs, ServerProcess, ServerState
from ddprobe.facts.logs import Acceptance, DecodeBin, DecodeSeries, LogEvent, LogFile, LogTimeline, LogWindow
from ddprobe.facts.models import ModelConfig, Rope, WeightNames
from ddprobe.facts.source import SourceHit, SourcePackage, SourceRange, SourceSearch, VerifyPath
from ddprobe.facts.step_time import Achieved, Estimate, Roofline, StepFit

__all__ = [
    "Acceptance",
    "Account",
    "Achieved",
    "BatchSpeed",
    "Claim",
    "CommitCheck",
    "CommitPoint",
    "CommitRequest",
    "CommitSetup",
    "DecodeBin",
    "DecodeSeries",
    "Discovered",
    "Estimate",
    "EvidenceFile",
    "Gpu",
    "GpuDriver",
    "GpuFault",
    "GpuLink",
    "GpuProcess",
    "GpuSample",
    "GpuWindow",
    "Limit",
    "LogEvent",
    "LogFile",
    "LogTimeline",
    "LogWindow",
    "ModelConfig",
    "PlainSpeed",
    "PlannedPoint",
    "Reach",
    "Rejudged",
    "Roofline",
    "Rope",
    "ServerArgs",
    "ServerProcess",
    "ServerState",
    "SourceHit",
    "SourcePackage",
    "SourceRange",
    "SourceSearch",
    "SpeculationGain",
    "StepFit",
    "VerifyPath",
    "WeightNames",
]
