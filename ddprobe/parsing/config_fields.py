"""Looks fields up in a JSON object's sections, whatever type a person gave them, and keeps what is worth noting."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

Scope = tuple[Mapping[str, Any], str]
"""A section of the file, and its path."""

MAX_LIST = 4096
LARGEST = 2**63
"""No field of a model is larger; what is, is nonsense."""


class Fields:
    """Reads typed fields. `places` says where each was found, `notes` what was of a wrong type."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self.notes: dict[str, None] = {}
        self.places: dict[str, str] = {}
        self.top: Scope = (root, "$")
        self.model: Scope = self.top
        """The section looked into first."""

    # --- finding ---------------------------------------------------------------------------------------

    def section(self, scope: Scope, name: str) -> Scope:
        value = scope[0].get(name)
        path = f"{scope[1]}.{name}"
        if value is not None and not isinstance(value, Mapping):
            self.note(f"{path} is {kind_of(value)}, not an object; ignored")
        return (value if isinstance(value, Mapping) else {}, path)

    def find(self, field: str, name: str, *scopes: Scope) -> tuple[Any, str]:
        """The first scope's value that is there and not null, and its path; the path is kept for citing."""
        for scope, path in scopes or (self.model, self.top):
            value = scope.get(name)
            if value is not None:
                self.places[field] = f"{path}.{name}"
                return value, self.places[field]
        return None, f"{(scopes or (self.model,))[0][1]}.{name}"

    def stated(self, field: str, name: str, own: Scope) -> tuple[Any, str]:
        """As SGLang's DFlash reader: the drafter's own section if the key is in it, even as null; else the top."""
        scope = own if name in own[0] else self.top
        return self.find(field, name, scope)

    def note(self, text: str) -> None:
        self.notes[text] = None

    # --- types -----------------------------------------------------------------------------------------

    def as_int(self, value: Any, path: str) -> int | None:
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= LARGEST:
            return value
        number: int | None = None
        if isinstance(value, float) and value.is_integer():
            number = int(value)
        elif isinstance(value, str) and len(value) < 20:
            digits = value.strip().replace("_", "")
            number = int(digits) if digits.lstrip("+-").isdecimal() and digits.isascii() else None
        number = number if number is not None and abs(number) <= LARGEST else None
        if value is not None:
            read_as = f"read as {number}" if number is not None else "ignored"
            self.note(f"{path} is {kind_of(value)}, not a whole number; {read_as}")
        return number

    def as_float(self, value: Any, path: str) -> float | None:
        number: float | None = None
        if isinstance(value, int | float) and not isinstance(value, bool):
            try:
                number = float(value)
            except OverflowError:
                number = None
            if number is not None and math.isfinite(number):
                return number
            number = None
        elif isinstance(value, str) and len(value) < 40:
            try:
                number = float(value)
            except ValueError:
                number = None
            if number is not None and not math.isfinite(number):
                number = None
        if value is not None:
            read_as = f"read as {number:g}" if number is not None else "ignored"
            self.note(f"{path} is {kind_of(value)}, not a number; {read_as}")
        return number

    def integer(self, name: str, *scopes: Scope, field: str = "") -> int | None:
        return self.as_int(*self.find(field or name, name, *scopes))

    def boolean(self, name: str, *scopes: Scope) -> bool | None:
        value, path = self.find(name, name, *scopes)
        if value is None or isinstance(value, bool):
            return value
        read_as = {"true": True, "false": False, "1": True, "0": False}.get(str(value).strip().lower())
        said = f"read as {str(read_as).lower()}" if read_as is not None else "ignored"
        self.note(f"{path} is {kind_of(value)}, not true or false; {said}")
        return read_as

    def text(self, name: str, *scopes: Scope, field: str = "") -> str:
        value, path = self.find(field or name, name, *scopes)
        if isinstance(value, str):
            return value[:200]
        if value is not None:
            self.note(f"{path} is {kind_of(value)}, not a text; ignored")
        return ""

    def texts(self, value: Any, path: str) -> tuple[str, ...] | None:
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self.note(f"{path} is {kind_of(value)}, not a list of texts; ignored")
            return None
        return self._short(tuple(item[:100] for item in value[: MAX_LIST + 1]), path)

    def integers(self, value: Any, path: str) -> tuple[int, ...] | None:
        if value is None:
            return None
        if not isinstance(value, list):
            self.note(f"{path} is {kind_of(value)}, not a list of whole numbers; ignored")
            return None
        numbers = tuple(self.as_int(item, f"{path}[{n}]") for n, item in enumerate(value[: MAX_LIST + 1]))
        if any(number is None for number in numbers):
            return None
        return self._short(tuple(number for number in numbers if number is not None), path)

    def _short(self, items: tuple[Any, ...], path: str) -> tuple[Any, ...]:
        if len(items) > MAX_LIST:
            self.note(f"{path} holds more than {MAX_LIST} entries; the rest was left out")
        return items[:MAX_LIST]


def kind_of(value: Any) -> str:
    """A value of a wrong type, in words."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f"the text {value[:40]!r}"
    if isinstance(value, int | float):
        return f"the number {repr(value)[:40]}"
    if value is None:
        return "null"
    return "an object" if isinstance(value, Mapping) else f"a list of {len(value)}"


def plain(value: Any) -> Any:
    """The value if it may stand in a fact: a scalar, or a short list of them as a tuple; else its description."""
    if value is None or (isinstance(value, bool | int) and abs(value) <= LARGEST):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, str):
        return value if len(value) <= 200 else value[:200] + "…"
    if isinstance(value, list | tuple) and len(value) <= 64 and not any(_deep(item) for item in value):
        return tuple(plain(item) for item in value)
    if isinstance(value, Mapping):
        return f"an object of {len(value)} fields"
    return f"a list of {len(value)}" if isinstance(value, list | tuple) else f"a {type(value).__name__}"


def _deep(value: Any) -> bool:
    return isinstance(value, list | tuple | Mapping)
