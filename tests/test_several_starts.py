"""Two starts of a server, or two servers, in one text or folder: each is judged by what is told of it, in whatever order."""

from __future__ import annotations

import itertools

import pytest

from ddprobe import evidence, lints, verdicts
from ddprobe.evidence.document import Document, of_bytes
from ddprobe.facts import DecodeSeries, ServerArgs
from ddprobe.lints import launches
from ddprobe.lints.served import put_together
from ddprobe.model import Cite, Fact, Verdict
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.collected import apart
from tests.test_pasted_fragments import BEFORE, COMMAND, PLAIN, SPECULATES, facts_of, lines, points, stated

OFF, DEAD, OPEN = "not_speculating", "drafter_dead", "inconclusive"
DEAD_LINES, FINE_LINES, IDLE_LINES = lines(20, stated("1.00")), lines(20, stated("3.00", "0.29")), lines(20)
WIDER = SPECULATES.replace("tokens=8", "tokens=16")
DRAFTS = f"{COMMAND} --speculative-algorithm DFLASH --speculative-draft-model-path /d"
VLLM = "vllm serve /m --tensor-parallel-size 8"
VLLM_DRAFTS = (
    VLLM + ' --speculative-config \'{"method": "eagle3", "model": "/d", "num_speculative_tokens": 3}\''
)


def judged(*texts: str) -> tuple[Verdict, ...]:
    """The verdicts, the same in every order and under all names of the files."""
    found = set()
    for names in itertools.permutations("abcd"[: len(texts)]):
        readings = [
            evidence.recognise(of_bytes(name, text.encode()))
            for name, text in sorted(zip(names, texts, strict=True))
        ]
        facts = evidence.facts(evidence.ordered(readings))
        rulings = verdicts.judge_collected(facts, lints.judge(facts))
        told = tuple((v.name, v.kind, v.confidence) for v in rulings)
        found.add(told)
    assert len(found) == 1, found
    return rulings


def names(*texts: str) -> list[tuple[str, str]]:
    return [(verdict.name, verdict.confidence) for verdict in judged(*texts)]


# --- verdicts ---------------------------------------------------------------------------------------------


def test_two_starts_and_no_figure_say_that_they_are_two() -> None:
    (verdict,) = judged(SPECULATES, PLAIN)
    assert (verdict.name, verdict.confidence) == (OPEN, "low")
    assert verdict.reasons[0].startswith("2 starts with other arguments are told, each judged for itself: ")
    assert "DFLASH, 8 (" in verdict.reasons[0]
    assert "no speculation (" in verdict.reasons[0]
    assert verdict.missing[0] == "which of the starts is the one in question, and its own log"


@pytest.mark.parametrize("texts", [(f"{SPECULATES}\n{PLAIN}",), (f"{PLAIN}\n{SPECULATES}",)])
def test_two_starts_in_one_log_too(texts: tuple[str, ...]) -> None:
    (verdict,) = judged(*texts)
    assert verdict.name == OPEN
    assert "(a line 1)" in verdict.reasons[0]
    assert "(a line 2)" in verdict.reasons[0]


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        pytest.param((f"{SPECULATES}\n{DEAD_LINES}", PLAIN), [(DEAD, "medium")], id="the other file is of no matter"),
        pytest.param((f"{SPECULATES}\n{FINE_LINES}", PLAIN), [(OPEN, "medium")], id="nothing is wrong with the one that drafts"),
        pytest.param((f"{SPECULATES}\n{DEAD_LINES}\n{PLAIN}",), [(DEAD, "medium")], id="lines before the second start"),
        pytest.param((f"{PLAIN}\n{SPECULATES}\n{DEAD_LINES}",), [(DEAD, "medium")], id="lines behind the second start"),
        pytest.param((f"{SPECULATES}\n{PLAIN}\n{IDLE_LINES}",), [(OFF, "high")], id="the start before the lines is off"),
        pytest.param((f"{PLAIN}\n{IDLE_LINES}", SPECULATES), [(OFF, "high")], id="the one that ran is off"),
        pytest.param(
            (f"{PLAIN}\n{IDLE_LINES}", f"{SPECULATES}\n{FINE_LINES}"), [(OPEN, "medium")], id="a run without, to compare with"
        ),
        pytest.param(
            (f"{PLAIN}\n{IDLE_LINES}", f"{SPECULATES}\n{DEAD_LINES}"), [(DEAD, "medium")], id="the one that drafts is dead"
        ),
        pytest.param(
            (f"{PLAIN}\n{IDLE_LINES}\n{SPECULATES}\n{FINE_LINES}",), [(OPEN, "medium")], id="lines of both in one log"
        ),
        pytest.param((SPECULATES, PLAIN, points(1.0)), [(DEAD, "medium")], id="points of nobody knows which"),
        pytest.param((SPECULATES, SPECULATES.replace("port=30000", "port=1"), points(1.0)), [(DEAD, "high")], id="the same twice"),
        pytest.param((VLLM, VLLM_DRAFTS), [(OPEN, "low")], id="two command lines"),
        pytest.param((f"{VLLM}\n{VLLM_DRAFTS}",), [(OPEN, "low")], id="two command lines of one script"),
        pytest.param((VLLM, VLLM_DRAFTS, lines(20)), [(OFF, "low")], id="and lines that nobody knows whose they are"),
        pytest.param((COMMAND, SPECULATES), [(OPEN, "low")], id="a command line of another start"),
        pytest.param((DRAFTS, f"{SPECULATES}\n{DEAD_LINES}"), [(DEAD, "medium")], id="a command line of the same"),
    ],
)  # fmt: skip
def test_each_start_is_judged_by_its_own_figures(
    texts: tuple[str, ...], found: list[tuple[str, str]]
) -> None:
    assert names(*texts) == found


TRITON = SPECULATES.replace("port=30000", "attention_backend='triton', port=30000")
ELSEWHERE = SPECULATES.replace("'/m'", "'/n'")
OTHER_PORT = SPECULATES.replace("port=30000", "port=1")


def series(text: str) -> list[tuple[str, int]]:
    """Where each series of a log stands, and how many lines it has."""
    return [(fact.source[0].at, fact.lines) for fact in facts_of(text) if isinstance(fact, DecodeSeries)]


@pytest.mark.parametrize("other", [WIDER, TRITON, ELSEWHERE, PLAIN], ids=["block", "backend", "model", "off"])
def test_a_log_is_told_apart_where_the_server_was_started_with_other_arguments(other: str) -> None:
    """Each start by its own lines: the dead one is found on either side, and the mean of both is of neither."""
    fine = IDLE_LINES if other == PLAIN else FINE_LINES
    assert series(f"{SPECULATES}\n{DEAD_LINES}\n{other}\n{fine}") == [("lines 2-21", 20), ("lines 23-42", 20)]
    for first, second in (
        (f"{SPECULATES}\n{DEAD_LINES}", f"{other}\n{fine}"),
        (f"{other}\n{fine}", f"{SPECULATES}\n{DEAD_LINES}"),
    ):
        ((name, confidence),) = names(f"{first}\n{second}")
        assert (name, confidence) == (DEAD, "medium")
        (verdict,) = judged(f"{first}\n{second}")
        assert verdict.reasons[0].startswith("of the start with DFLASH, 8 (a line ")
        assert "more than 1.00 of 8 tokens per step" in verdict.reasons[0]


@pytest.mark.parametrize(
    "other", [SPECULATES, OTHER_PORT, BEFORE], ids=["the same", "another port", "cut off"]
)
def test_a_start_with_the_same_arguments_goes_on_as_before(other: str) -> None:
    assert series(f"{SPECULATES}\n{DEAD_LINES}\n{other}\n{DEAD_LINES}") == [("lines 2-42", 40)]


def test_a_server_that_is_started_a_third_time_as_the_first_is_that_one() -> None:
    log = f"{SPECULATES}\n{DEAD_LINES}\n{PLAIN}\n{IDLE_LINES}\n{SPECULATES}\n{DEAD_LINES}"
    assert series(log) == [("lines 2-21", 20), ("lines 23-42", 20), ("lines 44-63", 20)]
    (verdict,) = judged(log)
    assert (verdict.name, verdict.confidence) == (DEAD, "medium")
    assert verdict.reasons[0].startswith("of the start with DFLASH, 8 (")


def test_a_start_that_decoded_nothing_is_no_other_for_its_model() -> None:
    """A path that was mistyped first: the last start counts."""
    (start,) = [f for f in facts_of(f"{ELSEWHERE}\n{SPECULATES}\n{DEAD_LINES}") if isinstance(f, ServerArgs)]
    assert start.get("model_path") == "/m"
    assert names(f"{ELSEWHERE}\n{SPECULATES}\n{DEAD_LINES}") == [(DEAD, "medium")]
    decoded = f"{SPECULATES}\n{DEAD_LINES}\n{SPECULATES}\n{ELSEWHERE}\n{FINE_LINES}"
    assert {f.get("model_path") for f in facts_of(decoded) if isinstance(f, ServerArgs)} == {"/m", "/n"}
    assert names(decoded) == [(DEAD, "medium")]


def test_of_more_starts_than_are_told_apart_the_figures_are_of_nobody_knows_which() -> None:
    log = "\n".join(
        f"{SPECULATES.replace('tokens=8', f'tokens={number + 2}')}\n{lines(2, stated('1.00'))}"
        for number in range(40)
    )
    told = series(log)
    assert len(told) == 16
    assert sum(count for _, count in told) == 80
    assert len([fact for fact in facts_of(log) if isinstance(fact, ServerArgs)]) == 16


def test_a_large_log_is_told_apart_too() -> None:
    log = f"{SPECULATES}\n{lines(59, stated('1.00'))}\n{TRITON}\n{FINE_LINES}\n"
    reading = evidence.recognise(Document("x", lambda: iter((log.encode(),)), large=True))
    told = evidence.facts([reading])
    assert [fact.source[0].at for fact in told if isinstance(fact, DecodeSeries)] == [
        "lines 2-60",
        "lines 62-81",
    ]
    assert {fact.source[0].at for fact in told if isinstance(fact, ServerArgs)} == {"line 1", "line 61"}


def test_where_a_block_ends_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    log = f"x\n{SPECULATES}\n{DEAD_LINES}\n{PLAIN}\n{IDLE_LINES}\n{SPECULATES}\n{DEAD_LINES}\n"
    whole = series(log)
    for size in (700, 1000, 4000):
        monkeypatch.setattr("ddprobe.evidence.document.BLOCK", size)
        assert series(log) == whole


def test_a_verdict_says_of_which_start_it_is() -> None:
    (verdict,) = judged(f"{SPECULATES}\n{DEAD_LINES}", WIDER)
    assert verdict.reasons[0].startswith("of the start with DFLASH, 8 (")
    assert "more than 1.00 of 8 tokens per step" in verdict.reasons[0]
    (unknown,) = judged(SPECULATES, PLAIN, points(1.0))
    assert unknown.missing[0] == "which of the starts these figures are of"


def test_a_drafter_beside_two_starts_is_of_the_one_that_speculates() -> None:
    beside = "a drafter's configuration lies beside it, unused"
    drafter = (
        '{"architectures": ["DFlashDraftModel"], "hidden_size": 64, "num_hidden_layers": 5, "block_size": 8}'
    )
    (alone,) = [verdict for verdict in judged(f"{PLAIN}\n{IDLE_LINES}", drafter) if verdict.name == OFF]
    assert beside in alone.reasons
    (one,) = [v for v in judged(f"{PLAIN}\n{IDLE_LINES}", SPECULATES, drafter) if v.name == OFF]
    assert beside not in one.reasons


def test_findings_are_of_each_start() -> None:
    found = [finding for finding in lints.judge(facts_of(SPECULATES, PLAIN)) if finding.id == "SA00"]
    assert sorted((finding.outcome.label, finding.subject.partition(" of ")[0]) for finding in found) == [
        ("info", "launch"),
        ("pass", "launch"),
    ]
    assert {finding.subject.partition(" of ")[2] for finding in found} == {"f0 line 1", "f1 line 1"}


# --- whose variables they are -----------------------------------------------------------------------------

LAUNCH = "python3 -m sglang.launch_server --model-path /m --speculative-algorithm DFLASH --speculative-num-draft-tokens"
FORGED, HONEST = "SGLANG_SIMULATE_ACC_LEN: 5", "SGLANG_SIMULATE_ACC_LEN: 0"


def compose(*services: tuple[int, str]) -> str:
    """A Compose file with a server for each number of draft tokens, and a variable of its own."""
    told = ["services:"]
    for number, (tokens, variable) in enumerate(services):
        told += [f"  s{number}:", "    image: lmsysorg/sglang:v0.5.23", f"    command: {LAUNCH} {tokens}"]
        told += ["    environment:", f"      {variable}"] if variable else []
    return "\n".join(told) + "\n"


def forged(*texts: str) -> list[tuple[str, str]]:
    """What EN01 says of each server, in every order of the texts."""
    told = set()
    for order in itertools.permutations(texts):
        found = [finding for finding in lints.judge(facts_of(*order)) if finding.id == "EN01"]
        told.add(
            tuple(sorted((finding.outcome.label, finding.summary.partition(":")[0]) for finding in found))
        )
    assert len(told) == 1, told
    return list(told.pop())


def subjects(*texts: str) -> set[str]:
    found = [finding for finding in lints.judge(facts_of(*texts)) if finding.id == "EN01"]
    return {finding.subject.rpartition("f0 ")[2] for finding in found}


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        pytest.param([compose((8, FORGED), (16, ""))], ["fail"], id="of the first"),
        pytest.param([compose((8, ""), (16, FORGED))], ["fail"], id="of the second"),
        pytest.param([compose((8, FORGED), (16, HONEST))], ["fail", "pass"], id="of each its own"),
        pytest.param([compose((8, HONEST), (16, FORGED), (4, ""))], ["fail", "pass"], id="of three"),
        pytest.param([compose((8, ""), (16, ""))], [], id="of none"),
        pytest.param([compose((8, ""), (16, "")), "SGLANG_SIMULATE_ACC_LEN=5\n"], ["fail"], id="of nobody knows which"),
        pytest.param([SPECULATES, VLLM, "SGLANG_SIMULATE_ACC_LEN=5\n"], ["fail"], id="of the only one of its engine"),
        pytest.param([f"export SGLANG_SIMULATE_ACC_LEN=5\n{LAUNCH} 8\n", SPECULATES.replace("tokens=8", "tokens=16")], ["fail"],
                     id="in front of a command"),
    ],
)  # fmt: skip
def test_variables_of_several_servers_are_judged(texts: list[str], found: list[str]) -> None:
    assert [outcome for outcome, _ in forged(*texts)] == found


def test_variables_are_said_to_be_of_their_own_start() -> None:
    for services, first in (((8, FORGED), (16, "")), True), (((8, ""), (16, FORGED)), False):
        text = compose(*services)
        second_begins = text.splitlines().index("  s1:") + 1
        (told,) = subjects(text)
        assert (int(told.rpartition(" ")[2]) < second_begins) is first


def test_variables_of_one_server_make_no_other_one_a_forgery() -> None:
    """The same servers in one file: those with the same arguments are one start, wherever a third stands between them."""
    facts = facts_of(compose((8, ""), (16, HONEST), (8, FORGED)))
    forgers = [
        one
        for one in put_together(facts)
        if one.process and ("SGLANG_SIMULATE_ACC_LEN", "5") in one.process.environment
    ]
    assert [one.number("speculative_num_draft_tokens") for one in forgers] == [8]


def test_stray_variables_are_of_no_start() -> None:
    served = put_together(facts_of(compose((8, ""), (16, "")), "SGLANG_SIMULATE_ACC_LEN=5\n"))
    assert [(one.algorithm, one.process is not None) for one in served] == [
        ("DFLASH", False),
        ("DFLASH", False),
        ("", True),
    ]
    assert not served[-1].arguments_known


# --- which arguments are of one start ---------------------------------------------------------------------


def args(
    *, resolved: bool = True, cut: bool = False, at: str = "", origin: str = "log", **values: object
) -> ServerArgs:
    return ServerArgs(
        engine="sglang", origin=origin, values=tuple(values.items()), resolved=resolved, cut=cut, source=(Cite(at),) if at else ()
    )  # fmt: skip


ON = args(speculative_algorithm="DFLASH", speculative_num_draft_tokens=8, model_path="/m")


@pytest.mark.parametrize(
    ("other", "count"),
    [
        pytest.param(args(speculative_algorithm="DFLASH", speculative_num_draft_tokens=8, model_path="/m", port=1), 1, id="another port"),
        pytest.param(args(speculative_algorithm="DFLASH", speculative_num_draft_tokens=16, model_path="/m"), 2, id="another block"),
        pytest.param(args(speculative_algorithm="EAGLE3", speculative_num_draft_tokens=8, model_path="/m"), 2, id="another drafter"),
        pytest.param(args(speculative_algorithm="DFLASH", speculative_num_draft_tokens=8, model_path="/n"), 2, id="another model"),
        pytest.param(args(speculative_algorithm=None, model_path="/m"), 2, id="none"),
        pytest.param(args(model_path="/m", cut=True), 1, id="cut off before it"),
        pytest.param(args(speculative_algorithm="DFLASH", model_path="/m", cut=True), 1, id="cut off within it"),
        pytest.param(args(speculative_algorithm="DFLASH", model_path="/m"), 2, id="whole, and without a block"),
        pytest.param(
            args(speculative_algorithm="DFLASH", speculative_num_draft_tokens=8, model_path="/abs/m", origin="/server_info"),
            1, id="another account, with another path",
        ),
        pytest.param(args(speculative_algorithm="DFLASH", speculative_num_draft_tokens=4, origin="/server_info"), 2, id="another account of another block"),
        pytest.param(args(speculative_algorithm="DFLASH", origin="/server_info"), 1, id="another account that leaves the block out"),
        pytest.param(args(resolved=False, speculative_algorithm="DFLASH", speculative_num_draft_tokens=4), 1, id="as given"),
        pytest.param(args(resolved=False, model_path="/m"), 2, id="given without"),
        pytest.param(args(resolved=False, model_path="/m", cut=True), 1, id="given, and cut off"),
    ],
)  # fmt: skip
def test_arguments_of_one_start(other: ServerArgs, count: int) -> None:
    assert len(launches.launches([ON, other])) == count
    assert launches.launches([ON, other]) == launches.launches([other, ON])


def test_other_engines_are_other_servers() -> None:
    vllm = ServerArgs(engine="vllm", origin="log", resolved=True)
    assert len(launches.launches([ON, vllm])) == 2


def test_what_was_given_goes_with_what_was_taken_of_it() -> None:
    """Of two starts in one log, each said twice."""
    on, off = args(at="log", speculative_algorithm="EAGLE"), args(at="log", speculative_algorithm=None)
    given, plain = (
        args(at="log", resolved=False, speculative_algorithm="NEXTN"),
        args(at="log", resolved=False),
    )
    for order in itertools.permutations((on, off, given, plain)):
        assert set(launches.launches(order)) == {(on, given), (off, plain)}


def test_a_server_may_refuse_what_it_was_asked_for() -> None:
    taken = args(at="log", speculative_algorithm=None)
    assert (
        len(launches.launches([args(at="log#2", resolved=False, speculative_algorithm="EAGLE"), taken])) == 1
    )
    assert (
        len(launches.launches([args(at="other", resolved=False, speculative_algorithm="EAGLE"), taken])) == 2
    )


def test_only_a_start_that_speculates_has_the_drafter() -> None:
    from ddprobe.facts import ModelConfig

    drafter = ModelConfig(role="drafter", path="config.json")
    served = put_together([ON, args(speculative_algorithm=None), drafter])
    assert sorted((one.algorithm, one.drafter is not None) for one in served) == [
        ("", False),
        ("DFLASH", True),
    ]


# --- which figures are of which start ---------------------------------------------------------------------


def at(lines: str, document: str = "log") -> Fact:
    return DecodeSeries(engine="sglang", lines=4, source=(Cite(document, lines),))


@pytest.mark.parametrize(
    ("fact", "owner"),
    [
        (at("lines 4-8"), "first"),
        (at("line 9"), "first"),
        (at("lines 11-20"), "second"),
        (at("lines 10-20"), "second"),
        (at("lines 9-10"), ""),
        (at("lines 1-2"), ""),
        (at("$.x"), ""),
        (at("lines 4-8", "log#2"), "first"),
        (at("lines 4-8", "elsewhere"), ""),
    ],
)
def test_figures_are_of_the_start_before_them(fact: Fact, owner: str) -> None:
    first = ServerArgs(
        engine="sglang",
        origin="log",
        resolved=True,
        values=(("speculative_algorithm", "EAGLE"),),
        source=(Cite("log", "line 3"),),
    )
    second = ServerArgs(
        engine="sglang",
        origin="log",
        resolved=True,
        values=(("speculative_algorithm", None),),
        source=(Cite("log", "line 10"),),
    )
    for facts in ((first, second, fact), (fact, second, first)):
        parts = apart.starts(Case(facts))
        mine = [part for part in parts if fact in part.case.facts]
        assert len(mine) == 1
        assert mine[0].lives
        assert mine[0].args == {"first": (first,), "second": (second,), "": ()}[owner]
        assert len(parts) == (3 if not owner else 2)


def test_figures_around_the_only_start_of_a_document_are_not_all_its_own() -> None:
    other = args(at="elsewhere", speculative_algorithm=None)
    start = ServerArgs(
        engine="sglang",
        origin="log",
        resolved=True,
        values=(("speculative_algorithm", "EAGLE"),),
        source=(Cite("log", "line 3"),),
    )
    for figures, owned in ((at("lines 1-2"), False), (at("lines 1-9"), False), (at("lines 4-9"), True)):
        (mine,) = [part for part in apart.starts(Case((start, other, figures))) if figures in part.case.facts]
        assert bool(mine.args) is owned


def test_one_start_is_no_matter_of_several() -> None:
    assert apart.starts(Case((ON,))) == ()
    assert apart.starts(Case(())) == ()
