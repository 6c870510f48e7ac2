"""`commit-probe`: commit length by context and kind of text, measured on a live server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from ddprobe.cli import flow, targets
from ddprobe.cli.options import Hosts, Options, with_options
from ddprobe.cli.plain import nearest
from ddprobe.errors import UsageError

MAX_TEXT = 8 * 1024 * 1024
MAX_CONTEXT = 16 * 1024 * 1024
MAX_STEPS = 100_000
MAX_PROMPTS = 64
MAX_SEED = 2**31 - 1

T = TypeVar("T")


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
    plan: Annotated[
        bool, typer.Option("--plan", help="Say what would be sent, and what it costs; send nothing of it.")
    ] = False,
    while_busy: Annotated[
        bool, typer.Option("--while-busy", help="Measure although the server serves others.")
    ] = False,
    max_context: Annotated[
        str | None, typer.Option(metavar="N", help="Send no prompt longer than this.")
    ] = None,
    cold: Annotated[
        bool, typer.Option("--cold", help="Keep the prefix cache out of it: every prompt is computed whole.")
    ] = False,
    seed: Annotated[
        str | None, typer.Option(metavar="N", help="Of filler text, order and nonces. [drawn, and reported]")
    ] = None,
    engine: Annotated[
        str | None, typer.Option(metavar="NAME", help="sglang, vllm or llamacpp, where it cannot be told.")
    ] = None,
    url: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="Where the server listens, as its host sees it: http://127.0.0.1:30000."
        ),
    ] = None,
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

    given = _Mistakes()
    chosen_arms = given.noted("", lambda: _arms(arms or "", text is not None))
    probe = DraftCommit(
        contexts=given.noted("", lambda: _contexts(contexts or "")),
        arms=chosen_arms,
        steps=given.number(64, "--steps", steps, 1, MAX_STEPS),
        prompts=given.number(4, "--prompts", prompts, 1, MAX_PROMPTS),
        text=given.noted("", lambda: _text(text)) if text is not None else "",
        plan=plan,
        while_busy=while_busy,
        max_context=given.noted("", lambda: str(_size(max_context, "--max-context"))) if max_context else "",
        cold=cold,
        seed=given.number(0, "--seed", seed, 0, MAX_SEED) if seed is not None else _drawn(),
        engine=given.noted("", lambda: _engine(engine)) if engine else "",
        url=given.noted("", lambda: _url(url)) if url else "",
        baseline=given.noted("", lambda: _baseline(baseline, options)) if baseline else "",
        request_timeout=given.noted(0.0, lambda: targets.seconds(options) or 0.0),
    )
    given.end()
    return flow.look("commit-probe", targets.resolve(hosts, options), [Step("commit", probe)], options)


class _Mistakes:
    """What is wrong on the command line, all of it, before anything is contacted."""

    def __init__(self) -> None:
        self._found: list[UsageError] = []

    def noted(self, otherwise: T, work: Callable[[], T]) -> T:
        """What the work gives; a mistake in it is kept for the end."""
        try:
            return work()
        except UsageError as error:
            self._found.append(error)
            return otherwise

    def number(self, otherwise: int, option: str, text: str, least: int, most: int) -> int:
        return self.noted(otherwise, lambda: _number(option, text, least, most))

    def end(self) -> None:
        """Raise what was found."""
        if len(self._found) == 1:
            raise self._found[0]
        if self._found:
            lines = [f"  {e.message}" + (f" ({e.advice})" if e.advice else "") for e in self._found]
            raise UsageError(
                "\n".join([f"{len(lines)} mistakes:", *lines]), "see ddprobe commit-probe --help"
            )


def _drawn() -> int:
    import secrets

    return secrets.randbelow(MAX_SEED)


def _number(option: str, text: str, least: int, most: int) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 10):
        raise UsageError(f"{option} {text!r} is not a whole number")
    if not least <= int(text) <= most:
        raise UsageError(f"{option} {text} is out of bounds", f"from {least} to {most}")
    return int(text)


def _size(text: str, option: str) -> int:
    from ddprobe.parsing import sizes

    try:
        number = sizes.size(text)
    except UsageError as error:
        raise UsageError(f"{option}: {error.message}", error.advice) from None
    if not 1 <= number <= MAX_CONTEXT:
        raise UsageError(f"{option}: {text} tokens are out of bounds", "from 1 to 16m")
    return number


def _contexts(text: str) -> str:
    words = [word.strip() for word in text.split(",")] if text else []
    if text and not all(words):
        raise UsageError(f"--contexts {text!r} has an empty place", "as in 1k,16k,64k,128k, or auto")
    return ",".join(word if word == "auto" else str(_size(word, "--contexts")) for word in words)


def _arms(text: str, with_text: bool) -> str:
    from ddprobe.arms import ARMS

    words = [word.strip() for word in text.split(",")] if text else []
    for word in words:
        if word not in ARMS:
            raise UsageError(
                f"--arms: there is no arm {word!r}", nearest(word, ARMS) or f"there are {', '.join(ARMS)}"
            )
    if "verbatim" in words and not with_text:
        raise UsageError("the arm verbatim sends a text of yours as it is", "give it with --text FILE")
    return ",".join(dict.fromkeys(words))


def _text(name: str) -> str:
    """The file's text, byte for byte."""
    path = Path(name).expanduser()
    try:
        if path.stat().st_size > MAX_TEXT:
            raise UsageError(f"--text {name}: it is larger than 8 MiB")
        data = path.read_bytes()
    except (OSError, ValueError, RuntimeError) as error:
        raise UsageError(f"--text {name}: {getattr(error, 'strerror', None) or error}") from None
    if len(data) > MAX_TEXT:
        raise UsageError(f"--text {name}: it is larger than 8 MiB")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UsageError(
            f"--text {name}: not UTF-8 at byte {error.start} (line {line})",
            "convert it, as with iconv -t utf-8",
        ) from None
    if not text.strip():
        raise UsageError(f"--text {name}: there is no text in it")
    return text


def _engine(name: str) -> str:
    from ddprobe import engines

    if name not in engines.TABLE:
        known = ", ".join(engines.TABLE)
        raise UsageError(
            f"--engine: there is no engine {name!r}", nearest(name, engines.TABLE) or f"one of {known}"
        )
    return name


def _url(text: str) -> str:
    from ddprobe import hostsfile

    try:
        return hostsfile.server_url(text)
    except ValueError as error:
        raise UsageError(f"--url {text!r}: {error}") from None


def _baseline(name: str, options: Options) -> str:
    """Milliseconds per token without speculation, by context, as that report measured them."""
    from ddprobe import store
    from ddprobe.cli import baseline, report

    try:
        return baseline.of(store.load(report.folder_of(name, flow.reports_folder(options))))
    except UsageError as error:
        raise UsageError(f"--baseline: {error.message}", error.advice) from None
