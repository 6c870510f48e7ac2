"""A probe's manual page, from the probe itself: its docstring, its settings, its findings, and its source.

What a probe may ask a host is read off the source that it can reach, so the page cannot promise less than is true.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import sys
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, dataclass
from typing import Any, get_args, get_origin

from ddprobe import probes, readonly
from ddprobe.blocks import Block, Heading, Pairs, Paragraph, Table
from ddprobe.model import HttpRequest, Probe

_ROOMS = ("ddprobe.probes", "ddprobe.engines", "ddprobe.parsing")
_PACKAGES = frozenset(_ROOMS)
"""They hand on what other modules define."""


def page(probe: type[Probe]) -> dict[str, Any]:
    """The manual page as plain values."""
    text = inspect.cleandoc(sys.modules[probe.__module__].__doc__ or "")
    about = text.partition("\n")[2]
    programs, paths = reach(probe)
    return {
        "name": probe.name(),
        "question": question(probe),
        "about": about.strip(),
        "settings": [
            {
                "name": setting.name,
                "type": type_name(setting.type),
                "default": None if setting.default is MISSING else setting.default,
                "required": setting.default is MISSING,
                "help": setting.help,
            }
            for setting in probes.settings(probe)
        ],
        "findings": [{"id": key, "about": line} for key, line in sorted(probe.findings.items())],
        "outputs": [{"name": key, "about": line} for key, line in probe.outputs.items()],
        "programs": list(programs),
        "http": list(paths),
    }


def overview(kinds: Sequence[type[Probe]]) -> Table:
    """Every probe in a line."""
    return Table(("probe", "question"), tuple((kind.name(), question(kind)) for kind in kinds))


def question(probe: type[Probe]) -> str:
    """The question that the probe answers."""
    return (sys.modules[probe.__module__].__doc__ or "").strip().partition("\n")[0]


def blocks(page: dict[str, Any]) -> tuple[Block, ...]:
    """The page as a person reads it."""
    shown: list[Block] = [Heading(page["name"]), Paragraph(page["question"])]
    shown += [Paragraph(" ".join(part.split())) for part in page["about"].split("\n\n") if part.strip()]
    if page["settings"]:
        rows = tuple(
            (s["name"], s["type"], "required" if s["required"] else _default(s["default"]), s["help"])
            for s in page["settings"]
        )
        shown.append(Table(("setting", "type", "default", "what it is"), rows, title="Settings"))
    if page["findings"]:
        given = tuple((f["id"], f["about"]) for f in page["findings"])
        shown.append(
            Table(("finding", "what it means"), given, title="Findings of its own (lints come on top)")
        )
    if page["outputs"]:
        taken = tuple((one["name"], one["about"]) for one in page["outputs"])
        shown.append(
            Table(
                ("output", "what it is"),
                taken,
                title="What a playbook's later steps may take: ${steps.ID.OUTPUT}",
            )
        )
    asks = [("programs", ", ".join(page["programs"]) or "none"), ("HTTP", ", ".join(page["http"]) or "none")]
    shown.append(Pairs(tuple(asks), title="May run on a host, read-only and never more than this"))
    return tuple(shown)


def _default(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value in (None, "", ()) else str(value)


def type_name(kind: Any) -> str:
    """A setting's type as a person reads it."""
    if get_origin(kind) is tuple:
        return f"{type_name(get_args(kind)[0])}, …"
    parts = [type_name(part) for part in get_args(kind) if part is not type(None)]
    return " or ".join(parts) if parts else {"str": "text", "int": "number"}.get(kind.__name__, kind.__name__)


@functools.cache
def reach(probe: type[Probe]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The programs and HTTP paths named in the code that the probe can reach, by name, through its imports."""
    modules = _modules(probe.__module__)
    definitions: dict[str, list[tuple[str, ast.AST]]] = {}
    for module in sorted(modules):
        for name, node in _definitions(module):
            definitions.setdefault(name, []).append((module, node))
    asked = {f"{method} {path}": path for method, path in readonly.HTTP_PATHS}
    asked |= {f"POST {path}": path for path in readonly.GENERATING}
    programs: set[str] = set()
    paths: set[str] = set()
    asks_http = False
    seen: set[int] = set()
    todo: list[tuple[str, ast.AST]] = [(probe.__module__, _tree(probe.__module__))]
    while todo:
        inside, piece = todo.pop()
        used = _used(inside, piece)
        programs |= used.programs
        paths |= {words for words, path in asked.items() if path in used.constants}
        for name, whose, of_any in used.names:
            only = "" if of_any and (whose not in modules or whose in _PACKAGES) else whose
            asks_http = asks_http or name == HttpRequest.__name__
            for module, found in definitions.get(name, ()):
                if id(found) not in seen and (only in ("", module) or only in _PACKAGES):
                    seen.add(id(found))
                    todo.append((module, found))
    return tuple(sorted(programs)), tuple(sorted(paths)) if asks_http else ()


@dataclass(frozen=True, slots=True)
class _Used:
    """What a piece of code names."""

    programs: frozenset[str]
    constants: frozenset[Any]
    names: frozenset[tuple[str, str, bool]]
    """(name, module that it is of, whether it is an attribute: a method of any may be meant)"""


@functools.cache
def _used(module: str, piece: ast.AST) -> _Used:
    nodes = list(_code(piece))
    return _Used(
        programs=frozenset(word for node in nodes for word in _words(node) if word in readonly.PROGRAMS),
        constants=frozenset(node.value for node in nodes if isinstance(node, ast.Constant)),
        names=frozenset(named for node in nodes if (named := _named(node, module)) is not None),
    )


def _named(node: ast.AST, module: str) -> tuple[str, str, bool] | None:
    """The name that the node uses, and the module that defines it; empty where that is not told."""
    if isinstance(node, ast.Name):
        return node.id, _imported(module).get(node.id, f"{module}.{node.id}").rpartition(".")[0], False
    if isinstance(node, ast.Attribute):
        whose = _imported(module).get(node.value.id, "") if isinstance(node.value, ast.Name) else ""
        return node.attr, whose, True
    return None


@functools.cache
def _imported(module: str) -> dict[str, str]:
    """Name → what it is in the module it was imported from: `_processes` → `ddprobe.probes._processes`."""
    return {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in ast.walk(_tree(module))
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }


@functools.cache
def _definitions(module: str) -> tuple[tuple[str, ast.AST], ...]:
    return tuple((name, node) for node in _outer(_tree(module)) for name in _defines(node))


def _outer(scope: ast.AST) -> Iterator[ast.AST]:
    """What a module or class defines for others, the parts of its classes included; nothing inside functions."""
    for node in ast.iter_child_nodes(scope):
        yield node
        if not isinstance(node, ast.FunctionDef):
            yield from _outer(node)


def _code(node: ast.AST) -> Iterator[ast.AST]:
    """All code of a module or function; of a class only what runs by itself: its other methods are reached by name."""
    if not isinstance(node, ast.ClassDef):
        yield from ast.walk(node)
        return
    for item in node.body:
        if isinstance(item, ast.FunctionDef) and item.name.startswith("__"):
            yield from ast.walk(item)


def _words(node: ast.AST) -> list[Any]:
    """The texts that may begin an argv: first in a tuple, or handed to a function that makes one of them."""
    if isinstance(node, ast.Tuple):
        return [item.value for item in node.elts[:1] if isinstance(item, ast.Constant)]
    if isinstance(node, ast.Call) and getattr(node.func, "attr", "") != "get":
        return [item.value for item in node.args if isinstance(item, ast.Constant)]
    return []


def _defines(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Assign):
        yield from (target.id for target in node.targets if isinstance(target, ast.Name))
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        yield node.target.id


def _modules(start: str) -> set[str]:
    """The module and all that it imports, transitively, of the rooms that hold questions."""
    found: set[str] = set()
    todo = [start]
    while todo:
        module = todo.pop()
        if module in found or not module.startswith(_ROOMS):
            continue
        try:
            source = importlib.import_module(module).__file__
        except ModuleNotFoundError:
            continue
        if source is None:
            continue
        found.add(module)
        todo += _imports(module)
    return found


@functools.cache
def _imports(module: str) -> tuple[str, ...]:
    """Every module that it may import, by what it names."""
    named: list[str] = []
    for node in ast.walk(_tree(module)):
        if isinstance(node, ast.Import):
            named += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            named += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return tuple(named)


_TREES: dict[str, ast.Module] = {}


def _tree(module: str) -> ast.Module:
    if module not in _TREES:
        _TREES[module] = ast.parse(inspect.getsource(importlib.import_module(module)))
    return _TREES[module]
