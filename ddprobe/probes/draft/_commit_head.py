"""What a person sees of a commit probe before any number: the server that is measured, how, and the plan."""

from __future__ import annotations

from collections.abc import Iterator

from ddprobe import engines
from ddprobe.blocks import Block, Heading, Pairs, Paragraph, Table
from ddprobe.facts import CommitSetup
from ddprobe.probes.draft._commit_notes import context

_DRAFTERS = {"model": "a neural drafter", "lookup": "looks up n-grams; repeated text is trivial to it"}


def blocks(setup: CommitSetup) -> Iterator[Block]:
    """Server and method; of a run that only plans, the plan."""
    yield Heading(_title(setup))
    yield Pairs(tuple(_server(setup)))
    if setup.planned_only:
        yield from _plan(setup)


def _title(setup: CommitSetup) -> str:
    engine = engines.TABLE[setup.engine].title if setup.engine in engines.TABLE else setup.engine
    name = f"{engine} {setup.version}".strip()
    return f"{name} at {setup.base}" + (f", {setup.server}" if setup.server else "")


def _server(setup: CommitSetup) -> Iterator[tuple[str, str]]:
    if setup.model:
        yield "model", setup.model
    yield "speculation", _speculation(setup)
    ceiling = "unknown: the server does not say how many tokens it drafts"
    if setup.ceiling is not None:
        ceiling = f"{setup.ceiling} tokens per step"
        if setup.draft_tokens is not None:
            ceiling += (
                f": {setup.draft_tokens} drafted{' (a tree)' if setup.tree else ''} and the bonus token"
            )
    if setup.speculating is not False:
        yield "ceiling of the commit", ceiling
    if setup.window is not None:
        yield "drafter's window", f"{setup.window} tokens"
    yield "longest request", _tokens(setup.context_limit)
    yield "KV cache", _tokens(setup.kv_tokens)
    if setup.limits:
        yield (
            "limits by configuration",
            "\n".join(f"{limit.tokens} tokens: {limit.name}" for limit in setup.limits),
        )
    cache = "prompts of an arm share their beginning"
    if setup.cold:
        cache = "a prefix of its own for every request"
    elif setup.purpose != "commit":
        cache = "prompts of a length share their beginning"
    prompts = "1 prompt" if setup.prompts_asked == 1 else f"{setup.prompts_asked} prompts"
    steps = "verify steps" if setup.purpose == "commit" else "steps timed"
    asked = f"at least {setup.steps_asked} {steps} a point over {prompts}"
    yield "method", f"{asked}; {cache}; seed {setup.seed}"
    if setup.baseline:
        told = ", ".join(f"{ms:.3g} ms at {context(tokens)}" for tokens, ms in setup.baseline)
        yield "without speculation, per token", told


def _speculation(setup: CommitSetup) -> str:
    if setup.speculating is False:
        return "off, the server says"
    if setup.speculating is None and not setup.method:
        return "unknown: the server does not say"
    kind = _DRAFTERS.get(setup.drafter, "kind of drafter unknown")
    return f"{setup.method or 'on, method unknown'} ({kind})"


def _tokens(number: int | None) -> str:
    return "unknown: the server does not say" if number is None else f"{number} tokens"


# --- the plan ----------------------------------------------------------------------------------------------


def _plan(setup: CommitSetup) -> Iterator[Block]:
    if not setup.points:
        yield Paragraph("Nothing would be sent.", "warn")
        return
    rows = tuple(
        (
            context(point.context_tokens),
            point.arm,
            str(point.prompts),
            str(point.prompt_tokens),
            str(point.prefill_tokens),
            str(point.output_tokens),
        )
        for point in setup.points
    )
    requests = sum(point.prompts for point in setup.points)
    prefill = sum(point.prefill_tokens for point in setup.points)
    output = sum(point.output_tokens for point in setup.points)
    cached = "" if setup.cold else " as far as the prefix cache works"
    lasting = "how long that takes is unknown, since nothing tells the server's speed"
    if setup.seconds is not None:
        lasting = f"that takes at most about {_lasting(setup.seconds)} at the speed the server last had, prefill aside"
    yield Table(
        (
            "context\ntokens",
            "arm",
            "requests",
            "prompts\ntokens",
            "to prefill\ntokens",
            "output\nat most",
        ),
        rows,
        "What would be sent, in this order",
        f"In all {requests} requests, {prefill} tokens to prefill{cached}, at most {output} tokens of output; {lasting}. "
        "Nothing of it was sent.",
    )


def _lasting(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
