"""What the commands that measure a live server take alike: their options, the values, and every mistake at once."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, TypeVar

import typer

from ddprobe import plainfile
from ddprobe.cli import flow, targets
from ddprobe.cli.options import Options
from ddprobe.cli.plain import nearest
from ddprobe.errors import UsageError

MAX_TEXT = 8 * 1024 * 1024
MAX_CONTEXT = 16 * 1024 * 1024
MAX_STEPS = 100_000
MAX_SEED = 2**31 - 1

_WHOLE = re.compile(r"-?[0-9]{1,20}")
T = TypeVar("T")

Plan = Annotated[
    bool, typer.Option("--plan", help="Say what would be sent, and what it costs; send nothing of it.")
]
WhileBusy = Annotated[bool, typer.Option("--while-busy", help="Measure although the server serves others.")]
MaxContext = Annotated[str | None, typer.Option(metavar="N", help="Send no prompt longer than this.")]
Engine = Annotated[
    str | None, typer.Option(metavar="NAME", help="sglang, vllm or llamacpp, where it cannot be told.")
]
Url = Annotated[
    str | None,
    typer.Option(
        metavar="URL", help="Where the server listens, as its host sees it: http://127.0.0.1:30000."
    ),
]


class Mistakes:
    """What is wrong on the command line, all of it, before anything is contacted."""

    def __init__(self, command: str) -> None:
        self._command = command
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

    def contexts(self, text: str | None) -> str:
        return self._given("--contexts", text, contexts_of)

    def steps(self, text: str) -> int:
        return self.number(64, "--steps", text, 1, MAX_STEPS)

    def text(self, file: str | None) -> str:
        return self._given("--text", file, text_of)

    def max_context(self, text: str | None) -> str:
        return self._given("--max-context", text, lambda given: str(size_of(given, "--max-context")))

    def seed(self, text: str | None) -> int:
        """The seed given, or one that nobody chose: it is reported with the run."""
        return drawn() if text is None else self.number(0, "--seed", text, 0, MAX_SEED)

    def engine(self, name: str | None) -> str:
        return self._given("--engine", name, engine_of)

    def url(self, text: str | None, option: str = "--url") -> str:
        return self._given(option, text, lambda given: url_of(given, option))

    def baseline(self, report: str | None, options: Options) -> str:
        return self._given("--baseline", report, lambda given: baseline_of(given, options))

    def arms(self, text: str | None, known: Callable[[str], str]) -> str:
        return self._given("--arms", text, known)

    def _given(self, option: str, text: str | None, read: Callable[[str], str]) -> str:
        """What the option comes to; nothing where it is not given. An empty value is a mistake, as of a script's."""
        return "" if text is None else self.noted("", lambda: read(something(text, option)))

    def request_timeout(self, options: Options) -> float:
        return self.noted(0.0, lambda: targets.seconds(options) or 0.0)

    def end(self) -> None:
        """Raise what was found."""
        if len(self._found) == 1:
            raise self._found[0]
        if self._found:
            lines = [f"  {e.message}" + (f" ({e.advice})" if e.advice else "") for e in self._found]
            raise UsageError(
                "\n".join([f"{len(lines)} mistakes:", *lines]), f"see ddprobe {self._command} --help"
            )


def something(text: str, option: str) -> str:
    """The value as it is; one of blanks alone names nothing. Raises `UsageError`."""
    if not text.strip():
        raise UsageError(f"{option} {text!r} names nothing", f"give {option} a value, or leave it out")
    return text


def drawn() -> int:
    """A seed nobody chose: it is reported with the run."""
    import secrets

    return secrets.randbelow(MAX_SEED)


def _number(option: str, text: str, least: int, most: int) -> int:
    if not _WHOLE.fullmatch(text):
        raise UsageError(f"{option} {text!r} is not a whole number")
    if not least <= int(text) <= most:
        raise UsageError(f"{option} {text} is out of bounds", f"from {least} to {most}")
    return int(text)


def size_of(text: str, option: str) -> int:
    """Tokens, as in 1k or 4096. Raises `UsageError`, as all of these do."""
    from ddprobe.parsing import sizes

    try:
        number = sizes.size(text)
    except UsageError as error:
        raise UsageError(f"{option}: {error.message}", error.advice) from None
    if not 1 <= number <= MAX_CONTEXT:
        raise UsageError(f"{option}: {text} tokens are out of bounds", "from 1 to 16m")
    return number


def contexts_of(text: str) -> str:
    """A list of lengths in tokens, `auto` as it is."""
    words = [word.strip() for word in text.split(",")]
    if not all(words):
        raise UsageError(f"--contexts {text!r} has an empty place", "as in 1k,16k,64k,128k, or auto")
    return ",".join(word if word == "auto" else str(size_of(word, "--contexts")) for word in words)


def text_of(name: str) -> str:
    """The file's text, byte for byte."""
    path = plainfile.named(name)
    try:
        if plainfile.is_handed_over(path):
            with path.open("rb") as stream:
                data = plainfile.whole(stream, path, MAX_TEXT)
        else:
            data = plainfile.read(path, MAX_TEXT)
    except (OSError, ValueError) as error:
        raise UsageError(f"--text {name}: {plainfile.said(error)}") from None
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


def engine_of(name: str) -> str:
    """The name of an engine that is known."""
    from ddprobe import engines

    if name not in engines.TABLE:
        known = ", ".join(engines.TABLE)
        raise UsageError(
            f"--engine: there is no engine {name!r}", nearest(name, engines.TABLE) or f"one of {known}"
        )
    return name


def url_of(text: str, option: str = "--url") -> str:
    """A server's url as its host sees it."""
    from ddprobe import hostsfile

    try:
        return hostsfile.server_url(text)
    except ValueError as error:
        raise UsageError(f"{option} {text!r}: {error}") from None


def baseline_of(name: str, options: Options) -> str:
    """Milliseconds per token without speculation, by context, as that report measured them."""
    from ddprobe import store
    from ddprobe.cli import baseline, report

    try:
        folder = report.folder_of(name, flow.reports_folder(options))
        found = store.load(folder)
        for each in store.damage(folder, found):
            if each.path == store.REPORT:
                raise UsageError(
                    f"{each.path} of {name} {each.how}", "take a report that is as it was written"
                )
        return baseline.of(found)
    except UsageError as error:
        raise UsageError(f"--baseline: {error.message}", error.advice) from None
