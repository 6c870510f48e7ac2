"""Settings that could never be asked, told before anything is: what each check says, with the setting it is about."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ddprobe import engines
from ddprobe.errors import UsageError
from ddprobe.parsing import sizes

MAX_CONTEXT = 16 * 1024 * 1024
MAX_SEED = 2**31 - 1
Mistake = tuple[str, str]


def wrong(given: Mapping[str, Any], name: str, check: Callable[[Any], object]) -> Iterator[Mistake]:
    """What a check that raises `UsageError` says to the setting, where it is given."""
    if name in given:
        try:
            check(given[name])
        except UsageError as error:
            yield name, said(error)


def said(error: UsageError) -> str:
    return f"{error.message}: {error.advice}" if error.advice else error.message


def outside(given: Mapping[str, Any], name: str, least: float, most: float) -> Iterator[Mistake]:
    """A number out of its bounds."""
    if name in given and not least <= given[name] <= most:
        yield name, f"{given[name]} is out of bounds: from {least:g} to {most:g}"


def of_requests(given: Mapping[str, Any]) -> Iterator[Mistake]:
    """What the probes that measure a live server take alike."""
    yield from wrong(given, "contexts", _contexts)
    if given.get("max_context"):
        yield from wrong(given, "max_context", _length)
    yield from outside(given, "seed", 0, MAX_SEED)
    yield from outside(given, "request_timeout", 0, 86400)
    if given.get("engine") and given["engine"] not in engines.TABLE:
        yield "engine", f"there is no engine {given['engine']!r}: one of {', '.join(engines.TABLE)}"
    for name in ("url", "plain_url"):
        if given.get(name) and not str(given[name]).startswith(("http://", "https://")):
            yield name, f"{given[name]!r} is no URL as the host sees it: http://127.0.0.1:30000"


def _contexts(text: str) -> None:
    words = [word.strip() for word in text.split(",")] if text else []
    if not all(words):
        raise UsageError(f"{text!r} has an empty place", "as in 1k,16k,64k,128k, or auto")
    for word in words:
        if word != "auto":
            _length(word)


def _length(text: str) -> None:
    if not 1 <= sizes.size(text) <= MAX_CONTEXT:
        raise UsageError(f"{text} tokens are out of bounds", "from 1 to 16m")
