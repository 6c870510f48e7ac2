"""`stat -L -c '%F|%s|%a|%U' FILE`: what stands at a path.

    regular file|118874|644|root
    directory|4096|755|root

A file that is not there, and one behind a folder we may not enter, are told apart by what stat says on stderr.
"""

from __future__ import annotations

from dataclasses import dataclass

FORMAT = "%F|%s|%a|%U"


@dataclass(frozen=True, slots=True)
class FileStatus:
    """What stands at a path, after links are followed."""

    kind: str
    """`file`, `directory`, `missing`, `denied` (its folder may not be entered), `other` or `unknown`."""
    description: str = ""
    """In stat's words: `regular file`, `fifo`."""
    size: int = 0
    mode: str = ""
    owner: str = ""


def parse(stdout: str, stderr: str) -> FileStatus:
    """The status from what stat printed on its two streams."""
    fields = stdout.strip().split("|")
    if len(fields) == 4 and fields[1].isdecimal() and fields[1].isascii():
        description, size, mode, owner = fields
        kind = "other"
        if description.startswith("regular"):
            kind = "file"
        elif description == "directory":
            kind = "directory"
        return FileStatus(kind, description, int(size[:18]), mode, owner)
    said = stderr.lower()
    if "permission denied" in said:
        return FileStatus("denied")
    if "too many levels of symbolic links" in said or "symbolic link loop" in said:
        return FileStatus("other", "symbolic link that leads in a circle")
    if "no such file" in said or "not a directory" in said:
        return FileStatus("missing")
    return FileStatus("unknown", stderr.strip().rpartition("\n")[2][:200])
