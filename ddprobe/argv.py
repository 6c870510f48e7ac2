"""How a host's programs will read an argv: options and operands, a file's other names, what a pattern stands for.

What of it is allowed, `readonly` says.
"""

from __future__ import annotations

import fnmatch
import posixpath
import re
from collections.abc import Mapping, Sequence

from ddprobe.model import Glob, Word

Options = Mapping[str, re.Pattern[str] | None]
"""Each option with the form of its value; None where it takes none."""

_THROUGH = re.compile(r"/proc/[^/]+/(?:task/[^/]+/)?(?:root|cwd)(?=/|\Z)")


class NotAllowed(Exception):
    """An argv has an option or a value that is not on the list; the message says which."""


def operands(argv: Sequence[Word], options: Options) -> tuple[Word, ...]:
    """The words that are neither options nor their values. Raises `NotAllowed`."""
    found: list[Word] = []
    words = list(argv[1:])
    plain = False
    while words:
        word = words.pop(0)
        if word == "-":
            raise NotAllowed("reading stdin as a file")
        if argv[0] == "find" and word in ("(", ")"):
            continue
        if plain or isinstance(word, Glob) or not word.startswith(("-", "+")):
            found.append(word)
        elif word == "--":
            plain = True
        elif word not in options:
            raise NotAllowed(f"the option {word!r} of {argv[0]} is not on the list")
        elif (form := options[word]) is not None:
            value = words.pop(0) if words else None
            if not isinstance(value, str) or not form.match(value):
                raise NotAllowed(f"the value {value!r} of {word} is not of an allowed form")
    return tuple(found)


def names_of(path: str) -> tuple[str, str, str]:
    """The path as written, without `//`, `.` and `..`, and seen from the root of the process it goes through."""
    plain = re.sub("^/+", "/", posixpath.normpath(path))
    within = plain
    while found := _THROUGH.match(within):
        within = within[found.end() :] or "/"
    return (path, plain, within)


def expands_to(pattern: str, name: str) -> bool:
    """Whether the shell expands the pattern to this name: a dot in front is matched by a dot only."""
    if name.startswith(".") and not pattern.startswith("."):
        return False
    return fnmatch.fnmatchcase(name, pattern)
