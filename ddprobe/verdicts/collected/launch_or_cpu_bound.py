"""Do steps without CUDA graphs take much longer than those with them, by the decode log?"""

from __future__ import annotations

from ddprobe.facts import DecodeBin, DecodeSeries
from ddprobe.model import Verdict
from ddprobe.verdicts import thresholds, words
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.collected import figures
from ddprobe.verdicts.ruling import Ruling

ALIKE = 2.0
"""Contexts within this factor are alike."""


def judge(case: Case) -> Ruling | None:
    """At like contexts, and at twice the requests at most, a step without a graph takes much longer."""
    found = [(log, pair) for log in case.logs if (pair := _pair(log)) is not None]
    if not found:
        return None
    log, (graphed, plain) = max(found, key=lambda each: _ratio(*each[1]))
    return Ruling(
        Verdict(
            name="launch_or_cpu_bound",
            kind="graphs_missing",
            confidence="medium",
            reasons=(
                f"with CUDA graphs a step takes {words.short(figures.step_ms(graphed) or 0)} ms ({graphed.running} running, "
                f"{graphed.lines} lines), without them {words.short(figures.step_ms(plain) or 0)} ms ({plain.running} running, "
                f"{plain.lines} lines), at like contexts",
            ),
            cites=words.cites(log),
            missing=("a short profile: is the GPU idle between kernels?",),
            next=(
                "raise --cuda-graph-max-bs (SGLang) or drop --enforce-eager (vLLM) so that these batches run from graphs",
            ),
        ),
        explains=_ratio(graphed, plain),
    )


def _pair(log: DecodeSeries) -> tuple[DecodeBin, DecodeBin] | None:
    bins = [bin for bin in figures.speaking(log) if bin.graph_share is not None and figures.step_ms(bin)]
    pairs = [
        (graphed, plain)
        for graphed in bins
        for plain in bins
        if (graphed.graph_share or 0) >= thresholds.LINEAR
        and (plain.graph_share or 0) <= 1 - thresholds.LINEAR
        and min(graphed.lines, plain.lines) >= thresholds.LOG_LINES
        and figures.middle(plain) <= ALIKE * figures.middle(graphed)
        and figures.middle(graphed) <= ALIKE * figures.middle(plain)
        and plain.running <= ALIKE * graphed.running
        and _ratio(graphed, plain) >= thresholds.UNGRAPHED
    ]
    return max(pairs, key=lambda pair: _ratio(*pair), default=None)


def _ratio(graphed: DecodeBin, plain: DecodeBin) -> float:
    return (figures.step_ms(plain) or 0.0) / (figures.step_ms(graphed) or 1.0)
