"""Strict YAML for files that people write: every mistake at once, each with file:line:column.

Stricter than PyYAML's safe loader: a duplicate key is a mistake (it would silently win), tags are refused, `yes`, `on`,
`012` and `1:30` are plain text or what they look like, aliases may not expand without bound. A pydantic model then
says what belongs in the file; its errors are placed in the file, with what is allowed and the nearest name.
"""

from __future__ import annotations

import difflib
import re
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

import pydantic
import yaml

MAX_BYTES = 256 * 1024
MAX_NODES = 20_000
MAX_DEPTH = 32

Where = tuple[str | int, ...]
"""A place in the data: keys and indices from the top."""
Model = TypeVar("Model", bound=pydantic.BaseModel)


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """A mistake in a file, at a line and column that count from 1."""

    file: str
    line: int
    column: int
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.message}"


@dataclass(slots=True)
class Document:
    """A file's data, the place of every key and value in it, and what is wrong with its YAML."""

    file: str
    data: Any = None
    keys: dict[Where, tuple[int, int]] = field(default_factory=dict)
    values: dict[Where, tuple[int, int]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def problem(self, where: Where, message: str, *, at_key: bool = False) -> Problem:
        """A mistake at that place, or at the nearest place around it that the file has."""
        places = (self.keys, self.values) if at_key else (self.values, self.keys)
        for length in range(len(where), -1, -1):
            for marks in places:
                if (mark := marks.get(where[:length])) is not None:
                    return Problem(self.file, *mark, message)
        return Problem(self.file, 1, 1, message)


def read(path: Path) -> Document:
    """The file as data with places. Mistakes in its YAML are in `problems`; an unreadable file raises OSError."""
    with path.open("rb") as file:
        raw = file.read(MAX_BYTES + 1)
    return parse(raw, str(path))


def parse(raw: bytes, file: str) -> Document:
    """The bytes of a YAML file as data with places."""
    document = Document(file)
    if len(raw) > MAX_BYTES:
        document.problems.append(Problem(file, 1, 1, f"larger than {MAX_BYTES // 1024} KiB"))
        return document
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        column = error.start - raw.rfind(b"\n", 0, error.start)
        document.problems.append(
            Problem(file, line, column, f"byte 0x{raw[error.start]:02x} is not UTF-8 text")
        )
        return document
    try:
        loader = _Loader(text)
        try:
            root = loader.get_single_node()
        finally:
            loader.dispose()
        document.problems += [Problem(file, *place, message) for place, message in loader.refused]
        if root is not None:
            document.data = _Builder(document).build(root, ())
    except yaml.MarkedYAMLError as error:
        document.problems.append(_syntax(file, error))
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        document.problems.append(
            Problem(
                file,
                before.count("\n") + 1,
                error.position - before.rfind("\n"),
                f"the character U+{ord(text[error.position]):04X} may not stand in YAML",
            )
        )
    except _Unbounded as error:
        document.problems.append(Problem(file, *error.place, error.message))
    except RecursionError:
        document.problems.append(Problem(file, 1, 1, f"nested deeper than {MAX_DEPTH} levels"))
    return document


def validate(document: Document, model: type[Model]) -> tuple[Model | None, list[Problem]]:
    """The data as that model, or every mistake that the model finds in it, placed in the file."""
    try:
        return model.model_validate({} if document.data is None else document.data), []
    except pydantic.ValidationError as error:
        return None, [_place(document, model, dict(one)) for one in error.errors(include_url=False)]


def nearest(name: str, names: Sequence[str] | Mapping[str, Any]) -> str:
    """` (did you mean 'port'?)`, or nothing when no name is near."""
    near = difflib.get_close_matches(name, list(names), n=1, cutoff=0.6)
    return f" (did you mean {near[0]!r}?)" if near else ""


# --- YAML to data --------------------------------------------------------------------------------------------


class _Unbounded(Exception):
    def __init__(self, place: tuple[int, int], message: str) -> None:
        super().__init__(message)
        self.place = place
        self.message = message


class _Loader(yaml.SafeLoader):
    """Composes nodes, never objects; notes explicit tags; knows YAML 1.2's plain scalars only."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - as in PyYAML's own class

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.refused: list[tuple[tuple[int, int], str]] = []
        self.depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        tag = getattr(event, "tag", None)
        if tag is not None and not isinstance(event, yaml.AliasEvent):
            self.refused.append(
                (_mark(event.start_mark), f"the tag {tag!r} is not allowed: plain values only")
            )
            event.tag = None
            if isinstance(event, yaml.ScalarEvent):
                event.implicit = (True, False)
            else:
                event.implicit = True
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise _Unbounded(_mark(event.start_mark), f"nested deeper than {MAX_DEPTH} levels")
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


for _tag, _form, _first in (
    ("null", r"~|null|Null|NULL|", "~nN"),
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?(0|[1-9][0-9]*)", "-+0123456789"),
    ("float", r"[-+]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?", "-+.0123456789"),
    ("merge", r"<<", "<"),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"(?:{_form})\Z"), list(_first))
_Loader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"\Z"), [""])


class _Builder:
    """Turns nodes into data, and counts: an alias expands again each time it is used."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.count = 0
        self.open: list[yaml.Node] = []

    def build(self, node: yaml.Node, where: Where) -> Any:
        place = _mark(node.start_mark)
        self.document.values.setdefault(where, place)
        self.count += 1
        if self.count > MAX_NODES:
            raise _Unbounded(place, f"more than {MAX_NODES} values once its aliases are expanded")
        if any(node is outer for outer in self.open):
            raise _Unbounded(place, "an alias that contains itself")
        if isinstance(node, yaml.ScalarNode):
            return _scalar(node)
        self.open.append(node)
        try:
            if isinstance(node, yaml.SequenceNode):
                return [self.build(item, (*where, index)) for index, item in enumerate(node.value)]
            return self._mapping(node, where)
        finally:
            self.open.pop()

    def _mapping(self, node: yaml.Node, where: Where) -> dict[str, Any]:
        data: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key, value in node.value:
            place = _mark(key.start_mark)
            if key.tag == "tag:yaml.org,2002:merge":
                merged = {**self._merge(value, where), **merged}
                continue
            if not isinstance(key, yaml.ScalarNode):
                self._note(place, "a key must be a plain name")
                continue
            name = str(key.value)
            if name in data:
                first = self.document.keys[(*where, name)]
                self._note(
                    place, f"the key {name!r} stands here a second time; the first is in line {first[0]}"
                )
                continue
            self.document.keys[(*where, name)] = place
            data[name] = self.build(value, (*where, name))
        return {**merged, **data}

    def _merge(self, node: yaml.Node, where: Where) -> dict[str, Any]:
        """What `<<: *alias` brings in; the places of its values are those of the original."""
        sources = node.value if isinstance(node, yaml.SequenceNode) else [node]
        merged: dict[str, Any] = {}
        for source in sources:
            if not isinstance(source, yaml.MappingNode):
                self._note(_mark(source.start_mark), "<< takes a mapping")
                continue
            aside = _Builder(Document(self.document.file))
            aside.count, aside.open = self.count, self.open
            merged = {**aside.build(source, where), **merged}
            self.count = aside.count
            for known, found in (
                (self.document.keys, aside.document.keys),
                (self.document.values, aside.document.values),
            ):
                for place, mark in found.items():
                    known.setdefault(place, mark)
        return merged

    def _note(self, place: tuple[int, int], message: str) -> None:
        self.document.problems.append(Problem(self.document.file, *place, message))


def _scalar(node: yaml.ScalarNode) -> Any:
    text = str(node.value)
    match node.tag.rpartition(":")[2]:
        case "null":
            return None
        case "bool":
            return text.lower() == "true"
        case "int":
            return int(text) if len(text) < 20 else text
        case "float":
            return float(text)
    return text


def _mark(mark: Any) -> tuple[int, int]:
    return (mark.line + 1, mark.column + 1)


def _syntax(file: str, error: yaml.MarkedYAMLError) -> Problem:
    mark = error.problem_mark or error.context_mark
    said = error.problem or error.context or "is not YAML"
    if "'@'" in said or "'`'" in said or "'%'" in said:
        said += ": put the value in quotes"
    elif "'\\t'" in said:
        said += ": indent with spaces"
    elif "mapping values are not allowed" in said:
        said += ": a value that holds ': ' needs quotes, or the line above is not closed"
    elif "expected <block end>" in said:
        said = "this line does not fit: is it indented as far as the lines it belongs to, and closed above?"
    elif "single document" in " ".join((error.context or "", said)):
        said = "a second document begins; a file holds one"
    return Problem(file, *(_mark(mark) if mark else (1, 1)), said)


# --- what pydantic says, in the file's own words ---------------------------------------------------------------

_KINDS = {
    "string_type": "text (put it in quotes)",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a number",
    "bool_type": "true or false",
    "dict_type": "a mapping (key: value)",
    "model_type": "a mapping (key: value)",
    "list_type": "a list",
}
_BOUNDS = {
    "greater_than": ("above", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("below", "lt"),
    "less_than_equal": ("at most", "le"),
}


def _place(document: Document, model: type[pydantic.BaseModel], error: dict[str, Any]) -> Problem:
    where = _within(document.data, error["loc"])
    kind, context, value = error["type"], error.get("ctx", {}), error.get("input")
    # An item of a list is called as the list is.
    name = next((part for part in reversed(error["loc"]) if isinstance(part, str)), "the file")
    if kind == "extra_forbidden":
        allowed = _allowed(model, error["loc"][:-1])
        text = f"unknown key {name!r}{nearest(name, allowed)}; allowed: {', '.join(allowed)}"
        return document.problem(where, text, at_key=True)
    if kind == "missing":
        return document.problem(where, f"the key {name!r} is missing")
    if kind == "literal_error":
        choices = re.findall(r"'([^']*)'", str(context.get("expected", "")))
        said = nearest(value, choices) if isinstance(value, str) else ""
        return document.problem(where, f"{name}: {_shown(value)} is not one of {', '.join(choices)}{said}")
    if kind in _KINDS:
        return document.problem(where, f"{name} must be {_KINDS[kind]}, not {_shown(value)}")
    if kind in _BOUNDS:
        word, key = _BOUNDS[kind]
        return document.problem(where, f"{name} must be {word} {context[key]:g}, not {_shown(value)}")
    if kind == "value_error":
        return document.problem(where, f"{name}: {context['error']}")
    return document.problem(where, f"{name}: {error['msg']}")


def _within(data: Any, loc: Sequence[str | int]) -> Where:
    """The part of pydantic's location that the file knows: union members and the like are no places in it."""
    where: list[str | int] = []
    for part in loc:
        if isinstance(data, dict) and isinstance(part, str):
            where.append(part)
            data = data.get(part)
        elif isinstance(data, list) and isinstance(part, int) and part < len(data):
            where.append(part)
            data = data[part]
    return tuple(where)


def _allowed(model: Any, loc: Sequence[str | int]) -> tuple[str, ...]:
    """The keys that the model allows at that place."""
    for part in loc:
        model = _inner(model, part)
    model = _bare(model)
    if isinstance(model, type) and issubclass(model, pydantic.BaseModel):
        return tuple(info.alias or name for name, info in model.model_fields.items())
    return ()


def _inner(kind: Any, part: str | int) -> Any:
    kind = _bare(kind)
    if isinstance(kind, type) and issubclass(kind, pydantic.BaseModel):
        found = kind.model_fields.get(str(part))
        return found.annotation if found else None
    arguments = get_args(kind)
    return arguments[-1 if isinstance(part, str) else 0] if arguments else None


def _bare(kind: Any) -> Any:
    """The type without `Annotated[…]` and `| None`."""
    while True:
        if get_origin(kind) is Annotated:
            kind = get_args(kind)[0]
        elif get_origin(kind) in (Union, types.UnionType):
            kind = next((a for a in get_args(kind) if a is not types.NoneType), None)
        else:
            return kind


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
