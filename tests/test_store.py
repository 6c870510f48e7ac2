"""The report folder: private, readable at any moment, and safe from hostile names."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from ddprobe import __version__, store
from ddprobe.errors import UsageError
from ddprobe.model import (
    Chunk,
    Command,
    CommandResult,
    Container,
    Evidence,
    Finding,
    Glob,
    Host,
    HostRecord,
    HttpRequest,
    HttpResult,
    Outcome,
    Report,
    StepRecord,
)
from ddprobe.render import markdown
from tests import reports

NOW = 1796060000.5


def writer(tmp_path: Path, name: str = "look") -> store.ReportWriter:
    return store.ReportWriter.create(tmp_path / "reports", name, now=NOW)


def command(
    key: str, stdout: bytes = b"out", stderr: bytes = b"", **fields: int | bool | str | None
) -> CommandResult:
    question = Command(key=key, argv=("cat", "/x", Glob("/y/*")))
    values: dict[str, object] = {"exit_code": 0, "started": NOW, "seconds": 0.25, **fields}
    return CommandResult(question=question, stdout=stdout, stderr=stderr, **values)  # type: ignore[arg-type]


def http(key: str) -> HttpResult:
    question = HttpRequest(key=key, method="GET", path="/metrics", base="http://127.0.0.1:1")
    return HttpResult(
        question=question, status=200, body=b"\xff\x00{}", headers=(("a", "b"),), chunks=(Chunk(0.5, 4),),
        started=NOW, seconds=0.5, via="channel",
    )  # fmt: skip


def files(folder: Path) -> list[str]:
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


def events(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]


def test_a_run_leaves_a_whole_folder(tmp_path: Path) -> None:
    kept = writer(tmp_path)
    kept.answer("gpu1", "find", command("uname", stderr=b"warn"))
    kept.answer("gpu1", "find", http("metrics"))
    record = StepRecord(
        id="find", probe="host.reach", host="gpu1", status="done", artefacts=kept.artefacts("gpu1", "find")
    )
    kept.step(record, (reports.finding(Outcome.PASS),))
    kept.host(HostRecord(name="gpu1"))
    report = dataclasses.replace(reports.report(), name="look", steps=(record,))
    kept.finish(report)

    assert kept.folder == tmp_path / "reports" / "20261130T173320Z-look"
    assert files(kept.folder) == [
        "MANIFEST.sha256",
        "events.jsonl",
        "evidence/gpu1/find/01-uname.json",
        "evidence/gpu1/find/01-uname.stderr",
        "evidence/gpu1/find/01-uname.stdout",
        "evidence/gpu1/find/02-metrics.body",
        "evidence/gpu1/find/02-metrics.json",
        "report.json",
        "report.md",
    ]
    assert (kept.folder / "evidence/gpu1/find/01-uname.stdout").read_bytes() == b"out"
    assert (kept.folder / "evidence/gpu1/find/01-uname.stderr").read_bytes() == b"warn"
    assert (kept.folder / "evidence/gpu1/find/02-metrics.body").read_bytes() == b"\xff\x00{}"
    assert [event["event"] for event in events(kept.folder)] == [
        "start",
        "answer",
        "answer",
        "step",
        "host",
        "finish",
    ]
    assert store.load(kept.folder) == report
    assert store.load(kept.folder / "report.json") == report


def test_beside_the_bytes_stands_how_they_came(tmp_path: Path) -> None:
    kept = writer(tmp_path)
    kept.answer("gpu1", "find", command("uname", truncated=True, exit_code=141))
    kept.answer("gpu1", "find", http("metrics"))
    about = json.loads((kept.folder / "evidence/gpu1/find/01-uname.json").read_text())
    assert about["question"] == "cat /x /y/*"
    assert about["asked"]["argv"] == ["cat", "/x", {"glob": "/y/*"}]
    assert about["exit_code"] == 141
    assert about["truncated"] is True
    assert about["started"] == "2026-11-30T17:33:20.5Z"
    assert about["seconds"] == 0.25
    assert about["files"] == {"stdout": "evidence/gpu1/find/01-uname.stdout"}
    about = json.loads((kept.folder / "evidence/gpu1/find/02-metrics.json").read_text())
    assert (about["status"], about["via"], about["asked"]["path"]) == (200, "channel", "/metrics")
    assert about["asked"]["answer_headers"] == [["a", "b"]]
    assert about["asked"]["chunks"] == [[0.5, 4]]


def test_nobody_else_can_read_it(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        kept = writer(tmp_path)
        kept.answer("gpu1", "find", command("uname", stderr=b"x"))
        kept.finish(reports.report())
    finally:
        os.umask(old)
    for path in [kept.folder.parent, kept.folder, *kept.folder.rglob("*")]:
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o600), path


def test_the_manifest_names_every_other_file_with_its_hash(tmp_path: Path) -> None:
    kept = writer(tmp_path)
    kept.answer("gpu 1/../x", "find", command("a b"))
    kept.finish(reports.report())
    lines = (kept.folder / "MANIFEST.sha256").read_text().splitlines()
    assert [line.split("  ", 1)[1] for line in lines] == [
        f for f in files(kept.folder) if f != "MANIFEST.sha256"
    ]
    for line in lines:
        digest, _, path = line.partition("  ")
        assert hashlib.sha256((kept.folder / path).read_bytes()).hexdigest() == digest
    check = subprocess.run(
        ["sha256sum", "-c", "--quiet", "MANIFEST.sha256"], cwd=kept.folder, capture_output=True, check=False
    )
    assert check.returncode == 0


def test_two_runs_within_a_second_have_two_folders(tmp_path: Path) -> None:
    folders = [writer(tmp_path).folder.name for _ in range(3)]
    assert folders == ["20261130T173320Z-look", "20261130T173320Z-look-2", "20261130T173320Z-look-3"]


@pytest.mark.parametrize(
    "name",
    ["../../etc/passwd", "/etc/passwd", "..", ".", "", ".hidden", "-rf", "a/b", "a\\b", "a\0b", "a\nb", "näme", "x" * 500, "a:b*?", " "],
)  # fmt: skip
def test_a_hostile_name_stays_inside(tmp_path: Path, name: str) -> None:
    kept = writer(tmp_path)
    kept.answer(name, name, command(name))
    kept.finish(reports.report())
    (main,) = kept.folder.rglob("*.stdout")
    parts = main.relative_to(kept.folder).parts
    assert len(parts) == 4
    assert parts[0] == "evidence"
    assert all(
        p.isascii() and p.isprintable() and not p.startswith((".", "-")) and len(p) < 120 for p in parts
    )
    assert kept.artefact_path(name, name, name) == main.relative_to(kept.folder).as_posix()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["reports"]


def test_a_hostile_name_of_a_run_stays_inside(tmp_path: Path) -> None:
    kept = store.ReportWriter.create(tmp_path / "reports", "../../x", now=NOW)
    assert kept.folder.parent == tmp_path / "reports"


def test_names_that_differ_in_case_or_in_odd_characters_do_not_collide(tmp_path: Path) -> None:
    kept = writer(tmp_path)
    for host in ("GPU1", "gpu1", "gpu:1", "gpu/1"):
        kept.answer(host, "find", command("k", stdout=host.encode()))
    folders = {p.relative_to(kept.folder).parts[1] for p in kept.folder.rglob("*.stdout")}
    assert len({folder.lower() for folder in folders}) == 4
    for host in ("GPU1", "gpu1", "gpu:1", "gpu/1"):
        assert (kept.folder / kept.artefact_path(host, "find", "k")).read_bytes() == host.encode()


def test_an_artefacts_path_is_that_of_the_last_answer_under_its_key(tmp_path: Path) -> None:
    kept = writer(tmp_path)
    kept.answer("gpu1", "find", command("k"))
    kept.answer("gpu1", "find", command("k"))
    assert kept.artefact_path("gpu1", "find", "k") == "evidence/gpu1/find/02-k.stdout"
    assert kept.artefact_path("gpu1", "find", "never") == "never"
    assert kept.artefact_path("gpu2", "find", "k") == "k"


def test_threads_write_side_by_side(tmp_path: Path) -> None:
    kept = writer(tmp_path)

    def work(host: str) -> None:
        for number in range(20):
            kept.answer(host, "find", command(f"k{number}", stdout=b"x" * 5000))

    threads = [threading.Thread(target=work, args=(f"gpu{number % 4}",)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(events(kept.folder)) == 161
    assert len(list(kept.folder.rglob("*.stdout"))) == 160
    assert sum(len(kept.artefacts(f"gpu{number}", "find")) for number in range(4)) == 160


KILLED = """
import os, signal, sys
from pathlib import Path
from ddprobe import store
from tests import reports, test_store as t
kept = store.ReportWriter.create(Path(sys.argv[1]), "look", lab=True, now=t.NOW)
kept.answer("gpu1", "find", t.command("uname"))
kept.step(reports.report().steps[0], (reports.finding(reports.Outcome.WARN),))
kept.answer("gpu1", "next", t.command("whoami"))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_run_is_still_a_report(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path)], cwd=Path(__file__).parent.parent, check=False
    )
    assert done.returncode == -signal.SIGKILL
    (folder,) = tmp_path.iterdir()
    report = store.load(folder)
    whole = reports.report().steps[0]
    assert report == Report(
        name="look",
        version=__version__,
        started=NOW,
        seconds=report.seconds,
        lab=True,
        interrupted=True,
        hosts=(HostRecord(name="gpu1"),),
        steps=(
            whole,
            StepRecord(
                id="next",
                probe="",
                host="gpu1",
                status="interrupted",
                reasons=("next: the run ended before the step did",),
                started=NOW,
                seconds=report.seconds,
                artefacts=report.steps[1].artefacts,
            ),
        ),
        findings=(
            reports.finding(Outcome.WARN),
            Finding(
                id="unanswered",
                outcome=Outcome.UNKNOWN,
                subject="next",
                summary="the run ended before the step did",
                host="gpu1",
                step="next",
            ),
        ),
    )
    assert report.seconds > 0
    assert report.steps[1].artefacts[0].files == (("stdout", "evidence/gpu1/next/01-whoami.stdout"),)


@pytest.mark.parametrize(
    "damage", [b'{"event": "st', b"\xff\xfe\n", b"null\n", b'{"event":"step"}\n', b"[" * 100_000 + b"\n"]
)
def test_a_damaged_line_costs_only_itself(tmp_path: Path, damage: bytes) -> None:
    kept = writer(tmp_path)
    kept.host(HostRecord(name="gpu1"))
    with (kept.folder / "events.jsonl").open("ab") as file:
        file.write(damage)
    report = store.load(kept.folder)
    assert (report.name, report.hosts, report.interrupted) == ("look", (HostRecord(name="gpu1"),), True)


def test_a_damaged_report_json_gives_way_to_the_events(tmp_path: Path) -> None:
    kept = writer(tmp_path)
    report = dataclasses.replace(reports.report(), verdicts=())
    for step in report.steps:
        kept.step(step, [f for f in report.findings if (f.host, f.step) == (step.host, step.id)])
    for host in report.hosts:
        kept.host(host)
    kept.finish(report)
    (kept.folder / "report.json").write_text('{"schema": "ddprobe-report/1", "hos')
    found = store.load(kept.folder)
    assert (found.hosts, found.steps, found.interrupted) == (report.hosts, report.steps, False)
    assert sorted(f.id for f in found.findings) == sorted(f.id for f in report.findings)
    assert (found.seconds, found.redactions) == (report.seconds, report.redactions)


def test_a_folder_without_a_report_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"no report in {tmp_path}"):
        store.load(tmp_path)
    (tmp_path / "report.json").write_text("{}")
    with pytest.raises(UsageError, match="not a ddprobe report"):
        store.load(tmp_path)


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for place, why in (("file/reports", "Not a directory"), ("file", "it is a file, not a folder")):
        with pytest.raises(
            UsageError, match=f"cannot write the report in {tmp_path}/{place}: {why}"
        ) as caught:
            store.ReportWriter.create(tmp_path / place, "look")
        assert "--reports" in caught.value.advice


def no_space(*_: object) -> int:
    raise OSError(28, "No space left on device")


def test_a_disk_that_is_full_from_the_start_is_told_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "write", no_space)
    with pytest.raises(UsageError, match="No space left on device"):
        writer(tmp_path)


@pytest.mark.parametrize("room", [0, 1, 2, 3, 4, 5, 6, 7])
def test_a_disk_that_fills_up_ends_nothing_and_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    kept = writer(tmp_path)
    kept.answer("gpu1", "find", command("first"))
    write, left = os.write, [room]

    def into_little_room(number: int, data: bytes) -> int:
        left[0] -= 1
        if left[0] < 0:
            no_space()
        return write(number, data[:40] if left[0] == 0 else data)

    put = store.ReportWriter._write

    def put_into_little_room(self: store.ReportWriter, path: str, data: bytes) -> None:
        left[0] -= 1
        if left[0] < 0:
            no_space()
        put(self, path, data)

    with monkeypatch.context() as full:
        full.setattr(os, "write", into_little_room)
        full.setattr(store.ReportWriter, "_write", put_into_little_room)
        kept.answer("gpu1", "find", command("second", stderr=b"x"))
        kept.host(HostRecord(name="gpu1"))
    assert kept.trouble == f"cannot write the report in {kept.folder}: No space left on device" or room > 5
    kept.answer("gpu1", "find", command("third"))  # somebody made room
    keys = [artefact.key for artefact in store.load(kept.folder).steps[0].artefacts]
    assert keys[0] == "first"
    assert keys[-1] == "third", "a line that could not be finished costs only itself"
    for artefact in store.load(kept.folder).steps[0].artefacts:
        assert all((kept.folder / path).is_file() for _, path in artefact.files)
    kept.finish(reports.report())
    assert store.load(kept.folder) == reports.report()


def test_a_file_that_could_not_be_written_whole_is_not_there(
    tmp_path: Path,
) -> None:
    program = (
        "import resource, sys; from pathlib import Path; from ddprobe import store; from tests import test_store as t\n"
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "kept = store.ReportWriter.create(Path(sys.argv[1]), 'look', now=t.NOW)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))\n"
        "kept.answer('gpu1', 'find', t.command('small'))\n"
        "kept.answer('gpu1', 'find', t.command('big', stdout=b'x' * 50000))\n"
        "kept.answer('gpu1', 'find', t.command('last'))\n"
        "print(kept.trouble)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        cwd=Path(__file__).parent.parent, capture_output=True, text=True, check=True,
    )  # fmt: skip
    (folder,) = tmp_path.iterdir()
    assert done.stdout == f"cannot write the report in {folder}: File too large\n"
    assert [p.name for p in sorted(folder.rglob("*.stdout"))] == ["01-small.stdout", "03-last.stdout"]
    assert [a.key for a in store.load(folder).steps[0].artefacts] == ["small", "last"]


def test_a_fault_in_a_view_costs_neither_the_report_nor_the_manifest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = writer(tmp_path)
    monkeypatch.setattr(markdown, "text", lambda _: 1 / 0)
    kept.finish(reports.report())
    assert "ddprobe has a bug in writing the report: ZeroDivisionError" in kept.trouble
    assert files(kept.folder) == ["MANIFEST.sha256", "events.jsonl", "report.json"]
    assert store.load(kept.folder) == reports.report()


def test_what_comes_after_the_end_is_left_out(tmp_path: Path) -> None:
    kept = writer(tmp_path)
    kept.finish(reports.report())
    before = {name: (kept.folder / name).read_bytes() for name in files(kept.folder)}
    kept.answer("gpu1", "find", command("late"))
    kept.host(HostRecord(name="gpu1"))
    kept.finish(reports.report())
    assert {name: (kept.folder / name).read_bytes() for name in files(kept.folder)} == before


def test_the_end_waits_for_the_answer_that_is_being_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a host that was left: half of a file must not be hashed as if it were the whole."""
    begun, write = threading.Event(), store.ReportWriter._write

    def slowly(kept: store.ReportWriter, path: str, data: bytes) -> None:
        if path.startswith("evidence"):
            (kept.folder / path).write_bytes(data[:1])
            begun.set()
            time.sleep(0.3)
            (kept.folder / path).unlink()
        write(kept, path, data)

    monkeypatch.setattr(store.ReportWriter, "_write", slowly)
    kept = writer(tmp_path)
    late = threading.Thread(target=kept.answer, args=("gpu1", "find", command("uname")))
    late.start()
    assert begun.wait(10)
    kept.finish(reports.report())
    before = files(kept.folder)
    late.join()
    assert files(kept.folder) == before
    check = subprocess.run(["sha256sum", "-c", "--quiet", "MANIFEST.sha256"], cwd=kept.folder, check=False)
    assert check.returncode == 0


def test_events_cut_anywhere_are_still_a_report(tmp_path: Path) -> None:
    kept = writer(tmp_path)
    kept.plan(
        [Host(name="gpu1"), Host(name="gpu2")],
        [StepRecord(id="find", probe="host.reach", host="", status="not_run")],
    )
    kept.answer("gpu1", "find", command("uname"))
    kept.step(
        dataclasses.replace(reports.report().steps[0], id="find", host="gpu1"),
        (reports.finding(Outcome.WARN),),
    )
    kept.host(HostRecord(name="gpu1"))
    whole = (kept.folder / "events.jsonl").read_bytes()
    first = whole.index(b"\n") + 1
    for end in range(first, len(whole) + 1):
        (kept.folder / "events.jsonl").write_bytes(whole[:end])
        report = store.load(kept.folder)
        assert (report.name, report.interrupted) == ("look", True)
        if end > whole.index(b"\n", first):
            assert [host.name for host in report.hosts] == ["gpu1", "gpu2"]
            assert {(s.host, s.id) for s in report.steps} == {("gpu1", "find"), ("gpu2", "find")}
    assert (report.hosts[0].error, report.hosts[1].error) == ("", store.NOT_REACHED)
    assert [(s.status, s.reasons) for s in report.steps][1] == ("not_run", ("the run ended before it",))  # fmt: skip


def test_evidence_comes_back_as_it_was(tmp_path: Path) -> None:
    kept = writer(tmp_path)
    host = Host(
        name="gpu 1/..", port=22, package="/p", tags=("a",), container=Container(runtime="docker", name="c")
    )
    kept.plan([Host(name="other"), host], [])
    request = HttpRequest(
        key="m",
        method="GET",
        path="/metrics",
        base="http://127.0.0.1:1",
        headers=(("accept", "a"), ("accept", "b")),
    )
    results = (
        command("uname", stdout=b"\xff\0", stderr=b"e", truncated=True, stderr_truncated=True, exit_code=141),
        command("late", timed_out=True, exit_code=None),
        command("dead", failure="the road failed", exit_code=None),
        command("uname", stdout=b"again"),
        http("metrics"),
        HttpResult(question=request, failure="refused", headers=(("x", "1"), ("x", "2"))),
    )  # fmt: skip
    for result in results:
        kept.answer(host.name, "find", result)
    assert store.evidence(kept.folder, host.name, "find") == Evidence(host, results)
    with pytest.raises(UsageError, match="no step 'other'"):
        store.evidence(kept.folder, host.name, "other")


def test_a_report_that_was_sent_reads_no_file_outside_of_it(tmp_path: Path) -> None:
    kept = writer(tmp_path)
    kept.answer("gpu1", "find", command("uname"))
    (tmp_path / "secret").write_text("x")
    events_file = kept.folder / "events.jsonl"
    events_file.write_text(
        events_file.read_text().replace("evidence/gpu1/find/01-uname.stdout", "../../secret")
    )
    with pytest.raises(UsageError, match="outside of the report"):
        store.evidence(kept.folder, "gpu1", "find")


def test_reports_are_listed_newest_first(tmp_path: Path) -> None:
    for number, name in enumerate(("first", "second")):
        kept = store.ReportWriter.create(tmp_path, name, now=NOW + number)
        kept.finish(dataclasses.replace(reports.report(), name=name, started=NOW + number))
    killed = store.ReportWriter.create(tmp_path, "killed", lab=True, now=NOW + 2)
    broken = tmp_path / "19990101T000000Z-broken"
    broken.mkdir()
    (broken / "report.json").write_text("{}")
    (tmp_path / "not-a-report").mkdir()
    (tmp_path / "file").write_text("")
    listed = store.list_reports(tmp_path)
    assert [(s.name, s.outcome, s.interrupted, s.lab) for s in listed] == [
        ("killed", Outcome.UNKNOWN, True, True),
        ("second", Outcome.FAIL, False, False),
        ("first", Outcome.FAIL, False, False),
        ("19990101T000000Z-broken", None, False, False),
    ]
    assert listed[0].folder == killed.folder
    assert listed[1].hosts == ("gpu1", "gpu2", "gpu3")
    assert "not a ddprobe report" in listed[3].trouble
    assert store.list_reports(tmp_path / "nowhere") == ()
