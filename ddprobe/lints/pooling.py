"""Requests taken together: tokens that were returned against counters, and the two ways to average."""

from __future__ import annotations

from dataclasses import dataclass

from ddprobe.facts import Claim, CommitRequest
from ddprobe.lints.identities import SAME, block_of
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
        return sum(request.num_spec_steps or 0 for request in self.requests)

    @property
    def by_tokens(self) -> float:
        """Tokens returned per step, over all steps."""
        return sum(request.output_tokens or 0 for request in self.requests) / self.steps

    @property
    def pooled(self) -> float:
        return sum(_commit(request) * (request.num_spec_steps or 0) for request in self.requests) / self.steps

    @property
    def mean(self) -> float:
        """Of each request's own mean, long and short ones alike."""
        return sum(map(_commit, self.requests)) / len(self.requests)


def _commit(request: CommitRequest) -> float:
    """Tokens per step of one request: counted where it is counted, else from the tokens returned."""
    if request.mean_acceptance_length is not None:
        return request.mean_acceptance_length
    return (request.output_tokens or 0) / (request.num_spec_steps or 1)


def _counted(measured: Measured) -> Counted:
    return Counted(
        tuple(
            r
            for r in measured.requests
            if r.purpose == "point"
            and r.num_spec_steps
            and (r.output_tokens is not None or r.num_accepted_draft_tokens is not None)
        )
    )


def apart(first: float, second: float) -> float:
    """By which share two figures differ."""
    return abs(first - second) / max(min(first, second), 1e-9)


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
    matching = [
        s
        for s in measured.stated
        if s.commit is not None and s.steps and abs(s.steps - known.steps) <= len(known.requests) * SAME + 1
    ]
    if not matching:
        raise NotKnown("counters over the same steps as the requests")
    stated = matching[0]
    counters, returned = stated.commit or 1.0, known.by_tokens
    over = (counters - returned) * known.steps
    most = len(known.requests) * (
        need(measured.ceiling or block_of(stated), "the ceiling of a step's commit") - 1
    )
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
        return warn(
            f"{said}: accepted tokens behind the stop are counted, and answers are short",
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
    applies=lambda measured: measured.setup is None and len(_counted(measured).requests) > 1,
    aliases=("M5",),
)
def aggregation(measured: Measured) -> Judgement:
    counted = _counted(measured)
    pooled, mean = counted.pooled, counted.mean
    said = f"pooled over steps {pooled:.2f}, mean of {len(counted.requests)} requests {mean:.2f}"
    if apart(pooled, mean) <= MATERIAL:
        return fine(said, cites(counted.requests))
    stated = _stated_apart(measured)
    if stated is None:
        return note(
            said,
            "name the one you mean; speed follows the pooled one",
            cites(counted.requests),
            pooled=pooled,
            mean=mean,
        )
    first, second = stated
    return fail(
        f"{first.origin} states {first.value:.2f} and {second.origin} {second.value:.2f} of one run: {said}",
        "compare pooled with pooled: speed follows the mean over steps; short answers weigh too much in the other",
        cites((first, second, *counted.requests)),
        pooled=pooled,
        mean=mean,
    )


def _stated_apart(measured: Measured) -> tuple[Claim, Claim] | None:
    """Two lengths that one document states of one run, and that differ."""
    lengths = [claim for claim in measured.claims if claim.what in LENGTHS and claim.run]
    for index, first in enumerate(lengths):
        for second in lengths[index + 1 :]:
            alike = first.run == second.run and first.window == second.window
            if alike and first.origin != second.origin and apart(first.value, second.value) > APART:
                return first, second
    return None


LINTS = (tokens_returned, aggregation)
