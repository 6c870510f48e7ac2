"""Does the prefix cache change what is accepted?"""

from __future__ import annotations

from ddprobe.model import Finding, Outcome, Verdict
from ddprobe.verdicts import standing, words
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.ruling import Ruling, weakest

LAUNCH = ("SA11", "SA12")


def judge(case: Case) -> Ruling | None:
    """The same prompt commits differently cold and from the cache.

    A drafter that looks text up remembers requests, cached or not: for it this is no sign of the cache.
    """
    check = case.check("cold-cached")
    if check is None or check.agrees is not False or standing.looks_up(case):
        return None
    cached = [request.cached_tokens for request in case.requests if request.purpose == "cached"]
    known = [tokens for tokens in cached if tokens is not None]
    if known and not any(known):
        return None
    lost = check.first is not None and check.second is not None and check.second < check.first
    gained = check.first is not None and check.second is not None and check.second > check.first
    lints = [*case.found(Outcome.FAIL, *LAUNCH), *case.found(Outcome.WARN, *LAUNCH)]
    reasons = [check.text]
    if known:
        reasons.append(f"the second one took {max(known)} tokens of its prompt from the cache")
    if gained:
        reasons.append("the cached one does better: something of the first request is replayed as a draft")
    fresh = [
        p
        for p in case.points
        if p.arm.startswith(f"{check.arm} #") and p.context_tokens == check.context_tokens
    ]
    reasons += [f"a fresh prompt of the same kind commits {words.number(point)}" for point in fresh[:1]]
    # Requests that somebody recorded are known by their length, not by their text.
    same = bool(check.arm) or any(r.arm for r in case.requests if r.purpose in ("cold", "cached"))
    missing = () if known else ("how many tokens of the prompt came from the cache",)
    return Ruling(
        Verdict(
            name="cache_state_bug",
            kind="draft_kv_lost" if lost else "draft_replayed" if gained else "",
            confidence=weakest(
                "high" if known and lost and same else "medium", "high" if check.steps >= 32 else "medium"
            ),
            reasons=(*reasons, *(f"{finding.id}: {finding.summary}" for finding in lints)),
            cites=words.cites(check, *(r for r in case.requests if r.purpose in ("cold", "cached"))),
            ruled_out=(
                "hard text and context length: both requests have the same prompt"
                if same
                else "context length: both have as many prompt tokens",
            ),
            missing=missing if same else (*missing, "whether both had the same prompt"),
            next=_next(lints),
        ),
        explains=_ratio(check.first, check.second),
    )


def _ratio(first: float | None, second: float | None) -> float:
    if first is None or second is None:
        return 1.0
    low, high = sorted((max(first, 1.0), max(second, 1.0)))
    return high / low


def _next(lints: list[Finding]) -> tuple[str, ...]:
    return (
        # SA11's advice is what was just done: one prompt cold and cached.
        *dict.fromkeys(finding.advice for finding in lints if finding.advice and finding.id != "SA11"),
        "ddprobe commit-probe --cold measures without the cache",
        "compare with the prefix cache off (SGLang --disable-radix-cache, vLLM --no-enable-prefix-caching)",
    )
