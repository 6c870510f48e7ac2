"""The nouns: what is asked, what came back, what is concluded. Frozen, no I/O, compared by value."""

from ddprobe.model.answers import Chunk, CommandResult, Evidence, HttpResult, Result
from ddprobe.model.conclusions import (
    COLLECTED,
    VERDICTS,
    Cite,
    Fact,
    Finding,
    Gap,
    Hypothesis,
    LedgerLine,
    Verdict,
)
from ddprobe.model.hosts import LAB_TAG, Container, Host
from ddprobe.model.outcome import Outcome
from ddprobe.model.probes import Asked, Conversation, Help, Listed, Probe, Step
from ddprobe.model.questions import Begin, Command, End, Glob, HttpRequest, Question, Word
from ddprobe.model.report import (
    EXPECTED,
    FAIL_ON,
    Artefact,
    Connection,
    HostRecord,
    PlaybookRecord,
    Progress,
    Report,
    StepRecord,
    exit_code,
    summed,
)
from ddprobe.model.units import KIB, MIB

__all__ = [
    "COLLECTED",
    "EXPECTED",
    "FAIL_ON",
    "KIB",
    "LAB_TAG",
    "MIB",
    "VERDICTS",
    "Artefact",
    "Asked",
    "Begin",
    "Chunk",
    "Cite",
    "Command",
    "CommandResult",
    "Connection",
    "Container",
    "Conversation",
    "End",
    "Evidence",
    "Fact",
    "Finding",
    "Gap",
    "Glob",
    "Help",
    "Host",
    "HostRecord",
    "HttpRequest",
    "HttpResult",
    "Hypothesis",
    "LedgerLine",
    "Listed",
    "Outcome",
    "PlaybookRecord",
    "Probe",
    "Progress",
    "Question",
    "Report",
    "Result",
    "Step",
    "StepRecord",
    "Verdict",
    "Word",
    "exit_code",
    "summed",
]
