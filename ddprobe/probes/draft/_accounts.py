"""Do those who count agree, with each other and with the tokens that came? The invariants I2, I3, I4 and I6.

Every decode step commits its accepted tokens and one more, so the tokens after the prefill's are steps + accepted over
all steps, those without a draft included. What may stand between a count and the stream: the end of the output cuts
the last step (`tail`), pieces of the stream that hold two steps (`merged`), steps without a draft (`undrafted`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ddprobe.facts import Account

ROUNDING = 0.0101
"""A mean stated with two decimals may be this far off."""
RATE_ROUNDING = 0.0051


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What an answer itself shows, whatever anybody counts."""

    tokens: int | None
    """Committed by decode steps: all but the prefill's."""
    pieces: tuple[int, ...] = ()
    """Tokens of each decode step, the last included; empty when the stream does not tell them apart."""
    cut: bool = True
    """The last step may have been cut by the end of the output."""
    merged: int = 0
    """Pieces that are known to hold more than one step."""
    per_step: bool = False
    """The stream itself says of each step what was drafted."""
    ceiling: int | None = None

    def slack(self, account: Account) -> int:
        """How many accepted tokens may be counted there and not have come: those that the end of the output cut off."""
        if not self.cut or account.last_step_whole is False:
            return 0
        if self.ceiling is None:
            return max(self.pieces, default=1) + len(account.histogram or ())
        return self.ceiling - (self.pieces[-1] if self.pieces else 1)


@dataclass(frozen=True, slots=True)
class Fit:
    """How an account and the output go together, if they do."""

    undrafted: int
    merged: int


def counts(account: Account) -> tuple[int | None, int | None]:
    """Steps and accepted tokens, from the histogram where they are not stated."""
    steps, accepted = account.steps, account.accepted
    if account.histogram is not None:
        steps = sum(account.histogram) if steps is None else steps
        accepted = _accepted(account.histogram) if accepted is None else accepted
    return steps, accepted


def fit(account: Account, output: Output) -> Fit | None:
    """The least merging and the steps without a draft that make the account and the output one; None: they are not.

    A few merged pieces that nobody saw are taken for granted rather than called a fault of the counts.
    """
    steps, accepted = counts(account)
    if steps is None or accepted is None or output.tokens is None:
        return None
    slack = output.slack(account)
    if not output.pieces:
        over = steps + accepted - output.tokens
        return Fit(max(0, -over), 0) if over <= slack else None
    pieces = len(output.pieces)
    shown = output.tokens - pieces
    tail = max(0, accepted - shown, accepted - shown + steps - pieces)
    merged = max(0, shown - accepted, steps - pieces)
    bearable = pieces if output.merged else max(1, pieces // 8)
    if output.per_step:
        bearable = 0
    if tail > slack or merged > bearable:
        return None
    return Fit(pieces + merged - steps, merged)


def disagreements(accounts: Sequence[Account], output: Output) -> Iterator[str]:
    """Every contradiction, in words with both numbers."""
    for account in accounts:
        yield from _within(account, output)
    if output.pieces and output.tokens is not None and sum(output.pieces) != output.tokens:
        yield f"the stream brought {sum(output.pieces)} tokens after the first, the server counts {output.tokens}"
        return
    counted = [a for a in accounts if a.origin != "stream" or output.per_step]
    told: set[object] = set()
    for account in counted:
        # A histogram and the sums beside it are one source: the same numbers are held against the tokens once.
        said = (account.origin.removesuffix(" histogram"), counts(account))
        if said not in told:
            yield from _against(account, output)
        told.add(said)
    for account in counted[1:]:
        yield from _between(counted[0], account, output)


def _within(account: Account, output: Output) -> Iterator[str]:
    """I3, I4 and I6: one source and itself."""
    name, steps, accepted = account.origin, account.steps, account.accepted
    most = output.ceiling - 1 if output.ceiling is not None else None
    if account.histogram is not None:
        held, right = sum(account.histogram), _accepted(account.histogram)
        deepest = max((k for k, many in enumerate(account.histogram) if many), default=0)
        if steps is not None and held != steps:
            yield f"{name} says {steps} steps, its histogram holds {held}"
        if accepted is not None and right != accepted:
            yield f"{name} says {accepted} accepted, its histogram holds {right}"
        if most is not None and deepest > most:
            yield f"{name} says {deepest} accepted in one step, at most {most} are drafted"
    steps, accepted = counts(account)
    if steps is None or accepted is None:
        return
    if most is not None and accepted > steps * most:
        yield f"{name} says {accepted} accepted in {steps} steps, at most {steps * most} were drafted"
    if account.drafted is not None and accepted > account.drafted:
        yield f"{name} says {accepted} accepted of {account.drafted} drafted"
    if steps and account.reported_commit is not None:
        yield from _stated_commit(account, 1 + accepted / steps, steps, most)
    if account.drafted and account.reported_rate is not None:
        rate = accepted / account.drafted
        if abs(account.reported_rate - rate) > RATE_ROUNDING:
            yield f"{name} states an accept rate of {account.reported_rate:.3f}, its own counts give {rate:.3f}"


def _stated_commit(account: Account, commit: float, steps: int, most: int | None) -> Iterator[str]:
    """I6: output tokens per step, as some state it, has the prefill's token too much and the cut ones too few."""
    stated = account.reported_commit
    assert stated is not None
    low = commit - most / steps - ROUNDING if most is not None else 0.0
    if not low <= stated <= commit + 1 / steps + ROUNDING:
        yield f"{account.origin} states a mean of {stated:.3f}, its own counts give {commit:.3f}"


def _against(account: Account, output: Output) -> Iterator[str]:
    """I2: one source and the tokens that came. Fewer of them than it counts: accepted, but not committed."""
    steps, accepted = counts(account)
    if steps is None or accepted is None or output.tokens is None or fit(account, output) is not None:
        return
    said = f"{account.origin} says {accepted} accepted in {steps} steps"
    if output.pieces:
        pieces = len(output.pieces)
        yield f"{said}, the stream {output.tokens - pieces} in {pieces}"
    else:
        yield f"{said}, that is {steps + accepted} tokens, the output holds {output.tokens} after the first"


def _between(first: Account, second: Account, output: Output) -> Iterator[str]:
    """Two sources of the same request."""
    (steps, accepted), (other_steps, other) = counts(first), counts(second)
    said = f"{first.origin} says {_words(accepted, steps)}, {second.origin} {_words(other, other_steps)}"
    if steps is not None and other_steps is not None and steps != other_steps:
        yield said
        return
    if accepted is None or other is None or accepted == other:
        return
    ways = (first.last_step_whole, second.last_step_whole)
    if not output.cut or (ways[0] is not None and ways[0] == ways[1]):
        yield said
        return
    # The one that counts the last step whole may hold more, by what was cut off, and never less.
    more = accepted - other
    if ways in ((True, False), (False, True)):
        more = more if ways[0] else -more
        if not 0 <= more <= output.slack(first if ways[0] else second):
            yield said
    elif abs(more) > max(output.slack(first), output.slack(second)):
        yield said


def _accepted(histogram: Sequence[int]) -> int:
    return sum(k * many for k, many in enumerate(histogram))


def _words(accepted: int | None, steps: int | None) -> str:
    right = "accepted not known" if accepted is None else f"{accepted} accepted"
    return right if steps is None else f"{right} in {steps} steps"
