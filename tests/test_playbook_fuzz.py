"""Good playbooks, damaged: they are right or they are wrong, with words and exit code; there is never a traceback."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ddprobe import yamlfile
from ddprobe.cli import app, playbookpage
from ddprobe.errors import PlaybookError
from ddprobe.playbookfile import shelf
from ddprobe.playbookfile.load import understand
from ddprobe.playbookfile.schema import schema
from tests.test_playbook_load import BOOK

BOOKS = [BOOK, *(path.read_text() for _, whose, path in shelf.all_of_them() if whose == "shipped")]
VALIDATOR = jsonschema.Draft202012Validator(schema())
ODD = (
    "", "null", "~", "0", "-1", "1.5", "1e999", "9" * 19, "9" * 40, "true", "[]", "{}", "[[]]", "[null]", "{a: b}",
    "text", "é", '"\\0"', '"\\e[31m"', "${", "${}", "${vars.lengths}", '"${vars.lengths}"', '"${steps.grep.ranges}"',
    '"${steps.server.url}"', '"${host.name}"', '"${host.tags}"', "server", "commit", "draft.commit", "source.read",
    "1k", "64k", "0k", "1k,2k", "5m", "&a [*a]", "*a", "<<: 1", "!!int x", "\t", "---", "|", ">", "'", '"', "#", ": ",
)  # fmt: skip
KEYS = (
    "id", "probe", "with", "needs", "when", "timeout", "step", "outcome", "verdict", "status", "finding", "field",
    "at_least", "at_most", "equals", "known", "about", "otherwise", "name", "vars", "steps", "expect", "hypotheses",
    "type", "default", "help", "pattern", "contexts", "arms", "places", "file", "ranges", "1", "''", "null", "<<",
)  # fmt: skip


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A good book with one to four of its lines changed, or its bytes."""
    lines = draw(st.sampled_from(BOOKS)).splitlines()
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(0, len(lines) - 1)))
        line = lines[at] if lines else ""
        head, colon, _ = line.partition(":")
        match draw(st.integers(0, 7)):
            case 0:
                del lines[at : at + draw(st.integers(1, 3))]
            case 1:
                lines.insert(at, line)
            case 2:
                lines[at : at + 1] = [f"{head}{colon} {draw(st.sampled_from(ODD))}"]
            case 3:
                key = head.lstrip(" -{")
                lines[at : at + 1] = [line.replace(key, draw(st.sampled_from(KEYS)), 1) if key else line]
            case 4:
                lines.insert(
                    at,
                    f"{line[: len(line) - len(line.lstrip())]}{draw(st.sampled_from(KEYS))}: {draw(st.sampled_from(ODD))}",
                )
            case 5:
                lines[at : at + 1] = [" " * draw(st.integers(0, 3)) + line]
            case 6:
                other = draw(st.integers(0, max(0, len(lines) - 1)))
                if lines:
                    lines[at], lines[other] = lines[other], lines[at]
            case _:
                place = draw(st.integers(0, len(line)))
                lines[at : at + 1] = [line[:place] + draw(st.sampled_from(ODD)) + line[place:]]
    raw = "\n".join(lines).encode() + b"\n"
    if draw(st.booleans()):
        return raw
    place = draw(st.integers(0, len(raw)))
    return raw[:place] + draw(st.binary(max_size=3)) + raw[place + draw(st.integers(0, 3)) :]


@settings(max_examples=250, deadline=None, derandomize=True)
@given(damaged())
def test_it_loads_or_says_where_it_is_wrong(raw: bytes) -> None:
    try:
        book = understand(raw, "book.yaml")
    except PlaybookError as error:
        lines = error.message.splitlines()
        assert lines
        for line in lines:
            name, row, column, text = line.split(":", 3)
            assert name == "book.yaml"
            assert 1 <= int(row) <= raw.count(b"\n") + 2
            assert int(column) >= 1
            assert text.strip()
        return
    assert book.steps
    # What runs is what an editor takes, and it has a page.
    data = yamlfile.parse(raw, "book.yaml").data
    assert [error.message for error in VALIDATOR.iter_errors(data)] == []
    json.dumps(playbookpage.page(book))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(damaged())
def test_the_command_ends_with_0_or_2(tmp_path_factory: pytest.TempPathFactory, raw: bytes) -> None:
    path = Path(tmp_path_factory.mktemp("book"), "book.yaml")
    path.write_bytes(raw)
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = app.run(["playbook", "check", str(path)])
    assert code == (2 if err.getvalue() else 0)
    assert "error in ddprobe itself" not in err.getvalue()
    assert "Traceback" not in err.getvalue()
