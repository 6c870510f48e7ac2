"""stdout and stderr as they were left to us: read to the end, left early, full, or not there at all."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator

from ddprobe.errors import DdprobeError


class Unwritten(DdprobeError):
    """What was asked for could not be printed."""

    exit_code = 4


class Nowhere(io.TextIOWrapper):
    """What stands for a stream that was closed before (`>&-`): it takes everything, and keeps nothing."""

    def __init__(self) -> None:
        super().__init__(io.BufferedWriter(io.FileIO(os.devnull, "w")), encoding="utf-8")


def stand_in() -> None:
    """Put something in the place of streams that were closed: what is done stays the same."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Nowhere())


@contextlib.contextmanager
def printing() -> Iterator[None]:
    """Print on stdout, at once. A reader that has gone (`| head`) changes nothing. Raises `Unwritten`."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        quieten("stdout")
    except OSError as error:
        raise unwritten(error) from None


def unwritten(error: OSError) -> Unwritten:
    """The error of what was to be printed on stdout; nothing more is tried there."""
    quieten("stdout")
    return Unwritten(f"stdout cannot be written: {error.strerror or error}")


def fault() -> str:
    """Why what was printed before could not be written; empty where it could, or its reader has gone."""
    try:
        with printing():
            return ""
    except Unwritten as error:
        return error.message


def write(text: str) -> None:
    """Print what somebody asked for on stdout and nowhere else: JSON, Markdown. Raises `Unwritten`."""
    if isinstance(sys.stdout, Nowhere):
        raise Unwritten("stdout is closed: what was to be printed there is lost")
    with printing():
        sys.stdout.write(text)


def note(text: str) -> None:
    """Lines on stderr, for whoever reads it: nobody has to."""
    try:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()
    except OSError:
        quieten("stderr")


def quieten(name: str) -> None:
    """Send what is still to be written there nowhere, so that the interpreter's end stays quiet."""
    stream = getattr(sys, name)
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
    except (OSError, ValueError):
        setattr(sys, name, Nowhere())
