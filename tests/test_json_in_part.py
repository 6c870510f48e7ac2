"""JSON whose end is missing: what stands whole before the cut counts, and nothing else does."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ddprobe import evidence, lints, verdicts
from ddprobe.evidence.document import of_bytes
from ddprobe.facts import ServerArgs
from ddprobe.parsing import json_in_part

INFO: dict[str, Any] = {
    "model_path": "/m",
    "tp_size": 8,
    "attention_backend": "triton",
    "speculative_algorithm": "DFLASH",
    "speculative_draft_model_path": "/d",
    "speculative_num_draft_tokens": 16,
    "context_length": 262144,
    "disable_cuda_graph": True,
    "served_model_name": 'a "quoted" name, with a comma',
    "cuda_graph_bs": [1, 2, 4],
    "internal_states": [{"avg_spec_accept_length": 2.5, "last_gen_throughput": 90.0}],
    "version": "0.5.23",
}


def cuts(text: str) -> list[int]:
    return list(range(1, len(text)))


@pytest.mark.parametrize("indent", [None, 2])
def test_wherever_it_is_cut_only_whole_fields_are_read(indent: int | None) -> None:
    text = json.dumps(INFO, indent=indent)
    names = list(INFO)
    for cut in cuts(text):
        found = json_in_part.fields(text[:cut]) or {}
        assert list(found) == names[: len(found)]
        assert all(INFO[name] == value for name, value in found.items()), text[:cut][-40:]
    whole = json_in_part.fields(text[:-1].rstrip()) or {}
    assert list(whole) == names


@pytest.mark.parametrize(
    "text",
    ["", "{", "{}", '{"a": 1}', "[1, 2", '{"a"', '{"a": ', '{"a": 1', '{"a": tru', "{'a': 1,", '{1: 2, "a": 3, ', "x", "[" * 9000, '{"a": ' * 9000],
)  # fmt: skip
def test_what_is_whole_or_no_object_has_no_fields(text: str) -> None:
    assert json_in_part.fields(text) is None


def test_a_string_at_the_very_end_is_whole_and_a_number_is_not() -> None:
    assert json_in_part.fields('{"a": "b"') == {"a": "b"}
    assert json_in_part.fields('{"a": "b", "n": 1638') == {"a": "b"}
    assert json_in_part.fields('{"a": "b", "n": 1638,') == {"a": "b", "n": 1638}


def test_a_field_that_is_nested_too_deep_ends_the_reading() -> None:
    for depth in (300, 900, 90_000):
        assert json_in_part.fields('{"a": 1, "b": ' + "[" * depth + "]" * depth + ', "c": 2, "d"') == {"a": 1}
    fits = json_in_part.fields('{"b": ' + "[" * 200 + "]" * 200 + ', "c": 2, "d"')
    assert fits is not None
    assert list(fits) == ["b", "c"]


def arguments(text: str) -> tuple[list[str], list[ServerArgs]]:
    reading = evidence.recognise(of_bytes("x", text.encode()))
    assert not reading.troubles
    facts = [fact for found in reading.found for fact in found.facts]
    return [found.what for found in reading.found], [f for f in facts if isinstance(f, ServerArgs)]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("ending", ["", "\n", "...", "\n… [truncated]\n"])
def test_an_answer_that_is_cut_short_is_read_in_part_and_says_so(indent: int | None, ending: str) -> None:
    text = json.dumps(INFO, indent=indent)
    what, (args,) = arguments(text[: text.index('"served_model_name"') + 30] + ending)
    assert what == ["SGLang /server_info answer, cut off"]
    assert (args.engine, args.resolved, args.cut) == ("sglang", True, True)
    assert args.origin.endswith("cut off")
    assert args.get("speculative_num_draft_tokens") == 16
    assert args.get("disable_cuda_graph") is True
    assert args.get("served_model_name") is None


def test_what_stands_before_the_cut_is_judged() -> None:
    text = json.dumps(INFO)
    reading = evidence.recognise(of_bytes("x", text[: text.index('"served_model_name"')].encode()))
    facts = evidence.facts([reading])
    found = lints.judge(facts)
    assert {finding.id: finding.outcome.label for finding in found}["SA09"] == "fail"


def test_an_answer_cut_before_speculation_does_not_say_that_there_is_none() -> None:
    text = json.dumps(INFO)
    reading = evidence.recognise(of_bytes("x", text[: text.index('"speculative_algorithm"')].encode()))
    facts = evidence.facts([reading])
    (verdict,) = verdicts.judge_collected(facts, lints.judge(facts))
    assert verdict.name == "inconclusive"
    assert "the rest of the server's arguments: they are not whole" in verdict.missing


def test_llama_cpp_is_cut_short_too() -> None:
    props = json.dumps(
        {"default_generation_settings": {"n_ctx": 4096}, "total_slots": 1, "model_path": "/m.gguf"}
    )
    reading = evidence.recognise(of_bytes("x", props[:-9].encode()))
    assert [found.what for found in reading.found] == ["llama.cpp /props answer, cut off"]


@pytest.mark.parametrize(
    "text", ['{"points": [{"a": 1}], "b": 2', '{"log": "x", "tp_size": 8, ', '{"model_type": "qwen3", "a']
)
def test_other_json_that_is_cut_is_no_answer(text: str) -> None:
    assert arguments(text)[1] == []
