"""`ddprobe run` on the lab, by its exit code: each of them, and which counts where several hold."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ddprobe import store
from ddprobe.cli import app as cli
from tests import books

EXPECT = """\
name: expect
about: Is what is found what is expected?
steps:
  - id: find
    probe: source.grep
    with: {pattern: commit_lens}
expect:
  - about: it is found everywhere
    step: find
    field: %s
    at_least: %d
    otherwise: %s
"""
UNKNOWN = """\
name: unknown
about: What stands where nothing was found?
steps:
  - id: find
    probe: source.grep
    with: {pattern: there_is_no_such_word}
  - id: read
    probe: source.read
    with: {places: "${steps.find.ranges}"}
"""


@pytest.fixture(scope="module")
def field(tmp_path_factory: pytest.TempPathFactory) -> Iterator[books.Field]:
    with books.field(tmp_path_factory.mktemp("field")) as made:
        yield made


def expecting(least: int, otherwise: str = "fail", field: str = "hits") -> str:
    return EXPECT % (field, least, otherwise)


@pytest.mark.parametrize(
    ("book", "options", "names", "dead", "code"),
    [
        (expecting(1), "", "a", "", 0),
        (expecting(10**6), "", "a", "", 1),
        (expecting(10**6), "--fail-on never", "a", "", 0),
        (expecting(10**6, "warn"), "", "a", "", 0),
        (expecting(10**6, "warn"), "--fail-on warn", "a", "", 1),
        (expecting(1), "", "a", "z", 3),
        (expecting(10**6), "", "a", "z", 1),
        (UNKNOWN, "", "a", "", 4),
        (UNKNOWN, "--fail-on never", "a", "", 4),
        (UNKNOWN, "", "a", "z", 3),
        (UNKNOWN, "--skip read", "a", "", 0),
        (books.CHAIN, "--set many=9999", "a", "", 0),
        (books.MEASURED, "--only commit --set contexts=1k --set steps=1", "a", "", 4),
    ],
    ids=[
        "all well", "a miss", "a miss that nobody minds", "a small miss", "a small miss that counts", "a dead host",
        "a miss beside a dead host", "not to be known", "not to be known, whatever fails", "a dead host first",
        "not wanted", "a step that is not wanted", "an inconclusive verdict",
    ],
)  # fmt: skip
def test_the_exit_code(
    field: books.Field,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    book: str,
    options: str,
    names: str,
    dead: str,
    code: int,
) -> None:
    words = [field.book(book), *names.split(), *dead.split(), *options.split(), "--reports", str(tmp_path)]
    hosts = field.hosts(*names.split(), dead=dead.split())
    assert cli.run(["run", *words, "--hosts", hosts, "--json", "--timeout", "60"]) == code
    printed = json.loads(capsys.readouterr().out)
    (folder,) = tmp_path.iterdir()
    assert printed == json.loads((folder / "report.json").read_bytes())
    assert printed["playbook"]["name"] == printed["name"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["{bad}"], "bad.yaml:1:1: the key 'steps' is missing"),
        (["nowhere.yaml"], "nowhere.yaml: there is no such file"),
        (["no-such-playbook-anywhere"], "there is no playbook 'no-such-playbook-anywhere'"),
        (["{book}", "--set", "patern=x"], "chain has no var 'patern' (did you mean 'pattern'?)"),
        (["{book}", "--set", "many=lots"], "--set many"),
        (["{book}", "--only", "raed"], "--only: chain has no step 'raed' (did you mean 'read'?)"),
        (["{book}", "--skip", "x,find"], "--skip: chain has no step 'x'"),
        (["{book}", "--only", " , "], "--only: no step is named"),
        (["{book}", "--skip", ""], "--skip: no step is named"),
        (["{book}", "--only", "read", "--skip", "read"], "the step 'read' is named by --only and by --skip"),
        (
            ["{book}", "--only", "read", "--skip", "find"],
            "--only read comes after find, which --skip leaves out",
        ),
        (["{book}", "--skip", "find,read", "--skip", "server"], "--skip leaves no step to run"),
        (["{book}", "--set", "pattern=\udcff"], "--set 'pattern=\\udcff': what is typed is not UTF-8 text"),
        (["{book}", "--set", "many=1_000"], "--set many: must be a number, not '1_000'"),
        (["{book}", "--junit", "/nowhere/x.xml"], "--junit /nowhere/x.xml: No such file or directory"),
        (["{book}", "--junit", "-"], "--junit '-' names no file"),
        (["{book}", "--junit", ""], "--junit '' names no file"),
        (["{book}", "--junit", "x.xml", "--plan"], "--plan runs nothing: there is no result for --junit"),
        (["{book}", "--resume", "/nowhere"], "there is no report in"),
        (["{book}", "--resume", ""], "--resume '' names nothing"),
        (["{book}", "--fail-on", "sometimes"], "--fail-on 'sometimes' is not a level"),
    ],
)
def test_a_mistake_is_2_and_nothing_was_run(
    field: books.Field,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    said: str,
) -> None:
    files = {"bad": field.book("name: x\nabout: what?\n", "bad.yaml"), "book": field.book(books.CHAIN)}
    argv = [word.format(**files) for word in words]
    hosts = field.hosts("a")
    assert cli.run(["run", *argv, "--hosts", hosts, "--reports", str(tmp_path / "r")]) == 2
    printed = capsys.readouterr()
    assert said in printed.err
    assert printed.out == ""
    assert not (tmp_path / "r").exists()


def broken_off(field: books.Field, reports: Path, times: int, *words: str) -> tuple[int, bytes, bytes]:
    """A measuring run that is told Ctrl-C in the middle: its exit code, stdout and stderr."""
    argv = [sys.executable, "-m", "ddprobe", "run", field.book(books.MEASURED), "a", "--set", "steps=4000"]
    argv += ["--hosts", field.hosts("a"), "--reports", str(reports), *words]
    root = str(Path(__file__).parent.parent)
    with subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(root)
    ) as process:
        wait_for(reports, b'"step":"commit"')
        for _ in range(times):
            process.send_signal(signal.SIGINT)
            time.sleep(0.05)
        began = time.monotonic()
        out, err = process.communicate(timeout=30)
    assert time.monotonic() - began < 10
    return process.returncode, out, err


@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_is_130_with_a_whole_report(field: books.Field, tmp_path: Path, times: int) -> None:
    code, out, err = broken_off(field, tmp_path, times, "--json")
    assert code == 130
    (folder,) = tmp_path.iterdir()
    kept = json.loads((folder / "report.json").read_bytes())
    if times == 2 and err:
        # The first was enough to end the run: the second met the printing.
        assert err == b"ddprobe: interrupted\n"
    else:
        assert (json.loads(out), err) == (kept, b"")
    status = {step["id"]: step["status"] for step in kept["steps"]}
    assert kept["interrupted"]
    assert status == {
        "server": "done", "config": "done", "find": "done", "read": "done",
        "commit": "interrupted", "after": "not_run",
    }  # fmt: skip
    assert store.load(folder).interrupted
    check = subprocess.run(["sha256sum", "-c", "--quiet", "MANIFEST.sha256"], cwd=folder, check=False)
    assert check.returncode == 0


def test_after_ctrl_c_a_person_is_told_how_to_go_on(field: books.Field, tmp_path: Path) -> None:
    reports = tmp_path / "my reports"
    code, out, err = broken_off(field, reports, 1)
    (folder,) = reports.iterdir()
    (told,) = [line for line in err.decode().splitlines() if line.startswith("to go on from there: ")]
    words = shlex.split(told.partition(": ")[2])
    assert (code, words) == (130, ["ddprobe", "run", field.book(books.MEASURED), "--resume", str(folder)])
    assert b"interrupted" in out
    assert cli.run([*words[1:], "--hosts", field.hosts("a"), "--plan"]) == 0


def environment(root: str) -> dict[str, str]:
    import os

    return {**os.environ, "PYTHONPATH": root}


def wait_for(reports: Path, word: bytes) -> None:
    """Until the run has told that."""
    limit = time.monotonic() + 30
    while time.monotonic() < limit:
        for path in reports.glob("*/events.jsonl"):
            if b'"event":"answer"' in (told := path.read_bytes()) and word in told.partition(b"\n")[2]:
                lines: list[Any] = [
                    line for line in told.split(b"\n") if word in line and b'"answer"' in line
                ]
                if lines:
                    return
        time.sleep(0.02)
    raise AssertionError("it did not come to that")
