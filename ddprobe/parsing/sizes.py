"""Sizes and durations as people type them: `1k` is 1024 tokens, `1.5k`, `128k`, `1m`; `25`, `25s`, `2m`, `1.5h`."""

from __future__ import annotations

import re
from decimal import Decimal

from ddprobe.errors import UsageError

_FORM = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)\s*([a-z]?)\Z", re.IGNORECASE | re.ASCII)
_SIZES = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3}
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}


def size(text: str) -> int:
    """The number that a size stands for. Raises `UsageError` for what is no size or no whole number.

    >>> size("1.5k"), size("128k"), size("1M"), size("4096")
    (1536, 131072, 1048576, 4096)
    """
    value = _value(text, _SIZES)
    if value is None or value != int(value):
        raise UsageError(f"{text!r} is not a size", "sizes look like 4096, 1k (1024), 1.5k, 128k or 1m")
    return int(value)


def short(number: int) -> str:
    """A size as people write it, exact.

    >>> short(1536), short(131072), short(2200), short(2097152)
    ('1.5k', '128k', '2200', '2m')
    """
    for unit, factor in (("m", 1024**2), ("k", 1024)):
        if number >= factor and number % (factor // 2) == 0:
            return f"{number / factor:g}{unit}"
    return str(number)


def duration(text: str) -> float:
    """Seconds. Raises `UsageError` for what is no duration.

    >>> duration("25"), duration("1.5s"), duration("2m")
    (25.0, 1.5, 120.0)
    """
    value = _value(text, _SECONDS)
    if value is None:
        raise UsageError(f"{text!r} is not a duration", "durations look like 25 (seconds), 1.5s, 2m or 1h")
    return float(value)


def _value(text: str, units: dict[str, int]) -> Decimal | None:
    form = _FORM.match(text.strip())
    unit = units.get(form[2].lower()) if form else None
    return None if form is None or unit is None else Decimal(form[1]) * unit
