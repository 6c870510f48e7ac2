"""The measurement of step times: the commit probe's, with one easy text, many lengths, and some of them twice.

Where a second server without speculation is named, the same ladder is sent to it afterwards: what a token costs there
is what a step's commit must pay for.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from ddprobe import steplaw
from ddprobe.arms.base import Ids
from ddprobe.errors import Unanswered
from ddprobe.facts import (
    CommitCheck,
    CommitPoint,
    GpuWindow,
    Limit,
    PlannedPoint,
    ServerProcess,
    SpeculationGain,
    StepFit,
)
from ddprobe.model import Asked, Cite, Conversation, Evidence, Fact, Finding, Gap, Host
from ddprobe.probes.draft import _commit_checks as checks
from ddprobe.probes.draft import _commit_plan as plan
from ddprobe.probes.draft import _gain, _points
from ddprobe.probes.draft._commit_ladder import AGAIN, WARM_UP_TOKENS
from ddprobe.probes.draft._commit_run import Measurement
from ddprobe.probes.draft._commit_send import Stopped
from ddprobe.probes.draft._commit_target import NoTarget, Target, ask, with_settings
from ddprobe.probes.draft.commit import DraftCommit
from ddprobe.probes.gpu import _sampling

if TYPE_CHECKING:
    from ddprobe.probes.draft.step_time import DraftStepTime

ARM = "repeat"
"""Any drafter foresees it, so that the commit is about the same at every length and the time stands alone."""
PROMPTS = 2
"""Per length: one alone may have met a noisy moment."""
PLAIN = "plain-"
"""Before the key of every question to the server without speculation."""


class Timing(Measurement):
    """Step times of one server, as far as they have come."""

    purposes: ClassVar[tuple[str, ...]] = ("step-time", "step-time again")
    about: ClassVar[str] = "step-time"

    def __init__(self, probe: DraftStepTime) -> None:
        super().__init__(_settings(probe))
        self.timing = probe
        self.plain: Plain | None = None

    def converse(self, host: Host) -> Conversation:
        """Measure the server; then, where one is named, the one without speculation beside it."""
        yield from super().converse(host)
        if self.timing.plain_url and self.setup is not None:
            self.plain = Plain(self.timing)
            yield from self.plain.beside(host, self.known)

    def _plan(self, target: Target, scripts: Sequence[Any]) -> tuple[plan.Room, tuple[int, ...]]:
        found = super()._plan(target, scripts)
        assert self.setup is not None
        self.setup = replace(self.setup, steps_asked=self.timing.steps)
        return found

    def _contexts(self, limits: Sequence[Limit], room: plan.Room) -> tuple[int, ...]:
        asked = self.probe.contexts
        return plan.contexts(asked, limits, room) if asked else plan.spaced(room)

    def _send_all(self) -> Generator[Asked, Any, None]:
        """The ladder, with a look at the GPUs beside it where the host has the tools."""
        assert self.sender is not None
        prefix = self.sender.target.prefix
        begun = yield from _sampling.begin(prefix)
        try:
            yield from self._ladder()
        except Stopped:
            yield from _sampling.end(begun, prefix)
            raise
        yield from _sampling.end(begun, prefix)

    def _ladder(self) -> Generator[Asked, Any, None]:
        """Warm up, then length after length in shuffled order, then a few of them again: has anything drifted?"""
        yield from self._warm_up(self.places[0])
        for number, place in enumerate(self.places):
            yield from self._point(place, self.purposes[0], number)
        for place in self._twice():
            yield from self._point(place, self.purposes[1], len(self.places) - 1)
        self.checks += self._drift()

    def _prompt(self, place: plan.Place, variant: int, salt: str = "") -> Ids:
        """Every length has a beginning of its own, so that the first prompt of each tells how fast it is computed."""
        return super()._prompt(place, variant, salt or str(place.context))

    def _drift(self) -> list[CommitCheck]:
        """What was measured twice, compared; where it differs, last."""
        assert self.sender is not None
        found = []
        for place in self._twice():
            mine = [r for r in self.sender.requests if r.context_tokens == place.context and not r.error]
            first, again = ([r for r in mine if r.purpose == purpose] for purpose in self.purposes)
            if first and again:
                found.append(checks.step_time_again(first, again))
        return sorted(found, key=lambda check: check.agrees is False)

    def _twice(self) -> tuple[plan.Place, ...]:
        """The shortest length, one in the middle and the longest; those that were measured last, last again."""
        if len(self.places) < 2:
            return ()
        ladder = sorted(self.places, key=lambda place: place.context)
        chosen = (ladder[0], ladder[len(ladder) // 2], ladder[-1])
        return tuple(place for place in self.places if place in chosen)

    def _controls(self) -> PlannedPoint:
        """The warm-up, and what is sent a second time: a cache may have given it up by then."""
        first, twice = self.places[0], self._twice()
        again = min(AGAIN, self.probe.prompts)
        return PlannedPoint(
            arm="controls",
            context_tokens=max((place.context for place in twice), default=first.context),
            prompts=1 + again * len(twice),
            prompt_tokens=first.length + again * sum(place.length for place in twice),
            prefill_tokens=first.length + sum(place.length for place in twice) + again * len(twice),
            output_tokens=WARM_UP_TOKENS + again * len(twice) * self.output,
        )

    def points(self) -> Iterator[CommitPoint]:
        """By length, not in the order of sending."""
        found = list(super().points())
        yield from sorted(found, key=lambda p: (self.purposes.index(p.purpose), p.context_tokens))

    def results(self) -> Iterator[Fact | Finding | Gap]:
        """Everything known; what a plain server gave stands in the setup too, as the baseline that it is."""
        measured = list(self.plain.results()) if self.plain is not None else []
        points = [fact for fact in measured if isinstance(fact, CommitPoint)]
        if points and self.setup is not None:
            self.setup = replace(self.setup, baseline=_pairs(points))
        yield from super().results()
        yield from measured
        yield from self._gains(points)

    def _gains(self, plain: Sequence[CommitPoint]) -> Iterator[SpeculationGain]:
        """Where speculation pays; nothing for a server that does not speculate."""
        if self.setup is None or self.setup.speculating is False or self.sender is None:
            return
        points = [point for point in self.points() if point.purpose == "step-time"]
        yield from _gain.gains(points, self.setup.baseline, plain)

    def laws(self, windows: Sequence[GpuWindow]) -> Iterator[StepFit]:
        """The law of the step times of either server; none of fewer than two lengths."""
        if self.sender is not None and self.setup is not None:
            found = steplaw.fit(
                tuple(self.points()),
                requests=[request for request in self.sender.requests if request.purpose in self.purposes],
                windows=[window for window in windows if window.purpose in self.purposes],
                limits=self.setup.limits,
            )
            if found is not None:
                yield found
        if self.plain is not None:
            yield from self.plain.laws(windows)

    def windows(self, evidence: Evidence) -> Iterator[GpuWindow]:
        """What the GPUs did meanwhile, point by point, on either server."""
        if self.sender is not None:
            yield from _sampling.windows(evidence, self.sender.requests, self.sender.target.prefix)
        if self.plain is not None:
            yield from self.plain.windows(evidence)


class Plain(Timing):
    """The same of a server that does not speculate."""

    purposes: ClassVar[tuple[str, ...]] = ("plain", "plain again")
    about: ClassVar[str] = "plain"

    def beside(self, host: Host, known: tuple[Fact, ...]) -> Conversation:
        """Ask the second server how it is, and measure it. Its host is known by now."""
        processes = tuple(fact for fact in known if isinstance(fact, ServerProcess))
        url = self.timing.plain_url
        at = with_settings(host, url, self.timing.engine)
        try:
            target = yield from ask(at, known, processes, PLAIN)
        except NoTarget as none:
            self.gaps = [none.gap]
            return
        except Unanswered as missing:
            self.gaps = [Gap(url, missing.reason, (Cite(missing.key),))]
            return
        if target.serving.speculating:
            self.gaps.append(
                Gap(url, "this server speculates too: it says nothing of the time without", target.cites[:1])
            )
            return
        yield from self.measure(target)

    def _twice(self) -> tuple[plan.Place, ...]:
        return ()


def _settings(probe: DraftStepTime) -> DraftCommit:
    """The commit probe's settings for one easy text and that many steps, those that do not count on top."""
    return DraftCommit(
        contexts=probe.contexts,
        arms=ARM,
        steps=probe.steps + PROMPTS * _points.SETTLING,
        prompts=PROMPTS,
        text=probe.text,
        plan=probe.plan,
        while_busy=probe.while_busy,
        max_context=probe.max_context,
        seed=probe.seed,
        engine=probe.engine,
        url=probe.url,
        baseline=probe.baseline,
        request_timeout=probe.request_timeout,
    )


def _pairs(points: Sequence[CommitPoint]) -> tuple[tuple[int, float], ...]:
    """(context, milliseconds per token) of a server without speculation."""
    return tuple(
        sorted(
            (point.context_tokens, point.step_ms / (point.commit_mean or 1.0))
            for point in points
            if point.step_ms
        )
    )
