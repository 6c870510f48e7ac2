"""Does a step wait for launches or for the CPU, at any length alike or beyond one?"""

from __future__ import annotations

from ddprobe import statistics
from ddprobe.facts import Estimate, Roofline, StepFit
from ddprobe.model import Cite, Finding, Outcome, Verdict
from ddprobe.parsing import sizes
from ddprobe.verdicts import thresholds, words
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.gpu_state import shifted
from ddprobe.verdicts.growth import law, memory, on_cpu, windows
from ddprobe.verdicts.ruling import Ruling

GRAPHS = ("SA09",)
RESTORE = (
    "capture the graphs that are missing: raise --cuda-graph-max-bs (SGLang), drop --disable-cuda-graph, or drop "
    "--enforce-eager (vLLM); put the old flags back to undo it; then measure step time again"
)
PROFILE = (
    "a short profile: is the GPU idle between kernels? (SGLang: /start_profile; Nsight Systems elsewhere)"
)


def judge(case: Case) -> Ruling | None:
    """The constant part of a step is many times the reading of the weights, and something says that the GPU waits; or a
    step jumps between two lengths.
    """
    found = law(case)
    if found is None or on_cpu(case) or shifted(found):
        return None
    return _constant(case, found) or _jump(case, found)


def _constant(case: Case, found: StepFit) -> Ruling | None:
    line = memory(case)
    if line is None or not line.weights_ms or found.form == "knee":
        return None
    least = found.a.low if found.a.low is not None else found.a.value
    first = found.step_ms[0]
    if least < thresholds.FIXED * line.weights_ms or found.a.value < first / 2:
        return None
    eager = _without_graphs(case)
    idle, cites = _idle(case)
    if not eager and not idle:
        return None
    whose = "" if line.known else ", at the slowest card's bandwidth"
    return Ruling(
        Verdict(
            name="launch_or_cpu_bound",
            kind="graphs_missing" if eager else "waiting",
            confidence="high" if eager and idle and line.known else "medium",
            reasons=(
                f"the part of a step that does not depend on the context is {_told(found.a)} ms ({words.count(found.points, 'median')}"
                f", {words.count(len(found.contexts), 'length')}); reading the weights of {words.count(line.verify_width or 1, 'token')} "
                f"takes {words.short(line.weights_ms)} ms ({line.bandwidth:g} GB/s{whose}): {least / line.weights_ms:.0f} "
                "times as much at the least",
                *(f"{finding.id}: {finding.summary}" for finding in eager),
                *([idle] if idle else []),
            ),
            cites=(*words.cites(found, line), *(cite for each in eager for cite in each.cites), *cites),
            missing=(PROFILE,),
            next=(
                RESTORE,
                "look for work of the host in each step: grammar, detokenizing, logging, tree building",
            ),
        ),
        explains=max(1.0, first / max(first - found.a.value + line.weights_ms, line.weights_ms)),
    )


def _jump(case: Case, found: StepFit) -> Ruling | None:
    """Two regimes: by itself a jump says that another path is taken, not which."""
    knee, after, before = found.knee, found.knee_after, found.knee_before
    if knee is None or after is None or before is None or knee.low is None or knee.low <= 0:
        return None
    below = found.at(after)
    if below <= 0 or knee.value < thresholds.KNEE * below:
        return None
    eager = _without_graphs(case)
    lost = [
        bin
        for log in case.logs
        for bin in log.bins
        if bin.graph_share is not None and bin.graph_share < 0.5 and bin.high > after
    ]
    return Ruling(
        Verdict(
            name="launch_or_cpu_bound",
            kind="beyond_a_length",
            confidence="medium" if lost or eager else "low",
            reasons=(
                f"between {sizes.short(round(after))} and {sizes.short(round(before))} a step takes {_told(knee)} ms more at "
                f"once, on {words.short(below)} ms ({words.count(found.points, 'median')}, "
                f"{words.count(len(found.contexts), 'length')}): a path that is taken beyond a length, no growth with context",
                *(f"{finding.id}: {finding.summary}" for finding in eager),
                *(["the decode log has steps without CUDA graphs beyond that length"] if lost else []),
            ),
            cites=(*words.cites(found), *(cite for each in eager for cite in each.cites)),
            missing=()
            if lost
            else ("the decode log at both lengths: does it say `cuda graph: False` beyond the jump?",),
            next=(
                RESTORE,
                f"step times at lengths between {round(after)} and {round(before)}: where exactly is it?",
            ),
        ),
        explains=1 + knee.value / below,
    )


def _without_graphs(case: Case) -> tuple[Finding, ...]:
    return (*case.found(Outcome.FAIL, *GRAPHS), *case.found(Outcome.WARN, *GRAPHS))


def _idle(case: Case) -> tuple[str, tuple[Cite, ...]]:
    """In words, that the cards stood still for part of the time while steps ran; empty where they did not, or nobody looked."""
    told = [window for window in windows(case) if window.utilization is not None]
    # A card on which no kernel ever ran is not the server's; where none ran on any, the steps were made elsewhere.
    used = {window.index for window in told if window.utilization_high or window.utilization}
    seen = [window for window in told if window.index in used]
    middle = statistics.median([window.utilization or 0.0 for window in seen])
    if middle is None or middle >= thresholds.IDLE_GPU:
        return "", ()
    samples = sum(window.samples for window in seen)
    cards = len({window.index for window in seen})
    return (
        f"no kernel ran for {100 - middle:.0f}% of the time while steps were measured (median of {samples} samples of "
        f"{words.count(cards, 'GPU')})",
        words.cites(*seen[:2]),
    )


def _told(found: Estimate) -> str:
    ends = (
        f" (95 % {words.short(found.low)}–{words.short(found.high)})"
        if found.low is not None and found.high is not None
        else ""
    )
    return f"{words.short(found.value)}{ends}"


def refuted(case: Case) -> tuple[StepFit, Roofline] | None:
    """A law whose constant part is about that of reading the weights: nothing else is waited for. None where it is not so,
    or not known."""
    found, line = law(case), memory(case)
    if found is None or line is None or not line.weights_ms or not line.known or found.form == "knee":
        return None
    if len(found.contexts) < 3 or shifted(found):
        return None
    most = found.a.high
    return (found, line) if most is not None and 0 < most < thresholds.FIXED * line.weights_ms else None
