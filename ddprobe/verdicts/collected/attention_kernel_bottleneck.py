"""Does a step's time grow with context while the commit holds, by points and logs of others?"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ddprobe import steplaw
from ddprobe.facts import CommitPoint, DecodeBin, DecodeSeries, PlainSpeed, StepFit
from ddprobe.model import Fact, Outcome, Verdict
from ddprobe.parsing import sizes
from ddprobe.verdicts import bandwidth, growth, levers, thresholds, words
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.collected import figures
from ddprobe.verdicts.collected.figures import mean
from ddprobe.verdicts.ladder import EASY, arm_of
from ddprobe.verdicts.ruling import Ruling

LINTS = ("SA01",)
MIXED = "some"


@dataclass(frozen=True, slots=True)
class Slope:
    """Step times over context."""

    fact: tuple[Fact, ...]
    pairs: tuple[tuple[float, float], ...]
    """(context in tokens, milliseconds)"""
    commits: tuple[float, ...]
    origin: str

    @property
    def ratio(self) -> float:
        return self.pairs[-1][1] / self.pairs[0][1]

    @property
    def per_token(self) -> float:
        (x0, y0), (x1, y1) = self.pairs[0], self.pairs[-1]
        return (y1 - y0) / (x1 - x0)

    @property
    def commit_holds(self) -> bool:
        return self.commits[-1] >= thresholds.COLLAPSE * self.commits[0]

    @property
    def rises(self) -> bool:
        """No length is faster than the one before it by more than a drift."""
        times = [time for _, time in self.pairs]
        return all(later >= (1 - thresholds.DRIFT) * before for before, later in itertools.pairwise(times))

    @property
    def told(self) -> str:
        (x0, y0), (x1, y1) = self.pairs[0], self.pairs[-1]
        return (
            f"a step takes {words.short(y0)} ms at {sizes.short(round(x0))} and {words.short(y1)} ms at "
            f"{sizes.short(round(x1))}, {self.ratio:.1f} times as long ({self.origin}, {len(self.pairs)} lengths)"
        )


def judge(case: Case) -> Ruling | None:
    """The step time at the longest length is several times that at the shortest, beyond what reading the KV cache takes."""
    slope = _steepest(case)
    if slope is None or slope.ratio < thresholds.SLOWER or not slope.rises:
        return None
    roofline = growth.roofline(case)
    if roofline is not None and slope.per_token < thresholds.ROOFLINE * roofline.ms_per_token:
        return None
    lints = [*case.found(Outcome.FAIL, *LINTS), *case.found(Outcome.WARN, *LINTS)]
    reasons = [
        slope.told,
        f"meanwhile the commit stays: {slope.commits[0]:.2f} and {slope.commits[-1]:.2f}"
        if slope.commit_holds
        else f"the commit falls too ({slope.commits[0]:.2f} to {slope.commits[-1]:.2f}): a loss of its own beside this one",
    ]
    fitted = _law(slope)
    reached = bandwidth.reached(case, fitted) if fitted is not None else None
    if roofline is not None:
        reasons.append(
            f"reading the target's KV cache explains {roofline.ms_per_token / slope.per_token:.1%} of that growth "
            f"({roofline.card})"
        )
    if reached is not None:
        reasons += [bandwidth.told(*reached), *filter(None, [bandwidth.slope(*reached)])]
    reasons += _remarks(fitted)
    reasons += [f"{finding.id}: {finding.summary}" for finding in lints]
    reasons += bandwidth.blocks(case, tuple(lints))
    missing = (
        [] if len(slope.pairs) >= 5 else ["step times at five lengths: fewer do not tell a line from a curve"]
    )
    if roofline is None:
        missing.append("the target's config.json: it tells how fast a step's time may grow with context")
    if not case.every(PlainSpeed):
        missing.append("the same lengths with speculation off: plain decoding may take another kernel")
    changes = levers.attention(case) if lints or roofline is not None else ()
    solid = slope.commit_holds and len(slope.pairs) >= thresholds.LOG_LENGTHS
    return Ruling(
        Verdict(
            name="attention_kernel_bottleneck",
            kind="serial_prefix" if lints else "",
            confidence="high" if solid and (lints or roofline is not None) else "medium" if solid else "low",
            reasons=tuple(reasons),
            cites=words.cites(*slope.fact) + tuple(cite for finding in lints for cite in finding.cites),
            ruled_out=("hard text and a broken drafter: what a step commits does not change",)
            if slope.commit_holds and slope.commits[0] > thresholds.NOTHING_RIGHT
            else (),
            missing=tuple(missing),
            next=(
                *changes,
                *dict.fromkeys(finding.advice for finding in lints if finding.advice),
                "name the kernel: a short profile at the longest length, or another --attention-backend",
                *([] if changes else ["switch speculation off beyond the length where it no longer pays"]),
            ),
        ),
        explains=slope.ratio,
    )


def _law(slope: Slope) -> StepFit | None:
    """The law of points; a log's ranges of context are too wide for one."""
    return steplaw.fit([fact for fact in slope.fact if isinstance(fact, CommitPoint)])


def _remarks(fitted: StepFit | None) -> list[str]:
    """What speaks against taking the points for one law; how few they are is said beside."""
    aside = ("few_contexts", "unclear")
    return [text for kind, text in fitted.remarks if kind not in aside] if fitted is not None else []


def told(case: Case) -> str:
    """How the step time grows, in words, where it grows at all; empty else."""
    slope = _steepest(case)
    return slope.told if slope is not None and slope.ratio >= thresholds.GROWTH else ""


def flat(case: Case) -> str:
    """In words, that the step time does not grow over three lengths or more; empty where it does, or is not known."""
    slope = _steepest(case)
    if slope is None or len(slope.pairs) < thresholds.LOG_LENGTHS or slope.ratio >= thresholds.GROWTH:
        return ""
    return slope.told


def _steepest(case: Case) -> Slope | None:
    """Of repeated text where its step times are known, else of any text, else of a log."""
    lines = [line for line in figures.lines(case) if len(_timed(line.points)) > 1]
    if lines:
        best = min(lines, key=lambda line: (arm_of(line.label) not in EASY, -len(line.points), line.label))
        timed = _timed(best.points)
        return Slope(
            timed,
            tuple((float(p.context_tokens), figures.step_time(p)) for p in timed),
            tuple(mean(p) for p in timed),
            best.label,
        )
    found = [slope for log in case.logs for slope in _of_log(log)]
    return max(found, key=lambda slope: slope.ratio, default=None)


def _timed(points: Sequence[CommitPoint]) -> tuple[CommitPoint, ...]:
    return tuple(point for point in points if point.step_ms and point.context_tokens)


def _of_log(log: DecodeSeries) -> Iterator[Slope]:
    """From CUDA graphs and without apart: where a length loses its graph, a step takes longer for that reason."""
    every = [(bin, ms) for bin in figures.one_running(log) if (ms := figures.step_ms(bin)) is not None]
    for state in dict.fromkeys(_graphs(bin) for bin, _ in every):
        timed = [(bin, ms) for bin, ms in every if _graphs(bin) == state]
        if len(timed) >= thresholds.LOG_LENGTHS and state != MIXED:
            yield Slope(
                (log,),
                tuple((figures.middle(bin), ms) for bin, ms in timed),
                tuple(figures.bin_mean(bin) for bin, _ in timed),
                f"decode log, {timed[0][0].running} running",
            )


def _graphs(bin: DecodeBin) -> str:
    """Whether its steps ran from CUDA graphs: hardly all, hardly any, some; empty where nobody says."""
    if bin.graph_share is None:
        return ""
    return (
        "all"
        if bin.graph_share >= thresholds.LINEAR
        else "none"
        if bin.graph_share <= 1 - thresholds.LINEAR
        else MIXED
    )
