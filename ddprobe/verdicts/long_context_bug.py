"""Does the same easy text stop being drafted from some length on?"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ddprobe.facts import CommitPoint, Limit
from ddprobe.model import Finding, Outcome, Verdict
from ddprobe.parsing import sizes
from ddprobe.verdicts import standing, thresholds, words
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.excluded import excluded
from ddprobe.verdicts.ladder import EASY, FAR, NEAR, WIDE, Fall, Ladder, arm_of, ladders, mean
from ddprobe.verdicts.reach import by_design, far_loss
from ddprobe.verdicts.ruling import Ruling, weakest

WINDOW_LINTS = ("DC20", "DC21", "DC22", "DC23", "DC26", "DC27", "SA03")
POSITION_LINTS = ("DC30", "DC34", "DC35", "DC38")
WIRED_TO = {
    "window_ignored": WINDOW_LINTS,
    "sliding_window_kv": WINDOW_LINTS,
    "rope_position": POSITION_LINTS,
    "draft_length_limit": ("DC35",),
    "far_kv": ("SA04", "SA11", *WINDOW_LINTS),
}
"""Lints that may name the cause of each kind."""
CONTROLS = {
    "rope_position": "correct the drafter's position limits or RoPE scaling, and measure both sides of the edge again",
    "window_ignored": "upgrade to a version that applies the drafter's window, or set layer_types",
    "sliding_window_kv": "try another --speculative-draft-attention-backend, or no draft window, and measure again",
    "draft_length_limit": "raise the drafter's own length limit to the one served, or cap the context there",
    "chunk_boundary": "move the boundary (--chunked-prefill-size) and see whether the edge moves with it",
    "far_kv": "read how the drafter's full-attention layers are run: ddprobe grep 'sliding_window|layer_types'",
}


def judge(case: Case) -> Ruling | None:
    """Repeated text collapses with length; or, where it does not, passages that lie far back do."""
    fallen = [(ladder, fall) for ladder in ladders(case, *EASY, WIDE) if (fall := ladder.fall()) is not None]
    fallen += [
        (ladder, fall) for ladder in ladders(case, FAR) if ladder.label == NEAR and (fall := ladder.fall())
    ]
    sound = [
        (ladder, fall)
        for ladder, fall in fallen
        if mean(fall.short) > thresholds.dead_below(standing.ceiling(case))
    ]
    if not sound:
        return _far(case)
    easiest = [pair for pair in sound if pair[0].arm in EASY]
    ladder, fall = (easiest or sound)[0]
    limits = _within(case, fall)
    if fall.recovers is not None and not any(limit.kind == "chunk_boundary" for limit in limits):
        # A length beyond which all is well again is no limit on length.
        return None
    kind = _kind(case, fall, limits, repeats=bool(easiest))
    return _ruling(case, kind, ladder, fall, limits, [pair[0].label for pair in sound])


def _ruling(
    case: Case, kind: str, ladder: Ladder, fall: Fall, limits: Sequence[Limit], labels: Sequence[str]
) -> Ruling:
    most = standing.ceiling(case)
    edge = _reached(case, fall, limits)
    shown = list(dict.fromkeys([fall.short, fall.good, fall.bad, fall.worst]))
    reasons = [words.commits(sorted(shown, key=lambda p: p.context_tokens), most)]
    shape = "the edge lies" if fall.edge else "it slopes, and first shows"
    named = _names(limits)
    reasons.append(
        f"{shape} {edge}" + (f"; within it lies {named}" if named else "; no configured limit lies within it")
    )
    if fall.bad.drafted_steps == 0 and fall.good.drafted_steps:
        reasons.append(
            f"beyond it nothing is drafted any more ({words.count(fall.bad.steps, 'step')} without a draft)"
        )
    others = [label for label in labels if label != ladder.label]
    if others:
        reasons.append(f"{words.listed(others)} {'falls' if len(others) == 1 else 'fall'} too")
    lints = _lints(case, kind)
    reasons += [f"{finding.id}: {finding.summary}" for finding in lints]
    explained = bool(limits or any(finding.outcome is Outcome.FAIL for finding in lints))
    return Ruling(
        Verdict(
            name="long_context_bug",
            kind=kind,
            confidence=weakest("high" if explained or fall.edge else "medium", standing.certainty(case)),
            reasons=tuple(reasons),
            cites=words.cites(*shown, case.setup) + tuple(cite for f in lints for cite in f.cites),
            ruled_out=(
                f"hard text: it is the same text at every length, and at {sizes.short(fall.short.context_tokens)} it is "
                "drafted well",
                f"a target that writes something else: it copied {fall.worst.copied or 0:.0%} of the text",
                *excluded(case, "long_context_bug", "drafter_dead"),
            ),
            missing=(*standing.controls_missing(case), *_unsettled(case, kind, fall, limits)),
            next=_next(case, kind, fall, limits, lints),
        ),
        explains=fall.ratio,
    )


def _far(case: Case) -> Ruling | None:
    """Only what lies beyond the drafter's window is lost."""
    loss = far_loss(case)
    if loss is None or by_design(case):
        return None
    most = standing.ceiling(case)
    lints = _lints(case, "far_kv")
    beside = [words.commits([loss.near], most)] if loss.near is not None else []
    reasons = [
        words.commits([loss.short, loss.far] if loss.short is not None else [loss.far], most),
        *beside,
        "what stands near is drafted and what stands far back is not"
        + (f": the drafter's window is {loss.window} tokens" if loss.window is not None else ""),
        *(f"{finding.id}: {finding.summary}" for finding in lints),
    ]
    whole = loss.window is not None and loss.near is not None and standing.easy_works(case)
    config = case.config("drafter")
    missing = list(standing.controls_missing(case))
    if config is None or config.layer_types is None:
        missing.append(
            "the drafter's layer_types: with a window on every layer, losing far text is by design"
        )
    if loss.near is None:
        missing.append("the near copy at the same length (arm far-copy near)")
    return Ruling(
        Verdict(
            name="long_context_bug",
            kind="far_kv",
            confidence=weakest("high" if whole and len(missing) == 0 else "medium", standing.certainty(case)),
            reasons=tuple(reasons),
            cites=words.cites(loss.short, loss.near, loss.far, case.setup)
            + tuple(cite for f in lints for cite in f.cites),
            ruled_out=(
                "hard text: the passage stands word for word in the prompt, and the target copied it "
                f"({loss.far.copied or 0:.0%})",
                *excluded(case, "far_kv"),
            ),
            missing=tuple(missing),
            next=(
                *dict.fromkeys(finding.advice for finding in lints if finding.advice),
                words.command(case, [FAR], _beyond(loss.window, loss.far.context_tokens)),
                CONTROLS["far_kv"],
            ),
        ),
        explains=loss.ratio,
    )


# --- which limit ------------------------------------------------------------------------------------------


def _within(case: Case, fall: Fall) -> tuple[Limit, ...]:
    """Configured limits that lie in the edge: above the last good length, below all that the first bad one reached."""
    low = fall.good.context_tokens * (1 - thresholds.EDGE_SLACK)
    high = fall.bad.context_tokens + _output(case, fall.bad)
    limits = case.setup.limits if case.setup is not None else ()
    single = [limit for limit in limits if low <= limit.tokens <= high]
    chunks = [
        Limit(int(high // limit.tokens) * limit.tokens, f"a multiple of {limit.name}", limit.kind)
        for limit in limits
        if limit.kind == "chunk_boundary"
        and limit not in single
        and limit.tokens
        # A chunk ends at every multiple of its size: several within the edge explain nothing.
        and high // limit.tokens - low // limit.tokens == 1
    ]
    return tuple(sorted((*single, *chunks), key=lambda limit: (limit.tokens, limit.kind, limit.name)))


def _told(case: Case, limits: Sequence[Limit]) -> tuple[Limit, ...]:
    """Those of the limits whose length a failing lint on positions or windows names."""
    said = " ".join(f.summary for f in case.found(Outcome.FAIL, *POSITION_LINTS, *WINDOW_LINTS))
    said += " ".join(f.summary for f in case.found(Outcome.WARN, *POSITION_LINTS))
    return tuple(limit for limit in limits if re.search(rf"(?<!\d){limit.tokens}(?!\d)", said))


def _output(case: Case, point: CommitPoint) -> int:
    """Most tokens that a request of this point wrote: it went on to that much beyond its prompt."""
    place = (point.arm, point.context_tokens)
    return max((r.output_tokens or 0 for r in case.requests if (r.arm, r.context_tokens) == place), default=0)


def _kind(case: Case, fall: Fall, limits: Sequence[Limit], *, repeats: bool) -> str:
    """The finer word: by what happens beyond the edge, by the limit within it, by a lint; empty where they leave it open."""
    if fall.recovers is not None:
        return "chunk_boundary"
    if fall.bad.drafted_steps == 0 and fall.good.drafted_steps:
        return "draft_length_limit"
    window = case.setup.window if case.setup is not None else None
    beyond = window is not None and fall.worst.context_tokens > window
    if beyond and repeats and not fall.edge and case.found(Outcome.FAIL, "DC20", "DC21", "DC22"):
        return "window_ignored"
    # A chunk boundary passes all the time: it explains an edge only where nothing rarer does.
    kinds = {limit.kind for limit in limits} - {"chunk_boundary"} or {limit.kind for limit in limits}
    if len(kinds) == 1:
        kind = kinds.pop()
        ignored = kind == "sliding_window_kv" and case.found(Outcome.FAIL, "DC20", "DC21", "DC22")
        return "window_ignored" if ignored else kind
    for named in (
        {kind for kind in kinds if case.found(Outcome.FAIL, *WIRED_TO.get(kind, ()))},
        {limit.kind for limit in _told(case, limits)},
    ):
        if len(named) == 1:
            return named.pop()
    if not kinds and case.found(Outcome.FAIL, *POSITION_LINTS):
        return "rope_position"
    return ""


def _names(limits: Sequence[Limit]) -> str:
    return words.listed([f"{limit.name} ({limit.tokens} tokens)" for limit in limits[:4]])


def _lints(case: Case, kind: str) -> list[Finding]:
    ids = WIRED_TO.get(kind, (*POSITION_LINTS, *WINDOW_LINTS))
    return [*case.found(Outcome.FAIL, *ids), *case.found(Outcome.WARN, *ids)][:4]


# --- what is left to do -----------------------------------------------------------------------------------


def _unsettled(case: Case, kind: str, fall: Fall, limits: Sequence[Limit]) -> tuple[str, ...]:
    missing = []
    if fall.bad.context_tokens > 1.25 * fall.good.context_tokens:
        missing.append(f"the edge itself: it lies anywhere {_between(fall)}")
    if not kind and limits:
        missing.append("which of these limits it is: a length on each side of every one")
    if case.config("drafter") is None and not limits:
        missing.append("the drafter's config.json: which limits does it have?")
    return tuple(missing)


def _reached(case: Case, fall: Fall, limits: Sequence[Limit]) -> str:
    """Where the edge lies: the first bad length counts with its output, where a limit is only met by that."""
    bad = fall.bad.context_tokens
    if all(limit.tokens <= bad for limit in limits):
        return _between(fall)
    return (
        f"between {sizes.short(fall.good.context_tokens)} and {bad + _output(case, fall.bad)} (a prompt of "
        f"{sizes.short(bad)} and its output)"
    )


def _between(fall: Fall) -> str:
    return f"between {sizes.short(fall.good.context_tokens)} and {sizes.short(fall.bad.context_tokens)}"


def _next(
    case: Case, kind: str, fall: Fall, limits: Sequence[Limit], lints: Sequence[Finding]
) -> tuple[str, ...]:
    first = sorted(limits, key=lambda limit: limit not in _told(case, limits))
    sides = sorted(round(limit.tokens * factor) for limit in first[:3] for factor in (0.93, 1.07))
    halves = [
        fall.good.context_tokens,
        (fall.good.context_tokens + fall.bad.context_tokens) // 2,
        fall.bad.context_tokens,
    ]
    return (
        *dict.fromkeys(finding.advice for finding in lints if finding.advice),
        words.command(case, [arm_of(fall.short.arm)], sides or halves),
        *(
            (CONTROLS[kind],)
            if kind in CONTROLS
            else ("ddprobe inspect-config (position limits, window, RoPE scaling)",)
        ),
    )


def _beyond(window: int | None, context: int) -> list[int]:
    """Lengths on both sides of the window."""
    return [round(window * 0.93), round(window * 1.07), context] if window else [1024, context]
