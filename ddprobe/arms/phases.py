"""How variants that are each other's beginnings get different ends: each drops some more tokens."""

from __future__ import annotations


def drop(length: int, span: int, variant: int, variants: int) -> int:
    """How many of `length` tokens a variant drops at the end: the first none, the others spread evenly over `span`.

    Never more than an eighth of the length, and never the same for two variants, even where the span is shorter than
    their number.
    """
    room = max(min(span, length // 8 + 1), variants)
    return variant * room // variants


def least(variants: int) -> int:
    """The least length of which so many variants drop at most an eighth."""
    return 8 * (variants - 1)
