"""`lab`: a lab host that keeps running, to try things on."""

from __future__ import annotations

import signal
import threading
from typing import Annotated

import typer

from ddprobe.cli import screen
from ddprobe.cli.options import Options, with_options
from ddprobe.cli.plain import family

app, command = family(
    "lab", "Keep a lab host running to try things on: made up, on loopback, inside this process."
)


@command("up", "Start a lab host; Ctrl-C ends it.")
@with_options("json", "no_color", "debug")
def up(
    options: Options,
    scenario: Annotated[
        str | None,
        typer.Option("--scenario", metavar="NAME", help="Which; `ddprobe lab scenarios` lists them."),
    ] = None,
) -> int:
    """Start a lab host and say how to reach it; Ctrl-C ends it.

    Example: ddprobe lab up --scenario healthy
    """
    from ddprobe import lab
    from ddprobe.blocks import Pairs, Paragraph

    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    with lab.up(scenario or lab.DEFAULT) as running:
        if options.json:
            document = {
                "schema": "ddprobe-lab/1",
                "lab": True,
                "scenario": running.scenario.name,
                "host": running.host.name,
                "hosts_file": str(running.hosts_file),
            }
            screen.dump(document)
        else:
            rows = (
                ("scenario", f"{running.scenario.name}: {running.scenario.about}"),
                ("host", running.host.name),
                ("hosts file", str(running.hosts_file)),
            )
            note = Paragraph(
                "A lab: this host is made up, listens on loopback only, and ends with Ctrl-C.", "warn"
            )
            ways = (
                Paragraph("From another terminal, with ddprobe and with plain ssh:", "dim"),
                Paragraph(running.ddprobe_command, "command"),
                Paragraph(
                    running.ddprobe_command.replace(" inspect-config ", " commit-probe ", 1), "command"
                ),
                Paragraph(running.ssh_command, "command"),
            )
            screen.draw([note, Pairs(rows), *ways], options)
        try:
            ended.wait()
        except KeyboardInterrupt:
            return 0
    return 0


@command("scenarios", "What the lab can play.")
@with_options("json", "no_color", "debug")
def scenarios(options: Options) -> int:
    """What the lab can play.

    Example: ddprobe lab scenarios
    """
    from ddprobe import lab
    from ddprobe.blocks import Table

    told = tuple((one.name, one.about) for one in lab.scenarios())
    if options.json:
        document = {"schema": "ddprobe-scenarios/1", "scenarios": [{"name": n, "about": a} for n, a in told]}
        screen.dump(document)
        return 0
    rows = tuple((name, f"{about} (the default)" if name == lab.DEFAULT else about) for name, about in told)
    screen.draw([Table(("scenario", "what it is"), rows)], options)
    return 0
