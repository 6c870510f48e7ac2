"""`run`: a playbook on hosts, from its plan to its exit code."""

from __future__ import annotations

import shlex
import stat
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ddprobe import __version__
from ddprobe.cli import flow, screen, streams, targets
from ddprobe.cli.options import Hosts, Options, with_options
from ddprobe.errors import UsageError
from ddprobe.model import LAB_TAG, Host, Report

if TYPE_CHECKING:
    from ddprobe.playbook import Playbook, Var
    from ddprobe.running.earlier import Earlier


@with_options()
def run(
    options: Options,
    playbook: Annotated[
        str,
        typer.Argument(metavar="PLAYBOOK", help="Its name, as `ddprobe playbook list` has it, or its file."),
    ],
    hosts: Hosts = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="K=V", help="A var of the playbook; may be given several times."),
    ] = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="Say what would be asked and what it costs; connect to nothing.")
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="STEPS", help="Run these steps, and those they come after."),
    ] = None,
    skip: Annotated[
        list[str] | None, typer.Option("--skip", metavar="STEPS", help="Leave these steps out.")
    ] = None,
    resume: Annotated[
        str | None,
        typer.Option(
            "--resume",
            metavar="REPORT",
            help="Go on from this report: run only what is missing or unknown there.",
        ),
    ] = None,
    junit: Annotated[
        str | None, typer.Option("--junit", metavar="FILE", help="Write the result as JUnit XML too.")
    ] = None,
) -> int:
    """A playbook: a whole triage in one command. `ddprobe playbook list` names those there are.

    Hosts are looked at side by side, and on each of them the steps that need nothing of each other. Ctrl-C ends it
    with a whole report; --resume goes on from that.

    Example: ddprobe run commit-len-one gpu1 --set contexts=1k,64k
    """
    from ddprobe.playbookfile import shelf
    from ddprobe.playbookfile.load import load
    from ddprobe.playbookfile.values import set_vars
    from ddprobe.running.booked import Booked

    book = load(shelf.find(playbook))
    earlier = _earlier(resume, book, options) if resume is not None else None
    values = set_vars(_with_vars(book, earlier) if earlier is not None else book, set_ or ())
    booked = Booked(book, values, _unwanted(book, _steps(book, "--only", only), _steps(book, "--skip", skip)))
    chosen = _hosts(hosts, earlier, options, plan)
    if earlier is not None and earlier.report.lab is not any(LAB_TAG in host.tags for host in chosen):
        whose = "is the lab's" if earlier.report.lab else "is of real hosts, and this is the lab"
        raise UsageError(f"--resume: {earlier.folder} {whose}", "run the playbook without --resume")
    if plan and junit is not None:
        raise UsageError("--plan runs nothing: there is no result for --junit", "give one of them")
    if plan:
        return _show_plan(booked, chosen, options)
    if junit is not None:
        _writable(junit)
    if earlier is not None and not options.quiet:
        _name_strangers(earlier, chosen)
    report, folder = flow.carry_out(
        book.name, chosen, booked.stages, options, book=booked.told, earlier=earlier
    )
    told = junit is None or _write_junit(junit, report, options)
    code = flow.present(report, folder, options)
    if report.interrupted and not options.quiet and not options.json:
        streams.note(f"to go on from there: ddprobe run {shlex.join([playbook, '--resume', str(folder)])}")
    return code if told else code or 4


def _write_junit(name: str, report: Report, options: Options) -> bool:
    """Whether it could be written; if not, the run is still shown, and stderr says so."""
    from ddprobe import render
    from ddprobe.render import junit as view

    try:
        Path(name).write_text(view.text(report, options.fail_on), encoding="utf-8")
    except OSError as error:
        streams.note(f"ddprobe: --junit {render.line(name)}: {error.strerror or error}")
        return False
    return True


def _steps(book: Playbook, option: str, words: Sequence[str] | None) -> tuple[str, ...]:
    """The steps that are named. Raises `UsageError`."""
    from ddprobe.yamlfile import nearest

    names = tuple(
        dict.fromkeys(name.strip() for word in words or () for name in word.split(",") if name.strip())
    )
    known = [step.id for step in book.steps]
    wrong = [f"{option}: {book.name} has no step {n!r}{nearest(n, known)}" for n in names if n not in known]
    if words and not names:
        wrong = [f"{option}: no step is named"]
    if wrong:
        raise UsageError("\n".join(wrong), f"it has {', '.join(known)}")
    return names


def _unwanted(book: Playbook, only: Sequence[str], skip: Sequence[str]) -> dict[str, str]:
    """The steps that are left out, and why. Raises `UsageError` where nothing that was asked for would be left."""
    from ddprobe.running.booked import unwanted

    wrong: list[str] = []
    for name in only:
        left = unwanted(book, (name,), ())
        missing = [one for one in skip if one not in left]
        if name in missing:
            wrong.append(f"the step {name!r} is named by --only and by --skip")
        elif missing:
            wrong.append(f"--only {name} comes after {', '.join(missing)}, which --skip leaves out")
    found = unwanted(book, only, skip)
    if not wrong and len(found) == len(book.steps):
        wrong.append("--skip leaves no step to run")
    if wrong:
        raise UsageError("\n".join(wrong), f"see ddprobe run {book.name} --plan")
    return found


def _hosts(
    words: Sequence[str] | None, earlier: Earlier | None, options: Options, plan: bool
) -> tuple[Host, ...]:
    """The hosts: those named, else those of the report that is gone on from. A plan needs none."""
    if not words and earlier is not None:
        words = earlier.hosts
    try:
        return targets.resolve(words, options)
    except UsageError:
        if plan and not words and options.hosts_file is None:
            return (Host(name="HOST"),)
        raise


def _name_strangers(earlier: Earlier, chosen: Sequence[Host]) -> None:
    """Say on stderr of which hosts nothing can be kept."""
    from ddprobe.redact import Redactor
    from ddprobe.render import line, together
    from ddprobe.running import masking

    strangers = [host.name for host in chosen if not earlier.knows(masking.shown(host, Redactor()))]
    new = [name for name in strangers if name not in earlier.hosts]
    moved = [name for name in strangers if name in earlier.hosts]
    for names, why in (
        (new, f"the report is of {together(earlier.hosts) or 'no host'}"),
        (moved, "in the report it stands at another address, or with other settings"),
    ):
        if names:
            streams.note(line(f"ddprobe: --resume: nothing is kept of {together(names)}: {why}"))


def _earlier(name: str, book: Playbook, options: Options) -> Earlier:
    from ddprobe.cli import report
    from ddprobe.rejudging import rejudge
    from ddprobe.running.earlier import Earlier

    if not name.strip():
        raise UsageError(f"--resume {name!r} names nothing", "give it a report, or leave it out")
    found = Earlier(report.folder_of(name, flow.reports_folder(options)))
    if found.report.version != __version__:
        # What is kept must be what this version says of it, as its report will claim.
        found = Earlier(found.folder, rejudge(found.folder))
    record = found.report.playbook
    if record is None and found.report.interrupted and found.report.name == book.name:
        return found  # killed before it had told what it was about
    if record is None:
        raise UsageError(
            f"--resume: {found.folder} is no playbook's report", "run the playbook without --resume"
        )
    if record.name != book.name:
        raise UsageError(
            f"--resume: {found.folder} is a report of the playbook {record.name!r}, not of {book.name!r}"
        )
    if record.digest != book.digest and not options.quiet:
        streams.note("ddprobe: the playbook is another than then: steps that ask otherwise run again")
    return found


def _with_vars(book: Playbook, earlier: Earlier) -> Playbook:
    """The playbook with the earlier run's vars in place of its defaults."""
    record = earlier.report.playbook
    then: dict[str, Any] = dict(record.vars) if record is not None else {}
    changed = [replace(var, default=_as_then(var, then.get(var.name))) for var in book.vars]
    return replace(book, vars=tuple(changed))


def _as_then(var: Var, value: Any) -> Any:
    """The var's value then; None, so that it must be set again, where it was masked or is of another type now."""
    from ddprobe.playbookfile import kinds

    if value is None:
        return var.default
    if "[redacted]" in str(value):
        return None
    try:
        return kinds.KINDS[var.kind].read(value)
    except ValueError:
        return None


def _show_plan(booked: Any, hosts: Sequence[Host], options: Options) -> int:
    from ddprobe.cli import runplan

    found = runplan.plan(booked, hosts)
    if options.json:
        screen.dump(found)
    else:
        screen.draw(runplan.blocks(found), options)
    return 0


def _writable(name: str) -> None:
    """Find out before anything is asked. Raises `UsageError`."""
    path = Path(name)
    if not name.strip() or name == "-":
        raise UsageError(f"--junit {name!r} names no file", "give it a file's name")
    try:
        if path.exists() and stat.S_ISFIFO(path.stat().st_mode):
            raise UsageError(f"--junit {name}: it is a pipe, which is waited for without end", "name a file")
        with path.open("a", encoding="utf-8"):
            pass
    except OSError as error:
        raise UsageError(f"--junit {name}: {error.strerror or error}") from None
