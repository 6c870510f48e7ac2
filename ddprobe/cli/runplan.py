"""`run --plan`: what a playbook would ask of its hosts, and what that costs. Nothing is sent, nobody is connected to."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import Any

from ddprobe import probes
from ddprobe.blocks import Block, Heading, Pairs, Paragraph, Table
from ddprobe.cli import manual
from ddprobe.errors import Unanswered
from ddprobe.model import Begin, Command, Host, HttpRequest
from ddprobe.playbook import Condition, PlaybookStep, references
from ddprobe.playbookfile import kinds
from ddprobe.playbookfile.values import Scope, probe_for
from ddprobe.running.booked import Booked

SCHEMA = "ddprobe-plan/1"


def plan(booked: Booked, hosts: Sequence[Host]) -> dict[str, Any]:
    """The plan as plain values. The first questions are those for the first host; others may differ in their settings."""
    book = booked.book
    return {
        "schema": SCHEMA,
        "playbook": book.name,
        "about": book.about,
        "hosts": [host.name for host in hosts],
        "vars": {name: _plain(value) for name, value in booked.values.items()},
        "steps": [_step(booked, step, hosts[0]) for step in book.steps],
        "expect": [one.words for one in book.expect],
    }


def _step(booked: Booked, step: PlaybookStep, host: Host) -> dict[str, Any]:
    kind = probes.load(step.probe)
    programs, paths = manual.reach(kind)
    # What an earlier step gives is not known: the cost is told so.
    known = booked.known(step)
    settings = {setting.name: setting for setting in probes.settings(kind)}
    for_cost = {
        name: None
        if any(r.source != "vars" for r in references(given))
        else kinds.as_setting(settings[name], value)
        for (name, value), (_, given) in zip(known, step.given, strict=True)
    }
    return {
        "id": step.id,
        "probe": step.probe,
        "question": manual.question(kind),
        "skipped": booked.unwanted.get(step.id, ""),
        "after": list(step.after),
        "when": [words(condition) for condition in step.when],
        "timeout": step.timeout,
        "settings": {name: _plain(value) for name, value in known},
        "first": list(_first(booked, step, host)),
        "programs": list(programs),
        "http": list(paths),
        "cost": kind.cost(for_cost),
        "measures": kind.measures,
    }


def _first(booked: Booked, step: PlaybookStep, host: Host) -> Iterator[str]:
    """The questions that a step asks first, exactly; none where they depend on what an earlier step finds."""
    try:
        conversation = probe_for(step, Scope(vars=booked.values, host=host)).collect(host)
        asked = next(conversation, ())
        conversation.close()
    except Unanswered:
        return
    for question in asked if isinstance(asked, tuple) else (asked,):
        if isinstance(question, Begin):
            yield f"{_shell(question.command)} (beside the others)"
        elif isinstance(question, Command):
            yield _shell(question)
        elif isinstance(question, HttpRequest):
            yield str(question)


def _shell(command: Command) -> str:
    """The command as one would type it."""
    return " ".join(shlex.quote(word) if isinstance(word, str) else str(word) for word in command.argv)


def words(condition: Condition) -> str:
    """A condition as a sentence's part: `commit: the verdict is long_context_bug or inconclusive`."""
    parts: list[str] = []
    if condition.statuses:
        parts.append(f"is {' or '.join(condition.statuses)}")
    if condition.outcomes:
        parts.append(f"outcome is {' or '.join(one.label for one in condition.outcomes)}")
    if condition.verdicts:
        parts.append(f"the verdict is {' or '.join(condition.verdicts)}")
    if condition.findings:
        parts.append(f"found {' or '.join(condition.findings)}")
    if condition.field:
        limits = [
            f"{word} {_plain(bound)}"
            for word, bound in (
                ("at least", condition.least),
                ("at most", condition.most),
                ("equal to", condition.equals),
            )
            if bound is not None
        ]
        if condition.known is not None:
            limits.insert(0, "known" if condition.known else "not known")
        parts.append(f"{condition.field} is {' and '.join(limits) or 'known'}")
    return f"{condition.step}: {'; '.join(parts)}"


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


# --- for a person ------------------------------------------------------------------------------------------


def blocks(plan: dict[str, Any]) -> Iterator[Block]:
    """The plan as a person reads it."""
    hosts = plan["hosts"]
    yield Heading(f"Plan of {plan['playbook']}")
    yield Paragraph(plan["about"].split("\n\n")[0].replace("\n", " "))
    yield Paragraph(f"Nothing was sent. It would look at {', '.join(hosts)}.", "dim")
    if plan["vars"]:
        yield Pairs(tuple((name, _told(value)) for name, value in plan["vars"].items()), title="Vars")
    for step in plan["steps"]:
        yield from _of_step(step, hosts[0], len(hosts) > 1)
    costs = tuple(
        (step["id"], step["cost"]) for step in plan["steps"] if step["cost"] and not step["skipped"]
    )
    if costs:
        yield Table(("step", "cost on each host"), costs, title="Prompts that the servers would be sent")
    else:
        yield Paragraph("No prompt would be sent to any server.")
    if plan["expect"]:
        yield Pairs(tuple((str(n + 1), one) for n, one in enumerate(plan["expect"])), title="Expected")


def _of_step(step: dict[str, Any], host: str, several: bool) -> Iterator[Block]:
    rows: list[tuple[str, str]] = []
    if step["skipped"]:
        rows.append(("skipped", step["skipped"]))
    if step["after"]:
        rows.append(("after", ", ".join(step["after"])))
    rows += [("only if", condition) for condition in step["when"]]
    if step["timeout"] is not None:
        rows.append(("timeout", f"{step['timeout']:g} s"))
    rows += [(name, _told(value)) for name, value in step["settings"].items()]
    if not step["skipped"]:
        asks_first = f"asks first ({host})" if several else "asks first"
        first = step["first"] or ["depends on what the steps before it find"]
        rows += [(asks_first if not number else "", one) for number, one in enumerate(first)]
        rows.append(("may run", ", ".join(step["programs"]) or "none"))
        rows.append(("may request", ", ".join(step["http"]) or "none"))
        if step["cost"]:
            rows.append(("cost", step["cost"]))
    yield Pairs(tuple(rows), title=f"{step['id']}  {step['probe']}  {step['question']}")


def _told(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_told, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
