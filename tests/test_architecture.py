"""Imports point one way, and only the edges touch the world."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "ddprobe"

# The rooms that touch network, files and screen; they may use each other.
EDGES = {
    "runner", "running", "interrupts", "opening", "analysis", "rejudging", "store", "reportjson", "reportschema", "sessions", "render",
    "inventory", "hostsfile", "playbook", "playbookfile", "yamlfile", "plainfile",
}  # fmt: skip
# From the ground up: a module imports only from lines below its own, or its own folder.
FLOORS = (
    {"errors", "blocks", "ddprobe"},
    {"model"},
    {"argv"},
    {"parsing", "statistics", "fitting", "readonly", "redact", "arms"},
    {"facts"},
    {"steplaw", "gpu_cards"},
    {"roofline"},
    {"engines"},
    {"evidence"},
    {"lints"},
    {"verdicts"},
    {"probes"},
    EDGES,
    {"lab"},
    {"cli"},
    {"__main__"},
)
LEVEL = {room: level for level, floor in enumerate(FLOORS) for room in floor}
PURE = {
    "errors", "blocks", "model", "argv", "parsing", "statistics", "fitting", "readonly", "redact", "arms", "engines", "facts", "steplaw",
    "gpu_cards", "roofline", "evidence",
    "lints", "verdicts", "probes",
}  # fmt: skip
WORLD = {
    "fabric",
    "paramiko",
    "httpx",
    "httpcore",
    "subprocess",
    "socket",
    "rich",
    "typer",
    "yaml",
    "time",
    "os",
    "pathlib",
}


def modules() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


def room_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return "ddprobe" if parts == ("__init__",) else parts[0]


def imports(path: Path) -> list[str]:
    """Every module that the file imports anywhere, dotted."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            if node.module == "ddprobe":
                found += [f"ddprobe.{alias.name}" for alias in node.names]
            else:
                found.append(node.module or "")
    return found


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_down(path: Path) -> None:
    room = room_of(path)
    assert room in LEVEL, f"{room} has no place in the house"
    for name in imports(path):
        if not name.startswith("ddprobe"):
            continue
        parts = name.split(".")
        other = parts[1] if len(parts) > 1 and parts[1] in LEVEL else "ddprobe"
        if other != room:
            assert LEVEL[other] < LEVEL[room] or {other, room} <= EDGES, f"{room} imports {name}"


@pytest.mark.parametrize(
    "path", [p for p in modules() if room_of(p) in PURE], ids=lambda p: str(p.relative_to(ROOT))
)
def test_pure_modules_stay_pure(path: Path) -> None:
    touched = {name.split(".")[0] for name in imports(path)} & WORLD
    assert not touched, f"{path.relative_to(ROOT)} imports {touched}"


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_only_the_cli_and_the_terminal_view_print(path: Path) -> None:
    if room_of(path) == "cli" or path.name == "terminal.py":
        return
    calls = [
        node.lineno
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert not calls, f"{path.relative_to(ROOT)} prints at lines {calls}"


def test_every_module_says_what_it_is_for() -> None:
    silent = [str(p.relative_to(ROOT)) for p in modules() if not ast.get_docstring(ast.parse(p.read_text()))]
    assert not silent
