"""What is read from the values of log lines, and when a log holds a whole start."""

from __future__ import annotations

import pytest

from ddprobe.facts import LogEvent
from ddprobe.lints.started import Started


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0), ("262144", 262144), ("9" * 15, 10**15 - 1), ("9" * 16, None), ("", None), ("-1", None), ("4k", None),
        ("²", None),
    ],
)  # fmt: skip
def test_a_value_is_a_number_only_if_it_is_one(text: str, number: int | None) -> None:
    event = LogEvent(kind="max_model_len", text="", values=(("length", text),))
    assert Started(events=(event,)).number(event, "length") == number


@pytest.mark.parametrize(
    ("kinds", "whole"),
    [
        ([("launched", "a"), ("ready", "a")], True),
        ([("launched", "a"), ("ready", "b")], False),
        ([("launched", "a")], False),
        ([("ready", "a")], False),
        ([("launched", "a"), ("launched", "b"), ("ready", "b")], True),
    ],
)
def test_a_start_is_whole_where_one_log_holds_both_ends(kinds: list[tuple[str, str]], whole: bool) -> None:
    events = tuple(LogEvent(kind=kind, text="", run=run) for kind, run in kinds)
    assert Started(events=events).whole is whole
