"""A playbook's file as nouns: values of their kinds, references in their place, steps in an order that can be run."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from ddprobe.errors import PlaybookError
from ddprobe.model import Outcome
from ddprobe.playbook import Condition, Expectation, Place, Playbook, PlaybookStep, Reference, Var, references
from ddprobe.playbookfile import shelf
from ddprobe.playbookfile.load import load, understand

BOOK = """\
name: story
about: |
  Does it hold
  at length?

  More of it.
vars:
  lengths: {type: sizes, default: [1k, 16384], help: "lengths\\n to measure"}
  least: {type: number, default: 2, help: least commit length}
  word: {type: text, help: what to search for}
  wait: {type: duration, default: 2m, help: how long a request may take}
  cold: {type: bool, default: false, help: without the prefix cache}
hypotheses: [positions, text_hard]
steps:
  - id: read
    probe: source.read
    needs: grep
    with: {places: ["a.py:1-2", "${steps.grep.ranges}"]}
  - id: grep
    probe: source.grep
    with:
      pattern: ${vars.word}
      limit: 1k
  - id: commit
    probe: draft.commit
    when:
      - step: grep
        field: hits
        at_least: 1
      - {step: server, outcome: [pass, info], status: done}
    timeout: 1.5m
    with:
      contexts: ${vars.lengths}
      cold: ${vars.cold}
      request_timeout: ${vars.wait}
      url: ${host.url}
  - {id: server, probe: engine.server}
expect:
  - about: it pays at
      every length
    step: commit
    field: commit_lowest
    at_least: ${vars.least}
    otherwise: warn
  - {about: nothing is wrong, verdict: [healthy, text_difficulty]}
"""


@pytest.fixture(scope="module")
def book() -> Playbook:
    return understand(BOOK.encode(), "story.yaml")


def test_the_whole_is_told(book: Playbook) -> None:
    assert (book.name, book.file, book.hypotheses) == ("story", "story.yaml", ("positions", "text_hard"))
    assert book.about == "Does it hold\nat length?\n\nMore of it."
    assert book.question == "Does it hold at length?"
    assert book.digest == hashlib.sha256(BOOK.encode()).hexdigest()


def test_vars_have_values_of_their_kind(book: Playbook) -> None:
    assert book.vars == (
        Var(
            name="lengths",
            kind="sizes",
            default=(1024, 16384),
            help="lengths to measure",
            place=Place(8, 12),
        ),
        Var(name="least", kind="number", default=2, help="least commit length", place=Place(9, 10)),
        Var(name="word", kind="text", default=None, help="what to search for", place=Place(10, 9)),
        Var(
            name="wait",
            kind="duration",
            default=120.0,
            help="how long a request may take",
            place=Place(11, 9),
        ),
        Var(name="cold", kind="bool", default=False, help="without the prefix cache", place=Place(12, 9)),
    )
    assert book.var("word") is book.vars[2]
    assert book.var("nobody") is None


def test_a_step_comes_after_what_it_looks_at(book: Playbook) -> None:
    """`read` waits for `grep`, and `commit` for `grep` and `server`; the others stay as in the file."""
    assert [step.id for step in book.steps] == ["grep", "read", "server", "commit"]
    assert {step.id: step.after for step in book.steps} == {
        "grep": (),
        "read": ("grep",),
        "server": (),
        "commit": ("grep", "server"),
    }


def test_steps_keep_references_and_literals(book: Playbook) -> None:
    assert book.step("read") == PlaybookStep(
        id="read",
        probe="source.read",
        given=(("places", ("a.py:1-2", Reference("steps", "grep", "ranges"))),),
        needs=("grep",),
        place=Place(15, 5),
    )
    assert book.step("commit") == PlaybookStep(
        id="commit",
        probe="draft.commit",
        given=(
            ("contexts", Reference("vars", "lengths")),
            ("cold", Reference("vars", "cold")),
            ("request_timeout", Reference("vars", "wait")),
            ("url", Reference("host", "url")),
        ),
        when=(
            Condition(step="grep", field="hits", least=1, place=Place(27, 9)),
            Condition(
                step="server", outcomes=(Outcome.PASS, Outcome.INFO), statuses=("done",), place=Place(30, 9)
            ),
        ),
        timeout=90.0,
        place=Place(24, 5),
    )


def test_expectations_are_numbered(book: Playbook) -> None:
    assert book.expect == (
        Expectation(
            words="it pays at every length",
            condition=Condition(
                step="commit", field="commit_lowest", least=Reference("vars", "least"), place=Place(39, 5)
            ),
            otherwise=Outcome.WARN,
            number=1,
            place=Place(39, 5),
        ),
        Expectation(
            words="nothing is wrong",
            condition=Condition(step="", verdicts=("healthy", "text_difficulty"), place=Place(45, 5)),
            otherwise=Outcome.FAIL,
            number=2,
            place=Place(45, 5),
        ),
    )
    assert [one.id for one in book.expect] == ["EXPECT01", "EXPECT02"]


def test_references_are_found_within_lists() -> None:
    inner = Reference("vars", "a"), Reference("steps", "s", "x")
    assert list(references(("1k", inner[0], ("2k", inner[1]), 3))) == list(inner)
    assert [str(one) for one in inner] == ["${vars.a}", "${steps.s.x}"]


def test_one_value_stands_for_a_list_of_one() -> None:
    text = "name: a\nabout: So?\nsteps:\n- {id: x, probe: engine.server}\n- {id: y, probe: engine.logs, needs: x}\n"
    step = understand(text.encode(), "a.yaml").step("y")
    assert step is not None
    assert step.needs == ("x",)


def test_a_file_that_cannot_be_read_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(PlaybookError, match="No such file"):
        load(tmp_path / "none.yaml")
    with pytest.raises(PlaybookError, match="larger than 256 KiB"):
        understand(b"#" * (256 * 1024 + 1), "big.yaml")


class TestShelf:
    @pytest.fixture(autouse=True)
    def folders(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        own = tmp_path / "config"
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr("platformdirs.user_config_path", lambda _name: own)
        for folder, name in (
            (tmp_path / "playbooks", "mine"),
            (own / "playbooks", "mine"),
            (own / "playbooks", "other"),
        ):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{name}.yaml").write_text(f"# of {folder}\n")

    def test_the_nearest_of_one_name_counts(self, tmp_path: Path) -> None:
        found = {name: (whose, path) for name, whose, path in shelf.all_of_them()}
        assert found["mine"] == ("local", Path("playbooks/mine.yaml"))
        assert found["other"] == ("own", tmp_path / "config/playbooks/other.yaml")
        assert found["first-look"][0] == "shipped"
        assert shelf.find("mine") == Path("playbooks/mine.yaml")

    def test_a_path_is_a_path(self, tmp_path: Path) -> None:
        assert shelf.find("config/playbooks/mine.yaml") == Path("config/playbooks/mine.yaml")
        with pytest.raises(PlaybookError, match=r"nowhere/mine\.yaml: there is no such file"):
            shelf.find("nowhere/mine.yaml")
        with pytest.raises(PlaybookError, match="config/: it is a folder"):
            shelf.find("config/")

    def test_an_unknown_name_gets_the_nearest(self) -> None:
        with pytest.raises(PlaybookError) as caught:
            shelf.find("first-lok")
        assert caught.value.message == "there is no playbook 'first-lok' (did you mean 'first-look'?)"


@pytest.mark.parametrize(
    "path", [path for _, whose, path in shelf.all_of_them() if whose == "shipped"], ids=lambda path: path.stem
)
def test_shipped_books_are_called_as_their_files_are(path: Path) -> None:
    book = load(path)
    assert book.name == path.stem
    assert book.question.endswith("?")
