"""Can it be? Speeds, commits that are too good, drafts of which none is right, gauges of another hour."""

from __future__ import annotations

from collections.abc import Iterator

from ddprobe.facts import Acceptance, CommitPoint, PlainSpeed
from ddprobe.lints.lint import Judgement, NotKnown, fail, fine, need, note, unknown, warn
from ddprobe.lints.measured import Measured, cites, place, text_of
from ddprobe.lints.metrics import LEAST_STEPS, LENGTHS, metric
from ddprobe.lints.pooling import APART, apart

FLAT = 0.9
"""Every position right this often, on text that is not copied: no drafter is that good there."""
NEAR_CEILING = 0.93
"""Share of the drafts from which a mean counts as near its ceiling."""
LEAST_BLOCK = 4
"""Ceiling from which a commit near it says something: a single draft is right more often than not on any text."""
COPIED = ("repeat", "repeat-wide", "repeat-long", "far-copy")
SAME_CONTEXT = 0.1
"""Contexts within this of each other are the same."""
IMPOSSIBLE = 1.1
"""Times (K + 1) × plain speed that no noise explains."""


# --- speed -------------------------------------------------------------------------------------------------


@metric(
    "MC07",
    "tokens per second times step time is the commit",
    source="one request at a time commits c tokens every step: tok/s × step time = c, ± 10 %",
    applies=lambda measured: any(_timed(point) for point in measured.points),
    aliases=("I5", "M7"),
)
def speed(measured: Measured) -> Judgement:
    timed = [point for point in measured.points if _timed(point)]
    known = {point: point.commit_mean for point in timed if point.commit_mean is not None}
    if not known:
        raise NotKnown("a commit beside step time and speed")
    off = {point: by for point, commit in known.items() if (by := apart(_by_time(point), commit)) > APART}
    if off:
        first = max(off, key=off.__getitem__)
        return warn(
            f"{place(first)}: {first.tok_s:.4g} tok/s × {first.step_ms:.4g} ms = {_by_time(first):.2f} tokens per step, stated "
            f"are {first.commit_mean:.2f}",
            "the step time covers only part of the step, prefill or idle time is in the speed, or several requests ran",
            cites(tuple(off)),
            points=len(off),
        )
    return fine(f"speed, step time and commit fit at {len(known)} points", cites(tuple(known)))


def _timed(point: CommitPoint) -> bool:
    return bool(point.tok_s and point.step_ms)


def _by_time(point: CommitPoint) -> float:
    return (point.tok_s or 0.0) * (point.step_ms or 0.0) / 1000  # equivalent: both are known


@metric(
    "MC08",
    "no speed is beyond what speculation can give",
    source="a step commits K + 1 tokens at most and takes no less than a plain one (dgx-spark-qwen38#2)",
    applies=lambda measured: bool(measured.plain) and any(point.tok_s for point in measured.points),
    aliases=("M6",),
)
def impossible_speed(measured: Measured) -> Judgement:
    pairs = list(_beside_plain(measured))
    if not pairs:
        raise NotKnown("a speed with and without speculation at the same context")
    for point, plain, most in pairs:
        if point.tok_s is not None and point.tok_s > IMPOSSIBLE * most * plain.tok_s:
            return fail(
                f"{place(point)}: {point.tok_s:.4g} tok/s; without speculation {plain.tok_s:.4g}, and a step commits {most} at "
                "most",
                "the two were not measured on the same server, or prefix cache and replay answered for it",
                cites((point, plain)),
            )
    return fine(f"{len(pairs)} speeds lie within (K + 1) × plain speed", cites([p for p, _, _ in pairs]))


def _beside_plain(measured: Measured) -> Iterator[tuple[CommitPoint, PlainSpeed, int]]:
    for point in measured.points:
        for plain in measured.plain:
            near = abs(point.context_tokens - plain.context_tokens) <= SAME_CONTEXT * plain.context_tokens
            if near and point.tok_s:
                ceiling = point.ceiling if point.ceiling is not None else measured.ceiling
                yield point, plain, need(ceiling, "the ceiling of a step's commit")


# --- too good, and nothing at all --------------------------------------------------------------------------


@metric(
    "MC09",
    "a commit near the ceiling is a drafter's merit",
    source="fastllm#728, minefield#108: on text that is not copied, a flat curve near 1 is a target in a circle, or a cache "
    "that replays",
    applies=lambda measured: any(_hard(point) for point in measured.points),
    aliases=("M8",),
)
def too_good(measured: Measured) -> Judgement:
    hard = [point for point in measured.points if _hard(point)]
    known = [
        (point, _near_ceiling(point, point.commit_mean, point.ceiling))
        for point in hard
        if point.commit_mean is not None and point.ceiling is not None
    ]
    if not known:
        raise NotKnown("commit and ceiling on a text that is not copied")
    odd = near = [point for point, close in known if close]
    looping = [point for point in odd if point.loops]
    if measured.setup is not None:
        odd = looping  # a commit probe looks at every output
    if odd:
        told = looping or odd
        first = told[0]
        why = "its output goes in a circle" if looping else "nobody kept the output"
        said = f"{place(first)} commits {first.commit_mean:.2f} of {first.ceiling}, on text that is not copied; {why}"
        advice = (
            "look at the output before calling it a better drafter: a target that loops is easy to draft for"
        )
        return (warn if looping else unknown)(said, advice, cites(told), points=len(odd))
    if near:
        return fine(f"no output of {len(near)} points near their ceiling goes in a circle", cites(near))
    judged = [point for point, _ in known]
    return fine(f"{len(judged)} points on text that is not copied stay below their ceiling", cites(judged))


def _hard(point: CommitPoint) -> bool:
    small = point.ceiling is not None and point.ceiling < LEAST_BLOCK
    return text_of(point) not in COPIED and point.copied is None and not small


def _near_ceiling(point: CommitPoint, commit: float, most: int) -> bool:
    flat = not point.per_position or min(point.per_position) >= FLAT
    return commit >= 1 + NEAR_CEILING * (most - 1) and flat


@metric(
    "MC10",
    "drafts are made, and some are right",
    source="no draft at all is a server that does not speculate; drafts of which none is right are a broken drafter "
    "(llama.cpp#25345, vllm#58080)",
    applies=lambda measured: any(_of_traffic(s) for s in measured.stated),
    aliases=("M9",),
)
def drafts_at_all(measured: Measured) -> Judgement:
    known = [s for s in measured.stated if _of_traffic(s) and (s.commit is not None or s.steps == 0)]
    if not known:
        raise NotKnown("accepted tokens beside the counted steps")
    none = [s for s in known if s.steps == 0]
    if none:
        first = none[0]
        return warn(
            f"{first.origin}: tokens came out and no step had a draft ({first.definition})",
            "the server does not speculate, or found nothing to draft: this says nothing of the drafter's quality",
            cites(none),
            steps=first.steps,
        )
    rejected = [s for s in known if s.commit == 1.0 and s.steps is not None and s.steps >= LEAST_STEPS]
    if rejected:
        first = rejected[0]
        return warn(
            f"{first.origin}: drafts in {first.steps} steps, not one was right",
            "real text, however hard, gives 1.1 and more: the drafter, its positions or the verify step is broken; "
            "measure repeated text to be sure",
            cites(rejected),
            steps=first.steps,
        )
    right = [s for s in known if s.commit != 1.0]
    if not right:
        first = known[0]
        return unknown(
            f"{first.origin}: drafts in {first.steps} steps, not one was right: too few to tell",
            f"measure at least {LEAST_STEPS} steps",
            cites(known),
            steps=first.steps,
        )
    return fine(f"drafts are made and some are right, by {len(right)} figures", cites(right))


def _of_traffic(stated: Acceptance) -> bool:
    """Counted over whatever was asked; a point of its own is judged beside its text."""
    return stated.steps is not None and stated.window != "one point"


@metric(
    "MC13",
    "a gauge is not taken for the mean of a run",
    source="SGLang's gauges and /v1/loads' rate are of the last log window, and keep their last value, or 0.00, when idle",
    applies=lambda measured: any(claim.window == "last log window" for claim in measured.claims),
    aliases=("M10",),
)
def gauges(measured: Measured) -> Judgement:
    windowed = [c for c in measured.claims if c.window == "last log window" and c.what in LENGTHS]
    whole = [c for c in measured.claims if c.window == "lifetime" and c.what in LENGTHS]
    if not windowed or not whole:
        raise NotKnown("a mean over more than the last log window")
    first, other = windowed[0], whole[0]
    if apart(first.value, other.value) > APART:
        return note(
            f"{first.origin} shows {first.value:.2f}, {other.origin} {other.value:.2f}: the gauge is of the last log window, "
            "whoever it served",
            "use differences of counters around your own requests",
            cites((first, other)),
            gauge=first.value,
            whole=other.value,
        )
    return fine("the gauge shows what the lifetime does", cites((first, other)))


LINTS = (speed, impossible_speed, too_good, drafts_at_all, gauges)
