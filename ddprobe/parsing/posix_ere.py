r"""POSIX extended regular expressions, the language of `grep -E`: what is checked before anything is sent.

People who write Python or Perl expressions get an error that says what to write instead. Refused is also what
hosts read differently (GNU, busybox) and what quietly finds something else than meant: `commit()` is an empty group,
so it matches `commit` everywhere; `commit\(\)` is the call.
"""

from __future__ import annotations

import re

from ddprobe.errors import UsageError

MAX_PATTERN = 2000

# GNU grep, busybox on glibc and busybox on musl agree on these escapes of letters.
_SHARED_ESCAPES = frozenset("wWsSbB")
_INSTEAD = {
    "d": "[0-9]",
    "D": "[^0-9]",
    "h": "[[:blank:]]",
    "t": "[[:blank:]] (or type a tab)",
    "n": "two searches: grep looks at one line at a time",
    "r": "[[:cntrl:]]",
    "A": "^",
    "Z": "$",
    "z": "$",
}
_IN_BRACKETS = {"d": "0-9", "w": "[:alnum:]_", "s": "[:space:]", "t": "[:blank:]"}
_CLASSES = frozenset(
    (
        "alnum",
        "alpha",
        "blank",
        "cntrl",
        "digit",
        "graph",
        "lower",
        "print",
        "punct",
        "space",
        "upper",
        "xdigit",
    )
)
_INTERVAL = re.compile(r"\{(\d{1,5})?(,)?(\d{1,5})?\}", re.ASCII)
_REPEAT_MAX = 255  # RE_DUP_MAX as POSIX guarantees it


def check(pattern: str) -> None:
    """Raise `UsageError`, with what to write instead, unless `grep -E` reads the pattern as its author means it."""
    if not pattern:
        raise UsageError("the pattern is empty: it would match every line", "say what to search for")
    if len(pattern) > MAX_PATTERN:
        raise UsageError(f"the pattern is {len(pattern)} characters long", f"at most {MAX_PATTERN} are sent")
    if re.search(r"[\n\r\0]", pattern):
        raise UsageError("the pattern holds a line break or a NUL", "grep looks at one line at a time")
    _Reader(pattern).read()


class _Reader:
    """One pass over a pattern, from left to right."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0
        self.groups: list[int] = []
        self.closed = 0
        self.atom = False
        """Whether something stands before that can be repeated."""
        self.empty = True
        """Whether the current alternative has nothing in it yet."""
        self.repeated = False

    def wrong(self, what: str, instead: str, at: int | None = None) -> UsageError:
        place = self.at if at is None else at
        return UsageError(f"in the pattern {self.pattern!r}, at character {place + 1}: {what}", instead)

    def read(self) -> None:
        while self.at < len(self.pattern):
            self._next(self.pattern[self.at])
        if self.groups:
            raise self.wrong("this ( is never closed", r"write \( for the character itself", self.groups[-1])
        self._end_alternative()

    def _next(self, char: str) -> None:
        if char == "\\":
            self._escape()
        elif char == "[":
            self._brackets()
        elif char == "(":
            self._open()
        elif char == ")":
            self._close()
        elif char == "|":
            self._end_alternative()
            self.at += 1
            self.atom, self.empty, self.repeated = False, True, False
        elif char in "*+?{":
            self._repeat(char)
        elif char in "^$":
            self._step(1, atom=False)
        else:
            self._step(1)

    def _step(self, width: int, *, atom: bool = True) -> None:
        self.at += width
        self.atom, self.empty, self.repeated = atom, False, False

    def _escape(self) -> None:
        if self.at + 1 == len(self.pattern):
            raise self.wrong("it ends in a backslash", r"write \\ for the character itself")
        char = self.pattern[self.at + 1]
        if char in "<>bB":
            self._step(2, atom=False)
        elif char.isascii() and char.isalpha() and char not in _SHARED_ESCAPES:
            instead = _INSTEAD.get(char, f"write {char} for the letter itself")
            raise self.wrong(
                f"\\{char} is not known to grep -E", instead if " " in instead else f"write {instead}"
            )
        elif char in "`'":
            raise self.wrong(f"\\{char} is an anchor in GNU's grep", f"write {char} for the character itself")
        elif char.isascii() and char.isdigit() and not 0 < int(char) <= self.closed:
            raise self.wrong(f"\\{char} refers to no group before it", "groups are counted from 1")
        else:
            self._step(2)

    def _open(self) -> None:
        if self.pattern.startswith("(?", self.at):
            raise self.wrong(
                "(?…) (look-around, flags, named and non-capturing groups) is not known to grep -E",
                r"use a plain group (…), -i for any case, -w for whole words; \(\? are the characters themselves",
            )
        self.groups.append(self.at)
        self.at += 1
        self.atom, self.empty, self.repeated = False, True, False

    def _close(self) -> None:
        if not self.groups:
            raise self.wrong("this ) closes nothing", r"write \) for the character itself")
        if self.groups[-1] == self.at - 1:
            raise self.wrong(
                "() is an empty group, which matches anywhere", r"write \(\) for the characters themselves"
            )
        self._end_alternative()
        self.groups.pop()
        self.closed += 1
        self._step(1)

    def _end_alternative(self) -> None:
        if self.empty:
            raise self.wrong(
                "an alternative of | is empty: it would match every line",
                r"write \| for the character itself",
            )

    def _repeat(self, char: str) -> None:
        if self.repeated:
            raise self.wrong(
                f"{char} follows another repetition (lazy and possessive ones are not known to grep -E)",
                "grep shows whole lines: the plain repetition finds the same lines",
            )
        if not self.atom:
            raise self.wrong(f"{char} has nothing to repeat", f"write \\{char} for the character itself")
        width = 1
        if char == "{":
            match = _INTERVAL.match(self.pattern, self.at)
            if match is None or not (match[1] or match[3]):
                raise self.wrong(
                    "{ begins no repetition like {2} or {1,3}", r"write \{ for the character itself"
                )
            low, high = int(match[1] or 0), int(match[3] or match[1] or 0)
            if low > high or high > _REPEAT_MAX:
                raise self.wrong(
                    f"{match[0]} is no repetition", f"write {{low,high}}, with high at most {_REPEAT_MAX}"
                )
            width = match.end() - match.start()
        self.at += width
        self.repeated = True

    def _brackets(self) -> None:
        start = self.at
        inner = start + 1 + self.pattern.startswith("^", start + 1)
        at = inner
        while True:
            if at >= len(self.pattern):
                raise self.wrong("this [ is never closed", r"write \[ for the character itself", start)
            char = self.pattern[at]
            if char == "]" and at > inner:
                break
            if char == "[" and self.pattern[at + 1 : at + 2] in (":", ".", "="):
                at = self._class(at)
                continue
            if char == "\\":
                self._backslash_in_brackets(at)
            at += 1
        if self.pattern[inner] == ":" and self.pattern[at - 1] == ":" and at - inner > 1:
            raise self.wrong(
                f"{self.pattern[start : at + 1]} is a set of single characters",
                f"write [{self.pattern[start : at + 1]}] for the class",
                start,
            )
        self._step(at + 1 - start)

    def _class(self, at: int) -> int:
        kind = self.pattern[at + 1]
        end = self.pattern.find(kind + "]", at + 2)
        if end < 0:
            raise self.wrong(f"this [{kind} is never closed", f"write [{kind}…{kind}]", at)
        name = self.pattern[at + 2 : end]
        if kind == ":" and name not in _CLASSES:
            raise self.wrong(
                f"[:{name}:] is no class of characters", f"one of {', '.join(sorted(_CLASSES))}", at
            )
        return end + 2

    def _backslash_in_brackets(self, at: int) -> None:
        char = self.pattern[at + 1 : at + 2]
        if char == "]":
            raise self.wrong(
                r"inside […] a backslash stands for itself, so this ] closes the set", "put ] first: []…]", at
            )
        if char.isascii() and char.isalpha():
            instead = _IN_BRACKETS.get(char)
            raise self.wrong(
                f"inside […] a backslash stands for itself, so \\{char} is a backslash or {char}",
                f"write {instead} inside the brackets"
                if instead
                else f"write {char} alone, or \\\\ apart from it",
                at,
            )
