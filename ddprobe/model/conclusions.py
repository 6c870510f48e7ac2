"""What is concluded from evidence: facts, findings, verdicts, hypotheses."""

from __future__ import annotations

from dataclasses import dataclass

from ddprobe.model.outcome import Outcome


@dataclass(frozen=True, slots=True)
class Cite:
    """Where a finding can be checked: an answer's key (a path within the report once stored) and a place in it."""

    artefact: str
    at: str = ""
    """Lines (`lines 3-9`) or a field (`$.rope_scaling.factor`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One judgement. `summary` holds the number and its limit in one sentence."""

    id: str
    outcome: Outcome
    subject: str
    summary: str
    cites: tuple[Cite, ...] = ()
    measured: tuple[tuple[str, str | int | float | bool | None], ...] = ()
    advice: str = ""
    """The exact flag or field to change, and how to undo it."""
    source: str = ""
    """Where the knowledge comes from."""
    host: str = ""
    step: str = ""


@dataclass(frozen=True, slots=True)
class Gap:
    """A part of what was asked got no whole answer. Becomes an *unknown* finding, and the step is incomplete."""

    subject: str
    reason: str
    cites: tuple[Cite, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """Something known. Subclasses (`facts.py`) say what; `source` says from which answers."""

    source: tuple[Cite, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the evidence supports (PRODUCT: names, kinds)."""

    name: str
    kind: str = ""
    confidence: str = "low"
    reasons: tuple[str, ...] = ()
    cites: tuple[Cite, ...] = ()
    ruled_out: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    next: tuple[str, ...] = ()
    host: str = ""

    @property
    def outcome(self) -> Outcome:
        """How it counts. A verdict of a later version that this one does not know is a failure."""
        return VERDICTS.get(self.name, Outcome.FAIL)


COLLECTED = "evidence"
"""The name of the host that files collected elsewhere are judged under: none that a command could go to."""

VERDICTS = {
    "healthy": Outcome.PASS,
    "text_difficulty": Outcome.INFO,
    "long_context_decay": Outcome.WARN,
    "gpu_state": Outcome.WARN,
    "not_speculating": Outcome.WARN,
    "spec_net_loss": Outcome.WARN,
    "inconclusive": Outcome.UNKNOWN,
    "long_context_bug": Outcome.FAIL,
    "drafter_dead": Outcome.FAIL,
    "metric_inconsistency": Outcome.FAIL,
    "simulated_acceptance": Outcome.FAIL,
    "verify_not_lossless": Outcome.FAIL,
    "cache_state_bug": Outcome.FAIL,
    "attention_kernel_bottleneck": Outcome.FAIL,
    "launch_or_cpu_bound": Outcome.FAIL,
    "startup_incompatible": Outcome.FAIL,
}
"""Every verdict there is, and how it counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hypothesis:
    """An explanation that somebody would think of, and what the evidence says of it."""

    name: str
    text: str
    """What it says, in words."""
    status: str
    """`supported`, `refuted` or `untested`."""
    evidence: str = ""
    """What decides it, in a sentence."""
    cites: tuple[Cite, ...] = ()
    host: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerLine:
    """One hypothesis over all hosts that have a ledger: which of them support it, refute it, did not test it."""

    name: str
    text: str
    supported: tuple[str, ...] = ()
    refuted: tuple[str, ...] = ()
    untested: tuple[str, ...] = ()
