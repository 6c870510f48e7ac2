"""`analyse`: what is opened and how, that names and notes decide nothing, and old reports judged again."""

from __future__ import annotations

import bz2
import dataclasses
import gzip
import hashlib
import io
import json
import lzma
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import ddprobe
from ddprobe import reportjson, reportschema, runner, verdicts
from ddprobe.cli import app
from ddprobe.evidence import beside
from ddprobe.lab import hosts
from ddprobe.model import Host, Probe, Step
from ddprobe.opening import bounds
from ddprobe.probes.draft.commit import DraftCommit
from ddprobe.probes.draft.config import DraftConfig
from ddprobe.probes.engine.server import EngineServer
from ddprobe.store import ReportWriter, load
from tests import recorded, reports
from tests.lab_session import LabSession

# --- evidence that somebody collected: a drafter that is dead, and one that works --------------------------

ARGS = (
    "[2026-09-10 12:00:00] server_args=ServerArgs(model_path='Qwen/Qwen3-8B', speculative_algorithm='DFLASH', "
    "speculative_draft_model_path='z-lab/Qwen3-8B-DFlash-b16', speculative_num_draft_tokens=16, tp_size=1, "
    "attention_backend='flashinfer', disable_cuda_graph=False)\n"
)
TARGET = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "num_hidden_layers": 36,
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 151936,
    "max_position_embeddings": 40960,
    "rope_theta": 1000000,
}
DRAFTER = {
    **TARGET,
    "architectures": ["DFlashDraftModel"],
    "num_hidden_layers": 5,
    "block_size": 16,
    "dflash_config": {"mask_token_id": 151669, "target_layer_ids": [1, 9, 17, 25, 33]},
}


def point(text: str, context: int, commit: float, step_ms: float = 22.0) -> dict[str, Any]:
    return {
        "text": text, "ctx_tokens": context, "completion_tokens": 2048, "verify_steps": round(2048 / commit),
        "commit_len": commit, "accept_rate": round((commit - 1) / 15, 3), "step_ms": step_ms, "cached_tokens": 0,
        "temperature": 0.0,
    }  # fmt: skip


def ladder(repeated: Sequence[float], prose: Sequence[float]) -> dict[str, Any]:
    lengths = (1024, 16384, 32768)
    rows = [("repeated", repeated), ("hard_prose", prose)]
    points = [point(t, n, c) for t, commits in rows for n, c in zip(lengths, commits, strict=True)]
    return {"schema": "case-points/1", "max_commit_len": 16, "points": points}


DEAD = ladder((1.1, 1.1, 1.1), (1.05, 1.05, 1.05))
ALIVE = ladder((15.6, 15.5, 15.2), (3.3, 3.2, 3.3))


def decode_lines(number: int, accept: str = "15.20") -> str:
    return "".join(
        f"[2026-09-10 12:{n // 60 % 60:02}:{n % 60:02} TP0] Decode batch, #running-req: 1, #token: {1000 + 40 * n}, "
        f"token usage: 0.01, accept len: {accept}, accept rate: 0.95, cuda graph: True, "
        "gen throughput (token/s): 700.10, #queue-req: 0\n"
        for n in range(number)
    )


def folder(at: Path, points: dict[str, Any] = DEAD) -> Path:
    at.mkdir()
    (at / "points.json").write_text(json.dumps(points, indent=1))
    (at / "server_args.log").write_text(ARGS)
    (at / "target_config.json").write_text(json.dumps(TARGET, indent=2))
    (at / "draft_config.json").write_text(json.dumps(DRAFTER, indent=2))
    return at


# --- running it --------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DDPROBE_REPORTS", raising=False)


Analyse = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def analyse(capsys: pytest.CaptureFixture[str]) -> Analyse:
    def run(*words: str | Path) -> tuple[int, dict[str, Any]]:
        code = app.run(["analyse", *map(str, words), "--json"])
        out, err = capsys.readouterr()
        assert err == ""
        return code, json.loads(out)

    return run


def judged(report: dict[str, Any]) -> tuple[Any, ...]:
    """What is concluded, without where it can be checked."""
    verdicts = [(v["name"], v["kind"], v["confidence"], v["reasons"]) for v in report["verdicts"]]
    return verdicts, sorted((f["id"], f["outcome"], f["summary"]) for f in report["findings"])


def files(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What was said of each file."""
    told = [fact for step in report["steps"] for fact in step["facts"] if fact["type"] == "EvidenceFile"]
    return {fact["name"]: fact for fact in told}


def test_a_folder_is_judged_as_one(tmp_path: Path, analyse: Analyse) -> None:
    code, report = analyse(folder(tmp_path / "a"))
    assert code == 1
    assert [v["name"] for v in report["verdicts"]] == ["drafter_dead"]
    assert report["name"] == "analyse"
    assert [host["name"] for host in report["hosts"]] == ["evidence"]
    assert [step["id"] for step in report["steps"]] == [
        "draft_config.json", "points.json", "server_args.log", "target_config.json",
    ]  # fmt: skip
    assert all(file["recognised"] for file in files(report).values())
    assert len(report["points"]) == 6
    assert {"DC01"} <= {finding["id"] for finding in report["findings"]}


def test_a_working_pair_is_not_called_broken(tmp_path: Path, analyse: Analyse) -> None:
    _, report = analyse(folder(tmp_path / "a", ALIVE))
    assert report["verdicts"][0]["name"] in ("healthy", "text_difficulty")


def test_the_report_is_kept_and_valid(tmp_path: Path, analyse: Analyse) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    _, report = analyse(folder(tmp_path / "a"))
    jsonschema.validate(report, reportschema.schema())
    (kept,) = (tmp_path / "reports").iterdir()
    assert json.loads((kept / "report.json").read_text()) == report
    for line in (kept / "MANIFEST.sha256").read_text().splitlines():
        digest, _, name = line.partition("  ")
        assert hashlib.sha256((kept / name).read_bytes()).hexdigest() == digest
    cited = {cite["artefact"] for finding in report["findings"] for cite in finding["cites"]}
    assert cited
    assert all((kept / name).is_file() for name in cited)
    assert all(path.stat().st_mode & 0o077 == 0 for path in kept.rglob("*"))


def test_the_view_names_every_file_once_in_one_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    at = folder(tmp_path / "a")
    (at / "readme.bin").write_bytes(b"\x01\x02\x03")
    app.run(["analyse", str(at)])
    out = capsys.readouterr().out
    assert out.count("recognised as") == 1
    assert "nothing that ddprobe knows" in out
    assert "drafter_dead" in out
    assert "Commit length: tokens committed per verify step" in out


# --- names and notes decide nothing ------------------------------------------------------------------------


def test_other_names_give_the_same_verdicts(tmp_path: Path, analyse: Analyse) -> None:
    plain, odd = folder(tmp_path / "a"), tmp_path / "b"
    (odd / "x" / "y").mkdir(parents=True)
    names = {
        "points.json": "healthy.log", "server_args.log": "0.json", "target_config.json": "x/draft_config.json",
        "draft_config.json": "x/y/target",
    }  # fmt: skip
    for name, other in names.items():
        shutil.copy(plain / name, odd / other)
    assert judged(analyse(plain)[1]) == judged(analyse(odd)[1])


def test_notes_titles_and_provenance_decide_nothing(tmp_path: Path, analyse: Analyse) -> None:
    plain = judged(analyse(folder(tmp_path / "a"))[1])
    told = {
        **DEAD,
        "title": "a healthy server",
        "note": "accept length 15.9 at every context",
        "provenance": "x",
    }
    told["points"] = [
        {**p, "note": "healthy", "provenance": "reported", "label": "fine"} for p in told["points"]
    ]
    assert judged(analyse(folder(tmp_path / "b", told))[1])[0] == plain[0]


def test_conclusions_of_somebody_are_no_evidence(tmp_path: Path, analyse: Analyse) -> None:
    plain = judged(analyse(folder(tmp_path / "a"))[1])
    at = folder(tmp_path / "b")
    (at / "z.yaml").write_text(
        "verdict: healthy\nmust_not: [drafter_dead]\nfindings:\n- accept length 15.9 of 16 at 1k\n"
    )
    _, report = analyse(at)
    assert judged(report) == plain
    assert files(report)["z.yaml"]["recognised"] == ["conclusions of somebody, which are no evidence"]


def test_the_same_bytes_count_once(tmp_path: Path, analyse: Analyse) -> None:
    plain = judged(analyse(folder(tmp_path / "a"))[1])
    at = folder(tmp_path / "b")
    shutil.copy(at / "points.json", at / "points-copy.json")
    _, report = analyse(at)
    assert judged(report) == plain
    assert "the same bytes as points-copy.json" in files(report)["points.json"]["recognised"][0]


# --- several files in one ----------------------------------------------------------------------------------


def pasted(kind: str) -> str:
    contents = {
        "server.log": ARGS.strip(),
        "draft.json": json.dumps(DRAFTER, indent=2),
        "target.json": json.dumps(TARGET, indent=2),
        "points.json": json.dumps(DEAD),
    }
    if kind == "fences":
        told = "\n\n".join(f"This is `{name}`:\n```json\n{text}\n```" for name, text in contents.items())
        return f"Hello, it is slow.\n\n{told}\n\nThanks!\n"
    if kind == "nothing":
        return "\n".join(contents.values()) + "\n"
    header = {
        "head": "==> {} <==",
        "comment": "# file: {}",
        "dashes": "--- {} ---",
        "prompt": "root@gpu1:~# cat {}",
    }
    return "\n".join(f"{header[kind].format(name)}\n{text}\n" for name, text in contents.items())


@pytest.mark.parametrize("kind", ["fences", "nothing", "head", "comment", "dashes", "prompt"])
def test_files_pasted_into_one_are_told_apart(tmp_path: Path, analyse: Analyse, kind: str) -> None:
    plain = judged(analyse(folder(tmp_path / "a"))[1])[0]
    (tmp_path / "ticket.md").write_text(pasted(kind))
    _, report = analyse(tmp_path / "ticket.md")
    assert judged(report)[0] == plain
    roles = [fact["role"] for s in report["steps"] for fact in s["facts"] if fact["type"] == "ModelConfig"]
    assert sorted(roles) == ["drafter", "target"]
    assert [step["id"] for step in report["steps"]] == ["ticket.md"]


def test_json_within_a_log_is_read(tmp_path: Path, analyse: Analyse) -> None:
    config = json.dumps(TARGET, indent=2)
    (tmp_path / "x.log").write_text(f"{ARGS}[2026] Model config Qwen3Config {config}\n" + decode_lines(3))
    _, report = analyse(tmp_path / "x.log")
    kinds = {fact["type"] for step in report["steps"] for fact in step["facts"]}
    assert {"ServerArgs", "ModelConfig", "DecodeSeries"} <= kinds


def test_a_whole_json_file_is_not_taken_apart(tmp_path: Path, analyse: Analyse) -> None:
    text = json.dumps({**DRAFTER, "inner": {"text_config": TARGET}}, indent=2)
    (tmp_path / "a.json").write_text("// a comment\n" + text)
    _, report = analyse(tmp_path / "a.json")
    assert len([f for s in report["steps"] for f in s["facts"] if f["type"] == "ModelConfig"]) == 1


def test_a_docker_log_is_unwrapped(tmp_path: Path, analyse: Analyse) -> None:
    lines = (ARGS + decode_lines(5)).splitlines(keepends=True)
    wrapped = [
        json.dumps({"log": line, "stream": "stderr", "time": "2026-09-10T12:00:00Z"}) for line in lines
    ]
    (tmp_path / "c-json.log").write_text("\n".join(wrapped) + "\n")
    (tmp_path / "plain.log").write_text("".join(lines))
    mine = analyse(tmp_path / "c-json.log")[1]
    assert judged(mine) == judged(analyse(tmp_path / "plain.log")[1])
    assert {"ServerArgs", "DecodeSeries"} <= {f["type"] for s in mine["steps"] for f in s["facts"]}


@pytest.mark.parametrize("listed", [False, True])
def test_records_of_loggers_are_unwrapped(tmp_path: Path, analyse: Analyse, listed: bool) -> None:
    lines = (ARGS + decode_lines(5)).splitlines()
    records = [{"severity": "INFO", "message": line, "timestamp": "2026-09-10T12:00:00Z"} for line in lines]
    text = json.dumps(records, indent=1) if listed else "\n".join(map(json.dumps, records))
    (tmp_path / "export.json").write_text(text + "\n")
    (tmp_path / "plain.log").write_text("\n".join(lines) + "\n")
    assert judged(analyse(tmp_path / "export.json")[1]) == judged(analyse(tmp_path / "plain.log")[1])


def test_utf16_is_read(tmp_path: Path, analyse: Analyse) -> None:
    (tmp_path / "args.txt").write_bytes(ARGS.encode("utf-16"))
    _, report = analyse(tmp_path / "args.txt")
    assert "ServerArgs" in {f["type"] for s in report["steps"] for f in s["facts"]}


# --- archives and stdin ------------------------------------------------------------------------------------


def tarred(source: Path, target: Path, mode: Any) -> Path:
    with tarfile.open(target, mode) as archive:
        archive.add(source, "run")
    return target


def packed(source: Path, kind: str) -> Path:
    """Packed under a name that says nothing."""
    target = source.parent / "evidence"
    if kind == "zip":
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(source.iterdir()):
                archive.write(path, f"run/{path.name}")
        return target
    return tarred(source, target, f"w:{kind}")


@pytest.mark.parametrize("kind", ["", "gz", "xz", "bz2", "zip"])
def test_archives_are_opened_by_content(tmp_path: Path, analyse: Analyse, kind: str) -> None:
    at = folder(tmp_path / "a")
    _, report = analyse(packed(at, kind))
    assert judged(report) == judged(analyse(at)[1])
    assert "evidence/run/points.json" in files(report)


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_a_compressed_file_is_unpacked(
    tmp_path: Path, analyse: Analyse, pack: Callable[[bytes], bytes]
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "points").write_bytes(pack(json.dumps(DEAD).encode()))
    _, report = analyse(tmp_path / "a")
    assert [v["name"] for v in report["verdicts"]] == ["drafter_dead"]


def test_stdin_is_read(analyse: Analyse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(json.dumps(DEAD).encode())))
    _, report = analyse("-")
    assert [v["name"] for v in report["verdicts"]] == ["drafter_dead"]
    assert list(files(report)) == ["stdin"]


def test_what_came_until_ctrl_c_is_judged(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ddprobe", "analyse", "-", "--json"]
    root = str(Path(ddprobe.__file__).parent.parent)
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": root},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write((ARGS + decode_lines(3)).encode())
        process.stdin.flush()
        deadline = time.monotonic() + 30
        reports = tmp_path / "reports"
        while not list(reports.glob("*/events.jsonl")) and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        report = json.loads(process.stdout.read())
        assert process.wait() == 130
    assert report["interrupted"]
    assert "SGLang decode log, 3 lines" in files(report)["stdin"]["recognised"]
    assert report["verdicts"]


def test_a_damaged_archive_gives_what_can_be_read(tmp_path: Path, analyse: Analyse) -> None:
    log = (ARGS + decode_lines(4000)).encode()
    (tmp_path / "x.gz").write_bytes(gzip.compress(log)[:-2000])
    code, report = analyse(tmp_path / "x.gz")
    assert code == 4
    assert "ServerArgs" in {f["type"] for s in report["steps"] for f in s["facts"]}
    assert any("its end is missing or damaged" in f["summary"] for f in report["findings"])


def test_a_link_to_itself_ends_nothing(tmp_path: Path, analyse: Analyse) -> None:
    at = folder(tmp_path / "a")
    (at / "loop").symlink_to("back")
    (at / "back").symlink_to("loop")
    code, report = analyse(at)
    assert code == 1
    assert report["verdicts"][0]["name"] == "drafter_dead"
    assert files(report)["loop"]["trouble"] == "it is a link that leads to itself"


def test_a_folder_that_may_not_be_entered_ends_nothing(
    tmp_path: Path, analyse: Analyse, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = folder(tmp_path / "a")
    (at / "closed").mkdir()
    is_file, iterdir = Path.is_file, Path.iterdir

    def refused(path: Path) -> bool:
        if "closed" in path.parts:
            raise PermissionError(13, "Permission denied", str(path))
        return is_file(path)

    def not_listed(path: Path) -> Iterator[Path]:
        if path.name == "closed":
            raise PermissionError(13, "Permission denied", str(path))
        return iter(iterdir(path))

    monkeypatch.setattr(Path, "is_file", refused)
    monkeypatch.setattr(Path, "iterdir", not_listed)
    _, report = analyse(at)
    assert report["verdicts"][0]["name"] == "drafter_dead"
    assert files(report)["closed"]["trouble"] == "Permission denied"
    _, report = analyse(at / "closed")
    assert files(report)["closed"]["trouble"] == "Permission denied"


def test_a_member_that_cannot_be_placed_costs_no_other(tmp_path: Path, analyse: Analyse) -> None:
    with zipfile.ZipFile(tmp_path / "x", "w") as archive:
        archive.writestr("a", "x")
        archive.writestr("a/b", "x")
        archive.writestr("é" * 190, "x")
        archive.writestr("points", json.dumps(DEAD))
    code, report = analyse(tmp_path / "x")
    told = files(report)
    assert code == 1
    assert report["verdicts"][0]["name"] == "drafter_dead"
    assert "cannot be unpacked under this name" in told["x/a/b"]["trouble"]
    assert "cannot be unpacked under this name" in told["x/" + "é" * 190]["trouble"]
    assert "ddprobe-" not in json.dumps([fact["trouble"] for fact in told.values()])


def test_a_secret_in_the_name_of_a_file_is_not_kept(tmp_path: Path, analyse: Analyse) -> None:
    secret = "hf_" + "Qz7" * 12
    (tmp_path / f"{secret}.txt").write_text("nothing")
    _, report = analyse(tmp_path / f"{secret}.txt")
    assert secret not in json.dumps(report)
    (kept,) = (tmp_path / "reports").iterdir()
    assert not [path for path in kept.rglob("*") if secret in path.name]


def test_a_closed_stdin_is_said(analyse: Analyse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    code, report = analyse("-")
    assert code == 4
    assert files(report)["stdin"]["trouble"] == "it is closed"


def test_a_bomb_is_not_unpacked(tmp_path: Path, analyse: Analyse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "CHECKED_FROM", 1024 * 1024)
    (tmp_path / "bomb").write_bytes(gzip.compress(bytes(64 * 1024 * 1024)))
    at = folder(tmp_path / "a")
    code, report = analyse(at, tmp_path / "bomb")
    assert code == 1
    assert report["verdicts"][0]["name"] == "drafter_dead"
    assert "more than 250 times its size" in files(report)["bomb"]["trouble"]


def test_all_archives_together_unpack_to_no_more_than_the_bound(
    tmp_path: Path, analyse: Analyse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "MAX_UNPACKED", 100_000)
    for name in "ab":
        (tmp_path / name).write_bytes(gzip.compress(os.urandom(60_000)))
    _, report = analyse("a", "b")
    assert files(report)["a"]["trouble"] == ""
    assert "would have to be unpacked" in files(report)["b"]["trouble"]


def test_members_that_name_places_outside_are_refused(tmp_path: Path, analyse: Analyse) -> None:
    with tarfile.open(tmp_path / "x.tar", "w") as archive:
        for name in ("../escaped.json", "/tmp/escaped.json", "fine.json"):
            info = tarfile.TarInfo(name)
            info.size = len(data := json.dumps(DEAD).encode())
            archive.addfile(info, io.BytesIO(data))
        link = tarfile.TarInfo("link.json")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    code, report = analyse("x.tar")
    assert code == 1
    told = {name: file["trouble"] for name, file in files(report).items()}
    assert told["x.tar/fine.json"] == ""
    assert told["x.tar/../escaped.json"] == "it names a place outside of the archive"
    assert told["x.tar/link.json"] == "it is a link or no regular file"
    assert not (tmp_path.parent / "escaped.json").exists()


def test_links_out_of_a_folder_and_special_files_are_not_read(tmp_path: Path, analyse: Analyse) -> None:
    (tmp_path / "secret.log").write_text(decode_lines(5))
    at = folder(tmp_path / "a")
    (at / "out.log").symlink_to(tmp_path / "secret.log")
    (at / "within.json").symlink_to(at / "points.json")
    os.mkfifo(at / "pipe")
    _, report = analyse(at)
    told = files(report)
    assert told["out.log"]["trouble"] == "it is a link to a place outside of the folder"
    assert told["pipe"]["trouble"] == "it is no regular file"
    assert told["within.json"]["trouble"] == ""
    assert "DecodeSeries" not in {f["type"] for s in report["steps"] for f in s["facts"]}


def test_a_snapshot_of_a_cache_is_read_through_its_links(tmp_path: Path, analyse: Analyse) -> None:
    model = tmp_path / "models--z-lab--x"
    (model / "blobs").mkdir(parents=True)
    (model / "snapshots" / "abc").mkdir(parents=True)
    (model / "blobs" / "1").write_text(json.dumps(DRAFTER))
    (model / "snapshots" / "abc" / "config.json").symlink_to("../../blobs/1")
    _, report = analyse(model / "snapshots" / "abc")
    assert files(report)["config.json"]["recognised"]


def test_so_many_files_and_no_more(tmp_path: Path, analyse: Analyse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "MAX_FILES", 3)
    at = folder(tmp_path / "a")
    code, report = analyse(at)
    assert code in (1, 4)
    assert "more than 3 files" in files(report)["target_config.json"]["trouble"]


def test_the_folder_of_reports_is_not_evidence(tmp_path: Path, analyse: Analyse) -> None:
    at = folder(tmp_path / "a")
    first = analyse(at, "--reports", at / "reports")[1]
    assert judged(analyse(at, "--reports", at / "reports")[1]) == judged(first)


# --- large logs --------------------------------------------------------------------------------------------


def test_a_large_log_is_read_as_it_streams_by(
    tmp_path: Path, analyse: Analyse, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = (ARGS + decode_lines(3000) + "export HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz012345\n").encode()
    (tmp_path / "big.log").write_bytes(log)
    small = analyse("big.log")[1]
    monkeypatch.setattr(bounds, "LARGE", 100_000)
    monkeypatch.setattr(bounds, "CHUNK", 7001)
    _, large = analyse("big.log")
    file = files(large)["big.log"]
    assert not file["kept"]
    assert file["size"] == len(log)
    assert file["sha256"] == hashlib.sha256(log).hexdigest()
    kinds = [f["type"] for s in large["steps"] for f in s["facts"]]
    assert {"DecodeSeries", "ServerArgs"} <= set(kinds)
    assert judged(large)[0] == judged(small)[0]
    (series,) = (f for s in large["steps"] for f in s["facts"] if f["type"] == "DecodeSeries")
    assert series["lines"] == 3000
    kept = sorted((tmp_path / "reports").iterdir())[-1]
    (artefact,) = large["steps"][0]["artefacts"]
    rest = (kept / artefact["files"]["file"]).read_text()
    assert rest.startswith(ARGS)
    assert rest.count("Decode batch") == beside.KEPT
    assert "[ddprobe: lines 22 to 3001 are not kept]" in rest
    assert "hf_abc" not in rest
    assert artefact["truncated"]


def test_lines_of_a_large_log_keep_their_numbers(
    tmp_path: Path, analyse: Analyse, monkeypatch: pytest.MonkeyPatch
) -> None:
    died = "[2026-09-10 13:00:00 TP0] Scheduler hit an exception: Traceback (most recent call last):\n"
    log = ARGS + decode_lines(500) + died + "RuntimeError: CUDA error: gone\n" + decode_lines(2)
    (tmp_path / "big.log").write_text(log)
    monkeypatch.setattr(bounds, "LARGE", 10_000)
    monkeypatch.setattr(bounds, "CHUNK", 4096)
    _, report = analyse("big.log")
    lines = {f["kind"]: f["line"] for s in report["steps"] for f in s["facts"] if f["type"] == "LogEvent"}
    assert lines["crash"] == 503
    crash = next(f for s in report["steps"] for f in s["facts"] if f.get("kind") == "crash")
    assert [cite["at"] for cite in crash["source"]] == ["line 503"]


def test_of_too_many_other_lines_beginning_and_end_are_kept(
    tmp_path: Path, analyse: Analyse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "LARGE", 10_000)
    monkeypatch.setattr(beside, "HEAD", 3000)
    monkeypatch.setattr(beside, "TAIL", 1000)
    noise = "".join(f"nothing of interest happened in turn {n}\n" for n in range(2000))
    (tmp_path / "big.log").write_text(ARGS + noise + "[2026-09-10 13:00:00] Traceback\n" + decode_lines(3))
    code, report = analyse("big.log")
    assert code == 4
    assert "were too many to be looked at" in files(report)["big.log"]["trouble"]
    assert {"ServerArgs", "DecodeSeries"} <= {f["type"] for s in report["steps"] for f in s["facts"]}


def test_the_analysis_of_a_large_log_is_judged_again_to_the_byte(
    tmp_path: Path, analyse: Analyse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "LARGE", 10_000)
    at = folder(tmp_path / "a")
    (at / "big.log").write_text(ARGS + decode_lines(500))
    analyse(at)
    (before,) = (tmp_path / "reports").iterdir()
    same(before, analyse(before)[1])


def test_a_large_binary_is_not_read(
    tmp_path: Path, analyse: Analyse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "LARGE", 1000)
    (tmp_path / "core").write_bytes(b"\0\1\2\3" * 1000)
    code, report = analyse("core")
    assert code == 4
    assert files(report)["core"]["sha256"] == ""
    assert "binary" in files(report)["core"]["trouble"]


# --- what is not there -------------------------------------------------------------------------------------


def test_nothing_recognised_is_inconclusive(tmp_path: Path, analyse: Analyse) -> None:
    (tmp_path / "a.txt").write_text("Lorem ipsum dolor sit amet.\n")
    code, report = analyse("a.txt")
    assert code == 4
    assert [v["name"] for v in report["verdicts"]] == ["inconclusive"]
    assert report["verdicts"][0]["missing"]
    assert files(report)["a.txt"]["recognised"] == []


def test_an_empty_folder_is_inconclusive(tmp_path: Path, analyse: Analyse) -> None:
    (tmp_path / "empty").mkdir()
    code, report = analyse("empty")
    assert code == 4
    assert [v["name"] for v in report["verdicts"]] == ["inconclusive"]


def test_a_path_that_is_not_there_is_a_mistake(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.txt").write_text("x")
    assert app.run(["analyse", "a.txt", "no-such.log"]) == 2
    assert "there is no no-such.log" in capsys.readouterr().err
    assert not (tmp_path / "reports").exists()


def test_secrets_are_masked_before_anything_is_kept(tmp_path: Path, analyse: Analyse) -> None:
    secret = "sk-verysecretvalue0123456789abcdef"
    at = folder(tmp_path / "a")
    (at / "server_args.log").write_text(ARGS.replace("tp_size=1", f"tp_size=1, api_key='{secret}'"))
    (at / "later.txt").write_text(f"curl -H 'Authorization: Bearer {secret}' http://gpu1:30000/health\n")
    _, report = analyse(at)
    assert secret not in json.dumps(report)
    assert report["redactions"] >= 2
    kept = [p.read_bytes() for p in (tmp_path / "reports").rglob("*") if p.is_file()]
    assert not any(secret.encode() in data for data in kept)


def test_a_hostile_name_stays_a_name(tmp_path: Path, analyse: Analyse) -> None:
    at = folder(tmp_path / "a")
    (at / "[red]\x1b[31m..\n.log").write_text(ARGS)
    _, report = analyse(at)
    assert any(name.startswith("[red]") for name in files(report))


# --- old reports -------------------------------------------------------------------------------------------

AGAIN = [p for p in recorded.recordings() if p.parent.name in ("config", "server", "reach", "grep")]


def ran(at: Path, host: Host, steps: Sequence[Step], opener: Any) -> Path:
    writer = ReportWriter.create(at, "old")
    runner.run("old", [host], steps, writer, opener)
    return writer.folder


def same(before: Path, after: dict[str, Any]) -> None:
    then = json.loads((before / "report.json").read_text())
    for what in ("findings", "hypotheses"):
        assert reportjson.text(after[what]) == reportjson.text(then[what])
    if then["verdicts"]:
        assert reportjson.text(after["verdicts"]) == reportjson.text(then["verdicts"])
    assert after["verdicts"]


@pytest.mark.parametrize("path", AGAIN, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_an_old_report_gives_the_same_findings_to_the_byte(
    tmp_path: Path, analyse: Analyse, path: Path
) -> None:
    from ddprobe import probes

    content = recorded.load(path)
    kind = probes.load(f"{path.parent.parent.name}.{path.parent.name}")
    probe: Probe = kind(**(content.get("settings") or {}))
    host = recorded.host(content)
    session = recorded.RecordedSession(host, content["answers"], path.parent)
    before = ran(tmp_path / "old", host, [Step("look", probe)], lambda *_: session)
    _, after = analyse(before)
    then = json.loads((before / "report.json").read_text())
    assert reportjson.text(after["findings"]) == reportjson.text(then["findings"])
    assert after["verdicts"]
    assert [h["name"] for h in after["hosts"]] == [h["name"] for h in then["hosts"]]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with everything, of a made-up host."""
    session = LabSession(hosts.healthy())
    steps = [
        Step("config", DraftConfig()),
        Step("server", EngineServer()),
        Step("commit", DraftCommit(contexts="512,2k", arms="repeat,prose", steps=16, prompts=2, seed=3)),
    ]
    return ran(tmp_path_factory.mktemp("old"), session.host, steps, lambda *_: session)


def test_a_measurement_is_judged_again_to_the_byte(measured: Path, analyse: Analyse) -> None:
    _, after = analyse(measured)
    same(measured, after)
    (fact,) = (f for s in after["steps"] for f in s["facts"] if f["type"] == "Rejudged")
    assert fact["same"]
    assert len(after["points"]) == len(json.loads((measured / "report.json").read_text())["points"])


def test_the_bandwidth_of_an_old_reports_gpu_is_not_forgotten(
    tmp_path: Path, analyse: Analyse, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = LabSession(dataclasses.replace(hosts.healthy(), gpu_bandwidth=1792.0))
    steps = [Step("commit", DraftCommit(contexts="512", arms="repeat", steps=16, prompts=1, seed=3))]
    before = ran(tmp_path / "old", session.host, steps, lambda *_: session)
    asked = []
    reckon = verdicts.ledger

    def ledger(facts: Any, findings: Any, found: Any, bandwidth: float | None = None) -> Any:
        asked.append(bandwidth)
        return reckon(facts, findings, found, bandwidth)

    monkeypatch.setattr(verdicts, "ledger", ledger)
    same(before, analyse(before)[1])
    assert asked == [1792.0]


def test_the_report_of_an_analysis_is_one_too(tmp_path: Path, analyse: Analyse) -> None:
    analyse(folder(tmp_path / "a"))
    (before,) = (tmp_path / "reports").iterdir()
    _, after = analyse(before)
    same(before, after)
    again = sorted((tmp_path / "reports").iterdir())[-1]
    same(again, analyse(again)[1])


def test_a_packed_report_is_one_too(tmp_path: Path, measured: Path, analyse: Analyse) -> None:
    target = tmp_path / "sent"
    with tarfile.open(target, "w:gz") as archive:
        archive.add(measured, measured.name)
    same(measured, analyse(target)[1])


def test_what_another_version_said_is_compared(tmp_path: Path, measured: Path, analyse: Analyse) -> None:
    old = tmp_path / "old"
    shutil.copytree(measured, old)
    report = json.loads((old / "report.json").read_text())
    report["version"] = "0.0.1"
    dropped = next(f for f in report["findings"] if f["outcome"] == "pass")
    report["findings"].remove(dropped)
    changed = next(f for f in report["findings"] if f["outcome"] == "pass")
    changed["outcome"] = "warn"
    report["findings"].insert(0, {**changed, "id": "XX99", "step": "config"})
    (old / "report.json").write_text(json.dumps(report))
    reports.sign(old)
    _, after = analyse(old)
    (fact,) = (f for s in after["steps"] for f in s["facts"] if f["type"] == "Rejudged")
    assert not fact["same"]
    assert fact["version"] == "0.0.1"
    assert fact["added"] == [f"{dropped['id']} pass: {dropped['subject']}"]
    assert fact["removed"] == [f"XX99 warn: {changed['subject']}"]
    assert fact["changed"] == [
        f"{changed['id']} warn: {changed['subject']} → {changed['id']} pass: {changed['subject']}"
    ]
    (told,) = (f for f in after["findings"] if f["id"] == "analyse.changed")
    assert told["outcome"] == "info"
    assert told["summary"].endswith("1 added, 1 gone, 1 changed")


def test_a_report_and_a_log_together(tmp_path: Path, measured: Path, analyse: Analyse) -> None:
    (tmp_path / "x.log").write_text(ARGS + decode_lines(50))
    _, report = analyse(measured, "x.log")
    names = [host["name"] for host in report["hosts"]]
    assert names[-1] == "evidence"
    assert len(names) == 2
    assert {v["host"] for v in report["verdicts"]} == set(names)


def test_what_a_report_without_its_evidence_says_is_unknown(
    tmp_path: Path, measured: Path, analyse: Analyse
) -> None:
    old = tmp_path / "old"
    shutil.copytree(measured, old)
    shutil.rmtree(old / "evidence")
    code, after = analyse(old)
    assert code == 4
    assert {finding["outcome"] for finding in after["findings"]} <= {"unknown", "info"}
    assert [verdict["name"] for verdict in after["verdicts"]] == ["inconclusive"]
    assert after["points"] == []
    assert load(old).steps
