"""Facts of a commit probe written by hand: a drafter that is lost beyond 4k, on text that is copied and on prose."""

from __future__ import annotations

from ddprobe.facts import Claim, CommitCheck, CommitPoint, CommitRequest, CommitSetup, Limit, PlannedPoint
from ddprobe.model import Fact, HostRecord, Report, StepRecord, Verdict

SETUP = CommitSetup(
    engine="sglang",
    base="http://127.0.0.1:30000",
    server="sglang pid 4711",
    version="0.5.23",
    model="/models/Kimi-K2.6",
    speculating=True,
    method="DFLASH",
    drafter="model",
    draft_tokens=7,
    ceiling=8,
    window=2048,
    context_limit=262144,
    kv_tokens=400000,
    limits=(Limit(2048, "the drafter's sliding_window", "sliding_window_kv"),),
    contexts=(1024, 65536),
    arms=("repeat", "far-copy", "prose"),
    seed=42,
)


def point(
    arm: str, context: int, mean: float, step_ms: float, low: float | None = None, high: float | None = None
) -> CommitPoint:
    """A point with every field known, of 68 steps in 4 requests, block 8."""
    return CommitPoint(
        arm=arm,
        context_tokens=context,
        requests=4,
        prompt_tokens=context,
        cached_tokens=context - 16,
        steps=68,
        drafted_steps=68,
        commit_mean=mean,
        commit_low=mean - 0.25 if low is None else low,
        commit_high=mean + 0.25 if high is None else high,
        drafted_commit_mean=mean,
        ceiling=8,
        share_of_ceiling=(mean - 1) / 7,
        accept_rate=(mean - 1) / 7,
        histogram=(0, 0, 0, 0, 0, 0, 0, 68),
        per_position=(0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3),
        conditional=(0.9, 0.889, 0.875, 0.857, 0.833, 0.8, None),
        step_ms=step_ms,
        step_ms_low=step_ms * 0.95,
        step_ms_high=step_ms * 1.25,
        timed_steps=60,
        tok_s=mean / step_ms * 1000,
        copied=None if arm == "prose" else 1.0,
        origin="meta_info histogram + stream",
    )


POINTS = (
    point("repeat", 1024, 7.5, 12.0),
    point("repeat", 16384, 1.1, 130.0, 1.0, 1.2),
    point("repeat", 65536, 1.05, 510.0, 1.0, 1.1),
    point("repeat", 131072, 1.02, 1011.0, 1.0, 1.06),
    point("far-copy 512", 1024, 6.0, 12.1),
    point("far-copy 512", 16384, 1.2, 131.0, 1.1, 1.3),
    point("far-copy 512", 131072, 1.0, 1013.0, 1.0, 1.0),
    point("prose", 1024, 2.25, 12.2),
    point("prose", 16384, 1.15, 131.0, 1.05, 1.25),
    point("prose", 65536, 1.1, 512.0, 1.0, 1.2),
    point("prose", 131072, 1.05, 1010.0, 1.0, 1.1),
)
CHECKS = (
    CommitCheck(
        name="cold-cached", agrees=True, text="repeat at 1k commits 7.50 cold and 7.44 cached (17 steps each)"
    ),
    CommitCheck(name="first-again", agrees=False, text="7.50 at first, 3.10 at the end (68 steps each)"),
    CommitCheck(name="same-prompt", agrees=None, text="the server gives no token ids"),
)
CLAIM = Claim(
    what="accept length", value=3.1234567, origin="/server_info avg_spec_accept_length", window="lifetime"
)
PLANNED = (
    PlannedPoint("repeat", 1024, 4, 4096, 1072, 548),
    PlannedPoint("repeat", 65536, 4, 262144, 64560, 548),
)
LEFT_OUT = "prose at 256k: the server's limit is 262144 tokens per request"


def request(arm: str = "repeat", context: int = 1024, **fields: object) -> CommitRequest:
    """A request of a point."""
    given = {"key": "g", "purpose": "point", "prompt": 0, **fields}
    return CommitRequest(arm=arm, context_tokens=context, **given)  # type: ignore[arg-type]


VERDICT = Verdict(
    name="long_context_bug",
    kind="sliding_window_kv",
    confidence="high",
    reasons=(
        "repeat commits 7.50 of 8 (95 % 7.25–7.75, 68 steps, 4 requests) at 1k and 1.10 (1.00–1.20, 68 steps, 4 requests) at 16k",
        "the drafter's sliding_window of 2048 tokens lies between them",
    ),
    ruled_out=("text difficulty: the same text is easy at 1k",),
    missing=("a point at 2200 tokens",),
    next=("ddprobe commit-probe --contexts 1900,2200 --arms repeat gpu1",),
    host="gpu1",
)
KERNEL = Verdict(
    name="attention_kernel_bottleneck",
    confidence="medium",
    reasons=("a step takes 12 ms at 1k and 1011 ms at 128k",),
    next=("--attention-backend flashinfer",),
    host="gpu1",
)
DIFFICULT = Verdict(name="inconclusive", missing=("64 steps a point",), host="gpu2")


def report(*facts: Fact, verdicts: tuple[Verdict, ...] = (), hosts: tuple[str, ...] = ("gpu1",)) -> Report:
    """A run of the probe on each of the hosts, which all give the same facts."""
    return Report(
        name="commit-probe",
        version="1",
        started=1796060000.0,
        hosts=tuple(HostRecord(name=name) for name in hosts),
        steps=tuple(
            StepRecord(id="commit", probe="draft.commit", host=name, status="done", facts=facts)
            for name in hosts
        ),
        verdicts=verdicts,
    )
