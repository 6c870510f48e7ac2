"""A report as JUnit XML, for what reads test results: a suite a host, a case a step, one for each verdict and expectation.

A case *fails* by what counts for exit code 1, is an *error* where a whole answer is lacking, and is *skipped* where
nobody wanted it. So a run with exit code 0 is green.
"""

from __future__ import annotations

import dataclasses
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from xml.etree import ElementTree

from ddprobe import render
from ddprobe.model import EXPECTED, FAIL_ON, Finding, HostRecord, Outcome, Report, StepRecord, Verdict

MAX_TEXT = 20_000
_TAGS = ("failure", "error", "skipped")


def text(report: Report, fail_on: str = "fail") -> str:
    """The XML document, newline at the end."""
    suites = ElementTree.Element("testsuites", name=_told(report.name), time=f"{report.seconds:.3f}")
    for host in report.hosts:
        suites.append(_suite(report, host, FAIL_ON[fail_on]))
    rest = [f for f in report.findings if not f.host]
    if rest or report.interrupted or report.trouble:
        suites.append(_of_run(report, rest, FAIL_ON[fail_on]))
    for name in ("tests", "failures", "errors"):
        suites.set(name, str(sum(int(suite.get(name, "0")) for suite in suites)))
    ElementTree.indent(suites)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suites, encoding="unicode") + "\n"
    )


def _suite(report: Report, host: HostRecord, limit: Outcome | None) -> ElementTree.Element:
    steps = [step for step in report.steps if step.host == host.name]
    findings = [f for f in report.findings if f.host == host.name]
    cases = list(_host(report, host))
    first = _first_told(findings)
    cases += [_step(report, step, [f for f in first if f.step == step.id], limit) for step in steps]
    expected = [f for f in findings if not f.step and f.id.startswith(EXPECTED)]
    cases += [_expectation(report, f, limit) for f in expected]
    known = {step.id for step in steps}
    others = [f for f in findings if f not in expected and f.step not in known]
    if others:
        cases.append(_judged(_case(report, host.name, "findings"), others, limit))
    cases += [_verdict(report, v, limit) for v in report.verdicts if v.host == host.name]
    return _counted(report, host.name, cases)


def _first_told(findings: Sequence[Finding]) -> list[Finding]:
    """What several steps found alike is one failure, of the first of them."""
    told: dict[Finding, Finding] = {}
    for finding in findings:
        told.setdefault(dataclasses.replace(finding, step="", cites=()), finding)
    return list(told.values())


def _counted(report: Report, name: str, cases: Sequence[ElementTree.Element]) -> ElementTree.Element:
    def having(tag: str) -> str:
        return str(sum(case.find(tag) is not None for case in cases))

    suite = ElementTree.Element(
        "testsuite",
        name=_told(name),
        tests=str(len(cases)),
        failures=having("failure"),
        errors=having("error"),
        skipped=having("skipped"),
        time=f"{sum(float(case.get('time', '0')) for case in cases):.3f}",
        timestamp=time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(report.started)),
        hostname=_told(name),
    )
    if report.lab:
        properties = ElementTree.SubElement(suite, "properties")
        ElementTree.SubElement(properties, "property", name="lab", value=_told(render.LAB))
    suite.extend(cases)
    return suite


def _case(report: Report, host: str, name: str, seconds: float = 0.0) -> ElementTree.Element:
    classname = f"{report.name}.{host}"
    return ElementTree.Element(
        "testcase", name=_told(name), classname=_told(classname), time=f"{max(seconds, 0):.3f}"
    )


def _host(report: Report, host: HostRecord) -> Iterator[ElementTree.Element]:
    """Whether the host was reached: a case of its own, so that a suite is never empty."""
    case = _case(report, host.name, "connection")
    if host.error:
        _add(case, "error", host.error, host.advice)
    yield case


def _step(
    report: Report, step: StepRecord, findings: Sequence[Finding], limit: Outcome | None
) -> ElementTree.Element:
    case = _case(report, step.host, step.id, step.seconds)
    _judged(case, findings, limit)
    reasons = "; ".join(step.reasons)
    if len(case):
        return case
    if step.status == "skipped":
        _add(case, "skipped", reasons)
    elif step.status != "done":
        _add(case, "error", f"{step.status.replace('_', ' ')}: {reasons}" if reasons else step.status)
    return case


def _judged(
    case: ElementTree.Element, findings: Iterable[Finding], limit: Outcome | None
) -> ElementTree.Element:
    """The case, failed where a finding counts for exit code 1."""
    bad = [
        f for f in findings if limit is not None and f.outcome >= limit and f.outcome is not Outcome.UNKNOWN
    ]
    if bad:
        told = [f"{f.id} {f.outcome.label}: {f.subject}: {f.summary}" for f in bad]
        advice = [f"{f.id}: {f.advice}" for f in bad if f.advice]
        _add(case, "failure", told[0], "\n".join((*told, *advice)))
    return case


def _expectation(report: Report, finding: Finding, limit: Outcome | None) -> ElementTree.Element:
    case = _judged(_case(report, finding.host, finding.id), [finding], limit)
    if finding.outcome is Outcome.UNKNOWN:
        _add(case, "error", finding.summary)
    return case


def _verdict(report: Report, verdict: Verdict, limit: Outcome | None) -> ElementTree.Element:
    case = _case(report, verdict.host, f"verdict {verdict.name}")
    title, reasons = render.verdict_title(verdict), "\n".join(verdict.reasons)
    if verdict.outcome is Outcome.UNKNOWN:
        _add(case, "error", title, reasons)
    elif limit is not None and verdict.outcome >= limit:
        _add(case, "failure", f"{title}, confidence {verdict.confidence}", reasons)
    return case


def _of_run(report: Report, findings: Sequence[Finding], limit: Outcome | None) -> ElementTree.Element:
    """What is of no host: a run that was interrupted, a folder that could not be written."""
    case = _judged(_case(report, "ddprobe", "run"), findings, limit)
    if report.interrupted or report.trouble:
        _add(case, "error", report.trouble or "interrupted")
    return _counted(report, "ddprobe", [case])


def _add(case: ElementTree.Element, tag: str, message: str, more: str = "") -> None:
    """At most one of them a case: readers of JUnit take the first."""
    if any(case.find(other) is not None for other in _TAGS):
        return
    added = ElementTree.SubElement(case, tag, message=_told(message))
    if tag != "skipped":
        added.set("type", tag)
    if more:
        added.text = _xml(render.clean(more))


def _told(words: str) -> str:
    """Text of a host on one line, without what XML cannot hold."""
    return _xml(render.line(words))


def _xml(words: str) -> str:
    return re.sub("[\x00-\x08\x0b-\x1f\ufffe\uffff]", "\ufffd", words)[:MAX_TEXT]
