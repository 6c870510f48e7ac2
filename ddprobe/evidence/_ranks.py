"""What each data-parallel rank of an SGLang server commits, by the name in front of its decode lines: `DP0`, `DP1`, …"""

from __future__ import annotations

import re

from ddprobe.parsing import acceptance

MOST = 64
LOOKED_AT = 20_000
"""Lines of a log; a longer one is sampled by its beginning."""
_LINE = re.compile(
    r"^[^\n]{0,80}?\b(DP\d{1,3})\b[^\n]{0,40}?\] ?Decode batch[^\n]{0,200}?accept len: ([\d.]{1,9})",
    re.MULTILINE,
)


class Ranks:
    """Sums by rank; its size does not grow with the log."""

    def __init__(self) -> None:
        self._lines = 0
        self._sums: dict[str, tuple[int, float]] = {}

    def block(self, block: str) -> None:
        if self._lines >= LOOKED_AT or "DP" not in block:
            return
        for name, text in _LINE.findall(block):
            try:
                commit = acceptance.length(float(text))
            except ValueError:
                continue
            if commit is None or (name not in self._sums and len(self._sums) >= MOST):
                continue
            self._lines += 1
            lines, total = self._sums.get(name, (0, 0.0))
            self._sums[name] = (lines + 1, total + commit)

    def told(self) -> tuple[tuple[str, int, float], ...]:
        """(name, lines, mean commit) of each rank, in order; empty for a server without several."""
        if len(self._sums) < 2:
            return ()
        ordered = sorted(self._sums.items(), key=lambda item: int(item[0][2:]))
        return tuple((name, lines, total / lines) for name, (lines, total) in ordered)
