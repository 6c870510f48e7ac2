"""Long, dull, grammatical prose that has nothing to do with any passage: what contexts are filled with.

Sentences are drawn from a small grammar and never repeated, so that no far part of a context predicts a later one
word for word. The text for a seed is the same everywhere, and a shorter one is the beginning of a longer one.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from ddprobe.arms.base import FILLER, Ids
from ddprobe.errors import Unanswered

PEOPLE = """
baker, miller, teacher, nurse, farmer, carpenter, clerk, gardener, postman, shepherd, tailor, student, doctor,
neighbour, librarian, fisherman, mechanic, printer, painter, surveyor, widow, cousin, landlord, porter, driver,
apprentice, musician, translator, watchmaker, photographer, waiter, judge, grocer, plumber, weaver, chemist, sailor,
bookkeeper, electrician, midwife, conductor, stranger, visitor, old man, young woman, twins' mother, night guard
"""
NAMES = """
Anna, Peter, Clara, Thomas, Elena, Martin, Sofia, Daniel, Irene, Victor, Laura, Simon, Nora, Philip, Helen, Oscar,
Julia, Robert, Agnes, Walter, Teresa, Hugo, Miriam, Leon, Edith, Bruno, Olga, Samuel, Rosa, Albert
"""
THINGS = """
letter, basket, lamp, chair, ladder, map, coat, bicycle, kettle, notebook, blanket, suitcase, table, mirror, hammer,
bottle, parcel, carpet, candle, newspaper, spade, bucket, drawing, key, clock, cup, bench, curtain, wheel, rope, box,
radio, ticket, shelf, saw, pillow, stove, painting, violin, jacket, bag of flour, loaf of bread, pair of gloves,
crate of apples, list of names, box of nails, piece of cloth, bundle of straw, stack of plates, jar of honey
"""
ADJECTIVES = """
small, heavy, broken, new, yellow, plain, dusty, narrow, borrowed, wooden, green, cheap, forgotten, clean, round,
old, wet, large, quiet, simple, useful, strange, long, warm, empty, painted, folded, ordinary, faded, solid, light,
brown, second, spare, good, careful, expensive, grey, half-finished, familiar, ugly, soft
"""
PLACES = """
in the kitchen, behind the church, near the station, at the market, by the river, in the garden, under the stairs,
on the bridge, at the end of the street, beside the well, in the back room, outside the town hall, along the canal,
in the workshop, on the hill, next to the bakery, at the school, in the attic, across the square, below the dam,
near the orchard, at the bus stop, inside the barn, behind the counter, on the platform, in the courtyard,
at the edge of the wood, in front of the library, on the second floor, between the two houses
"""
TIMES = """
in the morning, after lunch, before sunset, on Monday, on Thursday, that evening, the next day, a week later,
at noon, early in spring, towards the end of winter, last year, during the storm, on the first of May, after the war,
once a month, late at night, by the time the shops had closed, for several days, in those years, at about four,
before the guests arrived, when the rain had stopped, on the way home, every second Sunday, without any hurry
"""
DID = """
carried, repaired, sold, found, painted, lost, measured, borrowed, cleaned, hid, described, moved, bought, forgot,
returned, opened, examined, wrapped, counted, remembered, wanted, noticed, dropped, lifted, mended, dragged, kept,
burned, unpacked, tested, photographed, copied, delivered, refused, admired, pushed, sketched, replaced
"""
ACTED = """
waited, laughed, slept, worked, walked, listened, argued, sang, rested, answered, smiled, hesitated, left, returned,
hurried, whistled, complained, nodded, stood, coughed, talked, read, wept, agreed, apologised, watched, stayed
"""
MANNERS = """
quietly, slowly, without a word, for a long time, with some reluctance, as usual, twice, alone, very politely,
at once, in silence, almost cheerfully, with both hands in the pockets, for no clear reason, more than once, patiently,
a little too loudly, with great care, until it was dark, like everybody else, from a distance, all afternoon, half an hour,
without looking up, in the wrong direction, rather badly, just in time, with a kind of pride
"""
THOUGHT = """
said, believed, knew, thought, explained, hoped, doubted, heard, wrote, admitted, was told, feared, pretended, supposed
"""
STATES = """
the shop was closed, the road was under repair, there was no more coal, the bus ran late, nobody had a key,
the price had gone up, the wind had changed, the roof was leaking, it was a holiday, the light was poor,
the bridge was being painted, the water was cold, supper was ready, the bell had rung, the door stood open,
the harvest was late, the paper was damp, the children were asleep, the train had been cancelled, the snow had melted,
the money was gone, the field lay empty, the engine would not start, the letter had not arrived, the fog was thick
"""
LINKS = "because, although, so, while, until, before, after, since, as soon as, even though"
NUMBERS = "two, three, four, five, six, seven, eight, nine, ten, a dozen, twenty, some thirty, hundreds of"


def _list(text: str) -> tuple[str, ...]:
    return tuple(" ".join(word.split()) for word in text.split(","))


WORDS: Mapping[str, tuple[str, ...]] = {
    "person": tuple(f"the {word}" for word in _list(PEOPLE)) + _list(NAMES),
    "thing": _list(THINGS),
    "adjective": _list(ADJECTIVES),
    "place": _list(PLACES),
    "time": _list(TIMES),
    "did": _list(DID),
    "acted": _list(ACTED),
    "manner": _list(MANNERS),
    "thought": _list(THOUGHT),
    "state": _list(STATES),
    "link": _list(LINKS),
    "number": _list(NUMBERS),
}
CLAUSES = (
    "{person} {did} the {thing}",
    "{person} {did} the {adjective} {thing} {place}",
    "{person} {acted} {manner}",
    "{person} and {person} {acted} {place}",
    "{person} {did} {number} {adjective} things and the {thing}",
    "{person} {did} every {thing} that {person} had {place}",
    "the {thing} {place} was {adjective}",
    "{state}",
)
SENTENCES = (
    "<clause>.",
    "{person} {acted} {manner} {place}.",
    "{time}, <clause>.",
    "<clause>, and {person} {acted} {manner}.",
    "<clause> {link} <clause>.",
    "{person} {thought} that <clause>, but <clause>.",
    "{place}, {time}, {person} {did} the {adjective} {thing}; <clause>.",
    "there were {number} people {place} when {person} {did} the {thing}, and none of them {acted} {manner}.",
    "{link} <clause>, {person} {did} the {thing} {manner}, and {time} <clause>.",
    "was it {person} who {did} the {adjective} {thing} {place}, or was it {person}?",
    "{person} {thought} that the {thing} was {adjective}, that <clause>, and that {person} had only {acted} {manner}.",
    "nobody asked {person} why <clause>.",
    "neither {person} nor {person} {did} the {thing} that {person} had {did} {place} {time}.",
)
PARAGRAPH = (4, 9)
"""Sentences of a paragraph: at least, and fewer than."""


def filler(seed: int, characters: int) -> str:
    """At least so many characters of prose, ending with a whole sentence."""
    written: list[str] = []
    size = 0
    for piece in _pieces(seed):
        if size >= characters:
            break
        written.append(piece)
        size += len(piece)
    return "".join(written)


def take(tokens: Mapping[str, Ids], count: int) -> Ids:
    """The first ids of the filler. Raises `Unanswered` when there are not enough of them."""
    have = len(tokens[FILLER])
    if have < count:
        raise Unanswered(FILLER, f"has {have} tokens, {count} are needed")
    return tokens[FILLER][: max(0, count)]


def _pieces(seed: int) -> Iterator[str]:
    """Sentences without end, no two alike, each with the white space before it."""
    # Only `random()` promises the same numbers for a seed in every version of Python.
    draw = random.Random(f"{seed}/filler").random
    told: set[str] = set()
    left = 0
    lead = ""
    while True:
        sentence = _sentence(draw)
        if sentence in told:
            continue
        told.add(sentence)
        if left == 0:
            left = PARAGRAPH[0] + int(draw() * (PARAGRAPH[1] - PARAGRAPH[0]))
            lead = "\n\n" if len(told) > 1 else ""
        yield lead + sentence
        lead = " "
        left -= 1


def _sentence(draw: Callable[[], float]) -> str:
    """One sentence, in which no two slots hold the same word."""
    used: set[str] = set()

    def pick(options: Sequence[str]) -> str:
        return options[int(draw() * len(options))]

    def fill(slot: re.Match[str]) -> str:
        while (word := pick(WORDS[slot[1]])) in used:
            pass
        used.add(word)
        return word

    template = re.sub("<clause>", lambda _: pick(CLAUSES), pick(SENTENCES))
    sentence = re.sub(r"\{(\w+)\}", fill, template)
    return sentence[0].upper() + sentence[1:]
