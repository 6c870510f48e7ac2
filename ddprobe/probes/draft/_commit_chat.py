"""The server's own chat template around a question: which ways of thinking it tells apart, and the ids of each."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ddprobe.arms.base import Ids, Script
from ddprobe.arms.chat import MESSAGES, Question, around
from ddprobe.errors import Unanswered
from ddprobe.model import Asked, Cite, Gap
from ddprobe.probes.draft._commit_target import Target

Around = tuple[Ids, Ids]
"""Head and tail of the template."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """What is left of a run's texts once the server has shown its template."""

    scripts: tuple[Script, ...]
    tokens: Mapping[str, Ids] = field(default_factory=dict)
    """Heads and tails by name."""
    left_out: tuple[str, ...] = ()
    gaps: tuple[Gap, ...] = ()


def rendered(target: Target, scripts: Sequence[Script]) -> Generator[Asked, Any, Rendered]:
    """Ask for the template of every chat; keep the chats whose prompts differ, and all other texts."""
    chats = [script for script in scripts if isinstance(script, Question)]
    shown: dict[str, Around] = {}
    gaps: list[Gap] = []
    for script in chats:
        try:
            shown[script.label] = yield from _around(target, script)
        except Unanswered as missing:
            cites = (Cite(missing.key),) if missing.key != "chat" else ()
            gaps.append(Gap(script.label, f"the server does not render a chat ({missing.reason})", cites))
            if script.thinking is None:
                break  # what is not rendered as it is will not be in another way
    kept, notes = _different(chats, shown)
    mine = [script for script in chats if script.label in kept]
    return Rendered(
        scripts=tuple(script for script in scripts if script in mine or script not in chats),
        tokens={name: ids for script in mine for name, ids in _named(script, shown[script.label])},
        left_out=(*(f"{gap.subject}: {gap.reason}" for gap in gaps), *notes),
        gaps=tuple(gaps),
    )


def unrendered(scripts: Sequence[Script]) -> dict[str, Ids]:
    """Templates of no length, for a plan: nothing is sent for one, so the server was not asked to show its own."""
    chats = (script for script in scripts if isinstance(script, Question))
    return {name: ids for script in chats for name, ids in _named(script, ((), ()))}


def _around(target: Target, script: Question) -> Generator[Asked, Any, Around]:
    ids: list[Ids] = []
    for message in MESSAGES:
        ids.append(
            (
                yield from target.generation.render(
                    f"{script.label.replace(' ', '-')}-{message}",
                    target.base,
                    message,
                    model=target.serving.model,
                    thinking=script.thinking,
                )
            )
        )
    first, second = ids
    return around(first, second)


def _different(chats: Sequence[Question], shown: Mapping[str, Around]) -> tuple[set[str], tuple[str, ...]]:
    """The chats that are worth measuring, and why one is not.

    A template that takes no notice of thinking is measured once, under the arm's own name; one that does, in both ways,
    and a third time only where it has a third way when it is told nothing.
    """
    own = [chat for chat in chats if chat.thinking is None and chat.label in shown]
    told = [chat for chat in chats if chat.thinking is not None and chat.label in shown]
    if len({shown[chat.label] for chat in told}) < 2:
        return {chat.label for chat in own}, ()
    kept, notes = {chat.label for chat in told}, []
    for chat in own:
        same = next((other for other in told if shown[other.label] == shown[chat.label]), None)
        if same is None:
            kept.add(chat.label)
        else:
            notes.append(
                f"{chat.label} by itself: the template then renders what is measured as {same.label}"
            )
    return kept, tuple(notes)


def _named(script: Question, around: Around) -> tuple[tuple[str, Ids], ...]:
    head, tail = around
    return (script.head_name, head), (script.tail_name, tail)
