"""Changes lints and verdicts one comparison, number or connective at a time, and counts the changes that the tests notice.

    python tests/tools/mutate.py ddprobe/lints --tests tests/test_lints.py --minutes 5 --seed 1

A change that no test notices is printed with its line. The working tree is not touched: a copy is. Numbers change up
and down, `<` becomes `<=`, `and` becomes `or`, `not` goes, True and False change places. A line that ends in
`# equivalent: why` is left alone.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SWAPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mutant:
    """A file with one change."""

    path: Path
    line: int
    before: str
    after: str
    text: str
    """The whole file."""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.before}  →  {self.after}"


def changes(node: ast.AST) -> Iterator[ast.AST]:
    """The node, changed in each way that is tried."""
    if isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            yield ast.Constant(not node.value)
        elif isinstance(node.value, int):
            yield ast.Constant(node.value + 1)
            yield ast.Constant(node.value - 1)
        elif isinstance(node.value, float):
            yield ast.Constant(node.value * 1.25 or 0.1)
            yield ast.Constant(node.value * 0.8 or -0.1)
    elif isinstance(node, ast.Compare):
        for at, operator in enumerate(node.ops):
            changed = copy.deepcopy(node)
            changed.ops[at] = SWAPPED[type(operator)]()
            yield changed
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.operand


def mutants(path: Path) -> list[Mutant]:
    """Every change of a file's code; what stands in annotations, decorators, sentences and `[:8]` is left out."""
    text = (ROOT / path).read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    found = []
    for node in _code(ast.parse(text)):
        where = (getattr(node, "lineno", 0), getattr(node, "end_lineno", 0))
        if any("# equivalent:" in line for line in lines[where[0] - 1 : where[1]]):
            continue
        for changed in changes(node):
            written = ast.unparse(ast.fix_missing_locations(changed))
            # In brackets, it binds as the whole it is.
            found.append(
                Mutant(path, where[0], ast.unparse(node), written, _replaced(lines, node, f"({written})"))
            )
    return found


def _code(node: ast.AST) -> Iterator[ast.AST]:
    for name, value in ast.iter_fields(node):
        skipped = name in ("annotation", "returns", "decorator_list", "format_spec")
        # A sentence's format, and where a text or a list is cut for people (`[:8]`), are looks.
        for child in value if isinstance(value, list) else [value]:
            looks = isinstance(child, ast.JoinedStr) or (isinstance(child, ast.Slice) and child.lower is None)
            # `zip(…, strict=True)` only guards against our own mistakes.
            guards = isinstance(child, ast.keyword) and child.arg == "strict"
            if isinstance(child, ast.AST) and not (skipped or looks or guards):
                yield child
                yield from _code(child)


def _replaced(lines: Sequence[str], node: ast.AST, written: str) -> str:
    assert isinstance(node, ast.expr)
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    first, last = lines[node.lineno - 1].encode(), lines[node.end_lineno - 1].encode()
    changed = first[: node.col_offset] + written.encode() + last[node.end_col_offset :]
    return "".join([*lines[: node.lineno - 1], changed.decode(), *lines[node.end_lineno :]])


def survives(mutant: Mutant, copied: Path, tests: Sequence[str], seconds: float) -> bool:
    """Whether every test passes in spite of the change."""
    file = copied / mutant.path
    original, status = file.read_bytes(), file.stat()
    file.write_text(mutant.text, encoding="utf-8")
    try:
        return passes(copied, tests, seconds, keep=False)
    finally:
        file.write_bytes(original)
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))


def passes(copied: Path, tests: Sequence[str], seconds: float, *, keep: bool) -> bool:
    """Whether every test passes. `keep` the bytecode: that of a change would be taken for another's."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(copied), os.environ.get("PYTHONPATH", "")]),
        "PYTHONDONTWRITEBYTECODE": "" if keep else "1",
    }
    quiet = ("-q", "-x", "-n", "0", "--no-header", "--tb=no", "-p", "no:cacheprovider")
    command = [sys.executable, "-m", "pytest", *quiet, *tests]
    try:
        done = subprocess.run(
            command, cwd=copied, env=environment, capture_output=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="mutation check")
    parser.add_argument(
        "paths", nargs="+", type=Path, help="files or folders, from the root of the repository"
    )
    parser.add_argument("--tests", nargs="+", required=True, help="what pytest is to run")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--least", type=float, default=0.9, help="share that has to be noticed")
    given = parser.parse_args(argv)
    files = [
        file.relative_to(ROOT)
        for path in given.paths
        for file in (sorted((ROOT / path).rglob("*.py")) if (ROOT / path).is_dir() else [ROOT / path])
    ]
    every = [mutant for file in files for mutant in mutants(file)]
    random.Random(given.seed).shuffle(every)
    end = time.monotonic() + 60 * given.minutes
    tried = 0
    survivors: list[Mutant] = []
    with tempfile.TemporaryDirectory() as folder:
        copied = Path(folder)
        for name in ("ddprobe", "tests"):
            shutil.copytree(ROOT / name, copied / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", copied)
        if not passes(copied, given.tests, 600, keep=True):
            print("the tests fail without any change")
            return 2
        began = time.monotonic()
        passes(copied, given.tests, 600, keep=False)
        seconds = 10 + 5 * (time.monotonic() - began)
        for mutant in every:
            if time.monotonic() > end:
                break
            tried += 1
            if survives(mutant, copied, given.tests, seconds):
                survivors.append(mutant)
                print(mutant, flush=True)
    killed = tried - len(survivors)
    share = killed / tried if tried else 0.0
    print(f"{killed} of {tried} noticed ({share:.0%}), of {len(every)} possible; seed {given.seed}")
    return 0 if share >= given.least else 1


if __name__ == "__main__":
    sys.exit(main())
