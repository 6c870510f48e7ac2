"""A report as JSON: what `--json` prints, and what is in `report.json`."""

from __future__ import annotations

from ddprobe import reportjson
from ddprobe.model import Report


def text(report: Report) -> str:
    """The whole report as JSON text, without a newline at its end."""
    return reportjson.text(reportjson.from_report(report), indent=2)
