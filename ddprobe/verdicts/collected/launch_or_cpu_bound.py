"""Do steps without CUDA graphs take much longer than those with them, by the decode log?"""

from __future__ import annotations

from dataclasses import dataclass

from ddprobe.facts import DecodeBin, DecodeSeries
from ddprobe.model import Verdict
from ddprobe.verdicts import thresholds, words
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.collected import figures
from ddprobe.verdicts.ruling import Ruling

ALIKE = 2.0
"""Contexts within this factor are alike."""


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
    """At like contexts, and at twice the requests at most, a step without a graph takes much longer."""
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


def _pairs(log: DecodeSeries) -> list[tuple[Steps, Steps]]:
    """Steps from graphs and steps without, alike in all else."""
    told = [
        Steps(log, bin, ms, bin.graph_share)
        for bin in figures.speaking(log)
        if bin.graph_share is not None and (ms := figures.step_ms(bin)) is not None
    ]
    return [
        (graphed, plain)
        for graphed in told
        for plain in told
        if graphed.graphs >= thresholds.LINEAR
        and 1 - plain.graphs >= thresholds.LINEAR
        and min(graphed.bin.lines, plain.bin.lines) >= thresholds.LOG_LINES
        and figures.middle(plain.bin) <= ALIKE * figures.middle(graphed.bin)
        and figures.middle(graphed.bin) <= ALIKE * figures.middle(plain.bin)
        and plain.bin.running <= ALIKE * graphed.bin.running
        and _ratio(graphed, plain) >= thresholds.UNGRAPHED
    ]


def _ratio(graphed: Steps, plain: Steps) -> float:
    return plain.ms / graphed.ms
