"""The page of a hypothesis: what it says, and which verdicts and lints decide it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from ddprobe.blocks import Block, Heading, Pairs, Paragraph
from ddprobe.cli.explanations import code
from ddprobe.model import VERDICTS
from ddprobe.verdicts.hypotheses import HYPOTHESES

_LEDGER = "A report's ledger says of each hypothesis whether it is supported, refuted or untested."


def page(name: str) -> dict[str, Any]:
    """What decides it, from the function that does."""
    text, ask = HYPOTHESES[name]
    trees = code.functions(ask)
    supporting = list(dict.fromkeys(n for tree in trees for n in _called(tree, "by")))
    others = (n for tree in trees for way in ("against", "verdict") for n in _called(tree, way))
    return {
        "kind": "hypothesis",
        "id": name,
        "text": text,
        "about": " ".join((ask.__doc__ or "").split()),
        "supported_by": supporting,
        "weighed_with": [n for n in dict.fromkeys(others) if n not in supporting],
        "lints": sorted({n for tree in trees for n in _lints(tree, ask.__globals__)}),
    }


def blocks(page: dict[str, Any]) -> tuple[Block, ...]:
    """As a person reads it."""
    told = [Paragraph(f"Hypothesis: {page['text']}. {page['about']}".strip()), Paragraph(_LEDGER)]
    rows = (
        ("supported by the verdict", ", ".join(page["supported_by"])),
        ("other verdicts weighed", ", ".join(page["weighed_with"])),
        ("lints weighed", ", ".join(page["lints"])),
    )
    return (Heading(page["id"]), *told, Pairs(tuple(row for row in rows if row[1])))


def _called(tree: ast.AST, method: str) -> Iterator[str]:
    """The verdicts that a method of the case is asked for."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == method:
            yield from (text for each in node.args for text in code.texts(each) if text in VERDICTS)


def _lints(tree: ast.AST, names: dict[str, Any]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "found":
            for each in node.args[1:]:
                named = each.value if isinstance(each, ast.Starred) else each
                yield from names.get(named.id, ()) if isinstance(named, ast.Name) else code.texts(named)
