"""`ddprobe`: the table of commands, and the one place where errors become a line and an exit code.

A command's module is imported when that command is typed: `ddprobe --help` waits for none of them.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from ddprobe import __version__
from ddprobe.cli import helppage, streams
from ddprobe.cli.plain import PlainCommand, PlainGroup, nearest, page_in_place_of_command
from ddprobe.errors import Cancelled, DdprobeError, UsageError

ABOUT = (
    "Find out over SSH why speculative decoding misbehaves on a GPU host running SGLang, vLLM or llama.cpp."
)

# Command → where it lives under ddprobe.cli (`module:function`, or `module:app` for a family), and its line of help.
SECTIONS: dict[str, dict[str, tuple[str, str]]] = {
    "Look at hosts": {
        "inspect-config": (
            "inspect:inspect_config",
            "Drafter, target and server arguments side by side, with lints.",
        ),
        "server": ("server:server", "Which engines run: version, arguments, model, health, load."),
        "gpu": ("gpu:gpu", "GPUs: driver, memory, clocks and their reasons, links, processes, errors."),
        "logs": ("logs:logs", "What the log says: start-up, warnings, acceptance and throughput over time."),
        "commit-probe": (
            "commit:commit_probe",
            "Commit length by context and kind of text, with step time; a verdict.",
        ),
        "step-time": (
            "step_time:step_time",
            "Step time by context, its law, and what the GPUs' memory would allow; a verdict.",
        ),
        "grep": ("source:grep", "Search the installed engine's source."),
        "read": ("source:read", "Line ranges or whole functions of the installed source."),
        "probe": ("probe:probe", "Run any probe by name."),
        "run": ("run:run", "A playbook: a whole triage in one command."),
        "playbook": ("playbook:app", "Which playbooks there are; a manual, a check and a schema for them."),
    },
    "Hosts and this laptop": {
        "hosts": ("hosts:hosts", "The hosts file; with --check, who can be reached."),
        "doctor": ("doctor:doctor", "What on this laptop would fail, and why."),
        "probes": ("probes:probes_command", "The named probes, and their manual pages."),
    },
    "Evidence from anywhere": {
        "analyse": (
            "analyse:analyse",
            "The same diagnosis on files, folders, archives or old reports: no SSH.",
        ),
    },
    "Reports": {
        "explain": ("explain:explain", "The page of a lint, a finding or a verdict."),
        "report": ("report:app", "List and show what was found before."),
    },
    "Without a GPU host": {
        "demo": ("demo:demo", "The main job against an embedded lab host."),
        "lab": ("lab:app", "Keep a lab host running to try things on."),
    },
}
COMMANDS = {name: entry for section in SECTIONS.values() for name, entry in section.items()}


class _Program(PlainGroup):
    """The command group that knows its commands by name and imports them on use."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return _command(cmd_name) if cmd_name in COMMANDS else None

    def format_help(self, ctx: Any, formatter: Any) -> None:
        sections = [
            (title, [(name, line) for name, (_, line) in commands.items()])
            for title, commands in SECTIONS.items()
        ]
        options = [o for o in self.get_params(ctx) if o.name in ("version", "help")]
        formatter.write(helppage.of_program(ABOUT, sections, options))


def _command(name: str) -> Any:
    module, _, attribute = COMMANDS[name][0].partition(":")
    found = getattr(importlib.import_module(f"ddprobe.cli.{module}"), attribute)
    if isinstance(found, typer.Typer):
        return typer.main.get_command(found)
    single = typer.Typer(add_completion=False)
    single.command(name, cls=PlainCommand)(found)
    return typer.main.get_command(single)


app = typer.Typer(
    cls=_Program,
    name="ddprobe",
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ddprobe {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _start(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001 - its callback answers
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> int | None:
    return page_in_place_of_command(context)


def run(argv: Sequence[str]) -> int:
    """Carry out one command line. Returns the exit code; every error is a line on stderr."""
    streams.stand_in()
    try:
        code = _run(list(argv))
        if why := streams.fault():
            return _say(why, "", code or 4)
        return code
    except BrokenPipeError:
        # The reader of a help page has gone: nothing failed, and nobody is left to tell.
        streams.quieten("stdout")
        return 0
    except (KeyboardInterrupt, Cancelled):
        return _say("interrupted", "", 130)
    except Exception as error:
        if "--debug" in argv:
            import traceback

            traceback.print_exc()
        if isinstance(error, DdprobeError):
            return _say(error.message, error.advice, error.exit_code)
        if isinstance(error, OSError):
            where = f"{error.filename}: " if error.filename else ""
            return _say(f"{where}{error.strerror or error}", "--debug shows where", 4)
        what = f"an error in ddprobe itself: {type(error).__name__}: {error}"
        return _say(what, "--debug shows where; please report it", 4)


def _run(argv: list[str]) -> int:
    program = typer.main.get_command(app)
    try:
        with program.make_context("ddprobe", argv) as context:
            return int(program.invoke(context) or 0)
    except typer.Exit as done:
        return int(done.exit_code)
    except typer.Abort:
        raise KeyboardInterrupt from None
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        raise _usage(error, argv) from None


def _usage(error: Any, argv: list[str]) -> UsageError:
    """The parser's complaint in our words, with the nearest name."""
    typed = f"ddprobe {argv[0]}" if argv and argv[0] in COMMANDS else "ddprobe"
    path = error.ctx.command_path if getattr(error, "ctx", None) else typed
    see = f"see {path} --help"
    option = getattr(error, "option_name", "")
    if type(error).__name__ != "NoSuchOption" or error.ctx is None:
        said = str(error.format_message()).strip().rstrip(".")
        if extra := re.match(r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)$", said, re.DOTALL):
            return UsageError(f"{path} has no use for {extra[1]}", see)
        return UsageError(said[:1].lower() + said[1:], see)
    known = [name for p in error.ctx.command.get_params(error.ctx) for name in p.opts if name.startswith("-")]
    if path == "ddprobe":
        from ddprobe.cli.options import SPELLINGS

        if option in SPELLINGS:
            return UsageError(f"{option} goes after the command", f"as in ddprobe server gpu1 {option}")
    return UsageError(f"{path} has no option {option}", (len(option) > 2 and nearest(option, known)) or see)


def _say(message: str, advice: str, code: int) -> int:
    lines = [f"ddprobe: {message}"] + ([f"  {advice}"] if advice else [])
    # What a host or a file said may hold terminal escapes.
    streams.note(re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", "�", "\n".join(lines)))
    return code
