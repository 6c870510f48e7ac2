"""Facts, findings, verdicts and the ledger from a run's evidence: pure, so that an old report can be judged again."""

from __future__ import annotations

import dataclasses
import functools
import logging
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ddprobe import lints, reportjson, store, verdicts
from ddprobe.errors import DdprobeError, Unanswered
from ddprobe.model import (
    COLLECTED,
    Cite,
    Evidence,
    Fact,
    Finding,
    Gap,
    Host,
    Hypothesis,
    Outcome,
    Report,
    Step,
    StepRecord,
    Verdict,
)
from ddprobe.verdicts import words

MAX_ITEMS = 200_000
"""Most facts and findings that a probe may give: more is a loop that never ends."""
log = logging.getLogger("ddprobe")


def judge(
    step: Step, evidence: Evidence, broken: Sequence[Gap], path_of: Callable[[str, str, str], str]
) -> tuple[StepRecord, list[Finding]]:
    """Facts from the evidence, findings from both: pure, so an old report can be judged again.

    `path_of(host, step, key)` turns an answer's key into its path within the report.
    """
    host = evidence.host.name
    facts: list[Fact] = []
    findings: list[Finding] = []
    gaps = list(broken)

    def place(cites: Sequence[Cite]) -> tuple[Cite, ...]:
        return tuple(Cite(path_of(host, step.id, cite.artefact), cite.at) for cite in cites)

    try:
        for number, item in enumerate(step.probe.interpret(evidence)):
            if isinstance(item, Fact):
                facts.append(dataclasses.replace(item, source=place(item.source)))
            elif isinstance(item, Gap):
                gaps.append(item)
            elif isinstance(item, Finding):
                findings.append(item)
            else:
                raise TypeError(f"it gave {item!r:.80}")
            if number >= MAX_ITEMS:
                raise RuntimeError(f"it gave {MAX_ITEMS} facts and would go on")
        findings += lints.judge(facts)
    except Unanswered as error:
        gaps.append(gap(error, evidence.has(error.key)))
    except Exception as error:
        gaps.append(Gap(step.id, bug(step.probe.name(), error)))
    gaps = list(dict.fromkeys(gaps))
    findings += [
        Finding(id="unanswered", outcome=Outcome.UNKNOWN, subject=g.subject, summary=g.reason, cites=g.cites)
        for g in gaps
    ]
    record = StepRecord(
        id=step.id,
        probe=step.probe.name(),
        host=host,
        status="incomplete" if gaps else "done",
        reasons=tuple(f"{gap.subject}: {gap.reason}" for gap in gaps),
        facts=tuple(facts),
    )
    placed = [dataclasses.replace(f, cites=place(f.cites), host=host, step=step.id) for f in findings]
    return record, placed


def conclude(
    host: Host,
    facts: Sequence[Fact],
    findings: Sequence[Finding],
    *,
    collected: bool = False,
) -> tuple[Verdict, ...]:
    """The verdicts on one host, addressed to it. A bug in one of them is `inconclusive`.

    `collected`: somebody else's evidence, on which there is always a verdict.
    """
    judge = verdicts.judge_collected if collected else verdicts.judge
    try:
        found = judge(facts, findings, host.gpu_bandwidth)
    except Exception as error:
        found = (Verdict(name="inconclusive", reasons=(bug("judging", error),)),)
    return tuple(
        dataclasses.replace(
            verdict,
            host=host.name,
            next=tuple(
                words.on_host(sentence, "" if host.name == COLLECTED else host.name)
                for sentence in verdict.next
            ),
        )
        for verdict in found
    )


def with_hypotheses(report: Report, bandwidths: Mapping[str, float | None]) -> Report:
    """The report with the ledger of each host that has a verdict: what its playbook declares, else all nine.

    `bandwidths`: of one GPU of each host, in GB/s.
    """
    found: list[Hypothesis] = []
    for host in dict.fromkeys(verdict.host for verdict in report.verdicts):
        facts = [fact for step in report.steps if step.host == host for fact in step.facts]
        findings = [finding for finding in report.findings if finding.host == host]
        judged_so = [verdict for verdict in report.verdicts if verdict.host == host]
        try:
            ledger = verdicts.ledger(facts, findings, judged_so, bandwidths.get(host))
        except Exception as error:
            log.warning(bug("judging", error))
            continue
        found += [dataclasses.replace(one, host=host) for one in ledger]
    return dataclasses.replace(report, hypotheses=declared(report, found))


def declared(report: Report, ledger: Sequence[Hypothesis]) -> tuple[Hypothesis, ...]:
    """Of the hypotheses those that the report's playbook declares; all where it declares none."""
    wanted = report.playbook.hypotheses if report.playbook is not None else ()
    return tuple(one for one in ledger if not wanted or one.name in wanted)


def judge_again(folder: Path, report: Report) -> Report:
    """The report of a run that was killed, with what the evidence of its unfinished steps shows, and all of it judged."""
    steps = list(report.steps)
    findings = list(report.findings)
    for place, step in enumerate(steps):
        if step.status != "interrupted" or step.facts or not step.artefacts:
            continue
        try:
            evidence = store.evidence(folder, step.host, step.id)
            again = Step(step.id, reportjson.probe_of(step))
        except DdprobeError:
            continue  # of another version, or a folder that lost files: it is shown as it is
        paths = functools.partial(path_in, step)
        record, found = judge(again, evidence, (), paths)
        steps[place] = dataclasses.replace(step, facts=record.facts)
        findings += found
    concluded: list[Verdict] = []
    known = {step.host: store.known_host(folder, step.host) for step in steps}
    for name, host in known.items():
        facts = [fact for step in steps if step.host == name for fact in step.facts]
        concluded += conclude(host, facts, [f for f in findings if f.host == name])
    judged = dataclasses.replace(
        report, steps=tuple(steps), findings=tuple(findings), verdicts=tuple(concluded)
    )
    return with_hypotheses(judged, {name: host.gpu_bandwidth for name, host in known.items()})


def path_in(step: StepRecord, _host: str, _step: str, key: str) -> str:
    """Where an answer of a step that was kept before lies in its report."""
    return store.artefact_path(step.artefacts, key)


def gap(error: Unanswered, asked: bool) -> Gap:
    """What a question without a whole answer leaves open. `asked`: there is something to cite."""
    return Gap(error.key, error.reason, (Cite(error.key),) if asked else ())


def bug(where: str, error: BaseException) -> str:
    """A bug is a finding for this probe and never the end of the run; `--debug` shows the whole trace."""
    log.debug("in %s", where, exc_info=error)
    last = traceback.extract_tb(error.__traceback__)[-1]
    line = f"{Path(last.filename).name}:{last.lineno}"
    return f"ddprobe has a bug in {where}: {type(error).__name__}: {error} ({line}); please report it"
