"""Files collected elsewhere → facts, recognised by content. Pure over documents: opening them is done at the edge.

A document may hold several files (pasted one after the other, fenced, JSON within a log): each part is recognised for
itself. Names of files mean nothing here; they are only carried along, to cite.
"""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ddprobe.evidence import beside, conclusions, pasted
from ddprobe.evidence.document import Document, Found, Recogniser, of_bytes
from ddprobe.model import Fact

RECOGNISERS = (
    "launch", "environment", "startup", "configs", "points", "counters", "gpu", "source_lines", "decode_logs", "claims",
)  # fmt: skip
"""The subjects, each a module here with `recognise`, in the order in which their facts are judged."""
STREAMED = "decode_logs"
"""The one that reads a large document as a whole; the others read what stands beside its decode lines."""
LAST_RESORT = "claims"
"""Free text: only where nothing else knows what it is."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A document as it was understood."""

    document: Document
    found: tuple[Found, ...]
    parts: tuple[str, ...] = ()
    """Keys of the parts that it was split into."""
    rest: bytes | None = None
    """Of a large one: what stands beside its decode lines, secrets masked."""
    troubles: tuple[str, ...] = ()
    """What was not understood because of a fault of our own."""
    rank: tuple[int, str] = (0, "")
    """Its place among others when they are judged: by what it is, then by content; never by its name."""


def read(documents: Iterable[Document]) -> tuple[tuple[Document, tuple[Found, ...]], ...]:
    """What each document is, and the facts in it."""
    return tuple((reading.document, reading.found) for reading in map(recognise, documents))


def recognise(document: Document, mask: Callable[[bytes], bytes] = bytes) -> Reading:
    """What the document is. `mask` takes secrets out of what is kept of a large one."""
    sample = document.sample()
    document = pasted.unwrapped(document, sample)
    sample = document.sample()
    told = conclusions.recognise(sample)
    if told is not None:
        return Reading(document, (told,), rank=(len(RECOGNISERS), ""))
    if document.large:
        return _large(document, sample, mask)
    text = document.whole()
    if text is None:
        return Reading(document, ())
    found: list[tuple[str, Found]] = []
    troubles: list[str] = []
    parts = pasted.parts(document.key, text)
    for part in parts or (pasted.Part(document, sample),):
        _ask(part.document, part.sample, RECOGNISERS, found, troubles)
    return Reading(
        document,
        tuple(each for _, each in found),
        tuple(part.document.key for part in parts),
        troubles=tuple(troubles),
        rank=_rank(found, text.encode("utf-8", "replace")),
    )


def _large(document: Document, sample: str, mask: Callable[[bytes], bytes]) -> Reading:
    passing = beside.Beside(document)
    found: list[tuple[str, Found]] = []
    troubles: list[str] = []
    _ask(passing.document(), sample, (STREAMED,), found, troubles)
    rest = passing.rest(mask)
    others = tuple(name for name in RECOGNISERS if name not in (STREAMED, LAST_RESORT))
    small = of_bytes(document.key, rest)
    beside_it: list[tuple[str, Found]] = []
    _ask(small, small.sample(), others, beside_it, troubles)
    for name, told in beside_it:
        found.append((name, Found(told.what, tuple(passing.numbered(fact) for fact in told.facts))))
    if passing.left_out:
        troubles.append(
            f"{passing.left_out} bytes of it, beside the decode lines, were too many to be looked at"
        )
    return Reading(
        document,
        tuple(each for _, each in found),
        rest=rest,
        troubles=tuple(troubles),
        rank=_rank(found, rest),
    )


def _ask(
    document: Document,
    sample: str,
    names: Sequence[str],
    found: list[tuple[str, Found]],
    troubles: list[str],
) -> None:
    """Every recogniser of these names, each on its own: a fault in one costs only what it would have found."""
    known = False
    for name in names:
        if name == LAST_RESORT and known:
            continue
        recogniser: Recogniser = importlib.import_module(f"{__name__}.{name}").recognise
        try:
            told = recogniser(document, sample)
        except Exception as error:
            troubles.append(
                f"ddprobe has a bug in reading {name}: {type(error).__name__}: {error}; please report it"
            )
            continue
        if told is not None:
            known = True
            found.append((name, told))


def _rank(found: Sequence[tuple[str, Found]], content: bytes) -> tuple[int, str]:
    first = min((RECOGNISERS.index(name) for name, _ in found), default=len(RECOGNISERS))
    return first, hashlib.sha256(content).hexdigest()


def ordered(readings: Iterable[Reading]) -> list[Reading]:
    """The readings in an order that no name decides."""
    return sorted(readings, key=lambda reading: reading.rank)


def facts(readings: Iterable[Reading]) -> tuple[Fact, ...]:
    """The facts of all of them in this order, those on one thing laid together."""
    from ddprobe.evidence import configs

    return tuple(
        configs.merge([fact for reading in readings for each in reading.found for fact in each.facts])
    )
