"""What SGLang states of its speculation server-wide: a lifetime mean, the last log window, and what forks add.

None of these is a measurement of a request: they mix everybody's, and move at log ticks only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from ddprobe.engines.base import Answers, document, items, mapping, number, text
from ddprobe.facts import Claim
from ddprobe.model import Cite
from ddprobe.parsing import prometheus
from ddprobe.parsing.version import before

_FORKS = {
    "avg_commit_len": "commit length",
    "avg_commit_length": "commit length",
    "avg_accepted_depth": "accepted depth",
}
"""Fields that no release has and forks report."""
LIFETIME = "lifetime"
WINDOW = "last log window"


def claims(answers: Answers) -> tuple[Claim, ...]:
    """Every number about its speculation that the server states; a zero length is a gauge that was never set."""
    return (*_server_info(answers), *_loads(answers), *_gauges(answers))


def _server_info(answers: Answers) -> Iterator[Claim]:
    path = _path(answers, "/server_info", "/get_server_info")
    ranks = items(mapping(document(answers, path)).get("internal_states"))
    named = {"avg_spec_accept_length": "accept length", **_FORKS}
    for rank, state in enumerate(ranks):
        for name, what in named.items():
            value = number(state.get(name))
            if value is not None and (value or what == "accepted depth"):
                at = f"$.internal_states[{rank}].{name}"
                yield _claim(answers, path, what, value, f"/server_info {name}", LIFETIME, at)


def _loads(answers: Answers) -> Iterator[Claim]:
    told = mapping(document(answers, "/v1/loads"))
    for rank, load in enumerate(items(told.get("loads"))):
        speculative = mapping(load.get("speculative"))
        length, rate = number(speculative.get("accept_length")), number(speculative.get("accept_rate"))
        at = f"$.loads[{rank}].speculative"
        if length:
            origin = "/v1/loads speculative.accept_length"
            # Of one answer, the length is over all steps since the start, the rate over the last log window.
            yield _claim(
                answers, "/v1/loads", "accept length", length, origin, LIFETIME, f"{at}.accept_length"
            )
            if rate is not None and (what := _rate(answers)):
                origin = "/v1/loads speculative.accept_rate"
                yield _claim(answers, "/v1/loads", what, rate, origin, WINDOW, f"{at}.accept_rate")


def _gauges(answers: Answers) -> Iterator[Claim]:
    answer = answers.get("/metrics")
    if answer is None or not answer.whole:
        return
    found = [sample for sample in prometheus.samples(answer.text) if math.isfinite(sample.value)]
    rates = {sample.labels: sample.value for sample in found if sample.name == "sglang:spec_accept_rate"}
    for sample in found:
        what = next((words for suffix, words in _FORKS.items() if sample.name.endswith(suffix)), "")
        if sample.name == "sglang:spec_accept_length" and sample.value:
            yield _gauge(answers, "accept length", sample.value, sample.name)
            if sample.labels in rates and (rate := _rate(answers)):
                yield _gauge(answers, rate, rates[sample.labels], "sglang:spec_accept_rate")
        elif what and (sample.value or what == "accepted depth"):
            yield _gauge(answers, what, sample.value, sample.name)


def _gauge(answers: Answers, what: str, value: float, name: str) -> Claim:
    return _claim(answers, "/metrics", what, value, f"/metrics {name}", WINDOW, name)


def _rate(answers: Answers) -> str:
    """What the log's and the gauge's rate means: until 0.5.10 it held the bonus token; empty when that is not known."""
    info = mapping(document(answers, "/server_info", "/get_server_info"))
    version = text(info.get("version")) or text(mapping(document(answers, "/v1/loads")).get("version"))
    older = before(version, "0.5.11")
    return "" if older is None else "accept rate with bonus" if older else "accept rate"


def _path(answers: Answers, *paths: str) -> str:
    return next((path for path in paths if path in answers and answers[path].whole), paths[0])


def _claim(answers: Answers, path: str, what: str, value: float, origin: str, window: str, at: str) -> Claim:
    source = (Cite(answers[path].key, at),)
    return Claim(what=what, value=value, origin=origin, window=window, source=source)
