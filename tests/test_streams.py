"""stdout that nobody reads to its end, that is full, or that is closed: a command's exit code says what it found."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ddprobe.cli import app
from ddprobe.model import HostRecord, Report
from ddprobe.render import terminal
from tests import books, reports
from tests.test_run_exit_codes import UNKNOWN, expecting

ROOT = str(Path(__file__).parent.parent)
FULL = "stdout cannot be written: No space left on device"
CODES = {"right": 0, "wrong": 1, "unknown": 4}
"""What each playbook ends with where all is printed."""


@pytest.fixture(scope="module")
def field(tmp_path_factory: pytest.TempPathFactory) -> Iterator[books.Field]:
    with books.field(tmp_path_factory.mktemp("field")) as made:
        made.book(expecting(1), "right.yaml")
        made.book(expecting(10**6), "wrong.yaml")
        made.book(UNKNOWN, "unknown.yaml")
        made.book("name: bad\nabout: what?\n", "bad.yaml")
        yield made


def shell(field: books.Field, line: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """What a line of bash does; `$D` is ddprobe, `$H` names the hosts file and where reports are kept."""
    hosts = f"--hosts {field.hosts('a')} --reports {tmp_path / 'r'}"
    words = {"D": f"{sys.executable} -m ddprobe", "H": hosts, "PYTHONPATH": ROOT}
    return subprocess.run(
        ["bash", "-c", line],
        env={**os.environ, **words},
        cwd=field.folder,
        capture_output=True,
        text=True,
        check=False,
    )


@contextlib.contextmanager
def unread() -> Iterator[int]:
    """The end to write into of a pipe that nobody reads any more."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        yield writing
    finally:
        os.close(writing)


@pytest.mark.parametrize("how", ["", "-v", "-q", "--json"])
@pytest.mark.parametrize("book", CODES)
@pytest.mark.parametrize("both", [False, True], ids=["stdout", "stdout and stderr"])
def test_a_reader_that_has_gone_changes_no_runs_exit_code(
    field: books.Field, tmp_path: Path, book: str, how: str, both: bool
) -> None:
    words = ["run", f"{book}.yaml", "a", "--hosts", field.hosts("a"), "--reports", str(tmp_path)]
    with unread() as pipe:
        done = subprocess.run(
            [sys.executable, "-m", "ddprobe", *words, *how.split()],
            env={**os.environ, "PYTHONPATH": ROOT},
            cwd=field.folder,
            stdout=pipe,
            stderr=pipe if both else subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == CODES[book]
    assert both or how == "-v" or done.stderr == ""
    (folder,) = tmp_path.iterdir()
    assert (folder / "MANIFEST.sha256").is_file()


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("run right.yaml a --plan", 0),
        ("run right.yaml a --plan --json", 0),
        ("run --help", 0),
        ("--help", 0),
        ("--version", 0),
        ("playbook list", 0),
        ("playbook check right.yaml", 0),
        ("playbook check right.yaml bad.yaml", 2),
        ("playbook schema", 0),
        ("", 2),
        ("playbook", 2),
        ("run gone.yaml", 2),
    ],
)
def test_nor_that_of_any_other_command(field: books.Field, words: str, code: int) -> None:
    with unread() as pipe:
        done = subprocess.run(
            [sys.executable, "-m", "ddprobe", *words.split()],
            env={**os.environ, "PYTHONPATH": ROOT},
            cwd=field.folder,
            stdout=pipe,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    assert (done.stderr == "") is (code == 0 or not words or words == "playbook")


@pytest.mark.parametrize(
    "words",
    [
        "run right.yaml a --plan",
        "--help",
        "run --help",
        "--version",
        "playbook schema",
        "playbook list",
        "probes --json",
    ],
)
def test_a_full_stdout_is_one_line_and_4(field: books.Field, tmp_path: Path, words: str) -> None:
    done = shell(field, f"$D {words} >/dev/full", tmp_path)
    assert (done.returncode, done.stderr) == (4, f"ddprobe: {FULL}\n")


@pytest.mark.parametrize("how", ["", "--json", "-q"])
@pytest.mark.parametrize(("book", "code"), [("right", 4), ("wrong", 1), ("unknown", 4)])
def test_a_run_that_cannot_be_shown_says_where_its_report_is(
    field: books.Field, tmp_path: Path, book: str, code: int, how: str
) -> None:
    done = shell(field, f"$D run {book}.yaml a $H {how} >/dev/full", tmp_path)
    (folder,) = (tmp_path / "r").iterdir()
    assert done.returncode == code
    assert done.stderr == f"ddprobe: {FULL}; the run is whole, and its report is in {folder}\n"


def test_json_that_was_asked_for_and_cannot_be_had_is_said(field: books.Field, tmp_path: Path) -> None:
    done = shell(field, "$D run right.yaml a $H --json >&-", tmp_path)
    (folder,) = (tmp_path / "r").iterdir()
    lost = "ddprobe: stdout is closed: what was to be printed there is lost"
    assert (done.returncode, done.stderr) == (4, f"{lost}; the run is whole, and its report is in {folder}\n")
    done = shell(field, f"$D report show {folder} --json >&-", tmp_path)
    assert (done.returncode, done.stderr) == (4, f"{lost}\n")
    done = shell(field, "$D run wrong.yaml a $H --json >&-", tmp_path)
    assert done.returncode == 1


def test_a_run_for_people_needs_no_stdout(field: books.Field, tmp_path: Path) -> None:
    for book, code in CODES.items():
        done = shell(field, f"$D run {book}.yaml a $H >&-", tmp_path)
        assert (done.returncode, done.stderr) == (code, "")


@pytest.mark.parametrize("stderr", ["2>/dev/full", "2>&-", "2> >(true)"])
def test_a_mistake_that_nobody_reads_is_still_2(field: books.Field, tmp_path: Path, stderr: str) -> None:
    assert shell(field, f"$D rnu x {stderr}", tmp_path).returncode == 2


@pytest.mark.parametrize("width", [20, 40, 80])
def test_quiet_lines_never_wrap(width: int, capsys: pytest.CaptureFixture[str]) -> None:
    report = reports.report(lab=True)
    terminal.show(report, folder=None, quiet=True, colour=False, width=width)
    narrow = capsys.readouterr().out
    terminal.show(report, folder=None, quiet=True, colour=False, width=1000)
    assert narrow == capsys.readouterr().out
    terminal.show(report, folder=None, colour=False, width=width)
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80, "what is drawn for people does"


def test_quiet_lines_of_a_check_of_hosts_do_not_either(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from ddprobe.cli import hosts
    from ddprobe.cli.options import Options

    error = "gpu1: nobody answers at 10.0.0.7 port 22 within 10 s, as often as it was tried, and that was three times"
    report = Report(name="x", version="", started=0.0, hosts=(HostRecord(name="gpu1", error=error),))
    monkeypatch.setenv("COLUMNS", "20")
    hosts._checked(report, Path("r"), Options(quiet=True))
    assert capsys.readouterr().out.splitlines()[0] == error


def test_an_error_of_the_disk_is_told_with_its_file_and_no_number(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(_: list[str]) -> int:
        raise OSError(36, "File name too long", "xxx")

    monkeypatch.setattr(app, "_run", broken)
    assert app.run([]) == 4
    assert capsys.readouterr().err == "ddprobe: xxx: File name too long\n  --debug shows where\n"
