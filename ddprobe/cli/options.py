"""The options that every command which looks at hosts takes, declared once."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from ddprobe.errors import UsageError
from ddprobe.model import FAIL_ON


def hosts_argument(without: str) -> Any:
    """The HOST words of a command, and who is meant without any."""
    return typer.Argument(
        metavar="[HOST]...",
        show_default=False,
        help="Names from the hosts file, node sets (gpu[01-16]), groups (@blackwell), or what ssh takes "
        f"(alias, user@host). None: {without}.",
    )


Hosts = Annotated[list[str] | None, hosts_argument("the hosts file's default or only host")]


def _spellings(annotation: Any) -> tuple[str, ...]:
    info = annotation.__metadata__[0]
    return tuple(word for word in (info.default, *(info.param_decls or ())) if isinstance(word, str))


COMMON: dict[str, tuple[Any, Any]] = {
    "hosts_file": (
        Annotated[str | None, typer.Option("--hosts", metavar="FILE", help="Hosts file to use.")],
        None,
    ),
    "reports": (
        Annotated[
            str | None, typer.Option("--reports", metavar="DIR", help="Where reports are kept. [./reports]")
        ],
        None,
    ),
    "json": (
        Annotated[bool, typer.Option("--json", help="Print JSON on stdout, and nothing else there.")],
        False,
    ),
    "fail_on": (
        Annotated[
            str,
            typer.Option(
                "--fail-on", metavar="LEVEL", help="Exit 1 from this outcome up: fail, warn or never."
            ),
        ],
        "fail",
    ),
    "timeout": (
        Annotated[
            str | None,
            typer.Option("--timeout", metavar="S", help="Seconds that one question to a host may take. [25]"),
        ],
        None,
    ),
    "no_color": (Annotated[bool, typer.Option("--no-color", help="Print without colour.")], False),
    "quiet": (
        Annotated[bool, typer.Option("--quiet", "-q", help="Print only what needs a look, and the outcome.")],
        False,
    ),
    "verbose": (
        Annotated[
            bool, typer.Option("--verbose", "-v", help="Print what passed too, and where the evidence is.")
        ],
        False,
    ),
    "debug": (
        Annotated[bool, typer.Option("--debug", help="Print tracebacks, and what the connection logs.")],
        False,
    ),
}

SPELLINGS = frozenset(spelling for annotation, _ in COMMON.values() for spelling in _spellings(annotation))
"""Every way to write one of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What was said beside the hosts."""

    hosts_file: str | None = None
    reports: str | None = None
    json: bool = False
    fail_on: str = "fail"
    timeout: str | None = None
    no_color: bool = False
    quiet: bool = False
    verbose: bool = False
    debug: bool = False

    def __post_init__(self) -> None:
        if self.fail_on not in FAIL_ON:
            raise UsageError(f"--fail-on {self.fail_on!r} is not a level", f"one of {', '.join(FAIL_ON)}")
        if self.quiet and self.verbose:
            raise UsageError("-q and -v ask for opposite things", "give one of them")


def _hidden(option: tuple[Any, Any]) -> tuple[Any, Any]:
    annotation, default = option
    info = copy.copy(annotation.__metadata__[0])
    info.hidden = True
    return Annotated[annotation.__origin__, info], default


def with_options(
    *names: str, unused: tuple[str, ...] = ()
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Give a command the named common options (all without names), handed over as its parameter `options`.

    Those `unused` are taken too, so that a script may give every command the same ones, and its help is silent on them.
    """
    chosen = {name: _hidden(COMMON[name]) if name in unused else COMMON[name] for name in names or COMMON}

    def decorate(command: Callable[..., int]) -> Callable[..., int]:
        @functools.wraps(command)
        def wrapped(**given: Any) -> int:
            options = Options(**{name: given.pop(name) for name in chosen})
            return command(options=options, **given)

        signature = inspect.signature(command, eval_str=True)
        own = [parameter for parameter in signature.parameters.values() if parameter.name != "options"]
        parameters = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own]
        parameters += [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
            for name, (annotation, default) in chosen.items()
        ]
        wrapped.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        wrapped.__annotations__ = {p.name: p.annotation for p in parameters}
        return wrapped

    return decorate
