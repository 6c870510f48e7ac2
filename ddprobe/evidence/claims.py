"""What somebody says in prose: numbers taken as claims, and as nothing more.

    20-25 tok/s with 5.9-6.1 accepted per step      throughput 20 and 25, accepted per step 5.9 and 6.1
    the accept rate: 0.33 on the old one, 0.65 …    accept rate 0.33 and 0.65
    average draft acceptance is 9%                  accept rate 0.09
    118 tok/s at 1.4k, 0.7 at 185k                  throughput 118 and 0.7, each at its length
    repeated text 7.88/7.00/7.88 at 1k/16k/128k     commit length 7.88, 7.00 and 7.88

Only sentences are read: a log, a configuration, code and its comments are full of numbers that nobody claims.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ddprobe.evidence.document import Document, Found
from ddprobe.facts import Claim
from ddprobe.model import Cite

STATEMENT = "a statement in text"
"""The origin of what a person says: a reason to look, and no measurement."""
LONGEST = 32 * 1024
MOST_LINES = 200
MOST = 64

_NUMBER = r"(?<![\w.])(\d{1,6}(?:\.\d{1,6})?)"
_RANGE = _NUMBER + r"(?:\s?(?:-|–|to|\.\.)\s?(\d{1,6}(?:\.\d{1,6})?))?"
_SPEED = re.compile(_RANGE + r"\s*(?:tok(?:en)?s?/s(?:ec)?|t/s|tokens? per second|tps)\b", re.IGNORECASE)
_PER_STEP = re.compile(
    _RANGE + r"\s*(?:(?:tokens?|drafts?)\s+)?(?:are\s+)?accepted\s*(?:tokens?\s*)?(?:/|per|a)\s*step",
    re.IGNORECASE,
)
_COMMITTED = re.compile(
    _RANGE + r"\s*(?:tok(?:en)?s?\s*(?:/|per|a)\s*step|committed\s*(?:/|per|a)\s*step)", re.IGNORECASE
)
_AT = r"\s*(?:at|@)\s*(\d{1,4}(?:\.\d{1,2})?\s?[kK])\b"
_PLACE = re.compile(_AT)
_ALSO = re.compile(r"(?:\s|,|;|→|->|and|but|only|to|vs\.?|versus|context|tokens)*" + _NUMBER + _AT)
"""Another figure of the same kind, at another length: `118 tok/s at 1.4k, 0.7 at 185k`."""
_SERIES = re.compile(
    r"(?<![\w./])(\d{1,2}\.\d{1,3}(?:\s?/\s?\d{1,2}\.\d{1,3})+)\s*(?:at|@)\s*"
    r"(\d{1,4}(?:\.\d)?[kK](?:\s?/\s?\d{1,4}(?:\.\d)?[kK])+)"
)
"""`7.88/7.00/7.88 at 1k/16k/64k`: as many lengths as figures."""
_RATIO = re.compile(r"rate|ratio|speed|tok|ms\b|second", re.IGNORECASE)
_LENGTH = re.compile(
    r"(?<!avg_)(?:accept(?:ance|ed)?|commit)[ _]len(?:gth)?\s*"
    r"(?:of|is|was|=|:|at|near|about|stays at|(?:drops|falls|fell|went|goes)(?: down)? from)?\s*" + _RANGE,
    re.IGNORECASE,
)
_ANOTHER_LENGTH = re.compile(
    r"(?:\s|,|;|→|->|\(|\)|\b(?:on|for|at|with|in|and|but|only|just|to|from|vs\.?|versus|past|beyond|above|below|than|after|before|"
    r"short|long|longer|shorter|repeated|prompts?|contexts?|text|tokens?|prose|code|everywhere|else|the|a|it|is|was|drops?|falls?|fell|"
    r"down|then|now|old|new|build|anything|\d{1,4}(?:\.\d)?[kK])\b)+?(\d{1,2}\.\d{1,3})(?![\w.%]|\s*(?:tok|t/s|ms|s\b|x\b|GB|k\b))",
    re.IGNORECASE,
)
"""A further length in the same words: `accept len 6.4 on short prompts, 1.0 on anything past 40k`."""
_ABOUT_RATE = re.compile(r"accept(?:ance|ed)?[ _-]?(?:rate|ratio)|acceptance(?![ _]len)", re.IGNORECASE)
_SHARE = re.compile(r"(?<![\w.])(0?\.\d{1,4}|[01]\.\d{1,4}|\d{1,3}(?:\.\d{1,2})?\s?%)(?![\w])")
_PERCENT = re.compile(r"(\d{1,3}(?:\.\d{1,2})?)\s?(?:-|–|to)\s?(\d{1,3}(?:\.\d{1,2})?)\s?%")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])|\n")
_NO_PROSE = re.compile(
    r"^\s*(?:[\[{}\]<|#>$+\\]|//|/\*|--\s|\(\w+ pid=|\d{4}-\d\d-\d\d|\d+\.\d\d\.\d{3}|\w+\s*[=:]\s*\S+$|[A-Z_]{4,}=|import |def |from |[\w.-]+:\d+:)"
)
_WORD = re.compile(r"(?<!\w)[A-Za-z']{2,}(?!\w)")
_LEAST_WORDS = 4


def recognise(document: Document, sample: str) -> Found | None:
    """The figures that its sentences state; None when it holds no sentence with one."""
    if "\x00" in sample or len(sample) >= LONGEST or sample.count("\n") > MOST_LINES:
        return None
    if sample.lstrip("\ufeff \t\r\n").startswith(("{", "[")):
        return None
    found: list[Claim] = []
    for number, line in enumerate(sample.split("\n"), 1):
        if not _is_prose(line):
            continue
        for sentence in _SENTENCE.split(line[:4000]):
            found += _claims(sentence, Cite(document.key, f"line {number}"))
    if not found:
        return None
    claims = tuple(dict.fromkeys(found))[:MOST]
    return Found(f"text with {len(claims)} stated figure{'s' if len(claims) > 1 else ''}", claims)


def _is_prose(line: str) -> bool:
    return not _NO_PROSE.match(line) and "{" not in line and len(_WORD.findall(line[:4000])) >= _LEAST_WORDS


def _claims(sentence: str, cite: Cite) -> Iterator[Claim]:
    yield from _series(sentence, cite)
    sentence = _SERIES.sub(" ", sentence)
    for what, pattern in (
        ("throughput", _SPEED),
        ("accepted per step", _PER_STEP),
        ("commit length", _COMMITTED),
        ("accept length", _LENGTH),
    ):
        for found in pattern.finditer(sentence):
            for value in _ends(found.group(1), found.group(2)):
                yield _claim(what, value, cite, _place(sentence, found.end()))
            if what == "throughput":
                yield from _others(sentence, found.end(), cite)
            if what == "accept length":
                yield from _lengths(sentence, found.end(), cite)
    if _ABOUT_RATE.search(sentence):
        for value in _rates(sentence):
            yield _claim("accept rate", value, cite)


def _place(sentence: str, at: int) -> str:
    """At which length it holds, where that stands behind it."""
    found = _PLACE.match(sentence, at)
    return f"at {found[1]}" if found else ""


def _others(sentence: str, at: int, cite: Cite) -> Iterator[Claim]:
    """Speeds without their unit, behind one that has it and a length."""
    place = _PLACE.match(sentence, at)
    while place and (found := _ALSO.match(sentence, place.end())):
        yield _claim("throughput", float(found[1]), cite, f"at {found[2]}")
        place = _PLACE.match(sentence, found.end(1))


def _lengths(sentence: str, at: int, cite: Cite) -> Iterator[Claim]:
    while (found := _ANOTHER_LENGTH.match(sentence, at)) and float(found[1]) >= 1:
        yield _claim("accept length", float(found[1]), cite, _place(sentence, found.end(1)))
        at = found.end(1)


def _series(sentence: str, cite: Cite) -> Iterator[Claim]:
    """Tokens per step at several lengths; of shares and speeds nothing is taken so."""
    for found in _SERIES.finditer(sentence):
        values, places = (re.split(r"\s?/\s?", found[group]) for group in (1, 2))
        about = sentence[max(0, found.start() - 40) : found.end() + 12]
        if len(values) == len(places) and not _RATIO.search(about) and all(float(v) >= 1 for v in values):
            for value, place in zip(values, places, strict=True):
                yield _claim("commit length", float(value), cite, f"at {place}")


def _ends(low: str, high: str | None) -> Iterator[float]:
    """The number, or both ends of the range."""
    yield float(low)
    if high is not None:
        yield float(high)


def _rates(sentence: str) -> Iterator[float]:
    """Shares in a sentence about an accept rate: decimals up to 1 and percentages."""
    for pattern in (_SPEED, _PER_STEP, _COMMITTED, _LENGTH):
        sentence = pattern.sub(" ", sentence)
    for found in _PERCENT.finditer(sentence):
        yield from (float(end) / 100 for end in found.groups() if float(end) <= 100)
    for cell in _SHARE.findall(_PERCENT.sub(" ", sentence)):
        value = float(cell.rstrip("% ")) / 100 if "%" in cell else float(cell)
        if value <= 1:
            yield value


def _claim(what: str, value: float, cite: Cite, window: str = "") -> Claim:
    return Claim(what=what, value=value, origin=STATEMENT, window=window, source=(cite,))
