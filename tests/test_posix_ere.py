"""Patterns are checked before anything is sent, and the person is told what to write instead."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from ddprobe.errors import UsageError
from ddprobe.parsing import posix_ere

GOOD = [
    "commit_lens|accept",
    r"def \w+_accept\(",
    r"\bwindow\b",
    r"\<window\>",
    "[0-9]+",
    "[^]a]",
    "[]]",
    "[a-z[:digit:]_]*",
    "[[:space:]]+self[.]x",
    r"a{2}|b{1,3}|c{2,}",
    "^class .*Worker",
    "return$",
    "(a|b)+c?",
    r"(a)\1",
    r"\{\}\(\)\[\]",
    "x*",
    "Größe",
    "-n",
    '"sliding_window"',
]


@pytest.mark.parametrize("pattern", GOOD)
def test_good_patterns_pass(pattern: str) -> None:
    posix_ere.check(pattern)


@pytest.mark.parametrize("grep", [["grep"], ["busybox", "grep"]], ids=["gnu", "busybox"])
@pytest.mark.parametrize("pattern", GOOD)
def test_grep_takes_what_passes_without_a_word(grep: list[str], pattern: str) -> None:
    assert shutil.which(grep[0]), f"{grep[0]} is missing"
    done = subprocess.run(
        [*grep, "-E", "-e", pattern], input=b"nothing of it\n", capture_output=True, env={"LC_ALL": "C"}
    )
    assert done.returncode in (0, 1)
    assert done.stderr == b""


@pytest.mark.parametrize(
    ("pattern", "instead"),
    [
        (r"\d+", "[0-9]"),
        (r"\D", "[^0-9]"),
        (r"a\tb", "[[:blank:]]"),
        (r"a\nb", "one line at a time"),
        (r"\Afoo", "^"),
        (r"\x41", "write x"),
        (r"a\'b", "write '"),
        (r"\1", "counted from 1"),
        (r"(a)\2", "counted from 1"),
        ("foo(?=bar)", "plain group"),
        ("(?i)foo", "-i for any case"),
        ("(?P<n>a)", "plain group"),
        ("a*?b", "the same lines"),
        ("a++", "the same lines"),
        ("foo(bar", r"\("),
        ("foo)", r"\)"),
        ("commit()", r"\(\)"),
        ("[abc", r"\["),
        ("[]", r"\["),
        ("[[:digits:]]", "digit"),
        ("[:space:]", "[[:space:]]"),
        ("[[:alpha]", "[:…:]"),
        (r"[\d]", "0-9"),
        (r"[\w.]", "[:alnum:]_"),
        (r"[\]]", "[]…]"),
        (r"[\q]", "q"),
        ("dict{", r"\{"),
        ("a{,}", r"\{"),
        ("a{3,1}", "low,high"),
        ("a{300}", "255"),
        ("*args", r"\*"),
        ("a|*b", r"\*"),
        ("+", r"\+"),
        ("(?)", "plain group"),
        ("a|", r"\|"),
        ("|a", r"\|"),
        ("(a|)", r"\|"),
        ("a\\", r"\\"),
        ("a\nb", "one line at a time"),
        ("a\0", "one line at a time"),
        ("", "say what"),
        ("x" * 3000, "at most"),
    ],
)
def test_others_get_a_usage_error_that_says_what_to_write(pattern: str, instead: str) -> None:
    with pytest.raises(UsageError) as caught:
        posix_ere.check(pattern)
    assert instead in caught.value.advice


def test_the_error_points_at_the_character() -> None:
    with pytest.raises(UsageError) as caught:
        posix_ere.check(r"foo\d")
    assert "at character 4" in caught.value.message
