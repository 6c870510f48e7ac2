"""Scrapes of one server in files of their own, `before.prom` and `after.prom`: what was counted between them.

That they are of one server has to show: the moments at which its series were made, or a count that stood still while others
grew. Two servers whose counts happen to lie in order stay two servers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ddprobe.evidence import counters
from ddprobe.evidence.document import Document, Found, of_bytes
from ddprobe.parsing import prometheus

Series = tuple[str, tuple[tuple[str, str], ...]]
_BORN = "process_start_time_seconds"
_COUNTS = ("_total", "_count", "_sum", "_bucket")
STILL = 100.0
"""A count of at least so many that is the same in both is of one server: by chance two do not share it."""
MOST = 32


def together(documents: Sequence[Document]) -> Mapping[str, Found | None]:
    """By key: the last scrape of a server with what lies between the first and it; None for those before it."""
    held = [(document, text) for document in documents[:MOST] if (text := document.whole()) is not None]
    alone = [(document, text, found) for document, text in held if (found := _series(text))]
    changed: dict[str, Found | None] = {}
    while alone:
        first = alone.pop(0)
        others = [each for each in alone if _same(first[2], each[2])]
        alone = [each for each in alone if not any(each is other for other in others)]
        if others:
            changed.update(_between([first, *others]))
    return changed


def _between(scrapes: list[tuple[Document, str, dict[Series, float]]]) -> dict[str, Found | None]:
    ordered = sorted(scrapes, key=lambda each: sum(_counted(each[2]).values()))
    (_, begin, _), (last, end, _) = ordered[0], ordered[-1]
    document = of_bytes(last.key, f"{begin}\n{end}".encode("utf-8", "replace"))
    found = counters.recognise(document, document.sample())
    if found is None:
        return {}
    return {**{each[0].key: None for each in ordered[:-1]}, last.key: found}


def _series(text: str) -> dict[Series, float]:
    """The series of a text that is one scrape; empty for one that is several, or none."""
    found: dict[Series, float] = {}
    for sample in prometheus.samples(text):
        series = (sample.name, sample.labels)
        if series in found:
            return {}
        found[series] = sample.value
    return found


def _counted(scrape: Mapping[Series, float]) -> dict[Series, float]:
    return {
        series: value
        for series, value in scrape.items()
        if series[0].endswith(_COUNTS) or counters.counts(series[0])
    }


def _same(one: Mapping[Series, float], other: Mapping[Series, float]) -> bool:
    """Whether both are of one server since one start, at two times."""
    born = [series for series in one if series[0].endswith("_created") or series[0] == _BORN]
    shared = [series for series in born if series in other]
    if any(one[series] != other[series] for series in shared):
        return False
    mine, theirs = _counted(one), _counted(other)
    early, late = sorted((mine, theirs), key=lambda counted: sum(counted.values()))
    if early == late or any(series not in late or late[series] < value for series, value in early.items()):
        return False
    return bool(shared) or any(value >= STILL and late[series] == value for series, value in early.items())
