"""Which formula an accept rate followed, and K, from the accept lengths that were printed beside it.

The field changed its meaning and kept its name (sglang#11572, 0.5.11). With K tokens drafted per step:

    (len - 1) / K       drafts that were right, of those drafted: 0 when none was          0.5.11 and later
    len / (K + 1)       the bonus token on both sides: 1 / (K + 1) when none was right     0.5.4 to 0.5.10
    len / K             the bonus token above only: may exceed 1                           the oldest form

So `accept len: 1.00, accept rate: 0.33` is a drafter that gets nothing right.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

CORRECT = "(len - 1) / K"
WITH_BONUS = "len / (K + 1)"
ABOVE_ONE = "len / K"
MOST = 256
"""Largest K that is considered."""
_EPSILON = 1e-9


@dataclass(frozen=True, slots=True)
class Pair:
    """An accept length and the rate printed beside it, each with how far rounding may have moved it."""

    length: float
    rate: float
    length_slack: float = 0.005
    rate_slack: float = 0.005


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula that is compatible with what was printed, and the K of which that holds."""

    name: str
    draft_tokens: tuple[int, ...]
    """Every K that fits; of one in a log of ordinary length."""

    @property
    def k(self) -> int | None:
        """K, where only one fits."""
        return self.draft_tokens[0] if len(self.draft_tokens) == 1 else None

    def correct_rate(self, pair: Pair) -> float | None:
        """The share of drafts that were right; None when it takes a K that is not known."""
        if pair.length <= 1 + _EPSILON:
            return 0.0
        if self.name == CORRECT:
            return pair.rate
        return None if self.k is None else (pair.length - 1) / self.k


Candidate = tuple[bool, int]
"""(the bonus token counts above, denominator)"""


def candidates(pair: Pair) -> frozenset[Candidate]:
    """Every formula and denominator from which this pair can have been printed."""
    found: set[Candidate] = set()
    for bonus in (False, True):
        above = pair.length - (0.0 if bonus else 1.0)
        # (above ± length_slack) / n has to meet rate ± rate_slack.
        low, high = pair.rate - pair.rate_slack - _EPSILON, pair.rate + pair.rate_slack + _EPSILON
        for n in range(1, MOST + 1):
            meets = (above - pair.length_slack) / n <= high and (above + pair.length_slack) / n >= low
            if meets and above - pair.length_slack <= n + bonus:
                found.add((bonus, n))
    return frozenset(found)


def formula(pairs: Iterable[Pair]) -> Formula | None:
    """The formula that all pairs of one server share; None when no formula fits them all."""
    fitting: frozenset[Candidate] | None = None
    longest = 0.0
    for pair in pairs:
        fitting = candidates(pair) if fitting is None else fitting & candidates(pair)
        longest = max(longest, pair.length - pair.length_slack)
        if not fitting:
            return None
    return named(fitting, longest) if fitting else None


def named(fitting: Iterable[Candidate], longest: float) -> Formula | None:
    """The formula behind the candidates that are left; `longest` is the greatest accept length among the pairs.

    Short of evidence several are left. Then the one that makes do with the smallest block is taken: drafters propose
    a few tokens per step, hardly ever dozens.
    """
    plain = sorted(n for bonus, n in fitting if not bonus)
    above = sorted(n for bonus, n in fitting if bonus)
    if plain and (not above or plain[0] <= above[0]):
        return Formula(CORRECT, tuple(plain))
    if not above:
        return None
    exceeding = tuple(n for n in above if longest > n + _EPSILON)
    if len(exceeding) == len(above):
        return Formula(ABOVE_ONE, exceeding)
    return Formula(WITH_BONUS, tuple(n - 1 for n in above if n > 1 and n not in exceeding))
