"""The ladder of one arm after another: its prompts, what they cost, and their sending, point by point."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from ddprobe import arms
from ddprobe.arms.base import Ids, Script
from ddprobe.engines.generation import Prompt
from ddprobe.facts import CommitCheck, CommitPoint, CommitRequest, CommitSetup, PlannedPoint
from ddprobe.model import Asked, Gap
from ddprobe.probes.draft import _commit_checks as checks
from ddprobe.probes.draft import _commit_plan as plan
from ddprobe.probes.draft import _points
from ddprobe.probes.draft._commit_send import Order, Sender
from ddprobe.probes.draft._commit_tokens import NONCE_TEXT

if TYPE_CHECKING:
    from ddprobe.probes.draft.commit import DraftCommit

WARM_UP_TOKENS = 16
AGAIN = 2
"""Prompts of the first point that are sent once more at the end: one alone may have met a noisy moment."""
MOST_EXTRA = 2
"""Further prompts at a point whose steps were too few."""
COLD_CHECK_AT = 16 * 1024
"""The longest context at which a prompt is computed without the prefix cache, to compare."""


@dataclass(frozen=True, slots=True)
class TooShort:
    """A context that a text does not fit into."""

    arm: str
    context: int
    least: int
    """Tokens that the text takes."""


class Ladder:
    """What is sent to one server, and what came of it so far. It is sent once setup, sender and tokens are there."""

    purposes: ClassVar[tuple[str, ...]] = ("point", "again")
    """Of the requests that make up points: those of the ladder, and those sent once more at the end."""

    def __init__(self, probe: DraftCommit) -> None:
        self.probe = probe
        self.setup: CommitSetup | None = None
        self.sender: Sender | None = None
        self.checks: list[CommitCheck] = []
        self.gaps: list[Gap] = []
        self.places: list[plan.Place] = []
        self.too_short: list[TooShort] = []
        self.sent: list[Ids] = []
        self.cold = probe.cold
        self.tokens: dict[str, Ids] = {}
        """The ids of every piece of text, by name."""
        self.per_prompt = self.output = 0
        """Verify steps that a prompt is to give, and the most tokens asked for in one request."""

    def _send_all(self) -> Generator[Asked, Any, None]:
        """Warm up, see to the cache, then point after point, and the first one again."""
        yield from self._warm_up(self.places[0])
        yield from self._cold_check()
        first: list[CommitRequest] = []
        for number, place in enumerate(self.places):
            done = yield from self._point(place, "point", number)
            first = first or done
        if len(first) and not self.cold:
            yield from self._again(self.places[0], first)

    def _place(self, scripts: Sequence[Script], room: plan.Room, fits: Sequence[int]) -> Iterator[plan.Place]:
        """The points in the order of sending. A context too short for a text is left out of it."""
        assert self.setup is not None
        ladders: dict[str, list[plan.Place]] = {}
        for script in scripts:
            least = len(script.head(self.tokens)) + plan.NONCE + script.shortest(self.tokens)
            for context in fits:
                if room.length(context) < least:
                    note = f"{script.label} at {context} tokens: its text takes {least} tokens"
                    self.setup = replace(self.setup, left_out=(*self.setup.left_out, note))
                    self.too_short.append(TooShort(script.label, context, least))
                    continue
                place = plan.Place(script, context, room.length(context))
                ladders.setdefault(script.label, []).append(place)
        return iter(plan.order([s for s in scripts if s.label in ladders], ladders, self.probe.seed))

    def _prompts(self, place: plan.Place, salt: str = "") -> Iterator[Ids]:
        """The point's prompts, behind its arm's own nonce (in a cold run: each behind one of its own)."""
        for variant in range(self.probe.prompts):
            yield self._prompt(place, variant, salt)

    def _prompt(self, place: plan.Place, variant: int, salt: str = "") -> Ids:
        script = place.script
        salt = salt or (f"{place.context} {variant}" if self.cold else "")
        head = script.head(self.tokens)
        nonce = plan.nonce(self.tokens[NONCE_TEXT], self.probe.seed, f"{script.label} {salt}")
        return head + nonce + script.build(self.tokens, self._body(place), variant)

    def _body(self, place: plan.Place) -> int:
        """Ids of a prompt after head and nonce."""
        return place.length - len(place.script.head(self.tokens)) - plan.NONCE

    def _note_plan(self) -> None:
        """Write into the setup what every point will cost."""
        assert self.setup is not None
        points: list[PlannedPoint] = []
        sent: list[Ids] = []
        for place in self.places:
            prompts = list(self._prompts(place))
            points.append(plan.planned(place, prompts, sent[-2 * len(prompts) :], self.output, self.cold))
            sent += prompts
        if self.places:
            points.append(self._controls())
        used = {place.script.label: place.script for place in self.places}
        ms = self.sender.target.serving.decode_ms if self.sender is not None else None
        output = sum(point.output_tokens for point in points)
        self.setup = replace(
            self.setup,
            points=tuple(points),
            texts=arms.digests(used.values()),
            seconds=output * ms / 1000 if ms is not None else None,
        )

    def _controls(self) -> PlannedPoint:
        """What is sent beside the points: the warm-up, one prompt twice, and the first point once more."""
        first, twice = self.places[0], self._check_place()
        if self.cold:
            return PlannedPoint("controls", first.context, 1, first.length, first.length, WARM_UP_TOKENS)
        again = min(AGAIN, self.probe.prompts)
        return PlannedPoint(
            arm="controls",
            context_tokens=twice.context,
            prompts=3 + again,
            prompt_tokens=(1 + again) * first.length + 2 * twice.length,
            prefill_tokens=first.length + twice.length + 1 + again,
            output_tokens=WARM_UP_TOKENS + (2 + again) * self.output,
        )

    # --- sending -------------------------------------------------------------------------------------------

    def _warm_up(self, place: plan.Place) -> Generator[Asked, Any, None]:
        """One short request first: kernels are compiled, graphs captured, and the speed becomes known."""
        prompt = self._prompt(place, 0, "warm-up")
        yield from self._send(place, "warm-up", 0, prompt, WARM_UP_TOKENS, "warm-up")

    def _send(
        self, place: plan.Place, purpose: str, number: int, ids: Ids, tokens: int, about: str
    ) -> Generator[Asked, Any, CommitRequest]:
        assert self.sender is not None
        expected = place.script.expected(self.tokens, self._body(place), number, tokens)
        if expected:
            # What comes after the passage is another text.
            tokens = min(tokens, len(expected))
        order = Order(
            purpose=purpose,
            arm=place.script.label,
            context=place.context,
            number=number,
            prompt=Prompt(ids=ids),
            max_tokens=tokens,
            expected=expected,
            about=about,
            new_tokens=len(ids) - plan.shared(self.sent[-2 * self.probe.prompts :], ids),
        )
        record = yield from self.sender.send(order)
        self.sent.append(ids)
        wrong = record.prompt_tokens is not None and record.prompt_tokens != len(ids)
        if wrong and not any(check.name == "prompt-length" for check in self.checks):
            self.checks.append(checks.prompt_length(record, len(ids)))
        return record

    def _point(
        self, place: plan.Place, purpose: str, number: int
    ) -> Generator[Asked, Any, list[CommitRequest]]:
        """The point's prompts; and a few more while its steps are too few."""
        done: list[CommitRequest] = []
        seen: float | None = None
        again = purpose == self.purposes[1]
        prompts = min(AGAIN, self.probe.prompts) if again else self.probe.prompts
        for variant in range(prompts + MOST_EXTRA):
            missing = self.probe.steps - sum(len(_steps(record)) for record in done)
            if variant >= prompts and (missing <= 0 or again or not done or self.cold):
                break
            plain = self.setup is not None and self.setup.speculating is False
            tokens = plan.output_tokens(
                max(self.per_prompt, missing if variant >= prompts else 0), 1 if plain else self._most, seen
            )
            about = self._about(place, variant, prompts, number)
            ids = self._prompt(place, variant)
            record = yield from self._send(place, purpose, variant, ids, min(tokens, self.output), about)
            if record.error:
                break
            done.append(record)
            if steps := [step for each in done for step in _steps(each)]:
                seen = sum(steps) / len(steps)
        return done

    @property
    def _most(self) -> int | None:
        return self.setup.ceiling if self.setup is not None else None

    def _about(self, place: plan.Place, variant: int, prompts: int, number: int) -> str:
        left = self._left(number, variant)
        tail = f", about {_duration(left)} left" if left is not None and left >= 0.5 else ""
        of = f"prompt {variant + 1} of {prompts}" if variant < prompts else "one more prompt"
        return f"{place.script.label} at {_size(place.context)} (point {number + 1} of {len(self.places)}), {of}{tail}"

    def _left(self, number: int, variant: int) -> float | None:
        """Seconds that the rest of the plan will take, from what was seen so far."""
        assert self.sender is not None
        assert self.setup is not None
        total = 0.0
        for place, planned in list(zip(self.places, self.setup.points, strict=False))[number:]:
            left = planned.prompts - (variant if place is self.places[number] else 0)
            new = planned.prefill_tokens if place is not self.places[number] or variant == 0 else 0
            seconds = self.sender.estimate(new, self.output // 2 * left, place.context)
            if seconds is None:
                return None
            total += seconds
        return total

    def _cold_check(self) -> Generator[Asked, Any, None]:
        """Send one prompt twice: computed whole, then from the cache. The answer must not change."""
        if self.cold:
            return
        place = self._check_place()
        pairs: list[tuple[CommitRequest, CommitRequest]] = []
        for turn in range(2):
            prompt = self._prompt(place, 0, f"cold {turn}")
            name = place.script.label
            first = yield from self._send(
                place, "cold", 0, prompt, self.output, f"{name} at {_size(place.context)}, without the cache"
            )
            second = yield from self._send(
                place, "cached", 0, prompt, self.output, f"{name} at {_size(place.context)}, from the cache"
            )
            pairs.append((first, second))
            found = checks.cold_cached(pairs)
            if found.agrees is not False:
                break
        self.checks += [found, checks.same_prompt(*pairs[0])]
        if found.agrees is False and self.setup is not None:
            self.cold = True
            self.setup = replace(self.setup, cold=True)
            self._note_plan()

    def _check_place(self) -> plan.Place:
        """Where the text must be seen from far, so that what the cache lost is missed; not at the longest context."""
        far = [place for place in self.places if place.script.label.startswith("far-copy")]
        label = (far[-1] if far else self.places[0]).script.label
        ladder = sorted((p for p in self.places if p.script.label == label), key=lambda place: place.context)
        return ([place for place in ladder if place.context <= COLD_CHECK_AT] or ladder[:1])[-1]

    def _again(self, place: plan.Place, first: Sequence[CommitRequest]) -> Generator[Asked, Any, None]:
        """The first point once more: what changed meanwhile is not the context's doing."""
        again = yield from self._point(place, "again", len(self.places) - 1)
        if again:
            self.checks += [checks.first_again(first, again), checks.step_time_again(first, again)]

    def points(self) -> Iterator[CommitPoint]:
        """The requests of each arm and context taken together."""
        assert self.sender is not None
        groups: dict[tuple[str, int, str], list[CommitRequest]] = {}
        for record in self.sender.requests:
            if record.purpose in self.purposes:
                groups.setdefault((record.arm, record.context_tokens, record.purpose), []).append(record)
        for (_, _, purpose), records in groups.items():
            yield _points.point(
                records,
                ceiling=self._most,
                purpose=purpose,
                seed=self.probe.seed,
                base=self.sender.target.base,
            )


def _steps(record: CommitRequest) -> tuple[int, ...]:
    if record.step_commits:
        return record.step_commits
    steps = (record.num_spec_steps or 0) + (record.undrafted_steps or 0)
    accepted = record.num_accepted_draft_tokens or 0
    return (round(1 + accepted / steps),) * steps if steps else ()


def _size(tokens: int) -> str:
    return f"{tokens // 1024}k" if tokens >= 1024 and tokens % 1024 == 0 else str(tokens)


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
