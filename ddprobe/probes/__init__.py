"""The named probes: one question a file, in families. A probe's name is its path: `source.grep`."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass, fields
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from ddprobe.errors import UsageError
from ddprobe.model import Help, Listed, Probe

FAMILIES = ("host", "gpu", "engine", "source", "draft")


def names() -> tuple[str, ...]:
    """Every probe there is, sorted by family and name. Imports the families, not the probes."""
    found: list[str] = []
    for family in FAMILIES:
        try:
            package = importlib.import_module(f"{__name__}.{family}")
        except ModuleNotFoundError:
            continue
        found += [
            f"{family}.{m.name}" for m in pkgutil.iter_modules(package.__path__) if not m.name.startswith("_")
        ]
    return tuple(found)


def load(name: str) -> type[Probe]:
    """The probe of that name. Raises `UsageError` with the nearest names when there is none."""
    if name not in names():
        import difflib

        near = difflib.get_close_matches(name, names(), n=3, cutoff=0.4)
        raise UsageError(
            f"there is no probe {name!r}",
            f"did you mean {' or '.join(near)}?" if near else "see ddprobe probes",
        )
    module = importlib.import_module(f"{__name__}.{name}")
    for value in vars(module).values():
        if isinstance(value, type) and issubclass(value, Probe) and value.__module__ == module.__name__:
            return value
    raise TypeError(f"{module.__name__} defines no probe")


@dataclass(frozen=True, slots=True)
class Setting:
    """One of a probe's typed settings, as its manual page and the command line show it."""

    name: str
    type: Any
    default: Any
    help: str
    listed: bool = False
    """A text of several values separated by commas."""


def settings(probe: type[Probe]) -> tuple[Setting, ...]:
    """The probe's settings, from its own annotated fields."""
    hints = get_type_hints(probe, include_extras=True)
    found = []
    for field in fields(probe):
        hint, text, listed = hints[field.name], "", False
        if get_origin(hint) is Annotated:
            hint, *extras = get_args(hint)
            text = next((extra.text for extra in extras if isinstance(extra, Help)), "")
            listed = any(isinstance(extra, Listed) for extra in extras)
        found.append(Setting(field.name, hint, field.default, text, listed))
    return tuple(found)
