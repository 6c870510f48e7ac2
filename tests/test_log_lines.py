"""Lines as a container's runtime or a journal keeps them, their times, and what `--since` takes."""

from __future__ import annotations

from datetime import datetime, time, timedelta

import pytest

from ddprobe.errors import UsageError
from ddprobe.parsing import log_lines

DECODE = "[2026-11-30 15:35:08 TP0] Decode batch, #running-req: 1"


@pytest.mark.parametrize(
    "line",
    [
        DECODE,
        '{"log":"[2026-11-30 15:35:08 TP0] Decode batch, #running-req: 1\\n","stream":"stderr","time":"2026-11-30T14:35:08.1Z"}',
        '{"ts": 1.5, "level": "INFO", "message": "[2026-11-30 15:35:08 TP0] Decode batch, #running-req: 1"}',
        '{"asctime":"x","msg":"[2026-11-30 15:35:08 TP0] Decode batch, #running-req: 1\\n","name":"root"}',
        '{"jsonPayload":{"message":"[2026-11-30 15:35:08 TP0] Decode batch, #running-req: 1"},"severity":"INFO"}',
        '{"PRIORITY":"6","MESSAGE":"[2026-11-30 15:35:08 TP0] Decode batch, #running-req: 1"}',
        '{"log":"[2026-11-30 15:35:08 TP0] Decode batch, #running-req: 1"}',
        "2026-11-30T14:35:08.120450198Z stderr F " + DECODE,
        "2026-11-30T14:35:08.120450198+01:00 stdout P " + DECODE,
        "2026-11-30T14:35:08+0000 gpu1 sglang[4711]: " + DECODE,
        "2026-11-30T14:35:08+00:00 gpu1 python3: " + DECODE,
    ],
)
def test_what_is_wrapped_around_a_line_goes(line: str) -> None:
    assert log_lines.unwrapped(line) == DECODE


@pytest.mark.parametrize(
    "line",
    [
        "", '{"message":"x"}', '{"level":"INFO"}', '{"level":"INFO","message":{"text":"x"}}', '{"msg":"x","meta_info":{}}',
        '{"log":', '{"log":5}', '{"log":["x"]}', '{"logs":"x"}', "2026-11-30T14:35:08+0000 gpu1", "[[[",
    ],
)  # fmt: skip
def test_what_only_looks_wrapped_stays(line: str) -> None:
    assert log_lines.unwrapped(line) == line


@pytest.mark.parametrize(
    ("line", "at"),
    [
        (DECODE, datetime(2026, 11, 30, 15, 35, 8)),
        ("(APIServer pid=7) INFO 11-30 15:31:40 [loggers.py:259] x", datetime(2025, 11, 30, 15, 31, 40)),
        ("2026-11-30T15:35:08Z x", datetime(2026, 11, 30, 15, 35, 8)),
        ("2026/11/30 15:35:08 x", datetime(2026, 11, 30, 15, 35, 8)),
        ("INFO 13-41 15:31:40 x", None),
        ("0.03.293.539 I slot print_timing: id  0", None),
        ("x" * 200 + DECODE, None),
        ("127.0.0.1:5 - GET /x", None),
    ],
)
def test_when_a_line_was_written(line: str, at: datetime | None) -> None:
    assert log_lines.moment(line, 2025) == at


def test_when_a_logger_s_record_was_written() -> None:
    line = '{"message":"no time","level":"INFO","timestamp":"2026-11-30T14:35:08.5Z"}'
    assert log_lines.moments([line], 2026) == [datetime(2026, 11, 30, 14, 35, 8)]
    assert log_lines.moments(['{"message":"no time","level":"INFO","ts":1764513308.5}'], 2026) == [None]


def test_the_line_s_own_time_counts_before_its_keeper_s() -> None:
    kept = "2026-11-30T14:35:08+0000 gpu1 sglang[4711]: "
    assert log_lines.moments([kept + DECODE, kept + "no time"], 2026) == [
        datetime(2026, 11, 30, 15, 35, 8),
        None,
    ]
    assert log_lines.moments([kept + "slot release", "x"], 2026) == [datetime(2026, 11, 30, 14, 35, 8), None]
    docker = '{"log":"slot\\n","stream":"stderr","time":"2026-11-30T14:35:09.5Z"}'
    assert log_lines.moments([docker], 2026) == [datetime(2026, 11, 30, 14, 35, 9)]


@pytest.mark.parametrize(
    "lines",
    [
        [],
        ["x", "y"],
        ["x", DECODE, DECODE.replace("15:35", "15:36"), "y"],
        ["2026-11-30T14:35:08+0000 gpu1 sglang[4711]: a", "2026-11-30T14:36:08+0000 gpu1 sglang[4711]: b"],
        [
            "2026-11-30T14:35:08+0000 gpu1 sglang[4711]: a",
            "2026-11-30T14:35:08+0000 gpu1 sglang[4711]: " + DECODE,
        ],
    ],
)
def test_the_ends_are_those_of_all_the_times(lines: list[str]) -> None:
    known = [at for at in log_lines.moments(lines, 2026) if at]
    assert log_lines.ends(lines, 2026) == ((known[0], known[-1]) if known else None)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("30m", timedelta(minutes=30)),
        ("90", timedelta(seconds=90)),
        ("1.5h", timedelta(minutes=90)),
        ("14:30", time(14, 30)),
        ("14:30:05", time(14, 30, 5)),
        ("2026-01-31", datetime(2026, 1, 31)),
        (" 2026-01-31 14:30 ", datetime(2026, 1, 31, 14, 30)),
        ("2026-01-31T14:30:05", datetime(2026, 1, 31, 14, 30, 5)),
    ],
)
def test_since(text: str, meant: log_lines.Since) -> None:
    assert log_lines.since(text) == meant


@pytest.mark.parametrize("text", ["", "yesterday", "-5m", "0", "25:00", "2026-13-01", "99999999d", "5 weeks"])
def test_since_when_is_that(text: str) -> None:
    with pytest.raises(UsageError):
        log_lines.since(text)


def test_a_time_of_day_is_the_last_one_that_was() -> None:
    now = datetime(2026, 3, 1, 0, 10)
    assert log_lines.begin(time(0, 5), now) == datetime(2026, 3, 1, 0, 5)
    assert log_lines.begin(time(23, 50), now) == datetime(2026, 2, 28, 23, 50)
    assert log_lines.begin(timedelta(hours=1), now) == datetime(2026, 2, 28, 23, 10)
    assert log_lines.begin(datetime(2020, 1, 1), now) == datetime(2020, 1, 1)
