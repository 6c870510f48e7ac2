"""Before anything is sent: what is to be measured on this server, and why nothing may be sent at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ddprobe import arms
from ddprobe.arms.base import Needs, Script
from ddprobe.facts import CommitSetup, Limit
from ddprobe.probes.draft import _commit_plan as plan
from ddprobe.probes.draft._commit_target import Target
from ddprobe.readonly import MAX_OUTPUT

if TYPE_CHECKING:
    from ddprobe.probes.draft.commit import DraftCommit


def scripts_of(probe: DraftCommit, target: Target) -> tuple[tuple[Script, ...], bool]:
    """What is to be measured. A server that does not speculate is measured with one text: all read alike."""
    names = tuple(word for word in probe.arms.replace(" ", "").split(",") if word) or arms.DEFAULT
    if target.serving.speculating is False and not probe.arms:
        names = names[:1]
    drafter = target.config("drafter")
    needs = Needs(
        seed=probe.seed,
        variants=probe.prompts,
        ceiling=ceiling(target),
        window=drafter.sliding_window if drafter is not None else None,
        text=probe.text,
    )
    return arms.scripts(tuple(n for n in names if n != "verbatim"), needs), "verbatim" in names


def setup_of(
    probe: DraftCommit,
    target: Target,
    scripts: Sequence[Script],
    limits: tuple[Limit, ...],
    wanted: tuple[int, ...],
    purpose: str,
) -> CommitSetup:
    """What is measured, on what, and how: the points are not planned yet."""
    serving = target.serving
    drafter = target.config("drafter")
    vocabulary = serving.vocabulary
    if vocabulary is None and (config := target.config("target")) is not None:
        vocabulary = config.vocab_size
    return CommitSetup(
        engine=target.engine.name,
        base=target.base,
        server=target.name,
        version=serving.version,
        model=serving.model,
        speculating=serving.speculating,
        method=serving.method,
        drafter=serving.drafter,
        draft_tokens=serving.draft_tokens,
        ceiling=ceiling(target),
        window=drafter.sliding_window if drafter is not None else None,
        vocabulary=vocabulary,
        context_limit=serving.context_limit,
        kv_tokens=serving.kv_tokens,
        tree=serving.tree,
        limits=limits,
        contexts=wanted,
        arms=tuple(script.label for script in scripts),
        seed=probe.seed,
        steps_asked=probe.steps,
        prompts_asked=probe.prompts,
        cold=probe.cold,
        planned_only=probe.plan,
        baseline=_pairs(probe.baseline),
        purpose=purpose,
        source=target.cites,
    )


def refusal(probe: DraftCommit, target: Target, output: int) -> str:
    """Why nothing may be sent at all; empty when it may. `output`: tokens of one request's answer."""
    serving = target.serving
    verbatim = "verbatim" in probe.arms
    longest = max(output, plan.output_tokens(probe.steps, ceiling(target)) if verbatim else 0)
    if longest > MAX_OUTPUT:
        return (
            f"{probe.steps} steps take up to {longest} tokens of output in one request, and {MAX_OUTPUT} are the "
            "most that is asked for: fewer --steps, or more --prompts to spread them over"
        )
    running, waiting = serving.running or 0, serving.waiting or 0
    if (running or waiting) and not probe.while_busy and not probe.plan:
        return (
            f"the server is busy ({running} requests run, {waiting} wait): a probe would disturb them, and they it. "
            "Wait, or say --while-busy"
        )
    return ""


def ceiling(target: Target) -> int | None:
    """Most tokens that one verify step can commit: the drafted ones and the bonus token."""
    draft = target.serving.draft_tokens
    return draft + 1 if draft is not None else None


def _pairs(text: str) -> tuple[tuple[int, float], ...]:
    """`1024:8.1,16384:9.4` as pairs."""
    pairs = (word.partition(":") for word in text.split(",") if word)
    return tuple((int(context), float(ms)) for context, _, ms in pairs)
