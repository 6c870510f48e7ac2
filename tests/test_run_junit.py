"""The JUnit view: green exactly where the exit code is 0, countable, and safe to parse whatever a host said."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from ddprobe.cli import app as cli
from ddprobe.model import Cite, Finding, HostRecord, Outcome, Report, StepRecord, Verdict, exit_code
from ddprobe.render import junit
from tests import books

# The elements and attributes of the schema that CI servers share (junit-10.xsd); `*` must be there.
SCHEMA: dict[str, tuple[set[str], set[str]]] = {
    "testsuites": ({"name", "time", "tests", "failures", "errors"}, {"testsuite"}),
    "testsuite": (
        {"name*", "tests*", "failures", "errors", "skipped", "time", "timestamp", "hostname"},
        {"properties", "testcase"},
    ),
    "properties": (set(), {"property"}),
    "property": ({"name*", "value*"}, set()),
    "testcase": ({"name*", "classname*", "time"}, {"failure", "error", "skipped"}),
    "failure": ({"message", "type"}, set()),
    "error": ({"message", "type"}, set()),
    "skipped": ({"message"}, set()),
}


def parsed(report: Report, fail_on: str = "fail") -> ElementTree.Element:
    root = ElementTree.fromstring(junit.text(report, fail_on))
    check(root)
    return root


def check(element: ElementTree.Element) -> None:
    """As the schema has it, and every count right."""
    attributes, children = SCHEMA[element.tag]
    assert set(element.keys()) <= {name.rstrip("*") for name in attributes}
    assert {name.rstrip("*") for name in attributes if name.endswith("*")} <= set(element.keys())
    assert {child.tag for child in element} <= children
    if element.tag == "testcase":
        assert len(element) <= 1
    if element.tag in ("testsuites", "testsuite"):
        cases = list(element.iter("testcase"))
        assert element.get("tests") == str(len(cases))
        for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            if element.get(name) is not None:
                assert element.get(name) == str(sum(case.find(tag) is not None for case in cases))
    for child in element:
        check(child)


def step(id: str, status: str = "done", host: str = "a", **more: Any) -> StepRecord:
    return StepRecord(id=id, probe="host.reach", host=host, status=status, **more)


def finding(id: str, outcome: Outcome, step: str = "one", host: str = "a", **more: Any) -> Finding:
    return Finding(
        id=id, outcome=outcome, subject="s", summary=more.pop("summary", "said"), host=host, step=step, **more
    )


def report(**given: Any) -> Report:
    return Report(
        **{"name": "book", "version": "1", "started": 1.0, "hosts": (HostRecord(name="a"),), **given}
    )


def cases(root: ElementTree.Element) -> dict[str, str]:
    """Name → how it ended."""
    return {
        str(case.get("name")): next((child.tag for child in case), "passed") for case in root.iter("testcase")
    }


def test_each_way_a_cell_may_end() -> None:
    whole = report(
        hosts=(HostRecord(name="a"), HostRecord(name="b", error="b: no route", advice="is it up?")),
        steps=(
            step("one"),
            step("two", "incomplete", reasons=("uname: timed out",)),
            step("three", "skipped", reasons=("find.hits is 0, below 1",)),
            step("four"),
            step("one", "not_run", host="b", reasons=("b: no route",)),
        ),
        findings=(
            finding("DC20", Outcome.FAIL, "one", advice="set it to 8"),
            finding("DC21", Outcome.WARN, "four"),
            finding("DC22", Outcome.UNKNOWN, "four"),
            finding("EXPECT01", Outcome.PASS, ""),
            finding("EXPECT02", Outcome.UNKNOWN, ""),
        ),
        verdicts=(
            Verdict(name="long_context_bug", kind="rope_position", host="a", reasons=("7.9, then 1.1",)),
        ),
    )
    root = parsed(whole)
    first, second = root.findall("testsuite")
    assert cases(first) == {
        "connection": "passed", "one": "failure", "two": "error", "three": "skipped", "four": "passed",
        "EXPECT01": "passed", "EXPECT02": "error", "verdict long_context_bug": "failure",
    }  # fmt: skip
    assert cases(second) == {"connection": "error", "one": "error"}
    failure = first.find("testcase[@name='one']/failure")
    assert failure is not None
    assert failure.get("message") == "DC20 fail: s: said"
    assert failure.text is not None
    assert "DC20: set it to 8" in failure.text
    assert cases(parsed(whole, "warn"))["four"] == "failure"
    assert "failure" not in cases(parsed(whole, "never")).values()


def test_what_several_steps_found_alike_is_one_failure() -> None:
    alike = [
        finding("DC20", Outcome.FAIL, step, host, cites=(Cite(step),))
        for host in "ab"
        for step in ("one", "two")
    ]
    other = finding("DC20", Outcome.FAIL, "three", summary="another number")
    hosts = (HostRecord(name="a"), HostRecord(name="b"))
    steps = tuple(step(id, host=host) for host in "ab" for id in ("one", "two", "three"))
    first, second = parsed(report(hosts=hosts, steps=steps, findings=(*alike, other))).findall("testsuite")
    assert cases(first) == {"connection": "passed", "one": "failure", "two": "passed", "three": "failure"}
    assert cases(second) == {"connection": "passed", "one": "failure", "two": "passed", "three": "passed"}


@pytest.mark.parametrize("fail_on", ["fail", "warn", "never"])
@pytest.mark.parametrize(
    "given",
    [
        {"steps": (step("one"),)},
        {"steps": (step("one", "skipped"),)},
        {"steps": (step("one", "incomplete"),)},
        {"steps": (step("one"),), "findings": (finding("DC20", Outcome.FAIL),)},
        {"steps": (step("one"),), "findings": (finding("DC20", Outcome.WARN),)},
        {"steps": (step("one"),), "findings": (finding("DC20", Outcome.UNKNOWN),)},
        {"steps": (step("one"),), "findings": (finding("EXPECT01", Outcome.UNKNOWN, ""),)},
        {"steps": (step("one"),), "findings": (finding("EXPECT01", Outcome.FAIL, ""),)},
        {"steps": (step("one"),), "verdicts": (Verdict(name="inconclusive", host="a"),)},
        {"steps": (step("one"),), "verdicts": (Verdict(name="gpu_state", host="a"),)},
        {"steps": (step("one"),), "verdicts": (Verdict(name="healthy", host="a"),)},
        {"hosts": (HostRecord(name="a", error="a: gone"),)},
        {"interrupted": True},
        {"trouble": "the disk is full"},
        {"findings": (finding("x", Outcome.FAIL, "", ""),)},
        {"findings": (finding("x", Outcome.FAIL, "", "a"),)},
    ],
)  # fmt: skip
def test_it_is_green_exactly_where_the_exit_code_is_0(given: dict[str, Any], fail_on: str) -> None:
    whole = report(**given)
    ended = set(cases(parsed(whole, fail_on)).values())
    assert (ended <= {"passed", "skipped"}) is (exit_code(whole, fail_on) == 0)


HOSTILE = "]]><x y='&\"'>\x1b[31m\x00\ufffe\ud800\u202e</testcase>"


def test_what_a_host_says_stays_text() -> None:
    whole = report(
        name=HOSTILE,
        hosts=(HostRecord(name=HOSTILE, error=HOSTILE, advice=HOSTILE),),
        steps=(
            step(HOSTILE, "incomplete", HOSTILE, reasons=(HOSTILE,)),
            step("x", "skipped", HOSTILE, reasons=(HOSTILE,)),
        ),
        findings=(finding(HOSTILE, Outcome.FAIL, HOSTILE, HOSTILE, summary=HOSTILE, advice=HOSTILE),),
        verdicts=(Verdict(name=HOSTILE, kind=HOSTILE, host=HOSTILE, reasons=(HOSTILE,)),),
    )
    text = junit.text(whole)
    text.encode("utf-8")
    assert not set(text) & set("\x1b\x00\ufffe\u202e")
    root = parsed(whole)
    assert len(list(root.iter("testcase"))) == 4
    (name,) = [case.get("name") for case in root.iter("testcase") if case.find("failure") is not None][:1]
    assert name is not None
    assert "<x y='&\"'>" in name


@pytest.fixture(scope="module")
def field(tmp_path_factory: pytest.TempPathFactory) -> Iterator[books.Field]:
    with books.field(tmp_path_factory.mktemp("field")) as made:
        yield made


def test_a_file_that_cannot_be_written_costs_nothing_else(
    field: books.Field, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["run", field.book(books.CHAIN), "a", "--hosts", field.hosts("a"), "--only", "server", "--json"]
    assert cli.run([*words, "--junit", "/dev/full", "--reports", str(tmp_path / "r")]) == 4
    printed = capsys.readouterr()
    assert json.loads(printed.out)["steps"][0]["status"] == "done"
    assert printed.err == "ddprobe: --junit /dev/full: No space left on device\n"


def test_a_run_writes_it_beside_what_it_prints(
    field: books.Field, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "junit.xml"
    words = ["run", field.book(books.CHAIN), "a", "z", "--hosts", field.hosts("a", dead=["z"]), "-q"]
    assert cli.run([*words, "--junit", str(file), "--reports", str(tmp_path / "r")]) == 3
    assert "z" in capsys.readouterr().out
    root = ElementTree.parse(file).getroot()
    check(root)
    assert [(suite.get("name"), suite.get("errors")) for suite in root] == [("a", "0"), ("z", "4")]
