"""What a step asks of its probe: whether the probe takes these settings, as far as they are known beforehand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING
from typing import Any

from ddprobe import probes
from ddprobe.errors import UsageError
from ddprobe.model import Probe
from ddprobe.playbook import Reference, references
from ddprobe.playbookfile import kinds, referring
from ddprobe.playbookfile.referring import Known
from ddprobe.yamlfile import Where, nearest

Mistake = tuple[Where, str]
"""(place below the step, what is wrong there)"""
_UNKNOWN = object()


def kind_of(name: Any) -> type[Probe] | None:
    """The probe of that name, or None."""
    return probes.load(name) if isinstance(name, str) and name in probes.names() else None


def mistakes(
    kind: type[Probe], given: Mapping[str, Any], known: Known, samples: Mapping[str, tuple[Any, bool]]
) -> Iterator[Mistake]:
    """Everything that is wrong with the settings that a step gives its probe.

    `samples`: var → (a value of it, whether that is its default and not just one of its type).
    """
    settings = {setting.name: setting for setting in probes.settings(kind)}
    values: dict[str, Any] = {}
    complete = True
    for name, raw in given.items():
        if name not in settings:
            has = f"it has {', '.join(settings)}" if settings else "it has none"
            text = f"{kind.name()} has no setting {name!r}{nearest(name, settings)}; {has}"
            yield ("with", name), text
            complete = False
            continue
        try:
            value = referring.read(raw)
        except ValueError as error:
            yield ("with", name), f"{name}: {error}"
            complete = False
            continue
        wrong = [text for reference in references(value) for text in known.mistakes(reference)]
        for text in wrong:
            yield ("with", name), f"{name}: {text}"
        sample, sure = (_UNKNOWN, False) if wrong else _sample(value, samples)
        complete = complete and sure
        if sample is _UNKNOWN:
            continue
        try:
            found = kinds.as_setting(settings[name], sample)
        except ValueError as error:
            of = _whose(value)
            yield ("with", name), f"{name} {error}{of}"
            complete = False
            continue
        if sure:
            values[name] = found
    missing = [n for n, s in settings.items() if s.default is MISSING and n not in given]
    for name in missing:
        yield ("with",), f"{kind.name()} needs the setting {name!r}: {settings[name].help}"
    told = list(kind.mistakes(values))
    for name, text in told:
        yield ("with", name), f"{name}: {text}" if name else text
    if complete and not missing and not told:
        yield from _refused(kind, values)


def _refused(kind: type[Probe], values: Mapping[str, Any]) -> Iterator[Mistake]:
    """What the probe itself says to settings that are all known."""
    try:
        kind(**values)
    except UsageError as error:
        yield ("with",), said(error)


def said(error: UsageError) -> str:
    return f"{error.message}: {error.advice}" if error.advice else error.message


def _sample(value: Any, samples: Mapping[str, tuple[Any, bool]]) -> tuple[Any, bool]:
    """(the value, or one of its type; whether it is the very one), or `_UNKNOWN` where not even its type is known."""
    if isinstance(value, tuple):
        found: list[Any] = []
        every = True
        for item in value:
            one, sure = _sample(item, samples)
            every = every and sure
            if one is not _UNKNOWN:
                found += one if isinstance(one, tuple) else (one,)
        return tuple(found), every
    if not isinstance(value, Reference):
        return value, True
    if value.source == "vars":
        return samples.get(value.name, (_UNKNOWN, False))
    if value.source == "host":
        return referring.HOST_FIELDS[value.name], False
    return _UNKNOWN, False


def _whose(value: Any) -> str:
    return f" (as {value} gives it)" if isinstance(value, Reference) else ""
