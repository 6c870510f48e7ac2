"""Files that somebody names or sends: opened only where they are plain files, and read up to a bound.

A pipe would be waited for without end, a device may never run out, and some act when they are opened.
"""

from __future__ import annotations

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path

NOT_PLAIN = "it is no plain file"
FOLDER = "it is a folder"


def trouble(path: Path) -> str:
    """Why it cannot be opened as a file to read; empty where it can."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return "there is no such file"
    except (OSError, ValueError) as error:
        return said(error)
    return _no_file(mode)


def opened(path: Path, most: int) -> BufferedReader:
    """The file, to be read. Raises `OSError`, whose `strerror` says why: also of what is no plain file, or larger."""
    if why := _no_file(path.stat().st_mode):
        raise _refused(path, why)
    # It may be another by now: a pipe must not be waited for.
    file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    try:
        found = os.fstat(file.fileno())
        if why := _no_file(found.st_mode):
            raise _refused(path, why)
        if found.st_size > most:
            raise _too_large(path, most)
    except OSError:
        file.close()
        raise
    return file


def read(path: Path, most: int) -> bytes:
    """The whole file. Raises `OSError` as `opened` does."""
    with opened(path, most) as file:
        return whole(file, path, most)


def whole(file: BufferedReader, path: Path, most: int) -> bytes:
    """Everything that comes from an open file. Raises `OSError` where that is more."""
    data = file.read(most + 1) or b""
    if len(data) > most:
        raise _too_large(path, most)
    return data


def is_handed_over(path: Path) -> bool:
    """Whether it is a pipe that a shell puts in place of a file, `<(command)`: somebody writes into it."""
    if path.parent.as_posix() not in ("/dev/fd", "/proc/self/fd"):
        return False
    try:
        return stat.S_ISFIFO(path.stat().st_mode)
    except OSError:
        return False


def named(name: str) -> Path:
    """The path that is typed, `~` as a shell reads it; the home of nobody stays as it is typed."""
    try:
        return Path(name).expanduser()
    except RuntimeError:
        return Path(name)


def said(error: OSError | ValueError) -> str:
    """An error in words, without its number and the file's name."""
    return getattr(error, "strerror", None) or str(error)


def _no_file(mode: int) -> str:
    if stat.S_ISREG(mode):
        return ""
    return FOLDER if stat.S_ISDIR(mode) else NOT_PLAIN


def _refused(path: Path, why: str) -> OSError:
    return OSError(errno.EISDIR if why == FOLDER else errno.EINVAL, why, str(path))


def _too_large(path: Path, most: int) -> OSError:
    size = f"{most // 1024**3} GiB" if most >= 1024**3 else f"{most // 1024**2} MiB"
    return OSError(errno.EFBIG, f"it is larger than {size}", str(path))
