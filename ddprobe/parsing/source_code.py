'''Tells a program's source from logs and prose, by its lines.

    def committed(lens):                        Python
        """Tokens per step: 1.00 is none."""
    #include <cuda_runtime.h>                   C
    @@ -12,7 +12,9 @@                           a diff

Numbers in it are constants, examples and thresholds: nobody measured them.
'''

from __future__ import annotations

import re

LEAST = 2
"""Lines that only this language has, and …"""
LEAST_SHARE = 0.5
"""… of all lines, those that look like code, comments or strings."""
MOST_LINES = 4000
LONGEST = 400
"""Characters of a line that are looked at."""

_MARKS = {
    "Python": r"(?:from [\w.]+ import [\w(*]|import [\w.]+(?: as \w+)?(?:, [\w.]+)*\s*$|(?:async )?def \w+\(|class \w+[(:\[]"
    r"|@[\w.]+(?:\(|\s*$)|if __name__ ==|__all__ = |#!.*\bpython)",
    "C": r"(?:#\s*(?:include\s*[<\"]|define \w|ifn?def \w|pragma \w|endif)|template\s*<|using namespace \w|namespace \w+\s*\{"
    r"|(?:static |inline |extern |__global__ |__device__ |void |typedef |struct \w+\s*\{)\S)",
    "Rust": r"(?:(?:pub(?:\(\w+\))? )?(?:fn \w+|struct \w+|enum \w+|trait \w+|mod \w+|impl\b.*\{)|use [\w:]+(?:::|;)|#!?\[\w)",
    "Go": r"(?:package \w+\s*$|import \(|func (?:\(\w+ |\w+\()|type \w+ (?:struct|interface) \{)",
    "JavaScript": r"(?:export (?:default |const |function |class )|(?:const|let|var) \w+ = |(?:async )?function \w+\("
    r"|import .{1,200} from ['\"])",
    "a diff": r"(?:diff --git \S|@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@|index [0-9a-f]{7,}\.\.[0-9a-f]{7,}|(?:---|\+\+\+) [ab]/\S)",
}  # fmt: skip
_LINES = {name: re.compile(pattern) for name, pattern in _MARKS.items()}
_FENCE = re.compile(r"(?:```|~~~)")
_QUOTES = re.compile(r'"""|\'\'\'')
_COMMENT = re.compile(r"\s*(?:#|//|/\*|\*[\s/]|\*$|--\s)")
_CODE = re.compile(
    r"\s{2,}\S|[rRuU]?(?:\"\"\"|''')|\t|[)\]}>]+[;,:]?\s*$|.*[;{(\[,:\\]\s*$|[\w.\[\]\"']+(?:: [\w\[\], |.]+)? [-+*/|&]?= \S|(?:return|if|for|while)\b.*"
)
_OF_A_DIFF = re.compile(r"[-+ ]|$")


def language(text: str) -> str:
    """The language that all of the text is written in; empty where it is no source."""
    lines = [line[:LONGEST] for line in text.split("\n")[:MOST_LINES] if line.strip()]
    if not lines or any(_FENCE.match(line) for line in lines):
        return ""  # Markdown with code in it
    for name, mark in _LINES.items():
        marked = sum(bool(mark.match(line)) for line in lines)
        opens = name == "Python" and lines[0].lstrip("\ufeffrRu").startswith(('"""', "'''"))
        if marked + LEAST * opens >= LEAST and _share(lines, name, mark) >= LEAST_SHARE:
            return name
    return ""


def _share(lines: list[str], name: str, mark: re.Pattern[str]) -> float:
    """How many of the lines look like code, comments, or strings of several lines."""
    if name == "a diff":
        return sum(bool(mark.match(line) or _OF_A_DIFF.match(line)) for line in lines) / len(lines)
    quoted, found = False, 0
    for line in lines:
        turns = len(_QUOTES.findall(line)) % 2 if name == "Python" else 0
        found += bool(quoted or turns or mark.match(line) or _COMMENT.match(line) or _CODE.match(line))
        quoted ^= bool(turns)
    return found / len(lines)
