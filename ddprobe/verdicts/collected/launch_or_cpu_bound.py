"""Do steps without CUDA graphs take much longer than those with them, by the decode log?"""

from __future__ import annotations

from dataclasses import dataclass

from ddprobe.facts import DecodeBin, DecodeSeries
from ddprobe.model import Verdict
from ddprobe.parsing import sizes
from ddprobe.verdicts import thresholds, words
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.collected import figures
from ddprobe.verdicts.ruling import Ruling

ALIKE = 2.0
"""Contexts within this factor are alike."""
LENGTHS = 2
"""Ranges of context with graphs from which growth is read."""


@dataclass(frozen=True, slots=True)
class Steps:
    """A range of a log that tells how long a step takes, and how many ran from graphs."""

    log: DecodeSeries
    bin: DecodeBin
    ms: float
    graphs: float

    @property
    def told(self) -> str:
        return f"{words.short(self.ms)} ms ({self.bin.running} running, {self.bin.lines} lines)"


def judge(case: Case) -> Ruling | None:
    """A step without a graph takes much longer: at like contexts, or beyond a length by far more than steps from graphs grow."""
    return _alike(case) or _beyond(case)


def _alike(case: Case) -> Ruling | None:
    found = [pair for log in case.logs for pair in _pairs(log)]
    if not found:
        return None
    graphed, plain = max(found, key=lambda pair: _ratio(*pair))
    return Ruling(
        Verdict(
            name="launch_or_cpu_bound",
            kind="graphs_missing",
            confidence="medium",
            reasons=(
                f"with CUDA graphs a step takes {graphed.told}, without them {plain.told}, at like contexts",
            ),
            cites=words.cites(graphed.log),
            missing=("a short profile: is the GPU idle between kernels?",),
            next=(
                "raise --cuda-graph-max-bs (SGLang) or drop --enforce-eager (vLLM) so that these batches run from graphs",
            ),
        ),
        explains=_ratio(graphed, plain),
    )


def _beyond(case: Case) -> Ruling | None:
    """Graphs are lost beyond a length, where a step takes much longer than those before let one expect."""
    found = [jump for log in case.logs if (jump := _jump(log)) is not None]
    if not found:
        return None
    last, lost, expected = max(found, key=lambda jump: jump[1].ms / jump[2])
    low, high = figures.middle(last.bin), figures.middle(lost.bin)
    return Ruling(
        Verdict(
            name="launch_or_cpu_bound",
            kind="beyond_a_length",
            confidence="medium",
            reasons=(
                f"between {sizes.short(round(low))} and {sizes.short(round(high))} CUDA graphs are lost, and a step takes "
                f"{lost.told} after {last.told}: from graphs it grew as if to {words.short(expected)} ms there",
            ),
            cites=words.cites(lost.log),
            missing=("the same length with graphs: attention may have a share in it",),
            next=(
                "find why graphs end there (captured lengths and batch sizes, memory left for capturing), and raise that limit",
                "ddprobe step-time at lengths between: where exactly is the jump?",
            ),
        ),
        explains=lost.ms / expected,
    )


def _jump(log: DecodeSeries) -> tuple[Steps, Steps, float] | None:
    """The last steps from graphs, the first without, and what the former's growth lets one expect of the latter, in ms."""
    steps = [each for each in _told(log) if each.bin in figures.one_running(log)]
    graphed = [each for each in steps if each.graphs >= thresholds.LINEAR]
    plain = [each for each in steps if 1 - each.graphs >= thresholds.LINEAR]
    if len(graphed) < LENGTHS or not plain:
        return None
    first, last = graphed[0], graphed[-1]
    lost = plain[0]
    if lost.bin.low <= last.bin.low:
        return None
    begin, end, there = map(figures.middle, (first.bin, last.bin, lost.bin))
    growth = max(0.0, (last.ms - first.ms) / (end - begin))
    expected = last.ms + growth * (there - end)
    return (last, lost, expected) if lost.ms >= thresholds.UNGRAPHED * expected else None


def _told(log: DecodeSeries) -> list[Steps]:
    """Ranges with enough lines, in the order of their contexts."""
    return [
        Steps(log, bin, ms, bin.graph_share)
        for bin in sorted(figures.speaking(log), key=lambda bin: bin.low)
        if bin.graph_share is not None
        and bin.lines >= thresholds.LOG_LINES
        and (ms := figures.step_ms(bin)) is not None
    ]


def _pairs(log: DecodeSeries) -> list[tuple[Steps, Steps]]:
    """Steps from graphs and steps without, alike in all else."""
    told = _told(log)
    return [
        (graphed, plain)
        for graphed in told
        for plain in told
        if graphed.graphs >= thresholds.LINEAR
        and 1 - plain.graphs >= thresholds.LINEAR
        and figures.middle(plain.bin) <= ALIKE * figures.middle(graphed.bin)
        and figures.middle(graphed.bin) <= ALIKE * figures.middle(plain.bin)
        and plain.bin.running <= ALIKE * graphed.bin.running
        and _ratio(graphed, plain) >= thresholds.UNGRAPHED
    ]


def _ratio(graphed: Steps, plain: Steps) -> float:
    return plain.ms / graphed.ms
