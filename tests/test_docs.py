"""The README and the example say what is there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import typer

from ddprobe import hostsfile
from ddprobe.cli import app

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLES = sorted(
    {line.strip() for line in re.findall(r"`(ddprobe [^`]+)`", README)}
    | {line.split("#")[0].strip() for line in re.findall(r"^    (ddprobe .+)$", README, re.MULTILINE)}
)


def commands() -> dict[str, typer.core.TyperGroup]:
    """Every command a person can type, by its words."""
    found = {}
    for name in app.COMMANDS:
        command = app._command(name)
        for sub, inner in getattr(command, "commands", {"": command}).items():
            found[f"{name} {sub}".strip()] = inner
    return found


def test_every_command_has_a_row_with_an_example_in_the_readme() -> None:
    rows = re.findall(r"^\| `([^`]+)` \|[^\n]*\| `ddprobe ([^`]+)` \|$", README, re.MULTILINE)
    named = [name for name, _ in rows]
    assert sorted(named) == sorted(commands())
    assert all(example.startswith(name) for name, example in rows)


@pytest.mark.parametrize("example", [e for e in EXAMPLES if "COMMAND" not in e])
def test_every_example_in_the_readme_parses(example: str) -> None:
    """Commands, options and positionals exist; nothing is run."""
    words = [word.replace("NAME", "source.grep") for word in shlex.split(example)[1:]]
    known = commands()
    if words[0].startswith("-"):
        assert app.run(words[:1]) == 0
        return
    name = " ".join(words[:2]) if " ".join(words[:2]) in known else words[0]
    if name in app.COMMANDS and name not in known:
        return
    known[name].make_context(name, words[len(name.split()) :])


@pytest.mark.parametrize("name", commands())
def test_every_help_page_has_an_example_that_parses(name: str) -> None:
    command = commands()[name]
    [example] = re.findall(r"^Example: (ddprobe .+)$", command.help or "", re.MULTILINE)
    words = shlex.split(example)[1:]
    assert words[: len(name.split())] == name.split()
    command.make_context(name, words[len(name.split()) :])


def test_every_common_option_is_in_the_readme() -> None:
    from ddprobe.cli.options import SPELLINGS

    missing = {spelling for spelling in SPELLINGS if f"`{spelling}" not in README} - {"--quiet", "--verbose"}
    assert not missing


def test_every_exit_code_is_in_the_readme() -> None:
    rows = re.findall(r"^\| (\d+) \|", README, re.MULTILINE)
    assert rows == ["0", "1", "2", "3", "4", "130"]


def test_every_inventory_key_is_in_the_example() -> None:
    text = (ROOT / "hosts.example.yaml").read_text(encoding="utf-8")
    keys = set(re.findall(r"^\s*([a-z_]+):", text, re.MULTILINE))
    models = (hostsfile.HostsFile, hostsfile.HostKeys, hostsfile.ContainerKeys)
    assert {name for model in models for name in model.model_fields} - keys == set()


def test_the_changelog_and_the_licence_are_there() -> None:
    assert "## [Unreleased]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert "Apache License" in (ROOT / "LICENSE").read_text(encoding="utf-8")


def test_the_test_command_of_the_readme_is_the_one_that_guards_a_change() -> None:
    assert "\n    bash tests/run\n" in README
    assert "exec bash tests/run" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
