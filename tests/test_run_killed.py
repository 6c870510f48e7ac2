"""Kill -9 at any moment of a run: its report can be read, and `--resume` ends as an undisturbed run does."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from ddprobe import store
from ddprobe.cli import app as cli
from ddprobe.model import Outcome
from tests import books

SEED = 20261
FORKING = """
import os, sys
from ddprobe.cli import app
from ddprobe import runner, lints, probes, verdicts  # imported once, for all children
from ddprobe.sessions import ssh
import ddprobe.sessions.road, ddprobe.cli.run, ddprobe.render.terminal, ddprobe.playbookfile.load
for name in probes.names():
    probes.load(name)
print("ready", flush=True)
for line in sys.stdin:
    child = os.fork()
    if not child:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os._exit(app.run(line.split()))
    print(child, flush=True)
    os.waitpid(child, 0)
"""


class Forks:
    """A process that has everything imported, and runs each command line in a child of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._to: IO[str] = process.stdin
        self._from: IO[str] = process.stdout
        assert self._from.readline() == "ready\n"

    def begin(self, *words: str) -> int:
        self._to.write(" ".join(words) + "\n")
        self._to.flush()
        return int(self._from.readline())


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    root = str(Path(__file__).parent.parent)
    with subprocess.Popen(
        [sys.executable, "-c", FORKING],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONPATH": root},
    ) as process:
        yield Forks(process)
        assert process.stdin is not None
        process.stdin.close()


@pytest.fixture(scope="module")
def field(tmp_path_factory: pytest.TempPathFactory) -> Iterator[books.Field]:
    with books.field(tmp_path_factory.mktemp("field")) as made:
        yield made


def started(reports: Path) -> Path:
    """The run's folder, as soon as it has told that it began."""
    limit = time.monotonic() + 30
    while time.monotonic() < limit:
        for path in reports.glob("*/events.jsonl"):
            if path.stat().st_size:
                return path.parent
        time.sleep(0.01)
    raise AssertionError("it did not begin")


def run(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    """The report of a run that nobody disturbs."""
    assert cli.run([*words, "--json"]) in (0, 1, 4)
    return json.loads(capsys.readouterr().out)


def told(report: Any, measured: str) -> list[Any]:
    """What a report comes to. A live measurement has other times and counts each time: of it, what is wrong."""
    found: list[Any] = []
    for f in report["findings"]:
        key = (f["host"], f["step"], f["id"], f["outcome"])
        if f["step"] != measured:
            found.append((*key, f["subject"], f["summary"], f["advice"]))
        elif f["outcome"] in ("fail", "warn", "unknown"):
            found.append(key)
    return found + [(v["host"], v["name"], v["kind"]) for v in report["verdicts"]]


@pytest.mark.parametrize(
    ("book", "options", "hosts", "moments", "measured"),
    [
        (books.CHAIN, (), ("a",), 13, ""),
        (books.CHAIN, (), ("a", "b"), 4, ""),
        (books.MEASURED, ("--set", "contexts=1k", "--set", "steps=16"), ("a",), 3, "commit"),
    ],
    ids=["one host", "two hosts", "a measurement"],
)
def test_a_run_killed_at_any_moment_is_readable_and_goes_on(
    field: books.Field,
    forks: Forks,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    book: str,
    options: tuple[str, ...],
    hosts: tuple[str, ...],
    moments: int,
    measured: str,
) -> None:
    words = ["run", field.book(book), *hosts, "--hosts", field.hosts(*hosts)]
    run(capsys, *words, "--only", "server", "--reports", str(tmp_path / "warm"))
    began = time.monotonic()
    whole = run(capsys, *words, *options, "--reports", str(tmp_path / "whole"))
    seconds = time.monotonic() - began
    expected = told(whole, measured)
    assert expected
    drawn = random.Random(SEED)
    kept = 0
    # On a busy machine the first few may all come before a step is done.
    for number in range(4 * moments):
        if number >= moments and kept:
            break
        reports = tmp_path / str(number)
        child = forks.begin(*words, *options, "--reports", str(reports), "--json")
        folder = started(reports)
        time.sleep(drawn.uniform(0, seconds))
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        report = store.load(folder)
        assert report.name == whole["name"]
        assert not report.interrupted or report.outcome >= Outcome.UNKNOWN
        assert cli.run(["report", "show", str(folder), "-q"]) == 0
        capsys.readouterr()
        # Neither hosts nor vars need be said again, but for a run that was killed before it had told them.
        again = ["run", words[1], "--hosts", field.hosts(*hosts), "--resume", str(folder)]
        again += [*hosts, *options] if report.playbook is None else []
        resumed = run(capsys, *again, "--reports", str(reports))
        assert told(resumed, measured) == expected, f"killed at moment {number}: {folder}"
        assert [s["status"] for s in resumed["steps"]] == [s["status"] for s in whole["steps"]]
        over = {(s.host, s.id) for s in report.steps if s.status == "done"}
        again_kept = {(s["host"], s["id"]) for s in resumed["steps"] if s["kept_from"] == folder.name}
        assert again_kept == over
        kept += len(over)
    assert kept, "no moment fell into a run: the seed is a bad one"
