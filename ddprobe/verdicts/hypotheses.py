"""The ledger: nine explanations of slow speculative decoding, each supported, refuted or untested by what is known.

Supported means that a verdict says so; refuted, that a measurement excludes it, and the sentence says which. What
nobody measured is untested, whatever is likely.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ddprobe.facts import GpuSample
from ddprobe.model import Cite, Finding, Hypothesis, Outcome, Verdict
from ddprobe.parsing import sizes
from ddprobe.verdicts import gpu_state, launch_or_cpu_bound, said, standing, thresholds, words
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.collected import attention_kernel_bottleneck as collected_attention
from ddprobe.verdicts.collected import far_copy, figures
from ddprobe.verdicts.excluded import by_name
from ddprobe.verdicts.gpu_state import shifted
from ddprobe.verdicts.growth import growth, law, timed, windows
from ddprobe.verdicts.reach import beyond, held_afar, reach

SUPPORTED, REFUTED, UNTESTED = "supported", "refuted", "untested"
SURE = ("medium", "high")
ROTATION = ("DC31", "DC32", "DC33", "DC36", "DC39", "DC46", "DC47", "DC50")
"""Lints on how positions are rotated, at every length."""
Told = tuple[str, str, tuple[Cite, ...]]
"""(status, evidence in a sentence, where it can be checked)"""
_NONE: Told = (UNTESTED, "", ())


class Judged:
    """A case with the verdicts on it."""

    def __init__(self, case: Case, verdicts: Sequence[Verdict]) -> None:
        self.case = case
        self.verdicts = tuple(verdicts)
        self.excluded = by_name(case)
        self.easy = figures.easy(case)

    def verdict(self, name: str, *kinds: str) -> Verdict | None:
        return next((v for v in self.verdicts if v.name == name and (not kinds or v.kind in kinds)), None)

    def by(self, name: str, *kinds: str) -> Told | None:
        """What a verdict of that name, and of one of the kinds, supports."""
        found = self.verdict(name, *kinds)
        return None if found is None else _of(SUPPORTED, found)

    def against(self, *names: str) -> Told | None:
        """What a verdict excludes by saying something else."""
        found = next((v for name in names if (v := self.verdict(name)) is not None), None)
        return _of(REFUTED, found) if found is not None and found.confidence in SURE else None

    def without(self, name: str) -> Told | None:
        """What the controls of a commit probe exclude."""
        return (REFUTED, self.excluded[name], ()) if self.excluded.get(name) else None

    @property
    def holds_near(self) -> Told | None:
        """Repeated text is drafted well, as well at the longest length as at the shortest."""
        line = self.easy
        lookup = figures.looks_up(self.case) or standing.looks_up(self.case)
        if line is None or lookup or standing.drifted(self.case):
            return None
        if len(line.points) < 2 or not (line.works and line.level):
            return None
        ends = figures.ends(line)
        return REFUTED, f"{figures.told(ends, line.ceiling)}: it holds", words.cites(*ends)


def ledger(case: Case, verdicts: Sequence[Verdict]) -> tuple[Hypothesis, ...]:
    """All nine, in the order in which one would ask; none where there is no verdict."""
    if not verdicts:
        return ()
    judged = Judged(case, verdicts)
    found = []
    for name, (text, ask) in HYPOTHESES.items():
        status, evidence, cites = ask(judged)
        found.append(Hypothesis(name=name, text=text, status=status, evidence=evidence, cites=cites))
    return tuple(found)


def _of(status: str, verdict: Verdict) -> Told:
    first = verdict.reasons[0] if verdict.reasons else ""
    return status, f"{words.titled(verdict)}: {first}", verdict.cites[:4]


def _lint(finding: Finding, status: str) -> Told:
    return status, f"{finding.id}: {finding.summary}", finding.cites


# --- the nine ---------------------------------------------------------------------------------------------


def _breaks_with_length(judged: Judged) -> Told:
    supported = judged.by("long_context_bug")
    if supported:
        return supported
    dead = judged.verdict("drafter_dead")
    if dead is not None:
        return _dead_by_length(judged, dead)
    found = reach(judged.case)
    if standing.easy_works(judged.case) and found.works and judged.excluded.get("far_kv"):
        return REFUTED, f"repeated text holds at every length; {judged.excluded['far_kv']}", ()
    held = judged.holds_near
    if held and judged.case.setup is None and (afar := far_copy.holds(judged.case)) is not None:
        told = figures.told([afar], figures.ceiling(judged.case))
        return REFUTED, f"{held[1]}; {told}: from afar as well", (*held[2], *words.cites(afar))
    if held:
        return UNTESTED, f"{held[1]} for text that stays near; a far copy was not measured", held[2]
    return UNTESTED, *said.at_lengths(judged.case, "commit length")


def _dead_by_length(judged: Judged, dead: Verdict) -> Told:
    """A drafter that is dead at a short length is not broken by a greater one; of figures without a length nobody knows."""
    why = dead.reasons[0] if dead.reasons else dead.name
    collected = judged.case.setup is None and figures.easy(judged.case) is None
    if not collected:
        return REFUTED, f"it is so at the shortest length: {why}", dead.cites[:4]
    least = figures.shortest(judged.case)
    if least is None:
        return UNTESTED, f"no context is told: {why}", dead.cites[:4]
    return REFUTED, f"it is so from {sizes.short(least)} tokens on: {why}", dead.cites[:4]


def _positions(judged: Judged) -> Told:
    """A limit on positions shows on text repeated nearby; a subtler fault of YaRN only on what is copied from afar."""
    supported = judged.by("long_context_bug", "rope_position", "draft_length_limit")
    if supported:
        return supported
    dead = judged.verdict("drafter_dead")
    if dead is not None:
        faults = judged.case.found(Outcome.FAIL, *ROTATION)
        told = "it is so at the shortest length, so no limit is why; wrong positions at every length would do the same"
        return _lint(faults[0], SUPPORTED) if faults else (UNTESTED, told, dead.cites[:4])
    near = judged.without("long_context_bug")
    if near is None and judged.verdict("long_context_bug") is None:
        near = judged.holds_near
    if near is None:
        return _NONE
    far = held_afar(judged.case)
    if far is not None:
        told = words.commits([far], standing.ceiling(judged.case))
        return REFUTED, f"{near[1]}; {told}: from afar as well", (*near[2], *words.cites(far))
    return (
        UNTESTED,
        f"{near[1]}. A subtle fault of YaRN would not show there: {_unreached(judged.case)}",
        near[2],
    )


def _unreached(case: Case) -> str:
    """What no copy came from beyond."""
    lengths = beyond(case)
    if lengths is None:
        return "neither the drafter's window nor its original length is known"
    named = words.listed([f"{name} ({tokens} tokens)" for tokens, name in lengths])
    return f"nothing that holds was copied from beyond {named}" if named else "no far copy holds"


def _window(judged: Judged) -> Told:
    supported = judged.by("long_context_bug", "window_ignored", "sliding_window_kv")
    if supported:
        return supported
    failed = judged.case.found(Outcome.FAIL, "DC20", "DC21", "DC22")
    if failed:
        return _lint(failed[0], SUPPORTED)
    passed = judged.case.found(Outcome.PASS, "DC21")
    return _lint(passed[0], REFUTED) if passed else judged.without("far_kv") or _NONE


def _cache(judged: Judged) -> Told:
    # Without a drafter there is no draft KV to lose.
    if judged.verdict("not_speculating") is not None:
        return _NONE
    return judged.by("cache_state_bug") or judged.without("cache_state_bug") or _NONE


def _metric(judged: Judged) -> Told:
    supported = judged.by("metric_inconsistency") or judged.by("simulated_acceptance")
    if supported:
        return supported
    passed = judged.case.found(Outcome.PASS, "RT01")
    return judged.without("metric_inconsistency") or (_lint(passed[0], REFUTED) if passed else _NONE)


def _text(judged: Judged) -> Told:
    supported = judged.by("text_difficulty")
    if supported:
        return supported
    broken = judged.verdict("metric_inconsistency", "commit_path")
    if broken is not None:
        return REFUTED, "hard text lowers what is accepted, never what becomes of it", broken.cites[:4]
    excluded = judged.against("drafter_dead", "long_context_bug", "cache_state_bug")
    if excluded:
        return excluded
    prose = standing.control(judged.case)
    if prose.whole and prose.ladder is not None and all(map(prose.fine, prose.ladder.points)):
        shown = prose.ladder.points
        return REFUTED, f"{words.commits(shown[-1:], prose.ceiling)}: not hard", words.cites(*shown[-1:])
    return _NONE


def _attention(judged: Judged) -> Told:
    supported = judged.by("attention_kernel_bottleneck")
    if supported:
        return supported
    case = judged.case
    points, slower, fitted = timed(case), growth(case), law(case)
    if shifted(fitted) and fitted is not None and fitted.shift is not None:
        moved = (
            f"steps took {fitted.shift.value:.2f} times as long later in the run: its slope does not count"
        )
        return UNTESTED, moved, words.cites(fitted)
    if fitted is not None and fitted.form == "flat" and len(points) >= thresholds.LOG_LENGTHS:
        told = f"the step time is flat over {words.count(len(fitted.contexts), 'length')} up to {words.at(points[-1])[3:]}"
        return REFUTED, f"{told} ({words.count(fitted.points, 'median')})", words.cites(*points[-1:])
    if len(points) >= thresholds.LOG_LENGTHS and slower is None:
        return REFUTED, f"a step takes no longer at {words.at(points[-1])[3:]}", words.cites(*points[-1:])
    if (
        slower is not None
        and slower.roofline is not None
        and slower.roofline.known
        and not slower.beyond_memory
    ):
        return REFUTED, f"{slower.told}; {slower.explained}", words.cites(slower.short, slower.long)
    flat = "" if points else collected_attention.flat(case)
    if flat:
        return REFUTED, flat, ()
    return (UNTESTED, slower.told, ()) if slower else (UNTESTED, *said.at_lengths(case, "throughput"))


def _launches(judged: Judged) -> Told:
    supported = judged.by("launch_or_cpu_bound")
    if supported:
        return supported
    slower = judged.verdict("attention_kernel_bottleneck")
    if slower is not None and slower.confidence in SURE:
        reason = slower.reasons[0] if slower.reasons else ""
        return REFUTED, f"launches take as long at any length, and {reason}", slower.cites[:4]
    near = launch_or_cpu_bound.refuted(judged.case)
    if near is not None:
        found, line = near
        return (
            REFUTED,
            f"the part of a step that does not depend on the context is {words.short(found.a.value)} ms "
            f"({words.count(found.points, 'median')}), and reading the weights takes {words.short(line.weights_ms or 0.0)} ms of that",
            words.cites(found),
        )
    return _NONE


def _gpu(judged: Judged) -> Told:
    supported = judged.by("gpu_state")
    if supported:
        return supported
    held = [sample for sample in judged.case.every(GpuSample) if sample.throttled_by]
    if held:
        reasons = words.listed(sorted({reason for sample in held for reason in sample.throttled_by}))
        return (
            UNTESTED,
            f"clocks are held down by {reasons}; no step time says that it matters",
            words.cites(*held),
        )
    low = judged.case.found(Outcome.WARN, "GP03")
    if low and low[0].cites and judged.case.every(GpuSample):
        return UNTESTED, f"{low[0].id}: {low[0].summary}; no step time says that it matters", low[0].cites
    seen = windows(judged.case)
    hard = sorted({reason for w in seen for reason in w.clock_reasons or () if reason in gpu_state.HELD})
    if hard:
        return (
            UNTESTED,
            f"{words.listed(hard)} held clocks, and no step time moved by it",
            words.cites(*seen[:4]),
        )
    again = judged.case.check("step-time-again")
    if again is not None and again.agrees:
        return REFUTED, again.text, again.source
    return _NONE


HYPOTHESES: dict[str, tuple[str, Callable[[Judged], Told]]] = {
    "drafter_long_context": ("the drafter breaks at long context", _breaks_with_length),
    "positions": ("positions or YaRN are wrong", _positions),
    "window_not_applied": ("the drafter's window is not applied", _window),
    "kv_lost_on_cache_hit": ("draft KV is lost when the prefix cache serves", _cache),
    "metric_wrong": ("the metric is wrong", _metric),
    "text_hard": ("the text is hard", _text),
    "attention_kernel": ("the target's attention kernel is slow", _attention),
    "cpu_or_launch_bound": ("the CPU or kernel launches are waited for", _launches),
    "gpu_state": ("the GPU's clocks or power changed", _gpu),
}
"""Name → what it says, and what decides it."""
