"""A playbook's manual page: its question, its vars, and what each of its steps asks of a host and of the server."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

from ddprobe import probes
from ddprobe.blocks import Block, Heading, Pairs, Paragraph, Table
from ddprobe.cli import manual, runplan
from ddprobe.playbook import Playbook, PlaybookStep, references
from ddprobe.playbookfile import kinds
from ddprobe.verdicts.hypotheses import HYPOTHESES


def page(book: Playbook) -> dict[str, Any]:
    """The page as plain values."""
    defaults = {var.name: var.default for var in book.vars}
    return {
        "name": book.name,
        "about": book.about,
        "file": book.file,
        "vars": [
            {
                "name": var.name,
                "type": var.kind,
                "default": _plain(var.default),
                "required": var.default is None,
                "help": var.help,
            }
            for var in book.vars
        ],
        "hypotheses": {name: HYPOTHESES[name][0] for name in book.hypotheses or HYPOTHESES},
        "steps": [_step(step, defaults) for step in book.steps],
        "expect": [
            {
                "id": one.id,
                "about": one.words,
                "condition": runplan.words(one.condition),
                "otherwise": one.otherwise.label,
            }
            for one in book.expect
        ],
    }


def _step(step: PlaybookStep, defaults: dict[str, Any]) -> dict[str, Any]:
    kind = probes.load(step.probe)
    programs, paths = manual.reach(kind)
    settings = {setting.name: setting for setting in probes.settings(kind)}
    known: dict[str, Any] = {}
    for name, value in step.given:
        found = [defaults.get(r.name) if r.source == "vars" else None for r in references(value)]
        whole = None if None in found else _with(value, defaults)
        known[name] = None if whole is None else kinds.as_setting(settings[name], whole)
    return {
        "id": step.id,
        "probe": step.probe,
        "question": manual.question(kind),
        "with": {name: _plain(value) for name, value in step.given},
        "after": list(step.after),
        "when": [runplan.words(condition) for condition in step.when],
        "timeout": step.timeout,
        "programs": list(programs),
        "http": list(paths),
        "cost": kind.cost(known),
        "outputs": dict(kind.outputs),
    }


def _with(value: Any, defaults: dict[str, Any]) -> Any:
    from ddprobe.playbookfile.values import Scope, resolve

    return resolve(value, Scope(vars=defaults))


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def blocks(page: dict[str, Any]) -> Iterator[Block]:
    """The page as a person reads it."""
    yield Heading(page["name"])
    for part in page["about"].split("\n\n"):
        yield Paragraph(" ".join(part.split()))
    yield Paragraph(page["file"], "dim")
    if page["vars"]:
        rows = tuple(
            (
                v["name"],
                v["type"],
                "must be set" if v["required"] else _told(v["default"]) or "none",
                v["help"],
            )
            for v in page["vars"]
        )
        yield Table(("var", "type", "default", "what it is"), rows, title="Vars: --set name=value")
    yield Heading("Steps")
    for step in page["steps"]:
        yield from _of_step(step)
    if page["expect"]:
        expected = tuple(
            (one["id"], one["about"], one["condition"], one["otherwise"]) for one in page["expect"]
        )
        yield Table(("id", "expected", "that is", "else"), expected, title="Expected")
    yield Pairs(tuple(page["hypotheses"].items()), title="Explanations that its ledger answers")
    yield Paragraph(_command(page), "command")


def _command(page: dict[str, Any]) -> str:
    """How its plan is seen: by its name where that finds it, with the vars that have no default."""
    from ddprobe.errors import PlaybookError
    from ddprobe.playbookfile import shelf

    try:
        found = str(shelf.find(page["name"])) == page["file"]
    except PlaybookError:
        found = False
    words = page["name"] if found else shlex.quote(page["file"])
    needed = [f" --set {var['name']}=VALUE" for var in page["vars"] if var["required"]]
    return f"ddprobe run {words} HOST{''.join(needed)} --plan"


def _of_step(step: dict[str, Any]) -> Iterator[Block]:
    rows: list[tuple[str, str]] = [(name, _told(value)) for name, value in step["with"].items()]
    if step["after"]:
        rows.append(("after", ", ".join(step["after"])))
    rows += [("only if", condition) for condition in step["when"]]
    if step["timeout"] is not None:
        rows.append(("timeout", f"{step['timeout']:g} s"))
    rows.append(("may run", ", ".join(step["programs"]) or "none"))
    rows.append(("may request", ", ".join(step["http"]) or "none"))
    rows.append(("cost", step["cost"] or "no prompt is sent"))
    yield Pairs(tuple(rows), title=f"{step['id']}  {step['probe']}  {step['question']}")


def _told(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_told, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
