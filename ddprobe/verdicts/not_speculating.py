"""Does the server speculate at all?"""

from __future__ import annotations

from ddprobe.facts import CommitSetup
from ddprobe.model import Verdict
from ddprobe.verdicts import standing, thresholds, words
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.ruling import Ruling

FLAGS = {
    "sglang": "--speculative-algorithm and --speculative-draft-model-path",
    "vllm": "--speculative-config",
    "llamacpp": "--spec-type and -md",
}


def judge(case: Case) -> Ruling | None:
    """Nothing was drafted, and no looking-up of repeated text explains that.

    A lookup drafter that found nothing in a text is not switched off, and a commit of 1.0 is not "no draft": both are
    left to other verdicts. Requests that were sent for their step times show it as well.
    """
    setup = case.setup
    measured = [point for point in (*case.points, *case.step_times) if point.requests > point.failed]
    if setup is None or not measured or (setup.speculating is not False and setup.drafter == "lookup"):
        return None
    steps = sum(point.steps for point in measured)
    nothing = _drafted_nothing(case)
    # Without speculation no source counts drafts: then the server's word and one token a step are what there is.
    untold = all(point.drafted_steps is None for point in measured)
    single = all(point.commit_mean is None or point.commit_mean <= 1 for point in measured)
    if not nothing and not (setup.speculating is False and untold and single):
        return None
    if setup.speculating is not False and steps < thresholds.MIN_STEPS:
        return None
    says = {
        True: "although the server says that it speculates",
        None: "the server does not say whether it speculates",
    }
    told = "the server says that it does not speculate"
    reasons = [
        told if setup.speculating is False else says[setup.speculating],
        f"no token was drafted in {words.count(steps, 'decode step')} of "
        f"{words.count(sum(p.requests - p.failed for p in measured), 'request')}"
        if nothing
        else f"each of {words.count(steps, 'decode step')} gave one token, and no source speaks of a draft",
    ]
    return Ruling(
        Verdict(
            name="not_speculating",
            kind="off" if setup.speculating is False else "never_drafts",
            confidence="high" if setup.speculating is False else "medium",
            reasons=tuple(reasons),
            cites=words.cites(setup, *measured),
            missing=()
            if setup.speculating is False
            else ("the server's start-up log: why is nothing drafted?",),
            next=_next(setup),
        ),
        explains=float(setup.ceiling or 1),
    )


def _drafted_nothing(case: Case) -> bool:
    """No measured step had a draft. False where a source does not say, or step times show one."""
    timed = [point.drafted_steps for point in case.step_times if point.steps]
    if case.points:
        return standing.drafted_nothing(case) and not any(timed)
    return bool(timed) and all(drafted == 0 for drafted in timed)


def _next(setup: CommitSetup) -> tuple[str, ...]:
    flags = FLAGS.get(setup.engine, "the flags that name a drafter")
    return (
        f"check {flags} on the server's command line (`ddprobe server` shows it)",
        "a start-up log tells whether the drafter was loaded, or why it was refused",
    )
