"""POSIX regular expressions (basic and extended, with GNU's additions) said in Python's, over bytes.

>>> translate("commit_lens?|accept", extended=True)
'commit_lens?|accept'
>>> translate("a\\{2\\}(b)", extended=False)
'a{2}\\\\(b\\\\)'
"""

from __future__ import annotations

import re

_CLASSES = {
    "alpha": "A-Za-z", "digit": "0-9", "alnum": "A-Za-z0-9", "upper": "A-Z", "lower": "a-z",
    "space": r" \t\n\r\f\v", "blank": r" \t", "xdigit": "0-9A-Fa-f", "cntrl": r"\x00-\x1f\x7f",
    "print": r"\x20-\x7e", "graph": r"\x21-\x7e", "punct": r"!-/:-@\[-`{-~",
}  # fmt: skip
_WORD = "[A-Za-z0-9_]"
_ESCAPES = {
    "w": _WORD, "W": "[^A-Za-z0-9_]", "s": r"[ \t\n\r\f\v]", "S": r"[^ \t\n\r\f\v]",
    "b": r"\b", "B": r"\B", "<": rf"\b(?={_WORD})", ">": rf"\b(?<={_WORD})", "`": r"\A", "'": r"\Z",
}  # fmt: skip
_INTERVAL = re.compile(r"(\d{0,5})(,?)(\d{0,5})")


class BadPattern(Exception):
    """Why the pattern is none, in GNU grep's words."""


def compile_pattern(pattern: str, *, kind: str, ignore_case: bool, words: bool) -> re.Pattern[bytes]:
    """A search over lines that selects what `grep` selects. `kind` is `basic`, `extended` or `fixed`.

    Raises `BadPattern`.
    """
    parts = []
    for line in pattern.split("\n"):
        parts.append(re.escape(line) if kind == "fixed" else translate(line, extended=kind == "extended"))
    source = "|".join(f"(?:{part})" for part in parts)
    if words:
        source = f"(?<!{_WORD})(?:{source})(?!{_WORD})"
    # A character beyond ASCII is several bytes to grep under LC_ALL=C, and each of them matches itself.
    return re.compile(source.encode("utf-8"), re.IGNORECASE if ignore_case else 0)


def translate(pattern: str, *, extended: bool) -> str:
    """The Python pattern. Raises `BadPattern`."""
    reader = _Reader(pattern, extended)
    result = reader.alternation()
    if reader.at < len(pattern):
        raise BadPattern("Unmatched ) or \\)")
    return result


class _Reader:
    """Reads a pattern once, left to right."""

    def __init__(self, pattern: str, extended: bool) -> None:
        self.pattern = pattern
        self.extended = extended
        self.at = 0
        self.depth = 0

    def operator(self) -> str:
        """The operator that stands here (`(`, `)`, `|`, `{`, `*`, `+`, `?`), or nothing."""
        rest = self.pattern[self.at : self.at + 2]
        if rest[:1] == "*":
            return "*"
        if self.extended:
            return rest[:1] if rest[:1] and rest[:1] in "()|{+?" else ""
        return rest[1] if len(rest) == 2 and rest[0] == "\\" and rest[1] in "()|{+?" else ""

    def skip(self, operator: str) -> None:
        self.at += 1 if self.extended or operator == "*" else 2

    def alternation(self) -> str:
        branches = [self.branch()]
        while self.operator() == "|":
            self.skip("|")
            branches.append(self.branch())
        return "|".join(branches)

    def branch(self) -> str:
        pieces: list[str] = []
        start = self.at
        while self.at < len(self.pattern):
            operator = self.operator()
            if operator == "|" or (operator == ")" and (self.depth or not self.extended)):
                break
            pieces.append(self.piece(start))
        return "".join(pieces)

    def piece(self, start: int) -> str:
        operator = self.operator()
        if operator in ("*", "+", "?") and self.pattern[start : self.at] in ("", "^"):
            # Nothing to repeat: a basic expression takes the sign itself, an extended one ignores it.
            self.skip(operator)
            return "" if self.extended else re.escape(operator)
        atom = self.group() if operator == "(" else self.single(start)
        if atom == "^":
            return atom
        while (repeat := self.repeat()) is not None:
            atom = f"(?:{atom}){repeat}" if len(atom) > 1 or atom in "^$" else atom + repeat
            if self.operator() in ("*", "+", "?", "{"):
                atom = f"(?:{atom})"
        return atom

    def group(self) -> str:
        self.skip("(")
        self.depth += 1
        inside = self.alternation()
        if self.operator() != ")":
            raise BadPattern("Unmatched ( or \\(")
        self.skip(")")
        self.depth -= 1
        return f"({inside})"

    def repeat(self) -> str | None:
        operator = self.operator()
        if operator in ("*", "+", "?"):
            self.skip(operator)
            return operator
        if operator != "{":
            return None
        opened = self.at + (1 if self.extended else 2)
        found = _INTERVAL.match(self.pattern, opened)
        closing = "}" if self.extended else "\\}"
        if found is None or not found.group() or not self.pattern.startswith(closing, found.end()):
            if self.extended:
                return None
            raise BadPattern(
                "Unmatched \\{" if closing not in self.pattern[opened:] else "Invalid content of \\{\\}"
            )
        low, comma, high = found.groups()
        if comma and high and int(low or 0) > int(high):
            raise BadPattern("Invalid content of \\{\\}")
        self.at = found.end() + len(closing)
        return f"{{{low or 0}{comma}{high}}}"

    def single(self, start: int) -> str:
        char = self.pattern[self.at]
        self.at += 1
        if char == "[":
            return self.bracket()
        if char == ".":
            return "[^\\n]"
        if char == "\\":
            return self.escape()
        if char == "^":
            return "^" if self.extended or self.at - 1 == start else "\\^"
        if char == "$":
            return "$" if self.extended or self.ends() else "\\$"
        return re.escape(char)

    def ends(self) -> bool:
        return self.at >= len(self.pattern) or self.operator() in (")", "|")

    def escape(self) -> str:
        if self.at >= len(self.pattern):
            raise BadPattern("Trailing backslash")
        char = self.pattern[self.at]
        self.at += 1
        if char in "123456789":
            return f"(?:\\{char})"
        return _ESCAPES.get(char) or re.escape(char)

    def bracket(self) -> str:
        unmatched = BadPattern("Unmatched [, [^, [:, [., or [=")
        negated = self.pattern.startswith("^", self.at)
        self.at += negated
        members = ""
        first = True
        while True:
            if self.at >= len(self.pattern):
                raise unmatched
            char = self.pattern[self.at]
            if char == "]" and not first:
                self.at += 1
                break
            if self.pattern.startswith("[:", self.at):
                end = self.pattern.find(":]", self.at + 2)
                name = self.pattern[self.at + 2 : end]
                if end < 0 or name not in _CLASSES:
                    raise unmatched if end < 0 else BadPattern("Invalid character class name")
                members += _CLASSES[name]
                self.at = end + 2
            elif self.is_range():
                low, high = char, self.pattern[self.at + 2]
                if low > high:
                    raise BadPattern("Invalid range end")
                members += f"{re.escape(low)}-{re.escape(high)}"
                self.at += 3
            else:
                members += "\\^" if char == "^" else re.escape(char)
                self.at += 1
            first = False
        return f"[^{members}\\n]" if negated else f"[{members}]"

    def is_range(self) -> bool:
        return self.pattern[self.at + 1 : self.at + 2] == "-" and self.pattern[
            self.at + 2 : self.at + 3
        ] not in ("", "]")
