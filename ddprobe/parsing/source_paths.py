"""Paths of the installed source: what a person means by a file or a glob, and which names on the host come near.

A FILE is a path relative to the package (`srt/speculative/dflash_worker.py`), a bare name or the end of a path
(`dflash_worker.py`), a dotted module (`sglang.srt.speculative.dflash_worker`), or an absolute path on the host.
"""

from __future__ import annotations

import difflib
import posixpath
import re
from collections.abc import Iterable, Sequence

from ddprobe.errors import UsageError

LANGUAGES = {
    "py": "python", "pyi": "python", "pyx": "cython", "c": "c", "cc": "cpp", "cpp": "cpp", "cu": "cuda",
    "cuh": "cuda", "h": "cpp", "hpp": "cpp", "hip": "cpp", "jinja": "jinja", "jinja2": "jinja", "rs": "rust",
    "toml": "toml", "json": "json", "yaml": "yaml", "yml": "yaml", "sh": "bash", "md": "markdown", "js": "js",
}  # fmt: skip
SOURCE_ENDINGS = (
    "py", "pyi", "pyx", "c", "cc", "cpp", "cu", "cuh", "h", "hpp", "hip", "metal", "jinja", "jinja2", "rs", "toml",
)  # fmt: skip
"""What a search without a glob looks at: program text and chat templates, not tuning tables or documentation."""
COMPILED_ENDINGS = ("pyc", "pyo", "so", "o", "a", "co", "cubin", "fatbin")

_DOTTED = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+\Z")
_CONTAINER_ROOT = re.compile(r"/proc/\d+/root(?=/)")
_SPECIAL = re.compile(r"([\\*?\[\]])")


def language(path: str) -> str:
    return LANGUAGES.get(path.rpartition(".")[2].lower(), "text")


def relative(path: str, package: str) -> str:
    """The path as seen from the package, or unchanged when it lies outside (or there is none)."""
    folder = package.rstrip("/") + "/"
    return path[len(folder) :] if package and path.startswith(folder) else path


def literal(text: str) -> str:
    """The text as a pattern of `find` that matches nothing else."""
    return _SPECIAL.sub(r"\\\1", text)


# --- a glob of `grep --in` ---------------------------------------------------------------------------------


def check_glob(glob: str) -> None:
    """Raise `UsageError` when the glob cannot name files of the package."""
    if not glob.strip("/") or re.search(r"[\n\r\0]", glob):
        raise UsageError(f"{glob!r} names no files", "a glob is relative to the package: 'srt/speculative/*'")
    if glob.startswith("/") or ".." in glob.split("/"):
        raise UsageError(
            f"{glob!r} leads out of the package", "a glob is relative to the package: 'srt/speculative/*'"
        )


def find_words(package: str, glob: str) -> tuple[str, ...]:
    """The argv that lists the files a glob means; `*` crosses folders.

    `*` alone means all program text. A glob without `/` is a name at any depth; a folder means all that is in it.
    """
    folder = package.rstrip("/") or "/"
    glob = glob.removeprefix("./").rstrip("/")
    if glob in ("*", "**"):
        tests = [("-name", f"*.{ending}") for ending in SOURCE_ENDINGS]
    else:
        glob = re.sub(r"\*\*/?", "*", glob)
        inside = f"{literal(folder)}/{glob}"
        tests = [("-path", inside), ("-path", f"{inside}/*")]
        if "/" not in glob:
            tests = [("-name", glob), ("-path", f"{inside}/*"), ("-path", f"{literal(folder)}/*/{glob}/*")]
    either: list[str] = []
    for test in tests:
        either += ["-o", *test] if either else test
    return (
        "find",
        "-L",
        folder,
        "-name",
        "__pycache__",
        "-prune",
        "-o",
        "-type",
        "f",
        "(",
        *either,
        ")",
        "-print",
    )


def listed(output: str, package: str) -> tuple[str, ...]:
    """The source files that find printed, sorted; compiled ones left out."""
    folder = package.rstrip("/") + "/"
    return tuple(
        sorted(
            line
            for line in set(output.split("\n"))
            if line.startswith(folder) and line.rpartition(".")[2] not in COMPILED_ENDINGS
        )
    )


# --- a FILE of `read` --------------------------------------------------------------------------------------


def check_file(file: str) -> None:
    """Raise `UsageError` when this can be the name of no file."""
    if not file.strip() or re.search(r"[\n\r\0]", file):
        raise UsageError(
            f"{file!r} names no file", "name a file of the installed package, as in scheduler.py"
        )
    if file.startswith("~"):
        raise UsageError(f"{file!r}: ~ is your home on this laptop", "write the absolute path on the host")


def guesses(file: str, package: str) -> tuple[str, ...]:
    """The absolute paths that FILE may mean as it stands, most literal first; `package` may be empty (unknown)."""
    if file.startswith("/"):
        root = _CONTAINER_ROOT.match(package)
        inside = (root[0] + file,) if root and not file.startswith(root[0]) else ()
        # What a path names depends on where one stands: a container's server means its own files.
        return (*inside, file)
    if not package:
        return ()
    folder = package.rstrip("/")
    found = [file, _without_package(posixpath.normpath(file), folder, "/")]
    found = [posixpath.normpath(f"{folder}/{each}") for each in found]
    if _DOTTED.match(file) and file.rpartition(".")[2] not in LANGUAGES:
        module = f"{folder}/{_without_package(file, folder, '.').replace('.', '/')}"
        found += [f"{module}.py", f"{module}/__init__.py", module]
    return tuple(dict.fromkeys(found))


def _without_package(file: str, folder: str, separator: str) -> str:
    """The name without a leading `sglang/` or `sglang.`, when the package's folder is called so."""
    return file.removeprefix(posixpath.basename(folder) + separator)


def names_words(package: str, file: str) -> tuple[str, ...]:
    """The argv that lists all Python files of the package, and those of any kind that are called like FILE."""
    name = literal(posixpath.basename(file))
    either = ("(", "-name", "*.py", "-o", "-name", name, ")")
    folder = package.rstrip("/") or "/"
    return ("find", "-L", folder, "-name", "__pycache__", "-prune", "-o", "-type", "f", *either, "-print")


def ending_in(file: str, paths: Sequence[str], package: str) -> tuple[str, ...]:
    """The files whose path ends in FILE, part by part: as it stands, with `.py`, or as a dotted module."""
    if file.startswith("/"):
        return ()
    plain = posixpath.normpath(file)
    tails = [plain, f"{plain}.py"]
    if _DOTTED.match(file):
        tails.append(f"{file.replace('.', '/')}.py")
    for tail in tails:
        found = tuple(path for path in paths if f"/{relative(path, package)}".endswith(f"/{tail}"))
        if found:
            return found
    return ()


def folders_above(path: str) -> tuple[str, ...]:
    """The folders on the way to an absolute path, the deepest first, at most 40 of them, and the root."""
    folders: list[str] = []
    folder = posixpath.dirname(posixpath.normpath(path))
    while folder != "/" and len(folders) < 40:
        folders.append(folder)
        folder = posixpath.dirname(folder)
    return (*folders, "/")


def near_names(name: str, names: Iterable[str], count: int = 8) -> tuple[str, ...]:
    """The names of one folder most like another; where none is, nothing."""
    known = dict.fromkeys(names)
    found = difflib.get_close_matches(name, known, n=count, cutoff=0.6)
    found += sorted((each for each in known if len(name) > 3 and name.lower() in each.lower()), key=len)
    return tuple(dict.fromkeys(found))[:count]


def near_folders(glob: str, files: Iterable[str], count: int = 5) -> tuple[str, ...]:
    """The folders, of those that hold these files, most like the folder that a glob begins with."""
    parts = [part for part in glob.strip("/").split("/") if part not in (".", "")]
    # What holds a dot or a wildcard names files.
    of_files = len(parts) > 1 and re.search(r"[*?\[.]", parts[-1])
    named = [part for part in (parts[:-1] if of_files else parts) if not re.search(r"[*?\[]", part)]
    if not named:
        return ()
    wanted = "/".join(named)
    above: dict[str, None] = {}
    for file in files:
        inside = file.split("/")[:-1]
        above |= dict.fromkeys("/".join(inside[:length]) for length in range(1, len(inside) + 1))
    if wanted in above:
        return (wanted,)
    last = posixpath.basename(wanted)
    same = sorted((folder for folder in above if posixpath.basename(folder) == last), key=len)
    whole = difflib.get_close_matches(wanted, above, n=count, cutoff=0.7)
    ends = difflib.get_close_matches(
        last, {posixpath.basename(each): None for each in above}, n=2, cutoff=0.7
    )
    alike = sorted((folder for folder in above if posixpath.basename(folder) in ends), key=len)
    return tuple(dict.fromkeys([*same, *whole, *alike]))[:count]


def near(file: str, names: Iterable[str], count: int = 5) -> tuple[str, ...]:
    """The paths most like FILE: those that share its end, then those in its folder, then those called alike."""
    names = tuple(names)
    wanted = posixpath.normpath(file.strip())
    if _DOTTED.match(wanted) and wanted.rpartition(".")[2] not in LANGUAGES:
        wanted = wanted.replace(".", "/")
    base = posixpath.basename(wanted)
    stem = base.rpartition(".")[0] or base
    # Endings are left out of the comparison: by them alone, short names would all be alike.
    by_name: dict[str, list[str]] = {}
    for name in names:
        plain = posixpath.basename(name)
        by_name.setdefault(plain.rpartition(".")[0] or plain, []).append(name)
    alike = difflib.get_close_matches(stem, by_name, n=count, cutoff=0.7)
    alike += sorted((each for each in by_name if len(stem) > 3 and stem in each), key=len)
    best = [name for each in dict.fromkeys(alike) for name in sorted(by_name[each])]
    folder = posixpath.dirname(wanted)
    ranked = sorted(best, key=lambda name: (-_shared_end(wanted, name), posixpath.dirname(name) != folder))
    return tuple(ranked[:count])


def _shared_end(one: str, other: str) -> int:
    """How many parts, counted from the end, two paths have in common."""
    shared = 0
    for a, b in zip(reversed(one.split("/")), reversed(other.split("/")), strict=False):
        if a != b:
            break
        shared += 1
    return shared
