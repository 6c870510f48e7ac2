"""Do the figures of one run fit together? Identities of counting, whoever counted; a cut last step is allowed for."""

from __future__ import annotations

from collections.abc import Sequence

from ddprobe.facts import Acceptance, CommitRequest
from ddprobe.lints.lint import Judgement, NotKnown, fail, fine, need, note
from ddprobe.lints.measured import Measured, cites
from ddprobe.lints.metrics import metric
from ddprobe.parsing.acceptance import OF_TOKENS

SAME = 0.02
"""Two figures of one run differ by no more, beyond what counting leaves open."""


# --- one request -------------------------------------------------------------------------------------------


@metric(
    "MC01",
    "steps, accepted tokens and histogram of a request add up",
    source="sglang#33518: sum of h[k] = verify steps, sum of k × h[k] = accepted, k at most K",
    applies=lambda measured: any(request.accounts for request in measured.requests),
    aliases=("M1", "I3"),
)
def adds_up(measured: Measured) -> Judgement:
    broken = [(r, said) for r in measured.requests if (said := _does_not_add_up(r, measured.ceiling))]
    if broken:
        return fail(
            f"in {len(broken)} of {len(measured.requests)} requests the counts contradict each other: {broken[0][1]}",
            "trust neither before the source that fills them was read; streamed tokens per step decide",
            cites([request for request, _ in broken]),
            requests=len(broken),
        )
    judged = [r for r in measured.requests if any(a.steps and a.accepted is not None for a in r.accounts)]
    if not judged:
        raise NotKnown("verify steps and accepted tokens of a request")
    return fine(f"counts of {len(judged)} requests add up", cites(judged))


def _does_not_add_up(request: CommitRequest, ceiling: int | None) -> str:
    totals = [a for a in request.accounts if a.histogram is None and a.steps]
    for account in request.accounts:
        accepted, drafted = account.accepted, account.drafted
        if account.steps and accepted is not None and drafted is not None and accepted > drafted:
            return f"{account.origin} says {accepted} accepted of {drafted} drafted"
        histogram = account.histogram
        if histogram is None:
            continue
        steps, right = sum(histogram), sum(index * count for index, count in enumerate(histogram))
        deepest = max((index for index, count in enumerate(histogram) if count), default=None)
        if ceiling is not None and deepest is not None and deepest > ceiling - 1:
            return f"{account.origin} has a step with {deepest} accepted, {ceiling - 1} are drafted at most"
        # A stream's histogram ends with the output; that of the server may count its last step whole.
        other = next((a for a in totals if account.origin.startswith(a.origin)), account)
        if other.steps is not None and abs(steps - other.steps) > 1:
            return f"the histogram holds {steps} steps, {other.origin} counts {other.steps}"
        slack = (ceiling or len(histogram)) - 1 if other.steps != steps else 0
        if other.accepted is not None and abs(right - other.accepted) > slack:
            return f"the histogram holds {right} accepted, {other.origin} counts {other.accepted}"
    return ""


@metric(
    "MC06",
    "a mean that a request states follows from its counts",
    source="SGLang's spec_accept_length is output tokens / steps: off from 1 + accepted / steps by -(K / N) to 1 / N; "
    "vLLM's and AIPerf's mean is 1 + accepted / steps",
    applies=lambda measured: any(_means(request) for request in measured.requests),
    aliases=("I6",),
)
def stated_mean(measured: Measured) -> Judgement:
    judged = [request for request in measured.requests if _means(request)]
    for request in judged:
        for origin, said, commit, steps in _means(request):
            widest = measured.ceiling if measured.ceiling is not None else _widest(request)
            if widest is None:
                raise NotKnown("the ceiling of a step's commit")
            if not commit - (widest - 1) / steps - SAME <= said <= commit + 1 / steps + SAME:
                return fail(
                    f"{origin} states a mean of {said:.2f}; its own counts say {commit:.2f} over {steps} steps",
                    "take 1 + accepted / steps; the stated mean is defined in another way, or broken",
                    cites((request,)),
                    stated=said,
                    counted=commit,
                )
    return fine(f"stated means of {len(judged)} requests follow from their counts", cites(judged))


def _means(request: CommitRequest) -> list[tuple[str, float, float, int]]:
    """(origin, stated, counted, steps) of each account that has both."""
    return [
        (account.origin, account.reported_commit, account.commit, account.steps)
        for account in request.accounts
        if account.reported_commit is not None and account.commit is not None and account.steps
    ]


def _widest(request: CommitRequest) -> int | None:
    """The ceiling as drafts per step tell it."""
    told = [a.drafted // a.steps + 1 for a in request.accounts if a.drafted and a.steps]
    return max(told, default=None)


# --- rates -------------------------------------------------------------------------------------------------


@metric(
    "MC02",
    "accept rates are defined in one way",
    source="sglang#11572, #23803: until 0.5.10 the log's rate held the bonus token on both sides, so that no accepted "
    "draft at all printed 1 / n",
    applies=lambda measured: any(log.rate_definition for log in measured.logs),
    aliases=("M2",),
)
def one_formula(measured: Measured) -> Judgement:
    logs = [log for log in measured.logs if log.rate_definition]
    kinds = list(dict.fromkeys(log.rate_definition for log in logs))
    if len(kinds) > 1:
        return fail(
            f"accept rates follow {len(kinds)} formulas: {', '.join(kinds)}; a length of 1.00 is zero acceptance under each, "
            "whatever its rate",
            "compare lengths, and no rate across these logs",
            cites(logs),
            formulas=len(kinds),
        )
    if any("(len - 1)" not in kind for kind in kinds):
        return note(
            f"its accept rates follow {kinds[0]}: the bonus token counts, so a length of 1.00, that is zero acceptance, "
            "prints a rate above 0",
            "read the length, or reckon (len - 1) / K",
            cites(logs),
        )
    return fine(f"accept rates follow {kinds[0]}", cites(logs))


@metric(
    "MC03",
    "positions, accepted tokens and drafts of the counters fit together",
    source="vllm v1/spec_decode/metrics.py: per-position shares never rise and add up to accepted / drafts; drafted = K × "
    "drafts (vllm#50518: padding counted as drafts)",
    applies=lambda measured: any(s.per_position and s.commit is not None for s in measured.stated),
    aliases=("M3",),
)
def positions(measured: Measured) -> Judgement:
    judged = [s for s in measured.stated if s.per_position and s.commit is not None]
    for stated in judged:
        told = _positions(stated.per_position or (), need(stated.commit, "the mean"))
        if told:
            return fail(
                f"{stated.origin}: {told}",
                "a broken counter, or placeholders counted as drafts: use the tokens returned per step",
                cites((stated,)),
            )
    return fine(f"{len(judged)} sets of per-position shares fit their means", cites(judged))


def _positions(shares: Sequence[float], commit: float) -> str:
    """Where shares by position contradict each other, or their mean; empty where they do not."""
    for index in range(1, len(shares)):
        if shares[index] > shares[index - 1] + 0.005:
            return f"draft {index + 1} is right in {shares[index]:.1%} of steps and draft {index} in {shares[index - 1]:.1%}"
    reached = 1 + sum(shares)
    # Shares are printed with three decimals, means with two.
    if abs(reached - commit) > SAME * commit + 0.0005 * len(shares) + 0.005:
        return f"per-position shares add up to {reached:.2f} tokens per step, stated are {commit:.2f}"
    return ""


# --- one run, several sources ------------------------------------------------------------------------------


def block_of(stated: Acceptance, measured: Measured) -> int | None:
    """The ceiling of a step's commit, as the figure's K tells it, else as the server's arguments do."""
    return stated.draft_tokens + 1 if stated.draft_tokens else measured.ceiling


@metric(
    "MC11",
    "figures that lie outside what a step can commit are not used",
    source="a step commits 1 to K + 1 tokens; a share of drafts lies between 0 and 1",
    applies=lambda measured: any(s.commit is not None or s.rate is not None for s in measured.stated),
    aliases=("I4",),
)
def within(measured: Measured) -> Judgement:
    judged = [s for s in measured.stated if s.commit is not None or s.rate is not None]
    for stated in judged:
        most = block_of(stated, measured)
        high = float("inf") if most is None else most * (1 + SAME)
        if stated.commit is not None and not 1 - SAME <= stated.commit <= high:
            limit = "at least 1" if most is None else f"1 to {most}"
            return fail(
                f"{stated.origin} gives {stated.commit:.2f} tokens per step; a step commits {limit}",
                "read how it is counted before using it: tokens over steps hold the prefill's token, a depth has no bonus",
                cites((stated,)),
                commit=stated.commit,
            )
        if stated.rate is not None and not 0 <= stated.rate <= 1 + SAME:
            return fail(
                f"{stated.origin} gives an accept rate of {stated.rate:.2f}; it lies between 0 and 1",
                "this is a length, or counts the bonus token",
                cites((stated,)),
                rate=stated.rate,
            )
    lengths = [stated for stated in judged if stated.commit is not None]
    if lengths and all(block_of(stated, measured) is None for stated in lengths):
        raise NotKnown("how many tokens are drafted per step")
    return fine(f"{len(judged)} figures lie within their limits", cites(judged))


@metric(
    "MC12",
    "sources of one run agree",
    source="every definition of acceptance gives one pair of numbers, within 2 %, a step's rounding, the prefill's token and "
    "a last step cut short",
    applies=lambda measured: bool(_of_one_run(measured)),
)
def sources(measured: Measured) -> Judgement:
    groups = _of_one_run(measured)
    for group in groups:
        best = min(group, key=_trust)
        for other in group:
            if other is best or agree(best, other):
                continue
            return fail(
                f"{best.origin} gives {best.commit:.2f} tokens per step, {other.origin} {other.commit:.2f} of the same run "
                f"({best.definition}; {other.definition})",
                f"trust {best.origin}: it counts steps and tokens; find out how {other.origin} is defined before using it",
                cites((best, other)),
                trusted=best.commit,
                other=other.commit,
            )
    judged = [stated for group in groups for stated in group]
    return fine(f"the sources of {len(groups)} runs agree", cites(judged))


def _of_one_run(measured: Measured) -> list[list[Acceptance]]:
    """Figures of one run, window, text and context, from more than one source."""
    found: dict[tuple[str, str, str, int | None], list[Acceptance]] = {}
    for stated in measured.stated:
        if stated.run and stated.window and stated.commit is not None:
            key = (stated.run, stated.window, stated.text, stated.context_tokens)
            group = found.setdefault(key, [])
            if all(other.origin != stated.origin for other in group):
                group.append(stated)
    return [group for group in found.values() if len(group) > 1]


def _trust(stated: Acceptance) -> int:
    """Counts first, then tokens over steps, then what somebody reckoned."""
    order = ("1 + accepted / steps", "sum of", "output tokens / steps")
    return next((rank for rank, start in enumerate(order) if stated.definition.startswith(start)), len(order))


def agree(first: Acceptance, second: Acceptance) -> bool:
    """Within 2 %, one step more or less, and what tokens over steps leave open."""
    a, b = need(first.commit, "a mean"), need(second.commit, "a mean")
    steps = min((s.steps for s in (first, second) if s.steps), default=None)
    slack = SAME * max(a, b) + 0.005
    if steps is not None:
        slack += max(a, b) / max(steps - 1, 1)
        if OF_TOKENS in (first.definition, second.definition):
            drafts = first.draft_tokens or second.draft_tokens or max(a, b)
            slack += drafts / steps
    return abs(a - b) <= slack


LINTS = (adds_up, one_formula, positions, stated_mean, within, sources)
