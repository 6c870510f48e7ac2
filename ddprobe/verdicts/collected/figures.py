"""What evidence collected elsewhere holds: points without intervals, by text, and what logs state beside them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ddprobe.evidence import pooled
from ddprobe.evidence.claims import STATEMENT
from ddprobe.facts import Acceptance, Claim, CommitPoint, CommitRequest, DecodeBin, DecodeSeries, Limit
from ddprobe.lints.served import Served, put_together
from ddprobe.parsing import acceptance, sizes
from ddprobe.verdicts import thresholds, words
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.ladder import EASY, WIDE, arm_of

NO_CONTROL = ("random",)
"""Text that nothing can predict: no control of a drafter."""
LOOKS_UP = ("NGRAM", "SUFFIX", "LOOKUP", "PROMPT_LOOKUP")


@dataclass(frozen=True, slots=True)
class Line:
    """One text at several lengths, the weakest of the points at each."""

    label: str
    points: tuple[CommitPoint, ...]
    ceiling: int | None

    @property
    def short(self) -> CommitPoint:
        return self.points[0]

    @property
    def long(self) -> CommitPoint:
        return self.points[-1]

    @property
    def worst(self) -> CommitPoint:
        return min(self.points, key=lambda p: (mean(p), -p.context_tokens))

    def share(self, point: CommitPoint) -> float | None:
        """The share of the drafts that were right; None where nobody knows how many were made."""
        most = thresholds.ceiling_of(point, self.ceiling)
        return None if most is None or most < 2 else (mean(point) - 1) / (most - 1)

    @property
    def level(self) -> bool:
        """No longer length keeps less than most of what the shortest gives."""
        first = mean(self.short) - 1
        return all(mean(point) - 1 >= thresholds.LEVEL * first for point in self.points)

    @property
    def works(self) -> bool:
        """Repeated text is drafted well at every length."""
        shares = [self.share(point) for point in self.points]
        return all(share is not None and share >= thresholds.ALIVE_SHARE for share in shares)


def mean(point: CommitPoint) -> float:
    assert point.commit_mean is not None
    return point.commit_mean


def step_time(point: CommitPoint) -> float:
    """Milliseconds of a step of a point that tells them."""
    assert point.step_ms is not None
    return point.step_ms


def ceiling(case: Case) -> int | None:
    """Most tokens that a step can commit: by the points, else the server's arguments, else its logs."""
    told = [point.ceiling for point in case.every(CommitPoint) if point.ceiling is not None]
    if told:
        return max(told)
    served = server(case)
    if served is not None and (
        most := served.ceiling() or (served.block_size() if served.engine == "sglang" else None)
    ):
        return most
    drafts = [log.draft_tokens for log in case.logs if log.draft_tokens]
    drafts += [figure.draft_tokens for figure in case.stated if figure.draft_tokens]
    return max(drafts) + 1 if drafts else None


def server(case: Case) -> Served | None:
    """The server that the evidence is of; the one that speculates, where there are several."""
    every = put_together(case.facts)
    return next((served for served in every if served.algorithm), every[0] if every else None)


def statements(case: Case) -> tuple[Claim, ...]:
    """What people say: a reason to look, and no evidence."""
    return tuple(claim for claim in case.claims if claim.origin == STATEMENT)


def looks_up(case: Case) -> bool:
    """The drafter looks repeated text up: easy text is trivial to it."""
    served = server(case)
    return served is not None and any(word in served.algorithm for word in LOOKS_UP)


def unknown_models(case: Case) -> list[str]:
    """What is not known of the models that draft, by what drafts at all."""
    served = server(case)
    if served is not None and (served.drafter is not None or looks_up(case)):
        return []
    if served is not None and served.drafts_with_own_layers:
        ours = [] if served.target is not None else ["the target's config.json"]
        return [*ours, "whether the checkpoint is a fine-tune that left its next-token layers as they were"]
    return [
        "the drafter's config.json",
        "whether the target is the one that the drafter was trained on, or a fine-tune of it",
    ]


# --- points -----------------------------------------------------------------------------------------------


def cached(point: CommitPoint) -> bool:
    """Whether its prompt came from the prefix cache."""
    tokens = point.prompt_tokens or point.context_tokens
    return bool(point.cached_tokens and tokens and point.cached_tokens > thresholds.FROM_CACHE * tokens)


def looping(point: CommitPoint) -> bool:
    """Its output goes in a circle although the text gives no reason to."""
    return bool(point.loops) and not easy_text(point)


def easy_text(point: CommitPoint) -> bool:
    return arm_of(point.arm) in (*EASY, WIDE)


def countable(case: Case) -> tuple[CommitPoint, ...]:
    """Points whose commit says something of the drafter: measured, not in a circle, and not from a cache beside a cold one."""
    every = [p for p in case.every(CommitPoint) if p.purpose in ("point", "cold") and _measured(p)]
    cold = {(point.arm, point.context_tokens) for point in every if not cached(point)}
    return tuple(
        point
        for point in every
        if not looping(point) and not (cached(point) and (point.arm, point.context_tokens) in cold)
    )


def _measured(point: CommitPoint) -> bool:
    copied = point.copied is None or point.copied >= thresholds.COPIES or not easy_text(point)
    return possible(point.commit_mean, point.ceiling) and point.drafted_steps != 0 and copied


def possible(commit: float | None, most: int | None) -> bool:
    """Whether a step can have committed so many; the prefill's token may be counted in it."""
    if acceptance.length(commit) is None:
        return False
    return most is None or (commit or 0.0) <= most * (1 + thresholds.CLAIM)


def lines(case: Case) -> tuple[Line, ...]:
    """Every text with its countable points by length; those without a length stand first."""
    found: dict[str, dict[int, list[CommitPoint]]] = {}
    for point in countable(case):
        found.setdefault(point.arm, {}).setdefault(point.context_tokens, []).append(point)
    most = ceiling(case)
    return tuple(
        Line(label, tuple(min(at[length], key=lambda p: (mean(p), p.steps)) for length in sorted(at)), most)
        for label, at in sorted(found.items())
    )


def easy(case: Case) -> Line | None:
    """Repeated text at the most lengths."""
    found = [line for line in lines(case) if arm_of(line.label) in EASY]
    return max(found, key=lambda line: (len(line.points), line.long.context_tokens)) if found else None


def ordinary(case: Case) -> tuple[Line, ...]:
    """Texts that are not repeated, random ones aside."""
    aside = (*EASY, WIDE, *NO_CONTROL, "far-copy")
    return tuple(line for line in lines(case) if arm_of(line.label) not in aside)


# --- logs -------------------------------------------------------------------------------------------------


def figures(case: Case) -> tuple[Acceptance, ...]:
    """What logs, counters, tools and requests state of the commit, as far as it can be."""
    most = ceiling(case) or 0
    # Points are made of requests.
    told = () if case.every(CommitPoint) else pooled.together(case.every(CommitRequest))
    counted = [replace(figure, origin="the requests' own count") for figure in told]
    return tuple(
        figure
        for figure in (*case.stated, *counted)
        if possible(figure.commit, max(most, (figure.draft_tokens or 0) + 1) if most else None)
    )


def speaking(log: DecodeSeries) -> tuple[DecodeBin, ...]:
    """Ranges that state a commit."""
    return tuple(bin for bin in log.bins if bin.commit_mean is not None)


def commit(figure: Acceptance) -> float:
    """Of a figure that states one."""
    assert figure.commit is not None
    return figure.commit


def bin_mean(bin: DecodeBin) -> float:
    """Of a range that states a commit."""
    assert bin.commit_mean is not None
    return bin.commit_mean


def bin_best(bin: DecodeBin) -> float:
    """Its highest line; its mean where lines are not told apart."""
    return bin_mean(bin) if bin.commit_high is None else bin.commit_high


def log_mean(log: DecodeSeries) -> float | None:
    """The commit of a log as a whole: the mean of its lines."""
    bins = speaking(log)
    lines = sum(bin.lines for bin in bins)
    return sum(bin_mean(bin) * bin.lines for bin in bins) / lines if lines else None


def log_best(log: DecodeSeries) -> float:
    """The highest line of a log that states a commit."""
    return max(map(bin_best, speaking(log)))


def gets_nothing(log: DecodeSeries) -> bool:
    """Next to no draft in it is right, on whatever text it served."""
    whole = log_mean(log)
    if whole is None:
        return False
    return whole <= thresholds.NOTHING_RIGHT and log_best(log) <= thresholds.NOTHING_AT_BEST


def one_running(log: DecodeSeries) -> tuple[DecodeBin, ...]:
    """The ranges of the number of running requests that has the most, by context."""
    by_running: dict[int, list[DecodeBin]] = {}
    for bin in speaking(log):
        by_running.setdefault(bin.running, []).append(bin)
    if not by_running:
        return ()
    best = max(by_running, key=lambda running: (len(by_running[running]), -running))
    return tuple(sorted(by_running[best], key=lambda bin: bin.low))


def shortest(case: Case) -> int | None:
    """Tokens of context that no log line which states a commit has less than; None where none tells a context."""
    return min((bin.low for log in case.logs for bin in speaking(log)), default=None)


def far_only(case: Case) -> bool:
    """Whether logs tell contexts, and none short enough to show a drafter apart from what a length does to it."""
    least = shortest(case)
    return least is not None and least >= thresholds.NEAR_ENOUGH


def step_ms(bin: DecodeBin) -> float | None:
    """Milliseconds of a step in a range that states a commit, from commit and throughput per request."""
    return bin_mean(bin) / bin.tok_s * 1e3 if bin.tok_s else None


def middle(bin: DecodeBin) -> float:
    """The tokens of context that its lines have on average; the middle of its range where nobody says."""
    return bin.tokens if bin.tokens is not None else (bin.low + bin.high) / 2


# --- limits -----------------------------------------------------------------------------------------------


def limits(case: Case) -> tuple[Limit, ...]:
    """Lengths at which something changes by configuration."""
    served = server(case)
    if served is None:
        return ()
    found: list[Limit] = []
    drafter, target = served.drafter, served.target
    if drafter is not None:
        window, position = drafter.sliding_window, "rope_position"
        if window and drafter.use_sliding_window is not False:
            found.append(Limit(window, "the drafter's sliding_window", "sliding_window_kv"))
        named = (
            (drafter.rope.original_max_position, "the drafter's original_max_position_embeddings"),
            (drafter.max_position_embeddings, "the drafter's max_position_embeddings"),
            (drafter.context_length, "the drafter's own length"),
        )
        found += [Limit(tokens, name, position) for tokens, name in named if tokens]
    if target is not None and drafter is None and target.max_position_embeddings:
        # A drafter inside the checkpoint has the target's own length, whatever scales the target.
        found.append(
            Limit(
                target.max_position_embeddings, "max_position_embeddings of the checkpoint", "rope_position"
            )
        )
    for name in ("draft_context_length", "speculative_draft_max_model_len", "draft_max_model_len"):
        if tokens := served.number(name):
            found.append(Limit(tokens, f"the server's {name}", "draft_length_limit"))
    if tokens := served.drafter_length:
        found.append(Limit(tokens, "max_model_len of the speculative config", "draft_length_limit"))
    if tokens := served.number("speculative_draft_window_size"):
        found.append(Limit(tokens, "--speculative-draft-window-size", "sliding_window_kv"))
    return tuple({limit.tokens: limit for limit in reversed(found)}.values())


# --- words ------------------------------------------------------------------------------------------------


def number(point: CommitPoint, most: int | None) -> str:
    """`1.40 of 16 (183 steps)`; `1.40 (nobody says how many steps)`."""
    ceiling = thresholds.ceiling_of(point, most)
    sample = f"{point.steps} steps" if point.steps else "nobody says of how many steps"
    return f"{mean(point):.2f}" + (f" of {ceiling}" if ceiling else "") + f" ({sample})"


def told(points: Sequence[CommitPoint], most: int | None) -> str:
    """`repeat commits 2.90 of 3 (88 steps) at 1k and 1.00 of 3 (256 steps) at 263000`."""
    texts = words.listed([number(point, most) + place(point) for point in points])
    return f"{points[0].arm} commits {texts}"  # equivalent: all are of one text


def place(point: CommitPoint) -> str:
    return f" at {sizes.short(point.context_tokens)}" if point.context_tokens else ""


def ends(line: Line) -> tuple[CommitPoint, ...]:
    return tuple(dict.fromkeys((line.short, line.long)))


def few(points: Iterable[CommitPoint]) -> tuple[str, ...]:
    """What is missing of the samples: their sizes, or enough steps."""
    every = list(points)
    if any(not point.steps for point in every):
        return ("how many verify steps each mean is of",)
    least = min((point.steps for point in every), default=thresholds.MIN_STEPS)
    if least < thresholds.MIN_STEPS:
        return (f"{thresholds.MIN_STEPS} verify steps a point: the smallest has {least}",)
    return ()


def sure(points: Iterable[CommitPoint]) -> str:
    """The confidence that samples allow. A saturated mean of few steps is as good as it can be, and counts."""
    every = list(points)
    if any(not point.steps for point in every):
        return "medium"
    if any(point.steps < thresholds.FEW for point in every):
        return "low"
    return "high" if all(point.steps >= thresholds.MIN_TIMED_STEPS // 2 for point in every) else "medium"
