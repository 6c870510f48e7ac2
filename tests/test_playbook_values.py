"""References become values of their types; what is not known says why; `--set` is typed, and tells all its mistakes."""

from __future__ import annotations

from typing import Any

import pytest

from ddprobe.errors import Unanswered, UsageError
from ddprobe.facts import SourceHit, SourceSearch
from ddprobe.model import Finding, Host, Outcome, StepRecord, Verdict
from ddprobe.playbook import Playbook, PlaybookStep, Reference
from ddprobe.playbookfile.load import understand
from ddprobe.playbookfile.values import Scope, StepResult, probe_for, resolve, set_vars, settings_for
from ddprobe.probes.draft.commit import DraftCommit
from ddprobe.probes.source.read import SourceRead

FIND = StepResult(id="find", status="done", output={"hits": 3, "ranges": ("a.py:1-9", "b.py:4"), "none": ()})
SCOPE = Scope(
    vars={"lengths": (1024, 4096), "word": "commit", "unset": None},
    host=Host(name="gpu1", drafter="/models/d", tags=("lab",)),
    steps={
        "find": FIND,
        "gone": StepResult(id="gone", status="skipped", reasons=("find: hits is 0",)),
        "half": StepResult(id="half", status="incomplete", reasons=("cat: timed out", "b", "c")),
        "never": StepResult(id="never", status="not_run", reasons=("the host was lost",)),
    },
)
RANGES = Reference("steps", "find", "ranges")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("plain", "plain"),
        (7, 7),
        (Reference("vars", "lengths"), (1024, 4096)),
        (Reference("vars", "word"), "commit"),
        (Reference("host", "drafter"), "/models/d"),
        (Reference("host", "tags"), ("lab",)),
        (RANGES, ("a.py:1-9", "b.py:4")),
        (Reference("steps", "find", "none"), ()),
        (Reference("steps", "find", "hits"), 3),
        (("c.py:1", RANGES), ("c.py:1", "a.py:1-9", "b.py:4")),
    ],
)
def test_references_are_resolved_with_their_types(value: Any, expected: Any) -> None:
    found = resolve(value, SCOPE)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        (Reference("vars", "unset"), "the var 'unset' is not set"),
        (Reference("host", "target"), "nothing is known beforehand of the host's 'target'"),
        (Reference("steps", "find", "url"), "the step 'find' did not find it, so there is no 'url'"),
        (
            Reference("steps", "gone", "hits"),
            "the step 'gone' was skipped: find: hits is 0, so there is no 'hits'",
        ),
        (
            Reference("steps", "half", "hits"),
            "the step 'half' got no whole answer: cat: timed out; b, so there is no 'hits'",
        ),
        (
            Reference("steps", "never", "hits"),
            "the step 'never' did not run: the host was lost, so there is no 'hits'",
        ),
        (Reference("steps", "later", "hits"), "the step 'later' is not over"),
    ],
)
def test_what_is_not_known_says_why(reference: Reference, reason: str) -> None:
    with pytest.raises(Unanswered) as caught:
        resolve(("beside", reference), SCOPE)
    assert (caught.value.key, caught.value.reason) == (str(reference), reason)


def step(probe: str, **given: Any) -> PlaybookStep:
    return PlaybookStep(id="s", probe=probe, given=tuple(given.items()))


def test_settings_have_the_probe_s_own_types() -> None:
    commit = step("draft.commit", contexts=Reference("vars", "lengths"), steps="1k", request_timeout="2m")
    assert settings_for(commit, SCOPE) == {"contexts": "1024,4096", "steps": 1024, "request_timeout": 120.0}
    assert probe_for(commit, SCOPE) == DraftCommit(contexts="1024,4096", steps=1024, request_timeout=120.0)
    read = step("source.read", places=RANGES)
    assert probe_for(read, SCOPE) == SourceRead(places=("a.py:1-9", "b.py:4"))


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (
            step("source.grep", pattern="x", context=Reference("vars", "word")),
            "context must be a whole number, not 'commit'",
        ),
        (step("source.grep", pattern=RANGES), "pattern must be text (put it in quotes), not a list"),
        (
            step("draft.commit", contexts=("1,2", "3")),
            "contexts holds '1,2': a comma separates the values of this setting",
        ),
        (step("draft.commit", steps=Reference("steps", "find", "zero")), "steps: 0 is out of bounds"),
        (
            step("source.read", places=Reference("steps", "find", "none")),
            "neither a file nor places are asked for",
        ),
    ],
)
def test_what_a_probe_cannot_be_asked_is_not_known(asked: PlaybookStep, reason: str) -> None:
    find = StepResult(id="find", status="done", output={**FIND.output, "zero": 0})
    with pytest.raises(Unanswered) as caught:
        probe_for(asked, Scope(vars=SCOPE.vars, steps={"find": find}))
    assert caught.value.reason.startswith(reason)


def finding(outcome: Outcome, id: str = "x") -> Finding:
    return Finding(id=id, outcome=outcome, subject="s", summary="s")


@pytest.mark.parametrize(
    ("status", "outcomes", "expected"),
    [
        ("done", (), Outcome.INFO),
        ("done", (Outcome.PASS,), Outcome.PASS),
        ("done", (Outcome.PASS, Outcome.WARN), Outcome.WARN),
        ("incomplete", (Outcome.WARN,), Outcome.UNKNOWN),
        ("incomplete", (Outcome.FAIL,), Outcome.FAIL),
        ("skipped", (), Outcome.SKIP),
        ("not_run", (), Outcome.UNKNOWN),
    ],
)
def test_a_step_s_outcome(status: str, outcomes: tuple[Outcome, ...], expected: Outcome) -> None:
    record = StepRecord(id="s", probe="engine.server", host="a", status=status)
    assert StepResult.of(record, [finding(one) for one in outcomes]).outcome is expected


def test_a_step_s_result_from_its_record() -> None:
    search = SourceSearch(
        pattern="commit", glob="*", package="/p", version="0.5.6", host="a",
        files=9, files_searched=9, files_hit=1, hits=2, cut=False, proposals=("a.py:1-9",),
    )  # fmt: skip
    hits = tuple(SourceHit(path="a.py", line=n, text="commit", within="f") for n in (3, 4))
    record = StepRecord(id="find", probe="source.grep", host="a", status="done", facts=(search, *hits))
    result = StepResult.of(
        record,
        [finding(Outcome.INFO, "i"), finding(Outcome.WARN, "w"), finding(Outcome.FAIL, "f")],
        [Verdict(name="healthy")],
    )
    assert result == StepResult(
        id="find",
        status="done",
        outcome=Outcome.FAIL,
        verdicts=("healthy",),
        findings=("w", "f"),
        output={
            "hits": 2,
            "files": ("a.py",),
            "ranges": ("a.py:1-9",),
            "within": ("f",),
            "version": "0.5.6",
        },
    )


def test_a_probe_of_another_version_gives_nothing() -> None:
    record = StepRecord(id="s", probe="engine.later", host="a", status="done")
    assert StepResult.of(record, []).output == {}


BOOK = b"""\
name: book
about: So?
vars:
  lengths: {type: sizes, default: [1k], help: lengths}
  steps: {type: int, default: 64, help: verify steps}
  cold: {type: bool, default: false, help: cold}
  word_one: {type: text, help: a word}
  names: {type: list, default: repeat, help: arms}
  share: {type: number, default: 0.5, help: a share}
  wait: {type: duration, default: 25, help: seconds}
  longest: {type: size, default: 64k, help: longest}
steps:
  - id: grep
    probe: source.grep
    with: {pattern: "${vars.word_one}"}
  - id: commit
    probe: draft.commit
    with:
      contexts: ${vars.lengths}
      steps: ${vars.steps}
      cold: ${vars.cold}
      arms: ${vars.names}
      request_timeout: ${vars.wait}
      max_context: ${vars.longest}
expect:
  - {about: it pays, step: commit, field: commit_lowest, at_least: "${vars.share}"}
"""


@pytest.fixture(scope="module")
def book() -> Playbook:
    return understand(BOOK, "book.yaml")


def test_set_is_typed(book: Playbook) -> None:
    words = (
        "lengths=1k, 16k", "steps=2k", "cold=true", "word-one=a=b", "names=prose,chat", "share=1e-1", "wait=1.5m",
        "longest=1m",
    )  # fmt: skip
    assert set_vars(book, words) == {
        "lengths": (1024, 16384),
        "steps": 2048,
        "cold": True,
        "word_one": "a=b",
        "names": ("prose", "chat"),
        "share": 0.1,
        "wait": 90.0,
        "longest": 1024 * 1024,
    }


def test_without_set_the_defaults_hold(book: Playbook) -> None:
    found = set_vars(book, ["word_one=x", "lengths="])
    assert (found["word_one"], found["lengths"], found["longest"]) == ("x", (), 65536)


def test_all_mistakes_of_set_at_once(book: Playbook) -> None:
    with pytest.raises(UsageError) as caught:
        set_vars(book, ["lengths=1k,many", "stesp=3", "cold", "steps=1.5", "share=nan", "wait=0"])
    assert caught.value.message.splitlines() == [
        "--set lengths: must be a size (4096, 16k, 1.5k, 1m), not 'many'",
        "book has no var 'stesp' (did you mean 'steps'?); it has lengths, steps, cold, word_one, names, share, wait, "
        "longest",
        "--set 'cold' has no value: write --set name=value",
        "--set steps: must be a whole number, not '1.5'",
        "--set share: must be a number, not nan",
        "--set wait: must be a duration (25, 1.5s, 2m, 1h), not '0'",
        "book needs the var 'word_one' (a word): add --set word_one=…",
    ]


def test_what_set_makes_impossible_is_told_before_anything_runs(book: Playbook) -> None:
    with pytest.raises(UsageError) as caught:
        set_vars(book, ["word_one=a(b", "steps=0", "names=prosa"])
    first, steps, arms = caught.value.message.splitlines()
    assert first.startswith("grep: pattern: in the pattern 'a(b', at character 2: this ( is never closed")
    assert steps == "commit: steps: 0 is out of bounds: from 1 to 100000"
    assert arms.startswith("commit: arms: there is no arm 'prosa': there are repeat,")
