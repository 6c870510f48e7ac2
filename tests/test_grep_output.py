"""What grep prints, split at paths that are known beforehand."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ddprobe.parsing import grep_output
from ddprobe.parsing.grep_output import GrepLine

GREPS = pytest.mark.parametrize("grep", [["grep"], ["busybox", "grep"]], ids=["gnu", "busybox"])


def test_paths_that_look_like_grep_output() -> None:
    paths = ["/v/a.py", "/v/a.py:3:x", "/v/b-12-c.py"]
    output = "/v/a.py:3:x\n/v/a.py:3:x:7:hit\n/v/b-12-c.py-4-context: -5-\n--\n/v/b-12-c.py:5:a:6:b\n/v/other.py:1:no\n"
    assert list(grep_output.parse(output, paths)) == [
        GrepLine("/v/a.py", 3, "x", True),
        GrepLine("/v/a.py:3:x", 7, "hit", True),
        GrepLine("/v/b-12-c.py", 4, "context: -5-", False),
        GrepLine("/v/b-12-c.py", 5, "a:6:b", True),
    ]


@GREPS
def test_hits_and_context_of_the_real_thing(grep: list[str], tmp_path: Path) -> None:
    odd = tmp_path / "odd-3-name:4:x.py"
    odd.write_bytes(b"one\ntwo\nthree\r\nfour\xff\nfive\n")
    plain = tmp_path / "plain.py"
    plain.write_text("nothing\n")
    done = subprocess.run(
        [*grep, "-E", "-n", "-H", "-I", "-C", "1", "-e", "four|one", str(odd), str(plain)],
        capture_output=True,
        env={"LC_ALL": "C"},
    )
    lines = list(grep_output.parse(done.stdout.decode("utf-8", "replace"), {str(odd), str(plain)}))
    assert [(line.number, line.text, line.hit) for line in lines] == [
        (1, "one", True),
        (2, "two", False),
        (3, "three\r", False),
        (4, "four\ufffd", True),
        (5, "five", False),
    ]
    assert {line.path for line in lines} == {str(odd)}


@GREPS
def test_files_that_are_gone_are_told_from_a_bad_pattern(grep: list[str], tmp_path: Path) -> None:
    gone, here = tmp_path / "gone.py", tmp_path / "here.py"
    here.write_text("x\n")
    paths = [str(gone), str(here)]
    missing = subprocess.run([*grep, "-E", "-n", "-H", "-e", "x", *paths], capture_output=True, text=True)
    assert grep_output.unread(missing.stderr, paths) == {str(gone): "No such file or directory"}
    assert grep_output.complaint(missing.stderr, paths) == ""
    refused = subprocess.run([*grep, "-E", "-n", "-H", "-e", "(x", str(here)], capture_output=True, text=True)
    assert refused.returncode == 2
    assert grep_output.complaint(refused.stderr, paths)
    assert grep_output.unread(refused.stderr, paths) == {}


def test_a_warning_is_no_complaint() -> None:
    assert grep_output.complaint("grep: warning: stray \\ before d\n", ["/v/a.py"]) == ""
