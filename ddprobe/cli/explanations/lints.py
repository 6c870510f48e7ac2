"""The page of a lint."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from typing import Any

from ddprobe.blocks import Block, Heading, Pairs, Paragraph, Table
from ddprobe.cli.explanations import code
from ddprobe.lints.lint import Lint

_OUTCOMES = {"fine": "pass", "note": "info", "warn": "warn", "fail": "fail", "unknown": "unknown"}


def page(lint: Lint[Any]) -> dict[str, Any]:
    """What it checks and concludes."""
    trees = code.functions(lint.judge)
    said = [each for tree in trees for each in _said(tree)]
    worded = any(outcome != "pass" and summary != code.GAP for outcome, summary, _ in said)
    return {
        "kind": "lint",
        "id": lint.id,
        "aliases": list(lint.aliases),
        "text": lint.text,
        "about": inspect.getdoc(lint.judge) or "",
        "subject": lint.subject,
        "reads": list(dict.fromkeys(need for tree in trees for need in _needed(tree))),
        "says": [
            {"outcome": outcome, "summary": _summed(lint, outcome, summary), "advice": advice}
            for outcome, summary, advice in dict.fromkeys(said)
            if summary != code.GAP or outcome == "pass" or not worded
        ],
        "source": lint.source,
    }


def _summed(lint: Lint[Any], outcome: str, summary: str) -> str:
    if summary != code.GAP:
        return summary
    return lint.text if outcome == "pass" else "what was found, in words"


def _said(tree: ast.AST) -> Iterator[tuple[str, str, str]]:
    """What it can conclude, as its code says it: outcome, sentence, advice."""
    texts = code.assigned(tree)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args]
    for node in sorted(calls, key=lambda call: (call.lineno, call.col_offset)):
        outcome = " or ".join(_outcomes(node.func, tree))
        advice = _advised(node.args[1], tree) if len(node.args) > 1 and outcome != "pass" else ""
        summary = node.args[0]
        for each in (summary.body, summary.orelse) if isinstance(summary, ast.IfExp) else (summary,):
            if outcome:
                yield outcome, code.text(each, texts), advice


def _advised(node: ast.expr, tree: ast.AST) -> str:
    """The advice, with each of its wordings where the case decides."""
    if isinstance(node, ast.Name):
        node = next((value for name, value in _values(tree) if name == node.id), node)
    if isinstance(node, ast.IfExp):
        return "; or: ".join(
            dict.fromkeys(filter(None, (_advised(n, tree) for n in (node.body, node.orelse))))
        )
    advice = code.text(node, code.assigned(tree))
    return "" if advice == code.GAP else advice


def _values(tree: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node.value


def _outcomes(function: ast.expr, tree: ast.AST) -> tuple[str, ...]:
    """The outcomes that a call of this function concludes with: one, or those of `warn if … else note`."""
    if isinstance(function, ast.IfExp):
        return (*_outcomes(function.body, tree), *_outcomes(function.orelse, tree))
    if not isinstance(function, ast.Name):
        return ()
    if function.id in _OUTCOMES:
        return (_OUTCOMES[function.id],)
    chosen = (
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.IfExp)
        and any(isinstance(to, ast.Name) and to.id == function.id for to in node.targets)
    )  # fmt: skip
    return next((found for value in chosen if (found := _outcomes(value, ast.Module([], [])))), ())


def _needed(tree: ast.AST) -> Iterator[str]:
    """What it must know to judge."""
    texts = code.assigned(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id == "need" and len(node.args) > 1:
                yield code.text(node.args[1], texts)
            elif node.func.id in ("drafter", "target"):
                yield f"the {node.func.id}'s config.json"


def blocks(page: dict[str, Any]) -> tuple[Block, ...]:
    """As a person reads it."""
    also = f" (also {', '.join(page['aliases'])})" if page["aliases"] else ""
    shown: list[Block] = [Heading(f"{page['id']}{also}"), Paragraph(f"Lint: {page['text']}.")]
    if page["about"]:
        shown.append(Paragraph(page["about"]))
    pairs = [("judges", page["subject"]), ("unknown without", "; ".join(page["reads"]))]
    pairs.append(("source", page["source"]))
    shown.append(Pairs(tuple((name, text) for name, text in pairs if text)))
    rows = tuple((said["outcome"], said["summary"], said["advice"]) for said in page["says"])
    if rows:
        shown.append(Table(("outcome", "when and why", "advice"), rows, title="What it concludes"))
    return tuple(shown)
