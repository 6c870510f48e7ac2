"""The page of a lint, a verdict or a probe's finding, from its own code: it cannot say what the code does not do."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import pkgutil
import textwrap
from collections.abc import Iterator
from typing import Any

from ddprobe import probes, verdicts
from ddprobe.blocks import Block, Heading, Pairs, Paragraph, Table
from ddprobe.lints import table
from ddprobe.lints.lint import Lint
from ddprobe.model import VERDICTS
from ddprobe.verdicts import thresholds

_OUTCOMES = {"fine": "pass", "note": "info", "warn": "warn", "fail": "fail", "unknown": "unknown"}
_GAP = "…"
_OF_A_VERDICT = ("ruled_out", "missing", "next")


def known() -> tuple[str, ...]:
    """Every word that has a page."""
    lints = [word for lint in table.every() for word in (lint.id, *lint.aliases)]
    return tuple(dict.fromkeys([*lints, *VERDICTS, *_findings()]))


def pages(word: str) -> tuple[dict[str, Any], ...]:
    """The pages that a word names: one, or those of every lint with that alias."""
    lints = table.named(word)
    if lints:
        return tuple(_lint(lint) for lint in lints)
    name = word.lower().replace("-", "_")
    if name in VERDICTS:
        return (_verdict(name),)
    by_id = {id.lower(): id for id in _findings()}
    return (_finding(by_id[word.lower()]),) if word.lower() in by_id else ()


def blocks(page: dict[str, Any]) -> tuple[Block, ...]:
    """A page as a person reads it."""
    draw = {"lint": _lint_blocks, "verdict": _verdict_blocks, "finding": _finding_blocks}
    return draw[page["kind"]](page)


# --- lints -------------------------------------------------------------------------------------------------


def _lint(lint: Lint[Any]) -> dict[str, Any]:
    trees = _functions(lint.judge)
    said = [each for tree in trees for each in _said(tree)]
    return {
        "kind": "lint",
        "id": lint.id,
        "aliases": list(lint.aliases),
        "text": lint.text,
        "about": inspect.getdoc(lint.judge) or "",
        "subject": lint.subject,
        "reads": list(dict.fromkeys(need for tree in trees for need in _needed(tree))),
        "says": [
            {"outcome": outcome, "summary": lint.text if summary == _GAP else summary, "advice": advice}
            for outcome, summary, advice in dict.fromkeys(said)
            if summary != _GAP or outcome == "pass"
        ],
        "source": lint.source,
    }


def _said(tree: ast.AST) -> Iterator[tuple[str, str, str]]:
    """What it can conclude, as its code says it: outcome, sentence, advice."""
    texts = _assigned(tree)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args]
    for node in sorted(calls, key=lambda call: (call.lineno, call.col_offset)):
        outcome = " or ".join(_outcomes(node.func, tree))
        advice = _text(node.args[1], texts) if len(node.args) > 1 and outcome != "pass" else ""
        summary = node.args[0]
        for each in (summary.body, summary.orelse) if isinstance(summary, ast.IfExp) else (summary,):
            if outcome:
                yield outcome, _text(each, texts), "" if advice == _GAP else advice


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
    texts = _assigned(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id == "need" and len(node.args) > 1:
                yield _text(node.args[1], texts)
            elif node.func.id in ("drafter", "target"):
                yield f"the {node.func.id}'s config.json"


def _lint_blocks(page: dict[str, Any]) -> tuple[Block, ...]:
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


# --- verdicts ----------------------------------------------------------------------------------------------


def _verdict(name: str) -> dict[str, Any]:
    modules = sorted((m for m in _verdict_modules() if name in _names(m)), key=lambda m: m.count("."))
    main = next((m for m in modules if m.rpartition(".")[2] == name), "")
    trees = [_tree(module) for module in modules]
    used = [each for module in modules for each in _thresholds(module)]
    judges = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    supports = [ast.get_docstring(node) or "" for node in judges if node.name.startswith("judge")]
    return {
        "kind": "verdict",
        "id": name,
        "question": (ast.get_docstring(_tree(main)) or "").partition("\n")[0] if main else "",
        "outcome": VERDICTS[name].label,
        "kinds": sorted({kind for tree in trees for kind in _keyword(tree, "kind", name)} - {_GAP, ""}),
        "supports": [line for line in dict.fromkeys(" ".join(s.split()) for s in supports) if line],
        "thresholds": list({each["name"]: each for each in used}.values()),
        **{
            field: list(dict.fromkeys(text for tree in trees for text in _keyword(tree, field, name)))
            for field in _OF_A_VERDICT
        },
    }


def _verdict_blocks(page: dict[str, Any]) -> tuple[Block, ...]:
    shown: list[Block] = [Heading(page["id"])]
    shown.append(Paragraph(f"Verdict ({page['outcome']}). {page['question']}".strip()))
    shown += [Paragraph(line) for line in page["supports"]]
    if page["kinds"]:
        shown.append(Pairs((("kinds", ", ".join(page["kinds"])),)))
    if page["thresholds"]:
        rows = tuple((each["name"], str(each["value"]), each["about"]) for each in page["thresholds"])
        shown.append(Table(("threshold", "value", "what it is"), rows, title="Thresholds it depends on"))
    titles = {"ruled_out": "What it rules out", "missing": "What is missing", "next": "What would settle it"}
    for field in _OF_A_VERDICT:
        lines = [line for line in page[field] if line != _GAP]
        if lines:
            shown.append(Table((titles[field],), tuple((line,) for line in lines)))
    return tuple(shown)


@functools.cache
def _verdict_modules() -> tuple[str, ...]:
    return tuple(
        info.name
        for info in pkgutil.walk_packages(verdicts.__path__, f"{verdicts.__name__}.")
        if not info.ispkg
    )


@functools.cache
def _names(module: str) -> frozenset[str]:
    """The verdicts that a module can give."""
    calls = (node for node in ast.walk(_tree(module)) if isinstance(node, ast.Call))
    return frozenset(
        str(key.value.value)
        for call in calls
        if getattr(call.func, "id", "") == "Verdict"
        for key in call.keywords
        if key.arg == "name" and isinstance(key.value, ast.Constant)
    )


def _keyword(tree: ast.AST, field: str, name: str) -> Iterator[str]:
    """The texts that a verdict of that name is given for a field."""
    for call in ast.walk(tree):
        if not (isinstance(call, ast.Call) and getattr(call.func, "id", "") == "Verdict"):
            continue
        given = {key.arg: key.value for key in call.keywords}
        named = given.get("name")
        if isinstance(named, ast.Constant) and named.value == name and field in given:
            yield from _texts(given[field])
            if field == "kind" and isinstance(given[field], ast.Name):
                yield from _returned(tree, given[field])


def _returned(tree: ast.AST, name: ast.expr) -> Iterator[str]:
    """The texts that a name can be, where a function of the same module gives it, alone or first of several."""
    assert isinstance(name, ast.Name)
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)):
            continue
        to = node.targets[0]
        first = to.elts[0] if isinstance(to, ast.Tuple) and to.elts else to
        called = functions.get(getattr(node.value.func, "id", ""))
        if isinstance(first, ast.Name) and first.id == name.id and called is not None:
            for given in ast.walk(called):
                if isinstance(given, ast.Return) and given.value is not None:
                    value = given.value
                    yield from _texts(value.elts[0] if isinstance(value, ast.Tuple) and value.elts else value)


def _texts(node: ast.AST) -> Iterator[str]:
    """Every text in an expression, each f-string as one."""
    if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str)):
        yield _text(node, {})
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        yield from _texts(node.left)
        yield from _texts(node.right)
    elif isinstance(node, ast.IfExp):
        yield from _texts(node.body)
        yield from _texts(node.orelse)
    elif isinstance(node, ast.Tuple):
        for item in node.elts:
            yield from _texts(item)
    elif isinstance(node, ast.Starred):
        yield from _texts(node.value)


def _thresholds(module: str) -> Iterator[dict[str, Any]]:
    """The numbers of `verdicts/thresholds.py` that a module uses, each with what stands beneath it."""
    used = {
        node.attr
        for node in ast.walk(_tree(module))
        if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "thresholds"
    }
    for name, about in _documented(thresholds.__name__).items():
        if name in used and name.isupper():
            yield {"name": name, "value": getattr(thresholds, name), "about": about}


@functools.cache
def _documented(module: str) -> dict[str, str]:
    """Name → the text beneath its assignment."""
    body = _tree(module).body
    found = {}
    for node, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            says = after.value if isinstance(after, ast.Expr) else None
            text = says.value if isinstance(says, ast.Constant) and isinstance(says.value, str) else ""
            found[node.targets[0].id] = " ".join(text.split())
    return found


# --- findings of probes ------------------------------------------------------------------------------------


@functools.cache
def _findings() -> dict[str, tuple[str, str]]:
    """Id → what it means, and the probe that gives it."""
    return {
        id: (text, kind.name())
        for kind in map(probes.load, probes.names())
        for id, text in kind.findings.items()
    }


def _finding(id: str) -> dict[str, Any]:
    text, probe = _findings()[id]
    return {"kind": "finding", "id": id, "text": text, "probe": probe}


def _finding_blocks(page: dict[str, Any]) -> tuple[Block, ...]:
    more = f"ddprobe probes {page['probe']}"
    return (
        Heading(page["id"]),
        Paragraph(f"Finding of the probe {page['probe']}: {page['text']}"),
        Pairs((("its manual page", more),)),
    )


# --- reading code ------------------------------------------------------------------------------------------


@functools.cache
def _tree(module: str) -> ast.Module:
    return ast.parse(inspect.getsource(importlib.import_module(module)))


def _functions(function: Any) -> list[ast.AST]:
    """The function, and those of its own module that it hands its conclusion to."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    names = {getattr(node.func, "id", "") for node in ast.walk(tree) if isinstance(node, ast.Call)}
    others = [function.__globals__.get(name) for name in sorted(names) if name.startswith("_")]
    mine = [o for o in others if inspect.isfunction(o) and o.__module__ == function.__module__]
    return [tree, *(ast.parse(textwrap.dedent(inspect.getsource(other))) for other in mine)]


def _assigned(tree: ast.AST) -> dict[str, str]:
    """Names that stand for a text in this function."""
    return {
        node.targets[0].id: _text(node.value, {})
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.JoinedStr | ast.Constant)
        and (isinstance(node.value, ast.JoinedStr) or isinstance(node.value.value, str))
    }


def _text(node: ast.AST, texts: dict[str, str]) -> str:
    """An expression as a sentence; what is filled in when it runs is `…`."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part, texts) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return _text(node.value, texts)
    if isinstance(node, ast.Name):
        return texts.get(node.id, _GAP)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _text(node.left, texts) + _text(node.right, texts)
    return _GAP
