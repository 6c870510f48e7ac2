"""Typer's classes, made quick: values stay texts and flags, help pages are our own, unknown names get the nearest.

Typer would import pydantic to check that a text is a text, and Markdown to set a help page: 130 ms of every start.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from ddprobe.cli import helppage, streams
from ddprobe.errors import UsageError

Command = Callable[..., int]


class PlainCommand(TyperCommand):
    """A command whose options are texts and flags only."""

    def get_params(self, ctx: Any) -> Any:
        return _plain(super().get_params(ctx))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        formatter.write(helppage.of_command(self, ctx))


class PlainGroup(TyperGroup):
    """A command that has commands."""

    def get_params(self, ctx: Any) -> Any:
        return _plain(super().get_params(ctx))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, known = args[0], self.list_commands(ctx)
        if name not in known and not name.startswith("-"):
            see = f"it has {', '.join(known)}" if len(known) < 5 else f"{ctx.command_path} --help lists them"
            raise UsageError(f"there is no command '{ctx.command_path} {name}'", nearest(name, known) or see)
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        rows = [(name, command.short_help or "") for name, command in self.commands.items()]
        formatter.write(helppage.of_group(ctx.command_path, self.help or "", rows))


def family(name: str, about: str) -> tuple[typer.Typer, Callable[[str, str], Callable[[Command], Command]]]:
    """The app of a command that has commands, and the decorator that adds one with its line of help."""
    app = typer.Typer(name=name, cls=PlainGroup, help=about, add_completion=False)

    @app.callback(invoke_without_command=True)
    def start(context: typer.Context) -> int | None:
        return page_in_place_of_command(context)

    def add(command_name: str, line: str) -> Callable[[Command], Command]:
        def decorate(function: Command) -> Command:
            app.command(command_name, cls=PlainCommand, short_help=line)(function)
            return function

        return decorate

    return app, add


def page_in_place_of_command(context: typer.Context) -> int | None:
    """Print the help page when no command was named, which is a mistake."""
    if context.invoked_subcommand is not None:
        return None
    with streams.printing():
        typer.echo(context.get_help())
    return 2


def nearest(name: str, names: Any) -> str:
    """`did you mean grep?`, or nothing when no name is near."""
    import difflib

    near = difflib.get_close_matches(name, list(names), n=1, cutoff=0.6)
    return f"did you mean {near[0]}?" if near else ""


def _plain(parameters: Any) -> Any:
    for parameter in parameters:
        parameter.process_value = functools.partial(_as_given, parameter)
    return parameters


def _as_given(parameter: Any, context: Any, value: Any) -> Any:
    several = parameter.nargs == -1 or getattr(parameter, "multiple", False)
    if value is None or value == ():
        if parameter.required and not context.resilient_parsing:
            raise UsageError(
                f"{parameter.metavar or parameter.name} is missing", f"see {context.command_path} --help"
            )
        value = () if several else None
    if parameter.callback is not None:
        try:
            value = parameter.callback(context, parameter, value)
        except BrokenPipeError:
            raise
        except OSError as error:  # a page, printed
            raise streams.unwritten(error) from None
    return value
