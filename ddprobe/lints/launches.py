"""Which of the arguments that somebody collected are of one start of a server, and which of another.

A folder may hold two servers, and a log two starts of one. What is told of one start must not be judged by the arguments
of another; and which comes first must not depend on what a file is called.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from typing import Any

from ddprobe.facts import ServerArgs, ServerProcess
from ddprobe.facts.hosts import SPEAKS_OF_IT
from ddprobe.model import Cite, Fact

DRAFTS = ("speculative_algorithm", "speculative_num_draft_tokens", "num_speculative_tokens")
"""Arguments in which two accounts of one start agree, whoever gives them."""
START = (
    *DRAFTS,
    "speculative_draft_model_path",
    "speculative_num_steps",
    "speculative_eagle_topk",
    "model_path",
    "context_length",
    "attention_backend",
)
"""And those in which two accounts of one kind do."""  # fmt: skip
_PART = re.compile(r"#\d+\Z")
_LINES = re.compile(r"lines? (\d+)(?:-(\d+))?\Z")


def launches(every: Sequence[ServerArgs]) -> tuple[tuple[ServerArgs, ...], ...]:
    """The arguments by the start that they are of, in an order that their content decides."""
    groups: list[list[ServerArgs]] = []
    for args in sorted(every, key=_content):
        fitting = [group for group in groups if all(_alike(args, other) for other in group)]
        if fitting:
            max(fitting, key=lambda group: _agreement(args, group[0])).append(args)
        else:
            groups.append([args])
    return tuple(map(tuple, groups))


def document(fact: Fact) -> str:
    """The document that a fact was read in; parts of one are one."""
    return _PART.sub("", fact.source[0].artefact) if fact.source else ""


def place(launch: Sequence[ServerArgs]) -> str:
    """Where it stands, for a person: `server.log line 3`."""
    fact = launch[0]
    if not fact.source:
        return fact.origin
    name = posixpath.basename(document(fact))
    return f"{name} {fact.source[0].at}".strip()


def owner(fact: Fact, groups: Sequence[Sequence[ServerArgs]]) -> int:
    """The number of the start that a fact is of: told in the same place, else the last one before its lines, or the only one
    of its document; or -1. What a process's variables are called tells its engine: of which there may be just one start.
    """
    for number, group in enumerate(groups):
        if fact.source and any(fact.source[0] in args.source for args in group):
            return number
    found = _by_lines(fact, groups)
    if found < 0 and isinstance(fact, ServerProcess) and fact.engine:
        fitting = [number for number, group in enumerate(groups) if group[0].engine == fact.engine]
        return fitting[0] if len(fitting) == 1 else -1
    return found


def _by_lines(fact: Fact, groups: Sequence[Sequence[ServerArgs]]) -> int:
    its = document(fact)
    begins = sorted(
        (line, number)
        for number, group in enumerate(groups)
        for args in group
        if document(args) == its
        for line in _lines(args)
    )
    first, last = _line(fact.source[0]) if fact.source else (0, 0)
    known = {number for _, number in begins}
    if not its or not begins:
        return -1
    if not first:
        return known.pop() if len(known) == 1 else -1
    before = [number for line, number in begins if line <= first]
    within = {number for line, number in begins if not line or first < line <= last}
    return before[-1] if before and within <= {before[-1]} else -1


def _lines(args: ServerArgs) -> set[int]:
    """The lines in which these arguments are told, 0 where they are not known: of several starts the first and the last."""
    return {_line(cite)[0] for cite in args.source if cite.artefact == args.source[0].artefact}


def _line(cite: Cite) -> tuple[int, int]:
    found = _LINES.match(cite.at)
    return (int(found[1]), int(found[2] or found[1])) if found else (0, 0)


def speculates(args: ServerArgs) -> bool | None:
    """Whether the arguments say so; None where they do not tell."""
    value = args.get("speculative_algorithm")
    if isinstance(value, str) and value.lower() not in ("", "none", "null"):
        return True
    if args.engine != "sglang" and args.get("speculative_draft_model_path"):
        return None if args.engine == "llamacpp" else True
    names = dict(args.values)
    if args.resolved and any(name in names for name in SPEAKS_OF_IT):
        return False
    return None if args.cut or args.elsewhere else False


def _content(args: ServerArgs) -> tuple[Any, ...]:
    """What the servers say comes before what they were given, the whole before a part."""
    return (
        not args.resolved,
        args.cut,
        args.engine,
        args.origin,
        _said(args),
        tuple((cite.artefact, cite.at) for cite in args.source),
    )


def _said(args: ServerArgs) -> str:
    try:
        return repr(sorted(args.values, key=repr))
    except ValueError:  # an integer of thousands of digits has no decimal form
        return repr(sorted(name for name, _ in args.values))


def _alike(one: ServerArgs, other: ServerArgs) -> bool:
    """Whether both can be of one start."""
    if one.engine != other.engine:
        return False
    on, also = speculates(one), speculates(other)
    if None not in (on, also) and on is not also and not _in_one_log(one, other):
        return False
    if one.resolved is not other.resolved:
        # A server may make other numbers of what it was given.
        return True
    same_kind = one.origin == other.origin
    return all(_agree(one, other, name, missing=same_kind) for name in (START if same_kind else DRAFTS))


def _agreement(one: ServerArgs, other: ServerArgs) -> int:
    """In how much both say the same of speculation."""
    told = [name for name in START if one.get(name) is not None and one.get(name) == other.get(name)]
    return len(told) + len(START) * (speculates(one) is speculates(other))


def _in_one_log(one: ServerArgs, other: ServerArgs) -> bool:
    """What one log says of arguments as given and as taken is of one start: a server may refuse what it was asked for."""
    return one.resolved is not other.resolved and bool(document(one)) and document(one) == document(other)


def _agree(one: ServerArgs, other: ServerArgs, name: str, *, missing: bool) -> bool:
    mine, its = one.get(name), other.get(name)
    if mine is None or its is None:
        unknown = any(args.cut and name not in dict(args.values) for args in (one, other))
        return mine is its or unknown or not missing
    return bool(mine == its)
