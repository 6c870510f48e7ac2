"""Finding the file that FILE means on the host, and fetching what is asked of it: one step after the other."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass

from ddprobe import readonly
from ddprobe.errors import Unanswered
from ddprobe.model import MIB, Command, CommandResult, Evidence
from ddprobe.parsing import file_status, source_paths, source_text
from ddprobe.parsing.file_status import FileStatus
from ddprobe.parsing.line_ranges import MAX_LINE, LineRange
from ddprobe.probes import installed

STAT = "stat."
REAL = "real."
USER = "user"
NAMES = "names"
FOLDERS = "folders"
FOLDER = "folder"
ENTRIES = "entries"
FILE = "file"
HEAD = "head"
COUNT = "count"
LAST_BYTE = "last-byte"
LINES = "lines."

WHOLE = 2 * MIB
"""Files up to this size are fetched whole: their lines are counted and cut on the laptop."""
WHOLE_FOR_SYMBOL = 4 * MIB
RANGE_CAP = 2 * MIB


@dataclass(frozen=True, slots=True)
class Place:
    """What stands at a path on the host."""

    path: str
    status: FileStatus
    key: str


@dataclass(frozen=True, slots=True)
class Wish:
    """What is asked: of which file, and which part."""

    file: str
    package: str
    """Folder of the installed package; empty when there is none."""
    ranges: tuple[LineRange, ...] = ()
    symbol: str = ""
    context: int = 0
    exists_here: bool = False
    """A file of that name exists on the laptop."""

    def widened(self, asked: LineRange) -> LineRange:
        """The range with its context on either side."""
        return LineRange(max(1, asked.first - self.context), min(MAX_LINE, asked.last + self.context))


def next_questions(wish: Wish, evidence: Evidence) -> tuple[Command, ...]:
    """What to ask after these answers; nothing when all is known that can be."""
    if not evidence.started_with(STAT):
        guesses = source_paths.guesses(wish.file, wish.package)
        if is_secret(wish):
            return ()
        # Whose permissions we have is worth a word only when something is denied, and costs nothing here.
        who = (Command(key=USER, argv=("id", "-un")),)
        return _stats(guesses, 1) + who if guesses else ()
    place = standing(evidence)
    if place is None:
        return _by_name(wish, evidence)
    if leads_to_secrets(place, evidence):
        return ()
    if place.status.kind == "directory" and not evidence.has(ENTRIES):
        return (Command(key=ENTRIES, argv=("ls", "-1", "-A", place.path), exits=(0, 1, 2)),)
    if place.status.kind == "file":
        return _content(wish, place, evidence)
    return ()


def _stats(paths: Sequence[str], first: int) -> tuple[Command, ...]:
    """What stands at these paths, and where the links in them lead."""
    return tuple(
        command
        for number, path in enumerate(paths, first)
        for command in (
            Command(key=f"{STAT}{number}", argv=("stat", "-L", "-c", file_status.FORMAT, path), exits=(0, 1)),
            Command(key=f"{REAL}{number}", argv=("readlink", "-f", path), exits=(0, 1)),
        )
    )


def is_secret(wish: Wish) -> bool:
    """True when FILE itself names a file that no question may read."""
    return any(readonly.holds_secrets(path) for path in source_paths.guesses(wish.file, wish.package))


def leads_to_secrets(place: Place, evidence: Evidence) -> bool:
    """True when the links of a path end at a file that no question may read."""
    key = REAL + place.key.removeprefix(STAT)
    real = evidence.command(key).stdout.decode("utf-8", "replace").strip() if evidence.has(key) else ""
    return readonly.holds_secrets(real)


def standing(evidence: Evidence) -> Place | None:
    """The first of the paths looked at where something stands. Raises `Unanswered` when a look got no answer."""
    for result in evidence.started_with(STAT):
        if not isinstance(result, CommandResult):
            continue
        status = file_status.parse(result.text, result.stderr.decode("utf-8", "replace"))
        if status.kind == "unknown":
            raise Unanswered(result.key, status.description or "stat said nothing")
        if status.kind != "missing":
            return Place(str(result.question.argv[-1]), status, result.key)
    return None


# --- nothing stands where FILE points ----------------------------------------------------------------------


def _by_name(wish: Wish, evidence: Evidence) -> tuple[Command, ...]:
    if not evidence.has(NAMES) and not evidence.has(FOLDERS):
        asked = []
        if wish.package:
            argv = source_paths.names_words(wish.package, wish.file)
            asked.append(Command(key=NAMES, argv=argv, cap=8 * MIB, exits=(0, 1)))
        if _outside(wish):
            above = source_paths.folders_above(source_paths.guesses(wish.file, wish.package)[0])
            asked.append(Command(key=FOLDERS, argv=("ls", "-1", "-d", *above), exits=(0, 1, 2)))
        return tuple(asked)
    if (folder := nearest_folder(evidence)) and not evidence.has(FOLDER):
        return (Command(key=FOLDER, argv=("ls", "-1", "-A", folder), exits=(0, 1, 2)),)
    called = called_so(wish, evidence)
    known = {
        str(result.question.argv[-1]) for result in evidence.results if isinstance(result, CommandResult)
    }
    if len(called) == 1 and called[0] not in known:
        return _stats(called, len(evidence.started_with(STAT)) + 1)
    return ()


def _outside(wish: Wish) -> bool:
    """True for an absolute path that does not lie in the package."""
    if not wish.file.startswith("/"):
        return False
    path = posixpath.normpath(wish.file)
    return all(
        source_paths.relative(each, wish.package) == each for each in source_paths.guesses(path, wish.package)
    )


def names(wish: Wish, evidence: Evidence) -> tuple[str, ...]:
    """The package's files, as far as they could be listed."""
    if not evidence.has(NAMES):
        return ()
    return source_paths.listed(evidence.text(NAMES), wish.package)


def called_so(wish: Wish, evidence: Evidence) -> tuple[str, ...]:
    """The package's files whose path ends in FILE."""
    return source_paths.ending_in(wish.file, names(wish, evidence), wish.package)


def nearest_folder(evidence: Evidence) -> str:
    """The deepest folder on the way to an absolute path that exists; empty when none was looked for."""
    if not evidence.has(FOLDERS):
        return ""
    there = evidence.command(FOLDERS).stdout.decode("utf-8", "replace").split("\n")
    return max((path for path in there if path.startswith("/")), key=len, default="")


def entries(evidence: Evidence) -> tuple[str, ...] | None:
    """What lies in the nearest folder; None when it could not be listed."""
    if not evidence.has(FOLDER) or evidence.command(FOLDER).exit_code != 0:
        return None
    listing = evidence.command(FOLDER).stdout.decode("utf-8", "replace")
    return tuple(name for name in listing.split("\n") if name)


def nearest(wish: Wish, evidence: Evidence) -> tuple[str, ...]:
    """The names in the package most like FILE, as `read` would take them."""
    known = (source_paths.relative(path, wish.package) for path in names(wish, evidence))
    return source_paths.near(wish.file, known)


def same_in_package(wish: Wish, evidence: Evidence) -> str:
    """The file of the package that an absolute path names as it lies in another installation; else empty."""
    _, inside, tail = posixpath.normpath(wish.file).rpartition(f"/{posixpath.basename(wish.package)}/")
    path = f"{wish.package.rstrip('/')}/{tail}"
    return path if wish.package and inside and path in names(wish, evidence) else ""


# --- a file stands there -----------------------------------------------------------------------------------


def in_pieces(wish: Wish, place: Place) -> bool:
    """Whether only the ranges are fetched, as the whole file is too large."""
    return bool(wish.ranges) and place.status.size > WHOLE


def _content(wish: Wish, place: Place, evidence: Evidence) -> tuple[Command, ...]:
    if not in_pieces(wish, place):
        cap = WHOLE_FOR_SYMBOL if wish.symbol else WHOLE
        return (
            ()
            if evidence.has(FILE)
            else (Command(key=FILE, argv=("cat", place.path), cap=cap, exits=(0, 1)),)
        )
    if not evidence.has(HEAD):
        return (
            Command(key=HEAD, argv=("head", "-c", str(source_text.SNIFF), place.path), exits=(0, 1)),
            Command(key=COUNT, argv=("wc", "-l", place.path), exits=(0, 1)),
            Command(key=LAST_BYTE, argv=("tail", "-c", "1", place.path), exits=(0, 1)),
        )
    if evidence.started_with(LINES) or denied(evidence.command(HEAD)):
        return ()
    if source_text.is_binary(evidence.command(HEAD).stdout):
        return ()
    return tuple(
        Command(
            key=f"{LINES}{number}",
            argv=("sed", "-n", f"{each.first},{each.last}p;{each.last}q", place.path),
            cap=RANGE_CAP,
        )
        for number, each in enumerate(map(wish.widened, wish.ranges), 1)
    )


def denied(result: CommandResult) -> bool:
    return result.exit_code == 1 and "permission denied" in installed.complaint(result).lower()


def ends_in_newline(evidence: Evidence) -> bool:
    """Whether the last line of a file read in pieces has its line end. Raises `Unanswered`."""
    return evidence.text(LAST_BYTE) in ("", "\n")


def line_count(evidence: Evidence) -> int | None:
    """How many lines the file has that is read in pieces; None when that was not answered."""
    try:
        count = evidence.text(COUNT).split()
        # wc counts line ends; a last line without one counts too.
        unended = not ends_in_newline(evidence)
    except Unanswered:
        return None
    return int(count[0]) + unended if count and count[0].isdecimal() else None
