"""The log of a real process by its real descriptors: a file, a pipe into `tee`, and one that grows while it is followed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

LINE = "slot print_timing: id  0 | task {} | draft acceptance = {:.5f} ({:5d} accepted / {:5d} generated), mean len = {:5.2f}"
FIRST = LINE.format(1, 0.5679, 46, 81, 3.71)
SECOND = LINE.format(2, 0.25, 20, 80, 2.25)
STAYS = b"import time; time.sleep(300)\n"


@contextmanager
def server(output: Any) -> Iterator[int]:
    """A process that looks like llama-server in the process table, and writes where it is told."""
    process = subprocess.Popen(
        ["llama-server"], executable=sys.executable, stdin=subprocess.PIPE, stdout=output, stderr=output
    )
    try:
        assert process.stdin is not None
        process.stdin.write(STAYS)
        process.stdin.close()
        yield process.pid
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    """The beginning of a command line that looks at this machine."""
    hosts = tmp_path / "hosts.yaml"
    hosts.write_text(yaml.safe_dump({"hosts": {"here": {"transport": "local", "engine": "llamacpp"}}}))
    reports = str(tmp_path / "reports")
    return [sys.executable, "-m", "ddprobe", "logs", "--hosts", str(hosts), "--reports", reports]


def facts(told: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [fact for step in told["steps"] for fact in step["facts"] if fact["type"] == kind]


def look(words: list[str]) -> dict[str, Any]:
    done = subprocess.run([*words, "--json"], capture_output=True, text=True, timeout=60, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    return dict(json.loads(done.stdout))


def test_a_file(tmp_path: Path, words: list[str]) -> None:
    log = tmp_path / "it's the log.txt"
    log.write_text(f"{FIRST}\n{SECOND}\n")
    with log.open("ab") as output, server(output) as pid:
        told = look(words)
    mine = [fact for fact in facts(told, "LogFile") if fact["server"] == f"llamacpp pid {pid}"]
    assert [(fact["path"], fact["read"]) for fact in mine] == [(str(log), "whole")]
    means = [
        window["commit_mean"]
        for timeline in facts(told, "LogTimeline")
        if timeline["path"] == str(log)
        for window in timeline["windows"]
    ]
    assert means == [3.71, 2.25]


def test_a_pipe_into_tee(tmp_path: Path, words: list[str]) -> None:
    log = tmp_path / "server.log"
    tee = subprocess.Popen(["tee", str(log)], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    try:
        with server(tee.stdin) as pid:
            assert tee.stdin is not None
            tee.stdin.write(f"{FIRST}\n".encode())
            tee.stdin.close()
            told = look(words)
    finally:
        tee.kill()
        tee.wait()
    (mine,) = [fact for fact in facts(told, "LogFile") if fact["server"] == f"llamacpp pid {pid}"]
    assert (mine["path"], mine["origin"]) == (
        str(log),
        f"written by pid {tee.pid}, which reads stderr of pid {pid}",
    )


def following(words: list[str], log: Path) -> subprocess.Popen[str]:
    """`logs --follow`, once it has looked at the log for the first time and waits for more."""
    running = subprocess.Popen(
        [*words, "--log", str(log), "--follow"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "COLUMNS": "200"},
    )
    limit = time.monotonic() + 60
    while not any(log.parent.glob("reports/*/evidence/here/logs/*-follow-0-*.json")):
        if running.poll() is not None or time.monotonic() > limit:
            running.kill()
            raise AssertionError(f"it does not follow: {running.communicate()}")
        time.sleep(0.05)
    return running


def test_following_prints_what_is_added_and_ends_by_ctrl_c(tmp_path: Path, words: list[str]) -> None:
    log = tmp_path / "server.log"
    log.write_text(f"{FIRST}\n")
    running = following(words, log)
    assert running.stdout is not None
    try:
        with log.open("a") as output:
            output.write(f"{SECOND}\x1b[31m\n")
        line = running.stdout.readline()
        assert line.startswith(SECOND.split(" | ", maxsplit=1)[0])
        assert "\x1b" not in line
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=30)
    finally:
        running.kill()
        running.wait()
    assert running.returncode == 130, err
    assert "Traceback" not in err
    assert str(log) in out
    (folder,) = (tmp_path / "reports").iterdir()
    told = json.loads((folder / "report.json").read_text())
    assert told["interrupted"] is True
    (timeline,) = facts(told, "LogTimeline")
    assert [window["commit_mean"] for window in timeline["windows"]] == [3.71, 2.25]


@pytest.mark.parametrize("how", ["renamed", "copied and cut"])
def test_a_log_is_followed_over_its_rotation(tmp_path: Path, words: list[str], how: str) -> None:
    log, third = tmp_path / "server.log", LINE.format(3, 0.5, 40, 80, 3.5)
    log.write_text(f"{FIRST}\n{FIRST}\n")
    running = following(words, log)
    assert running.stdout is not None
    try:
        with log.open("a") as output:
            output.write(f"{SECOND}\n")
        assert "task 2" in running.stdout.readline()
        if how == "renamed":
            log.rename(tmp_path / "server.log.1")
        log.write_text(f"{third}\n")
        said = [running.stdout.readline(), running.stdout.readline()]
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=30)
    finally:
        running.kill()
        running.wait()
    assert "lines written between two looks may be missing" in said[0]
    assert "task 3" in said[1]
    assert running.returncode == 130, err
    assert "Traceback" not in err
    assert "cut short or replaced while it was followed" in " ".join(out.split())
    (folder,) = (tmp_path / "reports").iterdir()
    told = json.loads((folder / "report.json").read_text())
    (timeline,) = facts(told, "LogTimeline")
    assert [window["commit_mean"] for window in timeline["windows"]] == [3.71, 3.71, 2.25, 3.5]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "it is empty"),
        (bytes(range(256)) * 50, "it is no text"),
        (b"\x1f\x8b" + b"x" * 90, "packed (gzip)"),
        (None, "no such file"),
    ],
)
def test_a_log_of_which_nothing_can_be_read_is_no_success(
    tmp_path: Path, words: list[str], content: bytes | None, reason: str
) -> None:
    log = tmp_path / "server.log"
    if content is not None:
        log.write_bytes(content)
    done = subprocess.run(
        [*words, "--log", str(log)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 4, done.stdout
    assert reason in " ".join(done.stdout.split())


def test_a_time_that_is_none_and_a_path_that_is_not_the_hosts(words: list[str]) -> None:
    for given in (["--since", "yesterday"], ["--log", "server.log"]):
        done = subprocess.run([*words, *given], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 2
        assert given[1] in done.stderr
