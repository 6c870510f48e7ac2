"""What a request's tokens are and where they repeat, and the prefix cache that requests share.

A context is a chain of segments. Each segment knows, for the tokens in it, which `GRAM` tokens stood before them, so
that the last place where the present ending stood before is found in a few look-ups, however long the context is. The
segments of earlier requests are kept in a radix tree: what a new prompt shares with them costs nothing again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

GRAM = 8
"""Tokens that must have stood there before for a place to count as the same."""


@dataclass(slots=True, eq=False)
class Segment:
    """A run of tokens after its parent's."""

    start: int
    """Position of its first token."""
    ids: list[int]
    index: dict[int, int]
    """Hash of `GRAM` tokens → position of the token that follows them, the last one in this segment."""
    parent: Segment | None = None
    children: dict[int, Segment] = field(default_factory=dict)
    """By their first token."""
    used: int = 0

    @property
    def end(self) -> int:
        return self.start + len(self.ids)


def _index(before: Sequence[int], ids: Sequence[int], start: int) -> dict[int, int]:
    whole = [*before, *ids][:-1]
    first = start - len(before) + GRAM
    return dict(
        zip(
            map(hash, zip(*(whole[shift:] for shift in range(GRAM)), strict=False)),
            range(first, start + len(ids)),
            strict=False,
        )
    )


@dataclass(slots=True)
class Context:
    """The tokens of one request, prompt and output, and where endings stood before."""

    ids: list[int]
    cached: int
    """Tokens of the prompt that the prefix cache had."""
    _indexes: list[dict[int, int]]
    """Newest first."""
    _live: dict[int, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.ids)

    def append(self, token: int) -> None:
        if len(self.ids) >= GRAM:
            self._live[hash(tuple(self.ids[-GRAM:]))] = len(self.ids)
        self.ids.append(token)

    def earlier(self, ahead: Sequence[int] = ()) -> int | None:
        """Where the token stands that followed this ending (with `ahead` said after it) the last time; None if never."""
        ending = [*self.ids[-GRAM:], *ahead][-GRAM:]
        key = hash(tuple(ending))
        place = self._live.get(key)
        if place is not None:
            return place
        for index in self._indexes:
            place = index.get(key)
            if place is not None:
                return place
        return None


class PrefixCache:
    """A radix tree of the tokens of earlier requests, the least recently used given up first."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.held = 0
        self._clock = 0
        self._root = Segment(0, [], {})

    def clear(self) -> None:
        self.held = 0
        self._root = Segment(0, [], {})

    def open(self, prompt: Iterable[int]) -> Context:
        """The context of a request with this prompt."""
        ids = list(prompt)
        # One token at least is always computed: the next one comes from it.
        shared = min(self._match(ids)[1], len(ids) - 1)
        leaf = self._insert(ids)
        indexes = []
        at: Segment | None = leaf
        while at is not None and at is not self._root:
            indexes.append(at.index)
            at = at.parent
        return Context(ids, shared, indexes)

    def keep(self, context: Context) -> None:
        """Remember a finished request, all but its last token, whose state was never computed."""
        self._insert(context.ids[:-1])

    def _match(self, ids: list[int]) -> tuple[Segment, int]:
        """The deepest segment that begins with these tokens, and how many of them the tree holds."""
        at, known = self._root, 0
        while known < len(ids):
            child = at.children.get(ids[known])
            if child is None:
                break
            same = _common(child.ids, ids, known)
            at, known = child, known + same
            if same < len(child.ids):
                break
        return at, known

    def _insert(self, ids: list[int]) -> Segment:
        at, known = self._match(ids)
        if known < at.end:
            at = self._split(at, known)
        if known < len(ids):
            rest = ids[known:]
            before = ids[max(0, known - GRAM) : known]
            child = Segment(known, rest, _index(before, rest, known), at)
            at.children[rest[0]] = child
            self.held += len(rest)
            at = child
        self._clock += 1
        walk: Segment | None = at
        while walk is not None:
            walk.used = self._clock
            walk = walk.parent
        self._evict()
        return at

    def _split(self, segment: Segment, place: int) -> Segment:
        """Cut a segment in two at this position; the upper part is given back."""
        assert segment.parent is not None
        head, tail = segment.ids[: place - segment.start], segment.ids[place - segment.start :]
        before = self._before(segment)
        upper = Segment(segment.start, head, _index(before, head, segment.start), segment.parent)
        upper.used = segment.used
        segment.parent.children[head[0]] = upper
        segment.ids, segment.start, segment.parent = tail, place, upper
        segment.index = _index([*before, *head][-GRAM:], tail, place)
        upper.children[tail[0]] = segment
        return upper

    def _before(self, segment: Segment) -> list[int]:
        """The tokens that stand before a segment, as many as an ending has."""
        found: list[int] = []
        at = segment.parent
        while at is not None and len(found) < GRAM:
            found = [*at.ids[len(found) - GRAM :], *found]
            at = at.parent
        return found

    def _evict(self) -> None:
        while self.held > self.capacity:
            leaves = [leaf for leaf in self._leaves() if leaf.used < self._clock]
            if not leaves:
                return
            oldest = min(leaves, key=lambda leaf: leaf.used)
            assert oldest.parent is not None
            del oldest.parent.children[oldest.ids[0]]
            self.held -= len(oldest.ids)

    def _leaves(self) -> list[Segment]:
        leaves, waiting = [], list(self._root.children.values())
        while waiting:
            segment = waiting.pop()
            waiting += segment.children.values()
            if not segment.children:
                leaves.append(segment)
        return leaves


def _common(left: list[int], right: list[int], offset: int) -> int:
    """How many tokens at the beginning of `left` stand in `right` from `offset` on."""
    low, high = 0, min(len(left), len(right) - offset)
    if left[:high] == right[offset : offset + high]:
        return high
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[offset + low : offset + middle]:
            low = middle
        else:
            high = middle - 1
    return low
