"""What a report leaves out so that its verdicts are found: equal findings, steps that measured nothing, a quiet run."""

from __future__ import annotations

import dataclasses
import io

import pytest

from ddprobe import render
from ddprobe.blocks import Block, Code, Heading, Pairs, Paragraph, Table
from ddprobe.model import Artefact, Finding, HostRecord, Outcome, Report, StepRecord, Verdict
from ddprobe.render import StepView, markdown, outline, terminal
from ddprobe.render.progress import Log, Running, plainly

LOST = Finding(
    id="RT01",
    outcome=Outcome.FAIL,
    subject="measurement",
    summary="376 accepted, 60 came",
    advice="compare with the streamed tokens",
    host="gpu1",
    step="commit",
)


def shown(report: Report, width: int = 120, **options: bool) -> str:
    out = io.StringIO()
    terminal.show(report, folder=None, width=width, colour=False, file=out, **options)
    return out.getvalue()


def step(id: str, probe: str = "engine.server", status: str = "done", host: str = "gpu1") -> StepRecord:
    file = (("stdout", f"evidence/{host}/{id}/01-ps.stdout"),)
    artefact = Artefact(key="ps", question="ps", kind="command", files=file)
    return StepRecord(id=id, probe=probe, host=host, status=status, artefacts=(artefact,))


def report(*findings: Finding, steps: tuple[StepRecord, ...] = (), **other: object) -> Report:
    hosts = (HostRecord(name="gpu1"),)
    given = {"hosts": hosts, "findings": findings, "steps": steps, **other}
    return Report(name="r", version="1", started=0.0, **given)  # type: ignore[arg-type]


# --- findings of several steps -----------------------------------------------------------------------------

AGAIN = dataclasses.replace(LOST, summary="1203 accepted, 184 came", step="step-time")


def test_one_fault_that_two_steps_see_is_a_line_and_both_numbers_are_kept() -> None:
    (view,) = render.findings(report(LOST, AGAIN))
    assert (view.finding.summary, [one.summary for one in view.likewise]) == (LOST.summary, [AGAIN.summary])
    text = shown(report(LOST, AGAIN))
    assert "376 accepted, 60 came (likewise in step-time)" in text
    assert "1203" not in text
    assert text.splitlines()[-1].startswith("✗ fail  1 host · 0 steps · 1 fail")
    assert "in step-time: 1203 accepted, 184 came" in shown(report(LOST, AGAIN), verbose=True)
    assert "likewise in step-time: 1203 accepted, 184 came" in markdown.text(report(LOST, AGAIN))


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"subject": "measurement of another server"}, id="another subject"),
        pytest.param({"advice": "read the source"}, id="another advice"),
        pytest.param({"id": "MC06"}, id="another lint"),
        pytest.param({"step": "commit"}, id="of the same step"),
        pytest.param({"host": "gpu2"}, id="on another host"),
        pytest.param({"outcome": Outcome.UNKNOWN}, id="another outcome"),
    ],
)
def test_what_differs_in_more_than_its_numbers_stays_apart(other: dict[str, object]) -> None:
    views = render.findings(report(LOST, dataclasses.replace(AGAIN, **other)))  # type: ignore[arg-type]
    assert len(views) == 2
    assert not any(view.likewise for view in views)


@pytest.mark.parametrize(("outcome", "advice"), [(Outcome.PASS, "x"), (Outcome.UNKNOWN, "")])
def test_what_passed_and_what_has_no_advice_is_never_folded(outcome: Outcome, advice: str) -> None:
    both = [dataclasses.replace(one, outcome=outcome, advice=advice) for one in (LOST, AGAIN)]
    assert len(render.findings(report(*both))) == 2


def test_of_one_fault_the_step_that_weighs_it_most_speaks() -> None:
    milder = dataclasses.replace(AGAIN, outcome=Outcome.WARN, advice="look closer")
    assert [view.finding.outcome for view in render.findings(report(milder, LOST))] == [Outcome.FAIL]
    for other in ({"subject": "x"}, {"host": "gpu2"}, {"id": "RT02"}, {"step": "commit"}):
        kept = dataclasses.replace(milder, **other)  # type: ignore[arg-type]
        assert len(render.findings(report(kept, LOST))) == 2, other
    assert len(report(milder, LOST).findings) == 2


# --- steps of a long run -----------------------------------------------------------------------------------


@pytest.fixture
def inventory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every step that ran shows the same table of 30 rows."""
    table = Table(("server", "port"), tuple((f"s{n}", "1") for n in range(30)), title=f"Servers of {'x' * 9}")
    monkeypatch.setattr(render, "blocks", lambda step: () if step.status == "skipped" else (table,))


LONG = (
    step("server"),
    step("gpu", "gpu.state"),
    step("logs", "engine.logs"),
    step("commit", "draft.commit"),
    step("speed", "draft.step_time"),
    step("grep", "source.grep", "incomplete"),
    step("more", "draft.commit", "skipped"),
)


@pytest.mark.usefixtures("inventory")
def test_in_a_long_run_only_what_measures_and_gpus_and_logs_are_seen_whole() -> None:
    lines = shown(report(steps=LONG)).splitlines()
    assert lines[0] == "· server  gpu1: Servers of xxxxxxxxx: s0, s1 and 28 more  (evidence/gpu1/server/)"
    assert [line.split()[1] for line in lines if line.startswith("── ")] == ["gpu", "logs", "commit", "speed"]
    assert any(line.startswith("? grep  gpu1  incomplete: Servers of") for line in lines)
    assert any(line.startswith("- more  gpu1  skipped") for line in lines)
    assert outline.MORE in lines


@pytest.mark.usefixtures("inventory")
def test_a_short_run_and_a_verbose_one_show_every_step_whole() -> None:
    for look in (shown(report(steps=LONG[:3])), shown(report(steps=LONG), verbose=True)):
        assert "── server  gpu1" in look
        assert outline.MORE not in look


@pytest.mark.usefixtures("inventory")
def test_one_step_on_many_hosts_is_no_long_run() -> None:
    hosts = tuple(step("server", host=f"gpu{n}") for n in range(9))
    assert outline.whole(render.steps(report(steps=hosts))) == render.steps(report(steps=hosts))
    (view,) = render.steps(report(steps=hosts))
    assert outline.evidence(view) == "evidence/*/server/"


CODE = Code("srt/a.py", ((1, "x"), (2, "y")), marked=(2,))


@pytest.mark.parametrize(
    ("blocks", "said"),
    [
        ((), ""),
        ((Heading("sglang pid 4711"), Paragraph("more")), "sglang pid 4711"),
        ((Heading("sglang pid 4711"), Paragraph("nothing was read", "bad")), "nothing was read"),
        ((CODE, dataclasses.replace(CODE, path="b.py")), "2 marked lines in 2 files"),
        ((dataclasses.replace(CODE, marked=()),), "2 source lines of 1 file"),
        ((Pairs((("engine", "SGLang"),), title="sglang"),), "sglang: engine SGLang"),
        ((Table(("", "b"), (("", "1"),)), Heading("h")), "h"),
        ((Paragraph("a\x1b[31m\nb" + "x" * 500),), f"a␛ b{'x' * 96} …"),
    ],
)
def test_a_step_in_a_sentence(blocks: tuple[Block, ...], said: str) -> None:
    assert outline.gist(StepView(id="s", hosts=("g",), blocks=blocks, troubles=())) == said


def test_what_was_left_out_on_purpose_is_no_question() -> None:
    left = dataclasses.replace(step("more", status="skipped"), reasons=("around is done",))
    lines = shown(report(steps=(left,))).splitlines()
    assert lines[1] == "- around is done"
    stopped = dataclasses.replace(left, status="interrupted")
    assert shown(report(steps=(stopped,))).splitlines()[1] == "? around is done"


# --- quiet -------------------------------------------------------------------------------------------------


def test_a_healthy_quiet_run_is_one_line_and_in_the_lab_two() -> None:
    fine = dataclasses.replace(LOST, outcome=Outcome.PASS)
    healthy = report(fine, verdicts=(Verdict(name="healthy", host="gpu1", next=("keep it",)),))
    assert [line[:6] for line in shown(healthy, quiet=True).splitlines()] == ["✓ pass"]
    lab = dataclasses.replace(healthy, lab=True)
    assert [line[:6] for line in shown(lab, quiet=True).splitlines()] == ["LAB: a", "✓ pass"]


def test_each_host_that_needs_a_look_is_one_line() -> None:
    hosts = tuple(HostRecord(name=name) for name in ("gpu1", "gpu2"))
    dead = HostRecord(
        name="gpu3", error="gpu3: 10.0.0.9: 10.0.0.9:22: Connection refused", advice="is sshd up?"
    )
    verdict = Verdict(name="drafter_dead", confidence="high", reasons=("0 of 300",), host="gpu1")
    found = report(LOST, hosts=(*hosts, dead), verdicts=(verdict,))
    assert shown(found, quiet=True).splitlines()[:-1] == [
        "✗ gpu1  drafter_dead, high confidence: 0 of 300; 1 fail: RT01",
        "✗ gpu3  10.0.0.9:22: Connection refused",
    ]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ("gpu3: 10.0.0.9: 10.0.0.9:22: Connection refused", "10.0.0.9:22: Connection refused"),
        ("10.0.0.9: 10.0.0.8:22: Connection refused", "10.0.0.9: 10.0.0.8:22: Connection refused"),
        ("gpu3: permission denied", "permission denied"),
    ],
)
def test_an_address_is_not_said_twice(error: str, said: str) -> None:
    assert render.host_error(HostRecord(name="gpu3", error=error)) == said


# --- progress ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("now", "said"),
    [
        ("connecting", "connecting"),
        ("server: near-sglang", "server: the installed sglang"),
        ("config: elsewhere-vllm", "config: the installed vllm"),
        ("commit: tokens-filler-01", "commit: texts as the server's tokens"),
        ("commit: a-state-after-process", "commit: what the server says of itself now"),
        ("logs: log-3-tail-65536", "logs: log tail"),
        (
            "commit: far-copy at 64k (point 1 of 3), prompt 1 of 4",
            "commit: far-copy at 64k (point 1 of 3), prompt 1 of 4",
        ),
    ],
)
def test_progress_says_no_key_of_ours(now: str, said: str) -> None:
    assert plainly(now) == said
    out = io.StringIO()
    Log(out)("gpu1", now)
    assert out.getvalue() == f"gpu1  {said.partition(',')[0]}\n"


def test_the_time_stands_where_a_narrow_terminal_still_shows_it() -> None:
    running = Running(io.StringIO())
    running("gpu1", "commit: far-copy far at 128k (point 12 of 15), prompt 3 of 4, about 3 min left")
    drawn = str(running._lines())
    assert drawn[2:].startswith("gpu1  0.0 s  commit: far-copy far at 128k")
