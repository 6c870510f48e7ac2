"""What the logs of a live host support is judged as `analyse` judges the same files; silence is no verdict."""

from __future__ import annotations

import copy
import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ddprobe import evidence, lab, lints, runner, verdicts
from ddprobe.blocks import Plot, Table
from ddprobe.cli import app
from ddprobe.evidence.document import of_bytes
from ddprobe.facts import Acceptance, Claim, DecodeSeries, LogFile, LogTimeline, LogWindow, ServerArgs
from ddprobe.lab import Lab
from ddprobe.lab.machine import Machine
from ddprobe.lab.scenarios import scenario
from ddprobe.lab.tree import File
from ddprobe.model import Fact, Report, Step, exit_code
from ddprobe.probes.engine import _log_view
from ddprobe.probes.engine.logs import EngineLogs
from tests.lab_session import LabSession
from tests.silent import SilentWriter

LOG = "/srv/server.log"
TREE = "DFLASH verify: steps=40 avg_commit_len=1.00 avg_accepted_depth=3.00 step_ms=8.1"


def decode(minute: int, commit: float, *, off: bool = False) -> str:
    spec = "" if off else f"accept len: {commit:.2f}, accept rate: {(commit - 1) / 7:.2f}, "
    return (
        f"[2026-11-30 15:{minute:02d}:00 TP0] Decode batch, #running-req: 1, #token: 1500, token usage: 0.01, {spec}"
        "cuda graph: True, gen throughput (token/s): 100.00, #queue-req: 0"
    )


def stamped(minute: int, text: str) -> str:
    return f"[2026-11-30 15:{minute:02d}:00 TP0] {text}"


DEAD = [decode(n, 1.0) for n in range(30)]
FINE = [decode(n, 5.0) for n in range(30)]
CONTRADICTS = [line for n in range(9) for line in (decode(n, 1.0), stamped(n, TREE))]
QUIET = [stamped(n, "GET /health HTTP/1.1 200 OK") for n in range(9)]


@pytest.fixture(scope="module")
def built() -> Machine:
    return scenario("healthy").build()


@pytest.fixture
def machine(built: Machine) -> Machine:
    return replace(built, tree=copy.deepcopy(built.tree))


def looked(machine: Machine, lines: list[str], since: str = "") -> Report:
    """The report of `ddprobe logs` on a host whose log holds these lines."""
    content = "".join(f"{line}\n" for line in lines).encode()
    machine.tree.add(LOG, File(content=content, modified=int(time.time()), uid=1000))
    session = LabSession(machine)
    step = Step("logs", EngineLogs(log=LOG, since=since))
    return runner.run("logs", [session.host], [step], SilentWriter(), lambda *_: session)


def collected(lines: list[str]) -> tuple[str, ...]:
    """The names of the verdicts on the same lines in a file."""
    document = of_bytes("server.log", "".join(f"{line}\n" for line in lines).encode())
    facts = evidence.facts([evidence.recognise(document)])
    return tuple(v.name for v in verdicts.judge_collected(facts, lints.judge(facts)))


@pytest.mark.parametrize(
    ("lines", "name", "hypothesis"),
    [(DEAD, "drafter_dead", ""), (CONTRADICTS, "metric_inconsistency", "metric_wrong")],
)
def test_a_log_that_shows_a_fault_gets_the_verdict_of_analyse(
    machine: Machine, lines: list[str], name: str, hypothesis: str
) -> None:
    report = looked(machine, lines)
    assert tuple(verdict.name for verdict in report.verdicts) == collected(lines)
    assert report.verdicts[0].name == name
    assert all(verdict.host == machine.hostname for verdict in report.verdicts)
    assert len(report.hypotheses) == 9
    supported = {one.name for one in report.hypotheses if one.status == "supported"}
    assert supported == ({hypothesis} if hypothesis else set())
    assert exit_code(report) == 1


@pytest.mark.parametrize("lines", [FINE, QUIET])
def test_a_log_that_shows_none_gets_no_verdict_and_no_ledger(machine: Machine, lines: list[str]) -> None:
    report = looked(machine, lines)
    assert (report.verdicts, report.hypotheses) == ((), ())
    assert exit_code(report) == 0


def test_without_a_log_nothing_is_judged() -> None:
    facts = (Acceptance(commit=1.0, steps=4000, origin="/metrics"), ServerArgs(engine="sglang", origin="log"))
    assert verdicts.judge(facts, ()) == ()


def test_logs_of_two_servers_are_judged_apart() -> None:
    def of(server: str, run: str, commit: float) -> list[Fact]:
        return [
            LogFile(path=f"/srv/{run}.log", origin="stderr", server=server),
            DecodeSeries(engine="sglang", lines=40, run=run),
            Acceptance(commit=commit, origin="decode log", window="the whole log", steps=4000, run=run),
        ]

    facts = [*of("sglang pid 1", "log-0-whole", 5.0), *of("sglang pid 2", "log-1-whole", 1.0)]
    (verdict,) = verdicts.judge(facts, lints.judge(facts))
    assert verdict.name == "drafter_dead"
    assert verdict.reasons[0].startswith("sglang pid 2: ")
    both = [*of("sglang pid 1", "log-0-whole", 5.0), *of("sglang pid 1", "log-1-whole", 1.0)]
    assert verdicts.judge(both, lints.judge(both)) == ()


# --- a stretch of time --------------------------------------------------------------------------------------


def test_a_stretch_without_decoding_is_an_answer(machine: Machine) -> None:
    """The log ends at 15:40:00, and is as old as that."""
    report = looked(machine, [*FINE, stamped(35, "idle"), stamped(40, "idle")], since="15:33")
    (finding,) = (one for one in report.findings if one.id == "logs.idle")
    assert finding.outcome.label == "info"
    assert finding.summary == (
        "none of the 2 lines since 2026-11-30 15:33:00 is about decoding; the log's last line is of 2026-11-30 15:40:00, "
        "its last one about decoding of 2026-11-30 15:29:00"
    )
    assert exit_code(report) == 0


def test_a_stretch_without_any_line_says_when_the_last_was_written(machine: Machine) -> None:
    report = looked(machine, FINE, since="2026-11-30 15:45")
    (finding,) = (one for one in report.findings if one.id == "logs.idle")
    assert finding.summary.startswith(
        "no line was written since 2026-11-30 15:45:00; the log's last line is of 2026-11-30 15:29:00"
    )


def test_a_stretch_that_was_not_read_whole_is_no_answer(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ddprobe.probes.engine import _log_reading

    monkeypatch.setattr(_log_reading, "WHOLE", 1000)
    monkeypatch.setattr(_log_reading, "HEAD", 300)
    monkeypatch.setattr(_log_reading, "TAILS", (400,))
    report = looked(machine, [*FINE, *(stamped(n, "idle") for n in range(30, 59))], since="15:00")
    assert report.steps[0].status == "incomplete"
    assert any(
        f"{LOG}: none of the" in reason and reason.endswith("what lies before was not read")
        for reason in report.steps[0].reasons
    )
    assert exit_code(report) == 4


# --- drawn --------------------------------------------------------------------------------------------------


def test_time_is_drawn_to_scale() -> None:
    windows = tuple(
        LogWindow(start=f"2026-11-30 {at}:00", lines=4, commit_mean=3.0) for at in ("12:00", "12:10", "13:00")
    )
    timeline = LogTimeline(path=LOG, every="10 min", windows=windows)
    log = LogFile(path=LOG, origin="as named")
    (plot,) = (block for block in _log_view.blocks([log, timeline]) if isinstance(block, Plot))
    assert plot.places == ("12:00", "12:10", "12:20", "12:30", "12:40", "12:50", "13:00")
    (series,) = plot.series
    assert [value is not None for value in series.values] == [True, True, False, False, False, False, True]


def test_windows_far_apart_or_of_lines_stand_side_by_side() -> None:
    log = LogFile(path=LOG, origin="as named")
    for every, starts in (
        ("10 s", ("2026-11-30 12:00:00", "2026-12-01 12:00:00", "2026-12-02 12:00:00")),
        ("9 lines", ("line 1", "line 10", "line 19")),
    ):
        windows = tuple(LogWindow(start=start, lines=9, commit_mean=3.0) for start in starts)
        drawn = _log_view.blocks([log, LogTimeline(path=LOG, every=every, windows=windows)])
        (plot,) = (block for block in drawn if isinstance(block, Plot))
        assert plot.places == (("11-30", "12-01", "12-02") if every == "10 s" else ("1", "10", "19"))


def test_what_a_log_states_is_rounded() -> None:
    log = LogFile(path=LOG, origin="as named")
    claim = Claim(what="accepted depth", value=2.8688, origin="decode log avg_accepted_depth")
    (table,) = (block for block in _log_view.blocks([log, claim]) if isinstance(block, Table))
    assert table.rows[0][:2] == ("accepted depth", "2.87")


# --- followed -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def running() -> Iterator[Lab]:
    with lab.up("healthy") as up:
        yield up


def test_ctrl_c_ends_following_with_one_whole_document(
    running: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With --json nothing is printed before the end."""
    monkeypatch.setattr("ddprobe.cli.logs.PACE", 0.1)
    words = ["logs", "--hosts", str(running.hosts_file), "--reports", str(tmp_path), "--follow", "--json"]

    def interrupt() -> None:
        deadline = time.monotonic() + 15
        while time.monotonic() < deadline and not any(
            b"follow-2-" in path.read_bytes() for path in tmp_path.glob("*/events.jsonl")
        ):
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    assert app.run(words) == 130
    report = json.loads(capsys.readouterr().out)
    assert report["interrupted"]
    assert report["steps"][0]["status"] == "interrupted"
    assert any(fact["type"] == "LogFile" for fact in report["steps"][0]["facts"])
