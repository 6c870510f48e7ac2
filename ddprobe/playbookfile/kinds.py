"""Kinds of values: what a var may hold, and what a probe's setting takes. Mistakes are `ValueError`, in words."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

from ddprobe.errors import UsageError
from ddprobe.parsing import sizes
from ddprobe.probes import Setting

MOST = 2**53
"""Beyond it a number in JSON is no longer exact."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of var."""

    name: str
    about: str
    read: Callable[[Any], Any]
    """From a plain value of the file, or from what was typed after `--set name=`."""
    sample: Any
    """A value of it, to see whether a setting would take one."""
    many: bool = False


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise ValueError(f"must be text (put it in quotes), not {shown(value)}")


def _whole(value: Any) -> int:
    if isinstance(value, str):
        negative = value.strip().startswith("-")
        try:
            value = sizes.size(value.strip().removeprefix("-")) * (-1 if negative else 1)
        except UsageError:
            raise ValueError(f"must be a whole number, not {shown(value)}") from None
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > MOST:
        raise ValueError(f"must be a whole number, not {shown(value)}")
    return value


def _number(value: Any) -> float:
    if isinstance(value, str):
        try:
            # Python would take 1_000 and the digits of any script.
            value = float(value if value.isascii() and "_" not in value else "")
        except ValueError:
            raise ValueError(f"must be a number, not {shown(value)}") from None
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        raise ValueError(f"must be a number, not {shown(value)}")
    return value


def _truth(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if value in ("true", "false"):
        return bool(value == "true")
    raise ValueError(f"must be true or false, not {shown(value)}")


def _size(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MOST:
        return value
    try:
        found = sizes.size(value) if isinstance(value, str) else 0
    except UsageError:
        found = 0
    if not 0 < found <= MOST:
        raise ValueError(f"must be a size (4096, 16k, 1.5k, 1m), not {shown(value)}")
    return found


def seconds(value: Any) -> float:
    """A duration that is above 0."""
    try:
        found = sizes.duration(str(value)) if isinstance(value, str | int | float) else 0.0
    except UsageError:
        found = 0.0
    if isinstance(value, bool) or not 0 < found < math.inf:
        raise ValueError(f"must be a duration (25, 1.5s, 2m, 1h), not {shown(value)}")
    return found


def _several(read: Callable[[Any], Any]) -> Callable[[Any], tuple[Any, ...]]:
    def of(value: Any) -> tuple[Any, ...]:
        if isinstance(value, str):
            value = [part.strip() for part in value.split(",") if part.strip()]
        if not isinstance(value, list | tuple):
            raise ValueError(f"must be a list, not {shown(value)}")
        return tuple(read(item) for item in value)

    return of


KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("text", "text", _text, "text"),
        Kind("int", "a whole number", _whole, 1),
        Kind("number", "a number", _number, 1.0),
        Kind("bool", "true or false", _truth, True),
        Kind("size", "a size in tokens: 4096, 16k, 1m", _size, 1024),
        Kind("duration", "seconds: 25, 1.5s, 2m", seconds, 1.0),
        Kind("list", "texts, separated by commas", _several(_text), ("text",), many=True),
        Kind("sizes", "sizes in tokens, separated by commas: 1k,16k", _several(_size), (1024,), many=True),
    )
}


def as_setting(setting: Setting, value: Any) -> Any:
    """The value as the probe's setting has it: lists as tuples, a list for a `Listed` text joined by commas."""
    kind = _bare(setting.type)
    if get_origin(kind) is tuple:
        item = get_args(kind)[0]
        values = value if isinstance(value, list | tuple) else (value,)
        return tuple(_one(item, each) for each in values)
    if setting.listed and isinstance(value, list | tuple):
        words = [_one(str, item) for item in value]
        if inner := next((word for word in words if "," in word), None):
            raise ValueError(f"holds {inner!r}: a comma separates the values of this setting")
        return ",".join(words)
    return _one(kind, value)


def _one(kind: Any, value: Any) -> Any:
    if kind is bool:
        if not isinstance(value, bool):
            raise ValueError(f"must be true or false, not {shown(value)}")
        return value
    if kind is int:
        return _whole(value)
    if kind is float:
        return seconds(value) if isinstance(value, str) else _number(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return _text(value)


def _bare(kind: Any) -> Any:
    if get_origin(kind) in (Union, UnionType):
        return next(part for part in get_args(kind) if part is not NoneType)
    return kind


def takes(setting: Setting) -> str:
    """What a setting takes, in words."""
    kind = _bare(setting.type)
    if get_origin(kind) is tuple or setting.listed:
        return "a list of texts"
    return {bool: "true or false", int: "a whole number", float: "a number"}.get(kind, "text")


def half(text: str) -> bool:
    """Whether it holds half a character, which UTF-8 cannot say: `\\ud800`, or a byte of a command line that is none."""
    return any("\ud800" <= letter <= "\udfff" for letter in text)


def shown(value: Any) -> str:
    """A value as a message repeats it."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
