"""What ddprobe must know of an inference server to find it, ask it, and say its answers in the shared words."""

from __future__ import annotations

import abc
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ddprobe.facts import ServerArgs, ServerState
from ddprobe.model import HttpRequest, HttpResult
from ddprobe.parsing import bounded_json
from ddprobe.parsing.server_args import Dialect, parse

if TYPE_CHECKING:
    from ddprobe.engines.generation import Generation

HTTP_TIMEOUT = 10.0
_BEYOND = 1e290
_EXACT = 2**53
_PYTHON = re.compile(r"(python|pypy)[\d.]*t?\Z")
_PYTHON_WITH_VALUE = frozenset({"-W", "-X", "--check-hash-based-pycs"})

Answers = Mapping[str, HttpResult]
"""By path: `/server_info`."""


@dataclass(frozen=True, slots=True)
class PythonRun:
    """What a Python command line runs: a module (`-m`) or a script, and the words after it."""

    module: str = ""
    script: str = ""
    rest: tuple[str, ...] = ()


def python_run(argv: tuple[str, ...]) -> PythonRun | None:
    """The module or script a Python interpreter was told to run; None when this argv is not one's."""
    if not argv or not _PYTHON.match(posixpath.basename(argv[0])):
        return None
    rest = list(argv[1:])
    while rest:
        word = rest.pop(0)
        if word == "-m" and rest:
            return PythonRun(module=rest[0], rest=tuple(rest[1:]))
        if word == "-c" or word == "-":
            return None
        if word in _PYTHON_WITH_VALUE:
            rest = rest[1:]
        elif not word.startswith("-"):
            return PythonRun(script=word, rest=tuple(rest))
    return None


class Engine(abc.ABC):
    """One inference server's dialect."""

    name: ClassVar[str]
    """As in the inventory: `sglang`."""
    title: ClassVar[str]
    package: ClassVar[str]
    """The Python package that is its source; empty when it has none."""
    default_port: ClassVar[int]
    needle: ClassVar[str]
    """An extended regular expression that one word of its command line matches, and that does not match itself."""
    rank_needle: ClassVar[str] = ""
    """The same for the titles its workers give themselves."""
    rank_titles: ClassVar[tuple[str, ...]] = ()
    """How the titles of those workers that compute begin."""
    dialect: ClassVar[Dialect]
    certificate: ClassVar[str] = "ssl_certfile"
    """The argument that makes it speak https."""
    config_file: ClassVar[str] = ""
    """The argument that names a file with further arguments."""
    flags: ClassVar[Mapping[str, str]] = {}
    """How it is told on the command line what has a shared name: `context_length` → `--max-model-len`."""
    environment_matters: ClassVar[str]
    """What cannot be ruled out where the environment cannot be seen."""
    variables: ClassVar[str] = ""
    """How environment variables begin that stand for flags."""
    paths: ClassVar[tuple[str, ...]]
    """What to ask a running server."""
    essential: ClassVar[str]
    """The one of them without whose answer nothing is known of the server."""
    argument_paths: ClassVar[tuple[str, ...]] = ()
    """Those of them whose answer holds its arguments with defaults filled in."""
    not_arguments: ClassVar[frozenset[str]] = frozenset()
    """Top-level fields of that answer which are none."""
    generation: ClassVar[Generation]
    """How it is asked to generate, and how its answers are read."""
    older: ClassVar[Mapping[str, str]] = {}
    """Path → the path that answers in its place in older releases."""

    @abc.abstractmethod
    def arguments(self, argv: tuple[str, ...]) -> tuple[str, ...] | None:
        """The server's own arguments when this argv runs it; None when it does not."""

    def is_rank(self, title: str) -> bool:
        """True for a worker that computes (a scheduler, a tensor-parallel rank)."""
        return bool(self.rank_titles) and title.startswith(self.rank_titles)

    def flag(self, name: str) -> str:
        """An argument as one types it."""
        return self.flags.get(name, f"--{name.replace('_', '-')}")

    def given(self, argv: tuple[str, ...], environment: tuple[tuple[str, str], ...] = ()) -> dict[str, Any]:
        """The arguments given, under their canonical names. Those on the command line win."""
        flags = tuple(
            f"--{name.removeprefix(self.variables).lower().replace('_', '-')}={value}"
            for name, value in environment
            if self.variables and name.startswith(self.variables)
        )
        return self.canonical(parse((*flags, *(self.arguments(argv) or ())), self.dialect))

    def canonical(self, values: dict[str, Any]) -> dict[str, Any]:
        """Adds the shared names to an engine's own."""
        return values

    def requests(self, base: str, prefix: str, paths: tuple[str, ...]) -> tuple[HttpRequest, ...]:
        """Requests for these paths; the keys of their answers begin with `prefix`."""
        return tuple(
            HttpRequest(
                key=prefix + path.strip("/").replace("/", "-"),
                method="GET",
                path=path,
                base=base,
                timeout=HTTP_TIMEOUT,
            )
            for path in paths
        )

    @abc.abstractmethod
    def state(self, base: str, answers: Answers) -> ServerState:
        """What the server said of itself; a field whose answer is missing is None or empty."""

    def resolved(self, answers: Answers) -> ServerArgs | None:
        """Its arguments with defaults filled in, when it tells them."""
        told = mapping(document(answers, *self.argument_paths))
        values = {name: value for name, value in told.items() if name not in self.not_arguments}
        if not values:
            return None
        return ServerArgs(
            engine=self.name,
            origin=self.argument_paths[0],
            version=text(told.get("version")),
            values=tuple(sorted(values.items())),
            resolved=True,
        )


def document(answers: Answers, *paths: str) -> Any:
    """The JSON of the first of these paths that answered whole; None when none did."""
    for path in paths:
        result = answers.get(path)
        if result is not None and result.whole:
            try:
                return bounded_json.loads(result.body.decode("utf-8", "replace"))
            except ValueError:
                continue
    return None


def mapping(value: Any) -> dict[str, Any]:
    """The value if it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: Any) -> list[dict[str, Any]]:
    """The objects in a JSON list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def number(value: Any) -> float | None:
    """The value if it is a number that one can reckon with: JSON here may hold NaN, Infinity and integers of any length."""
    counts = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _BEYOND
    return float(value) if counts else None


def whole_number(value: Any) -> int | None:
    """The value if it is an integer that a float holds exactly."""
    counts = isinstance(value, int) and not isinstance(value, bool) and abs(value) < _EXACT
    return value if counts else None


def total(rows: list[dict[str, Any]], field: str) -> int | None:
    """The sum of a field over rows; None when a row lacks it or there are none."""
    values = [whole_number(row.get(field)) for row in rows]
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None


def text(value: Any) -> str:
    """The value if it is a string, else an empty one."""
    return value if isinstance(value, str) else ""
