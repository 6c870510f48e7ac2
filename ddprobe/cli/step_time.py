"""`step-time`: how the time of a verify step grows with context, measured on a live server."""

from __future__ import annotations

from typing import Annotated

import typer

from ddprobe.cli import flow, measuring, targets
from ddprobe.cli.options import Hosts, Options, with_options


@with_options()
def step_time(
    options: Options,
    hosts: Hosts = None,
    contexts: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="Context lengths: 1k,4k,16k; or auto: 1k, both sides of each configured limit, the largest that fits. "
            "[6 to 8, the same factor apart, from 1k to the largest that fits]",
        ),
    ] = None,
    steps: Annotated[
        str,
        typer.Option(
            metavar="N", help="Steps timed per length, at least; the first two of a request come on top."
        ),
    ] = "64",
    text: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Your own text to repeat, in place of the shipped sentence."),
    ] = None,
    plan: measuring.Plan = False,
    while_busy: measuring.WhileBusy = False,
    max_context: measuring.MaxContext = None,
    seed: Annotated[
        str | None, typer.Option(metavar="N", help="Of order and nonces. [drawn, and reported]")
    ] = None,
    engine: measuring.Engine = None,
    url: measuring.Url = None,
    plain_url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Where the same model is served without speculation, on the same host: measured afterwards, to tell "
            "from which length speculation costs more than it gives.",
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="REPORT",
            help="In place of that: a report of step-time or commit-probe on the same server without speculation.",
        ),
    ] = None,
) -> int:
    """How long a verify step takes, by context length, and how far that is from what the GPUs' memory allows.

    Sends greedy requests of one easy text to the running server, one after another; --plan shows them first. A busy
    server is left alone. --timeout limits one request.

    Example: ddprobe step-time gpu1 --contexts 1k,4k,16k,64k,128k
    """
    from ddprobe.errors import UsageError
    from ddprobe.model import Step
    from ddprobe.probes.draft.step_time import DraftStepTime

    if plain_url and baseline:
        raise UsageError("--plain-url and --baseline say the same thing in two ways", "give one of them")
    given = measuring.Mistakes("step-time")
    probe = DraftStepTime(
        contexts=given.contexts(contexts),
        steps=given.steps(steps),
        text=given.text(text),
        plan=plan,
        while_busy=while_busy,
        max_context=given.max_context(max_context),
        seed=given.seed(seed),
        engine=given.engine(engine),
        url=given.url(url),
        plain_url=given.url(plain_url, "--plain-url"),
        baseline=given.baseline(baseline, options),
        request_timeout=given.request_timeout(options),
    )
    given.end()
    return flow.look("step-time", targets.resolve(hosts, options), [Step("time", probe)], options)
