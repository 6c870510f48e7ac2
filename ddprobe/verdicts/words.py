"""How verdicts put measurements into words: every number with its interval and its sample."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence

from ddprobe.facts import CommitPoint
from ddprobe.model import Cite, Fact, Verdict
from ddprobe.parsing import sizes
from ddprobe.verdicts.case import Case

MOST_CITES = 16

MEANINGS = {
    "healthy": "Speculation works as it should at every length that was measured.",
    "text_difficulty": "The text is hard, at every length alike; the drafter is not broken.",
    "long_context_decay": "The drafter gets worse little by little as the context grows.",
    "gpu_state": "The machine changed while it was measured: the same point came out otherwise at the end.",
    "not_speculating": "Nothing is drafted: the server decodes one token a step.",
    "spec_net_loss": "Speculation costs more time than it gains.",
    "inconclusive": "What was measured does not settle it.",
    "long_context_bug": "The drafter breaks beyond a certain context length; the text is not to blame.",
    "drafter_dead": "The drafter gets next to nothing right, not even the easiest text.",
    "metric_inconsistency": "The numbers contradict each other: a metric lies, or accepted tokens get lost.",
    "simulated_acceptance": "A setting of the server makes up how much is accepted; it says nothing of the drafter.",
    "verify_not_lossless": "Speculation changes what the model writes.",
    "cache_state_bug": "The same prompt is drafted otherwise when it comes from the prefix cache.",
    "attention_kernel_bottleneck": "A step takes much longer as the context grows: attention, by all signs.",
    "launch_or_cpu_bound": "The GPU waits for the CPU or for launches.",
    "startup_incompatible": "The server cannot start with this configuration.",
}
"""What each verdict says, in one sentence for somebody who reads no further."""

KINDS = {
    (
        "inconclusive",
        "nothing_recognised",
    ): "Nothing that was given is recognised as evidence.",
    (
        "inconclusive",
        "times_only",
    ): "Step times were measured and explain no loss; whether drafts are right was not asked.",
    ("gpu_state", "throttled"): "The GPU's clock was held down while steps were measured.",
    (
        "launch_or_cpu_bound",
        "beyond_a_length",
    ): "Beyond a length a step takes longer at once: another path is taken there.",
    (
        "text_difficulty",
        "degenerate_output",
    ): "The best figures belong to output that goes in a circle: they say nothing good of the drafter.",
    (
        "text_difficulty",
        "template_mode",
    ): "The mode of the chat template decides how hard the text is; the drafter is not broken.",
    (
        "metric_inconsistency",
        "commit_path",
    ): "Tokens are accepted and never come out: a step commits less than it accepts.",
    (
        "metric_inconsistency",
        "metric",
    ): "Figures that should agree do not: at least one is not what its name says.",
    (
        "metric_inconsistency",
        "rate_formula",
    ): "One name stands for different formulas: these rates cannot be compared.",
}
"""The same for kinds whose point is another."""


def meaning(name: str, kind: str) -> str:
    """What the verdict says, in one sentence; empty for one of a later version."""
    return KINDS.get((name, kind)) or MEANINGS.get(name, "")


_COMMAND = re.compile(
    r"\bddprobe (?:commit-probe|step-time|gpu|inspect-config|server|(?:grep|read) (?:'[^']*'|\S+))"
)


def count(number: int, noun: str) -> str:
    """`1 step`, `67 steps`."""
    return f"{number} {noun}" + ("" if number == 1 else "s")


def at(point: CommitPoint) -> str:
    """Where it was measured: `at 64k`; nothing for a text that has no length asked for."""
    return f"at {sizes.short(point.context_tokens)}" if point.context_tokens else "as sent"


def number(point: CommitPoint, ceiling: int | None = None) -> str:
    """`7.9 of 8 (95 % 7.8–8.0, 67 steps, 4 requests)`."""
    if point.commit_mean is None:
        return f"no measurement ({count(point.failed, 'failed request')})"
    most = point.ceiling if point.ceiling is not None else ceiling
    scope = f" of {most}" if most is not None else ""
    interval = (
        f"95 % {point.commit_low:.1f}–{point.commit_high:.1f}, "
        if point.commit_low is not None and point.commit_high is not None
        else "no interval, "
    )
    measured = point.requests - point.failed
    sample = f"{count(point.steps, 'step')}, {count(measured, 'request')}"
    full = "; every step is full: at least that" if point.saturated else ""
    return f"{point.commit_mean:.2f}{scope} ({interval}{sample}{full})"


def commits(points: Sequence[CommitPoint], ceiling: int | None = None) -> str:
    """`repeat commits 7.90 of 8 (…) at 1k and 1.02 (…) at 128k`; points of one arm, in their order."""
    told = [number(point, ceiling) + " " + at(point) for point in points]
    listed = told[0] if len(told) == 1 else f"{', '.join(told[:-1])} and {told[-1]}"
    return f"{points[0].arm} commits {listed}"


def steps_of(point: CommitPoint) -> str:
    """`14.2 ms (10–90 % 13.9–15.0, 63 timed steps) at 64k`."""
    spread = (
        f"10–90 % {short(point.step_ms_low)}–{short(point.step_ms_high)}, "
        if point.step_ms_low is not None and point.step_ms_high is not None
        else ""
    )
    sample = count(point.timed_steps, "timed step")
    return f"{_ms(point.step_ms)} ({spread}{sample}) {at(point)}"


def _ms(value: float | None) -> str:
    return "unknown" if value is None else f"{short(value)} ms"


def short(value: float) -> str:
    """Three digits, and never a power of ten: `7.76`, `1030`."""
    return f"{value:.3g}" if 0.0001 <= abs(value) < 999.5 else f"{value:.0f}"


def titled(verdict: Verdict) -> str:
    """`long_context_bug (rope_position)`."""
    return verdict.name + (f" ({verdict.kind})" if verdict.kind else "")


def listed(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def cites(*facts: Fact | None) -> tuple[Cite, ...]:
    """Where these facts can be checked, each place once."""
    places = (cite for fact in facts if fact is not None for cite in fact.source)
    return tuple(dict.fromkeys(places))[:MOST_CITES]


def command(case: Case, arms: Iterable[str], contexts: Iterable[int] = ()) -> str:
    """The command that measures these arms at these lengths; the longest that the server takes in place of what it does not."""
    lengths = sorted(set(contexts)) or sorted({p.context_tokens for p in case.points if p.context_tokens})
    limit = case.setup.context_limit if case.setup is not None else None
    if limit:
        lengths = sorted({min(length, limit) for length in lengths})
    ladder = f" --contexts {','.join(map(sizes.short, lengths))}" if lengths else ""
    return f"ddprobe commit-probe{ladder} --arms {','.join(arms)}"


def on_host(sentence: str, host: str) -> str:
    """The sentence, its commands for this host: `ddprobe commit-probe gpu1 --arms repeat`."""
    if not host or host in sentence.split():
        return sentence
    return _COMMAND.sub(lambda found: f"{found.group()} {shlex.quote(host)}", sentence)
