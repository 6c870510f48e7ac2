"""Whether an output is what it should be: did the target copy, does it go in a circle? Pure over token ids."""

from __future__ import annotations

from ddprobe.arms.base import Ids

LONGEST_PERIOD = 64
LEAST_TIMES = 4
LEAST_SHARE = 0.6


def follows(output: Ids, expected: Ids) -> float:
    """Share of the output that follows `expected` in order; 0.0 when either is empty.

    It is the longest common subsequence of the output and as many expected tokens, over the output's length. So a
    token that is wrong, left out or put in costs one token and not all that comes after it. When fewer tokens are
    expected than came out, only as many of the output are looked at. Unrelated text still shares its commonest words
    in order (0.1 to 0.4): only values close to 1 say "it copied".
    """
    count = min(len(output), len(expected))
    if not count:
        return 0.0
    return _common(output[:count], expected[:count]) / count


def _common(first: Ids, second: Ids) -> int:
    """Length of the longest common subsequence, a row of the table at a time in the bits of one integer."""
    places: dict[int, int] = {}
    for place, token in enumerate(second):
        places[token] = places.get(token, 0) | 1 << place
    full = (1 << len(second)) - 1
    row = full
    for token in first:
        hits = row & places.get(token, 0)
        row = (row + hits | row - hits) & full
    return len(second) - row.bit_count()


def loop(output: Ids) -> str:
    """How the output goes in a circle (`8 tokens, 14 times`); empty when it does not.

    It does when at least the last 60 % are one period of at most 64 tokens, four times or more.
    """
    for period in range(1, LONGEST_PERIOD + 1):
        run = period
        while run < len(output) and output[-run - 1] == output[-run - 1 + period]:
            run += 1
        if LEAST_TIMES * period <= run <= len(output) and run >= LEAST_SHARE * len(output):
            return f"{period} token{'s' if period > 1 else ''}, {run // period} times"
    return ""
