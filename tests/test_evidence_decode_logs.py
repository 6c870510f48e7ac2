"""Whole logs: what is made of them, and what is not."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from ddprobe.evidence import decode_logs
from ddprobe.evidence.document import BLOCK, LONGEST_LINE, Document, Found, of_bytes
from ddprobe.facts import Acceptance, Claim, DecodeSeries


def recognise(text: str) -> Found | None:
    document = of_bytes("a", text.encode())
    return decode_logs.recognise(document, document.sample())


def found(text: str) -> Found:
    told = recognise(text)
    assert told is not None
    return told


def series(text: str) -> list[DecodeSeries]:
    return [fact for fact in found(text).facts if isinstance(fact, DecodeSeries)]


def acceptances(text: str) -> list[Acceptance]:
    return [fact for fact in found(text).facts if isinstance(fact, Acceptance)]


def decode(
    tokens: int,
    commit: float,
    rate: float,
    speed: float,
    *,
    running: int = 1,
    at: str = "10:00:00",
    graph: bool = True,
) -> str:
    return (
        f"[2026-11-30 {at} TP0] Decode batch, #running-req: {running}, #token: {tokens}, token usage: 0.01, "
        f"accept len: {commit:.2f}, accept rate: {rate:.2f}, cuda graph: {graph}, "
        f"gen throughput (token/s): {speed:.2f}, #queue-req: 0\n"
    )


PREFILL = (
    "[2026-11-30 10:00:00 TP0] Prefill batch, #new-seq: 1, #new-token: 5, #cached-token: 0, token usage: 0.00, "
    "#running-req: {running}, #queue-req: 0, #pending-token: 0, cuda graph: False, input throughput (token/s): 2.06\n"
)


# --- SGLang --------------------------------------------------------------------------------------------------


def test_each_line_counts_by_its_running_requests_also_the_first_after_idle_time() -> None:
    """3 × 1.0 and 1 × 4.0: 7 / 4. Each of the lines comes after idle time: throughput is nobody's, steps are."""
    idle = PREFILL.format(running=0)
    (figure,) = acceptances(
        idle + decode(3000, 1.0, 0.0, 50.0, running=3) + idle + decode(900, 4.0, 1.0, 20.0, running=1)
    )
    assert figure.commit == pytest.approx(7 / 4)


def test_the_mean_of_the_lifetime_is_told_beside_that_of_the_lines() -> None:
    """SGLang logs it when its threshold is set anew, and counts from there: the last of them is the latest."""
    lines = decode(900, 2.0, 0.33, 20.0) * 3
    told = "[2026-11-30 10:00:09] avg_spec_accept_length={}\n"
    of_lines, lifetime = acceptances(told.format("1.5") + lines + told.format("2.075862068965517"))
    assert (of_lines.origin, of_lines.commit) == ("decode log", 2.0)
    assert (lifetime.origin, lifetime.window) == ("avg_spec_accept_length line", "lifetime")
    assert lifetime.commit == 2.075862068965517
    assert lifetime.draft_tokens == of_lines.draft_tokens == 3
    assert lifetime.rate == pytest.approx(1.075862068965517 / 3)
    (alone,) = acceptances(told.format("2.5"))
    assert (alone.commit, alone.rate) == (2.5, None)
    assert found(told.format("2.5")).what == "SGLang lifetime mean, 1 line"


def test_bins_by_context() -> None:
    # A hybrid model whose verify step grows with the context while its drafter is fine.
    text = (
        "[2026-09-13 11:00:00 TP0] Decode batch, #running-req: 1, #full token: 1100, full token usage: 0.01, mamba num: 2, "
        "mamba usage: 0.02, accept len: 3.21, accept rate: 0.74, cuda graph: True, gen throughput (token/s): 66.90, #queue-req: 0\n"
        "[2026-09-13 11:05:00 TP0] Decode batch, #running-req: 1, #full token: 32900, full token usage: 0.09, mamba num: 2, "
        "mamba usage: 0.02, accept len: 3.15, accept rate: 0.72, cuda graph: True, gen throughput (token/s): 30.30, #queue-req: 0\n"
        "[2026-09-13 11:10:00 TP0] Decode batch, #running-req: 1, #full token: 131500, full token usage: 0.36, mamba num: 2, "
        "mamba usage: 0.02, accept len: 3.12, accept rate: 0.71, cuda graph: True, gen throughput (token/s): 10.00, #queue-req: 0\n"
    )
    (log,) = series(text)
    assert (log.engine, log.lines, log.seconds, log.off_lines) == ("sglang", 3, 600.0, 0)
    assert (log.rate_definition, log.draft_tokens) == ("(len - 1) / K", 3)
    assert [(b.low, b.high, b.running, b.commit_mean, b.tok_s, b.graph_share) for b in log.bins] == [
        (1024, 2048, 1, 3.21, 66.9, 1.0),
        (32768, 65536, 1, 3.15, 30.3, 1.0),
        (131072, 262144, 1, 3.12, 10.0, 1.0),
    ]
    assert log.trend == (
        "with 1 running request, from 1k to 128k tokens of context and more: commit 3.21 → 3.12, "
        "66.9 → 10.0 tokens per second and request"
    )
    (figure,) = acceptances(text)
    assert figure.commit == pytest.approx(3.16)
    assert figure.rate == pytest.approx(0.72)
    assert (figure.steps, figure.window, figure.run) == (None, "the whole log", "a")
    assert [(cite.artefact, cite.at) for cite in figure.source] == [("a", "lines 1-3")]


def test_tokens_are_per_running_request() -> None:
    # 16 requests at 3000 tokens each; 750 tokens per second of them together.
    (log,) = series(decode(48000, 2.00, 0.33, 750, running=16) * 2)
    (only,) = log.bins
    assert (only.low, only.running, only.lines) == (2048, 16, 2)
    assert only.tok_s == pytest.approx(46.875)


def test_lines_count_by_their_running_requests() -> None:
    # 1.0 of one request and 3.0 of three: (1 + 9) / 4
    (figure,) = acceptances(decode(100, 1.00, 0.00, 50) + decode(300, 3.00, 0.67, 90, running=3))
    assert figure.commit == pytest.approx(2.5)


def test_throughput_after_idle_time_is_left_out() -> None:
    burst = decode(1100, 2.0, 0.33, 0.19) + decode(1140, 2.0, 0.33, 50) + decode(1180, 2.0, 0.33, 52)
    (log,) = series((PREFILL.format(running=0) + burst) * 3)
    assert log.bins[0].lines == 9
    assert log.bins[0].tok_s == pytest.approx(51)
    # A prefill beside running requests is no idle time.
    (log,) = series((PREFILL.format(running=1) + burst) * 3)
    assert log.bins[0].tok_s == pytest.approx(50)


def test_only_lines_after_idle_time_have_no_throughput() -> None:
    (log,) = series((PREFILL.format(running=0) + decode(1100, 2.0, 0.33, 0.19)) * 3)
    assert log.bins[0].tok_s is None


def test_idle_time_across_blocks() -> None:
    filler = "x" * 99 + "\n"
    text = (
        PREFILL.format(running=0)
        + filler * (3 * BLOCK // 100)
        + decode(1100, 2.0, 0.33, 0.19)
        + decode(1140, 2.0, 0.33, 50)
    )
    (log,) = series(text)
    assert log.bins[0].tok_s == 50
    assert found(text).facts[0].source[0].at == f"lines {2 + 3 * BLOCK // 100}-{3 + 3 * BLOCK // 100}"


def test_a_context_that_is_not_known_has_no_bin() -> None:
    # `#token: 0`: the request was over when the line was written.
    text = decode(0, 4.0, 1.0, 109.48) + decode(29, 4.0, 1.0, 135.24)
    (log,) = series(text)
    assert log.lines == 2
    assert [(b.low, b.lines) for b in log.bins] == [(16, 1)]


def test_dead_drafts_are_not_missing_drafts() -> None:
    dead = decode(700, 1.0, 0.0, 52)
    (log,) = series(dead * 3)
    assert (log.off_lines, log.bins[0].commit_mean, log.bins[0].rate_mean) == (0, 1.0, 0.0)
    assert log.draft_tokens is None
    off = dead.replace("accept len: 1.00, accept rate: 0.00, ", "")
    (log,) = series(off * 3)
    assert (log.lines, log.off_lines, log.bins[0].commit_mean, log.bins[0].tok_s) == (3, 3, None, 52.0)
    assert acceptances(off * 3) == []


def test_one_third_is_zero_acceptance() -> None:
    text = (
        "[2026-04-18 08:00:00 TP0] Decode batch. #running-req: 8, #token: 4100, token usage: 0.01, accept len: 1.00, "
        "accept rate: 0.33, cuda graph: True, gen throughput (token/s): 410.00, #queue-req: 0\n"
        "[2026-04-18 09:00:00 TP0] Decode batch. #running-req: 8, #token: 4300, token usage: 0.01, accept len: 1.07, "
        "accept rate: 0.36, cuda graph: True, gen throughput (token/s): 425.00, #queue-req: 0\n"
    )
    (log,) = series(text)
    assert (log.rate_definition, log.draft_tokens) == ("len / (K + 1)", 2)
    assert log.bins[0].commit_low == 1.0
    (figure,) = acceptances(text)
    # (1.035 - 1) / 2, not 0.345
    assert figure.rate == pytest.approx(0.0175)


def test_two_servers_in_one_log() -> None:
    old = decode(4100, 1.00, 0.33, 410, running=8) + decode(4300, 1.07, 0.36, 425, running=8)
    new = decode(160000, 2.94, 0.65, 2849, running=48) + decode(165000, 2.80, 0.60, 2780, running=48)
    first, second = series(old + new)
    assert (first.rate_definition, first.draft_tokens, first.run) == ("len / (K + 1)", 2, "a, server 1 of 2")
    assert (second.rate_definition, second.draft_tokens, second.run) == (
        "(len - 1) / K",
        3,
        "a, server 2 of 2",
    )
    assert (first.lines, second.lines) == (2, 2)
    assert [figure.run for figure in acceptances(old + new)] == ["a, server 1 of 2", "a, server 2 of 2"]


def test_rates_that_follow_no_formula() -> None:
    (log,) = series(decode(100, 4.00, 0.0, 50))
    assert (log.rate_definition, log.draft_tokens) == ("", None)
    assert acceptances(decode(100, 4.00, 0.0, 50))[0].rate is None


def test_a_log_without_rates() -> None:
    (log,) = series(decode(100, 2.31, 0.5, 50).replace("accept rate: 0.50, ", ""))
    assert (log.rate_definition, log.bins[0].commit_mean, log.bins[0].rate_mean) == ("", 2.31, None)


def test_unusual_lines_among_common_ones_count_alike() -> None:
    common = decode(1500, 2.0, 0.33, 50)
    coloured = common.replace("[2026", "\x1b[32m[2026").replace("Decode", "Decode\x1b[0m")
    capped = common.replace("cuda graph", "cap len: 5.00, cuda graph")
    (log,) = series(common + capped + coloured + capped)
    assert [(b.lines, b.commit_mean, b.tok_s) for b in log.bins] == [(4, 2.0, 50.0)]


def test_means_and_medians_of_a_long_log_are_those_of_its_lines() -> None:
    draw = random.Random(3)
    lines, commits, speeds = [], [], []
    for _ in range(20_000):
        right, speed = draw.randint(0, 280), round(draw.uniform(40, 60), 2)
        commits.append(round(1 + right / 40, 2))
        speeds.append(speed)
        lines.append(decode(draw.randint(2048, 4095), 1 + right / 40, right / 280, speed))
    (log,) = series("".join(lines))
    (only,) = log.bins
    assert (only.lines, log.draft_tokens) == (20_000, 7)
    assert only.commit_mean == pytest.approx(sum(commits) / len(commits))
    assert (only.commit_low, only.commit_high) == (1.0, 8.0)
    assert only.tok_s == pytest.approx(sorted(speeds)[10_000], abs=2)


# --- vLLM ----------------------------------------------------------------------------------------------------

VLLM = (
    "(APIServer pid=1) INFO 09-22 {at} [metrics.py:101] SpecDecoding metrics: Mean acceptance length: {mean}, Accepted "
    "throughput: 1.00 tokens/s, Drafted throughput: 84.00 tokens/s, Accepted: {accepted} tokens, Drafted: {drafted} tokens, "
    "Per-position acceptance rate: {positions}, Avg Draft acceptance rate: 1.0%\n"
)
PERIOD = (
    "(APIServer pid=1) INFO 09-22 {at} [loggers.py:335] Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation "
    "throughput: {speed} tokens/s, Running: 1 reqs, Waiting: 0 reqs, GPU KV cache usage: 3.1%\n"
)


def test_vllm_windows() -> None:
    text = VLLM.format(
        at="08:10:00", mean="2.54", accepted=648, drafted=840, positions="0.842, 0.701"
    ) + VLLM.format(at="08:20:10", mean="1.00", accepted=0, drafted=776, positions="0.000, 0.000")
    (log,) = series(text)
    assert (log.engine, log.lines, log.seconds, log.draft_tokens) == ("vllm", 2, 610.0, 2)
    assert log.trend == "commit between 1.00 and 2.54 in 2 log windows; their contexts are not logged"
    whole, lowest, highest = acceptances(text)
    assert whole.commit == pytest.approx(1 + 648 / 808)
    assert whole.rate == pytest.approx(648 / 1616)
    assert (whole.steps, whole.draft_tokens, whole.window) == (808, 2, "the whole log")
    assert whole.per_position == pytest.approx((0.842 * 420 / 808, 0.701 * 420 / 808))
    assert (lowest.commit, lowest.rate, lowest.steps, lowest.window) == (
        1.0,
        0.0,
        388,
        "one log window, lowest of 2",
    )
    assert highest.steps == 420
    assert highest.per_position == pytest.approx((0.842, 0.701))


def test_vllm_that_drafts_nothing() -> None:
    text = PERIOD.format(at="08:10:00", speed="31.0") * 3 + PERIOD.format(at="08:10:30", speed="0.0")
    (log,) = series(text)
    assert (log.engine, log.lines, log.off_lines) == ("vllm", 3, 3)
    assert acceptances(text) == []
    both = PERIOD.format(at="08:10:00", speed="31.0") + VLLM.format(
        at="08:10:00", mean="2.54", accepted=648, drafted=840, positions="0.842, 0.701"
    )
    assert [log.off_lines for log in series(both)] == [0]


def test_an_idle_vllm_says_nothing() -> None:
    assert recognise(PERIOD.format(at="08:10:00", speed="0.0") * 5) is None


# --- llama.cpp -----------------------------------------------------------------------------------------------

REQUEST = (
    "0.03.199.774 I slot launch_slot_: id  0 | task {task} | processing task, is_child = 0\n"
    "0.03.293.510 I slot print_timing: id  0 | task {task} | prompt eval time =      21.03 ms /   262 tokens (    0.08 ms per token, 12456.02 tokens per second)\n"
    "0.03.293.525 I slot print_timing: id  0 | task {task} |        eval time =      72.61 ms /    64 tokens (    1.15 ms per token,   867.61 tokens per second)\n"
    "0.03.293.526 I slot print_timing: id  0 | task {task} |       total time =      93.65 ms /   326 tokens\n"
    "{drafts}"
    "0.03.293.968 I slot      release: id  0 | task {task} | stop processing: n_tokens = {tokens}, truncated = 0\n"
)
DRAFTS = "0.03.293.539 I slot print_timing: id  0 | task {task} | draft acceptance = 0.56790 (   46 accepted /    81 generated), mean len =  3.71\n"


def request(task: int, tokens: int, *, drafts: bool = True) -> str:
    return REQUEST.format(task=task, tokens=tokens, drafts=DRAFTS.format(task=task) if drafts else "")


def test_llamacpp_requests_by_context() -> None:
    text = request(1, 325) + request(22, 8259) + request(40, 8300, drafts=False)
    (log,) = series(text)
    assert (log.engine, log.lines, log.off_lines) == ("llamacpp", 3, 1)
    assert [(b.low, b.running, b.lines, b.tok_s) for b in log.bins] == [
        (256, 1, 1, 867.61),
        (8192, 1, 1, 867.61),
    ]
    whole, near, far = acceptances(text)
    assert whole.steps == 34
    assert whole.commit == pytest.approx(1 + 46 / 17)
    assert whole.rate == pytest.approx(46 / 81)
    assert [(figure.context_tokens, figure.steps) for figure in (near, far)] == [(325, 17), (8259, 17)]


def test_llamacpp_request_without_any_draft() -> None:
    # After a cache hit the drafter proposes nothing: no acceptance line is not an acceptance of zero.
    text = (
        "0.05.000.000 I slot print_timing: id  0 | task 10 | draft acceptance = 0.53763 (   50 accepted /    93 generated), "
        "mean acceptance length =  2.61, acceptance rate per position = (0.774, 0.484, 0.355)\n"
        "0.06.000.000 I slot print_timing: id  0 | task 11 | prompt eval time =      35.10 ms /    64 tokens (    0.55 ms per token,  1823.36 tokens per second)\n"
    )
    (log,) = series(text)
    assert (log.lines, log.off_lines, log.bins, log.draft_tokens, log.seconds) == (2, 1, (), 3, 1.0)
    (figure,) = acceptances(text)
    assert figure.steps == 31
    assert figure.rate == pytest.approx(50 / 93)


# --- DDTree forks --------------------------------------------------------------------------------------------


def test_commit_beside_depth_are_claims() -> None:
    text = "step 1 avg_commit_len=1.00 avg_accepted_depth=3.00\nstep 2 avg_commit_len=1.00 avg_accepted_depth=2.00\n"
    claims = [fact for fact in found(text).facts if isinstance(fact, Claim)]
    assert [(claim.what, claim.value, claim.origin, claim.samples) for claim in claims] == [
        ("commit length", 1.0, "decode log avg_commit_len", None),
        ("accepted depth", 2.5, "decode log avg_accepted_depth", None),
    ]


def test_listed_commits_are_steps() -> None:
    text = "DFLASH_DDTREE verify completed. commit_lens=[3, 1]\nDFLASH_DDTREE verify completed. commit_lens=[4]\n"
    (figure,) = acceptances(text)
    assert figure.steps == 3
    assert figure.commit == pytest.approx(8 / 3)


# --- what is none --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "",
        "INFO: 127.0.0.1:1 - POST /generate HTTP/1.1 200 OK\n" * 100,
        '{"note": "avg_commit_len=1.00 avg_accepted_depth=3.00"}',
        '[{"log": "Decode batch, #running-req: 1, accept len: 1.0, accept rate: 0.0"}]',
        "Is a draft acceptance of 9 % normal? The Decode batch lines look fine to me.",
    ],
)
def test_other_documents(text: str) -> None:
    assert recognise(text) is None


def test_the_name_means_nothing() -> None:
    data = decode(700, 2.0, 0.33, 50).encode()
    one, other = (decode_logs.recognise(of_bytes(key, data), "") for key in ("server.log", "photo.png"))
    assert one is not None
    assert other is not None
    assert one.what == other.what == "SGLang decode log, 1 line"


def test_any_size_of_pieces() -> None:
    text = "".join(decode(1000 + n, 1 + n % 40 / 40, n % 40 / 280, 50 + n % 7) for n in range(3000)).encode()

    def cut(size: int) -> Iterator[bytes]:
        return (text[at : at + size] for at in range(0, len(text), size))

    def told(size: int) -> Found | None:
        return decode_logs.recognise(Document("a", lambda: cut(size)), "")

    whole = found(text.decode())
    assert told(97) == whole
    assert told(4096) == whole
    assert told(10**7) == whole


def test_blocks_are_whole_lines_and_bounded() -> None:
    lines = ["short"] * 10 + ["long" * LONGEST_LINE] + [f"line {n}" for n in range(60_000)]
    blocks = list(of_bytes("a", "\n".join(lines).encode()).blocks())
    assert max(map(len, blocks)) <= BLOCK + LONGEST_LINE
    text = "".join(blocks)
    assert text.startswith("short\n" * 10 + "long")
    assert text.endswith("line 59998\nline 59999")
    assert all(block.endswith("\n") for block in blocks[1:-1])


def test_garbled_logs_do_no_harm() -> None:
    draw = random.Random(11)
    good = (
        decode(700, 2.0, 0.33, 50)
        + PREFILL.format(running=0)
        + VLLM.format(at="08:10:00", mean="2.54", accepted=648, drafted=840, positions="0.842, 0.701")
        + request(1, 325)
        + "avg_commit_len=1.00 avg_accepted_depth=3.00 commit_lens=[3, 1]\n"
    ) * 3
    for _ in range(400):
        data = bytearray(good.encode())
        for _ in range(draw.randint(1, 60)):
            at = draw.randrange(len(data))
            data[at : at + draw.randint(0, 3)] = draw.choice(
                (b"", b"\n", b"0", b"9" * 30, b"nan", b"\xff", b"-", b"[", b", ")
            )
        document = of_bytes("a", bytes(data))
        told = decode_logs.recognise(document, "")
        for fact in told.facts if told else ():
            if isinstance(fact, Acceptance) and fact.commit is not None:
                assert 0 <= fact.commit < 1e31


def test_numbers_at_random_are_no_formula() -> None:
    """Length and rate have nothing to do with each other: some pairs fit a formula by chance, most fit none."""
    draw = random.Random(5)
    lines = [
        f"[2025-07-01 10:00:{second % 60:02d}] Decode batch. #running-req: 1, #token: {1000 + second}, token usage: 0.10, "
        f"accept len: {draw.uniform(1, 4):.2f}, accept rate: {draw.uniform(0, 0.9):.2f}, cuda graph: True, "
        "gen throughput (token/s): 110.00, #queue-req: 0, "
        for second in range(60)
    ]
    told = series("\n".join(lines) + "\n")
    assert told
    assert {fact.rate_definition for fact in told} == {""}
    assert {fact.draft_tokens for fact in told} == {None}


def test_an_older_llama_server_tells_its_steps_by_the_tokens_of_the_request() -> None:
    """A real request of 64 tokens: a newer server says "mean len = 3.71", 17 steps, of the same counts."""
    lines = (
        "slot print_timing: id  0 | task 1 | prompt eval time = 10.00 ms / 12 tokens ( 0.8 ms per token, 1200.0 tokens per second)\n"
        "slot print_timing: id  0 | task 1 |        eval time = 99.00 ms / 64 tokens ( 1.5 ms per token, 646.5 tokens per second)\n"
        "slot print_timing: id  0 | task 1 | draft acceptance rate = 0.56790 (   46 accepted /    81 generated)\n"
    )
    document = of_bytes("a", lines.encode())
    found = decode_logs.recognise(document, document.sample())
    assert found is not None
    (told,) = [fact for fact in found.facts if isinstance(fact, Acceptance)]
    assert told.steps == 17
    assert told.commit == pytest.approx(63 / 17)
    # More accepted than there are tokens: somebody else's line stands between.
    odd = of_bytes("a", lines.replace("/ 64 tokens", "/ 47 tokens").encode())
    (unknown,) = [f for f in decode_logs.recognise(odd, odd.sample()).facts if isinstance(f, Acceptance)]  # type: ignore[union-attr]
    assert (unknown.commit, unknown.steps) == (None, None)
