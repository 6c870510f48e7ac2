"""`playbook`: those there are, the manual of one, whether one is right, and the schema for editors. Asks no host."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ddprobe.cli import screen
from ddprobe.cli.options import Options, with_options
from ddprobe.cli.plain import family
from ddprobe.errors import PlaybookError, UsageError

app, command = family("playbook", "Playbooks: those there are, what one asks, whether one is right.")


@command("list", "The playbooks there are: yours and those that come with ddprobe.")
@with_options("json", "no_color", "debug")
def list_playbooks(options: Options) -> int:
    """The playbooks there are: in ./playbooks, in your own folder, and those that come with ddprobe.

    Example: ddprobe playbook list
    """
    from ddprobe.blocks import Paragraph, Table
    from ddprobe.playbookfile import shelf
    from ddprobe.playbookfile.load import load

    found: list[dict[str, Any]] = []
    for name, whose, path in shelf.all_of_them():
        entry: dict[str, Any] = {
            "name": name,
            "whose": whose,
            "file": str(path),
            "question": "",
            "mistakes": [],
        }
        try:
            entry["question"] = load(path).question
        except PlaybookError as error:
            entry["mistakes"] = error.message.splitlines()
        found.append(entry)
    if options.json:
        screen.dump({"schema": "ddprobe-playbooks/1", "playbooks": found})
    elif found:
        rows = tuple((one["name"], one["whose"], one["question"] or _wrong(one["mistakes"])) for one in found)
        bad = tuple(n for n, one in enumerate(found) if one["mistakes"])
        screen.draw([Table(("playbook", "whose", "question"), rows, emphasis=bad)], options)
    else:
        looked = ", ".join(str(folder) for _, folder in shelf.places())
        screen.draw([Paragraph(f"There is no playbook. Looked in {looked}.")], options)
    return 0


def _wrong(mistakes: list[str]) -> str:
    return f"cannot be run: {len(mistakes)} {'mistake' if len(mistakes) == 1 else 'mistakes'}, see playbook check"


@command("show", "The manual of one: its question, its vars, and what each step asks of a host.")
@with_options("json", "no_color", "debug")
def show(
    options: Options,
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="Its name, as `ddprobe playbook list` has it, or its file."),
    ],
) -> int:
    """The manual of a playbook: its question, its vars, its steps, what each asks of a host and what it costs.

    Example: ddprobe playbook show commit-len-one
    """
    from ddprobe.cli import playbookpage
    from ddprobe.playbookfile import shelf
    from ddprobe.playbookfile.load import load

    page = playbookpage.page(load(shelf.find(name)))
    if options.json:
        screen.dump({"schema": "ddprobe-playbook/1", **page})
    else:
        screen.draw(playbookpage.blocks(page), options)
    return 0


@command("check", "Whether playbooks are right; every mistake with its line and column.")
@with_options("json", "no_color", "debug")
def check(
    options: Options,
    files: Annotated[
        list[str] | None, typer.Argument(metavar="FILE...", help="Playbooks, by file or by name.")
    ] = None,
) -> int:
    """Whether playbooks are right: every mistake as file:line:column, what is wrong there, and the nearest name.

    Example: ddprobe playbook check playbooks/nightly.yaml
    """
    from ddprobe.blocks import Paragraph
    from ddprobe.playbookfile import shelf
    from ddprobe.playbookfile.load import load

    if not files:
        raise UsageError("FILE is missing", "see ddprobe playbook check --help")
    good: list[str] = []
    mistakes: list[str] = []
    for word in dict.fromkeys(files):
        try:
            book = load(shelf.find(word))
        except PlaybookError as error:
            mistakes += error.message.splitlines()
            continue
        steps = f"{len(book.steps)} {'step' if len(book.steps) == 1 else 'steps'}"
        good.append(f"{book.file}: {book.name}, {steps}, {len(book.vars)} vars: right")
    if options.json:
        screen.dump({"schema": "ddprobe-playbook-check/1", "right": not mistakes, "mistakes": mistakes})
        return 2 if mistakes else 0
    screen.draw([Paragraph(line) for line in good], options)
    if mistakes:
        raise PlaybookError("\n".join(mistakes), "ddprobe playbook schema prints what a playbook may hold")
    return 0


@command("schema", "The JSON Schema of a playbook, for editors.")
@with_options("debug")
def schema(options: Options) -> int:  # noqa: ARG001 - --debug counts where errors are caught
    """The JSON Schema of a playbook, on stdout. Many editors take it by `# yaml-language-server: $schema=FILE`.

    Example: ddprobe playbook schema
    """
    from ddprobe.playbookfile.schema import schema as made

    screen.dump(made())
    return 0
