"""Help pages, set with Rich. Typer's own pull in Markdown and syntax highlighting: half of the start-up time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

MAX_WIDTH = 110


def of_program(about: str, sections: Iterable[tuple[str, Iterable[tuple[str, str]]]], options: Any) -> str:
    """The page of `ddprobe --help`: commands by section, then what holds for all of them."""
    from rich.text import Text

    parts: list[Any] = [_usage("ddprobe", "COMMAND [HOST]... [OPTIONS]"), Text(about), ""]
    parts += [
        _box(title, [(Text(name, "bold cyan"), Text(line)) for name, line in rows])
        for title, rows in sections
    ]
    parts.append(_box("Options", [_option(option) for option in options]))
    parts.append(
        Text("ddprobe COMMAND --help shows a command's options. It only ever reads on a host.", "dim")
    )
    return _printed(parts)


def of_command(command: Any, context: Any) -> str:
    """The page of one command: usage, what it does, an example, arguments, options."""
    from rich.text import Text

    options = [p for p in command.get_params(context) if p.param_type_name == "option" and not p.hidden]
    arguments = [p for p in command.params if p.param_type_name == "argument" and not p.hidden]
    pieces = " ".join([*(_metavar(argument) for argument in arguments), "[OPTIONS]"])
    parts: list[Any] = [_usage(context.command_path, pieces)]
    for paragraph in (command.help or "").split("\n\n"):
        about = Text(" ".join(paragraph.split()))
        about.highlight_regex(r"^Example:", "yellow")
        parts += [about, ""]
    if arguments:
        parts.append(
            _box("Arguments", [(Text(_metavar(a), "bold cyan"), Text(a.help or "")) for a in arguments])
        )
    from ddprobe.cli.options import COMMON

    own = [option for option in options if option.name not in COMMON and option.name != "help"]
    shared = [option for option in options if option.name in COMMON or option.name == "help"]
    if own:
        parts.append(_box("Options", [_option(option) for option in own]))
    parts.append(_box("Common options" if own else "Options", [_option(option) for option in shared]))
    return _printed(parts)


def of_group(path: str, about: str, rows: Iterable[tuple[str, str]]) -> str:
    """The page of a command that has commands: `ddprobe report`."""
    from rich.text import Text

    commands = [(Text(name, "bold cyan"), Text(line)) for name, line in rows]
    return _printed([_usage(path, "COMMAND"), Text(about), "", _box("Commands", commands)])


def _metavar(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name.upper())


def _usage(path: str, pieces: str) -> Any:
    from rich.text import Text

    return Text.assemble(("Usage: ", "yellow"), (path, "bold"), " ", pieces, "\n")


def _option(option: Any) -> tuple[Any, Any]:
    from rich.text import Text

    names = sorted([*option.opts, *option.secondary_opts], key=lambda name: (not name.startswith("--"), name))
    name = Text(", ".join(names), "bold cyan")
    if option.metavar:
        name.append(f" {option.metavar}", "yellow not bold")
    text = Text(option.help or "")
    if isinstance(option.default, str) and option.default:
        text.append(f" [{option.default}]")
    text.highlight_regex(r"\[\S+\]$", "dim")
    return name, text


def _box(title: str, rows: list[tuple[Any, Any]]) -> Any:
    from rich.box import ROUNDED
    from rich.panel import Panel
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True, min_width=16)
    grid.add_column(ratio=1)
    for row in rows:
        grid.add_row(*row)
    return Panel(grid, title=title, title_align="left", border_style="dim", box=ROUNDED)


def _printed(parts: list[Any]) -> str:
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)
    console.width = min(console.width, MAX_WIDTH)
    with console.capture() as captured:
        for part in parts:
            console.print(part)
    return captured.get()
