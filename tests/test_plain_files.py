"""What is no plain file, or has no end: named in a report's folder or by an option, it is told, never waited for."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ddprobe import plainfile, runner, store
from ddprobe.cli import app, measuring
from ddprobe.cli.checks import ssh
from ddprobe.lab import hosts
from ddprobe.model import Outcome, Step
from ddprobe.probes.draft.config import DraftConfig
from ddprobe.store import EVENTS, MANIFEST, REPORT, ReportWriter
from tests import books
from tests.lab_session import LabSession

pytestmark = pytest.mark.timeout(60)


@pytest.fixture(scope="module")
def look(tmp_path_factory: pytest.TempPathFactory) -> Path:
    session = LabSession(hosts.healthy())
    writer = ReportWriter.create(tmp_path_factory.mktemp("look"), "look")
    runner.run("look", [session.host], [Step("config", DraftConfig())], writer, lambda *_: session)
    return writer.folder


@pytest.fixture
def kept(tmp_path: Path, look: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of reports with a good one and a bad one, which is returned."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(look, tmp_path / "reports" / "good")
    return shutil.copytree(look, tmp_path / "reports" / "bad")


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def device(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def huge(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(store.files.MAX_FILE + 1)


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def loop(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


KINDS = [pipe, device, huge, folder, loop]


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = app.run(list(words))
    printed = capsys.readouterr()
    assert "Traceback" not in printed.err
    assert "[Errno" not in printed.err + printed.out
    return code, printed.out, printed.err


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lost", [(REPORT,), (EVENTS,), (MANIFEST,), (REPORT, EVENTS), (REPORT, MANIFEST)])
def test_a_report_with_such_a_file_blocks_nothing(
    kept: Path, capsys: pytest.CaptureFixture[str], lost: tuple[str, ...], kind: Callable[[Path], None]
) -> None:
    for name in lost:
        kind(kept / name)
    code, out, _ = said(capsys, "report", "list", "--json")
    listed = {Path(one["folder"]).name: one for one in json.loads(out)["reports"]}
    assert code == 0
    assert (listed["good"]["outcome"], listed["good"]["trouble"]) != ("unknown", "")
    if lost != (EVENTS,):  # of which a list takes nothing
        assert listed["bad"]["outcome"] in ("unknown", None)
        assert listed["bad"]["trouble"]
    code, out, err = said(capsys, "report", "show", "bad", "--json")
    assert (code, err) == (0, "")
    assert {f["subject"] for f in json.loads(out)["findings"] if f["id"] == "report.damaged"} >= set(lost)
    assert said(capsys, "step-time", "x", "--baseline", "bad")[0] == 2
    assert said(capsys, "run", "first-look", "x", "--resume", "bad")[0] == 2
    assert said(capsys, "analyse", "reports/bad", "--json", "--reports", "analysed")[0] in (1, 4)


@pytest.mark.parametrize("kind", KINDS)
def test_evidence_that_is_such_a_file_is_none(
    kept: Path, capsys: pytest.CaptureFixture[str], kind: Callable[[Path], None]
) -> None:
    (config,) = (kept / "evidence").glob("*/config/*DFlash*config.stdout")
    kind(config)
    code, out, _ = said(capsys, "analyse", "reports/bad", "--json", "--reports", "analysed")
    assert code == 4
    assert {f["subject"] for f in json.loads(out)["findings"] if f["id"] == "report.damaged"} == {
        config.relative_to(kept).as_posix()
    }


def test_evidence_that_is_given_to_no_step_is_not_waited_for(
    kept: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in (REPORT, EVENTS):
        (kept / name).unlink()
    os.mkfifo(kept / "evidence" / "pipe")
    (kept / EVENTS).write_text("")
    assert said(capsys, "analyse", "reports/bad", "--reports", "analysed")[0] in (1, 4)


def test_plain_files_in_links_are_read(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (kept / REPORT).rename(kept.parent / "elsewhere.json")
    (kept / REPORT).symlink_to("../elsewhere.json")
    assert store.load(kept) == store.load(kept.parent / "good")
    (kept.parent / "linked").symlink_to("good")
    _, out, _ = said(capsys, "report", "list", "--json")
    assert "linked" in out


# --- options that name a file ------------------------------------------------------------------------------


@pytest.mark.parametrize("words", ["commit-probe x --text", "step-time x --text"])
@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("pipe", "it is no plain file"),
        ("/dev/zero", "it is no plain file"),
        ("zero", "it is no plain file"),
        (".", "it is a folder"),
        ("loop", "Too many levels of symbolic links"),
        ("gone", "No such file or directory"),
        ("x" * 300, "File name too long"),
        ("large", "it is larger than 8 MiB"),
    ],
)
def test_a_text_is_a_plain_file(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: str,
    name: str,
    why: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    Path("zero").symlink_to("/dev/zero")
    Path("loop").symlink_to("loop")
    with Path("large").open("wb") as file:
        file.truncate(measuring.MAX_TEXT + 1)
    code, _, err = said(capsys, *words.split(), name)
    assert (code, err) == (2, f"ddprobe: --text {name}: {why}\n")


def test_what_a_shell_hands_over_is_read_up_to_the_bound(tmp_path: Path) -> None:
    script = (
        "import sys; from ddprobe.cli import measuring; print(len(measuring.text_of(sys.argv[1])), end=' ')"
    )
    root = str(Path(__file__).parent.parent)
    done = subprocess.run(
        ["bash", "-c", '"$0" -c "$1" <(echo some text); "$0" -c "$1" <(yes)', sys.executable, script],
        env={**os.environ, "PYTHONPATH": root},
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.stdout == "10 "
    assert "it is larger than 8 MiB" in done.stderr


@pytest.mark.parametrize(
    "line",
    [
        "server x --hosts {}",
        "run {}",
        "playbook check {}",
        "run first-look x --resume {}",
        "run first-look x --junit {}",
        "commit-probe x --baseline {}",
        "report show {}",
        "report list --reports {}",
    ],
)
@pytest.mark.parametrize(
    "name", ["./pipe", "./zero", "./" + "x" * 300, "./file/below", "~nobody-of-that-name/x"]
)
def test_whatever_names_a_file_is_one_line_and_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], line: str, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    if name == "./zero" and "--junit" in line:
        return  # a device may be written to
    os.mkfifo("pipe")
    Path("zero").symlink_to("/dev/zero")
    Path("file").write_text("")
    code, out, err = said(capsys, *line.format(name).split())
    assert (code, out) == (2, "")
    assert err.startswith("ddprobe: ")
    assert "ddprobe itself" not in err


def test_a_hosts_file_named_by_the_environment_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setenv("DDPROBE_HOSTS", str(tmp_path / "pipe"))
    code, _, err = said(capsys, "hosts")
    assert (code, err) == (2, f"ddprobe: $DDPROBE_HOSTS names {tmp_path}/pipe: it is no plain file\n")


def test_files_that_the_hosts_file_names_are_not_waited_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "pipe")
    with books.field(tmp_path) as field:
        for key in ("identity_file", "known_hosts"):
            hosts_file = Path(field.hosts("a"))
            changed = re.sub(rf"{key}: .*", f"{key}: {tmp_path / 'pipe'}", hosts_file.read_text())
            hosts_file.write_text(changed)
            words = ["probe", "host.reach", "a", "--hosts", str(hosts_file)]
            assert said(capsys, *words, "--reports", str(tmp_path / "r"))[0] == 3


def test_doctor_waits_for_no_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for check in (
        ssh.key(tmp_path / "pipe", "key"),
        ssh.ssh_config(tmp_path / "pipe"),
        ssh.known_hosts(tmp_path / "pipe"),
    ):
        assert (check.outcome, "it is no plain file" in check.says) == (Outcome.FAIL, True)


def test_a_file_that_becomes_a_pipe_meanwhile_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x"
    path.write_text("x")
    plain = path.stat()
    pipe(path)
    monkeypatch.setattr(Path, "stat", lambda *_, **__: plain)
    with pytest.raises(OSError, match="it is no plain file"):
        plainfile.read(path, 10)


def test_a_file_is_read_whole_up_to_the_bound(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"0123456789")
    assert plainfile.read(tmp_path / "x", 10) == b"0123456789"
    with pytest.raises(OSError, match="larger than"):
        plainfile.read(tmp_path / "x", 9)
    # What says that it is empty may still hold something.
    assert plainfile.read(Path("/proc/self/status"), 1024**2).startswith(b"Name:")
    with pytest.raises(OSError, match="larger than"):
        plainfile.read(Path("/proc/self/status"), 9)
