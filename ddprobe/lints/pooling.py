"""Requests taken together: tokens that were returned against counters, and the two ways to average."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from ddprobe.facts import Claim, CommitRequest
from ddprobe.lints.identities import block_of
from ddprobe.lints.launches import document
from ddprobe.lints.lint import Judgement, NotKnown, fail, fine, need, note, warn
from ddprobe.lints.measured import Measured, cites
from ddprobe.lints.metrics import LENGTHS, metric

MATERIAL = 0.05
"""A difference above this changes what one concludes."""
APART = 0.10
"""Two statements further from each other than this contradict each other."""


@dataclass(frozen=True, slots=True)
class Counted:
    """The requests of a run that tell their steps, taken together."""

    requests: tuple[CommitRequest, ...]

    @property
    def steps(self) -> int:
        return sum(map(_steps, self.requests))

    @property
    def by_tokens(self) -> float:
        """Tokens returned per step, over all steps."""
        return sum(map(_tokens, self.requests)) / self.steps

    @property
    def pooled(self) -> float:
        return sum(_commit(request) * _steps(request) for request in self.requests) / self.steps

    @property
    def mean(self) -> float:
        """Of each request's own mean, long and short ones alike."""
        return sum(map(_commit, self.requests)) / len(self.requests)


def _steps(request: CommitRequest) -> int:
    return request.num_spec_steps or 0  # equivalent: a request that does not tell is not taken


def _tokens(request: CommitRequest) -> int:
    return request.output_tokens or 0  # equivalent: a request that does not tell is not taken


def _commit(request: CommitRequest) -> float:
    """Tokens per step of one request: counted where it is counted, else from the tokens returned."""
    if request.mean_acceptance_length is not None:
        return request.mean_acceptance_length
    return _tokens(request) / _steps(request)


def _recordings(measured: Measured) -> list[Counted]:
    """The requests that count their steps, by the document that holds them: no other are of one run for sure."""
    found: dict[str, list[CommitRequest]] = {}
    for r in measured.requests:
        told = r.output_tokens is not None or r.num_accepted_draft_tokens is not None
        if r.purpose == "point" and r.num_spec_steps and told:
            found.setdefault(document(r), []).append(r)
    return [Counted(tuple(requests)) for requests in found.values() if len(requests) > 1]


def apart(first: float, second: float) -> float:
    """By which share two figures differ."""
    return abs(first - second) / max(min(first, second), 1e-9)  # equivalent: any small number


@metric(
    "MC04",
    "counters agree with the tokens that were returned",
    source="vllm#56101: the counters keep accepted tokens behind the stop; commit = tokens / steps but for the prefill's "
    "token and each request's last step",
    applies=lambda measured: (
        any(r.output_tokens is not None and r.num_spec_steps for r in measured.requests)
        and any(s.steps and s.commit is not None for s in measured.stated)
    ),
    aliases=("M4",),
)
def tokens_returned(measured: Measured) -> Judgement:
    known = Counted(tuple(r for r in measured.requests if r.output_tokens is not None and r.num_spec_steps))
    # Of each request one step may be counted on one side only: the cut last one, or one after the end.
    matching = [
        (s, s.commit)
        for s in measured.stated
        if s.commit is not None and s.steps and abs(s.steps - known.steps) <= len(known.requests)
    ]
    if not matching:
        raise NotKnown("counters over the same steps as the requests")
    (stated, counters), returned = matching[0], known.by_tokens
    over = (counters - returned) * known.steps
    most = len(known.requests) * (need(block_of(stated, measured), "the ceiling of a step's commit") - 1)
    said = (
        f"{stated.origin} says {counters:.2f} tokens per step, tokens returned / steps {returned:.2f} ({known.steps} steps, "
        f"{len(known.requests)} requests)"
    )
    if not -len(known.requests) - 1 <= over <= most + 1:
        return fail(
            f"{said}: {over:.0f} tokens more than last steps explain",
            "trust the tokens returned; accepted tokens are lost, or counted that were not",
            cites((stated, *known.requests)),
            counters=counters,
            returned=returned,
        )
    if apart(counters, returned) > MATERIAL:
        why = (
            "accepted tokens behind the stop are counted"
            if counters > returned
            else "the first token of each answer is no step's"
        )
        return warn(
            f"{said}: {why}, and answers are short",
            "for speed trust the tokens returned, for the drafter the counters; longer answers bring both together",
            cites((stated, *known.requests)),
            counters=counters,
            returned=returned,
        )
    return fine(said, cites((stated, *known.requests)))


@metric(
    "MC05",
    "a mean over steps and a mean over requests are told apart",
    source="vllm#42508: vLLM and SGLang's log pool over verify steps, SpecForge averages the requests' means: 2.65 and 2.32 "
    "of one run",
    applies=lambda measured: measured.setup is None and bool(_recordings(measured)),
    aliases=("M5",),
)
def aggregation(measured: Measured) -> Judgement:
    recordings = _recordings(measured)
    judged = [(one, _stated_apart(measured, one)) for one in recordings if _apart(one) > MATERIAL]
    # One that figures contradict, else the one whose averages are furthest apart.
    counted, stated = max(
        judged, key=lambda pair: (pair[1] is not None, _apart(pair[0])), default=(recordings[0], None)
    )
    pooled, mean = counted.pooled, counted.mean
    said = f"pooled over steps {pooled:.2f}, mean of {len(counted.requests)} requests {mean:.2f}"
    if not judged:
        return fine(said, cites(counted.requests))
    if stated is None:
        return note(
            said,
            "name the one you mean; speed follows the pooled one",
            cites(counted.requests),
            pooled=pooled,
            mean=mean,
        )
    first, second = stated
    which = [_average(claim.value, counted) for claim in stated]
    return fail(
        f"{first.origin} states {first.value:.2f} and {second.origin} {second.value:.2f} of one run: {said}; "
        + (
            "the averaging explains neither"
            if not any(which)
            else f"the first is {which[0] or 'neither'}, the second {which[1] or 'neither'}"
        ),
        "compare pooled with pooled: speed follows the mean over steps; short answers weigh too much in the other",
        cites((first, second, *counted.requests)),
        pooled=pooled,
        mean=mean,
    )


def _apart(counted: Counted) -> float:
    return apart(counted.pooled, counted.mean)


def _average(value: float, counted: Counted) -> str:
    """Which of the two averages a figure is; empty when it is neither."""
    named = ((counted.pooled, "pooled over steps"), (counted.mean, "the mean of requests"))
    nearest, name = min(named, key=lambda pair: apart(value, pair[0]))
    return name if apart(value, nearest) <= MATERIAL else ""


def _stated_apart(measured: Measured, counted: Counted) -> tuple[Claim, Claim] | None:
    """Two lengths that one document states of one run, and that differ.

    Another document than that of the requests may be of another run: there one of the two has to be an average of theirs.
    """
    here = document(counted.requests[0])
    lengths = [claim for claim in measured.claims if claim.what in LENGTHS and claim.run]
    for first, second in combinations(lengths, 2):
        alike = first.run == second.run and first.window == second.window
        known = document(first) == here or any(_average(claim.value, counted) for claim in (first, second))
        if alike and known and first.origin != second.origin and apart(first.value, second.value) > APART:
            return first, second
    return None


LINTS = (tokens_returned, aggregation)
