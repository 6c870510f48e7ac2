"""`doctor`: this laptop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ddprobe.cli import flow, screen
from ddprobe.cli.options import Options, with_options

if TYPE_CHECKING:
    from ddprobe.blocks import Block
    from ddprobe.cli.checks.check import Check
    from ddprobe.model import Outcome


@with_options("hosts_file", "reports", "json", "fail_on", "no_color", "quiet", "verbose", "debug")
def doctor(options: Options) -> int:
    """This laptop: agent, keys, known_hosts, config files, package versions; what would fail, and why.

    Example: ddprobe doctor --hosts hosts.yaml
    """
    from ddprobe.cli import checks
    from ddprobe.model import FAIL_ON, Outcome
    from ddprobe.sessions.sshconfig import home

    found = tuple(checks.run(options.hosts_file, flow.reports_folder(options), home()))
    worst = Outcome.worst(check.outcome for check in found)
    if options.json:
        rows = [
            {"outcome": c.outcome.label, "subject": c.subject, "says": c.says, "advice": c.advice}
            for c in found
        ]
        document = {"schema": "ddprobe-doctor/1", "outcome": worst.label, "checks": rows}
        screen.dump(document)
    else:
        screen.draw(_blocks(found, worst, options), options)
    limit = FAIL_ON[options.fail_on]
    return int(limit is not None and worst >= limit)


def _blocks(found: Sequence[Check], worst: Outcome, options: Options) -> Iterator[Block]:
    from ddprobe.blocks import Paragraph, Table
    from ddprobe.model import Outcome

    bad = (Outcome.WARN, Outcome.FAIL)
    told = [check for check in found if check.outcome in bad or not options.quiet]
    if told:
        yield Table(
            ("", "what", "how it is"),
            tuple(
                (c.outcome.label, c.subject, c.says + (f"\n→ {c.advice}" if c.advice else "")) for c in told
            ),
            emphasis=tuple(number for number, check in enumerate(told) if check.outcome in bad),
        )
    if worst is Outcome.FAIL:
        yield Paragraph("Something here keeps ddprobe from working.", "bad")
    elif worst is Outcome.WARN:
        yield Paragraph("ddprobe works; some hosts may not be reached.", "warn")
    else:
        yield Paragraph("Nothing on this laptop stands in the way.", "good")
