"""Shell patterns: what `*`, `?` and `[…]` stand for, in a word that the host expands and in find's -name."""

from __future__ import annotations

import re

from ddprobe.lab.tree import Folder, Tree, TreeError

_WILD = re.compile(r"[*?\[]")


def compile_glob(pattern: str) -> re.Pattern[str]:
    """The whole text must match; `*` and `?` match a slash as well."""
    source, at = "", 0
    while at < len(pattern):
        char = pattern[at]
        at += 1
        if char == "*":
            source += ".*"
        elif char == "?":
            source += "."
        elif char == "\\" and at < len(pattern):
            source += re.escape(pattern[at])
            at += 1
        elif (
            char == "["
            and (end := pattern.find("]", at + 2 if pattern[at : at + 1] in ("!", "^") else at + 1)) > 0
        ):
            inside = pattern[at:end]
            negated = inside[:1] in ("!", "^")
            members = re.sub(r"([\\\[\]^&~|])", r"\\\1", inside[1:] if negated else inside)
            source += f"[{'^' if negated else ''}{members}]"
            at = end + 1
        else:
            source += re.escape(char)
    return re.compile(source + r"\Z", re.DOTALL)


def expand(tree: Tree, pattern: str) -> list[str]:
    """The paths that match, sorted; the pattern itself when none does, as a POSIX shell has it."""
    found = [""]
    parts = [part for part in pattern.split("/") if part]
    for number, part in enumerate(parts):
        last = number == len(parts) - 1
        found = [path for above in found for path in _matches(tree, above, part, last)]
    return found or [pattern]


def _matches(tree: Tree, above: str, part: str, last: bool) -> list[str]:
    if not _WILD.search(part):
        path = f"{above}/{part}"
        return [path] if _exists(tree, path, last) else []
    try:
        names = tree.names(above or "/")
    except TreeError:
        return []
    wanted = compile_glob(part)
    shown = [
        name for name in names if wanted.match(name) and (part.startswith(".") or not name.startswith("."))
    ]
    return [f"{above}/{name}" for name in shown if _exists(tree, f"{above}/{name}", last)]


def _exists(tree: Tree, path: str, last: bool) -> bool:
    try:
        return (last and bool(tree.node(path, follow=False))) or isinstance(tree.node(path), Folder)
    except TreeError:
        return False
