"""Every lint against small cases: one where it fires, one where it is content, one where it cannot know."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from ddprobe import lints
from ddprobe.facts import (
    Acceptance,
    Account,
    Claim,
    CommitPoint,
    CommitRequest,
    CommitSetup,
    DecodeSeries,
    Discovered,
    Gpu,
    GpuDriver,
    GpuFault,
    GpuLink,
    GpuProcess,
    GpuWindow,
    LogEvent,
    ModelConfig,
    PlainSpeed,
    ServerArgs,
    ServerProcess,
    SourceHit,
)
from ddprobe.lints import table
from ddprobe.model import Cite, Fact, Finding, Outcome
from ddprobe.parsing import model_config

FOLDER = Path(__file__).parent / "cases" / "lints"
BASE: dict[str, Any] = yaml.safe_load((FOLDER / "base.yaml").read_text(encoding="utf-8"))
CASES: list[dict[str, Any]] = [
    {"file": path.stem, **case}
    for path in sorted(FOLDER.glob("*.yaml"))
    if path.name != "base.yaml"
    for case in yaml.safe_load(path.read_text(encoding="utf-8"))
]
KEYS = {
    "file", "lint", "when", "outcome", "says", "advises", "drafter", "target", "arguments", "resolved", "without",
    "version", "environment", "environment_seen", "gpus", "beside", "tensors", "engine", "given_known",
    "measured", "events",
    "source_lines", "target_tensors", "tensors_from", "cites", "measures",
}  # fmt: skip
# What each of these reads is there or means its default, so that none of them can be in doubt.
NEVER_UNKNOWN = {
    "DC01", "DC03", "DC04", "DC12", "DC20", "DC22", "DC24", "DC27", "DC30", "DC31", "DC33", "DC37", "DC41", "DC43", "DC44",
    "SA02", "SA03", "SA07", "SA09", "SA11", "SA12", "SA13", "SA15", "EN02", "EN03", "EN04", "MC02", "MC03", "MC05", "MC12", "MC14",
    "SA14", "SE01", "SE02", "SE03", "ST01", "ST02", "ST03", "ST04", "ST05", "ST06",
    "DC13", "DC15", "DC16", "DC17", "DC18", "DC19", "DC38", "DC39", "DC42", "DC47", "DC48", "SA17", "SA18", "SA21", "SA22",
    "SA23", "RT14", "RT15", "RT16", "GP05", "GP08", "GP12",
}  # fmt: skip
MEASURED: dict[str, type[Fact]] = {
    kind.__name__: kind
    for kind in (
        *(CommitSetup, CommitRequest, CommitPoint, Claim, Acceptance, DecodeSeries, PlainSpeed),
        *(Gpu, GpuDriver, GpuFault, GpuLink, GpuProcess, GpuWindow),
    )
}


@pytest.mark.parametrize("case", CASES, ids=[f"{c['lint']}: {c['when']}" for c in CASES])
def test_case(case: dict[str, Any]) -> None:
    assert set(case) <= KEYS, f"unknown keys {set(case) - KEYS}"
    found = [finding for finding in lints.judge(facts_of(case)) if finding.id == case["lint"]]
    if case["outcome"] == "none":
        assert not found
        return
    (finding,) = found
    assert finding.outcome.label == case["outcome"], finding.summary
    assert case.get("says", "") in finding.summary
    assert case.get("advises", "") in finding.advice
    if "cites" in case:
        assert [f"{cite.artefact} {cite.at}" for cite in finding.cites] == case["cites"]
    assert dict(finding.measured) | case.get("measures", {}) == dict(finding.measured)
    assert finding.source
    assert "has a bug" not in finding.summary
    if finding.outcome in (Outcome.FAIL, Outcome.WARN):
        assert finding.advice
        assert finding.cites


def test_every_lint_has_a_case_that_fires_one_that_passes_and_one_that_cannot_know() -> None:
    for lint in table.every():
        outcomes = {case["outcome"] for case in CASES if case["lint"] == lint.id}
        assert outcomes & {"fail", "warn", "info"}, f"{lint.id} never fires"
        if lint.id not in ("DC04",):
            assert outcomes & {"pass", "none"}, f"{lint.id} never keeps still"
        assert ("unknown" in outcomes) != (lint.id in NEVER_UNKNOWN), f"{lint.id}: {outcomes}"
    assert {case["lint"] for case in CASES} == {lint.id for lint in table.every()}


def test_a_healthy_pair_makes_no_lint_warn() -> None:
    findings = lints.judge(facts_of({"tensors": "whole"}))
    assert {f.id: f.summary for f in findings if f.outcome > Outcome.PASS} == {}
    assert [f.id for f in findings if f.outcome is Outcome.INFO] == ["DC48"]


def test_ids_are_unique_and_described() -> None:
    described = table.describe()
    assert len(described) == len(table.every())
    for id, text in described.items():
        assert text[0].islower() or text[0].isupper()
        assert "\n" not in text, id
    lint = table.find("DC32")
    assert lint is not None
    assert "amplitude" in lint.text
    assert table.find("DC99") is None


@pytest.mark.parametrize(
    ("word", "ids"),
    [("DC14", ["DC14"]), ("dc14", ["DC14"]), ("l24", ["DC17"]), ("L18", ["DC08", "DC14"]), ("M1", ["MC01"]), ("DC99", [])],
)  # fmt: skip
def test_a_lint_is_found_by_its_id_and_by_its_number_in_other_lists(word: str, ids: list[str]) -> None:
    assert [lint.id for lint in table.named(word)] == ids


def test_nothing_is_judged_from_nothing() -> None:
    assert lints.judge([]) == []
    assert lints.judge([Discovered(what="gpu", value="NVIDIA H100", origin="x")]) == []


def test_a_server_that_does_not_speculate_gets_one_remark_and_no_drafter_lints() -> None:
    case = {
        "without": {"arguments": ["speculative_algorithm", "speculative_draft_model_path"], "drafter": "all"}
    }
    findings = lints.judge(facts_of(case))
    assert [(f.id, f.outcome) for f in findings] == [
        ("EN01", Outcome.PASS),
        ("EN02", Outcome.PASS),
        ("EN03", Outcome.PASS),
        ("SA00", Outcome.INFO),
    ]


def test_arguments_in_a_file_that_was_not_read_make_no_lint_pass() -> None:
    case = {"without": {"arguments": ["speculative_algorithm", "max_running_requests"]}, "tensors": "whole"}
    facts = [
        replace(fact, elsewhere="/etc/sglang.yaml") if isinstance(fact, ServerArgs) else fact
        for fact in facts_of(case)
    ]
    found = by_id(lints.judge(facts))
    assert found["SA00"].outcome is Outcome.UNKNOWN
    assert "/etc/sglang.yaml were not read" in found["SA00"].summary
    assert not {"SA01", "SA08", "SA09", "DC37", "DC41", "DC44"} & set(found)
    assert found["DC07"].outcome is Outcome.PASS


def test_what_the_server_resolved_counts_wherever_its_arguments_came_from() -> None:
    facts = [
        replace(fact, elsewhere="" if fact.resolved else "/etc/sglang.yaml")
        if isinstance(fact, ServerArgs)
        else fact
        for fact in facts_of({"resolved": {"speculative_algorithm": "DFLASH", "pp_size": 2}})
    ]
    found = by_id(lints.judge(facts))
    assert found["SA00"].outcome is Outcome.PASS
    assert found["DC41"].outcome is Outcome.FAIL


def test_an_ngram_server_gets_no_drafter_lints() -> None:
    case = {"arguments": {"speculative_algorithm": "NGRAM"}, "without": {"drafter": "all"}}
    assert not [f for f in lints.judge(facts_of(case)) if f.subject.startswith("drafter")]


def test_two_servers_on_a_host_are_judged_apart() -> None:
    wrong = facts_of({"drafter": {"hidden_size": 2560}}, pid=41)
    right = facts_of({}, pid=42)
    findings = lints.judge([*wrong, *right])
    widths = {f.subject: f.outcome for f in findings if f.id == "DC07"}
    assert widths == {
        "drafter and target of sglang pid 41": Outcome.FAIL,
        "drafter and target of sglang pid 42": Outcome.PASS,
    }


def test_two_servers_of_different_versions_are_judged_by_their_own() -> None:
    sliding = {"layer_types": ["sliding_attention"] * 5, "sliding_window": 2048, "use_sliding_window": True}
    old = facts_of({"drafter": sliding, "version": "0.5.12"}, pid=41)
    new = facts_of({"drafter": sliding}, pid=42)
    outcomes = [(f.subject[-2:], f.outcome) for f in lints.judge([*old, *new]) if f.id == "DC21"]
    assert sorted(outcomes) == [("41", Outcome.FAIL), ("42", Outcome.PASS)]


def test_a_pair_named_by_hand_is_judged_without_a_launch() -> None:
    hand = [f for f in facts_of({}) if isinstance(f, ModelConfig)]
    unserved = [_replace_server(config) for config in hand]
    findings = {f.id: f for f in lints.judge(unserved)}
    assert findings["DC07"].outcome is Outcome.PASS
    assert findings["DC07"].subject == "drafter and target"
    assert findings["SA00"].outcome is Outcome.INFO
    assert "DC21" not in findings
    assert "DC11" not in findings
    assert findings["DC35"].outcome is Outcome.PASS


def test_a_target_named_by_hand_is_known_for_a_fine_tune_by_its_name() -> None:
    hand = [_replace_server(config) for config in facts_of({}) if isinstance(config, ModelConfig)]
    named = [
        replace(config, reference="/models/Qwen3-8B-abliterated") if config.role == "target" else config
        for config in hand
    ]
    assert "DC16" not in by_id(lints.judge(hand))
    assert "abliterated" in by_id(lints.judge(named))["DC16"].summary
    alone = [config for config in named if config.role == "drafter"]
    assert "DC16" not in by_id(lints.judge(alone))


def test_arguments_without_process_are_enough() -> None:
    args = [f for f in facts_of({"arguments": {"pp_size": 2}}) if isinstance(f, ServerArgs)]
    findings = {f.id: f.outcome for f in lints.judge(args)}
    assert findings["DC41"] is Outcome.FAIL


def test_vllm_is_spared_what_only_sglang_does() -> None:
    findings = by_id(lints.judge(facts_of({"engine": "vllm", "drafter": {"sliding_window": 2048}})))
    assert not {"DC01", "DC20", "DC30", "DC43", "SA08"} & set(findings)
    assert findings["DC07"].outcome is Outcome.PASS


def test_the_resolved_argument_counts_before_the_given_one() -> None:
    case = {"resolved": {"speculative_algorithm": "DFLASH", "speculative_num_draft_tokens": 32}}
    finding = by_id(lints.judge(facts_of(case)))["DC11"]
    assert finding.outcome is Outcome.FAIL
    assert Cite("41-server_info", "$.speculative_num_draft_tokens") in finding.cites


def test_cites_name_the_file_and_the_field() -> None:
    case = {"drafter": {"hidden_size": 2560}, "target": {"text_config": {"hidden_size": 5120}}}
    finding = by_id(lints.judge(facts_of(case)))["DC07"]
    assert finding.cites == (
        Cite("drafter-config", "$.hidden_size"),
        Cite("target-config", "$.text_config.hidden_size"),
    )


# --- building facts ----------------------------------------------------------------------------------------


def by_id(findings: list[Finding]) -> dict[str, Finding]:
    return {finding.id: finding for finding in findings}


def facts_of(case: dict[str, Any], pid: int = 41) -> list[Fact]:
    """The base's facts with the case's changes."""
    engine = case.get("engine", "sglang")
    version = str(case.get("version", BASE["version"]))
    process = ServerProcess(
        engine=engine,
        pid=pid,
        argv=("python", "-m", "sglang.launch_server"),
        user="root",
        environment=tuple((case.get("environment") or BASE["environment"]).items()),
        environment_seen=case.get("environment_seen", True),
        version=version,
        source=(Cite(f"cmdline-{pid}", f"pid {pid}"), Cite(f"environ-{pid}", f"pid {pid}")),
    )
    facts: list[Fact] = [process]
    arguments = changed(case, "arguments")
    if case.get("given_known", True):
        facts.append(
            ServerArgs(
                engine=engine,
                origin="command line",
                server=process.name,
                values=tuple(arguments.items()),
                source=(Cite(f"cmdline-{pid}", f"pid {pid}"),),
            )
        )
    if "resolved" in case:
        facts.append(
            ServerArgs(
                engine=engine,
                origin="/server_info",
                server=process.name,
                values=tuple(case["resolved"].items()),
                resolved=True,
                source=(Cite(f"{pid}-server_info", "$"),),
            )
        )
    facts += [
        Discovered(what="gpu", value=gpu, origin="/proc/driver/nvidia")
        for gpu in case.get("gpus", BASE["gpus"])
    ]
    facts += [
        config_of(case, role, process.name, arguments)
        for role in ("drafter", "target")
        if case.get("without", {}).get(role) != "all"
    ]
    facts += [measured_of(fields) for fields in case.get("measured", [])]
    facts += [SourceHit(within="", source=(Cite("grep"),), **hit) for hit in case.get("source_lines", [])]
    facts += [event_of(number, text) for number, text in enumerate(case.get("events", []), 1)]
    return facts


def event_of(number: int, text: str) -> LogEvent:
    """A line of a log as a case writes it: `kind`, or `kind name=value name=value`."""
    kind, *values = text.split()
    pairs = (value.partition("=") for value in values)
    return LogEvent(
        kind=kind,
        text=f"a line about {kind}",
        line=number,
        values=tuple((name, value) for name, _, value in pairs),
        run="log",
        source=(Cite("log", f"line {number}"),),
    )


def measured_of(fields: dict[str, Any]) -> Fact:
    """A fact of a commit probe as a case writes it: its type, and the fields that matter."""
    given: dict[str, Any] = {
        name: tuple(v) if isinstance(v, list) else v for name, v in fields.items() if name != "type"
    }
    kind = MEASURED[fields["type"]]
    defaults: dict[str, dict[str, Any]] = {
        "CommitSetup": {"engine": "sglang", "base": "http://127.0.0.1:30000", "ceiling": 8},
        "CommitRequest": {
            "key": "r",
            "purpose": "point",
            "arm": "repeat",
            "context_tokens": 1024,
            "prompt": 0,
        },
        "CommitPoint": {"arm": "repeat", "context_tokens": 1024, "ceiling": 8},
        "Claim": {"origin": "/server_info avg_spec_accept_length", "window": "lifetime"},
        "Acceptance": {"origin": "/metrics", "window": "lifetime"},
        "DecodeSeries": {"engine": "sglang", "lines": 40},
        "PlainSpeed": {},
    }
    if "accounts" in given:
        given["accounts"] = tuple(Account(**account) for account in given["accounts"])
    return kind(**{"source": (Cite("answer"),), **defaults.get(kind.__name__, {}), **given})


def changed(case: dict[str, Any], part: str) -> dict[str, Any]:
    left_out = case.get("without", {}).get(part, [])
    return {
        name: value
        for name, value in {**BASE[part], **(case.get(part) or {})}.items()
        if name not in left_out
    }


def config_of(case: dict[str, Any], role: str, server: str, arguments: dict[str, Any]) -> ModelConfig:
    read = model_config.read(changed(case, role), arguments.get("json_model_override_args"))
    beside = {**BASE["beside"], **(case.get("beside") or {})}
    special = beside.pop("special_token_ids")
    mine = {name: tuple(value) if isinstance(value, list) else value for name, value in beside.items()}
    names = case.get("tensors_from", "header")
    sources = (Cite(f"{role}-config", "$"), Cite(f"{role}-files", "files"), Cite(f"{role}-{names}", names))
    if role == "target":
        known = {
            "path": "/models/target/config.json",
            "special_token_ids": tuple(special) if special else None,
            "tensors": tuple(case["target_tensors"]) if "target_tensors" in case else None,
        }
        return ModelConfig.of(read.fields, read.rope, role=role, server=server, source=sources, **known)
    mine["tensors"] = tensors(case.get("tensors"))
    return ModelConfig.of(read.fields, read.rope, role=role, server=server, source=sources, **mine)


def tensors(which: str | list[str] | None) -> tuple[str, ...] | None:
    """Names as a DFlash checkpoint of five layers holds them, or those of the case."""
    if which is None or isinstance(which, list):
        return tuple(which) if which is not None else None
    parts = (
        "input_layernorm", "post_attention_layernorm", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
        "self_attn.o_proj", "self_attn.q_norm", "self_attn.k_norm", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj",
    )  # fmt: skip
    layers = range(4 if which == "without layer 4" else 5)
    names = [f"layers.{layer}.{part}.weight" for layer in layers for part in parts]
    return (*names, "fc.weight", "hidden_norm.weight", "norm.weight")


def _replace_server(config: ModelConfig) -> ModelConfig:
    return replace(config, server="")


def test_a_fault_in_one_lint_costs_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = facts_of({"lint": "DC01", "when": "as published"})
    before = {finding.id: finding.outcome for finding in lints.judge(facts)}
    broken = table.find("DC02")
    assert broken is not None

    def fault(_served: object) -> None:
        raise ZeroDivisionError("boom")

    faulty = tuple(replace(lint, judge=fault) if lint is broken else lint for lint in table.LINTS)
    monkeypatch.setattr(table, "LINTS", faulty)
    after = {finding.id: finding for finding in lints.judge(facts)}
    assert {id: f.outcome for id, f in after.items()} == before | {"DC02": Outcome.UNKNOWN}
    assert "ZeroDivisionError: boom" in after["DC02"].summary
