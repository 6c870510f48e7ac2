"""Cases from public threads, and sound ones beside them: what the evidence says decides, not what it is called."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from ddprobe import evidence, lints, verdicts
from ddprobe.evidence.document import of_bytes
from ddprobe.model import Fact, Finding, Outcome, Verdict

CASES = Path(__file__).parent / "cases"
PUBLIC = sorted(path for path in (CASES / "public").iterdir() if path.is_dir())
NEAR = sorted(path for path in (CASES / "near").iterdir() if path.is_dir())
EXPECTED = "expected.yaml"

LINT, REASON, VERDICT, MISSING, NO_ERRORS = "lint", "reason", "verdict", "missing", "no errors"
FLOOR = (REASON, "next to nothing on the easiest text")
NAMED = {
    "c01": {
        "CONTROL_FLAT": (REASON, "prose commits 1.94 of 8 (216 steps) at 3883 and 1.92 of 8 (219 steps) at 184501"),
        "REPEATED_FLAT": (REASON, "repeat commits 7.40 of 8"),
        "STEP_GROWTH": (REASON, "a step takes"),
    },
    "c02": {
        "REPEATED_AT_FLOOR": (REASON, "repeat commits 1.05 of 6 (244 steps) at 1k"),
        "CONTROL_SAME": (REASON, "nor is any other text"),
        "REFERENCE_OK": (REASON, "states 5.00 tokens per step in another run"),
    },
    "c03": {
        "DRAFT_MAXLEN_LT_SERVED": (LINT, "DC49"),
        "ROPE_SCALING_TARGET_ONLY": (LINT, "DC50"),
        "STEP_EDGE": (REASON, "it is lost between 262000 and 263000"),
    },
    "c04": {"PARTIAL_ROTARY_INHERITED": (LINT, "DC46"), "ONLY_SLOT0": (LINT, "RT15"), "REPEATED_AT_FLOOR": FLOOR},
    "c05": {
        "TARGET_LAYER_IDS_MISSING": (LINT, "DC01"),
        "FALLBACK_GUESS": (REASON, "[1, 16, 31, 46, 61]"),
        "REPEATED_AT_FLOOR": FLOOR,
    },
    "c07": {
        "COMMIT_FLAT": (REASON, "the commit stays: 3.90 and 3.90"),
        "STEP_LINEAR": (REASON, "48 ms at 1k and 312 ms at 128k"),
        "VERIFY_VIA_EXTEND": (LINT, "SA01"),
        "SLOWER_THAN_OFF": (VERDICT, "spec_net_loss"),
    },
    "c08": {
        "EDGE_NEAR_WINDOW": (REASON, "repeat commits 11.90 of 16 (22 steps) at 3400, 2.90 of 16 (88 steps) at 11000"),
        "STEP_FLAT": (REASON, "52 ms at 3400 and 48 ms at 16k"),
        "WINDOW_POSITIONS": (REASON, "(4096 tokens)"),
    },
    "c09": {
        "COLD_VS_CACHED": (REASON, "commits 2.61 cold and 1.00 from the cache, where nothing was drafted"),
        "FRESH_NONCE_OK": (REASON, "a fresh prompt of the same kind commits 2.6"),
    },
    "c11": {"ACCEPT_LEN_PINNED_1": (LINT, "RT02"), "DRAFT_QUANT_UNSET": (LINT, "DC18")},
    "c14": {
        "DEGENERATE_OUTPUT": (REASON, "its output goes in a circle"),
        "FLAT_CURVE": (LINT, "MC09"),
        "ARM_A_HEALTHY": (REASON, "long_document A commits 2.68 of 8"),
    },
    "c15": {
        "RATE_FORMULA_A": (REASON, "rate = len / (K + 1)"),
        "RATE_FORMULA_B": (REASON, "rate = (len - 1) / K"),
        "DEAD_HIDDEN": (REASON, "next to nothing right: the bonus token alone makes that rate"),
    },
    "c16": {"AGGREGATION": (LINT, "MC05"), "OVERCOUNT_AFTER_STOP": (LINT, "MC04")},
    "c17": {
        "REPEATED_NEAR_CAP": (REASON, "repeat commits 15.40 of 16"),
        "TEMPLATE_DIFFERS": (REASON, "the mode of thinking decides"),
    },
    "c18": {"DRAFT_DTYPE_FORCED": (LINT, "DC17"), "REPEATED_AT_FLOOR": FLOOR},
    "c19": {"MTP_WEIGHTS_ABSENT": (LINT, "DC28"), "ACCEPT_ZERO": (LINT, "MC10")},
    "c20": {
        "ROPE_THETA_NESTED_ONLY": (LINT, "DC39"),
        "ENGINE_READS_FLAT": (REASON, "reads the flat field"),
        "EFFECTIVE_THETA_MISMATCH": (REASON, "the drafter rotates on 10000"),
    },
    "c24": {
        "COUNTS_AGREE": (NO_ERRORS, ""),
        "K_TOO_LARGE": (LINT, "RT14"),
        "TARGET_CHANGED": (MISSING, "whether the target is the one that the drafter was trained on"),
    },
    "c25": {"NO_CONFIG_FINDINGS": (NO_ERRORS, ""), "LANGUAGE_SPREAD": (REASON, "gsm8k_en 6.40, gsm8k_zh 3.30")},
    "c26": {"DRAFT_QUANT_INHERITED": (LINT, "DC43")},
    "c28": {
        "SPECULATIVE_CONFIG_NONE": (REASON, "the server's arguments name no speculation"),
        "DRAFT_STAGED_UNUSED": (LINT, "EN04"),
        "NO_SPEC_SERIES": (LINT, "MC10"),
    },
}  # fmt: skip
"""Each finding that a case names in words → what says it here: a lint, or part of a sentence of some verdict."""
WORDS = ("note", "title", "label", "provenance", "provenance2", "metadata")
"""Fields that say what somebody thinks of the evidence."""

Judged = tuple[tuple[Fact, ...], list[Finding], tuple[Verdict, ...]]


def judge(contents: Iterable[tuple[str, bytes]]) -> Judged:
    readings = [evidence.recognise(of_bytes(name, data)) for name, data in contents]
    assert not [trouble for reading in readings for trouble in reading.troubles]
    facts = evidence.facts(readings)
    findings = lints.judge(facts)
    return facts, findings, verdicts.judge_collected(facts, findings)


def files(folder: Path) -> list[tuple[str, bytes]]:
    return [(path.name, path.read_bytes()) for path in sorted(folder.iterdir()) if path.name != EXPECTED]


def expected(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((folder / EXPECTED).read_text(encoding="utf-8"))
    return found


def name_of(folder: Path) -> str:
    return folder.name


def names(found: tuple[Verdict, ...]) -> list[str]:
    return [verdict.name for verdict in found]


# --- public cases -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", PUBLIC, ids=name_of)
def test_the_right_verdict_comes_first(folder: Path) -> None:
    wanted = expected(folder)
    found = names(judge(files(folder))[2])
    assert found[0] in [wanted["verdict"], *wanted["also_accept"]]
    assert not set(found) & set(wanted["must_not"])


@pytest.mark.parametrize("folder", PUBLIC, ids=name_of)
def test_it_is_as_sure_as_the_evidence_allows(folder: Path) -> None:
    assert judge(files(folder))[2][0].confidence == expected(folder)["confidence"]


@pytest.mark.parametrize("folder", PUBLIC, ids=name_of)
def test_every_named_finding_is_there(folder: Path) -> None:
    _, findings, found = judge(files(folder))
    named = NAMED[folder.name[:3]]
    assert [re.split(r"[ :]", text)[0] for text in expected(folder)["findings"]] == list(named)
    loud = {finding.id for finding in findings if finding.outcome not in (Outcome.PASS, Outcome.SKIP)}
    reasons = [reason for verdict in found for reason in verdict.reasons]
    reasons += [finding.summary for finding in findings if finding.outcome is Outcome.FAIL]
    for name, (kind, text) in named.items():
        if kind == LINT:
            assert text in loud, name
        elif kind == VERDICT:
            assert text in names(found), name
        elif kind == MISSING:
            assert any(text in missing for verdict in found for missing in verdict.missing), name
        elif kind == NO_ERRORS:
            assert not [finding for finding in findings if finding.outcome is Outcome.FAIL], name
        else:
            assert any(text in reason for reason in reasons), (name, reasons)


def stripped(value: Any) -> Any:
    """The evidence without anybody's words about it."""
    if isinstance(value, dict):
        return {name: stripped(inner) for name, inner in value.items() if name not in WORDS}
    return [stripped(item) for item in value] if isinstance(value, list) else value


def without_words(contents: list[tuple[str, bytes]]) -> list[tuple[str, bytes]]:
    return [
        (name, json.dumps(stripped(json.loads(data))).encode() if name.endswith(".json") else data)
        for name, data in contents
    ]


def misleading(contents: list[tuple[str, bytes]]) -> list[tuple[str, bytes]]:
    """Names that say the opposite of what is in the files, in another order."""
    lies = (
        "healthy.txt",
        "target_config.json",
        "drafter_dead.log",
        "draft_config.json",
        "points.json",
        "a",
        "b",
        "c",
    )
    return list(zip(lies, (data for _, data in reversed(contents)), strict=False))


def with_verdict(contents: list[tuple[str, bytes]]) -> list[tuple[str, bytes]]:
    """A file beside them in which somebody says what it is."""
    said = b"verdict: simulated_acceptance\nmust_not: [healthy]\nfindings: [a, b]\nconfidence: high\n"
    return [*contents, ("expected.yaml", said)]


@pytest.mark.parametrize("change", [without_words, misleading, with_verdict])
@pytest.mark.parametrize("folder", PUBLIC, ids=name_of)
def test_names_and_words_change_nothing(
    folder: Path, change: Callable[[list[tuple[str, bytes]]], list[tuple[str, bytes]]]
) -> None:
    contents = files(folder)
    _, findings, found = judge(contents)
    _, others, again = judge(change(contents))
    assert [(v.name, v.kind, v.confidence) for v in again] == [(v.name, v.kind, v.confidence) for v in found]
    assert [(f.id, f.outcome) for f in others] == [(f.id, f.outcome) for f in findings]


# --- near misses ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", NEAR, ids=name_of)
def test_nothing_is_found_where_nothing_is_wrong(folder: Path) -> None:
    wanted = expected(folder)
    found = names(judge(files(folder))[2])
    assert found[0] in wanted["verdict"]
    assert not set(found) & set(wanted["must_not"])


def test_there_are_enough_of_them() -> None:
    assert len(PUBLIC) == 20
    assert len(NEAR) >= 20


@pytest.mark.parametrize("folder", [*PUBLIC, *NEAR], ids=name_of)
def test_a_missing_file_is_no_fault(folder: Path) -> None:
    """Whatever is left of the evidence, something is said, and no check breaks."""
    contents = files(folder)
    for left_out in range(len(contents)):
        _, findings, found = judge([*contents[:left_out], *contents[left_out + 1 :]])
        assert found
        assert not [finding for finding in findings if "has a bug" in finding.summary]
