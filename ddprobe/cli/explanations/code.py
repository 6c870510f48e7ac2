"""Reading the code of lints and verdicts: what it can say, as sentences."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from typing import Any

GAP = "…"
"""What is filled in when the code runs."""


@functools.cache
def tree(module: str) -> ast.Module:
    return ast.parse(inspect.getsource(importlib.import_module(module)))


def functions(function: Any) -> list[ast.AST]:
    """The function, and those of its own module that it hands its conclusion to."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    names = {getattr(node.func, "id", "") for node in ast.walk(tree) if isinstance(node, ast.Call)}
    others = [function.__globals__.get(name) for name in sorted(names) if name.startswith("_")]
    mine = [o for o in others if inspect.isfunction(o) and o.__module__ == function.__module__]
    return [tree, *(ast.parse(textwrap.dedent(inspect.getsource(other))) for other in mine)]


def assigned(tree: ast.AST) -> dict[str, str]:
    """Names that stand for a text in this function."""
    return {
        node.targets[0].id: text(node.value, {})
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.JoinedStr | ast.Constant)
        and (isinstance(node.value, ast.JoinedStr) or isinstance(node.value.value, str))
    }


def text(node: ast.AST, texts: dict[str, str]) -> str:
    """An expression as a sentence; what is filled in when it runs is `…`."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return re.sub(f"{GAP}+", GAP, "".join(text(part, texts) for part in node.values))
    if isinstance(node, ast.FormattedValue):
        return text(node.value, texts)
    if isinstance(node, ast.Name):
        return texts.get(node.id, GAP)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return (text(node.left, texts) + text(node.right, texts)).replace(GAP + GAP, GAP)
    return GAP


def texts(node: ast.AST) -> Iterator[str]:
    """Every text in an expression, each f-string as one."""
    if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str)):
        yield text(node, {})
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        yield from texts(node.left)
        yield from texts(node.right)
    elif isinstance(node, ast.IfExp):
        yield from texts(node.body)
        yield from texts(node.orelse)
    elif isinstance(node, ast.Tuple):
        for item in node.elts:
            yield from texts(item)
    elif isinstance(node, ast.Starred):
        yield from texts(node.value)
