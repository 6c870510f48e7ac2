"""The whole measurement as one conversation: what to send next depends on what came back, and on nothing else.

`collect` holds it with the host, `interpret` holds it again with the transcript: the same answers lead to the same
requests and the same facts.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ddprobe import arms
from ddprobe.arms.base import FILLER, Ids, Needs, Script
from ddprobe.arms.filler import filler
from ddprobe.engines.generation import Prompt
from ddprobe.errors import Unanswered
from ddprobe.facts import Claim, CommitCheck, CommitPoint, CommitRequest, CommitSetup, PlannedPoint
from ddprobe.model import Asked, Cite, Conversation, Evidence, Fact, Finding, Gap, Host, HttpResult
from ddprobe.parsing import sizes
from ddprobe.probes.draft import _commit_chat as chat
from ddprobe.probes.draft import _commit_checks as checks
from ddprobe.probes.draft import _commit_plan as plan
from ddprobe.probes.draft import _points
from ddprobe.probes.draft._commit_send import Order, Sender, Stopped
from ddprobe.probes.draft._commit_target import AFTER, NoTarget, Target, find, replacement, with_settings
from ddprobe.readonly import MAX_OUTPUT

if TYPE_CHECKING:
    from ddprobe.probes.draft.commit import DraftCommit

NONCE_TEXT = "nonce"
NONCE_CHARACTERS = 2000
PIECE = 32_000
"""Characters of filler that are tokenised at once."""
WARM_UP_TOKENS = 16
AGAIN = 2
"""Prompts of the first point that are sent once more at the end: one alone may have met a noisy moment."""
MOST_EXTRA = 2
"""Further prompts at a point whose steps were too few."""
COLD_CHECK_AT = 16 * 1024
"""The longest context at which a prompt is computed without the prefix cache, to compare."""


class Measurement:
    """One commit probe on one host, as far as it has come."""

    def __init__(self, probe: DraftCommit) -> None:
        self.probe = probe
        self.known: tuple[Fact, ...] = ()
        self.setup: CommitSetup | None = None
        self.sender: Sender | None = None
        self.checks: list[CommitCheck] = []
        self.claims: list[Claim] = []
        self.gaps: list[Gap] = []
        self.places: list[plan.Place] = []
        self.sent: list[Ids] = []
        self.cold = probe.cold

    # --- the conversation ----------------------------------------------------------------------------------

    def converse(self, host: Host) -> Conversation:
        """Ask, send, ask again. Nothing is sent to a busy server, beyond a limit, or out of the vocabulary."""
        try:
            target = yield from find(with_settings(host, self.probe.url, self.probe.engine))
        except NoTarget as none:
            self.known, self.gaps = none.known, [none.gap]
            return
        self.known = target.known
        self.gaps += [Gap(target.base, doubt, target.cites[:1]) for doubt in target.doubts]
        self.claims += self._claims(target, target.answers, "before the probe")
        self.sender = Sender(target, self.probe.request_timeout, self.probe.seed)
        scripts, verbatim = self._scripts(target)
        room, wanted = self._plan(target, scripts)
        if refusal := self._refusal(target):
            self.gaps.append(Gap(target.base, refusal, target.cites[:1]))
            return
        if self.probe.plan:
            self._show_plan(target, scripts, room, wanted, verbatim)
            return
        gone = False
        try:
            yield from self.sender.baseline()
            if verbatim:
                yield from self._verbatim(target, room)
            if scripts:
                yield from self._ladders(target, scripts, room, wanted)
        except Stopped as stop:
            self.gaps.append(stop.gap)
            gone = stop.gone
        except Unanswered as missing:
            self.gaps.append(Gap(missing.key, missing.reason, (Cite(missing.key),)))
        yield from self._afterwards(target, gone)

    def _scripts(self, target: Target) -> tuple[tuple[Script, ...], bool]:
        """What is to be measured. A server that does not speculate is measured with one text: all read alike."""
        names = tuple(word for word in self.probe.arms.replace(" ", "").split(",") if word) or arms.DEFAULT
        if target.serving.speculating is False and not self.probe.arms:
            names = names[:1]
        drafter = target.config("drafter")
        needs = Needs(
            seed=self.probe.seed,
            variants=self.probe.prompts,
            ceiling=_ceiling(target),
            window=drafter.sliding_window if drafter is not None else None,
            text=self.probe.text,
        )
        return arms.scripts(tuple(n for n in names if n != "verbatim"), needs), "verbatim" in names

    def _plan(self, target: Target, scripts: Sequence[Script]) -> tuple[plan.Room, tuple[int, ...]]:
        serving, probe = target.serving, self.probe
        ceiling = 1 if serving.speculating is False else _ceiling(target)
        self.per_prompt = plan.steps_per_prompt(probe.steps, probe.prompts)
        self.output = plan.output_tokens(self.per_prompt, ceiling)
        room = plan.Room(
            context_limit=serving.context_limit,
            kv_tokens=serving.kv_tokens,
            max_context=sizes.size(probe.max_context) if probe.max_context else None,
            output=self.output,
            draft=serving.draft_tokens or 0,
        )
        drafter = target.config("drafter")
        limits = plan.limits(drafter, target.config("target"), serving, target.arguments)
        wanted = plan.contexts(probe.contexts, limits, room) if scripts else ()
        vocabulary = serving.vocabulary
        if vocabulary is None and (config := target.config("target")) is not None:
            vocabulary = config.vocab_size
        self.setup = CommitSetup(
            engine=target.engine.name,
            base=target.base,
            server=target.name,
            version=serving.version,
            model=serving.model,
            speculating=serving.speculating,
            method=serving.method,
            drafter=serving.drafter,
            draft_tokens=serving.draft_tokens,
            ceiling=_ceiling(target),
            window=drafter.sliding_window if drafter is not None else None,
            vocabulary=vocabulary,
            context_limit=serving.context_limit,
            kv_tokens=serving.kv_tokens,
            tree=serving.tree,
            limits=limits,
            contexts=wanted,
            arms=tuple(script.label for script in scripts),
            seed=probe.seed,
            steps_asked=probe.steps,
            prompts_asked=probe.prompts,
            cold=self.cold,
            planned_only=probe.plan,
            baseline=_baseline(probe.baseline),
            source=target.cites,
        )
        return room, wanted

    def _refusal(self, target: Target) -> str:
        """Why nothing may be sent at all; empty when it may."""
        serving = target.serving
        verbatim = "verbatim" in self.probe.arms
        longest = max(self.output, plan.output_tokens(self.probe.steps, _ceiling(target)) if verbatim else 0)
        if longest > MAX_OUTPUT:
            return (
                f"{self.probe.steps} steps take up to {longest} tokens of output in one request, and {MAX_OUTPUT} are the "
                "most that is asked for: fewer --steps, or more --prompts to spread them over"
            )
        running, waiting = serving.running or 0, serving.waiting or 0
        if (running or waiting) and not self.probe.while_busy and not self.probe.plan:
            return (
                f"the server is busy ({running} requests run, {waiting} wait): a probe would disturb them, and they it. "
                "Wait, or say --while-busy"
            )
        return ""

    def _verbatim(self, target: Target, room: plan.Room) -> Generator[Asked, Any, None]:
        """The user's text as it is, in one request; and once more, to see whether greedy output repeats."""
        assert self.sender is not None
        tokens = plan.output_tokens(self.probe.steps, _ceiling(target))
        if not self.probe.text:
            self.gaps.append(Gap("verbatim", "needs a text: --text FILE"))
            return
        if room.context_limit is not None:
            # A character is at least a token's worth only for odd text: the server itself says when it is too long.
            tokens = max(
                2, min(tokens, room.context_limit - room.draft - plan.MARGIN - len(self.probe.text) // 3)
            )
        prompt = Prompt(text=self.probe.text)
        for number in range(2):
            yield from self.sender.send(
                Order(
                    purpose="point" if number == 0 else "cached",
                    arm="verbatim",
                    context=0,
                    number=number,
                    prompt=prompt,
                    max_tokens=tokens,
                    about=f"verbatim, request {number + 1} of 2",
                )
            )
        first, second = self.sender.requests[-2:]
        self.checks.append(checks.same_prompt(first, second))

    # --- the ladder ----------------------------------------------------------------------------------------

    def _ladders(
        self, target: Target, scripts: tuple[Script, ...], room: plan.Room, wanted: Sequence[int]
    ) -> Generator[Asked, Any, None]:
        assert self.sender is not None
        assert self.setup is not None
        fits = self._fitting(room, wanted)
        if not fits:
            return
        templates = yield from chat.rendered(target, scripts)
        self._note_templates(templates)
        scripts = templates.scripts
        if not scripts:
            return
        tokens = yield from self._tokenise(target, scripts, max(room.length(context) for context in fits))
        tokens |= templates.tokens
        if not self._in_vocabulary(tokens):
            return
        self.tokens = tokens
        self.places = list(self._place(scripts, room, fits))
        self._note_plan()
        if not self.places:
            return
        yield from self._warm_up(self.places[0])
        yield from self._cold_check()
        first: list[CommitRequest] = []
        for number, place in enumerate(self.places):
            done = yield from self._point(place, "point", number)
            first = first or done
        if len(first) and not self.cold:
            yield from self._again(self.places[0], first)

    def _note_templates(self, templates: chat.Rendered) -> None:
        """Write down which chats are measured, and why others are not."""
        assert self.setup is not None
        self.setup = replace(
            self.setup,
            arms=tuple(script.label for script in templates.scripts),
            left_out=(*self.setup.left_out, *templates.left_out),
        )
        self.gaps += templates.gaps

    def _fitting(self, room: plan.Room, wanted: Sequence[int]) -> tuple[int, ...]:
        """The contexts that may be sent. One that was asked for by name and may not be is missing from the answer."""
        assert self.setup is not None
        fits = []
        for context in wanted:
            why = room.refusal(context)
            if why and room.context_limit is not None and context == room.context_limit:
                why = ""  # the longest there is: sent a little shorter, so that the output fits
            if not why:
                fits.append(context)
                continue
            self.setup = replace(self.setup, left_out=(*self.setup.left_out, f"{context} tokens: {why}"))
            if self.probe.contexts:
                self.gaps.append(Gap(f"context {context}", f"not sent: {why}", self.setup.source[:1]))
        if not fits and not self.gaps:
            self.gaps.append(Gap("contexts", f"none of {', '.join(map(str, wanted))} tokens fits: {why}"))
        return tuple(fits)

    def _tokenise(
        self, target: Target, scripts: tuple[Script, ...], longest: int
    ) -> Generator[Asked, Any, dict[str, Ids]]:
        """Ids of every piece of text, from the server's own tokenizer."""
        pieces = {NONCE_TEXT: filler(0, NONCE_CHARACTERS)}
        for script in scripts:
            pieces |= script.pieces()
        generation, serving = target.generation, target.serving
        names = list(pieces)
        answers = yield tuple(
            generation.tokenize(f"tokens-{number:02d}", target.base, pieces[name], serving.model)
            for number, name in enumerate(names)
        )
        tokens = {name: _ids(target, answer) for name, answer in zip(names, answers, strict=True)}
        needed = plan.filler_needed(scripts, [longest])
        if needed:
            tokens[FILLER] = yield from self._filler(target, needed)
        return tokens

    def _filler(self, target: Target, needed: int) -> Generator[Asked, Any, Ids]:
        """So many ids of unrelated prose; the first piece tells how many characters a token takes."""
        generation, serving = target.generation, target.serving
        text = filler(self.probe.seed, PIECE)
        answer = yield generation.tokenize("tokens-filler-00", target.base, text, serving.model)
        ids = _ids(target, answer)
        if len(ids) >= needed or not ids:
            return ids
        characters = int((needed - len(ids)) * len(text) / len(ids) * 1.15) + PIECE
        rest = filler(self.probe.seed, PIECE + characters)[len(text) :]
        cuts = [rest[start : start + PIECE] for start in range(0, len(rest), PIECE)]
        answers = yield tuple(
            generation.tokenize(f"tokens-filler-{number:02d}", target.base, cut, serving.model)
            for number, cut in enumerate(cuts, 1)
        )
        for answer in answers:
            ids += _ids(target, answer)
        return ids

    def _in_vocabulary(self, tokens: dict[str, Ids]) -> bool:
        """An id outside the vocabulary ends an SGLang server: nothing is sent if the tokenizer gave one."""
        assert self.setup is not None
        highest = max((max(ids) for ids in tokens.values() if ids), default=-1)
        lowest = min((min(ids) for ids in tokens.values() if ids), default=0)
        vocabulary = self.setup.vocabulary
        if lowest < 0 or (vocabulary is not None and highest >= vocabulary):
            self.gaps.append(
                Gap(
                    "tokenizer",
                    f"its ids reach from {lowest} to {highest}, and the vocabulary has {vocabulary}: an id beyond it would "
                    "end the server, so nothing was sent. Do tokenizer and model belong together?",
                    (Cite("tokens-00"),),
                )
            )
            return False
        return True

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
        prompts = min(AGAIN, self.probe.prompts) if purpose == "again" else self.probe.prompts
        for variant in range(prompts + MOST_EXTRA):
            missing = self.probe.steps - sum(len(_steps(record)) for record in done)
            if variant >= prompts and (missing <= 0 or purpose == "again" or not done or self.cold):
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
        tail = f", about {_duration(left)} left" if left is not None else ""
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

    def _afterwards(self, target: Target, gone: bool) -> Generator[Asked, Any, None]:
        """What the server says of itself now, and whether it is still the same one. One that is gone is not asked."""
        paths = () if gone else tuple(answer.question.path for answer in target.answers if answer.whole)
        answers = yield target.engine.requests(target.base, f"{AFTER}-", paths)
        self.claims += self._claims(target, answers, "after the probe")
        if replaced := (yield from replacement(target, answers)):
            self.gaps.append(Gap(target.base, replaced))

    def _claims(self, target: Target, answers: Sequence[Any], when: str) -> list[Claim]:
        found = target.generation.claims({answer.question.path: answer for answer in answers})
        by_path = {answer.question.path: answer.key for answer in answers}
        return [
            replace(
                claim,
                origin=f"{claim.origin}, {when}",
                source=tuple(Cite(by_path.get(c.artefact, c.artefact), c.at) for c in claim.source),
            )
            for claim in found
        ]

    # --- the plan alone ------------------------------------------------------------------------------------

    def _show_plan(
        self,
        target: Target,
        scripts: tuple[Script, ...],
        room: plan.Room,
        wanted: Sequence[int],
        verbatim: bool,
    ) -> None:
        """What would be sent, counted in words in place of tokens where the count depends on the tokenizer."""
        fits = self._fitting(room, wanted) if scripts else ()
        if fits:
            pieces = {NONCE_TEXT: filler(0, NONCE_CHARACTERS)}
            for script in scripts:
                pieces |= script.pieces()
            self.tokens = {name: plan.in_words(text) for name, text in pieces.items()}
            self.tokens |= chat.unrendered(scripts)
            needed = plan.filler_needed(scripts, [max(fits)])
            self.tokens[FILLER] = plan.in_words(filler(self.probe.seed, needed * 8 + 1000))
            self.places = list(self._place(scripts, room, fits))
            self._note_plan()
        if verbatim and self.setup is not None:
            point = PlannedPoint(
                "verbatim", 0, 2, 0, 0, 2 * plan.output_tokens(self.probe.steps, _ceiling(target))
            )
            self.setup = replace(self.setup, points=(*self.setup.points, point))

    # --- what came of it -----------------------------------------------------------------------------------

    def results(self) -> Iterator[Fact | Finding | Gap]:
        """Everything known, in the order in which one reads it."""
        yield from self.known
        if self.setup is not None:
            yield self.setup
        if self.sender is not None:
            yield from self.sender.requests
            yield from self.points()
        yield from self.checks
        yield from self.claims
        yield from self.gaps
        yield from self.sender.gaps if self.sender is not None else ()

    def points(self) -> Iterator[CommitPoint]:
        """The requests of each arm and context taken together."""
        assert self.sender is not None
        groups: dict[tuple[str, int, str], list[CommitRequest]] = {}
        for record in self.sender.requests:
            if record.purpose in ("point", "again"):
                groups.setdefault((record.arm, record.context_tokens, record.purpose), []).append(record)
        for (_, _, purpose), records in groups.items():
            yield _points.point(records, ceiling=self._most, purpose=purpose, seed=self.probe.seed)


def replay(conversation: Conversation, evidence: Evidence) -> None:
    """Hold the conversation with the transcript, as far as that goes."""
    try:
        asked = next(conversation)
        while True:
            questions = asked if isinstance(asked, tuple) else (asked,)
            try:
                answers = tuple(evidence.result(question.key) for question in questions)
            except Unanswered:
                conversation.close()
                return
            asked = conversation.send(answers if isinstance(asked, tuple) else answers[0])
    except StopIteration:
        return


def _ids(target: Target, answer: HttpResult) -> Ids:
    """The tokenizer's answer. Raises `Unanswered` with what that means for the probe."""
    try:
        return target.generation.token_ids(answer)
    except Unanswered as missing:
        path = target.generation.tokenize_path
        raise Unanswered(
            missing.key,
            f"the server's {path} gave no ids ({missing.reason}): without them no prompt has a known length, and nothing "
            "more was sent. --arms verbatim --text FILE sends a text as it is",
        ) from None


def _ceiling(target: Target) -> int | None:
    draft = target.serving.draft_tokens
    return draft + 1 if draft is not None else None


def _steps(record: CommitRequest) -> tuple[int, ...]:
    if record.step_commits:
        return record.step_commits
    steps = (record.num_spec_steps or 0) + (record.undrafted_steps or 0)
    accepted = record.num_accepted_draft_tokens or 0
    return (round(1 + accepted / steps),) * steps if steps else ()


def _baseline(text: str) -> tuple[tuple[int, float], ...]:
    """`1024:8.1,16384:9.4` as pairs."""
    pairs = (word.partition(":") for word in text.split(",") if word)
    return tuple((int(context), float(ms)) for context, _, ms in pairs)


def _size(tokens: int) -> str:
    return f"{tokens // 1024}k" if tokens >= 1024 and tokens % 1024 == 0 else str(tokens)


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
