"""The ids that prompts are made of: asked of the server's own tokenizer, and seen to lie in its vocabulary."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import replace
from typing import Any

from ddprobe.arms.base import FILLER, Ids, Script
from ddprobe.arms.filler import filler
from ddprobe.errors import Unanswered
from ddprobe.model import Asked, Cite, Gap, HttpRequest, HttpResult
from ddprobe.probes.draft import _commit_chat as chat
from ddprobe.probes.draft import _commit_plan as plan
from ddprobe.probes.draft._commit_target import Target

NONCE_TEXT = "nonce"
NONCE_CHARACTERS = 2000
PIECE = 32_000
"""Characters that are tokenised at once."""
MOST_PIECES = 128


def tokenise(
    target: Target, scripts: Sequence[Script], longest: int, seed: int
) -> Generator[Asked, Any, dict[str, Ids]]:
    """Ids of every piece of text, from the server's own tokenizer. `longest`: ids of the longest prompt."""
    pieces = _pieces(scripts)
    generation, serving = target.generation, target.serving
    names = list(pieces)
    answers = yield tuple(
        _asked(
            generation.tokenize(
                f"{target.prefix}tokens-{number:02d}", target.base, pieces[name], serving.model
            )
        )
        for number, name in enumerate(names)
    )
    tokens = {name: _ids(target, answer) for name, answer in zip(names, answers, strict=True)}
    needed = plan.filler_needed(scripts, [longest])
    if needed:
        tokens[FILLER] = yield from _filler(target, needed, seed)
    return tokens


def _filler(target: Target, needed: int, seed: int) -> Generator[Asked, Any, Ids]:
    """So many ids of unrelated prose; the first piece tells how many characters a token takes."""
    generation, serving = target.generation, target.serving
    text = filler(seed, PIECE)
    key = f"{target.prefix}tokens-filler-00"
    answer = yield _asked(generation.tokenize(key, target.base, text, serving.model))
    ids = _ids(target, answer)
    if len(ids) >= needed or not ids:
        return ids
    characters = int((needed - len(ids)) * len(text) / len(ids) * 1.15) + PIECE
    rest = filler(seed, PIECE + characters)[len(text) :]
    cuts = [rest[start : start + PIECE] for start in range(0, len(rest), PIECE)]
    answers = yield tuple(
        _asked(
            generation.tokenize(f"{target.prefix}tokens-filler-{number:02d}", target.base, cut, serving.model)
        )
        for number, cut in enumerate(cuts, 1)
    )
    for answer in answers:
        ids += _ids(target, answer)
    return ids


def length(target: Target, text: str) -> Generator[Asked, Any, int | None]:
    """Tokens of a text, counted piece by piece: too many by one a cut, at most. None where the tokenizer does not answer."""
    cuts = [text[start : start + PIECE] for start in range(0, len(text), PIECE)]
    if len(cuts) > MOST_PIECES:
        return None
    generation, model = target.generation, target.serving.model
    answers = yield tuple(
        _asked(generation.tokenize(f"{target.prefix}tokens-text-{number:02d}", target.base, cut, model))
        for number, cut in enumerate(cuts)
    )
    try:
        return sum(len(target.generation.token_ids(answer)) for answer in answers)
    except Unanswered:
        return None


def _asked(request: HttpRequest) -> HttpRequest:
    """The request, with what a person waits for meanwhile."""
    return replace(request, about="texts as the server's tokens")


def in_words(scripts: Sequence[Script], longest: int, seed: int) -> dict[str, Ids]:
    """The same without asking: words in place of tokens, which only their number resembles."""
    tokens = {name: plan.in_words(text) for name, text in _pieces(scripts).items()}
    tokens |= chat.unrendered(scripts)
    needed = plan.filler_needed(scripts, [longest])
    tokens[FILLER] = plan.in_words(filler(seed, needed * 8 + 1000))
    return tokens


def outside(tokens: Iterable[Ids], vocabulary: int | None, prefix: str) -> Gap | None:
    """What is wrong where an id lies outside the vocabulary, which ends an SGLang server: nothing may be sent then.

    `prefix`: of the keys of this server's answers.
    """
    given = [ids for ids in tokens if ids]
    highest = max(map(max, given), default=-1)
    lowest = min(map(min, given), default=0)
    if lowest >= 0 and (vocabulary is None or highest < vocabulary):
        return None
    return Gap(
        "tokenizer",
        f"its ids reach from {lowest} to {highest}, and the vocabulary has {vocabulary}: an id beyond it would "
        "end the server, so nothing was sent. Do tokenizer and model belong together?",
        (Cite(f"{prefix}tokens-00"),),
    )


def _pieces(scripts: Sequence[Script]) -> dict[str, str]:
    pieces = {NONCE_TEXT: filler(0, NONCE_CHARACTERS)}
    for script in scripts:
        pieces |= script.pieces()
    return pieces


def _ids(target: Target, answer: HttpResult) -> Ids:
    """The tokenizer's answer. Raises `Unanswered` with what that means for the probe."""
    try:
        return target.generation.token_ids(answer)
    except Unanswered as missing:
        path = target.generation.tokenize_path
        raise Unanswered(
            missing.key,
            f"the server's {path} gave no ids ({missing.reason}): without them no prompt has a known length, and nothing "
            "more was sent. --arms verbatim --text FILE sends a text as it is",
        ) from None
