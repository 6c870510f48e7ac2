"""`commit-probe` while the server or the road breaks: a clear sentence, what was measured kept, and never a verdict on it.

A real llama-server answers, through a real sshd; a proxy before it breaks the requests that a test names. With these
settings the probe sends: 1 warm-up, 2 and 3 the cache check, 4 and 5 the points, 6 the first point again.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.real import sshd as real
from tests.real.conftest import StartServer
from tests.real.servers.breaking import Break, Breaking, Exchange, breaking, changed, events_of
from tests.real.servers.llamacpp import BAD_DRAFTER, LlamaServer, StartLlama, serving
from tests.real.servers.test_commands import Person, Ran, address

SMALL = ("--contexts", "256,512", "--steps", "16", "--prompts", "1", "--seed", "1")
AGAIN = 6
GOOD = ("healthy", "text_difficulty", "drafter_dead", "long_context_bug", "not_speculating")
"""What no broken run may say."""


@pytest.fixture(scope="module")
def llama() -> Iterator[LlamaServer]:
    with serving(*BAD_DRAFTER) as running:
        yield running


@pytest.fixture(scope="module")
def proxy() -> Iterator[Breaking]:
    with breaking() as running:
        yield running


@pytest.fixture
def broken(proxy: Breaking, llama: LlamaServer) -> Breaking:
    """The proxy before the server, nothing broken yet."""
    proxy.begin(llama.port)
    return proxy


@pytest.fixture
def person(tmp_path: Path, server: real.Server, llama: LlamaServer) -> Person:
    (tmp_path / "phrase.txt").write_text(llama.phrase)
    return Person(tmp_path, {"gpu1": address(server)})


def words(base: str, *more: str) -> tuple[str, ...]:
    arm = ("--arms", "repeat", "--text", "phrase.txt")
    return ("commit-probe", "--url", base, "--engine", "llamacpp", *arm, *SMALL, "--timeout", "2", *more)


def probe(person: Person, base: str, *more: str, expect: int = 4) -> Ran:
    return person.types(*words(base, *more), "--json", expect=expect)


def reasons(report: dict[str, Any]) -> str:
    return "\n".join(reason for step in report["steps"] for reason in step["reasons"])


def commits(report: dict[str, Any]) -> dict[int, float | None]:
    return {point["context_tokens"]: point["commit_mean"] for point in report["points"]}


def names(report: dict[str, Any]) -> set[str]:
    return {verdict["name"] for verdict in report["verdicts"]}


# --- what a server can do to an answer ---------------------------------------------------------------------


def status(code: str, body: bytes) -> Break:
    return lambda exchange: exchange.status(code, body)


def half(exchange: Exchange) -> None:
    body = exchange.real()
    exchange.stream(body[: len(body) // 2], end=False)


def without_its_end(exchange: Exchange) -> None:
    exchange.stream(*events_of(exchange.real())[:5])


def with_inside(event: bytes) -> Break:
    def act(exchange: Exchange) -> None:
        first, *rest = events_of(exchange.real())
        exchange.stream(first, event, *rest)

    return act


def hangs_up(exchange: Exchange) -> None:
    exchange.client.shutdown(socket.SHUT_RDWR)


def stops_talking(exchange: Exchange) -> None:
    exchange.stream(*events_of(exchange.real())[:5], end=False)
    exchange.over.wait(30)


FAULTS: dict[str, tuple[Break, str]] = {
    "503": (status("503 Busy", b'{"error":{"message":"Loading model"}}'), "HTTP 503: Loading model"),
    "401": (status("401 No", b'{"error":{"message":"Invalid API Key"}}'), "HTTP 401: Invalid API Key (the hosts file"),
    "404 of what was there": (status("404 No", b'{"error":{"message":"not here"}}'), "HTTP 404: not here"),
    "a megabyte of error": (status("500 Oh", b"x" * 1_000_000), "HTTP 500: xxx"),
    "half a stream": (half, "closed the connection"),
    "a stream without its end": (without_its_end, "the answer ends early: 5 tokens had come"),
    "an error inside": (with_inside(b'data: {"error":{"message":"CUDA error:\\n gone"}}\n\n'), "CUDA error: gone"),
    "nonsense inside": (with_inside(b"data: {nonsense\n\n"), "what is no JSON: {nonsense"),
    "a login page": (status("200 OK", b"<html>log in</html>"), "no JSON object: <html>log in</html>"),
    "an empty answer": (status("200 OK", b""), "the answer is empty"),
    "a closed door": (hangs_up, "closed the connection"),
    "silence in the middle": (stops_talking, "timed out after 2.0 s"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_two_failures_end_the_probe_and_what_was_measured_stays(
    person: Person, broken: Breaking, fault: str
) -> None:
    act, said = FAULTS[fault]
    broken.faults = {5: act, 6: act}
    report = probe(person, broken.base).report
    assert "repeat at 512 tokens: " in reasons(report)
    assert said in reasons(report)
    assert "2 requests in a row failed; nothing more was sent" in reasons(report)
    assert broken.generated == AGAIN
    found = commits(report)
    assert found[256] is not None
    assert abs(found[256] - 4) < 0.3
    assert found[512] is None
    assert not names(report) & set(GOOD)


@pytest.mark.parametrize("fault", ["503", "half a stream", "an error inside", "a login page"])
def test_a_first_request_that_fails_is_told_and_the_rest_is_measured(
    person: Person, broken: Breaking, fault: str
) -> None:
    act, said = FAULTS[fault]
    broken.faults = {1: act}
    report = probe(person, broken.base).report
    assert "repeat at 256 tokens (warm-up): " in reasons(report)
    assert said in reasons(report)
    assert all(commit is not None and abs(commit - 4) < 0.3 for commit in commits(report).values())
    assert not names(report) & set(GOOD)


def test_a_server_that_never_answers_gives_nothing(person: Person, broken: Breaking) -> None:
    broken.every = FAULTS["503"][0]
    report = probe(person, broken.base).report
    assert (broken.generated, commits(report)) == (2, {})
    assert [(v["name"], v["kind"]) for v in report["verdicts"]] == [("inconclusive", "no_measurement")]


# --- what it says before anything is sent ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"tokens": [1, 2, 99999999] * 20}, "its ids reach from 1 to 99999999, and the vocabulary has 1024"),
        ({"tokens": [1, -2] * 20}, "its ids reach from -2 to 1"),
        ({"tokens": []}, "has no tokens"),
        ({"tokens": [10**400]}, "/tokenize gave no ids"),
        ({"tokens": ["a"]}, "/tokenize gave no ids"),
    ],
)
def test_wrong_ids_are_never_sent(person: Person, broken: Breaking, answer: Any, said: str) -> None:
    broken.gets = {"/tokenize": status("200 OK", json.dumps(answer).encode())}
    assert said in reasons(probe(person, broken.base).report)
    assert broken.generated == 0


def test_a_tokenizer_that_is_not_routed(person: Person, broken: Breaking) -> None:
    broken.gets = {"/tokenize": status("404 No", b'{"error":{"message":"File Not Found"}}')}
    told = reasons(probe(person, broken.base).report)
    assert "/tokenize gave no ids (HTTP 404: File Not Found)" in told
    assert "--arms verbatim --text FILE" in told
    assert broken.generated == 0


@pytest.mark.parametrize(
    ("code", "said"),
    [("503 Busy", "it still loads its model"), ("401 No", "`api_key_env: NAME` in the hosts file")],
)
def test_a_server_that_answers_no_question_is_sent_nothing(
    person: Person, broken: Breaking, code: str, said: str
) -> None:
    broken.gets = {path: status(code, b"{}") for path in ("/props", "/slots", "/v1/models", "/metrics")}
    assert said in reasons(probe(person, broken.base).report)
    assert broken.generated == 0


def test_absurd_numbers_about_itself_are_unknown(person: Person, broken: Breaking) -> None:
    absurd = b"llamacpp:requests_processing -1\nllamacpp:requests_deferred 1e200\nllamacpp:tokens_predicted_total nan\n"
    broken.gets = {"/metrics": status("200 OK", absurd)}
    report = probe(person, broken.base).report
    assert "it says waiting 1e+200, which cannot be: taken as unknown" in reasons(report)
    assert all(commit is not None for commit in commits(report).values())


def test_more_steps_than_may_be_asked_for_at_once(person: Person, broken: Breaking) -> None:
    told = reasons(probe(person, broken.base, "--steps", "3000").report)
    assert "3000 steps take up to 18007 tokens of output in one request, and 16384 are the most" in told
    assert "more --prompts" in told
    assert broken.generated == 0


# --- odd, and not broken -----------------------------------------------------------------------------------


def in_bits(exchange: Exchange) -> None:
    for piece in exchange.answer():
        for start in range(0, len(piece), 11):
            exchange.say(piece[start : start + 11])


def other_line_ends(exchange: Exchange) -> None:
    exchange.stream(exchange.real().replace(b"\n", b"\r\n"))


@pytest.mark.parametrize("act", [in_bits, other_line_ends])
def test_how_a_stream_is_cut_does_not_matter(person: Person, broken: Breaking, act: Break) -> None:
    broken.every = act
    report = probe(person, broken.base).report
    assert reasons(report) == ""
    assert all(commit is not None and abs(commit - 4) < 0.3 for commit in commits(report).values())


def test_another_prompt_than_was_sent(person: Person, broken: Breaking) -> None:
    def one_more(data: dict[str, Any]) -> None:
        if "tokens_evaluated" in data:
            data["tokens_evaluated"] += 1

    broken.every = lambda exchange: exchange.stream(changed(exchange.real(), one_more))
    report = probe(person, broken.base).report
    (verdict,) = report["verdicts"]
    assert (verdict["name"], verdict["kind"]) == ("inconclusive", "prompt_length")
    assert any("256 ids were sent and the server counted 257" in reason for reason in verdict["reasons"])


def test_hostile_text_moves_no_cursor(person: Person, broken: Breaking) -> None:
    evil = "\x1b[31mred\x1b]0;t\x07 [bold]x[/nope]\r\u202e"
    broken.gets = {
        "/v1/models": lambda exchange: exchange.status(
            "200 OK", json.dumps({"data": [{"id": evil, "owned_by": "llamacpp"}]}).encode()
        )
    }
    broken.faults = {4: status("500 Oh", json.dumps({"error": {"message": evil * 50}}).encode())}
    ran = person.types(*words(broken.base), expect=4)
    assert "[bold]x[/nope]" in ran.out
    assert not [mark for mark in ran.out + ran.err if mark in "\x1b\x07\r\u202e"]


# --- servers that die, hang and change ---------------------------------------------------------------------


@contextlib.contextmanager
def underway(person: Person, base: str, *more: str) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """The command as a process of its own, and the folder of its reports."""
    reports = person.folder / "reports-underway"
    known = {"DDPROBE_HOSTS": str(person.hosts), "DDPROBE_REPORTS": str(reports), "COLUMNS": "120"}
    running = subprocess.Popen(
        [sys.executable, "-m", "ddprobe", *words(base, *more), "--json"],
        env={**os.environ, **known},
        cwd=person.folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield running, reports
    finally:
        running.kill()
        running.communicate()


def ended(running: subprocess.Popen[str]) -> tuple[int, dict[str, Any]]:
    out, err = running.communicate(timeout=60)
    assert "Traceback" not in out + err, err
    return running.returncode, dict(json.loads(out))


def at(number: int, act: Callable[[], object]) -> dict[int, Break]:
    """Do something when that request to generate arrives, then pass it on."""

    def broken(exchange: Exchange) -> None:
        act()
        exchange.relay()

    return {number: broken}


def test_a_server_killed_in_the_middle(person: Person, proxy: Breaking, llama_server: StartLlama) -> None:
    victim = llama_server(*BAD_DRAFTER)
    proxy.begin(victim.port)
    proxy.faults = at(5, lambda: os.kill(victim.pid, signal.SIGKILL))
    report = probe(person, proxy.base).report
    assert "no further answer after 4 measured requests" in reasons(report)
    assert "what was measured before stands" in reasons(report)
    assert abs((commits(report)[256] or 0) - 4) < 0.3
    assert not names(report) & set(GOOD)


def test_a_killed_server_is_told_from_a_silent_one(person: Person, llama_server: StartLlama) -> None:
    victim = llama_server(*BAD_DRAFTER)
    with underway(person, victim.base, "--steps", "400", "--timeout", "30") as (running, reports):
        assert until(lambda: list(reports.rglob("*-warm-up-1.body")))
        os.kill(victim.pid, signal.SIGKILL)
        code, report = ended(running)
    assert code == 4
    assert f"its process ({victim.pid}) has ended" in reasons(report)
    assert "connection refused" in reasons(report)


def test_a_stopped_server_takes_no_longer_than_the_limits(person: Person, llama_server: StartLlama) -> None:
    victim = llama_server(*BAD_DRAFTER)
    with underway(person, victim.base, "--steps", "400") as (running, reports):
        assert until(lambda: list(reports.rglob("*-warm-up-1.body")))
        os.kill(victim.pid, signal.SIGSTOP)
        began = time.monotonic()
        code, report = ended(running)
        assert time.monotonic() - began < 30
    assert code == 4
    assert "timed out after 2.0 s" in reasons(report)
    assert "no further answer after 1 measured request (timed out" in reasons(report)


def test_a_server_started_again_with_other_flags(
    person: Person, broken: Breaking, llama_server: StartLlama
) -> None:
    plain = llama_server()

    def swap(exchange: Exchange) -> None:
        broken.upstream = exchange.port = plain.port
        exchange.relay()

    broken.faults = {5: swap}
    report = probe(person, broken.base).report
    assert "the server was started again meanwhile: its count of output tokens fell from" in reasons(report)
    assert "another server answers now (speculating True before, False now" in reasons(report)
    assert not names(report) & {"healthy", "long_context_bug", "drafter_dead"}


# --- others, and the person --------------------------------------------------------------------------------


@contextlib.contextmanager
def another_client(llama: LlamaServer) -> Iterator[None]:
    """Somebody else who generates all the time."""
    over = threading.Event()
    body = {"prompt": list(llama.tiled(64)), "n_predict": 300, "ignore_eos": True, "temperature": 0}
    asked = urllib.request.Request(
        f"{llama.base}/completion", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )

    def generate() -> None:
        while not over.is_set():
            with urllib.request.urlopen(asked, timeout=30) as answer:
                answer.read()

    client = threading.Thread(target=generate)
    client.start()
    try:
        assert until(lambda: processing(llama))
        yield
    finally:
        over.set()
        client.join()


def processing(llama: LlamaServer) -> bool:
    with urllib.request.urlopen(f"{llama.base}/slots", timeout=10) as answer:
        return any(slot["is_processing"] for slot in json.load(answer))


def test_a_busy_server_is_left_alone_unless_told(person: Person, llama_server: StartLlama) -> None:
    busy = llama_server(*BAD_DRAFTER, np=2)
    with another_client(busy):
        told = reasons(probe(person, busy.base).report)
        assert "the server is busy" in told
        assert "--while-busy" in told
        report = probe(person, busy.base, "--while-busy", "--timeout", "20").report
    # Server-wide counters that moved for others too are no source: what is kept agrees.
    requests = [f for step in report["steps"] for f in step["facts"] if f["type"] == "CommitRequest"]
    assert requests
    assert not [words for request in requests for words in request["disagreements"]]
    assert all(commit is not None and abs(commit - 4) < 0.3 for commit in commits(report).values())


def test_ctrl_c_keeps_what_was_measured_and_frees_the_server(
    person: Person, server: real.Server, llama: LlamaServer
) -> None:
    more = ("--steps", "200", "--timeout", "30")
    with underway(person, llama.base, *more) as (running, reports):
        assert until(lambda: list(reports.rglob("*-256-point-1.body")))
        assert until(lambda: processing(llama))
        running.send_signal(signal.SIGINT)
        code, report = ended(running)
    assert code == 130
    assert abs((commits(report)[256] or 0) - 4) < 0.3
    assert [verdict["name"] for verdict in report["verdicts"]] == ["inconclusive"]
    assert until(lambda: not processing(llama))
    assert until(lambda: not server.children())


def test_a_road_that_breaks_keeps_what_was_measured(
    person: Person, sshd: StartServer, llama: LlamaServer
) -> None:
    own = sshd()
    mine = Person(person.folder, {"gpu1": address(own)})
    with underway(mine, llama.base, "--steps", "200", "--timeout", "30") as (running, reports):
        assert until(lambda: list(reports.rglob("*-256-point-1.body")))
        real.tell(own.children(), signal.SIGKILL)
        code, report = ended(running)
    assert code in (3, 4)
    assert abs((commits(report)[256] or 0) - 4) < 0.3
    assert not names(report) & set(GOOD)


@pytest.mark.parametrize("fault", ["503", "half a stream", "silence in the middle"])
def test_by_curl_the_same_sentences_and_no_times(
    person: Person, sshd: StartServer, broken: Breaking, fault: str
) -> None:
    mine = Person(person.folder, {"gpu1": address(sshd(allow_tcp_forwarding=False))})
    broken.faults = {5: FAULTS[fault][0]}
    report = probe(mine, broken.base).report
    assert "repeat at 512 tokens: " in reasons(report)
    (short,) = [point for point in report["points"] if point["context_tokens"] == 256]
    assert abs(short["commit_mean"] - 4) < 0.3
    assert short["step_ms"] is None
    assert commits(report)[512] is None


def until(condition: Callable[[], object], seconds: float = 90.0) -> bool:
    """Whether it became true in time."""
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        if condition():
            return True
        time.sleep(0.1)
    return False
