"""A report with everything in it, for the tests of what writes and shows reports."""

from __future__ import annotations

import hashlib
import math
from pathlib import Path

from ddprobe.facts import Discovered, ModelConfig, Rope, ServerArgs, SourceHit, SourceRange
from ddprobe.model import (
    Artefact,
    Cite,
    Connection,
    Finding,
    HostRecord,
    Outcome,
    Report,
    StepRecord,
    Verdict,
)
from ddprobe.store import MANIFEST

HOSTILE = "\x1b[31mred\x1b[0m \x1b]0;owned\x07 \u202egnp.exe [bold]x[/bold] `tick` | <b>&\x9b\x00\ud800"

SOURCE = (Cite("evidence/gpu1/find/01-config.stdout", "$.rope_scaling.factor"),)

FACTS = (
    Discovered(what="package", value="/venv/sglang", origin="executable of pid 4711", source=SOURCE),
    ModelConfig(
        role="drafter",
        path="/hf/config.json",
        layer_types=("sliding_attention", "full_attention"),
        rope=Rope(theta=math.inf, kind="yarn", factor=64.0, beta_fast=32),
        block_size=8,
        block_size_places=(("block_size", 8), ("dflash.block_size", 16)),
        target_layer_ids=(1, 12),
        extra=(("odd", [1, {"deep": None}]), ("text", HOSTILE)),
    ),
    ServerArgs(engine="sglang", origin="command line", values=(("tp_size", 8), ("api_key", "[redacted]"))),
    SourceRange(
        path="srt/a.py", first=3, last=4, total=9, status="complete", text="x = 1\n\ty = '" + HOSTILE + "'\n", focus=(3,)
    ),
    SourceRange(path="srt/a.py", first=50, last=60, total=9, status="past_end", text="", note="9 lines"),
    SourceHit(path="srt/a.py", line=3, text="x = 1", within="f", context=((2, "def f():"), (4, "return x"))),
)  # fmt: skip


def finding(
    outcome: Outcome, name: str = "DC20", host: str = "gpu1", summary: str = "8 is below 16"
) -> Finding:
    """A finding with every field set."""
    return Finding(
        id=name,
        outcome=outcome,
        subject="block size",
        summary=summary,
        cites=(Cite(f"evidence/{host}/find/01-config.stdout", "$.block_size"),),
        measured=(("block_size", 8), ("factor", 0.5), ("set", None)),
        advice="--speculative-num-draft-tokens 8",
        source="config.json",
        host=host,
        step="find",
    )


def report(lab: bool = False, interrupted: bool = False) -> Report:
    """Three hosts, one of them out of reach; every kind of outcome."""
    connection = Connection(
        transport="ssh", address="10.0.0.7", user="me", port=22, host_key="ssh-ed25519 SHA256:x", connect_seconds=0.25,
        notes=("forwarding is refused",),
    )  # fmt: skip
    artefact = Artefact(
        key="config",
        question="cat /hf/config.json",
        kind="command",
        files=(("stdout", "evidence/gpu1/find/01-config.stdout"),),
        exit_code=0,
        started=1796060001.125,
        seconds=0.125,
        size=12,
    )
    return Report(
        name="first-look",
        version="1.2.3",
        started=1796060000.1234567,
        seconds=3.25,
        lab=lab,
        interrupted=interrupted,
        hosts=(
            HostRecord(name="gpu1", connection=connection),
            HostRecord(name="gpu2", connection=connection, survivors=1),
            HostRecord(name="gpu3", error="gpu3: connection refused", advice="is sshd running?"),
        ),
        steps=(
            StepRecord(
                id="find",
                probe="no.such_probe",
                host="gpu1",
                status="incomplete",
                settings=(("pattern", "x"), ("context", 3)),
                reasons=("block size: 8 is below 16", "drafter: was cut"),
                started=1796060001.5,
                seconds=0.5,
                artefacts=(artefact,),
                facts=FACTS,
            ),
            StepRecord(id="find", probe="no.such_probe", host="gpu2", status="done", facts=FACTS),
            StepRecord(id="find", probe="no.such_probe", host="gpu3", status="not_run", reasons=("refused",)),
        ),
        findings=(
            finding(Outcome.PASS, "DC01"),
            finding(Outcome.FAIL),
            finding(Outcome.FAIL, host="gpu2"),
            finding(Outcome.WARN, "DC05", summary=HOSTILE),
            finding(Outcome.INFO, "EN01"),
            finding(Outcome.UNKNOWN, "unanswered"),
            finding(Outcome.SKIP, "SA01"),
        ),
        verdicts=(Verdict(name="inconclusive", reasons=("8 steps",), cites=SOURCE, missing=("steps",)),),
        redactions=2,
    )


def sign(folder: Path) -> None:
    """A manifest as of a report that was written so, after a test has changed it."""
    files = sorted(p for p in folder.rglob("*") if p.is_file() and p.name != MANIFEST)
    lines = [
        f"{hashlib.sha256(p.read_bytes()).hexdigest()}  {p.relative_to(folder).as_posix()}\n" for p in files
    ]
    (folder / MANIFEST).write_text("".join(lines))
