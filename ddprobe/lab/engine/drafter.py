"""The lab's block drafter: proposes tokens from what it can see itself, by mechanisms that can each be broken.

It copies, near through its sliding-window layers and far through its full layer; it has learnt a part of the target's
language; and the target's hidden states that it is fed give away a little of what comes. What it cannot see or reach
it gets wrong, as a network does: it proposes something all the same.
"""

from __future__ import annotations

import enum
import heapq
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ddprobe.lab.engine.context import Context
from ddprobe.lab.engine.target import ROWS, Continuation, Language


class Window(enum.Enum):
    """What the engine makes of the window that the drafter was trained with."""

    APPLIED = "applied"
    IGNORED = "ignored"
    """Every layer attends to everything: what it looks for is drowned, the more so the longer the context."""
    OVERWRITTEN = "overwritten"
    """The ring buffer's slots are used again too early: nothing near is left once it has gone round."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mechanism:
    """How a drafter works."""

    draft_tokens: int
    """Tokens it proposes per step, one after another: the block without its anchor."""
    tree_budget: int = 0
    """Nodes of a tree of proposals, the root not counted; 0 for a chain."""
    window: int | None = None
    """Tokens back that its sliding layers were trained to see; None where all layers are full."""
    window_handling: Window = Window.APPLIED
    full_layer: bool = True
    """A layer reaches beyond the window."""
    reach: int = 1 << 62
    """Positions that its rotary embedding was made for; beyond them attention finds nothing."""
    trained: bool = True
    """Its weights are those that were trained; otherwise the table is shuffled and attention means nothing."""
    learnt: float = 0.5
    """Share of the target's language that it has learnt."""
    near_grip: float = 0.985
    """Chance that a token copied from within the window is copied right."""
    far_grip: float = 0.98
    hints: float = 0.3
    """How often the target's hidden states give away the next token."""
    cached_states: bool = True
    """What it needs of a cached prefix is cached with it."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A tree of proposed tokens; a chain is a tree without branches."""

    tokens: tuple[int, ...]
    parents: tuple[int, ...]
    """Index of each node's parent; -1 is the root, the last committed token."""
    _children: dict[tuple[int, int], int]

    @classmethod
    def of(cls, tokens: Sequence[int], parents: Sequence[int]) -> Proposal:
        edges = {
            (parent, token): node for node, (token, parent) in enumerate(zip(tokens, parents, strict=True))
        }
        return cls(tuple(tokens), tuple(parents), edges)

    def child(self, parent: int, token: int) -> int | None:
        return self._children.get((parent, token))


@dataclass(frozen=True, slots=True)
class _Path:
    """A branch under way: the tokens on it, and whether it still follows what is being copied."""

    node: int
    tokens: tuple[int, ...]
    copying: bool


@dataclass(frozen=True, slots=True)
class _Sight:
    """What attention finds: a place to copy from, how surely, and whether anything is where it is looked for."""

    place: int | None
    grip: float
    clarity: float


class Drafter:
    """One drafter, its own copy of the language in its table."""

    def __init__(self, mechanism: Mechanism, language: Language, seed: int) -> None:
        self.mechanism = mechanism
        self.seed = seed
        draw = random.Random(seed)
        wrong = draw.choices(language.words, k=ROWS)
        learnt = [draw.random() < mechanism.learnt for _ in range(ROWS)]
        self.table = [
            right if known else no for right, no, known in zip(language.table, wrong, learnt, strict=True)
        ]
        # Its second thought is right now and then where the first is not.
        self.second = [
            right if not known and draw.random() < 0.3 else no
            for right, no, known in zip(
                language.table, draw.choices(language.words, k=ROWS), learnt, strict=True
            )
        ]
        if not mechanism.trained:
            self.shuffle()

    def shuffle(self) -> None:
        """Mix the table up: what is left is as good as random weights."""
        draw = random.Random(self.seed + 1)
        draw.shuffle(self.table)
        draw.shuffle(self.second)

    def propose(self, context: Context, hidden: Continuation) -> Proposal:
        """What it thinks comes next. `hidden` is what the target's last hidden states hold of it."""
        sight = self._look(context)
        if not self.mechanism.tree_budget:
            return self._chain(context, hidden, sight)
        tokens: list[int] = []
        parents: list[int] = []
        budget = self.mechanism.tree_budget
        # Best first: each step down and each second choice makes a branch less likely.
        waiting: list[tuple[int, int, int, int, bool, _Path]] = []
        count = 0

        def grow(path: _Path, cost: int) -> None:
            nonlocal count
            if len(path.tokens) < self.mechanism.draft_tokens:
                for rank, (token, copied) in enumerate(self._candidates(context, hidden, path, sight)):
                    count += 1
                    heapq.heappush(waiting, (cost + 1 + 4 * rank, count, token, path.node, copied, path))

        grow(_Path(-1, (), sight.place is not None), 0)
        while waiting and len(tokens) < budget:
            cost, _, token, parent, copied, path = heapq.heappop(waiting)
            tokens.append(token)
            parents.append(parent)
            grow(_Path(len(tokens) - 1, (*path.tokens, token), path.copying and copied), cost)
        return Proposal.of(tokens, parents)

    def _chain(self, context: Context, hidden: Continuation, sight: _Sight) -> Proposal:
        """The likeliest token after the likeliest."""
        path = _Path(-1, (), sight.place is not None)
        for depth in range(self.mechanism.draft_tokens):
            token, copied = next(self._candidates(context, hidden, path, sight))
            path = _Path(depth, (*path.tokens, token), path.copying and copied)
        return Proposal.of(path.tokens, range(-1, len(path.tokens) - 1))

    def _candidates(
        self, context: Context, hidden: Continuation, path: _Path, sight: _Sight
    ) -> Iterator[tuple[int, bool]]:
        """The next tokens it thinks of on this branch, the likeliest first, and whether that one is copied."""
        depth = len(path.tokens)
        row = Language.row(path.tokens if depth >= 3 else (*context.ids[-3:], *path.tokens))
        if self._chance(context, depth) >= sight.clarity:
            row = hash((row, depth, len(context))) % ROWS
        first = self.table[row]
        copied = sight.place is not None and path.copying
        if copied and sight.place is not None:
            place = sight.place + depth
            if self._chance(context, 1000 + depth) < sight.grip * sight.clarity:
                first = context.ids[place] if place < len(context) else path.tokens[place - len(context)]
        elif self._given_away(context, hidden, path):
            first = hidden[depth]
        yield first, copied
        if self.mechanism.tree_budget:
            for other in (self.table[row], self.second[row]):
                if other != first:
                    yield other, False

    def _given_away(self, context: Context, hidden: Continuation, path: _Path) -> bool:
        """Whether the hidden states give the next token away: only right after what has been committed."""
        if not self.mechanism.trained or len(path.tokens) > 1:
            return False
        if any(token != hidden[place] for place, token in enumerate(path.tokens)):
            return False
        return self._chance(context, 2000 + len(path.tokens)) < self.mechanism.hints

    def _look(self, context: Context) -> _Sight:
        """What attention makes of this context."""
        how, length = self.mechanism, len(context)
        if not how.trained or length >= how.reach:
            return _Sight(None, 0.0, 0.0)
        clarity = 1.0
        if how.window is not None and how.window_handling is Window.IGNORED and length > how.window:
            # Attention over n tokens by layers that were trained to weigh `window` of them.
            clarity *= max(0.05, 1 - 0.18 * math.log2(length / how.window))
        if not how.cached_states:
            # Slots that hold nothing of this text are attended to like any others.
            clarity *= 1 - context.cached / length
        place = context.earlier()
        if place is None:
            return _Sight(None, 0.0, clarity)
        if how.window is None or length - place <= how.window:
            gone_round = how.window_handling is Window.OVERWRITTEN and length > (how.window or length)
            return _Sight(None if gone_round else place, how.near_grip, clarity)
        reaches = how.full_layer or how.window_handling is Window.IGNORED
        return _Sight(place if reaches else None, how.far_grip, clarity)

    def _chance(self, context: Context, salt: int) -> float:
        """A number in [0, 1) that is the same whenever the same context comes."""
        return hash((self.seed, len(context), *context.ids[-3:], salt)) % 1000003 / 1000003
