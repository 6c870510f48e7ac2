"""`demo`: the main job, end to end, against the embedded lab host."""

from __future__ import annotations

from typing import Annotated

import typer

from ddprobe.cli import flow, targets
from ddprobe.cli.options import Options, with_options

PLAYBOOK = "commit-len-one"


@with_options()
def demo(
    options: Options,
    scenario: Annotated[
        str | None,
        typer.Option(
            "--scenario", metavar="NAME", help="Which lab host; `ddprobe lab scenarios` lists them."
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="K=V", help="A var of the playbook; may be given several times."),
    ] = None,
) -> int:
    """The main job against a lab host inside this process: the playbook commit-len-one, from start to report.

    Needs no GPU, no network and no set-up. The lab's files, processes and numbers are made up, and every output of
    it says so. It takes the options of every look at hosts; the lab's host is the only one, whatever --hosts says.

    Example: ddprobe demo --scenario healthy
    """
    from ddprobe import lab
    from ddprobe.playbookfile import shelf
    from ddprobe.playbookfile.load import load
    from ddprobe.playbookfile.values import set_vars
    from ddprobe.running.booked import Booked

    book = load(shelf.shipped() / f"{PLAYBOOK}.yaml")
    booked = Booked(book, set_vars(book, set_ or ()), {})
    with lab.running(scenario or lab.DEFAULT) as host:
        hosts = targets.limited([host], options)
        report, folder = flow.carry_out("demo", hosts, booked.stages, options, lab=True, book=booked.told)
        return flow.present(report, folder, options)
