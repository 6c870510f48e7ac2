"""What a probe is, and a step of a run."""

from __future__ import annotations

import abc
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ddprobe.blocks import Block
from ddprobe.model.answers import Evidence
from ddprobe.model.conclusions import Fact, Finding, Gap
from ddprobe.model.hosts import Host
from ddprobe.model.questions import Begin, End, Question

Asked = Question | Begin | End | tuple[Question, ...]
Conversation = Generator[Asked, Any, None]
"""Yields a question, or a tuple of questions that travel together; is sent the answer, or a tuple of answers.

`Begin` and `End` stand around what a command runs beside.
"""


@dataclass(frozen=True, slots=True)
class Help:
    """One line about a probe's setting: `name: Annotated[int, Help("…")] = 1`."""

    text: str


@dataclass(frozen=True, slots=True)
class Listed:
    """Of a text setting that holds several values separated by commas: a playbook may give them as a list."""


@dataclass(frozen=True, kw_only=True)
class Probe(abc.ABC):
    """A named, read-only question. Subclasses are frozen dataclasses; their fields are the settings.

    The module's docstring opens with the question and is the manual page; `name` comes from the module's path.
    """

    findings: ClassVar[dict[str, str]] = {}
    """Each finding id that this probe itself can give (lints aside), with a line on what it means."""
    measures: ClassVar[bool] = False
    """Whether it times the server: nothing else of ours may run on the host beside it."""
    outputs: ClassVar[dict[str, str]] = {}
    """What later steps of a playbook may take from this one, each with a line on what it is."""

    @classmethod
    def name(cls) -> str:
        """`source.grep` for ddprobe/probes/source/grep.py."""
        return ".".join(cls.__module__.split(".")[-2:])

    @classmethod
    def mistakes(cls, given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Settings that could never be asked, as (setting, what is wrong with it). `given`: those known so far."""
        yield from ()

    @classmethod
    def cost(cls, given: Mapping[str, Any]) -> str:
        """What it costs the server, in words; empty where it sends no prompt. `given`: settings, None: not known yet."""
        return ""

    @classmethod
    def output(cls, facts: Sequence[Fact], findings: Sequence[Finding]) -> Mapping[str, Any]:
        """Pure: a value for each of `outputs` that is known: numbers, texts, truths, or tuples of them."""
        return {}

    @abc.abstractmethod
    def collect(self, host: Host) -> Conversation:
        """Say what to ask, look at what came, ask on. Never touches a host itself."""

    @abc.abstractmethod
    def interpret(self, evidence: Evidence) -> Iterator[Fact | Finding | Gap]:
        """Pure: the transcript in; facts, findings and gaps out. May let `Unanswered` escape."""

    @abc.abstractmethod
    def show(self, facts: Sequence[Fact]) -> Iterator[Block]:
        """Pure: what a person sees of this step on one host, as neutral blocks that each view draws its own way."""


@dataclass(frozen=True, slots=True)
class Step:
    """One probe of a run, under an id that names its evidence folder."""

    id: str
    probe: Probe
