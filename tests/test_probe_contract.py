"""What every probe promises, held by reflection."""

from __future__ import annotations

import dataclasses
import inspect
import sys

import pytest

from ddprobe import probes, readonly
from ddprobe.errors import Unanswered, UsageError
from ddprobe.model import Begin, End, Evidence, Fact, Finding, Gap, Host, Probe
from tests import recorded

ALL = probes.names()
ONE_OF = {"source.read": {"file": "x"}}
"""What a probe needs that takes one of several settings."""


def test_there_are_probes_and_names_are_paths() -> None:
    assert {"source.grep", "source.read", "draft.config", "engine.server", "host.reach"} <= set(ALL)
    for name in ALL:
        assert probes.load(name).name() == name


def test_an_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(UsageError) as caught:
        probes.load("source.gerp")
    assert "source.grep" in caught.value.advice


@pytest.mark.parametrize("name", ALL)
class TestEveryProbe:
    def test_docstring_opens_with_its_question(self, name: str) -> None:
        module = sys.modules[probes.load(name).__module__]
        assert module.__doc__ is not None
        assert module.__doc__.strip().splitlines()[0].rstrip().endswith("?")

    def test_settings_are_typed_documented_and_frozen(self, name: str) -> None:
        probe = probes.load(name)
        for setting in probes.settings(probe):
            assert setting.help, f"{name}.{setting.name} has no help"
        instance = _made(name)
        with pytest.raises(dataclasses.FrozenInstanceError):
            instance.anything = 1  # type: ignore[attr-defined]

    def test_first_questions_pass_the_policy(self, name: str) -> None:
        probe = _made(name)
        first = next(probe.collect(Host(name="gpu1")))
        for question in first if isinstance(first, tuple) else (first,):
            assert not isinstance(question, End)
            readonly.check(question.command if isinstance(question, Begin) else question)

    def test_knows_nothing_from_nothing(self, name: str) -> None:
        """Interpreting an empty transcript gives no pass: an `Unanswered`, a gap, or no finding that is good."""
        told = []
        try:
            told = list(_made(name).interpret(Evidence(Host(name="gpu1"))))
        except Unanswered:
            return
        assert all(isinstance(item, Fact | Finding | Gap) for item in told)
        good = [i for i in told if isinstance(i, Finding) and i.outcome.label == "pass"]
        assert not good
        assert any(isinstance(item, Gap) for item in told) or not told

    def test_has_a_good_recording_and_one_that_cannot_answer(self, name: str) -> None:
        family, short = name.split(".")
        mine = [recorded.load(p) for p in recorded.recordings() if p.parts[-3:-1] == (family, short)]
        assert any(not content["expect"].get("gaps") for content in mine), "no good recording"
        assert any(content["expect"].get("gaps") for content in mine), (
            "no recording of a host that cannot answer"
        )

    def test_outputs_are_told_and_nothing_comes_of_nothing(self, name: str) -> None:
        probe = probes.load(name)
        found = probe.output((), ())
        assert set(found) <= set(probe.outputs)
        assert set(found.values()) <= {None}
        assert all(about.strip() for about in probe.outputs.values())

    def test_what_is_right_is_no_mistake(self, name: str) -> None:
        probe = probes.load(name)
        defaults = {s.name: s.default for s in probes.settings(probe) if s.default is not dataclasses.MISSING}
        assert list(probe.mistakes({})) == []
        assert list(probe.mistakes(defaults)) == []

    def test_defines_the_three_halves_itself(self, name: str) -> None:
        probe = probes.load(name)
        for method in ("collect", "interpret", "show"):
            assert getattr(probe, method) is not getattr(Probe, method)
        assert inspect.isgeneratorfunction(probe.collect)


def _made(name: str) -> Probe:
    probe = probes.load(name)
    required = {s.name: "x" for s in probes.settings(probe) if s.default is dataclasses.MISSING}
    return probe(**(ONE_OF.get(name) or required))
