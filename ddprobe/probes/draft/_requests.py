"""One answer, as an engine's dialect read it → the record of that request."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ddprobe.engines.generation import Generated, Ids, StreamedStep
from ddprobe.facts import Account, CommitRequest
from ddprobe.model import Cite
from ddprobe.probes.draft._accounts import Output, counts, disagreements, fit


def request_fact(
    generated: Generated,
    *,
    key: str,
    purpose: str,
    arm: str,
    context_tokens: int,
    prompt: int,
    max_tokens: int,
    ceiling: int | None = None,
    seconds: float = 0.0,
    expected_ids: Ids = (),
    speculating: bool | None = None,
    source_cite: Cite | None = None,
) -> CommitRequest:
    """The record of one request: counts from the best account, each over the same steps.

    A last step that the end of the output cut counts as the account has it, if that counts it whole: steps are then
    as long as they come, and their mean is the drafter's. Where nobody knows how long it was it is left out, which makes
    the mean a little low, because long steps are cut more often than short ones.

    `speculating` False (the server says so) makes every step one without a draft, where no account says more.
    """
    known = CommitRequest(
        key=key,
        purpose=purpose,
        arm=arm,
        context_tokens=context_tokens,
        prompt=prompt,
        prompt_tokens=generated.prompt_tokens,
        cached_tokens=generated.cached_tokens,
        max_tokens=max_tokens,
        finish=generated.finish,
        seconds=seconds,
        error=generated.error,
        source=(source_cite,) if source_cite is not None else (),
    )
    if generated.error:
        return known
    output = _output(generated, ceiling)
    best = next((a for a in generated.accounts if None not in counts(a)), None)
    counted = _counted(generated, best, output, speculating)
    ids = generated.ids
    return replace(
        known,
        output_tokens=generated.output_tokens,
        num_spec_steps=counted.steps,
        undrafted_steps=counted.undrafted,
        num_accepted_draft_tokens=counted.accepted,
        num_draft_tokens=counted.drafted,
        acceptance_histogram=counted.histogram,
        step_commits=counted.commits,
        step_ms=_step_ms(generated, counted, ceiling),
        merged_chunks=max(generated.merged, counted.merged),
        origin=counted.origin,
        accounts=generated.accounts,
        disagreements=tuple(dict.fromkeys(disagreements(generated.accounts, output))),
        first_token_ms=None if generated.first_token_at is None else generated.first_token_at * 1000,
        copied=_copied(ids, expected_ids),
        loop=_loop(ids) if ids is not None and not expected_ids else "",
        output_hash=_hash(generated),
        notes=generated.notes,
    )


# --- what came ---------------------------------------------------------------------------------------------


def _output(generated: Generated, ceiling: int | None) -> Output:
    tokens = generated.output_tokens
    if tokens is None and generated.ids is not None:
        tokens = len(generated.ids)
    pieces = tuple(step.tokens for step in generated.steps)
    per_step = bool(pieces) and all(None not in (step.drafted, step.accepted) for step in generated.steps)
    if not per_step and ceiling is not None and any(piece > ceiling for piece in pieces):
        pieces = ()
    if tokens is None and pieces:
        tokens = sum(pieces) + 1
    # A step that commits all it can was not cut, whatever ended with it.
    full = bool(pieces) and ceiling is not None and pieces[-1] >= ceiling
    return Output(
        tokens=None if tokens is None else max(0, tokens - 1),
        pieces=pieces,
        cut=generated.last_step_cut is not False and generated.cut_steps != 0 and not full,
        merged=generated.merged,
        per_step=per_step,
        ceiling=ceiling,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counted:
    """Counts over the same steps: all of them, or all but the cut ones at the end whose length nobody knows."""

    origin: str = ""
    steps: int | None = None
    undrafted: int | None = None
    accepted: int | None = None
    drafted: int | None = None
    histogram: tuple[int, ...] | None = None
    commits: tuple[int, ...] = ()
    merged: int = 0
    dropped: int = 0
    """Streamed steps at the end that are not among them."""


def _counted(
    generated: Generated, best: Account | None, output: Output, speculating: bool | None
) -> _Counted:
    dropped = _cut_steps(generated, output)
    body = output.pieces[: len(output.pieces) - dropped]
    if best is None:
        return _without_account(generated, output, body, speculating)
    steps, accepted = counts(best)
    fitting = fit(best, output)
    whole = _Counted(
        origin=best.origin,
        steps=steps,
        accepted=accepted,
        drafted=best.drafted,
        histogram=best.histogram,
        undrafted=fitting.undrafted if fitting is not None else None,
        merged=fitting.merged if fitting is not None else 0,
        dropped=dropped,
    )
    if not output.pieces or whole.merged:
        return whole
    if fitting is None or steps is None or accepted is None:
        # They contradict each other: what was streamed stays beside what was counted, each as it stands.
        return replace(whole, commits=body)
    if output.per_step:
        known = generated.steps if best.last_step_whole else generated.steps[: len(body)]
        return _from_steps(known, replace(whole, dropped=len(generated.steps) - len(known)))
    return _aligned(best, output, whole, steps, accepted, fitting.undrafted)


def _cut_steps(generated: Generated, output: Output) -> int:
    """How many streamed steps at the end are no whole ones."""
    if not generated.steps or not output.cut:
        return 0
    return 1 if generated.cut_steps is None else generated.cut_steps


def _without_account(
    generated: Generated, output: Output, body: tuple[int, ...], speculating: bool | None
) -> _Counted:
    """No source counts the steps with a draft: what is left is the stream."""
    dropped = len(output.pieces) - len(body)
    partial = next((a for a in generated.accounts if a.accepted is not None or a.drafted is not None), None)
    if partial is not None:
        return _Counted(
            origin=partial.origin,
            # A step without a draft commits one token and accepts none, so these are all that were accepted.
            accepted=sum(body) - len(body) if body else partial.accepted,
            drafted=None if dropped else partial.drafted,
            commits=body,
            dropped=dropped,
        )
    counted = _Counted(origin="stream" if body else "", commits=body, dropped=dropped)
    if speculating is not False:
        return counted
    undrafted = len(body) if output.pieces else output.tokens
    return replace(
        counted, origin=counted.origin or "usage", steps=0, accepted=0, drafted=0, undrafted=undrafted
    )


def _from_steps(steps: Sequence[StreamedStep], whole: _Counted) -> _Counted:
    """The stream says of each step what was drafted, and the account agrees."""
    commits = [step.tokens for step in steps]
    if steps and steps[-1].drafted:
        # More was accepted in a last step that was cut than came of it.
        commits[-1] = max(commits[-1], (steps[-1].accepted or 0) + 1)
    right = [commit - 1 for commit, step in zip(commits, steps, strict=True) if step.drafted]
    return replace(
        whole,
        steps=len(right),
        undrafted=len(steps) - len(right),
        accepted=sum(right),
        drafted=sum(step.drafted or 0 for step in steps),
        histogram=_bins(right) if right else None,
        commits=tuple(commits),
    )


def _aligned(
    best: Account, output: Output, whole: _Counted, steps: int, accepted: int, undrafted: int
) -> _Counted:
    """The account and the stream over the same steps, the last one left out where it was cut and counted so."""
    *body, _ = output.pieces
    right = accepted - sum(body) + len(body)
    if not output.cut or best.last_step_whole is True:
        # What is accepted beyond the body is the last step's, though the end of the output may have cut it.
        return _with_histogram(replace(whole, commits=(*body, right + 1), dropped=0))
    if right == 0 and undrafted:
        # One token and no accepted draft: a step that had none, as others here.
        return _with_histogram(replace(whole, commits=tuple(body), undrafted=undrafted - 1))
    histogram = whole.histogram
    if histogram is not None:
        histogram = tuple(many - (k == right) for k, many in enumerate(histogram))
    each = whole.drafted // steps if whole.drafted is not None and whole.drafted % steps == 0 else None
    return _with_histogram(
        replace(
            whole,
            steps=steps - 1,
            accepted=accepted - right,
            # Where drafts differ in length, what was drafted for the last step is not known.
            drafted=whole.drafted - each if whole.drafted is not None and each is not None else None,
            histogram=histogram if histogram is None or min(histogram) >= 0 else None,
            commits=tuple(body),
        )
    )


def _with_histogram(counted: _Counted) -> _Counted:
    """The histogram from the stream, where every step had a draft."""
    right = [commit - 1 for commit in counted.commits]
    if counted.histogram is not None or counted.undrafted or not counted.steps:
        return counted
    agree = (len(right), sum(right)) == (counted.steps, counted.accepted)
    return replace(counted, histogram=_bins(right)) if agree else counted


def _bins(right: Sequence[int]) -> tuple[int, ...]:
    return tuple(right.count(k) for k in range(max(right) + 1))


def _step_ms(generated: Generated, counted: _Counted, ceiling: int | None) -> tuple[float, ...]:
    """Milliseconds of each step; pieces that must hold more than one step are left out.

    A step whose arrival is not known came with the next one: that one then takes no time.
    """
    steps = generated.steps
    known = [step.at for step in steps if step.at is not None]
    if generated.first_token_at is None or not known:
        return ()
    arrivals = [known[-1]]
    for step in reversed(steps):
        arrivals.append(step.at if step.at is not None else arrivals[-1])
    at = [generated.first_token_at, *reversed(arrivals[1:])]
    taken = [max(0.0, later - earlier) * 1000 for earlier, later in itertools.pairwise(at)]
    taken = taken[: len(taken) - counted.dropped]
    if counted.commits:
        return tuple(taken)
    return tuple(ms for ms, step in zip(taken, steps, strict=False) if not ceiling or step.tokens <= ceiling)


# --- what was written --------------------------------------------------------------------------------------


def _copied(ids: Ids | None, expected: Ids) -> float | None:
    if ids is None or not ids or not expected:
        return None
    from ddprobe.arms.outputs import follows

    return follows(ids, expected)


def _loop(ids: Ids) -> str:
    from ddprobe.arms.outputs import loop

    return loop(ids)


def _hash(generated: Generated) -> str:
    written = " ".join(map(str, generated.ids)) if generated.ids is not None else generated.text
    return hashlib.sha256(written.encode("utf-8", "replace")).hexdigest()[:16] if written else ""
