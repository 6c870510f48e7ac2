"""Do the numbers hold: those that were measured, and those that the server states? Judged over a commit probe's facts."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ddprobe.facts import Claim, CommitPoint, CommitRequest
from ddprobe.lints.lint import Judgement, Lint, NotKnown, fail, fine, need, unknown, warn
from ddprobe.lints.measured import Measured, cites, place, text_of
from ddprobe.model import Cite
from ddprobe.parsing.acceptance import LONGEST

LEAST_STEPS = 64
"""Verify steps from which a mean says something (half-width ± 0.1 to 0.7 of 8)."""
COPIES = 0.95
"""Share of the output that must follow the text before an arm counts as easy."""
EASY = ("repeat", "repeat-wide", "repeat-long")
HARD = ("random",)
LENGTHS = ("accept length", "commit length")
STATED = 0.02
"""How far a stated mean may be off by rounding."""
COUNTED_ALONG = 0.10
"""How far a mean may lie above its ceiling where the prefill's token is counted among few steps."""
DURING = "during the probe"


def metric(
    id: str,
    text: str,
    *,
    source: str,
    applies: Callable[[Measured], bool],
    aliases: tuple[str, ...] = (),
) -> Callable[[Callable[[Measured], Judgement]], Lint[Measured]]:
    """Turns a function that judges measurements into a lint."""

    def wrap(judge: Callable[[Measured], Judgement]) -> Lint[Measured]:
        return Lint(id, text, source, "measurement", applies, judge, aliases)

    return wrap


def _easy(point: CommitPoint) -> bool:
    """A text that the target really copied: any drafter that works is right most of the time."""
    copied = point.copied is None or point.copied >= COPIES
    return text_of(point) in EASY and copied


_PAIR = (
    "Hard text cannot cause this: it lowers what is accepted, to a depth of 0, not what becomes of it. A last step that was "
    "cut explains one step of each request, a grammar those of structured output. What remains: the two are counted "
    "differently (a deepest match anywhere, a single step for a mean), or accepted tokens are not committed"
)


def _possible(point: CommitPoint) -> bool:
    """Whether steps can have committed so many; the prefill's token may be counted among them. RT11 judges what cannot be."""
    return point.ceiling is None or (point.commit_mean or 0.0) <= point.ceiling * (1 + COUNTED_ALONG)


def _list(words: list[str]) -> str:
    return ", ".join(words[:4]) + (f" and {len(words) - 4} more" if len(words) > 4 else "")


# --- counts against tokens ---------------------------------------------------------------------------------


@metric(
    "RT01",
    "each step commits its accepted tokens and one more",
    source="commit = 1 + accepted in sglang 0.5.23 srt/speculative/dflash_worker_v2.py:212-219 and vllm "
    "v1/spec_decode/metrics.py; only the last step of a request, or a grammar, may commit less",
    applies=lambda measured: measured.speculates and (bool(measured.requests) or bool(_pairs(measured))),
    aliases=("I1", "I2"),
)
def committed(measured: Measured) -> Judgement:
    pairs = _pairs(measured)
    for depth, length in pairs:
        if abs(length.value - 1 - depth.value) > 0.05:
            return fail(
                f"{length.origin} states {length.value:.2f} committed per step, {depth.origin} {depth.value:.2f} accepted: "
                f"with 1 + accepted it would be {1 + depth.value:.2f}. {_PAIR}",
                "stream one request: the tokens that come out per step decide. About as many as were accepted, and one: "
                "only the stated length is wrong. About one: accepted tokens are lost on the way out. Then read in the "
                "server's source how both are counted; with a tree drafter, force a chain and compare",
                cites((length, depth)),
                committed=length.value,
                accepted=depth.value,
            )
    held, broken = 0, []
    for request in measured.requests:
        told = _off(request, measured.ceiling)
        held += told is not None
        if told:
            broken.append(request)
            worst = told
    if broken:
        return fail(
            f"in {len(broken)} of {held} requests tokens were accepted and not committed, or not counted: {worst}",
            "compare with the streamed tokens: if these show the commit too, only the report is wrong; with a tree "
            "drafter, force a chain and compare",
            cites(broken),
            requests=len(broken),
        )
    contradicted = [request for request in measured.requests if request.disagreements]
    if contradicted:
        first = contradicted[0].disagreements[0]
        return warn(
            f"in {len(contradicted)} of {len(measured.requests)} requests sources contradict each other: {first}",
            "trust the streamed tokens, and read how the other source counts",
            cites(contradicted),
            requests=len(contradicted),
        )
    if held:
        return fine(f"counted and committed tokens agree in {held} requests", cites(measured.requests))
    if not pairs:
        raise NotKnown("verify steps and accepted tokens of a request")
    depth, length = pairs[0]
    return fine(f"{length.origin} states {length.value:g}, {depth.origin} one less", cites((length, depth)))


def _off(request: CommitRequest, ceiling: int | None) -> str | None:
    """How far a count is from the tokens that came, when more than a last step explains; None: nothing to compare."""
    if request.output_tokens is None:
        return None
    came = request.output_tokens - 1
    found: str | None = None
    for account in request.accounts:
        if account.steps is None or account.accepted is None:
            continue
        found = found or ""
        over = account.steps + account.accepted - came
        if over > (need(ceiling, "the ceiling of a step's commit") - 1):
            return (
                f"{account.origin} counts {account.accepted} accepted in {account.steps} steps, that is "
                f"{account.steps + account.accepted} tokens, {came} came"
            )
        shown = sum(request.step_commits) - len(request.step_commits)
        if request.disagreements and request.step_commits and shown > account.accepted + 1:
            return (
                f"{account.origin} counts {account.accepted} accepted in {account.steps} steps, "
                f"{shown} came in {len(request.step_commits)}"
            )
    return found


def _pairs(measured: Measured) -> list[tuple[Claim, Claim]]:
    """Accepted depths and commit lengths that one source states of the same steps."""

    def stated(what: str) -> dict[tuple[str, str, tuple[Cite, ...]], Claim]:
        return {
            (claim.origin.partition(" ")[0], claim.window, tuple(map(_around, claim.source))): claim
            for claim in measured.claims
            if claim.what == what
        }

    depths, lengths = stated("accepted depth"), stated("commit length")
    return [(depths[key], lengths[key]) for key in depths if key in lengths]


def _around(cite: Cite) -> Cite:
    """The object that holds a field: `$.internal_states[0]` of `$.internal_states[0].avg_commit_len`."""
    return Cite(cite.artefact, cite.at.rpartition(".")[0])


# --- dead drafts -------------------------------------------------------------------------------------------


@metric(
    "RT02",
    "on a repeated text drafts are right now and then",
    source="a mean of exactly 1.00 over 64 steps has a probability near 0.001 already at an acceptance of 0.1 per "
    "token; the rule of three",
    applies=lambda measured: any(text_of(p) in EASY and p.drafted_steps != 0 for p in measured.points),
)
def repeat_commits(measured: Measured) -> Judgement:
    points = [
        p
        for p in measured.points
        if p.drafted_steps != 0 and _easy(p) and p.commit_mean is not None and _possible(p)
    ]
    if not points:
        raise NotKnown("the commit on a repeated text that the target really copied")
    ones = [point for point in points if point.commit_mean == 1.0]
    if any(_off(request, measured.ceiling) for request in measured.requests):
        raise NotKnown(
            "whether drafts are right: tokens are counted as accepted and none come out (see RT01)"
        )
    dead = [point for point in ones if point.steps >= LEAST_STEPS]
    if dead:
        first = dead[0]
        return fail(
            f"not one draft was right in {first.steps} steps of {_list([place(point) for point in dead])}, where the "
            "target copies: mean commit exactly 1.00",
            "the drafter, its weights or the verify step is broken: see the lints of its configuration",
            cites(dead),
            steps=first.steps,
        )
    if ones:
        first = ones[0]
        return unknown(
            f"not one draft was right at {place(first)}, but {first.steps} steps only exclude an acceptance above "
            f"{min(1.0, 3 / max(first.steps, 1)):.1%}",
            f"measure at least {LEAST_STEPS} steps",
            cites(ones),
            steps=first.steps,
        )
    least = min(points, key=lambda point: point.commit_mean or 0.0)  # equivalent: each has a mean
    return fine(f"at least {least.commit_mean:.2f} tokens per step, at {place(least)}", cites(points))


@metric(
    "RT03",
    "the first draft of a block is right now and then",
    source="acceptance 0 at the first position is the mark of a wrong anchor slot or causal mask "
    "(FLASHINFER_MLA on SM120: per-position 0.000); the rule of three",
    applies=lambda measured: any(_first_position(measured)),
)
def first_position(measured: Measured) -> Judgement:
    points = dict(_first_position(measured))
    never = [point for point, share in points.items() if share == 0.0]
    sure = [p for p in never if p.drafted_steps is not None and p.drafted_steps >= LEAST_STEPS]
    if sure:
        first = sure[0]
        say = fail if any(_easy(point) for point in sure) else warn
        return say(
            f"the first draft was right in 0 of {first.drafted_steps} steps at {_list([place(p) for p in sure])}",
            "look at the anchor, the mask token and the causal mask of the verify step; on a text that is hard "
            "measure an easy arm first",
            cites(sure),
            steps=first.drafted_steps,
        )
    if never:
        first = never[0]
        return unknown(
            f"the first draft was right in 0 of {_number(first.drafted_steps)} steps at {place(first)}: too few to tell",
            f"measure at least {LEAST_STEPS} steps",
            cites(never),
            steps=first.drafted_steps,
        )
    least = min(points.values())
    return fine(f"the first draft is right in {least:.1%} of steps or more", cites(tuple(points)))


def _number(count: int | None) -> str:
    return "an unknown number of" if count is None else str(count)


def _first_position(measured: Measured) -> Iterator[tuple[CommitPoint, float]]:
    """Points at which some first draft should be right, and how often it is."""
    for point in measured.points:
        text = text_of(point)
        if point.per_position and text not in HARD and (text in EASY or not measured.looks_up):
            yield point, point.per_position[0]


# --- what a point can prove --------------------------------------------------------------------------------


@metric(
    "RT08",
    "a point has at least 64 verify steps",
    source="half-width of the 95 % interval for blocks of 8: ± 0.5 at 64 steps and a mean of 3.1, ± 1.5 at 8",
    applies=lambda measured: bool(measured.points),
)
def enough_steps(measured: Measured) -> Judgement:
    untold = [point for point in measured.points if not point.steps and _was_measured(point)]
    few = [point for point in measured.points if point.steps < LEAST_STEPS and point not in untold]
    if untold and not few:
        return unknown(
            f"nobody says how many steps are behind {_list([place(point) for point in untold])}",
            f"measure at least {LEAST_STEPS} steps, or ask for their number",
            cites(untold),
            points=len(untold),
        )
    if few:
        return warn(
            f"fewer than {LEAST_STEPS} steps: {_list([f'{p.steps} of {place(p)}' for p in few])}",
            f"--steps {LEAST_STEPS} or more; --prompts 4 or more"
            if measured.setup is not None
            else f"let each text run for {LEAST_STEPS} verify steps or more, over several prompts of its kind",
            cites(few),
            points=len(few),
        )
    least = min(point.steps for point in measured.points if point not in untold)
    return fine(f"every point has {least} steps or more", cites(measured.points))


def _was_measured(point: CommitPoint) -> bool:
    """Whether somebody states a commit length or a time of it: then steps there were, however many."""
    return point.commit_mean is not None or point.step_ms is not None or point.tok_s is not None


@metric(
    "RT09",
    "at every context an arm is below the ceiling",
    source="a mean at its ceiling proves at least that much, and hides every difference above",
    applies=lambda measured: measured.speculates and bool(measured.points),
)
def saturated(measured: Measured) -> Judgement:
    known = [point for point in measured.points if point.commit_mean is not None and _possible(point)]
    if not known:
        raise NotKnown("a mean commit that a step can have")
    need(measured.ceiling, "the ceiling of a step's commit")
    below = {point.context_tokens for point in known if not point.saturated}
    full = [point for point in known if point.saturated]
    alone = [point for point in full if point.context_tokens not in below]
    if alone:
        return warn(
            f"every step reached the ceiling of {alone[0].ceiling} at {_list([place(point) for point in alone])}, and no "
            'harder text was measured there: that only proves "at least"',
            "add a harder arm: --arms repeat,far-copy,prose"
            if measured.setup is not None
            else "measure a harder text at the same length, such as prose",
            cites(alone),
            points=len(alone),
        )
    if full:
        said = f"at the ceiling: {_list([place(point) for point in full])}; a harder arm was measured at each context"
        return fine(said, cites(full))
    return fine("no arm is at its ceiling", cites(known))


# --- what is stated ----------------------------------------------------------------------------------------


@metric(
    "RT11",
    "what the server states of its speculation is possible",
    source="a step commits 1 to K + 1 tokens; an accept rate lies between 0 and 1",
    applies=lambda measured: any(_limits(claim, None) for claim in measured.claims),
    aliases=("I4",),
)
def possible(measured: Measured) -> Judgement:
    judged = []
    for claim in measured.claims:
        limits = _limits(claim, measured.ceiling)
        if limits is None:
            continue
        low, high = limits
        if not low - STATED <= claim.value <= high + STATED:
            bounded = measured.ceiling is not None or claim.what == "accept rate" or claim.value > high
            where = f"between {low:g} and {high:g}" if bounded else f"at {low:g} or above"
            return fail(
                f"{claim.origin} states {claim.value:g} as its {claim.what}; it lies {where}",
                "do not use this number before its definition was read in the server's source",
                cites((claim,)),
                stated=claim.value,
            )
        judged.append(claim)
    if measured.ceiling is None and any(claim.what != "accept rate" for claim in judged):
        raise NotKnown("the ceiling of a step's commit")
    return fine(f"{len(judged)} stated numbers lie within their limits", cites(judged))


def _limits(claim: Claim, ceiling: int | None) -> tuple[float, float] | None:
    highest = LONGEST if ceiling is None else ceiling
    if claim.what in LENGTHS:
        return 1.0, highest
    if claim.what == "accepted depth":
        return 0.0, highest - 1
    return (0.0, 1.0) if claim.what == "accept rate" else None


@metric(
    "RT12",
    "what the server states of the time of the probe is what was measured",
    source="accept length = 1 + accepted / steps; tokens per second × step time = commit, for one request at a time",
    applies=lambda measured: any(
        claim.window == DURING and claim.what in (*LENGTHS, "throughput") for claim in measured.claims
    ),
)
def stated(measured: Measured) -> Judgement:
    during = [claim for claim in measured.claims if claim.window == DURING]
    for claim in during:
        low, high, said = _measured_range(claim, measured)
        if not low <= claim.value <= high:
            return fail(
                f"{claim.origin} states {claim.value:g} as its {claim.what}, measured was {said}",
                "other requests ran meanwhile, or the number is defined in another way: read it in the server's source",
                cites((claim,)),
                stated=claim.value,
            )
    return fine("what was stated lies where it was measured", cites(during))


def _measured_range(claim: Claim, measured: Measured) -> tuple[float, float, str]:
    """Between which values a statement agrees with what was measured, and that in words."""
    if claim.what in LENGTHS:
        counted = [
            (r.num_spec_steps, r.num_accepted_draft_tokens)
            for r in measured.requests
            if r.num_spec_steps is not None and r.num_accepted_draft_tokens is not None
        ]
        steps = sum(drafted for drafted, _ in counted)
        if not steps:
            raise NotKnown("verify steps and accepted tokens of a request")
        mean = 1 + sum(accepted for _, accepted in counted) / steps
        # A server may count a step more per request, the cut last one or one after the end.
        slack = STATED + len(counted) * (need(measured.ceiling, "the ceiling of a step's commit") - 1) / steps
        return mean - slack, mean + slack, f"{mean:.2f} over {steps} steps"
    if claim.what == "throughput":
        speeds = [point.tok_s for point in measured.points if point.tok_s is not None]
        if not speeds:
            raise NotKnown("tokens per second of a point")
        low, high = min(speeds), max(speeds)
        return low * 0.9, high * 1.1, f"{low:.1f} to {high:.1f} tokens per second"
    return float("-inf"), float("inf"), ""


LINTS = (committed, repeat_commits, first_position, enough_steps, saturated, possible, stated)
