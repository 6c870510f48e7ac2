"""`demo`: the main job, end to end, against the embedded lab host."""

from __future__ import annotations

from typing import Annotated

import typer

from ddprobe.cli import flow, targets
from ddprobe.cli.options import Options, with_options

# What an engineer would go for in the lab's source: where a commit length is made, and where it is counted.
PATTERN = "commit_lens|accept_depths"
FOLDER = "srt/speculative/*"
FILE = "srt/speculative/dflash_worker_v2.py"
RANGES = "33-44,137-164"


@with_options()
def demo(
    options: Options,
    scenario: Annotated[
        str | None,
        typer.Option(
            "--scenario", metavar="NAME", help="Which lab host; `ddprobe lab scenarios` lists them."
        ),
    ] = None,
) -> int:
    """The main job against a lab host inside this process: inspect-config, server, grep, read, commit-probe, report.

    Needs no GPU, no network and no set-up. The lab's files, processes and numbers are made up, and every output of
    it says so. It takes the options of every look at hosts; the lab's host is the only one, whatever --hosts says.

    Example: ddprobe demo --scenario healthy
    """
    from ddprobe import lab
    from ddprobe.model import Step
    from ddprobe.probes.draft.commit import DraftCommit
    from ddprobe.probes.draft.config import DraftConfig
    from ddprobe.probes.engine.server import EngineServer
    from ddprobe.probes.source.grep import SourceGrep
    from ddprobe.probes.source.read import SourceRead

    steps = [
        Step("config", DraftConfig()),
        Step("server", EngineServer()),
        Step("grep", SourceGrep(pattern=PATTERN, in_glob=FOLDER, limit=12)),
        Step("read", SourceRead(file=FILE, ranges=RANGES)),
        Step("commit", DraftCommit()),
    ]
    with lab.running(scenario or lab.DEFAULT) as host:
        hosts = targets.limited([host], options)
        return flow.look("demo", hosts, steps, options, lab=True)
