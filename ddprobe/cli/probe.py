"""`probe`: any probe by name, its settings as `--set name=value`."""

from __future__ import annotations

from typing import Annotated, Any, get_args, get_origin

import typer

from ddprobe.cli import flow, targets
from ddprobe.cli.options import Hosts, Options, with_options
from ddprobe.cli.plain import nearest
from ddprobe.errors import UsageError


@with_options()
def probe(
    options: Options,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The probe's name, as `ddprobe probes` lists them.")
    ],
    hosts: Hosts = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="K=V", help="A setting of the probe; may be given several times."),
    ] = None,
) -> int:
    """Run any probe by name. `ddprobe probes NAME` shows its settings.

    Example: ddprobe probe source.grep gpu1 --set pattern=mask_token --set limit=20
    """
    from ddprobe import probes
    from ddprobe.model import Step

    kind = probes.load(name)
    step = Step(name, kind(**settings_of(kind, set_ or ())))
    return flow.look(name, targets.resolve(hosts, options), [step], options)


def settings_of(kind: Any, words: Any) -> dict[str, Any]:
    """`k=v` words as values of the probe's own types. Raises `UsageError` for a name or value it does not take."""
    from dataclasses import MISSING

    from ddprobe import probes

    known = {setting.name: setting for setting in probes.settings(kind)}
    given: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        name = name.strip().replace("-", "_")
        if not equals:
            raise UsageError(f"--set {word!r} has no value", "write --set name=value")
        if name not in known:
            allowed = f"it has {', '.join(known)}" if known else "it has none"
            raise UsageError(f"{kind.name()} has no setting {name!r}", nearest(name, known) or allowed)
        given[name] = value(known[name].type, text, f"--set {name}")
    missing = [name for name, setting in known.items() if setting.default is MISSING and name not in given]
    if missing:
        raise UsageError(f"{kind.name()} needs {', '.join(missing)}", f"add --set {missing[0]}=…")
    return given


def value(kind: Any, text: str, where: str) -> Any:
    """The text as a value of that type."""
    from types import NoneType, UnionType
    from typing import Union

    from ddprobe.parsing import sizes

    if get_origin(kind) in (Union, UnionType):
        kind = next(k for k in get_args(kind) if k is not NoneType)
    if get_origin(kind) is tuple:
        return tuple(
            value(get_args(kind)[0], part.strip(), where) for part in text.split(",") if part.strip()
        )
    if kind is bool:
        if text.lower() not in ("true", "false"):
            raise UsageError(f"{where}: {text!r} is not true or false")
        return text.lower() == "true"
    if kind is int:
        try:
            return sizes.size(text)
        except UsageError as error:
            raise UsageError(f"{where}: {error.message}", error.advice) from None
    if kind is float:
        try:
            return float(text)
        except ValueError:
            raise UsageError(f"{where}: {text!r} is not a number") from None
    return text
