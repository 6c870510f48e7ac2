"""What stands at a path, from stat's two streams."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from ddprobe.parsing import file_status
from ddprobe.parsing.file_status import FileStatus


@pytest.mark.parametrize(
    ("stdout", "stderr", "expected"),
    [
        ("regular file|118874|644|root\n", "", FileStatus("file", "regular file", 118874, "644", "root")),
        ("regular empty file|0|644|ada\n", "", FileStatus("file", "regular empty file", 0, "644", "ada")),
        ("directory|4096|755|root\n", "", FileStatus("directory", "directory", 4096, "755", "root")),
        ("fifo|0|644|root\n", "", FileStatus("other", "fifo", 0, "644", "root")),
        ("", "stat: cannot statx '/x': No such file or directory\n", FileStatus("missing")),
        ("", "stat: can't stat '/x/y': Not a directory\n", FileStatus("missing")),
        ("", "stat: can't stat '/root/x': Permission denied\n", FileStatus("denied")),
        (
            "",
            "stat: cannot statx '/l': Too many levels of symbolic links\n",
            FileStatus("other", "symbolic link that leads in a circle"),
        ),
        (
            "",
            "stat: can't stat '/l': Symbolic link loop\n",
            FileStatus("other", "symbolic link that leads in a circle"),
        ),
        ("", "sh: stat: not found\n", FileStatus("unknown", "sh: stat: not found")),
        ("nonsense", "", FileStatus("unknown")),
        ("a|b|c|d", "", FileStatus("unknown")),
    ],
)
def test_parse(stdout: str, stderr: str, expected: FileStatus) -> None:
    assert file_status.parse(stdout, stderr) == expected


@pytest.mark.parametrize("stat", [["stat"], ["busybox", "stat"]], ids=["gnu", "busybox"])
def test_the_real_stat(stat: list[str], tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("x = 1\n")
    file.chmod(0o640)
    (tmp_path / "link.py").symlink_to(file)
    os.mkfifo(tmp_path / "fifo")

    def look(name: str) -> FileStatus:
        done = subprocess.run(
            [*stat, "-L", "-c", file_status.FORMAT, str(tmp_path / name)], capture_output=True, text=True
        )
        return file_status.parse(done.stdout, done.stderr)

    assert (look("link.py").kind, look("link.py").size, look("link.py").mode) == ("file", 6, "640")
    assert look(".").kind == "directory"
    assert look("fifo").kind == "other"
    assert look("nowhere").kind == "missing"
    assert look("a.py/x").kind == "missing"
