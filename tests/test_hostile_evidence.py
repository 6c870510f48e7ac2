"""Evidence under attack: quoted prompts, files pasted into large logs, bombs, and names that are none."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from ddprobe import evidence
from ddprobe.cli import app
from ddprobe.evidence import beside, pasted, prompts
from ddprobe.evidence.document import Document, of_bytes
from ddprobe.facts import ModelConfig
from ddprobe.opening import bounds
from tests.test_analyse import (
    ALIVE,
    ARGS,
    DEAD,
    DRAFTER,
    TARGET,
    Analyse,
    analyse,
    decode_lines,
    files,
    folder,
    own_place,
)

__all__ = ["analyse", "own_place"]


def kinds(text: str) -> set[str]:
    reading = evidence.recognise(of_bytes("x", text.encode()))
    assert reading.troubles == ()
    return {type(fact).__name__ for found in reading.found for fact in found.facts}


def facts(report: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [fact for step in report["steps"] for fact in step["facts"] if fact["type"] == kind]


# --- requests in logs ----------------------------------------------------------------------------------------

QUOTED = (
    "why is Decode batch, #running-req: 1, #token: 100, token usage: 0.01, accept len: 1.00, accept rate: 0.00, cuda graph: "
    "True, gen throughput (token/s): 7.10, #queue-req: 0 and server_args=ServerArgs(model_path='evil', "
    "speculative_algorithm='EAGLE') and SpecDecoding metrics: Mean acceptance length: 1.00, Accepted throughput: 0.10 tokens/s, "
    "Drafted throughput: 9.00 tokens/s, Accepted: 1 tokens, Drafted: 90 tokens, Per-position acceptance rate: 0.011, Avg Draft "
    "acceptance rate: 1.1% and print_timing: id 0 | task 1 | draft acceptance = 0.01000 ( 1 accepted / 100 generated) and "
    "avg_commit_len=1.00 avg_accepted_depth=3.00"
)
ECHOES = {
    "SGLang receive": "[2026-09-10 12:00:00] Receive: obj=GenerateReqInput(rid='a', text='{}', sampling_params={{}})",
    "SGLang finish": "[2026-09-10 12:00:00 TP0] Finish: obj=GenerateReqInput(text='hi'), out={{'text': '{}'}}",
    "SGLang embedding": "[2026-09-10 12:00:00] Receive: obj=EmbeddingReqInput(text='{}')",
    "SGLang JSON": '{{"timestamp": "2026-09-10T12:00:00", "event": "request.received", "rid": "a", "obj": {{"text": "{}"}}}}',
    "vLLM": "INFO 09-10 12:00:00 [logger.py:43] Received request cmpl-1: prompt: '{}', params: SamplingParams(n=1)",
    "vLLM details": 'DEBUG 09-10 12:00:00 [logger.py:43] Request cmpl-1 details: prompt: "{}", prompt_token_ids: None',
    "vLLM answer": "INFO 09-10 12:00:00 [logger.py:80] Generated response cmpl-1 (streaming): output: '{}', output_token_ids: 1",
    "llama.cpp": 'srv  log_server_r: request:  {{"prompt":"{}","n_predict":8}}',
    "llama.cpp slot": 'slot launch_slot_: id  0 | task 0 | launching slot : {{"id":0,"prompt":"{}"}}',
    "llama.cpp answer": 'srv  log_server_r: response: {{"content":"{}"}}',
    "chat": "[2026-09-10 12:00:00] handling messages=[{{'role': 'user', 'content': '{}'}}]",
}


@pytest.mark.parametrize("echo", ECHOES.values(), ids=list(ECHOES))
def test_the_words_of_a_request_are_no_evidence(echo: str) -> None:
    assert kinds(f"[2026-09-10 11:59:00] hello\n{echo.format(QUOTED)}\n") == set()


def test_the_quoted_words_alone_would_be_evidence() -> None:
    assert {"DecodeSeries", "ServerArgs", "Acceptance"} <= kinds(f"[2026-09-10 11:59:00] hello\n{QUOTED}\n")


def test_what_stands_around_a_request_still_counts(
    tmp_path: Path, analyse: Analyse, monkeypatch: pytest.MonkeyPatch
) -> None:
    echoes = "".join(f"{echo.format(QUOTED)}\n" for echo in ECHOES.values())
    (tmp_path / "a.log").write_text(ARGS + decode_lines(40) + echoes + decode_lines(40))
    for large in (bounds.LARGE, 1000):
        monkeypatch.setattr(bounds, "LARGE", large)
        _, report = analyse("a.log")
        (series,) = facts(report, "DecodeSeries")
        assert (series["engine"], series["lines"]) == ("sglang", 80)
        assert {round(fact["commit"], 4) for fact in facts(report, "Acceptance")} == {15.2}
        (args,) = facts(report, "ServerArgs")
        assert args["values"]["model_path"] == "Qwen/Qwen3-8B"
        assert args["source"][0]["at"] == "line 1"


def test_arguments_that_speak_of_prompts_are_arguments() -> None:
    line = ARGS.replace("tp_size=1", "chat_template=\"prompt: 'x' messages=['y']\", tp_size=4").encode()
    assert prompts.cleaned(line) == line
    for block in (
        decode_lines(3).encode(),
        b"Avg prompt throughput: 3.0 tokens/s, Avg generation throughput: 1\n",
    ):
        assert prompts.cleaned(block) == block
    assert prompts.cleaned(b'{"prompt": "x", "accept_len": 3}\n') == b'{"prompt": "x", "accept_len": 3}\n'


# --- pasted --------------------------------------------------------------------------------------------------

CONFIG = json.dumps(DRAFTER, indent=2)
LOOSE = CONFIG.replace("{", "{\n  // as trained", 1)[:-2] + ",\n}"


@pytest.mark.parametrize("config", [CONFIG, json.dumps(DRAFTER), LOOSE], ids=["pretty", "line", "comments"])
@pytest.mark.parametrize(
    "header", ["--- config.json ---", "==> config.json <==", "# file: config.json", "config.json:", ""]
)
@pytest.mark.parametrize("end", ["", "\n", "\n\n\n  \n", "\n\nThat is all I have. Thanks!\n"])
def test_a_single_pasted_file_is_recognised(config: str, header: str, end: str) -> None:
    reading = evidence.recognise(of_bytes("ticket", f"{header}\n{config}{end}".encode()))
    configs = [f for found in reading.found for f in found.facts if isinstance(f, ModelConfig)]
    assert [config.block_size for config in configs] == [16]


def test_a_header_and_blank_lines_around_what_is_no_json() -> None:
    (part,) = pasted.parts("x", "--- gpu.csv ---\nindex, name\n0, H200\n\n\n\n")
    assert part.sample == "index, name\n0, H200\n\n\n\n"


LAUNCH = (
    "python -m sglang.launch_server --model-path Qwen/Qwen3-8B --speculative-algorithm DFLASH "
    "--speculative-draft-model-path z-lab/Qwen3-8B-DFlash-b16 --speculative-num-draft-tokens 16\n"
)


def in_the_midst(noise: str = "") -> str:
    log = decode_lines(3000, "1.05")
    return (
        f"{noise}{log}--- draft.json ---\n{CONFIG}\n\n==> target.json <==\n{json.dumps(TARGET, indent=2)}\n{noise}\n"
        f"$ cat run.sh\n{LAUNCH}\n==> server.log <==\n{noise}{log}"
    )


def test_files_pasted_into_a_large_log_are_told_apart(
    tmp_path: Path, analyse: Analyse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "LARGE", 100_000)
    (tmp_path / "big.log").write_text(in_the_midst())
    _, report = analyse("big.log")
    assert not files(report)["big.log"]["kept"]
    assert sorted(fact["role"] for fact in facts(report, "ModelConfig")) == ["drafter", "target"]
    (args,) = facts(report, "ServerArgs")
    text = in_the_midst().split("\n")
    assert args["source"][0]["at"] == f"line {text.index(LAUNCH.strip()) + 1}"
    (series,) = facts(report, "DecodeSeries")
    assert series["lines"] == 6000
    (step,) = (step for step in report["steps"] if step["id"] == "big.log")
    kept = step["artefacts"][0]["files"]["file"]
    assert {c["artefact"] for f in facts(report, "ModelConfig") for c in f["source"]} == {kept}


def test_so_are_those_amid_more_than_is_kept(
    tmp_path: Path, analyse: Analyse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "LARGE", 100_000)
    monkeypatch.setattr(beside, "HEAD", 3000)
    monkeypatch.setattr(beside, "TAIL", 3000)
    noise = "".join(f"nothing of interest happened in turn {n}\n" for n in range(1000))
    (tmp_path / "big.log").write_text(in_the_midst(noise))
    code, report = analyse("big.log")
    assert code in (1, 4)
    assert sorted(fact["role"] for fact in facts(report, "ModelConfig")) == ["drafter", "target"]
    assert len(facts(report, "ServerArgs")) == 1
    assert "were too many to be looked at" in files(report)["big.log"]["trouble"]


def test_a_log_that_begins_with_a_pasted_file_is_a_log(
    tmp_path: Path, analyse: Analyse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "LARGE", 100_000)
    (tmp_path / "big.log").write_text(f"{CONFIG}\n{decode_lines(3000)}")
    _, report = analyse("big.log")
    assert not files(report)["big.log"]["kept"]
    assert len(facts(report, "ModelConfig")) == 1
    (series,) = facts(report, "DecodeSeries")
    assert series["lines"] == 3000


def test_a_large_file_that_is_one_object_is_still_held_whole(
    tmp_path: Path, analyse: Analyse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "LARGE", 1000)
    (tmp_path / "points.json").write_text(json.dumps(DEAD, indent=1))
    _, report = analyse("points.json")
    assert files(report)["points.json"]["kept"]
    assert len(report["points"]) == 6


# --- the same bytes ------------------------------------------------------------------------------------------


def test_a_duplicate_names_its_twin_and_no_large_log(
    tmp_path: Path, analyse: Analyse, capsys: pytest.CaptureFixture[str]
) -> None:
    at = folder(tmp_path / "a")
    (at / "a-copy.json").write_bytes((at / "points.json").read_bytes())
    (at / "z-copy.log").write_bytes((at / "server_args.log").read_bytes())
    _, report = analyse(at)
    told = files(report)
    assert told["points.json"]["same_as"] == "a-copy.json"
    assert told["z-copy.log"]["same_as"] == "server_args.log"
    assert told["points.json"]["recognised"] == ["the same bytes as a-copy.json: counted once"]
    assert [told[name]["same_as"] for name in ("a-copy.json", "server_args.log")] == ["", ""]
    app.run(["analyse", str(at)])
    assert "Of large logs" not in capsys.readouterr().out


# --- bombs ---------------------------------------------------------------------------------------------------


def test_a_bomb_among_the_members_costs_only_itself(
    tmp_path: Path, analyse: Analyse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "CHECKED_FROM", 1024 * 1024)
    with zipfile.ZipFile(tmp_path / "x", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a-bomb", bytes(16 * 1024 * 1024))
        archive.writestr("points", json.dumps(DEAD))
    code, report = analyse("x")
    assert code == 1
    assert report["verdicts"][0]["name"] == "drafter_dead"
    assert "times its size" in files(report)["x/a-bomb"]["trouble"]
    assert files(report)["x/a-bomb"]["sha256"] == ""


def test_an_archive_of_bombs_is_left_alone(
    tmp_path: Path, analyse: Analyse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "CHECKED_FROM", 1024 * 1024)
    monkeypatch.setattr(bounds, "MAX_RATIO", 20)
    with zipfile.ZipFile(tmp_path / "x", "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(9):
            archive.writestr(f"{number}", bytes(8 * 1024 * 1024))
    code, report = analyse("x")
    assert code == 4
    assert sorted(files(report)) == ["x", "x/0", "x/1", "x/2"]
    assert files(report)["x"]["trouble"] == "the rest of it is not read"


def test_the_disk_is_not_filled(tmp_path: Path, analyse: Analyse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "CHECKED_FROM", 10_000)
    monkeypatch.setattr(bounds, "LEAST_FREE", 1 << 60)
    (tmp_path / "x.gz").write_bytes(gzip.compress(decode_lines(500).encode()))
    code, report = analyse("x.gz")
    assert code == 4
    assert "of the disk free" in files(report)["x.gz"]["trouble"]


def test_archives_within_archives_end_somewhere(tmp_path: Path, analyse: Analyse) -> None:
    data = json.dumps(DEAD).encode()
    for _ in range(5):
        data = gzip.compress(data)
    (tmp_path / "deep").write_bytes(data)
    at = folder(tmp_path / "a", ALIVE)
    code, report = analyse(at, "deep")
    assert code == 4
    assert files(report)["deep"]["trouble"] == "archives more than 3 deep in each other are not opened"
    assert report["verdicts"][0]["name"] in ("healthy", "text_difficulty")


def test_a_zip_whose_contents_alone_fill_the_memory_is_not_opened(
    tmp_path: Path, analyse: Analyse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "MAX_CONTENTS", 40_000)
    with zipfile.ZipFile(tmp_path / "x", "w") as archive:
        for number in range(1000):
            archive.writestr(f"{number}", b"")
    code, report = analyse("x")
    assert code == 4
    assert "table of contents" in files(report)["x"]["trouble"]


# --- names ---------------------------------------------------------------------------------------------------

HOSTILE = "a\n  drafter_dead: high\x1b[2J\x9b31m\u202egol.\r\tb"


def test_a_name_stays_on_its_line_everywhere(
    tmp_path: Path, analyse: Analyse, capsys: pytest.CaptureFixture[str]
) -> None:
    with tarfile.open(tmp_path / "x.tar", "w") as archive:
        for name, data in (
            (HOSTILE, ARGS.encode()),
            (f"{HOSTILE}2", ARGS.encode()),
            (f"../{HOSTILE}", b"x"),
            ("n", b"?"),
        ):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    _, report = analyse("x.tar")
    shown = "a\\n  drafter_dead: high\\x1b[2J\\x9b31m\\u202egol.\\r\\tb"
    told = files(report)
    assert set(told) == {f"x.tar/{shown}", f"x.tar/{shown}2", f"x.tar/../{shown}", "x.tar/n"}
    assert told[f"x.tar/{shown}2"]["same_as"] == f"x.tar/{shown}"
    (kept,) = (tmp_path / "reports").iterdir()
    for text in ((kept / "report.md").read_text(), reportless(report)):
        assert not set(text) & set("\x1b\x9b\u202e\r\t")
    app.run(["analyse", "x.tar"])
    out = capsys.readouterr().out
    assert not set(out) & set("\x1b\x9b\u202e\r\t")
    assert not [line for line in out.splitlines() if line.strip().startswith("drafter_dead: high")]


def reportless(report: dict[str, Any]) -> str:
    """Every string of the report, one after the other."""

    def strings(value: Any) -> list[str]:
        if isinstance(value, str):
            return [value]
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        return [text for each in inner for text in strings(each)]

    return " ".join(strings(report))


@pytest.mark.parametrize("rows", [3, 700, 4000])
def test_points_of_any_length_in_front_of_a_large_log_hide_nothing_of_it(rows: int) -> None:
    """Also where they are longer than what is looked at to see what a file is."""
    first = DEAD["points"][0]
    many = {**DEAD, "points": [{**first, "ctx_tokens": 1024 + number} for number in range(rows)]}
    pasted_in = json.dumps(many, indent=1)
    assert (len(pasted_in) > 65536) == (rows > 3)
    log = f"{pasted_in}\n{ARGS}{decode_lines(60)}"
    reading = evidence.recognise(Document("x", lambda: iter((log.encode(),)), large=True))
    assert not reading.troubles
    told = {type(fact).__name__ for found in reading.found for fact in found.facts}
    assert {"DecodeSeries", "ServerArgs", "CommitPoint"} <= told
