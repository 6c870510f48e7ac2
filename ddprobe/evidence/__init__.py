"""Files collected elsewhere → facts, recognised by content. Pure over documents: opening them is done at the edge.

A document may hold several files (pasted one after the other, fenced, JSON within a log): each part is recognised for
itself. Names of files mean nothing here; they are only carried along, to cite.
"""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ddprobe.evidence import beside, conclusions, pasted, prompts
from ddprobe.evidence._spec_lines import TREES
from ddprobe.evidence.counters import METRICS
from ddprobe.evidence.document import SAMPLE, Document, Found, Recogniser, of_bytes
from ddprobe.facts import WeightNames
from ddprobe.model import Fact
from ddprobe.parsing import source_code

T = TypeVar("T")
RECOGNISERS = (
    "launch", "environment", "startup", "configs", "points", "tables", "counters", "gpu", "kernel_log", "source_lines", "decode_logs", "benchmarks", "versions", "claims",
)  # fmt: skip
"""The subjects, each a module here with `recognise`, in the order in which their facts are judged."""
STREAMED = "decode_logs"
"""The one that reads a large document as a whole; the others read what stands beside its decode lines."""
ASIDE = ("versions", "tables")
"""What a text says of versions, or shows in a table, does not make the rest of it known."""
LAST_RESORT = "claims"
"""Free text: only where nothing else knows what it is."""
LONGEST = 300
"""Characters of what an exception says."""


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
    """What the document is. `mask` takes secrets out of what is kept of a large one.

    A fault of our own costs what it would have found, and is told. Raises `OSError` where the document cannot be read.
    """
    troubles: list[str] = []
    try:
        return _recognised(document, mask, troubles)
    except OSError:
        raise
    except Exception as error:
        return Reading(document, (), troubles=(*troubles, _bug("reading this file", error)))


def _recognised(document: Document, mask: Callable[[bytes], bytes], troubles: list[str]) -> Reading:
    whole = document
    document = _tried("unwrapping it", lambda: pasted.unwrapped(whole, whole.sample()), whole, troubles)
    sample = document.sample()
    told = _tried("conclusions", lambda: conclusions.recognise(sample), None, troubles)
    if told is not None:
        return Reading(document, (told,), troubles=tuple(troubles), rank=(len(RECOGNISERS), ""))
    if language := _tried("source code", lambda: source_code.language(sample), "", troubles):
        told = Found(f"source code ({language}), which is no evidence", ())
        return Reading(document, (told,), troubles=tuple(troubles), rank=(len(RECOGNISERS), ""))
    if document.large:
        return _large(document, sample, mask, troubles)
    text = document.whole()
    if text is None:
        return Reading(document, (), troubles=tuple(troubles))
    # No fallback: with the words of requests in it, a document is no evidence.
    document = prompts.without(document, text)
    sample, text = document.sample(), document.whole() or ""
    found: list[tuple[str, Found]] = []
    parts = _parts(document.key, text, troubles)
    for part in parts or (pasted.Part(document, sample),):
        _ask(part.document, part.sample, RECOGNISERS, found, troubles)
    return Reading(
        document,
        tuple(each for _, each in found),
        tuple(part.document.key for part in parts),
        troubles=tuple(troubles),
        rank=_rank(found, text.encode("utf-8", "replace")),
    )


def _behind(document: Document, sample: str, troubles: list[str]) -> str:
    """The beginning of a large one, behind JSON that it begins with: that may be longer than what is looked at else."""
    behind = pasted.behind(sample)
    if behind == sample and sample.lstrip("\ufeff \t\r\n").startswith("{"):
        longer = _tried("JSON in front of it", lambda: document.beginning(beside.PASTED), sample, troubles)
        told = pasted.behind(longer)
        behind = told[:SAMPLE] if told != longer else sample
    return behind


def _parts(key: str, text: str, troubles: list[str]) -> tuple[pasted.Part, ...]:
    return _tried("what was pasted together", lambda: pasted.parts(key, text), (), troubles)


def _tried(what: str, attempt: Callable[[], T], otherwise: T, troubles: list[str]) -> T:
    """What the attempt gives; `otherwise`, and a word of it, where it has a bug."""
    try:
        return attempt()
    except OSError:
        raise
    except Exception as error:
        troubles.append(_bug(what, error))
        return otherwise


def _bug(what: str, error: Exception) -> str:
    said = " ".join(str(error).split())[:LONGEST]
    return f"ddprobe has a bug in reading {what}: {type(error).__name__}: {said}; please report it"


def _large(document: Document, sample: str, mask: Callable[[bytes], bytes], troubles: list[str]) -> Reading:
    passing = beside.Beside(document)
    found: list[tuple[str, Found]] = []
    _ask(passing.document(), _behind(document, sample, troubles), (STREAMED,), found, troubles)
    rest = passing.rest(mask)
    others = tuple(name for name in RECOGNISERS if name not in (STREAMED, LAST_RESORT))
    small = of_bytes(document.key, rest)
    parts = _parts(document.key, rest.decode("utf-8", "replace"), troubles)
    beside_it: list[tuple[str, Found]] = []
    for part in parts or (pasted.Part(small, small.sample()),):
        _ask(part.document, part.sample, others, beside_it, troubles)
    for name, told in beside_it:
        found.append((name, Found(told.what, tuple(passing.numbered(fact) for fact in told.facts))))
    if passing.left_out:
        troubles.append(
            f"{passing.left_out} bytes of it, beside the decode lines, were too many to be looked at"
        )
    return Reading(
        document,
        tuple(each for _, each in found),
        tuple(part.document.key for part in parts),
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
        if name == LAST_RESORT and (known or source_code.language(sample)):
            continue
        recogniser: Recogniser = importlib.import_module(f"{__name__}.{name}").recognise
        try:
            told = recogniser(document, sample)
        except Exception as error:
            troubles.append(_bug(name, error))
            continue
        if told is not None:
            known = known or not (name in ASIDE or told.what.startswith(TREES))
            found.append((name, told))


def _rank(found: Sequence[tuple[str, Found]], content: bytes) -> tuple[int, str]:
    first = min((RECOGNISERS.index(name) for name, _ in found), default=len(RECOGNISERS))
    return first, hashlib.sha256(content).hexdigest()


def ordered(readings: Iterable[Reading]) -> list[Reading]:
    """The readings in an order that no name decides."""
    return sorted(readings, key=lambda reading: reading.rank)


def facts(readings: Iterable[Reading], troubles: list[str] | None = None) -> tuple[Fact, ...]:
    """The facts of all of them in this order, those on one thing laid together.

    `troubles` takes a word of a bug in laying them together, which costs only that; without it the bug is raised.
    """
    from ddprobe.evidence import cold_cached, configs

    readings = list(readings)
    told = troubles if troubles is not None else []
    nothing: Mapping[str, Found | None] = {}
    between = _tried("several scrapes of metrics", lambda: _between(readings), nothing, told)
    every = [
        fact
        for reading in readings
        for each in reading.found
        for fact in _instead(reading, each, between).facts
    ]
    if troubles is None:
        return cold_cached.told(configs.merge(every))
    apart = tuple(fact for fact in every if not isinstance(fact, WeightNames))
    return _tried("what belongs together", lambda: cold_cached.told(configs.merge(every)), apart, troubles)


def _between(readings: Sequence[Reading]) -> Mapping[str, Found | None]:
    """Where several documents are scrapes of metrics: what the last says in place of each."""
    from ddprobe.evidence import scrapes

    found = [r.document for r in readings if any(each.what.startswith(METRICS) for each in r.found)]
    return scrapes.together(found) if len(found) > 1 else {}


def _instead(reading: Reading, found: Found, between: Mapping[str, Found | None]) -> Found:
    if not found.what.startswith(METRICS) or reading.document.key not in between:
        return found
    return between[reading.document.key] or Found(found.what, ())
