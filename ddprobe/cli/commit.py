"""`commit-probe`: commit length by context and kind of text, measured on a live server."""

from __future__ import annotations

from typing import Annotated

import typer

from ddprobe.cli import flow, measuring, targets
from ddprobe.cli.options import Hosts, Options, with_options
from ddprobe.cli.plain import nearest
from ddprobe.errors import UsageError

MAX_PROMPTS = 64


@with_options()
def commit_probe(
    options: Options,
    hosts: Hosts = None,
    contexts: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="Context lengths: 1k,16k; or auto: 1k, both sides of each configured limit, the largest that fits. "
            "[1k,16k,64k,128k as far as they fit]",
        ),
    ] = None,
    arms: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="Kinds of text: repeat, repeat-wide, repeat-long, far-copy, code, chat, prose, random, verbatim. "
            "[repeat,far-copy,prose]",
        ),
    ] = None,
    steps: Annotated[str, typer.Option(metavar="N", help="Verify steps per point, at least.")] = "64",
    prompts: Annotated[
        str, typer.Option(metavar="N", help="Prompts per point: other tails behind one beginning.")
    ] = "4",
    text: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Your own text, byte for byte: tiled in repeat, the passage in prose, the question in chat, as it is in verbatim.",
        ),
    ] = None,
    plan: measuring.Plan = False,
    while_busy: measuring.WhileBusy = False,
    max_context: measuring.MaxContext = None,
    cold: Annotated[
        bool, typer.Option("--cold", help="Keep the prefix cache out of it: every prompt is computed whole.")
    ] = False,
    seed: Annotated[
        str | None, typer.Option(metavar="N", help="Of filler text, order and nonces. [drawn, and reported]")
    ] = None,
    engine: measuring.Engine = None,
    url: measuring.Url = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="REPORT",
            help="A commit-probe's report of the same server without speculation, to tell whether speculation pays.",
        ),
    ] = None,
) -> int:
    """How many tokens each verify step commits, by context length and kind of text, with the time it takes.

    Says whether the drafter is broken at long context or the text is just hard. Sends greedy requests to the running
    server, one after another; --plan shows them first. A busy server is left alone. --timeout limits one request.

    Example: ddprobe commit-probe gpu1 --contexts 1k,16k,64k,128k
    """
    from ddprobe.model import Step
    from ddprobe.probes.draft.commit import DraftCommit

    given = measuring.Mistakes("commit-probe")
    probe = DraftCommit(
        contexts=given.contexts(contexts),
        arms=given.arms(arms, lambda words: _arms(words, text is not None)),
        steps=given.steps(steps),
        prompts=given.number(4, "--prompts", prompts, 1, MAX_PROMPTS),
        text=given.text(text),
        plan=plan,
        while_busy=while_busy,
        max_context=given.max_context(max_context),
        cold=cold,
        seed=given.seed(seed),
        engine=given.engine(engine),
        url=given.url(url),
        baseline=given.baseline(baseline, options),
        request_timeout=given.request_timeout(options),
    )
    given.end()
    return flow.look("commit-probe", targets.resolve(hosts, options), [Step("commit", probe)], options)


def _arms(text: str, with_text: bool) -> str:
    from ddprobe.arms import ARMS

    words = [word.strip() for word in text.split(",")]
    for word in words:
        if word not in ARMS:
            raise UsageError(
                f"--arms: there is no arm {word!r}", nearest(word, ARMS) or f"there are {', '.join(ARMS)}"
            )
    if "verbatim" in words and not with_text:
        raise UsageError("the arm verbatim sends a text of yours as it is", "give it with --text FILE")
    return ",".join(dict.fromkeys(words))
