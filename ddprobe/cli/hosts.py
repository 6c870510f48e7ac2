"""`hosts`: the hosts file as understood, and with `--check` who of it can be reached."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from ddprobe import inventory
from ddprobe.cli import flow, screen, targets
from ddprobe.cli.options import Options, hosts_argument, with_options
from ddprobe.errors import UsageError
from ddprobe.inventory import Inventory
from ddprobe.model import Host, HostRecord, Outcome, Report, Step

HostsOrAll = Annotated[list[str] | None, hosts_argument("every host of the hosts file")]


@with_options()
def hosts(
    options: Options,
    hosts: HostsOrAll = None,
    check: Annotated[bool, typer.Option("--check", help="Connect to each and say what answers.")] = False,
) -> int:
    """The hosts file; with --check connects to each host: reachable, latency, host key, engine found.

    Without HOST it is about every host of the file.

    Example: ddprobe hosts @blackwell --check
    """
    known = targets.load(options)
    if not hosts and known is None:
        looked = ", ".join(str(place) for place in inventory.places())
        raise UsageError(
            "there is no hosts file", f"name hosts as you would for ssh, or write one (looked at {looked})"
        )
    chosen = inventory.select(hosts, known) if hosts else known.hosts if known else ()
    if not check:
        return _list(chosen, known, options)
    from ddprobe.probes.host.reach import HostReach

    if not chosen:
        raise UsageError(f"{known.path if known else 'the hosts file'} has no hosts")
    steps = [Step("reach", HostReach())]
    return flow.look(
        "hosts-check",
        targets.limited(chosen, options),
        steps,
        options,
        view=None if options.verbose else lambda report, folder: _checked(report, folder, options),
    )


def _list(chosen: Sequence[Host], known: Inventory | None, options: Options) -> int:
    if options.json:
        document = {
            "schema": "ddprobe-hosts/1",
            "file": known.path if known else None,
            "default": known.default or None if known else None,
            "groups": dict(known.groups) if known else {},
            "hosts": [_plain(host) for host in chosen],
        }
        screen.dump(document)
        return 0
    from ddprobe.blocks import Paragraph, Table
    from ddprobe.render import count

    groups = {group: set(inventory.expand(f"@{group}", known)) for group, _ in known.groups} if known else {}
    columns = {
        "host": [host.name + _standing(host, known) for host in chosen],
        "address": [_address(host) for host in chosen],
        "user": [host.user or "" for host in chosen],
        "jump": [host.jump or "" for host in chosen],
        "transport": [host.transport for host in chosen] if {h.transport for h in chosen} - {"ssh"} else [],
        "container": [f"{c.runtime} {c.name}" if (c := host.container) else "" for host in chosen],
        "engine": [host.engine or "" for host in chosen],
        "tags": [", ".join(host.tags) for host in chosen],
        "groups": [
            ", ".join(f"@{group}" for group, members in groups.items() if host.name in members)
            for host in chosen
        ],
    }
    told = {name: cells for name, cells in columns.items() if any(cells)}
    note = "An empty field is as ssh_config says, or discovered."
    if known:
        note = f"{known.path}: {count(len(known.hosts), 'host')}. {note if chosen else ''}".rstrip()
    table = [Table(tuple(told), tuple(zip(*told.values(), strict=True)))] if chosen else []
    screen.draw([*table, Paragraph(note, "dim")], options)
    return 0


def _standing(host: Host, known: Inventory | None) -> str:
    if known and host.name == known.default:
        return " (default)"
    return " (not in the file)" if known and not known.host(host.name) else ""


def _plain(host: Host) -> dict[str, Any]:
    import dataclasses

    return {key: value for key, value in dataclasses.asdict(host).items() if value not in (None, ())}


def _address(host: Host) -> str:
    return (host.address or "") + (f":{host.port}" if host.port else "")


def _checked(report: Report, folder: Path, options: Options) -> None:
    from ddprobe.blocks import Paragraph, Table
    from ddprobe.render import count

    rows = tuple(_row(report, record) for record in report.hosts if not record.error)
    shown: list[Any] = []
    if rows and not options.quiet:
        shown.append(Table(("host", "system", "round trip", "host key", "engines", "GPUs"), rows))
    shown += [
        Paragraph(f"{found.host}: {found.subject}: {found.summary}", "warn")
        for found in report.findings
        if found.outcome >= Outcome.WARN
    ]
    shown += [
        Paragraph(f"{record.name}: {note}", "dim")
        for record in report.hosts
        if record.connection is not None and not options.quiet
        for note in record.connection.notes
    ]
    troubles: dict[tuple[str, str], list[HostRecord]] = {}
    for record in report.hosts:
        if record.error:
            troubles.setdefault((_nameless(record), record.advice), []).append(record)
    for (error, advice), records in troubles.items():
        names = inventory.fold([record.name for record in records])
        first = records[0].error
        if len(records) > 1 or names not in first:
            first = f"{names}: {error}"
        shown.append(Paragraph(first + (f"\n→ {advice}" if advice else ""), "bad"))
    reached = f"{len(rows)} of {count(len(report.hosts), 'host')} answered."
    shown.append(Paragraph(reached, "good" if len(rows) == len(report.hosts) else "warn"))
    if not options.quiet:
        shown.append(Paragraph(f"report  {folder}", "dim"))
    screen.draw(shown, options)


def _nameless(record: HostRecord) -> str:
    """The error without the host's name, so that the same trouble of several hosts is said once."""
    name = re.escape(record.name)
    return re.sub(
        rf"'?(?<![\w.]){name}(?![\w.])'?", "it", re.sub(rf"^{name}(?: \([^)]*\))?: ", "", record.error)
    )


def _row(report: Report, record: HostRecord) -> tuple[str, ...]:
    from ddprobe.facts import Reach

    facts = [fact for step in report.steps if step.host == record.name for fact in step.facts]
    reach = next((fact for fact in facts if isinstance(fact, Reach)), None)
    key = record.connection.host_key if record.connection else ""
    if reach is None:
        return (record.name, "unknown", "", key, "unknown", "unknown")
    trip = "" if reach.round_trip_ms is None else f"{reach.round_trip_ms:.1f} ms"
    return (
        record.name,
        reach.system,
        trip,
        key,
        "unknown" if reach.engines is None else ", ".join(reach.engines) or "none found",
        ", ".join(f"{n} × {gpu}" for gpu, n in Counter(reach.gpus).items()) or "none found",
    )
