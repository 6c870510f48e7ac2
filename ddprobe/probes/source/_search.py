"""What a search over the package's files is asked, and what its answers come to."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ddprobe import readonly
from ddprobe.errors import Unanswered
from ddprobe.model import MIB, Cite, Command, CommandResult, Evidence, Gap
from ddprobe.parsing import grep_output, source_paths, source_text
from ddprobe.parsing.grep_output import GrepLine
from ddprobe.parsing.python_symbols import Outline, outline

MAX_HITS = 2000
FILES_AT_ONCE = 400
BYTES_AT_ONCE = 60_000
LISTING = "search.files"
SEARCH = "search."
NAMES = "names"
SOURCE = "source."
MAX_SOURCES = 200
SOURCES_AT_ONCE = 40
SOURCES_BYTES = 16 * MIB
_CIRCLE = re.compile(r"Too many levels of symbolic links|Symbolic link loop|File system loop detected")


def listing(package: str, glob: str) -> Command:
    """Which files there are to search."""
    # find ends with 1 when it could not enter some folder; what it did find still counts.
    argv = source_paths.find_words(package, glob)
    return Command(key=LISTING, argv=argv, cap=8 * MIB, exits=(0, 1))


def listed(result: CommandResult, package: str) -> tuple[str, ...]:
    """The files to search. Raises `Unanswered` when find found nothing for a reason of its own."""
    listing = source_paths.listed(result.text, package)
    files = tuple(file for file in listing if not readonly.holds_secrets(file))
    if not files and result.exit_code and (why := unlisted(result)):
        raise Unanswered(LISTING, why)
    return files


def unlisted(result: CommandResult) -> str:
    """What find could not list; empty when it listed all. A link that leads in a circle hides no file."""
    if not result.exit_code:
        return ""
    said = result.stderr.decode("utf-8", "replace").strip().split("\n")
    lines = [line for line in said if line and not _CIRCLE.search(line)]
    if not lines:
        return "" if any(said) else f"find ended with {result.exit_code}"
    more = f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
    return f"{lines[-1][:300]}{more}"


def all_files(package: str, glob: str) -> Command:
    """The package's files, asked when a glob names none, to say what it may have meant."""
    return Command(key=NAMES, argv=source_paths.names_words(package, glob), cap=8 * MIB, exits=(0, 1))


def near(glob: str, package: str, evidence: Evidence) -> str:
    """The folders and files that a glob may have meant, in words."""
    listing = source_paths.listed(evidence.text(NAMES), package)
    known = [source_paths.relative(path, package) for path in listing]
    name = glob.rstrip("/").rpartition("/")[2]
    files = source_paths.near(glob, known) if re.search(r"\w", name) else ()
    folders = source_paths.near_folders(glob, known)
    said = [f"nearest folders: {', '.join(folders)}"] if folders else []
    said += [f"nearest files: {', '.join(files)}"] if files else []
    return "; ".join(said) or "no folder or file there comes near"


def searches(files: Sequence[str], options: Sequence[str], pattern: str) -> tuple[Command, ...]:
    """The grep commands that cover all files, each on its own list of them."""
    words = ("grep", "-E", "-n", "-H", "-I", *options, "-m", str(MAX_HITS + 1), "-e", pattern)
    # grep ends with 2 when one file could not be read, although it searched the others.
    return tuple(
        Command(key=f"{SEARCH}{number:02d}", argv=(*words, *part), cap=MIB // 2, exits=(0, 1, 2))
        for number, part in enumerate(_parts(files), 1)
    )


def _parts(files: Sequence[str]) -> list[list[str]]:
    parts: list[list[str]] = []
    room = 0
    for file in files:
        size = len(file.encode()) + 3
        if not parts or len(parts[-1]) == FILES_AT_ONCE or size > room:
            parts.append([])
            room = BYTES_AT_ONCE
        parts[-1].append(file)
        room -= size
    return parts


@dataclass(frozen=True, slots=True)
class Search:
    """What the grep commands found."""

    lines: tuple[GrepLine, ...] = ()
    """Hits and context, in the order of files and lines."""
    searched: int = 0
    cut: bool = False
    """More lines match than came back, or than are kept."""
    gaps: tuple[Gap, ...] = ()

    @property
    def hits(self) -> tuple[GrepLine, ...]:
        return tuple(line for line in self.lines if line.hit)

    def files(self) -> tuple[str, ...]:
        """The files with hits, in order."""
        return tuple(dict.fromkeys(line.path for line in self.lines if line.hit))


def found(results: Sequence[CommandResult]) -> Search:
    """The answers of `searches`, taken together."""
    lines: list[GrepLine] = []
    gaps: list[Gap] = []
    searched = 0
    cut = False
    for result in results:
        argv = [str(word) for word in result.question.argv]
        files = argv[argv.index("-e") + 2 :]
        output = result.stdout.decode("utf-8", "replace")
        if result.trouble:
            output = output[: output.rfind("\n") + 1]
        told = list(grep_output.parse(output, frozenset(files)))
        lines += told
        stderr = result.stderr.decode("utf-8", "replace")
        unread = grep_output.unread(stderr, files)
        if result.truncated and not result.failure and not result.timed_out:
            cut = True
            searched += files.index(told[-1].path) + 1 if told else 0
        elif result.trouble:
            gaps.append(
                Gap(f"{len(files)} files", f"were not searched: {result.trouble}", (Cite(result.key),))
            )
        elif result.exit_code == 2 and not unread:
            reason = grep_output.complaint(stderr, files) or "ended with 2"
            gaps.append(Gap(f"{len(files)} files", f"were not searched: grep: {reason}", (Cite(result.key),)))
        else:
            searched += len(files) - len(unread)
            gaps += [
                Gap(path, f"was not searched: {why}", (Cite(result.key),))
                for path, why in sorted(unread.items())
            ]
    counts = Counter(line.path for line in lines if line.hit)
    cut = cut or counts.total() > MAX_HITS
    return Search(tuple(lines), searched, cut, tuple(gaps))


def sources(files: Sequence[str], start: int) -> tuple[Command, ...]:
    """The whole text of the next files with hits, from the one at `start` on."""
    return tuple(
        Command(key=f"{SOURCE}{number + 1:03d}", argv=("cat", files[number]))
        for number in range(start, min(start + SOURCES_AT_ONCE, len(files), MAX_SOURCES))
    )


@dataclass(frozen=True, slots=True)
class Source:
    """A file with hits: how many lines it has, and its functions and classes."""

    outline: Outline
    total: int


def read(evidence: Evidence) -> dict[str, Source]:
    """The files with hits that came whole, by path."""
    told = {}
    for result in evidence.started_with(SOURCE):
        if isinstance(result, CommandResult) and result.whole:
            path = str(result.question.argv[-1])
            lines = source_text.lines(result.stdout)
            python = source_paths.language(path) == "python"
            told[path] = Source(outline("".join(lines.kept)) if python else Outline(()), len(lines.kept))
    return told
