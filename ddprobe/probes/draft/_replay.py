"""A conversation held again with its transcript: the same answers lead to the same questions."""

from __future__ import annotations

from ddprobe.errors import Unanswered
from ddprobe.model import Begin, Conversation, Evidence


def replay(conversation: Conversation, evidence: Evidence) -> None:
    """Hold the conversation with the transcript, as far as that goes."""
    try:
        asked = next(conversation)
        while True:
            if isinstance(asked, Begin):
                asked = conversation.send(None)
                continue
            questions = asked if isinstance(asked, tuple) else (asked,)
            try:
                answers = tuple(evidence.result(question.key) for question in questions)
            except Unanswered:
                conversation.close()
                return
            asked = conversation.send(answers if isinstance(asked, tuple) else answers[0])
    except StopIteration:
        return
