"""Every field of a real answer in turn replaced by what no server should say: no crash, and no number made of it."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ddprobe import engines, lints, verdicts
from ddprobe.engines.generation import Generated, Serving
from ddprobe.engines.llamacpp_generation import LlamaCppGeneration
from ddprobe.errors import Unanswered
from ddprobe.facts import CommitPoint, CommitRequest, CommitSetup
from ddprobe.model import Chunk, HttpRequest, HttpResult, Step
from ddprobe.probes.draft import _commit_checks as checks
from ddprobe.probes.draft import _points
from ddprobe.probes.draft._plausible import plausible, sane
from ddprobe.probes.draft._requests import request_fact
from ddprobe.probes.draft.commit import DraftCommit
from ddprobe.runner import collect, judge
from tests import recorded
from tests.silent import SilentWriter

DATA = Path(__file__).parent / "data"
ASKED = 64
ANSWERS = {
    "llamacpp/b10434-completion-stream.txt": ("llamacpp", 5),
    "llamacpp/b10434-v1-completions-stream.txt": ("llamacpp", 5),
    "sglang-answers/0.5.23-dflash-generate.sse": ("sglang", 3),
    "sglang-answers/0.5.23-dflash-completions.sse": ("sglang", 3),
    "sglang-answers/0.5.23-standalone-generate.sse": ("sglang", 3),
    "vllm/completions_stream.txt": ("vllm", 5),
}
"""Recorded answer → engine and K."""
ABSURD: tuple[Any, ...] = (
    -1, 10**12, 10**30, 10**400, -(10**12), 1e308, math.nan, math.inf, "7", None, True, [], {}, [-1], [10**12], [[1]],
)  # fmt: skip


def events(name: str) -> list[dict[str, Any]]:
    lines = (DATA / name).read_bytes().splitlines()
    told = [line.removeprefix(b"data:").strip() for line in lines if line.startswith(b"data:")]
    return [json.loads(each) for each in told if each != b"[DONE]"]


def places(value: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield (*before, name)
            yield from places(inner, (*before, name))
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        yield from places(value[0], (*before, 0))


def put(value: Any, place: tuple[Any, ...], new: Any) -> None:
    for name in place[:-1]:
        if isinstance(value, dict) and name not in value:
            return
        if isinstance(value, list) and not value:
            return
        value = value[name]
    if isinstance(value, dict) and place[-1] in value:
        value[place[-1]] = new


def result(engine: str, told: list[dict[str, Any]]) -> HttpResult:
    pieces = [b"data: " + json.dumps(event).encode() + b"\n\n" for event in told]
    way = engines.TABLE[engine].generation.ways[0]
    asked = HttpRequest(key="k", method="POST", path=way, base="http://127.0.0.1:1", body=b"{}", stream=True)
    chunks = tuple(Chunk(0.01 * number, len(piece)) for number, piece in enumerate(pieces))
    return HttpResult(question=asked, status=200, body=b"".join(pieces), chunks=chunks, seconds=1.0)


def measured(engine: str, k: int, speculating: bool, answer: HttpResult) -> tuple[CommitRequest, CommitPoint]:
    """As the probe makes it, judged as the report judges it. Raises `Unanswered`."""
    serving = Serving(
        speculating=speculating,
        method="DFLASH" if speculating else "",
        drafter="model" if speculating else "",
        draft_tokens=k if speculating else None,
        version="0.5.23",
    )
    ceiling = k + 1 if speculating else None
    generated, _ = plausible(engines.TABLE[engine].generation.read(answer, serving, None, None), ASKED)
    request = request_fact(
        generated,
        key="k",
        purpose="point",
        arm="repeat",
        context_tokens=1024,
        prompt=0,
        max_tokens=ASKED,
        ceiling=ceiling,
        speculating=speculating,
    )
    point = _points.point([request], ceiling=ceiling)
    setup = CommitSetup(
        engine=engine, base="x", speculating=speculating, ceiling=ceiling, contexts=(1024,), arms=("repeat",)
    )
    verdicts.judge([setup, request, point], lints.judge([setup, request, point]))
    checks.first_again([request], [request])
    checks.cold_cached([(request, request)])
    checks.prompt_length(request, 1024)
    return request, point


@pytest.mark.parametrize("speculating", [True, False])
@pytest.mark.parametrize("name", ANSWERS)
def test_one_absurd_field_never_becomes_a_number(name: str, speculating: bool) -> None:
    engine, k = ANSWERS[name]
    real = events(name)
    for place in sorted({place for event in real for place in places(event)}, key=str):
        for absurd in ABSURD:
            told = copy.deepcopy(real)
            for event in told:
                put(event, place, absurd)
            try:
                request, point = measured(engine, k, speculating, result(engine, told))
            except Unanswered:
                continue
            where = f"{place} = {absurd!r:.40}"
            for field in (
                "prompt_tokens", "cached_tokens", "output_tokens", "num_spec_steps", "undrafted_steps",
                "num_accepted_draft_tokens",
            ):  # fmt: skip
                value = getattr(request, field)
                # A wrong length of the prompt is shown as it was told; nothing is computed from it.
                most = 10**15 if field in ("prompt_tokens", "cached_tokens") else 10 * ASKED
                assert value is None or 0 <= value <= most, f"{where}: {field} {value}"
            assert point.commit_mean is None or 1 <= point.commit_mean <= k + 1, where
            if point.accept_rate is not None and not 0 <= point.accept_rate <= 1:
                assert request.disagreements, where
            for ms in (point.step_ms, point.tok_s, request.first_token_ms):
                assert ms is None or 0 <= ms < 1e9, f"{where}: {ms}"


@pytest.mark.parametrize("absurd", [10**12, -1, 10**30], ids=str)
def test_an_impossible_output_is_an_error_and_says_both_numbers(absurd: int) -> None:
    told = events("sglang-answers/0.5.23-dflash-generate.sse")
    for event in told:
        put(event, ("meta_info", "completion_tokens"), absurd)
    if abs(absurd) < 2**53:
        request, point = measured("sglang", 3, True, result("sglang", told))
        assert request.error == f"the answer counts {absurd} tokens of output, {ASKED} were asked for"
        assert (point.failed, point.commit_mean) == (1, None)


STATES = {
    "llamacpp": {
        "/props": "llamacpp/b10434-props.json",
        "/slots": "llamacpp/b10434-slots.json",
        "/v1/models": "llamacpp/b10434-models.json",
    },
    "sglang": {
        "/server_info": "sglang-0.5.23/server_info.json",
        "/v1/models": "sglang-0.5.23/v1_models.json",
        "/v1/loads": "sglang-0.5.23/v1_loads.json",
    },
}  # fmt: skip


MATTERS = (
    "speculative_",
    "max_",
    "context_length",
    "version",
    "stream_interval",
    "internal_",
    "disable_radix",
)
"""Beginnings of the fields of `/server_info` that a probe reads."""


@pytest.mark.parametrize(("engine", "path"), [(e, path) for e, known in STATES.items() for path in known])
def test_what_a_server_says_of_itself_may_be_absurd(engine: str, path: str) -> None:
    generation = engines.TABLE[engine].generation
    documents = {p: json.loads((DATA / name).read_bytes()) for p, name in STATES[engine].items()}
    if path == "/server_info":
        documents[path] = {name: value for name, value in documents[path].items() if name.startswith(MATTERS)}
    for place in sorted(set(places(documents[path])), key=str):
        for absurd in ABSURD:
            changed = copy.deepcopy(documents)
            put(changed[path], place, absurd)
            answers = {p: state(p, document) for p, document in changed.items()}
            serving, _ = sane(generation.serving(answers, ()))
            generation.claims(answers)
            assert serving.draft_tokens is None or 0 <= serving.draft_tokens <= 4096
            for value in (serving.running, serving.waiting, serving.decode_ms, serving.kv_used):
                assert value is None or 0 <= value < 1e9, f"{place} = {absurd!r:.40}"


def state(path: str, document: Any) -> HttpResult:
    asked = HttpRequest(key=path, method="GET", path=path, base="http://127.0.0.1:1")
    return HttpResult(question=asked, status=200, body=json.dumps(document).encode())


@pytest.mark.parametrize("engine", engines.TABLE)
@pytest.mark.parametrize(
    "line",
    ["{} nan", "{} -1", "{} 1e308", "{} -1e200", "{} 1e200", "{}{{a=\"b\"", "{}", "{} 0x10", "{} 1_000"],
)  # fmt: skip
def test_absurd_counters_are_unknown(engine: str, line: str) -> None:
    generation = engines.TABLE[engine].generation
    if not generation.counters_path:
        return
    names = [
        "llamacpp:tokens_predicted_total", "llamacpp:spec_decode_num_drafts_total", "llamacpp:requests_processing",
        "vllm:generation_tokens_total", "vllm:spec_decode_num_drafts_total", "vllm:num_requests_running",
    ]  # fmt: skip
    asked = HttpRequest(key="m", method="GET", path="/metrics", base="http://127.0.0.1:1")
    body = "\n".join(line.format(name) for name in names).encode()
    answer = HttpResult(question=asked, status=200, body=body)
    counters = generation.counters(answer)
    for claim in generation.claims({"/metrics": answer}):
        assert math.isfinite(claim.value)
    told = events(next(name for name, (owner, _) in ANSWERS.items() if owner == engine))
    serving = Serving(speculating=True, method="m", drafter="model", draft_tokens=5)
    for before, after in ((counters, counters), (None, counters), (counters, None)):
        generated = generation.read(result(engine, told), serving, before, after)
        assert "/metrics" not in [
            account.origin for account in plausible(generated, ASKED)[0].accounts if account.steps
        ]


def test_a_fault_of_our_own_loses_nothing_that_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    path = next(p for p in recorded.recordings() if p.stem == "verbatim-llamacpp")
    content = recorded.load(path)
    host = recorded.host(content)
    session = recorded.RecordedSession(host, content["answers"], path.parent)
    real = LlamaCppGeneration.read

    def breaks(self: Any, answer: HttpResult, *more: Any) -> Generated:
        if "cached" in answer.key:
            raise ZeroDivisionError
        return real(self, answer, *more)

    monkeypatch.setattr(LlamaCppGeneration, "read", breaks)
    step = Step("step", DraftCommit(**content["settings"]))
    collected = collect(step, host, session, SilentWriter(), lambda _host, _now: None)
    record, _ = judge(step, collected.evidence, collected.broken, lambda _host, _step, key: key)
    assert record.status == "incomplete"
    assert any("ddprobe has a bug" in reason for reason in record.reasons)
    (point,) = [fact for fact in record.facts if isinstance(fact, CommitPoint)]
    assert (point.steps, point.histogram) == (18, (1, 0, 0, 17))
