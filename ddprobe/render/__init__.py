"""The views of a report, one a file, and what they share: the report in the order in which a person reads it.

Text from a host is hostile. Every view passes it through `clean`, and escapes for its own medium what is left.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ddprobe import reportjson
from ddprobe.blocks import Block, Code, Pairs, Paragraph
from ddprobe.facts.files import AGAIN, FILES
from ddprobe.model import (
    COLLECTED,
    Fact,
    Finding,
    HostRecord,
    Hypothesis,
    LedgerLine,
    Outcome,
    Report,
    StepRecord,
    Verdict,
)
from ddprobe.render import evidencefiles
from ddprobe.verdicts import words

LAB = "LAB: a simulated host inside this process. Nothing here was measured on real hardware."

# --- hostile text ------------------------------------------------------------------------------------------

_ESCAPE = re.compile(
    "(?:\x1b\\[|\x9b)[0-9;:?<=>!$ ]{0,64}[@-~]"  # colours, cursor movements
    "|(?:\x1b[\\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x90\x98\x9c-\x9f]{0,4096}(?:\x07|\x1b\\\\|\x9c)"  # titles, links, clipboard
    "|\x1b[ -/]{0,4}[0-~]"
)
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff"
    "\uffa0\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)


def clean(text: str) -> str:
    """The text without anything that acts on a terminal or hides in it; each such thing leaves a visible mark."""
    return _CONTROL.sub(_mark, _ESCAPE.sub("\u241b", text.replace("\r\n", "\n")))


def line(text: str) -> str:
    """The same, on one line."""
    return " ".join(clean(text).split())


LONG = 240


def gist(text: str) -> str:
    """The text on one line; of a long one its first sentence, marked as cut."""
    whole = line(text)
    first, more, _ = whole.partition(". ")
    return f"{first} …" if more and len(whole) > LONG else whole


def _mark(found: re.Match[str]) -> str:
    code = ord(found.group())
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    return "\ufffd" if 0xD800 <= code < 0xE000 or code < 0xA0 else f"<U+{code:04X}>"


# --- steps -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class StepView:
    """A step as it turned out on one host, or on several that show the same."""

    id: str
    hosts: tuple[str, ...]
    blocks: tuple[Block, ...]
    troubles: tuple[tuple[str, str, tuple[str, ...]], ...]
    """(host, status, reasons) of each host on which it is not `done`."""
    probe: str = ""
    files: tuple[str, ...] = ()
    """The first file of its evidence, host by host."""


def steps(report: Report) -> tuple[StepView, ...]:
    """The steps in their order, each with its hosts; hosts that show the same are one."""
    unreachable = {host.name for host in report.hosts if host.error}
    said = {(f.host, f.step, f"{f.subject}: {f.summary}") for f in report.findings}
    views: dict[str, dict[tuple[Block, ...], StepView]] = {}
    for step in evidencefiles.folded(report.steps):
        if step.status == "not_run" and step.host in unreachable:
            continue
        shown = blocks(step)
        if step.probe == FILES and not shown:
            continue
        reasons = tuple(r for r in step.reasons if (step.host, step.id, r) not in said)
        troubles = () if step.status == "done" else ((step.host, step.status.replace("_", " "), reasons),)
        alike = views.setdefault(step.id, {})
        other = alike.get(shown) or StepView(
            id=step.id, hosts=(), blocks=shown, troubles=(), probe=step.probe
        )
        files = tuple(path for artefact in step.artefacts for _, path in artefact.files)[:1]
        alike[shown] = dataclasses.replace(
            other,
            hosts=(*other.hosts, step.host),
            troubles=other.troubles + troubles,
            files=other.files + files,
        )
    return tuple(view for alike in views.values() for view in alike.values())


def blocks(step: StepRecord) -> tuple[Block, ...]:
    """What the step's probe shows of its facts. A fact or probe that this version does not know is shown plainly."""
    known = tuple(fact for fact in step.facts if not isinstance(fact, reportjson.ForeignFact))
    foreign = tuple(fact for fact in step.facts if isinstance(fact, reportjson.ForeignFact))
    never = step.status == "incomplete" and not (step.started or step.facts or step.artefacts)
    if not step.probe or step.status in ("not_run", "skipped") or never:
        return ()
    if step.probe in (FILES, AGAIN):
        return tuple(evidencefiles.blocks(known))
    try:
        shown = tuple(reportjson.probe_of(step).show(known))
    except Exception as error:
        # Of an old report, or of one that somebody sent; the rest of it must still be seen.
        notice = Paragraph(
            f"{step.probe} cannot show these facts ({error}); here they are as stored.", "warn"
        )
        shown = (notice, *(_plain(fact) for fact in known))
    return (*shown, *(_plain(fact) for fact in foreign))


def _plain(fact: Fact) -> Block:
    if isinstance(fact, reportjson.ForeignFact):
        return Pairs(tuple((name, str(value)) for name, value in fact.values), title=fact.type)
    rows = tuple((field.name, str(getattr(fact, field.name))) for field in dataclasses.fields(fact))
    return Pairs(tuple(row for row in rows if row[0] != "source"), title=type(fact).__name__)


# --- findings ----------------------------------------------------------------------------------------------

ORDER = (Outcome.FAIL, Outcome.WARN, Outcome.UNKNOWN, Outcome.INFO, Outcome.SKIP, Outcome.PASS)


@dataclass(frozen=True, slots=True)
class FindingView:
    """A finding, with every host that has it."""

    finding: Finding
    hosts: tuple[str, ...]
    likewise: tuple[Finding, ...] = ()
    """The same fault of the same thing as other steps saw it: with their own numbers, and the same advice."""


def findings(report: Report) -> tuple[FindingView, ...]:
    """Findings, the worst first; the same one on several hosts, or in several steps, is one."""
    folded: dict[Finding, list[Finding]] = {}
    for finding in _weighed(report.findings):
        subject = "" if finding.subject == finding.host else finding.subject
        key = dataclasses.replace(finding, subject=subject, host="", step="", cites=())
        folded.setdefault(key, []).append(finding)
    views = []
    for key, alike in folded.items():
        hosts = tuple(dict.fromkeys(finding.host for finding in alike))
        first = alike[0] if key.subject else dataclasses.replace(alike[0], subject=together(hosts))
        views.append(FindingView(first, hosts))
    return tuple(sorted(_likened(views), key=lambda view: ORDER.index(view.finding.outcome)))


def _weighed(found: Sequence[Finding]) -> list[Finding]:
    """Without the warnings of what another step calls a failure: one that knows less judges milder."""
    failed: dict[tuple[str, str, str], set[str]] = {}
    for finding in found:
        if finding.outcome is Outcome.FAIL:
            failed.setdefault((finding.id, finding.subject, finding.host), set()).add(finding.step)

    def outweighed(finding: Finding) -> bool:
        steps = failed.get((finding.id, finding.subject, finding.host), set())
        return finding.outcome is Outcome.WARN and bool(steps) and finding.step not in steps

    return [finding for finding in found if not outweighed(finding)]


def _likened(views: Sequence[FindingView]) -> list[FindingView]:
    """Those with an advice that several steps give of one thing as one; of a step that says two such, each stays."""
    groups: dict[tuple[str, str, str, Outcome, tuple[str, ...]], list[FindingView]] = {}
    for view in views:
        one = view.finding
        groups.setdefault((one.id, one.subject, one.advice, one.outcome, view.hosts), []).append(view)
    likened: list[FindingView] = []
    for (_, _, advice, outcome, _), alike in groups.items():
        steps = {view.finding.step for view in alike}
        if advice and outcome not in (Outcome.PASS, Outcome.SKIP) and len(steps) == len(alike):
            others = tuple(view.finding for view in alike[1:])
            likened.append(dataclasses.replace(alike[0], likewise=others))
        else:
            likened += alike
    return likened


def likewise(view: FindingView) -> str:
    """`likewise in step-time`; nothing where no other step says it."""
    steps = [line(other.step) for other in view.likewise]
    return f"likewise in {together(steps)}" if steps else ""


def is_said_above(view: FindingView, above: Sequence[StepView]) -> bool:
    """Whether the one step there is already said all of it, and it is no fault: once is enough."""
    finding = view.finding
    if finding.outcome in (Outcome.FAIL, Outcome.WARN) or finding.advice or not finding.summary:
        return False
    if len({step.id for step in above}) != 1:
        return False
    told = (block for step in above for block in step.blocks)
    return any(finding.summary in _sentence(block) for block in told)


def _sentence(block: Block) -> str:
    if isinstance(block, Paragraph):
        return block.text
    return block.note if isinstance(block, Code) else ""


def hosts_beside(report: Report, view: FindingView) -> tuple[str, ...]:
    """The hosts to name beside a finding: none when there is but one, or when they are its subject."""
    return () if len(report.hosts) < 2 or view.finding.subject == together(view.hosts) else view.hosts


def tally(views: Iterable[FindingView]) -> str:
    """`1 fail, 2 warn, 14 pass`."""
    seen = [view.finding.outcome for view in views]
    return ", ".join(f"{seen.count(outcome)} {outcome.label}" for outcome in ORDER if outcome in seen)


# --- verdicts ----------------------------------------------------------------------------------------------


def verdict_title(verdict: Verdict) -> str:
    """`long_context_bug (rope_position)`."""
    return line(f"{verdict.name} ({verdict.kind})" if verdict.kind else verdict.name)


def confidence(verdict: Verdict, before: str) -> str:
    """` · high confidence`, with what stands before it; nothing of a verdict that leaves it open."""
    return "" if verdict.outcome is Outcome.UNKNOWN else f"{before}{line(verdict.confidence)} confidence"


def verdict_meaning(verdict: Verdict) -> str:
    """What it comes to, in one sentence; nothing of a verdict of a later version."""
    return words.meaning(verdict.name, verdict.kind)


NEXT = "What to do next"
RULED_OUT = "Ruled out"


def verdict_parts(verdict: Verdict) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """What a verdict says, part by part in the order of reading; the reasons need no title. Nothing is missing twice."""
    said = (*verdict.reasons, *verdict.ruled_out)
    parts = (
        ("", verdict.reasons),
        (RULED_OUT, verdict.ruled_out),
        ("Missing", tuple(one for one in verdict.missing if not any(one in other for other in said))),
        (NEXT, verdict.next),
    )
    return tuple((name, sentences) for name, sentences in parts if sentences)


def causes(sentences: Sequence[str]) -> str:
    """What was ruled out, without by what: `hard text, the prefix cache`."""
    return "; ".join(dict.fromkeys(line(one).partition(": ")[0] for one in sentences))


# --- hosts -------------------------------------------------------------------------------------------------

_TWICE = re.compile(r"(\S+): (?=\1:\d+: )")


def host_error(host: HostRecord) -> str:
    """Why the host could not be used, on one line, without its name before it, or its address twice."""
    return _TWICE.sub("", line(host.error.removeprefix(f"{host.name}: ")), count=1)


# --- hypotheses ------------------------------------------------------------------------------------------------

STATUSES = ("supported", "refuted", "untested")


def ledgers(report: Report) -> tuple[tuple[str, tuple[Hypothesis, ...]], ...]:
    """Each host that has a ledger, with its hypotheses: what is supported first."""
    found: dict[str, list[Hypothesis]] = {}
    for one in report.hypotheses:
        found.setdefault(one.host, []).append(one)
    return tuple((host, tuple(sorted(ledger, key=_status_rank))) for host, ledger in found.items())


def _status_rank(one: Hypothesis) -> int:
    return STATUSES.index(one.status) if one.status in STATUSES else len(STATUSES)


def counted(one: LedgerLine) -> str:
    """`supported on 3 (gpu1, gpu2, gpu3), untested on 61`: who supports or refutes it is named."""
    parts = [
        f"supported on {len(one.supported)} ({line(together(one.supported))})" if one.supported else "",
        f"refuted on {len(one.refuted)} ({line(together(one.refuted))})" if one.refuted else "",
        f"untested on {len(one.untested)}" if one.untested else "",
    ]
    return ", ".join(part for part in parts if part)


# --- the run in words --------------------------------------------------------------------------------------


def count(number: int, noun: str) -> str:
    """`1 host`, `2 hosts`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def together(names: Sequence[str], most: int = 6) -> str:
    """`gpu1, gpu2 and 3 more`."""
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[: most - 1])} and {len(names) - most + 1} more"


def duration(seconds: float) -> str:
    """`0.8 s`, `12 s`, `3 min 20 s`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds // 60:.0f} min {seconds % 60:.0f} s"


def closing(report: Report) -> str:
    """The run in one line: `2 hosts · 3 steps · 1 fail, 2 warn · 3.2 s`."""
    reached = sum(not host.error for host in report.hosts)
    hosts = count(len(report.hosts), "host")
    collected = [host.name for host in report.hosts] == [COLLECTED]
    parts = [
        "" if collected else hosts if reached == len(report.hosts) else f"{reached} of {hosts}",
        count(evidencefiles.given(report.steps), "file") if collected else _steps_told(report.steps),
        tally(findings(report)),
        duration(report.seconds),
        f"{count(report.redactions, 'secret')} masked" if report.redactions else "",
    ]
    return " · ".join(part for part in parts if part)


def _steps_told(steps: Sequence[StepRecord]) -> str:
    """`6 steps (1 skipped, 4 kept from 20261201T014437Z-triage)`."""
    skipped = sum(step.status == "skipped" for step in steps)
    kept = [step.kept_from for step in steps if step.kept_from]
    parts = [f"{skipped} skipped"] if skipped else []
    parts += [f"{kept.count(name)} kept from {line(name)}" for name in dict.fromkeys(kept)]
    return count(len(steps), "step") + (f" ({', '.join(parts)})" if parts else "")


def verdict_word(report: Report) -> str:
    """The one word for the run: its outcome, unless it did not come to one."""
    if report.interrupted:
        return "interrupted"
    if report.hosts and all(host.error for host in report.hosts):
        return "no host reached"
    judged = bool(report.findings or report.verdicts)
    told = judged and report.outcome >= Outcome.UNKNOWN
    if not told and any(host.error for host in report.hosts):
        return "not every host reached"
    if not told and any(step.status == "incomplete" for step in report.steps):
        return "incomplete"
    return report.outcome.label if judged else "done"
