"""`grep` and `read`: the installed engine's source."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ddprobe.cli import flow, targets
from ddprobe.cli.options import Hosts, Options, with_options
from ddprobe.errors import UsageError


@with_options()
def grep(
    options: Options,
    pattern: Annotated[
        str, typer.Argument(metavar="PATTERN", help="A POSIX extended regular expression, as for grep -E.")
    ],
    hosts: Hosts = None,
    in_glob: Annotated[
        str,
        typer.Option(
            "--in", metavar="GLOB", help="Which files, relative to the package: 'srt/speculative/*'."
        ),
    ] = "*",
    context: Annotated[
        str, typer.Option("--context", "-C", metavar="N", help="Lines to show before and after each hit.")
    ] = "0",
    ignore_case: Annotated[
        bool, typer.Option("--ignore-case", "-i", help="Take upper and lower case as the same.")
    ] = False,
    word: Annotated[bool, typer.Option("--word", "-w", help="Match whole words only.")] = False,
    limit: Annotated[
        str, typer.Option("--limit", metavar="N", help="Hits to show; the report keeps up to 2000.")
    ] = "200",
) -> int:
    """Search the source of the engine as it is installed on the host, not a copy of it.

    Hits are grouped by file, with the enclosing function or class; ranges to read on are proposed.

    Example: ddprobe grep 'commit_lens|accept' gpu1 --in 'srt/speculative/*' -C 3
    """
    from ddprobe.model import Step
    from ddprobe.probes.source.grep import SourceGrep

    probe = SourceGrep(
        pattern=pattern,
        in_glob=in_glob,
        context=_number(context, "--context"),
        ignore_case=ignore_case,
        word=word,
        limit=_number(limit, "--limit"),
    )
    return flow.look("grep", targets.resolve(hosts, options), [Step("grep", probe)], options)


@with_options()
def read(
    options: Options,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE[:RANGES]",
            help="A path relative to the package, a unique bare name, a dotted module, or an absolute path on the "
            "host. RANGES: A-B, A+N or A, separated by commas.",
        ),
    ],
    hosts: Hosts = None,
    symbol: Annotated[
        str,
        typer.Option(
            "--symbol", metavar="NAME", help="A function, class or Class.method, in place of RANGES."
        ),
    ] = "",
    context: Annotated[
        str, typer.Option("--context", "-C", metavar="N", help="Lines to read before and after each range.")
    ] = "0",
) -> int:
    """Read line ranges or whole functions of the installed source; each range says how it ended.

    The file is read on the host, never here. A range is complete, cut, past the end, or has a reason why not.

    Example: ddprobe read dflash_worker_v2.py:212-219,2485-2500 gpu1
    """
    from ddprobe.model import Step
    from ddprobe.parsing import line_ranges
    from ddprobe.probes.source.read import SourceRead

    path, ranges = line_ranges.split_target(file)
    probe = SourceRead(
        file=path,
        ranges=ranges,
        symbol=symbol,
        context=_number(context, "--context"),
        exists_here=_exists_here(path),
    )
    return flow.look("read", targets.resolve(hosts, options), [Step("read", probe)], options)


def _exists_here(path: str) -> bool:
    try:
        return Path(path).expanduser().exists()
    except (OSError, ValueError, RuntimeError):
        return False


def _number(text: str, option: str) -> int:
    if not text.isdecimal() or len(text) > 9:
        raise UsageError(f"{option} {text!r} is not a whole number")
    return int(text)
