"""What of a run may be kept and logged: settings, hosts, findings and log lines pass redaction too."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
from collections.abc import Iterable, Iterator
from typing import Any

from ddprobe import probes, reportjson
from ddprobe.model import Finding, Host, Probe, Report
from ddprobe.redact import Redactor


def masked_report(report: Report, redactor: Redactor) -> Report:
    """The report without what was only learned to be a secret after it had been seen."""
    whole = reportjson.text(reportjson.from_report(report)).encode()
    masked = redactor.known(whole)
    return report if masked == whole else reportjson.to_report(json.loads(masked))


@contextlib.contextmanager
def clean_log(redactor: Redactor) -> Iterator[None]:
    """What libraries log under `--debug` (headers of HTTP answers) passes redaction too."""

    def clean(record: logging.LogRecord) -> bool:
        text = record.getMessage()
        if record.exc_info:
            text += "\n" + logging.Formatter().formatException(record.exc_info)
        record.msg, record.args, record.exc_info = redactor.text(text), None, None
        return True

    handlers = tuple(logging.getLogger().handlers)
    for handler in handlers:
        handler.addFilter(clean)
    try:
        yield
    finally:
        for handler in handlers:
            handler.removeFilter(clean)


def shown(host: Host, redactor: Redactor) -> Host:
    """The host as the report may keep it."""
    return dataclasses.replace(host, url=redactor.prose(host.url) if host.url else host.url)


def settings(probe: Probe, redactor: Redactor) -> tuple[tuple[str, Any], ...]:
    """The probe's settings as the report may keep them: somebody may search for a key."""
    return values(((s.name, getattr(probe, s.name)) for s in probes.settings(type(probe))), redactor)


def values(given: Iterable[tuple[str, Any]], redactor: Redactor) -> tuple[tuple[str, Any], ...]:
    """Names and values as the report may keep them."""
    return tuple((name, _value(value, redactor)) for name, value in given)


def _value(value: Any, redactor: Redactor) -> Any:
    if isinstance(value, str):
        return redactor.prose(value)
    return tuple(_value(one, redactor) for one in value) if isinstance(value, tuple) else value


def masked(finding: Finding, redactor: Redactor) -> Finding:
    """The finding, should it quote a secret (a setting of the probe is no answer, and was not masked)."""
    return dataclasses.replace(
        finding,
        subject=redactor.prose(finding.subject),
        summary=redactor.prose(finding.summary),
        advice=redactor.prose(finding.advice),
    )
