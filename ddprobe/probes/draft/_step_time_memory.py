"""What memory bandwidth allows at the least, from the target and the cards that a step knows, and how near the server comes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ddprobe import roofline
from ddprobe.facts import Achieved, Roofline, StepFit
from ddprobe.model import Fact, Host
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.growth import memory


def beside(facts: Sequence[Fact], host: Host) -> Iterator[Roofline | Achieved]:
    """The roofline of the server with speculation and its law beside it; nothing where no law or no target is known."""
    laws = [fact for fact in facts if isinstance(fact, StepFit) and fact.purpose == "step-time"]
    line = memory(Case(tuple(facts), gpu_bandwidth=host.gpu_bandwidth)) if laws else None
    if line is None or not line.kv_bytes_per_token:
        return
    line = replace(line, base=laws[-1].base)
    yield line
    yield from (roofline.achieved(law, line) for law in laws)
