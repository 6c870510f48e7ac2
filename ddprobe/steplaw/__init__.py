"""From step times by context to their law: flat, a line, a curve, or a line that jumps, and what qualifies it.

Medians are weighted by their own errors where these are known, and a scatter beyond those widens every interval. A clock
that fell on the way multiplies the steps measured later: it is fitted beside the law, by the GPU's clock where one was
sampled, else by the order of measuring.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ddprobe import fitting
from ddprobe.facts import CommitPoint, CommitRequest, GpuWindow, Limit, StepFit
from ddprobe.model import Fact
from ddprobe.steplaw import laws, told
from ddprobe.steplaw.observed import LADDERS, observed, one_text


def of_facts(facts: Iterable[Fact], purpose: str = "step-time") -> StepFit | None:
    """The law of one purpose's points among these facts, with all that qualifies them there. None for fewer than two lengths."""
    every = tuple(facts)
    pair = next((pair for pair in LADDERS if pair[0] == purpose), (purpose, ""))
    points = [f for f in every if isinstance(f, CommitPoint) and f.purpose in pair]
    return fit(
        points,
        requests=[f for f in every if isinstance(f, CommitRequest) and f.purpose in pair],
        windows=[f for f in every if isinstance(f, GpuWindow) and f.purpose in pair],
    )


def fit(
    points: Sequence[CommitPoint],
    *,
    requests: Sequence[CommitRequest] = (),
    windows: Sequence[GpuWindow] = (),
    limits: Sequence[Limit] = (),
) -> StepFit | None:
    """The law of the points' step times: of one server and one text, whatever else is among them.

    `requests`, in the order in which they were sent, tell in which order the lengths were measured; `windows` tell the
    clocks. `limits` name a length at which a knee would be explained. None for fewer than two lengths with a step time.
    """
    timed = one_text(points)
    seen = observed(timed, requests, windows)
    places = sorted({one.context for one in seen})
    if len(places) < 2:
        return None
    chosen, used, unplaced = laws.chosen(seen)
    if chosen is None:
        return None
    flat = chosen.form == "linear" and laws.level(chosen, places)
    law = replace(chosen, form="flat") if flat else chosen
    first = {one.context: one.ms for one in reversed(seen)}
    square = laws.square(used, chosen)
    said = told.remarks(law, used, places, limits)
    origin = timed[0]
    return StepFit(
        arm=origin.arm,
        base=origin.base,
        purpose=origin.purpose,
        form=law.form,
        a=told.estimate(law.fit, 0),
        b=told.estimate(law.fit, 1),
        c=told.estimate(law.fit, 2) if law.form == "quadratic" else None,
        curvature=told.estimate(square, 2) if square is not None else None,
        curvature_p=square.p(2) if square is not None else None,
        knee=told.estimate(law.fit, 2) if law.jump else None,
        knee_after=law.jump[0] if law.jump else None,
        knee_before=law.jump[1] if law.jump else None,
        shift=told.shift(law, used, unplaced),
        runs_p=fitting.runs(told.in_order(law, used)),
        r_squared=told.r_squared(law.fit, [one.ms for one in used]),
        points=len(used),
        steps=sum(one.steps for one in used),
        contexts=tuple(places),
        step_ms=tuple(first[place] for place in places),
        exponents=tuple(told.exponents(places, first)),
        weighted=law.fit.errors_known,
        remarks=tuple(said + ([unplaced.remark] if unplaced is not None else [])),
        source=tuple(dict.fromkeys(cite for point in timed for cite in point.source)),
    )
