"""Line ranges as people type them."""

from __future__ import annotations

import pytest

from ddprobe.errors import UsageError
from ddprobe.parsing import line_ranges
from ddprobe.parsing.line_ranges import LineRange


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ()),
        ("  ", ()),
        ("7", (LineRange(7, 7),)),
        ("1395-1450,1580-1620", (LineRange(1395, 1450), LineRange(1580, 1620))),
        ("40+10", (LineRange(40, 50),)),
        ("40+0", (LineRange(40, 40),)),
        (" 3-4 , 1 ", (LineRange(3, 4), LineRange(1, 1))),
        ("007-0010", (LineRange(7, 10),)),
        ("99990-99999", (LineRange(99990, 99999),)),
    ],
)
def test_parse(text: str, expected: tuple[LineRange, ...]) -> None:
    assert line_ranges.parse(text) == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0", "no line 0"),
        ("0-5", "no line 0"),
        ("5-2", "ends before it begins"),
        ("a-b", "not a range"),
        ("1,,2", "not a range"),
        ("1-", "not a range"),
        ("-5", "not a range"),
        ("1-2-3", "not a range"),
        ("1..5", "not a range"),
        ("٣", "not a range"),
        ("1" * 5000, "no line number"),
        ("1-9999999999", "no line number"),
        (",".join("1" for _ in range(201)), "201 ranges"),
    ],
)
def test_what_is_no_range_is_a_usage_error(text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        line_ranges.parse(text)
    assert said in caught.value.message
    assert caught.value.advice


def test_a_reversed_range_is_offered_turned_round() -> None:
    with pytest.raises(UsageError) as caught:
        line_ranges.parse("50-40")
    assert "40-50" in caught.value.advice


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("worker.py", ("worker.py", "")),
        ("srt/worker.py:1-3,9", ("srt/worker.py", "1-3,9")),
        ("/a/b:c/worker.py:7", ("/a/b:c/worker.py", "7")),
    ],
)
def test_split_target(target: str, expected: tuple[str, str]) -> None:
    assert line_ranges.split_target(target) == expected


@pytest.mark.parametrize("target", [":1-3", "worker.py:", "worker.py:main", "worker.py:12:34:"])
def test_a_target_that_cannot_be_split(target: str) -> None:
    with pytest.raises(UsageError):
        line_ranges.split_target(target)


def test_merge_takes_near_ranges_together() -> None:
    ranges = (LineRange(30, 40), LineRange(1, 5), LineRange(8, 9), LineRange(41, 41), LineRange(32, 33))
    assert line_ranges.merge(ranges, near=0) == (LineRange(1, 5), LineRange(8, 9), LineRange(30, 41))
    assert line_ranges.merge(ranges, near=2) == (LineRange(1, 9), LineRange(30, 41))
    assert line_ranges.merge((), near=2) == ()


def test_spell_is_what_parse_reads() -> None:
    ranges = (LineRange(1, 1), LineRange(212, 219))
    assert line_ranges.spell(ranges) == "1,212-219"
    assert line_ranges.parse(line_ranges.spell(ranges)) == ranges
