"""Functions and classes of Python files: by the parser, and by indentation where the parser cannot."""

from __future__ import annotations

import inspect
import textwrap
import warnings
from types import ModuleType

import pytest

from ddprobe.parsing import python_symbols
from ddprobe.parsing.python_symbols import Symbol, outline
from tests.cputime import cpu_seconds

WORKER = textwrap.dedent(
    '''\
    """Drafts."""
    import functools
    from typing import overload

    LIMIT = 3


    def _commit_accept(candidates, accept_len):
        """Shifted left."""
        return candidates, accept_len


    @functools.lru_cache(
        maxsize=None,
    )
    def cached(
        a,
        b=(1, 2),
    ) -> int:
        text = """
    def not_a_function(self):
        pass
    """
        return a


    class Worker:
        """Works."""

        depth = 1

        @property
        def commit(self):
            return 1

        @commit.setter
        def commit(self, value):
            self._commit = value

        @overload
        def go(self, x: int) -> int: ...
        @overload
        def go(self, x: str) -> str: ...
        def go(self, x):
            def inner(y):
                async def innermost():
                    return y

                return innermost

            return inner(x)

        class Buffers:
            def reset(self): self.n = 0

        if LIMIT > 2:
            async def verify(self):
                return 2
        else:
            def verify(self):
                return 3


    try:
        import torch
    except ImportError:
        def fallback():
            pass
    # the end
    '''
)

EXPECTED = [
    ("_commit_accept", "def", 8, 8, 10),
    ("cached", "def", 13, 16, 24),
    ("Worker", "class", 27, 27, 61),
    ("Worker.commit", "def", 32, 33, 34),
    ("Worker.commit", "def", 36, 37, 38),
    ("Worker.go", "def", 40, 41, 41),
    ("Worker.go", "def", 42, 43, 43),
    ("Worker.go", "def", 44, 44, 51),
    ("Worker.go.inner", "def", 45, 45, 49),
    ("Worker.go.inner.innermost", "async def", 46, 46, 47),
    ("Worker.Buffers", "class", 53, 53, 54),
    ("Worker.Buffers.reset", "def", 54, 54, 54),
    ("Worker.verify", "async def", 57, 57, 58),
    ("Worker.verify", "def", 60, 60, 61),
    ("fallback", "def", 67, 67, 68),
]


def told(symbols: tuple[Symbol, ...]) -> list[tuple[str, str, int, int, int]]:
    return [(s.name, s.kind, s.first, s.line, s.last) for s in symbols]


def test_by_the_parser() -> None:
    found = outline(WORKER)
    assert found.note == ""
    assert told(found.symbols) == EXPECTED


def test_by_indentation_it_is_the_same() -> None:
    # This is no Python of any version: the file does not parse.
    broken = outline(WORKER + "\n\ndef = 3\n")
    assert "cannot parse the file (line 72" in broken.note
    assert told(broken.symbols) == EXPECTED


def test_newer_syntax_is_read_by_indentation() -> None:
    found = outline(
        textwrap.dedent(
            """\
            class Box[T]:
                def first[U](
                    self,
                    x: T,
                ) -> U:
                    return f"{x!r:{'a' "b"}} {"
                other = 1
            """
        )
    )
    assert "cannot parse" in found.note
    assert told(found.symbols) == [("Box", "class", 1, 1, 7), ("Box.first", "def", 2, 2, 6)]


def test_ranges_are_those_of_inspect() -> None:
    module = ModuleType("worker")
    code = compile(WORKER.replace("import torch", "import json"), "worker.py", "exec")
    exec(code, module.__dict__)
    worker = module.__dict__["Worker"]
    for name, function in (
        ("_commit_accept", module.__dict__["_commit_accept"]),
        ("cached", module.__dict__["cached"].__wrapped__),
        ("Worker.Buffers.reset", worker.Buffers.reset),
    ):
        lines = WORKER.splitlines(keepends=True)
        block = inspect.getblock(lines[function.__code__.co_firstlineno - 1 :])
        symbol = outline(WORKER).named(name)[0]
        assert symbol.first == function.__code__.co_firstlineno
        assert symbol.last == symbol.first + len(block) - 1


@pytest.mark.parametrize(
    ("line", "name"),
    [
        (1, None),
        (5, None),
        (8, "_commit_accept"),
        (11, None),
        (13, "cached"),
        (21, "cached"),
        (30, "Worker"),
        (32, "Worker.commit"),
        (35, "Worker"),
        (47, "Worker.go.inner.innermost"),
        (49, "Worker.go.inner"),
        (51, "Worker.go"),
        (52, "Worker"),
        (54, "Worker.Buffers.reset"),
        (69, None),
        (9999, None),
    ],
)
def test_around(line: int, name: str | None) -> None:
    symbol = outline(WORKER).around(line)
    assert (symbol.name if symbol else None) == name


@pytest.mark.parametrize(
    ("asked", "lines"),
    [
        ("_commit_accept", [8]),
        ("_commit_accept()", [8]),
        ("Worker.commit", [33, 37]),
        ("commit", [33, 37]),
        ("go", [41, 43, 44]),
        ("Worker.go.<locals>.inner", [45]),
        ("Buffers.reset", [54]),
        ("verify", [57, 60]),
        ("Worker", [27]),
        ("accept", []),
        ("", []),
    ],
)
def test_named(asked: str, lines: list[int]) -> None:
    assert [symbol.line for symbol in outline(WORKER).named(asked)] == lines


def test_an_exact_name_wins_over_the_end_of_another() -> None:
    found = outline("def run(): pass\nclass A:\n    def run(self): pass\n")
    assert [symbol.name for symbol in found.named("run")] == ["run"]


def test_near() -> None:
    found = outline(WORKER)
    assert found.near("Worker._commit")[:2] == ("Worker.commit", "_commit_accept")
    assert found.near("Worker.verfy")[0] == "Worker.verify"
    assert found.near("zzzzzzzz") == ()


@pytest.mark.parametrize("end", ["\r\n", "\n"])
def test_lines_are_those_of_sed(end: str) -> None:
    text = end.join(["x = 1", "\x0c", "s = 'a\u2028b'  # lone \r return", "def f():", "    return 1", ""])
    assert told(outline(text).symbols) == [("f", "def", 4, 4, 5)]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\0",
        "(" * 5000,
        "-" * 200_000 + "1",
        "\ufeffdef f(): pass",
        "def f(:\n",
        "'''",
        "x = '\\d'\n",
        "\tdef f():\n  x\n",
    ],
)
def test_nonsense_is_survived_in_silence(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert isinstance(outline(text), python_symbols.Outline)


def test_a_long_file_that_does_not_parse_is_read_in_a_moment() -> None:
    text = "".join(f"def f{number}(a):\n    return a\n" for number in range(20_000)) + "def cut("
    found = outline("")

    def read() -> None:
        nonlocal found
        found = outline(text)
        found.near("f1999x")

    assert cpu_seconds(read) < 3
    assert found.note
    assert found.named("f19999")[0].first == 39_999
    assert found.near("f1999x") == ()
    assert found.near("f19999")[0] == "f19999"
