"""The whole measurement as one conversation: what to send next depends on what came back, and on nothing else.

`collect` holds it with the host, `interpret` holds it again with the transcript: the same answers lead to the same
requests and the same facts.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from ddprobe.arms.base import Script
from ddprobe.engines.generation import Prompt
from ddprobe.errors import Unanswered
from ddprobe.facts import Claim, Limit, PlannedPoint
from ddprobe.model import Asked, Cite, Conversation, Fact, Finding, Gap, Host
from ddprobe.parsing import sizes
from ddprobe.probes.draft import _commit_chat as chat
from ddprobe.probes.draft import _commit_checks as checks
from ddprobe.probes.draft import _commit_plan as plan
from ddprobe.probes.draft import _commit_tokens as tokenizer
from ddprobe.probes.draft._commit_claims import claims
from ddprobe.probes.draft._commit_ladder import Ladder
from ddprobe.probes.draft._commit_send import Order, Sender, Stopped
from ddprobe.probes.draft._commit_setup import ceiling, refusal, scripts_of, setup_of
from ddprobe.probes.draft._commit_target import AFTER, NoTarget, Target, find, replacement, with_settings

if TYPE_CHECKING:
    from ddprobe.probes.draft.commit import DraftCommit


class Measurement(Ladder):
    """One commit probe on one host, as far as it has come."""

    about: ClassVar[str] = "commit"

    def __init__(self, probe: DraftCommit) -> None:
        super().__init__(probe)
        self.known: tuple[Fact, ...] = ()
        self.claims: list[Claim] = []

    # --- the conversation ----------------------------------------------------------------------------------

    def converse(self, host: Host) -> Conversation:
        """Ask, send, ask again. Nothing is sent to a busy server, beyond a limit, or out of the vocabulary."""
        try:
            target = yield from find(with_settings(host, self.probe.url, self.probe.engine))
        except NoTarget as none:
            self.known, self.gaps = none.known, [none.gap]
            return
        self.known = target.known
        yield from self.measure(target)

    def measure(self, target: Target) -> Conversation:
        """Plan for this server, send, and see how it is afterwards."""
        self.gaps += [Gap(target.base, doubt, target.cites[:1]) for doubt in target.doubts]
        self.claims += claims(target, target.answers, "before the probe")
        self.sender = Sender(target, self.probe.request_timeout, self.probe.seed)
        scripts, verbatim = scripts_of(self.probe, target)
        room, wanted = self._plan(target, scripts)
        if why := refusal(self.probe, target, self.output):
            self.gaps.append(Gap(target.base, why, target.cites[:1]))
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

    def _plan(self, target: Target, scripts: Sequence[Script]) -> tuple[plan.Room, tuple[int, ...]]:
        serving, probe = target.serving, self.probe
        most = 1 if serving.speculating is False else ceiling(target)
        self.per_prompt = plan.steps_per_prompt(probe.steps, probe.prompts)
        self.output = plan.output_tokens(self.per_prompt, most)
        room = plan.Room(
            context_limit=serving.context_limit,
            kv_tokens=serving.kv_tokens,
            max_context=sizes.size(probe.max_context) if probe.max_context else None,
            output=self.output,
            draft=serving.draft_tokens or 0,
        )
        limits = plan.limits(target.config("drafter"), target.config("target"), serving, target.arguments)
        wanted = self._contexts(limits, room) if scripts else ()
        self.setup = setup_of(probe, target, scripts, limits, wanted, self.about)
        return room, wanted

    def _contexts(self, limits: Sequence[Limit], room: plan.Room) -> tuple[int, ...]:
        return plan.contexts(self.probe.contexts, limits, room)

    def _verbatim(self, target: Target, room: plan.Room) -> Generator[Asked, Any, None]:
        """The user's text as it is, in one request; and once more, to see whether greedy output repeats."""
        assert self.sender is not None
        if not self.probe.text:
            self.gaps.append(Gap("verbatim", "needs a text: --text FILE"))
            return
        room = replace(room, output=plan.output_tokens(self.probe.steps, ceiling(target)))
        text = self.probe.text
        counted = None if room.holds(text) else (yield from tokenizer.length(target, text))
        tokens, why = room.verbatim(counted, text)
        if why:
            self._not_sent("verbatim", why)
            return
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
        longest = max(room.length(context) for context in fits)
        tokens = yield from tokenizer.tokenise(target, scripts, longest, self.probe.seed)
        tokens |= templates.tokens
        if outside := tokenizer.outside(tokens.values(), self.setup.vocabulary, target.prefix):
            self.gaps.append(outside)
            return
        self.tokens = tokens
        self._place_all(scripts, room, fits)
        self._note_plan()
        if self.places:
            yield from self._send_all()

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
            if self.probe.contexts:
                self._not_sent(f"context {context}", why, f"{context} tokens")
            else:
                self.setup = replace(self.setup, left_out=(*self.setup.left_out, f"{context} tokens: {why}"))
        if not fits and not self.gaps:
            self.gaps.append(Gap("contexts", f"none of {', '.join(map(str, wanted))} tokens fits: {why}"))
        return tuple(fits)

    def _place_all(self, scripts: Sequence[Script], room: plan.Room, fits: Sequence[int]) -> None:
        """Plan the points. What was asked for by name, and no text or no context is long enough for, is missing."""
        self.places = list(self._place(scripts, room, fits))
        cites = self.setup.source[:1] if self.setup is not None else ()
        contexts = {place.context for place in self.places}
        named = self.probe.contexts.replace(" ", "").split(",")
        asked = {sizes.size(word) for word in named if word and word != "auto"}
        for context in (context for context in fits if context not in contexts):
            first = min((one for one in self.too_short if one.context == context), key=lambda one: one.least)
            if context in asked or not self.places:
                why = f"not sent: the text of {first.arm} takes {first.least} tokens"
                self.gaps.append(Gap(f"context {context}", why, cites))
        arms = {place.script.label for place in self.places}
        for label in dict.fromkeys(one.arm for one in self.too_short if one.arm not in arms):
            if self.places and self.probe.arms:
                least = min(one.least for one in self.too_short if one.arm == label)
                why = f"not sent: its text takes {least} tokens, more than any of the contexts"
                self.gaps.append(Gap(label, why, cites))

    def _not_sent(self, subject: str, why: str, shown: str = "") -> None:
        """Something that was asked for by name may not be sent: it is missing from the answer."""
        assert self.setup is not None
        self.setup = replace(self.setup, left_out=(*self.setup.left_out, f"{shown or subject}: {why}"))
        self.gaps.append(Gap(subject, f"not sent: {why}", self.setup.source[:1]))

    def _afterwards(self, target: Target, gone: bool) -> Generator[Asked, Any, None]:
        """What the server says of itself now, and whether it is still the same one. One that is gone is not asked."""
        paths = () if gone else tuple(answer.question.path for answer in target.answers if answer.whole)
        answers = yield target.engine.requests(target.base, f"{target.prefix}{AFTER}-", paths)
        self.claims += claims(target, answers, "after the probe")
        if replaced := (yield from replacement(target, answers)):
            self.gaps.append(Gap(target.base, replaced))

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
            self.tokens = tokenizer.in_words(scripts, max(fits), self.probe.seed)
            self._place_all(scripts, room, fits)
            self._note_plan()
        if verbatim and self.setup is not None:
            words = len(plan.in_words(self.probe.text))
            room = replace(room, output=plan.output_tokens(self.probe.steps, ceiling(target)))
            output, why = room.verbatim(words, self.probe.text)
            if why:
                self._not_sent("verbatim", why)
                return
            # The second request is the first once more.
            point = PlannedPoint("verbatim", 0, 2, 2 * words, words, 2 * output)
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
