"""Strict YAML: every mistake at once, each at its line and column."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field

from ddprobe import yamlfile


def said(text: str | bytes) -> list[str]:
    raw = text.encode() if isinstance(text, str) else text
    return [str(problem) for problem in yamlfile.parse(raw, "f.yaml").problems]


def data(text: str) -> Any:
    document = yamlfile.parse(text.encode(), "f.yaml")
    assert document.problems == []
    return document.data


def test_plain_values_are_what_they_look_like() -> None:
    """YAML 1.1 would make booleans of yes and on, 10 of 012, 5400 of 1:30:00, and a date of the last."""
    text = "a: yes\nb: on\nc: 012\nd: 1:30:00\ne: 2024-01-02\nf: true\ng: 12\nh: 1.5\ni: ~\nj:\nk: 'null'\nl: -3\nm: 1e3\n"
    assert data(text) == {
        "a": "yes", "b": "on", "c": "012", "d": "1:30:00", "e": "2024-01-02", "f": True, "g": 12, "h": 1.5,
        "i": None, "j": None, "k": "null", "l": -3, "m": 1000.0,
    }  # fmt: skip


def test_keys_are_text_and_a_byte_order_mark_is_no_mistake() -> None:
    assert data("\ufeff1: a\ntrue: b\n") == {"1": "a", "true": "b"}


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n"])
def test_an_empty_file_holds_nothing(text: str) -> None:
    assert data(text) is None


def test_every_duplicate_key_is_a_mistake_and_the_first_wins() -> None:
    document = yamlfile.parse(b"a: 1\nb: {x: 1, x: 2}\na: 3\n", "f.yaml")
    assert [str(problem) for problem in document.problems] == [
        "f.yaml:2:11: the key 'x' stands here a second time; the first is in line 2",
        "f.yaml:3:1: the key 'a' stands here a second time; the first is in line 1",
    ]
    assert document.data == {"a": 1, "b": {"x": 1}}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: !!python/object/apply:os.system [x]\n", "1:4: the tag 'tag:yaml.org,2002:python/object/apply:os.system' is not allowed: plain values only"),
        ("a: !!str 1\n", "1:4: the tag 'tag:yaml.org,2002:str' is not allowed: plain values only"),
        ("a: !thing {b: 1}\n", "1:4: the tag '!thing' is not allowed: plain values only"),
        ("? [a, b]\n: 1\n", "1:3: a key must be a plain name"),
        ("a: &x [*x]\n", "1:4: an alias that contains itself"),
        ("a: [1, 2\n", "2:1: expected ',' or ']', but got '<stream end>'"),
        ("a: @x\n", "1:4: found character '@' that cannot start any token: put the value in quotes"),
        ("a:\n\tb: 1\n", "2:1: found character '\\t' that cannot start any token: indent with spaces"),
        ("a:\n  b: 1\n c\n", "3:2: this line does not fit: is it indented as far as the lines it belongs to, and closed above?"),
        ("a: 1\n---\nb: 1\n", "2:1: a second document begins; a file holds one"),
        ("a: *nope\n", "1:4: found undefined alias 'nope'"),
        ("a: x\x07y\n", "1:5: the character U+0007 may not stand in YAML"),
        (b"a: 1\nb: caf\xe9\n", "2:7: byte 0xe9 is not UTF-8 text"),
        ("a: 1\n<<: 3\n", "2:5: << takes a mapping"),
        ("[" * 40 + "]" * 40, "1:33: nested deeper than 32 levels"),
        ("[" * 5000, "1:33: nested deeper than 32 levels"),
        ("a: '" + "x" * 300_000 + "'", "1:1: larger than 256 KiB"),
    ],
)  # fmt: skip
def test_what_strict_yaml_refuses(text: str | bytes, problem: str) -> None:
    assert said(text) == [f"f.yaml:{problem}"]


def test_aliases_and_merges_are_expanded() -> None:
    assert data("base: &b {x: 1, y: 2}\nother: {<<: *b, y: 3}\nsame: *b\n") == {
        "base": {"x": 1, "y": 2},
        "other": {"x": 1, "y": 3},
        "same": {"x": 1, "y": 2},
    }


@pytest.mark.parametrize("form", ["a{n}: &a{n} [{items}]", "a{n}: &a{n} {{b: [{items}], c: {{<<: *a0}}}}"])
def test_a_bomb_of_aliases_ends_early(form: str) -> None:
    lines = ["a0: &a0 {x: 1}"]
    lines += [form.format(n=n, items=", ".join([f"*a{n - 1}"] * 10)) for n in range(1, 20)]
    [problem] = said("\n".join(lines))
    assert problem.endswith("more than 20000 values once its aliases are expanded")


def test_a_bomb_of_merges_ends_early() -> None:
    lines = ["a0: &a0 {x: 1}"]
    lines += [f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}], k{n}: {{<<: *a{n - 1}}}}}" for n in range(1, 40)]
    [problem] = said("\n".join(lines))
    assert "more than 20000 values" in problem or "nested deeper" in problem


class Item(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")
    name: str
    size: Annotated[int, Field(gt=0)] = 1
    kind: Literal["small", "large"] = "small"
    ratio: float | None = None


class File(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")
    title: str | None = None
    items: list[Item] = []
    named: dict[str, Item | None] = {}


def test_every_mistake_is_placed_with_what_is_allowed_and_the_nearest_name() -> None:
    text = """\
titel: x
items:
  - name: 5
    size: "3"
  - size: 0
    kind: lage
  - name: ok
    ratio: [1]
named:
  a: {name: a, sise: 2}
  b: 3
"""
    document = yamlfile.parse(text.encode(), "f.yaml")
    model, problems = yamlfile.validate(document, File)
    assert model is None
    assert [str(problem) for problem in sorted(problems)] == [
        "f.yaml:1:1: unknown key 'titel' (did you mean 'title'?); allowed: title, items, named",
        "f.yaml:3:11: name must be text (put it in quotes), not 5",
        "f.yaml:4:11: size must be a whole number, not '3'",
        "f.yaml:5:5: the key 'name' is missing",
        "f.yaml:5:11: size must be above 0, not 0",
        "f.yaml:6:11: kind: 'lage' is not one of small, large (did you mean 'large'?)",
        "f.yaml:8:12: ratio must be a number, not a list",
        "f.yaml:10:16: unknown key 'sise' (did you mean 'size'?); allowed: name, size, kind, ratio",
        "f.yaml:11:6: b must be a mapping (key: value), not 3",
    ]


def test_a_right_file_becomes_the_model() -> None:
    document = yamlfile.parse(b"title: x\nnamed: {a: {name: n, ratio: 2}, b: }\n", "f.yaml")
    assert yamlfile.validate(document, File) == (
        File(title="x", named={"a": Item(name="n", ratio=2), "b": None}),
        [],
    )


@pytest.mark.parametrize("text", ["- a\n", "just text\n", "7\n"])
def test_a_file_that_is_no_mapping(text: str) -> None:
    _, [problem] = yamlfile.validate(yamlfile.parse(text.encode(), "f.yaml"), File)
    assert str(problem).startswith("f.yaml:1:1: the file must be a mapping (key: value), not ")


def test_a_file_is_read_from_the_disk(tmp_path: Path) -> None:
    path = tmp_path / "f.yaml"
    path.write_text("a: 1\n")
    assert yamlfile.read(path).data == {"a": 1}
    with pytest.raises(FileNotFoundError):
        yamlfile.read(tmp_path / "none.yaml")
