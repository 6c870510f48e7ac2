"""The JSON Schema for editors: valid itself, takes every good playbook, and refuses what is wrong in form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from ddprobe import probes, yamlfile
from ddprobe.cli import app
from ddprobe.playbookfile import shelf
from ddprobe.playbookfile.schema import schema
from tests.test_playbook_load import BOOK

SHIPPED = [path for _, whose, path in shelf.all_of_them() if whose == "shipped"]
BAD = Path(__file__).parent / "playbooks" / "bad"
VALIDATOR = jsonschema.Draft202012Validator(schema())


def data(raw: bytes) -> Any:
    return yamlfile.parse(raw, "x.yaml").data


def test_it_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    assert schema()["$schema"] == "https://json-schema.org/draft/2020-12/schema"


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_books_are_taken(path: Path) -> None:
    assert [error.message for error in VALIDATOR.iter_errors(data(path.read_bytes()))] == []


def test_every_part_of_the_language_is_taken() -> None:
    assert [error.message for error in VALIDATOR.iter_errors(data(BOOK.encode()))] == []


@pytest.mark.parametrize(
    "name",
    [
        "empty",
        "hypothesis_unknown",
        "id_wrong",
        "keys_unknown",
        "many_at_once",
        "mapping_for_setting",
        "no_steps",
        "not_a_mapping",
        "setting_missing",
        "setting_unknown",
        "step_of_expectation",
        "timeout_wrong",
        "types_wrong",
        "var_default_wrong",
        "var_without_help",
        "when_is_text",
        "when_unknown",
    ],
)
def test_what_is_wrong_in_form_is_refused(name: str) -> None:
    assert not VALIDATOR.is_valid(data((BAD / f"{name}.yaml").read_bytes()))


def test_an_editor_can_say_what_each_setting_is() -> None:
    """Every probe's settings stand there with their help, and what is required with them."""
    given = schema()["$defs"]
    for name in probes.names():
        for setting in probes.settings(probes.load(name)):
            assert given[f"with {name}"]["properties"][setting.name]["description"] == setting.help
    assert given["with source.grep"]["required"] == ["pattern"]
    assert given["with draft.commit"]["required"] == []


def test_it_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["playbook", "schema"]) == 0
    assert json.loads(capsys.readouterr().out) == schema()
