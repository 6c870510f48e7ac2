"""The page of a verdict."""

from __future__ import annotations

import ast
import functools
import pkgutil
from collections.abc import Iterator
from typing import Any

from ddprobe import verdicts
from ddprobe.blocks import Block, Heading, Pairs, Paragraph, Table
from ddprobe.cli.explanations import code
from ddprobe.model import VERDICTS, Outcome
from ddprobe.verdicts import collected, healthy, inconclusive, thresholds, words
from ddprobe.verdicts.kinds import KINDS

MEASURED, COLLECTED, EITHER = "after a commit probe", "on files and logs", "on either"
"""What a verdict is given on."""
_MEASURED = {
    *(judge.__module__ for judge in (*verdicts.SOURCES, *verdicts.SERVER, *verdicts.DRAFTER, *verdicts.TIME)),
    healthy.__name__,
    inconclusive.__name__,
}
_COLLECTED = {
    *(judge.__module__ for judge in (*collected.SERVER, *collected.DRAFTER, *collected.TIME)),
    collected.healthy.__name__,
    collected.inconclusive.__name__,
}
_NUMBERS = ("Thresholds it depends on", "Thresholds that its sentences name")
_OF_A_VERDICT = ("ruled_out", "missing", "next")


def page(name: str) -> dict[str, Any]:
    """What it asks, when it is given, and what it depends on."""
    modules = sorted((m for m in _verdict_modules() if name in _names(m)), key=lambda m: m.count("."))
    main = next((m for m in modules if m.rpartition(".")[2] == name), "")
    trees = [code.tree(module) for module in modules]
    abstains = VERDICTS[name] is Outcome.UNKNOWN
    used = [each for module in modules for each in _thresholds(module, told_only=abstains)]
    return {
        "kind": "verdict",
        "id": name,
        "question": (ast.get_docstring(code.tree(main)) or "").partition("\n")[0] if main else "",
        "outcome": VERDICTS[name].label,
        "kinds": list(KINDS.get(name, {})),
        "given": list(_given(modules)),
        "thresholds": list({each["name"]: each for each in used}.values()),
        **{
            field: list(dict.fromkeys(text for tree in trees for text in _keyword(tree, field, name)))
            for field in _OF_A_VERDICT
        },
    }


def blocks(page: dict[str, Any]) -> tuple[Block, ...]:
    """As a person reads it."""
    shown: list[Block] = [Heading(page["id"])]
    shown.append(Paragraph(f"Verdict ({page['outcome']}). {page['question']}".strip()))
    shown.append(
        Pairs(
            (
                ("says", words.meaning(page["id"], "")),
                *((each["evidence"], each["when"]) for each in page["given"]),
            )
        )
    )
    told = KINDS.get(page["id"], {})
    if told:
        shown.append(
            Table(("kind", "what it says"), tuple(told.items()), title="Kinds, in brackets behind its name")
        )
    if page["thresholds"]:
        rows = tuple((each["name"], str(each["value"]), each["about"]) for each in page["thresholds"])
        shown.append(
            Table(
                ("threshold", "value", "what it is"),
                rows,
                title=_NUMBERS[page["outcome"] == Outcome.UNKNOWN.label],
            )
        )
    titles = {"ruled_out": "What it rules out", "missing": "What is missing", "next": "What would settle it"}
    for field in _OF_A_VERDICT:
        lines = [line for line in page[field] if line != code.GAP]
        if lines:
            shown.append(Table((titles[field],), tuple((line,) for line in lines)))
    return tuple(shown)


def _given(modules: list[str]) -> Iterator[dict[str, str]]:
    """When it is given, by the evidence: what ddprobe measured, or what was collected."""
    for module in modules:
        evidence = (
            EITHER if module in _MEASURED & _COLLECTED else COLLECTED if module in _COLLECTED else MEASURED
        )
        judges = (node for node in ast.walk(code.tree(module)) if isinstance(node, ast.FunctionDef))
        for node in judges:
            when = " ".join((ast.get_docstring(node) or "").split())
            if node.name.startswith("judge") and when:
                yield {"evidence": evidence, "when": when}


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
    calls = (node for node in ast.walk(code.tree(module)) if isinstance(node, ast.Call))
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
            yield from code.texts(given[field])
            if field == "kind" and isinstance(given[field], ast.Name):
                yield from _returned(tree, given[field])
                yield from _assigned(tree, given[field])
                yield from _passed(tree, call, given[field])


def _assigned(tree: ast.AST, name: ast.expr) -> Iterator[str]:
    """The texts that a name is set to in the module."""
    assert isinstance(name, ast.Name)
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == name.id:
            yield from code.texts(node.value)


def _passed(tree: ast.AST, call: ast.Call, name: ast.expr) -> Iterator[str]:
    """The texts that a name can be, where it is what a function of the module that holds the call is called with."""
    assert isinstance(name, ast.Name)
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef) or call not in set(ast.walk(function)):
            continue
        order = [each.arg for each in function.args.args]
        for node in ast.walk(tree):
            if (
                name.id in order
                and isinstance(node, ast.Call)
                and getattr(node.func, "id", "") == function.name
            ):
                for value in node.args[order.index(name.id) :][:1]:
                    yield from code.texts(value)


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
                    yield from code.texts(
                        value.elts[0] if isinstance(value, ast.Tuple) and value.elts else value
                    )


def _thresholds(module: str, *, told_only: bool) -> Iterator[dict[str, Any]]:
    """The numbers of `verdicts/thresholds.py` that a module uses, or that its sentences tell, with what stands beneath each."""
    tree = code.tree(module)
    within = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)] if told_only else [tree]
    used = {
        node.attr
        for part in within
        for node in ast.walk(part)
        if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "thresholds"
    }
    for name, about in _documented(thresholds.__name__).items():
        if name in used and name.isupper():
            yield {"name": name, "value": getattr(thresholds, name), "about": about}


@functools.cache
def _documented(module: str) -> dict[str, str]:
    """Name → the text beneath its assignment."""
    body = code.tree(module).body
    found = {}
    for node, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            says = after.value if isinstance(after, ast.Expr) else None
            text = says.value if isinstance(says, ast.Constant) and isinstance(says.value, str) else ""
            found[node.targets[0].id] = " ".join(text.split())
    return found
