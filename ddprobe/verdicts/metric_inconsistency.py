"""Do the numbers about speculation contradict each other?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ddprobe.facts import Account, Claim, CommitRequest
from ddprobe.model import Outcome, Verdict
from ddprobe.parsing.acceptance import LONGEST
from ddprobe.verdicts import counting, standing, thresholds, words
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.growth import growth
from ddprobe.verdicts.ruling import Ruling

STREAM = "stream"
LENGTHS = ("accept length", "commit length")
"""Figures with the bonus token; an accepted depth has none."""
LINTS = ("RT01",)


@dataclass(frozen=True, slots=True)
class Pooled:
    """Requests of which the stream shows each step, and another source says what was accepted."""

    streamed: float
    told: float
    steps: int
    requests: int
    origin: str

    @property
    def not_committed(self) -> bool:
        """A draft a step is accepted, and still about one token comes out: not a matter of counting."""
        return self.streamed <= thresholds.DEAD and self.told >= 2


def judge(case: Case) -> Ruling | None:
    """Sources that should agree do not; where the stream shows it, tokens are accepted and never come out."""
    disagreeing = sorted((r for r in case.requests if r.disagreements), key=lambda request: request.key)
    measured = [request for request in case.requests if not request.error]
    enough = len(disagreeing) >= min(2, max(1, len(measured)))
    check = case.check("sources")
    contradicting = [check] if check is not None and check.agrees is False else []
    lints = case.found(Outcome.FAIL, *LINTS)
    claims = tuple(_claims(case))
    if not (enough or contradicting or lints or claims):
        return None
    by_request = enough or bool(lints and not claims)
    pooled = _pooled(measured)
    commit_path = (pooled is not None and pooled.not_committed) or _deep(case, pooled)
    reasons = _reasons(disagreeing if enough else [], pooled)
    reasons += [check.text for check in contradicting]
    reasons += [f"{finding.id}: {finding.summary}" for finding in lints if not enough]
    reasons += [text for _, text in claims]
    reasons += _not_the_text(case, pooled) if commit_path else []
    lines = counting.lines(case)
    if lines:
        reasons.append(f"the installed source computes them so: {'; '.join(line.told for line in lines)}")
    kind = "commit_path" if commit_path else "metric" if by_request or contradicting else "worker_reporting"
    solid = by_request and sum(request.num_spec_steps or 0 for request in disagreeing) >= thresholds.MIN_STEPS
    facts = (*contradicting, *disagreeing, *(claim for claim, _ in claims))
    return Ruling(
        Verdict(
            name="metric_inconsistency",
            kind=kind,
            confidence="high" if solid else "medium",
            reasons=tuple(dict.fromkeys(reasons)),
            cites=words.cites(*facts)
            + tuple(cite for finding in lints for cite in finding.cites)
            + tuple(line.cite for line in lines),
            ruled_out=_ruled_out(commit_path),
            missing=_missing(pooled, commit_path, read=bool(lines)),
            next=_next(case, commit_path, read=bool(lines)),
        ),
        explains=_explains(case, pooled) if commit_path else 1.0,
        voids=commit_path,
    )


# --- requests ---------------------------------------------------------------------------------------------


def _pooled(requests: list[CommitRequest]) -> Pooled | None:
    """Over the requests that have both accounts: tokens per step as streamed, and as another source has it."""
    found: list[tuple[Account, Account]] = []
    for request in requests:
        streamed = next((a for a in request.accounts if a.origin == STREAM and a.commit is not None), None)
        others = [a for a in request.accounts if a.origin != STREAM and a.commit is not None]
        if streamed is not None and others:
            found.append((streamed, others[0]))
    if not found:
        return None
    return Pooled(
        streamed=_commit([streamed for streamed, _ in found]),
        told=_commit([other for _, other in found]),
        steps=sum(other.steps for _, other in found if other.steps),
        requests=len(found),
        origin=min(other.origin for _, other in found),
    )


def _commit(accounts: list[Account]) -> float:
    accepted = sum(account.accepted for account in accounts if account.accepted)
    return 1 + accepted / sum(account.steps for account in accounts if account.steps)


def _reasons(disagreeing: list[CommitRequest], pooled: Pooled | None) -> list[str]:
    if not disagreeing:
        return []
    texts = sorted({text for request in disagreeing for text in request.disagreements})
    reasons = [f"sources contradict each other in {words.count(len(disagreeing), 'request')}: {texts[0]}"]
    kinds = {re.sub(r"\d+(\.\d+)?", "#", text): text for text in reversed(texts)}
    reasons += [
        text for kind, text in sorted(kinds.items()) if kind != re.sub(r"\d+(\.\d+)?", "#", texts[0])
    ][:2]
    if pooled is not None:
        reasons.append(
            f"the stream shows {pooled.streamed:.2f} tokens per step where {pooled.origin} says {pooled.told:.2f} "
            f"({words.count(pooled.steps, 'step')}, {words.count(pooled.requests, 'request')})"
        )
    return reasons


# --- claims -----------------------------------------------------------------------------------------------


def _claims(case: Case) -> Iterator[tuple[Claim, str]]:
    """Figures that cannot be, that contradict one another, or that contradict what was measured meanwhile."""
    most = standing.ceiling(case)
    ordered = sorted(case.claims, key=lambda c: (c.what, c.window, c.origin, c.value))
    for claim in ordered:
        text = _impossible(claim, most) or _beside_depth(claim, ordered) or _beside_measured(case, claim)
        if text:
            yield claim, text


def _impossible(claim: Claim, most: int | None) -> str:
    """What no server can have measured."""
    if claim.what == "accept rate" and claim.value > 1 + thresholds.ROUNDED:
        return f"{_told(claim)}: a share of the drafts cannot exceed 1, so this is a length, or counts the bonus token"
    if claim.what not in LENGTHS or claim.value <= 0 or claim.value > LONGEST:
        # A gauge that was never set, or no figure of anything.
        return ""
    if claim.value < 1 - thresholds.ROUNDED:
        return f"{_told(claim)}: a step commits at least its bonus token, so this counts accepted drafts only"
    # A length computed from all output tokens holds the prefill's, which is more the fewer the steps are.
    if most is not None and claim.value > most * (1 + thresholds.CLAIM):
        return f"{_told(claim)}: a step commits {most} tokens at most"
    return ""


def _beside_depth(claim: Claim, claims: list[Claim]) -> str:
    """Commit is accepted depth + 1, over the same window."""
    if claim.what not in LENGTHS:
        return ""
    depths = [c for c in claims if (c.what, c.window, c.run) == ("accepted depth", claim.window, claim.run)]
    for depth in depths:
        if abs(claim.value - (1 + depth.value)) > thresholds.CLAIM * (1 + depth.value) + thresholds.ROUNDED:
            return (
                f"{_told(claim)} beside {_told(depth)}: a step commits what it accepted and one bonus token, so "
                f"{1 + depth.value:.2f} is expected"
            )
    return ""


def _beside_measured(case: Case, claim: Claim) -> str:
    """Only a figure over the very requests of the probe can be compared with them."""
    if claim.window != "during the probe" or claim.what not in LENGTHS:
        return ""
    counts = [(r.num_spec_steps, r.num_accepted_draft_tokens) for r in case.requests]
    counted = [(steps, accepted) for steps, accepted in counts if steps and accepted is not None]
    steps = sum(steps for steps, _ in counted)
    if steps < thresholds.MIN_STEPS or any(r.error for r in case.requests):
        return ""
    measured = 1 + sum(accepted for _, accepted in counted) / steps
    # Each request's last step is left out here, and may be counted there.
    most = standing.ceiling(case)
    tail = len(counted) * ((most or 1) - 1) / steps
    if abs(claim.value - measured) <= thresholds.CLAIM * measured + tail + thresholds.ROUNDED:
        return ""
    return (
        f"{_told(claim)}, and its own requests say {measured:.2f} ({words.count(steps, 'step')}, "
        f"{words.count(len(counted), 'request')})"
    )


def _told(claim: Claim) -> str:
    scope = ", ".join(
        part for part in (claim.window, claim.samples and words.count(claim.samples, "step")) if part
    )
    return f"{claim.origin} states {claim.what} {claim.value:.2f}" + (f" ({scope})" if scope else "")


def _depth(case: Case) -> float | None:
    """The greatest accepted depth that somebody states."""
    return max((claim.value for claim in case.claims if claim.what == "accepted depth"), default=None)


def _streamed(case: Case, pooled: Pooled | None) -> float | None:
    """Tokens per step as they came out."""
    return pooled.streamed if pooled is not None else _shown(case)


def _deep(case: Case, pooled: Pooled | None) -> bool:
    """A stated depth of a draft or more, while the stream shows one token a step."""
    depth, streamed = _depth(case), _streamed(case, pooled)
    if depth is None or depth < 1 or streamed is None:
        return False
    lengths = [claim.value for claim in case.claims if claim.what in LENGTHS]
    contradicted = any(value < (1 - thresholds.CLAIM) * (1 + depth) for value in lengths)
    return contradicted and streamed <= thresholds.DEAD


def _shown(case: Case) -> float | None:
    """Tokens per step as they came out, over all requests that show them."""
    commits = [tokens for request in case.requests for tokens in request.step_commits]
    return sum(commits) / len(commits) if len(commits) >= thresholds.MIN_STEPS else None


def _explains(case: Case, pooled: Pooled | None) -> float:
    """How many times more tokens were accepted than came out."""
    if pooled is not None and pooled.not_committed:
        return pooled.told / pooled.streamed
    depth, streamed = _depth(case), _streamed(case, pooled)
    assert depth is not None
    assert streamed is not None
    return (1 + depth) / streamed


def _not_the_text(case: Case, pooled: Pooled | None) -> list[str]:
    """Why hard text is no explanation of tokens that are accepted and lost; and what else is slow."""
    easy = standing.short_point(case)
    shown = (
        f"{words.commits([easy], standing.ceiling(case))}, and it is the easiest there is; "
        if easy is not None
        else ""
    )
    deep = f" ({pooled.told - 1:.2f} a step here)" if pooled is not None and pooled.not_committed else ""
    told = [
        f"text difficulty alone does not explain this: {shown}hard text would lower what is accepted{deep}, and not what "
        "becomes of it"
    ]
    slower = growth(case)
    if slower is not None:
        told.append(f"{slower.told}: a loss of its own beside this one, and no matter of the text either")
    return told


# --- words ------------------------------------------------------------------------------------------------


def _ruled_out(commit_path: bool) -> tuple[str, ...]:
    if not commit_path:
        return ()
    return (
        "hard text: it lowers what is accepted, never what comes out of it",
        "the cut last step, stop words and grammars: the last step is left out, and no request had the others",
    )


def _missing(pooled: Pooled | None, commit_path: bool, *, read: bool) -> tuple[str, ...]:
    if commit_path and read:
        return ("greedy output with speculation off: whether what does come out is the target's own",)
    if commit_path:
        return ("what the accepted depth counts: the lines of the installed source that compute it",)
    if pooled is None:
        return ("a stream that shows each step: it tells a wrong figure from tokens that are lost",)
    return ()


def _next(case: Case, commit_path: bool, *, read: bool) -> tuple[str, ...]:
    grep = () if read else ("ddprobe grep 'accept_len|commit_len' shows where both figures are made",)
    if commit_path:
        tree = case.setup is not None and case.setup.tree
        return (
            "compare greedy output with speculation on and off: it must be the same",
            *grep,
            *(
                ("measure once without the draft tree: a plain chain must commit 1 + accepted depth",)
                if tree
                else ()
            ),
        )
    return (
        "take no decision on the figure named above; tokens per streamed step count",
        *(
            ()
            if read
            else ("ddprobe grep 'accept_len|accept_length' shows which formula the installed version has",)
        ),
    )
