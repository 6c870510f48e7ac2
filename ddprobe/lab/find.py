"""`find` over a made-up tree."""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from dataclasses import dataclass

from ddprobe.lab.entries import length
from ddprobe.lab.globs import compile_glob
from ddprobe.lab.machine import Machine
from ddprobe.lab.programs import Output, quoted
from ddprobe.lab.tree import LOOP, MISSING, Folder, Link, Node, TreeError

MOUNTS = ("/proc", "/sys", "/dev")
_UNITS = {"c": 1, "k": 1024, "M": 1024**2, "G": 1024**3}


@dataclass(slots=True)
class Entry:
    """What the expression looks at."""

    path: str
    node: Node
    pruned: bool = False


Test = Callable[[Entry], bool]


def find(machine: Machine, argv: tuple[str, ...], out: Output) -> None:
    words = list(argv[1:])
    follow = "-L" in words
    words = [word for word in words if word != "-L"]
    starts = []
    while words and not (words[0].startswith("-") or words[0] == "("):
        starts.append(words.pop(0))
    expression = _Expression(words, out)
    test = expression.whole()
    walk = _Walk(machine, out, test, follow, expression.limits, "-xdev" in words)
    for start in starts:
        walk.start(start)


class _Expression:
    """Reads an expression: or of ands of tests."""

    def __init__(self, words: list[str], out: Output) -> None:
        self.words = words[::-1]
        self.out = out
        self.limits = {"-mindepth": 0, "-maxdepth": 1 << 30}
        self.printing = "-print" in words

    def whole(self) -> Test:
        test = self.either() if self.words else _always
        if self.printing:
            return test
        return lambda entry: test(entry) and self.print(entry)

    def print(self, entry: Entry) -> bool:
        self.out.say(entry.path)
        return True

    def either(self) -> Test:
        tests = [self.all()]
        while self.words and self.words[-1] == "-o":
            self.words.pop()
            tests.append(self.all())
        return lambda entry: any(test(entry) for test in tests)

    def all(self) -> Test:
        tests = []
        while self.words and self.words[-1] not in ("-o", ")"):
            tests.append(self.one())
        return lambda entry: all(test(entry) for test in tests)

    def one(self) -> Test:
        word = self.words.pop()
        if word == "(":
            inside = self.either()
            self.words.pop()
            return inside
        if word == "-not":
            negated = self.one()
            return lambda entry: not negated(entry)
        if word == "-prune":
            return _prune
        if word == "-print":
            return self.print
        if word == "-xdev":
            return _always
        return self.test(word, self.words.pop())

    def test(self, word: str, value: str) -> Test:
        if word in self.limits:
            self.limits[word] = int(value)
            return _always
        if word == "-type":
            return lambda entry: _letter(entry.node) == value
        if word == "-size":
            return _size(value)
        pattern = compile_glob(value)
        if word == "-name":
            return lambda entry: bool(pattern.match(posixpath.basename(entry.path.rstrip("/")) or "/"))
        return lambda entry: bool(pattern.match(entry.path))


def _always(_entry: Entry) -> bool:
    return True


def _prune(entry: Entry) -> bool:
    entry.pruned = True
    return True


def _letter(node: Node) -> str:
    return "d" if isinstance(node, Folder) else "l" if isinstance(node, Link) else "f"


def _size(value: str) -> Test:
    unit = _UNITS.get(value[-1], 512)
    sign = value[0] if value[0] in "+-" else ""
    count = int(value.strip("+-ckMG"))

    def test(entry: Entry) -> bool:
        units = -(-length(entry.node) // unit)
        return units > count if sign == "+" else units < count if sign == "-" else units == count

    return test


class _Walk:
    """Goes down the tree, a folder before what is in it."""

    def __init__(
        self, machine: Machine, out: Output, test: Test, follow: bool, limits: dict[str, int], xdev: bool
    ) -> None:
        self.tree = machine.tree
        self.out = out
        self.test = test
        self.follow = follow
        self.limits = limits
        self.xdev = xdev

    def start(self, path: str) -> None:
        self.visit(path, 0, {})

    def visit(self, path: str, depth: int, above: dict[str, str]) -> None:
        try:
            at = self.look(path)
        except TreeError as error:
            self.out.complain(f"{quoted(path)}: {error}")
            return
        node = self.tree.nodes[at]
        if at in above and isinstance(node, Folder):
            where = f"{quoted(path)} is part of the same file system loop as {quoted(above[at])}"
            self.out.complain(f"File system loop detected; {where}.")
            return
        entry = Entry(path, node)
        if depth >= self.limits["-mindepth"]:
            self.test(entry)
        crosses = self.xdev and depth > 0 and at in MOUNTS
        if isinstance(node, Folder) and not entry.pruned and not crosses and depth < self.limits["-maxdepth"]:
            self.enter(path, at, depth, above)

    def look(self, path: str) -> str:
        """The entry's own path; with -L a link stands for what it points at, unless that is missing."""
        if self.follow:
            try:
                return self.tree.resolve(path)
            except TreeError as error:
                if str(error) == LOOP or str(error) != MISSING:
                    raise
        return self.tree.resolve(path, follow=False)

    def enter(self, path: str, at: str, depth: int, above: dict[str, str]) -> None:
        try:
            names = self.tree.names(at)
        except TreeError as error:
            self.out.complain(f"{quoted(path)}: {error}")
            return
        for name in names:
            inside = path + name if path.endswith("/") else f"{path}/{name}"
            self.visit(inside, depth + 1, {**above, at: path})
