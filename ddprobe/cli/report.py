"""`report`: what was found before, from the report folders."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ddprobe import inventory
from ddprobe.cli import flow, screen
from ddprobe.cli.options import Options, with_options
from ddprobe.cli.plain import family, nearest
from ddprobe.errors import UsageError
from ddprobe.render import together

if TYPE_CHECKING:
    from ddprobe.store import ReportSummary

app, command = family("report", "List and show what was found before.")


@command("list", "The reports of a folder, newest first.")
@with_options("reports", "json", "no_color", "debug")
def list_reports(options: Options) -> int:
    """The reports of a folder, newest first.

    Example: ddprobe report list --reports reports
    """
    from ddprobe import store

    folder = flow.reports_folder(options)
    found = store.list_reports(folder)
    if not found and folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is not a folder", "name a folder of reports with --reports")
    if not found and options.reports and not folder.exists():
        raise UsageError(f"there is no folder {folder}", "name a folder of reports with --reports")
    if options.json:
        document = {"schema": "ddprobe-reports/1", "reports": [_plain(one) for one in found]}
        screen.dump(document)
        return 0
    from ddprobe.blocks import Paragraph, Table

    if not found:
        screen.draw([Paragraph(f"There is no report in {folder}.")], options)
        return 0
    rows = tuple(
        (
            one.folder.name,
            ("lab: " if one.lab else "") + inventory.fold(one.hosts),
            str(one.steps),
            f"{one.seconds:.1f} s",
            _ended(one),
        )
        for one in found
    )
    screen.draw([Table(("report", "hosts", "steps", "took", "ended"), rows)], options)
    return 0


def _ended(one: ReportSummary) -> str:
    """`fail: drafter_dead`; of one that is damaged, what is; of one that cannot be read, why."""
    if one.outcome is None:
        return f"? {one.trouble}"
    told = ": ".join((one.word, *one.verdicts[:1]))
    return f"? {told}, damaged: {one.trouble}" if one.trouble else told


def _plain(one: ReportSummary) -> dict[str, Any]:
    return {
        "folder": str(one.folder),
        "name": one.name,
        "started": datetime.fromtimestamp(one.started, UTC).isoformat(),
        "seconds": one.seconds,
        "hosts": list(one.hosts),
        "steps": one.steps,
        "outcome": one.outcome.label if one.outcome is not None else None,
        "word": one.word,
        "verdicts": list(one.verdicts),
        "interrupted": one.interrupted,
        "lab": one.lab,
        "trouble": one.trouble,
    }


@command("show", "One report; the newest without a name.")
@with_options("reports", "json", "no_color", "quiet", "verbose", "debug")
def show(
    options: Options,
    report: Annotated[
        str | None,
        typer.Argument(
            metavar="[REPORT]",
            show_default=False,
            help="Its folder, or a part of its name; none is the newest.",
        ),
    ] = None,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print it as Markdown, for a ticket or chat.")
    ] = False,
) -> int:
    """One report, again; the newest without a name. Also one whose run was killed.

    Example: ddprobe report show inspect-config --markdown
    """
    from ddprobe import rejudging, store

    folder = folder_of(report, flow.reports_folder(options))
    kept = store.kept(folder)
    found = kept.report
    if kept.damage:
        found = rejudging.rejudge(folder.parent if folder.is_file() else folder, kept)
    elif kept.killed:
        from ddprobe import runner

        found = runner.judge_again(folder.parent if folder.is_file() else folder, found)
    if options.json:
        screen.show_json(found)
    elif markdown:
        screen.show_markdown(found)
    else:
        screen.show(found, folder, options)
    return 0


def folder_of(name: str | None, reports: Path) -> Path:
    """The report folder that is meant."""
    from ddprobe import plainfile
    from ddprobe.store import holds_report, report_folders

    if name and (not plainfile.trouble(Path(name)) or holds_report(Path(name))):
        return Path(name)
    there = sorted(report_folders(reports), reverse=True)
    if not there:
        raise UsageError(f"there is no report in {reports}", "name a folder of reports with --reports")
    if name is None:
        return there[0]
    matches = [p for p in there if p.name == name] or [p for p in there if name in p.name]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise UsageError(f"{name!r} stands in several names", together([p.name for p in matches]))
    raise UsageError(
        f"there is no report {name!r} in {reports}",
        nearest(name, [p.name for p in there]) or "see ddprobe report list",
    )
