"""Does the same text lose its drafts with length, by points and logs of others? A collapse is a bug, a slope a decay."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ddprobe.facts import CommitPoint, DecodeBin, DecodeSeries, Limit
from ddprobe.model import Finding, Verdict
from ddprobe.parsing import sizes
from ddprobe.verdicts import thresholds, words
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.collected import attention_kernel_bottleneck, causes, far_copy, figures
from ddprobe.verdicts.collected.figures import Line, mean
from ddprobe.verdicts.long_context_bug import CONTROLS
from ddprobe.verdicts.long_context_decay import smooth
from ddprobe.verdicts.ruling import Ruling


def judge(case: Case) -> Ruling | None:
    """The verdict on repeated text that falls; on prose that falls while it holds; on a log that falls to nothing."""
    line = figures.easy(case)
    if line is None:
        return _log_edge(case)
    if len(line.points) < 2:
        return None
    first = line.share(line.short)
    alive = mean(line.short) > thresholds.DEAD if first is None else first >= thresholds.ALIVE_SHARE
    if not alive:
        return None
    if mean(line.worst) - 1 < thresholds.HALVED * (mean(line.short) - 1):
        return _collapse(case, line)
    if line.level:
        return _prose(case, line)
    # What is left fades; a dip that is made good at the longest length is no matter of length.
    if mean(line.long) - 1 < thresholds.LEVEL * (mean(line.short) - 1):
        return _decay(case, line, "on the easiest text there is", None)
    return None


# --- a collapse -------------------------------------------------------------------------------------------


def _collapse(case: Case, line: Line) -> Ruling | None:
    half = thresholds.HALVED * (mean(line.short) - 1)
    place = next(n for n, point in enumerate(line.points) if mean(point) - 1 < half)
    good, bad = line.points[place - 1], line.points[place]
    if any(mean(point) - 1 >= thresholds.LEVEL * (mean(line.short) - 1) for point in line.points[place:]):
        # A length beyond which all is well again is no limit on length.
        return None
    within = _within(case, good, bad)
    found = causes.length(case)
    shown = list(dict.fromkeys([line.short, good, bad, line.long]))
    between = f"between {sizes.short(good.context_tokens)} and {sizes.short(bad.context_tokens)}"
    reasons = [
        f"{figures.told(shown, line.ceiling)}: the same text",
        f"it is lost {between}"
        + (f"; within it lies {words.listed([_named(limit) for limit in within])}" if within else ""),
        *([f"{flat}: the loss is the drafts'"] if (flat := attention_kernel_bottleneck.flat(case)) else []),
        *causes.named(found),
    ]
    kinds = {limit.kind for limit in within}
    kind = kinds.pop() if len(kinds) == 1 else "" if kinds else _kind(found)
    missing = list(figures.few(shown))
    if bad.context_tokens > thresholds.NARROW * good.context_tokens:
        missing.append(f"the edge itself: it lies anywhere {between}")
    if not within and not found:
        missing.append("the drafter's config.json and the server's arguments: which limit lies there?")
    small = figures.sure(shown) != "high"
    near = bad.context_tokens <= thresholds.NARROW * good.context_tokens
    return Ruling(
        Verdict(
            name="long_context_bug",
            kind=kind,
            # An error that names no length in the edge is a cause to try out, not one that is placed.
            confidence="medium" if small or not (within or near) else "high",
            reasons=tuple(reasons),
            cites=words.cites(*shown) + causes.cites(found),
            ruled_out=(
                f"hard text: it is the same text at every length, and at {sizes.short(line.short.context_tokens)} it is "
                "drafted well",
                "a dead drafter: it works at the shortest length",
            ),
            missing=tuple(missing),
            next=(
                *causes.advice(found),
                words.command(case, ["repeat"], _sides(within, good, bad)),
                CONTROLS.get(kind, "ddprobe inspect-config (position limits, window, RoPE scaling)"),
            ),
        ),
        explains=mean(line.short) / mean(line.worst),
    )


def _kind(found: tuple[Finding, ...]) -> str:
    """The finer word that errors alone give."""
    if any(finding.id in causes.OF_POSITION for finding in found):
        return "rope_position"
    return "window_ignored" if any(finding.id in causes.OF_WINDOW for finding in found) else ""


def _within(case: Case, good: CommitPoint, bad: CommitPoint) -> tuple[Limit, ...]:
    low = good.context_tokens * (1 - thresholds.EDGE_SLACK)
    high = bad.context_tokens * (1 + thresholds.EDGE_SLACK)
    found = tuple(limit for limit in figures.limits(case) if low <= limit.tokens <= high)
    return found or _chunk(case, good.context_tokens, bad.context_tokens)


def _chunk(case: Case, good: int, bad: int) -> tuple[Limit, ...]:
    """The end of a prefill chunk that lies in a narrow edge. In a wide one lies some end by chance."""
    served = figures.server(case)
    size = served.number("chunked_prefill_size") if served is not None else None
    if not size or size < 0 or bad > thresholds.NARROW * good:
        return ()
    ends = range(size * (good // size + 1), bad + 1, size)
    return (
        (Limit(ends[0], "the end of a chunk (chunked_prefill_size)", "chunk_boundary"),)
        if len(ends) == 1
        else ()
    )


def _named(limit: Limit) -> str:
    return f"{limit.name} ({limit.tokens} tokens)"


def _sides(within: tuple[Limit, ...], good: CommitPoint, bad: CommitPoint) -> list[int]:
    if within:
        return _beside(within)
    return [
        good.context_tokens,
        (good.context_tokens + bad.context_tokens) // 2,
        bad.context_tokens,
    ]


# --- a slope ----------------------------------------------------------------------------------------------


def _prose(case: Case, easy: Line) -> Ruling | None:
    """Another text at several lengths fades while repeated text holds."""
    found = [
        line
        for line in figures.ordinary(case)
        if line.short.context_tokens and mean(line.long) < thresholds.SAME * mean(line.short)
    ]
    if not found or not easy.works:
        return None
    worst = min(found, key=lambda line: (mean(line.long) / mean(line.short), line.label))
    return _decay(case, worst, "while repeated text holds", easy)


def _decay(case: Case, line: Line, beside: str, easy: Line | None) -> Ruling:
    kept = mean(line.long) / mean(line.short)
    shown = figures.ends(line)
    edge = smooth(line.points) is False
    return Ruling(
        Verdict(
            name="long_context_decay",
            kind="steep" if kept < thresholds.STEEP else "",
            confidence="low" if edge or len(line.points) < 3 or kept < thresholds.STEEP else "medium",
            reasons=(
                f"{figures.told(line.points, line.ceiling)}: {kept:.0%} of the commit is left, {beside}",
                *((figures.told(figures.ends(easy), easy.ceiling),) if easy is not None else ()),
            ),
            cites=words.cites(*shown, *(figures.ends(easy) if easy is not None else ())),
            ruled_out=("a dead drafter: it works at the shortest length",),
            missing=(
                *figures.few(shown),
                *(
                    (
                        "why most of it is lost in one step: lengths around it, and the limits configured there",
                    )
                    if edge
                    else ()
                ),
                *far_copy.missing(case),
            ),
            next=(
                "ddprobe commit-probe --arms repeat,far-copy,prose tells a slope from an edge",
                "a drafter trained on longer text, or a shorter draft at these lengths",
            ),
        ),
        explains=1 / kept,
    )


# --- logs -------------------------------------------------------------------------------------------------


def _log_edge(case: Case) -> Ruling | None:
    """Log lines that commit well at short contexts, and nothing beyond one.

    A fall in a log alone is no verdict: nobody held the text. Nothing right at all is no matter of the text, though, where
    an error names a limit on length, or many lines say so.
    """
    found = tuple(finding for finding in causes.length(case) if finding.id in causes.OF_LENGTH)
    for log in case.logs:
        bins = figures.one_running(log)
        alive = [bin for bin in bins if figures.bin_mean(bin) >= thresholds.DEAD]
        nothing = [bin for bin in bins if figures.bin_best(bin) <= thresholds.NOTHING_RIGHT]
        if not alive or not nothing or (*alive, *nothing) != bins:
            continue
        lines = sum(bin.lines for bin in nothing)
        last, first = figures.middle(alive[-1]), figures.middle(nothing[0])
        named = found if _explains(case, first) else ()
        if not named and lines < thresholds.LINES_OF_NOTHING:
            continue
        best = figures.bin_mean(alive[-1])
        return Ruling(
            Verdict(
                name="long_context_bug",
                kind="rope_position" if named else "",
                confidence="medium" if named else "low",
                reasons=(
                    f"the log commits {best:.2f} at about {sizes.short(round(last))} tokens, and nothing from about "
                    f"{sizes.short(round(first))} on ({lines} lines)",
                    *causes.named(named),
                ),
                cites=words.cites(log) + causes.cites(named),
                ruled_out=("hard text: even that gives 1.1 to 1.6, not nothing",),
                missing=("repeated text on both sides of the edge", *(() if named else _unknown_limit(case))),
                next=(
                    *causes.advice(named),
                    words.command(case, ["repeat"], [1024, round(last), round(first)]),
                ),
            ),
            explains=best,
        )
    return (_at_limit(case, found) or _lost_windows(case, found)) if found else None


def _explains(case: Case, first: float) -> bool:
    """Whether a limit that is known lies below where nothing is right any more; without one, the error itself names it."""
    limits = [
        limit for limit in figures.limits(case) if limit.kind in ("rope_position", "draft_length_limit")
    ]
    return not limits or any(limit.tokens <= first * (1 + thresholds.EDGE_SLACK) for limit in limits)


def _unknown_limit(case: Case) -> tuple[str, ...]:
    """What would tell which limit lies there."""
    served = figures.server(case)
    absent = []
    if served is None or (served.drafter is None and not served.drafts_with_own_layers):
        absent.append("the drafter's config.json")
    if served is None or not served.arguments_known:
        absent.append("the server's arguments")
    return (f"{' and '.join(absent)}: which limit lies there?",) if absent else ()


def _at_limit(case: Case, found: tuple[Finding, ...]) -> Ruling | None:
    """A log that commits well up to a limit which an error names, and next to nothing from it on.

    Beyond its last position a drafter still gets a first token right now and then: it leans on the one just committed.
    """
    limits = [
        limit for limit in figures.limits(case) if limit.kind in ("rope_position", "draft_length_limit")
    ]
    for log in case.logs:
        bins = figures.one_running(log)
        for limit in limits:
            below = [bin for bin in bins if figures.middle(bin) <= limit.tokens]
            beyond = [bin for bin in bins if figures.middle(bin) > limit.tokens]
            if not beyond:
                continue
            if not below:
                if (far := _beyond_alone(case, log, beyond, limit, found)) is not None:
                    return far
                continue
            good = min(map(figures.bin_mean, below))
            bad = max(map(figures.bin_mean, beyond))
            lines = min(sum(bin.lines for bin in part) for part in (below, beyond))
            if good < thresholds.DEAD or bad > thresholds.HARDLY or lines < thresholds.LIMIT_LINES:
                continue
            return Ruling(
                Verdict(
                    name="long_context_bug",
                    kind=limit.kind,
                    confidence="medium",
                    reasons=(
                        f"the log commits {good:.2f} and more up to {_named(limit)}, and {bad:.2f} at most beyond it "
                        f"({sum(bin.lines for bin in beyond)} lines)",
                        *causes.named(found),
                    ),
                    cites=words.cites(log) + causes.cites(found),
                    ruled_out=("a dead drafter: it works below that length",),
                    missing=("repeated text on both sides of the limit",),
                    next=(*causes.advice(found), words.command(case, ["repeat"], _beside([limit]))),
                ),
                explains=good / bad,
            )
    return None


def _beyond_alone(
    case: Case, log: DecodeSeries, beyond: Sequence[DecodeBin], limit: Limit, found: tuple[Finding, ...]
) -> Ruling | None:
    """A log that holds contexts beyond the limit only: it explains that nothing is right, and a dead drafter would, too."""
    worst = max(map(figures.bin_best, beyond))
    lines = sum(bin.lines for bin in beyond)
    if worst > thresholds.NOTHING_RIGHT or lines < thresholds.LIMIT_LINES or not figures.far_only(case):
        return None
    return Ruling(
        Verdict(
            name="long_context_bug",
            kind=limit.kind,
            confidence="low",
            reasons=(
                f"no line of the log commits more than {worst:.2f}, and all of its contexts lie beyond {_named(limit)} "
                f"({lines} lines)",
                *causes.named(found),
            ),
            cites=words.cites(log) + causes.cites(found),
            ruled_out=("hard text: even that gives 1.1 to 1.6, not nothing",),
            missing=("lines of prompts below that length: a dead drafter would look the same beyond it",),
            next=(*causes.advice(found), words.command(case, ["repeat"], [1024, *_beside([limit])])),
        ),
        explains=2.0,
    )


def _lost_windows(case: Case, found: tuple[Finding, ...]) -> Ruling | None:
    """Windows of a log that has no contexts: good ones, and some in which nothing is right."""
    windows = figures.figures(case)
    good = [f for f in windows if figures.commit(f) >= thresholds.DEAD]
    nothing = [
        f
        for f in windows
        if figures.commit(f) <= thresholds.NOTHING_RIGHT and f.steps and f.steps >= thresholds.MIN_STEPS
    ]
    pair = next(((a, b) for b in nothing for a in good if a.run == b.run), None)
    if pair is None:
        return None
    alive, lost = pair
    return Ruling(
        Verdict(
            name="long_context_bug",
            kind="rope_position",
            confidence="low",
            reasons=(
                f"one log states {alive.commit:.2f} tokens per step ({alive.window}) and {lost.commit:.2f} in {lost.steps} "
                f"steps ({lost.window}): even hard text gives 1.1 to 1.6",
                *causes.named(found),
            ),
            cites=words.cites(alive, lost) + causes.cites(found),
            ruled_out=("a dead drafter: other windows are drafted",),
            missing=("the context length of each window; repeated text on both sides of the limit",),
            next=(*causes.advice(found), words.command(case, ["repeat"], _around(case))),
        ),
        explains=figures.commit(alive),
    )


def _around(case: Case) -> list[int]:
    limits = [limit for limit in figures.limits(case) if limit.kind != "sliding_window_kv"]
    return _beside(limits) if limits else [1024, 131072]


def _beside(limits: Iterable[Limit]) -> list[int]:
    """A length on either side of the least of them."""
    tokens = min(limit.tokens for limit in limits)
    return [round(tokens * 0.93), round(tokens * 1.07)]
