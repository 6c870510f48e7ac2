"""What every probe promises, held by reflection."""

from __future__ import annotations

import dataclasses
import inspect
import sys

import pytest

from ddprobe import probes, readonly
from ddprobe.errors import Unanswered, UsageError
from ddprobe.model import Evidence, Fact, Finding, Gap, Host, Probe
from tests import recorded

ALL = probes.names()


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
        instance = probe(**{s.name: "x" for s in probes.settings(probe) if s.default is dataclasses.MISSING})
        with pytest.raises(dataclasses.FrozenInstanceError):
            instance.anything = 1  # type: ignore[attr-defined]

    def test_first_questions_pass_the_policy(self, name: str) -> None:
        probe = _made(name)
        first = next(probe.collect(Host(name="gpu1")))
        for question in first if isinstance(first, tuple) else (first,):
            readonly.check(question)

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

    def test_defines_the_three_halves_itself(self, name: str) -> None:
        probe = probes.load(name)
        for method in ("collect", "interpret", "show"):
            assert getattr(probe, method) is not getattr(Probe, method)
        assert inspect.isgeneratorfunction(probe.collect)


def _made(name: str) -> Probe:
    probe = probes.load(name)
    return probe(**{s.name: "x" for s in probes.settings(probe) if s.default is dataclasses.MISSING})
