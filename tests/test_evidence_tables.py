"""Tables that people paste: which columns are read, whatever they are headed."""

from __future__ import annotations

import pytest

from ddprobe import evidence, rejudging
from ddprobe.evidence import tables
from ddprobe.evidence.document import of_bytes
from ddprobe.facts import BatchSpeed, CommitPoint, PlainSpeed
from ddprobe.model import Fact, Host, Verdict


def speeds(with_it: str, without: str) -> tuple[list[tuple[int, float | None]], list[tuple[int, float]]]:
    """(context, tokens per second) of the points, and of plain decoding."""
    text = f"| ctx | {with_it} | {without} | accept len |\n|---|---|---|---|\n| 1k | 88.1 | 60.2 | 2.9 |\n| 32k | 42 | 50.1 | 2.9 |\n"
    document = of_bytes("a", text.encode())
    found = tables.recognise(document, document.sample())
    assert found is not None
    points = [(fact.context_tokens, fact.tok_s) for fact in found.facts if isinstance(fact, CommitPoint)]
    plain = [(fact.context_tokens, fact.tok_s) for fact in found.facts if isinstance(fact, PlainSpeed)]
    return points, plain


@pytest.mark.parametrize(
    "with_it",
    [
        "with spec (tok/s)",
        "tok/s",
        "w/ speculative decoding tok/s",
        "spec on tok/s",
        "EAGLE3 (tok/s)",
        "speculative (t/s)",
    ],
)
@pytest.mark.parametrize(
    "without",
    [
        "without spec (tok/s)",
        "baseline tok/s",
        "no spec (tok/s)",
        "vanilla (t/s)",
        "spec off tok/s",
        "w/o EAGLE3 tok/s",
        "plain (tok/s)",
    ],
)
def test_speeds_with_speculation_and_without(with_it: str, without: str) -> None:
    points, plain = speeds(with_it, without)
    assert points == [(1024, 88.1), (32768, 42.0)]
    assert plain == [(1024, 60.2), (32768, 50.1)]


@pytest.mark.parametrize(
    "without", ["without spec", "baseline", "no of requests (tok/s)", "notes", "baseline commit"]
)
def test_a_column_that_is_no_speed_without_speculation(without: str) -> None:
    assert speeds("tok/s", without) == ([(1024, 88.1), (32768, 42.0)], [])


# --- in every form that people paste -------------------------------------------------------------------------

HEAD, ROWS = ("context", "accept_len", "tok/s"), (("1k", "4.1", "95"), ("128k", "1.02", "9.5"))
POINTS = [(1024, 4.1, 95.0), (131072, 1.02, 9.5)]


def lined(by: str, *rows: tuple[str, ...]) -> str:
    return "".join(by.join(row) + "\n" for row in rows)


def padded(*rows: tuple[str, ...]) -> str:
    return "".join("".join(cell.rjust(12) for cell in row) + "\n" for row in rows)


FORMS = {
    "markdown": lined(" | ", HEAD, ("---", "---", "---"), *ROWS),
    "without a rule": lined(" | ", HEAD, *ROWS),
    "csv": lined(",", HEAD, *ROWS),
    "csv with quotes": lined(",", *[tuple(f'"{cell}"' for cell in row) for row in (HEAD, *ROWS)]),
    "semicolons and decimal commas": lined(";", HEAD, *[tuple(cell.replace(".", ",") for cell in row) for row in ROWS]),
    "tabs": lined("\t", HEAD, *ROWS),
    "gaps": padded(HEAD, *ROWS),
    "blanks": lined(" ", HEAD, *ROWS),
    "with an index": padded(("", *HEAD), ("0", *ROWS[0]), ("1", *ROWS[1])),
    "drawn": "┏━━━━┳━━━━━┳━━━━┓\n┃ context ┃ accept_len ┃ tok/s ┃\n┡━━━━╇━━━━━╇━━━━┩\n│ 1k │ 4.1 │ 95 │\n├────┼─────┼────┤\n"
    "│ 128k │ 1.02 │ 9.5 │\n└────┴─────┴────┘\n",
    "drawn with signs": "+---+---+---+\n| context | accept_len | tok/s |\n+===+===+===+\n| 1k | 4.1 | 95 |\n+---+---+---+\n| 128k | 1.02 | 9.5 |\n+---+---+---+\n",
    "with a carriage return": lined(",", HEAD, *ROWS).replace("\n", "\r\n"),
    "among other text": f"I measured this:\n\n{lined(',', HEAD, *ROWS)}\nand nothing else, as you see\n",
}  # fmt: skip


def read(text: str) -> tuple[Fact, ...]:
    document = of_bytes("a", text.encode())
    found = tables.recognise(document, document.sample())
    return found.facts if found is not None else ()


@pytest.mark.parametrize("form", FORMS)
def test_a_table_in_any_form(form: str) -> None:
    points = [fact for fact in read(FORMS[form]) if isinstance(fact, CommitPoint)]
    assert [(p.context_tokens, p.commit_mean, p.tok_s) for p in points] == POINTS
    lines = FORMS[form].splitlines()
    for point in points:
        place = point.source[0].at.removeprefix("line ")
        assert ("1.02" in lines[int(place) - 1].replace(",", ".")) is (point.context_tokens == 131072)


@pytest.mark.parametrize(
    ("heading", "cell", "tokens"),
    [
        ("context", "1,024", 1024), ("ctx_len", "16k", 16384), ("prompt tokens", "1.4k", 1434), ("ISL", "8192", 8192),
        ("context (k)", "64", 65536), ("context (k tokens)", "64k", 65536), ("seq len", "4096 tokens", 4096),
    ],
)  # fmt: skip
def test_lengths(heading: str, cell: str, tokens: int) -> None:
    (point,) = [f for f in read(f"{heading};accept len\n{cell};2.5\n") if isinstance(f, CommitPoint)]
    assert point.context_tokens == tokens


@pytest.mark.parametrize(
    ("heading", "cell", "rate"),
    [("accept rate", "45%", 0.45), ("accept rate (%)", "45", 0.45), ("acceptance_rate", "0.45", 0.45), ("accept rate (%)", "0.45", 0.45)],
)  # fmt: skip
def test_shares(heading: str, cell: str, rate: float) -> None:
    (point,) = [f for f in read(f"ctx;{heading}\n1k;{cell}\n") if isinstance(f, CommitPoint)]
    assert point.accept_rate == pytest.approx(rate)


@pytest.mark.parametrize(
    "text",
    [
        "batch,steps\n1,200\n",
        "context,accept_len\n",
        "context,accept_len\n1k\n",
        "context,loss\n1k,2.1\n",
        "concurrency,loss\n1,2.1\n",
        "We looked at context, accept_len and tok/s\n1k,4.1,95\n",
        "context,accept_len\nlong,good\n",
    ],
)
def test_what_is_no_table_of_measurements(text: str) -> None:
    assert read(text) == ()


# --- several requests at once --------------------------------------------------------------------------------

AT_ONCE = "| concurrency | baseline tok/s | EAGLE3 tok/s | accept len |\n|---|---|---|---|\n"
AT_ONCE += "| 1 | 95 | 188 | 2.9 |\n| 32 | 2200 | 2150 | 2.88 |\n| 64 | 3,900 | 3,300 | 2.87 |\n| 128 | 5,400 | 4,100 | 2.87 |\n"
BY_ROWS = "mode,concurrency,tok/s\n" + "".join(
    f"{mode},{n},{speed}\n"
    for mode, speeds in (("baseline", (95, 2200, 3900, 5400)), ("EAGLE3", (188, 2150, 3300, 4100)))
    for n, speed in zip((1, 32, 64, 128), speeds, strict=True)
)


@pytest.mark.parametrize("text", [AT_ONCE, BY_ROWS], ids=["columns", "rows"])
def test_speeds_of_several_requests_at_once(text: str) -> None:
    found = [fact for fact in read(text) if isinstance(fact, BatchSpeed)]
    assert [(speed.running, speed.tok_s, speed.plain_tok_s) for speed in found] == [
        (1, 188, 95), (32, 2150, 2200), (64, 3300, 3900), (128, 4100, 5400)
    ]  # fmt: skip
    assert not any(isinstance(fact, CommitPoint) for fact in read(text))


def verdict(text: str) -> Verdict:
    known, found = rejudging.judge_files([evidence.recognise(of_bytes("f", text.encode()))], "collected", {})
    return rejudging.ruled(Host(name="collected"), known, found)[0][0]


def test_speculation_that_loses_with_many_requests_at_once() -> None:
    lost = verdict(AT_ONCE)
    assert (lost.name, lost.confidence) == ("spec_net_loss", "medium")
    assert lost.reasons == (
        "128 requests at once: 4100 tok/s with speculation, 5400 without, 1.3 times slower",
        "it loses from 64 at once on",
        "with 1 at once it is 2 times faster",
    )
    assert "64 or more requests" in lost.next[0]


def test_speculation_that_gains_however_many_there_are() -> None:
    kept = verdict("concurrency,baseline tok/s,EAGLE3 tok/s\n1,95,188\n64,3900,3600\n")
    # 8 % slower is within what two runs differ by.
    assert kept.name != "spec_net_loss"


def test_drafters_in_rows_are_series_of_their_own() -> None:
    rows = "mode,concurrency,tok/s\nnone,8,690\nEAGLE3,8,980\nDFlash,8,500\n"
    found = [fact for fact in read(rows) if isinstance(fact, BatchSpeed)]
    assert [(speed.text, speed.tok_s, speed.plain_tok_s) for speed in found] == [
        ("eagle3", 980, 690),
        ("dflash", 500, 690),
    ]


def test_rows_of_one_request_with_a_length_are_points() -> None:
    text = "ctx,concurrency,spec,tok/s,accept_len\n1k,1,on,95,3.1\n1k,1,off,60,\n1k,8,on,400,3.1\n1k,8,off,500,1.0\n"
    facts = read(text)
    assert [(f.context_tokens, f.tok_s) for f in facts if isinstance(f, CommitPoint)] == [(1024, 95.0)]
    assert [(f.context_tokens, f.tok_s) for f in facts if isinstance(f, PlainSpeed)] == [(1024, 60.0)]
    (many,) = [f for f in facts if isinstance(f, BatchSpeed)]
    assert (many.running, many.context_tokens, many.tok_s, many.plain_tok_s) == (8, 1024, 400, 500)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("tok/s EAGLE3", "tok/s baseline"),
        ("tok/s with spec", "tok/s without"),
        ("spec tok/s", "no-spec tok/s"),
        ("on (tok/s)", "off (tok/s)"),
        ("tps (dflash)", "tps (none)"),
    ],
)
def test_columns_of_speeds_in_the_words_that_people_use(first: str, second: str) -> None:
    lost = verdict(f"context;{first};{second}\n1k;210;100\n64k;66;75\n128k;31;61\n")
    assert lost.name == "spec_net_loss"
    assert lost.reasons == (
        "text at 128k gives 31 tok/s with speculation, and 61 without: 2.0 times slower",
        "it loses from 64k on",
    )


def test_a_speedup_tells_the_speed_without() -> None:
    facts = read("context;tok/s;speedup\n1k;210;2.1x\n128k;31;0.5x\n")
    assert [fact.tok_s for fact in facts if isinstance(fact, PlainSpeed)] == [100.0, 62.0]


def test_what_the_cache_served_is_told_apart() -> None:
    text = "prompt tokens,cached tokens,accept len,steps\n8192,0,6.1,84\n8192,8128,1.2,213\n"
    found = verdict(text)
    assert (found.name, found.kind) == ("cache_state_bug", "draft_kv_lost")
    assert verdict(text.replace("1.2,213", "6.0,85")).name != "cache_state_bug"


@pytest.mark.parametrize("heading", ["AL", "tau", "tokens/step", "tokens per verify step", "mean AL"])
def test_other_words_for_the_accept_length(heading: str) -> None:
    (point,) = [f for f in read(f"ctx;{heading};ITL (ms)\n1k;2.5;4.0\n") if isinstance(f, CommitPoint)]
    assert (point.commit_mean, point.step_ms, point.tok_s) == (2.5, 10.0, 250.0)


def test_running_requests_by_the_engines_own_word_make_no_step_time_by_context() -> None:
    text = "context|running|accept len|step ms\n1k|1|3.8|9\n1k|16|3.8|16\n1k|64|3.8|38\n4k|64|3.8|44\n"
    assert [f.step_ms for f in read(text) if isinstance(f, CommitPoint)] == [9.0]
    assert verdict(text).name == "inconclusive"


# --- speeds in two files ------------------------------------------------------------------------------------

SERVED = """\
============ Serving Benchmark Result ============
Backend:                                 sglang
Max request concurrency:                 128
Successful requests:                     512
Total input tokens:                      524288
Total generated tokens:                  131072
Output token throughput (tok/s):         {speed}
{accepted}==================================================
"""
OFF, ON = SERVED.format(speed=4301.1, accepted=""), SERVED.format(
    speed=2602.4, accepted="Accept length:                           2.6\n"
)  # fmt: skip
SAVED_OFF = '{"max_concurrency": 128, "output_throughput": 4301.1, "accept_length": null, "completed": 512}'
SAVED_ON = '{"max_concurrency": 128, "output_throughput": 2602.4, "accept_length": 2.6, "completed": 512}'


def verdict_of(*texts: str) -> Verdict:
    readings = [evidence.recognise(of_bytes(f"f{n}", text.encode())) for n, text in enumerate(texts)]
    known, found = rejudging.judge_files(readings, "collected", {})
    return rejudging.ruled(Host(name="collected"), known, found)[0][0]


@pytest.mark.parametrize(
    ("texts", "place"),
    [((OFF, ON), " at 1k"), ((OFF + ON,), " at 1k"), ((SAVED_OFF, SAVED_ON), ""), (("[" + SAVED_OFF + "," + SAVED_ON + "]",), "")],
    ids=["printed", "one behind the other", "saved", "a list"],
)  # fmt: skip
def test_two_benchmarks_with_speculation_and_without(texts: tuple[str, ...], place: str) -> None:
    lost = verdict_of(*texts)
    assert (lost.name, lost.confidence) == ("spec_net_loss", "low")
    assert (
        lost.reasons[0]
        == f"128 requests at once{place}: 2602 tok/s with speculation, 4301 without, 1.7 times slower"
    )
    assert "that nothing but speculation differs between the two runs" in lost.missing


@pytest.mark.parametrize(
    "texts",
    [
        (ON, ON),
        (OFF, ON.replace("128", "64")),
        (OFF, ON.replace("524288", "1048576")),
        (OFF, ON.replace("2602.4", "4000.0")),
        (OFF, OFF.replace("4301.1", "9000.0"), ON),
    ],
    ids=["both speculate", "another concurrency", "other prompts", "hardly slower", "which of two without"],
)
def test_benchmarks_that_do_not_compare(texts: tuple[str, ...]) -> None:
    assert verdict_of(*texts).name != "spec_net_loss"


def at_once(*rows: tuple[int, float, float]) -> Verdict:
    return verdict(
        "concurrency,baseline tok/s,EAGLE3 tok/s\n"
        + "".join(f"{n},{plain},{speed}\n" for n, plain, speed in rows)
    )


@pytest.mark.parametrize(("speed", "lost"), [(90.0, False), (89.9, True)])
def test_a_tenth_slower_is_no_loss(speed: float, lost: bool) -> None:
    assert (at_once((8, 100.0, speed)).name == "spec_net_loss") is lost


@pytest.mark.parametrize(
    ("rows", "reasons"),
    [
        (((1, 100, 200), (8, 100, 50)), ["8 requests", "with 1 at once it is 2 times faster"]),
        (((8, 100, 50), (64, 100, 80)), ["8 requests"]),
        (((8, 100, 80), (64, 100, 50)), ["64 requests", "it loses from 8 at once on"]),
        (((1, 100, 100), (8, 100, 50)), ["8 requests"]),
        (((8, 100, 50), (64, 100, 300)), ["8 requests"]),
        (((4, 100, 80), (8, 100, 50)), ["8 requests", "it loses from 4 at once on"]),
        (((1, 100, 120), (2, 100, 200), (8, 100, 50)), ["8 requests", "with 2 at once it is 2 times faster"]),
        (((1, 100, 80), (2, 100, 200), (8, 100, 50)), ["8 requests", "with 2 at once it is 2 times faster"]),
    ],
    ids=["wins before", "worst first", "from where on", "no win is a tie", "a win behind it is none", "from the first on", "the best of wins", "an earlier loss apart"],
)  # fmt: skip
def test_what_is_told_of_a_loss(rows: tuple[tuple[int, float, float], ...], reasons: list[str]) -> None:
    lost = at_once(*rows)
    assert lost.name == "spec_net_loss"
    assert len(lost.reasons) == len(reasons)
    assert all(told.startswith(begin) for told, begin in zip(lost.reasons, reasons, strict=True))
    assert lost.cites[0].at == f"line {2 + [plain / speed for _, plain, speed in rows].index(2.0)}"
    assert len(lost.cites) == len(rows)


def test_a_point_measured_again_is_no_second_speed() -> None:
    lost = verdict("context;tok/s;tok/s baseline\n1k;210;100\n128k;61;100\n")
    assert lost.reasons == (
        "text at 128k gives 61 tok/s with speculation, and 100 without: 1.6 times slower",
    )
