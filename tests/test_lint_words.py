"""What a finding says of several things, which places it cites, and which numbers it hands on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ddprobe import lints
from ddprobe.facts import Claim, LogEvent, ModelConfig
from ddprobe.model import Cite, Fact, Finding, Outcome
from tests.test_lints import facts_of, measured_of


def one(id: str, facts: list[Fact]) -> Finding:
    (finding,) = [finding for finding in lints.judge(facts) if finding.id == id]
    return finding


@pytest.mark.parametrize(
    ("contexts", "listed"),
    [
        ([1, 2], "9 of repeat at 1, 9 of repeat at 2"),
        ([1, 2, 3, 4], "9 of repeat at 1, 9 of repeat at 2, 9 of repeat at 3, 9 of repeat at 4"),
        (
            [1, 2, 3, 4, 5],
            "9 of repeat at 1, 9 of repeat at 2, 9 of repeat at 3, 9 of repeat at 4 and 1 more",
        ),
        (
            [1, 2, 3, 4, 5, 6],
            "9 of repeat at 1, 9 of repeat at 2, 9 of repeat at 3, 9 of repeat at 4 and 2 more",
        ),
    ],
)
def test_four_points_are_listed_and_the_rest_is_counted(contexts: list[int], listed: str) -> None:
    points = [measured_of({"type": "CommitPoint", "context_tokens": each, "steps": 9}) for each in contexts]
    assert one("RT08", points).summary == f"fewer than 64 steps: {listed}"


@pytest.mark.parametrize("known", ["commit_mean", "step_ms", "tok_s"])
def test_a_point_of_which_anything_is_stated_had_steps_however_many(known: str) -> None:
    points = [
        measured_of({"type": "CommitPoint", "context_tokens": c, "steps": 0, known: 8.0}) for c in (1, 2)
    ]
    found = one("RT08", points)
    assert found.outcome is Outcome.UNKNOWN
    assert found.summary == "nobody says how many steps are behind repeat at 1, repeat at 2"


def test_a_point_of_which_nothing_is_stated_had_none() -> None:
    found = one("RT08", [measured_of({"type": "CommitPoint", "context_tokens": 1, "steps": 0})])
    assert (found.outcome, found.summary) == (Outcome.WARN, "fewer than 64 steps: 0 of repeat at 1")


# --- pairs that one source states -------------------------------------------------------------------------


def claim(what: str, value: float, *source: Cite) -> Claim:
    return Claim(what=what, value=value, origin="/server_info x", window="lifetime", source=source)


def paired(first: tuple[Cite, ...], second: tuple[Cite, ...]) -> bool:
    """Whether a depth of 3 and a commit of 1 at these places are held against each other."""
    stated = [claim("accepted depth", 3.0, *first), claim("commit length", 1.0, *second)]
    return any(finding.id == "RT01" for finding in lints.judge(stated))


def test_two_fields_of_one_object_are_of_the_same_steps() -> None:
    depth, length = "$.internal_states[0].depth", "$.internal_states[0].commit"
    assert paired((Cite("a", depth),), (Cite("a", length),))
    assert paired((Cite("a", "line 1"), Cite("a", depth)), (Cite("a", "line 1"), Cite("a", length)))
    assert paired((), ())


def test_fields_of_two_objects_are_not() -> None:
    here, there = Cite("a", "$.internal_states[0].depth"), Cite("a", "$.internal_states[1].commit")
    assert not paired((here,), (there,))
    assert not paired((Cite("a", "line 1"), here), (Cite("a", "line 1"), there))
    assert not paired((here, Cite("a", "line 1")), (there, Cite("a", "line 1")))
    assert not paired((Cite("a", "$.depth"),), (Cite("b", "$.commit"),))
    assert not paired((Cite("a", "$.depth"),), ())


# --- places and numbers -----------------------------------------------------------------------------------


def test_a_length_that_ends_before_the_context_is_handed_on() -> None:
    events: list[Fact] = [
        LogEvent(kind="max_model_len", text="", run="log", values=(("length", length),))
        for length in ("1048576", "262144")
    ]
    assert dict(one("DC35", events).measured) == {"drafter": 262144, "served": 1048576}


OWN: dict[str, Any] = {
    "without": {
        "drafter": "all",
        "arguments": ["speculative_draft_model_path", "speculative_num_draft_tokens"],
    },
    "arguments": {"speculative_algorithm": "EAGLE"},
    "target": {"num_nextn_predict_layers": 1},
    "target_tensors": ["lm_head.weight"],
}


def test_missing_layers_are_cited_where_the_tensors_were_read() -> None:
    header, index = Cite("target-header", "header"), Cite("target-index", "index")
    found = one("DC28", facts_of(OWN))
    assert header in found.cites
    assert dict(found.measured) == {"announced": 1, "tensors": 0}
    indexed = [
        replace(fact, source=(*fact.source, index)) if isinstance(fact, ModelConfig) else fact
        for fact in facts_of(OWN)
    ]
    cited = one("DC28", indexed).cites
    assert index in cited
    assert header not in cited


def test_a_gamma_is_cited_where_it_was_taken_from() -> None:
    dspark: dict[str, Any] = {
        "drafter": {"architectures": ["Qwen3DSparkModel"], "block_size": 7},
        "arguments": {"speculative_algorithm": "DSPARK", "speculative_num_draft_tokens": 9},
    }
    command = Cite("cmdline-41", "--speculative-num-draft-tokens")
    assert one("DC12", facts_of(dspark)).cites == (Cite("drafter-config", "$.block_size"), command)
    dspark["arguments"]["speculative_dspark_block_size"] = 7
    asked = Cite("cmdline-41", "--speculative-dspark-block-size")
    assert one("DC12", facts_of(dspark)).cites == (asked, command)


def test_an_amplitude_is_handed_on_with_four_digits() -> None:
    scaling = {
        "rope_type": "yarn", "factor": 64.0, "original_max_position_embeddings": 4096, "mscale": 1.0, "mscale_all_dim": 1.0,
    }  # fmt: skip
    found = one("DC32", facts_of({"drafter": {"rope_scaling": scaling}, "version": "0.5.12"}))
    assert dict(found.measured) == {"amplitude": 1.4159}


def test_the_line_that_reads_a_base_flat_is_cited() -> None:
    case: dict[str, Any] = {
        "source_lines": [{"path": "/opt/draft_model.py", "line": 118, "text": "theta = config.rope_theta"}]
    }
    assert Cite("grep", "/opt/draft_model.py:118") in one("DC39", facts_of(case)).cites


@pytest.mark.parametrize("seen", [True, False])
def test_a_pair_without_a_server_may_raise_or_be_overridden(seen: bool) -> None:
    facts = facts_of({"drafter": {"max_position_embeddings": 4096}, "environment_seen": seen})
    pair: list[Fact] = [replace(fact, server="") for fact in facts if isinstance(fact, ModelConfig)]
    assert "or overrides it in silence where" in one("DC35", pair).summary
