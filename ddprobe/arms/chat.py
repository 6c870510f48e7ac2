"""Arm `chat`: a question asked inside the server's own chat template, with the model's thinking on and off.

A drafter is trained on text of one form. Sent without a template, or in the other mode of thinking, the same question may
be accepted half as well; which mode suits it differs from drafter to drafter, so both are measured and neither is right.

The template is the server's: it renders two messages that have nothing in common, and what both renderings begin and end
with is what stands around a message.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ddprobe.arms import texts
from ddprobe.arms.base import Arm, Ids, Needs, Script
from ddprobe.arms.filler import take
from ddprobe.arms.phases import drop, least
from ddprobe.arms.tailed import BREAK
from ddprobe.errors import Unanswered

QUESTIONS = ("chat-1", "chat-2", "chat-3", "chat-4")
MESSAGES = ("amber", "violet")
"""Two messages without a common first or last letter."""
SLACK = 2
"""A rendered message may have a token or two more than it has letters: a blank before it, a mark after it."""


class Chat(Arm):
    """Ends in one of four questions, or in the user's text, and the beginning of the answer."""

    name: ClassVar[str] = "chat"
    about: ClassVar[str] = (
        "a question in the server's own chat template, thinking on and off where it knows that"
    )

    def scripts(self, needs: Needs) -> tuple[Script, ...]:
        """The template as it is by itself, and told both ways of thinking: a server shows which of them differ."""
        shipped = tuple((name, texts.read(name)) for name in QUESTIONS)
        questions = (("text", needs.text),) if needs.text else shipped
        modes = {self.name: None, f"{self.name} thinking": True, f"{self.name} plain": False}
        return tuple(
            Question(label=label, thinking=thinking, questions=questions, variants=needs.variants)
            for label, thinking in modes.items()
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Question(Script):
    """The template's head (the nonce comes behind it), filler, a paragraph break, a question, the template's tail.

    Variants end in other questions, each of them whole; where there are more variants than questions, a question is
    asked again after a little less filler.
    """

    label: str
    thinking: bool | None
    """What the template is told of thinking; None says nothing of it."""
    questions: tuple[tuple[str, str], ...]
    """(name, text)."""
    variants: int
    copies: bool = False

    @property
    def head_name(self) -> str:
        return f"{self.label}: head"

    @property
    def tail_name(self) -> str:
        return f"{self.label}: tail"

    def pieces(self) -> Mapping[str, str]:
        return {BREAK: "\n\n", **dict(self.questions)}

    def head(self, tokens: Mapping[str, Ids]) -> Ids:
        return tokens[self.head_name]

    def _asked(self, tokens: Mapping[str, Ids], variant: int) -> Ids:
        name, _ = self.questions[variant % len(self.questions)]
        if not tokens[name]:
            raise Unanswered(self.label, "the question has no tokens")
        return tokens[BREAK] + tokens[name] + tokens[self.tail_name]

    def _rounds(self) -> int:
        """How often the same question is used."""
        return -(-self.variants // len(self.questions))

    def shortest(self, tokens: Mapping[str, Ids]) -> int:
        longest = max(len(self._asked(tokens, number)) for number in range(len(self.questions)))
        return max(longest + self._rounds(), least(self._rounds()))

    def filler(self, length: int) -> int:
        return length

    def build(self, tokens: Mapping[str, Ids], length: int, variant: int) -> Ids:
        asked = self._asked(tokens, variant)
        room = length - len(asked)
        less = drop(length, room, variant // len(self.questions), self._rounds())
        return take(tokens, room - less) + asked


def around(first: Ids, second: Ids) -> tuple[Ids, Ids]:
    """What stands before and after a message, from the renderings of both `MESSAGES`. Raises `Unanswered`."""
    head = _common(first, second)
    tail = _common(first[len(head) :][::-1], second[len(head) :][::-1])[::-1]
    for message, ids in zip(MESSAGES, (first, second), strict=True):
        if not 0 < len(ids) - len(head) - len(tail) <= len(message) + SLACK:
            raise Unanswered(
                "chat", "the template does not show a message as it is: what stands around it is unknown"
            )
    return head, tail


def _common(first: Ids, second: Ids) -> Ids:
    """Their common beginning."""
    count = 0
    while count < min(len(first), len(second)) and first[count] == second[count]:
        count += 1
    return first[:count]
