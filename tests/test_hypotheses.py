"""The ledger: what is supported, what is refuted and by what, and what nobody tested."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from typing import Any

import pytest

from ddprobe import verdicts
from ddprobe.facts import (
    Claim,
    CommitCheck,
    CommitPoint,
    CommitSetup,
    GpuSample,
    Limit,
    ModelConfig,
    PlannedPoint,
    Rope,
)
from ddprobe.model import Cite, Fact, Finding, HostRecord, Hypothesis, Outcome, Report, Verdict
from ddprobe.render import markdown, terminal
from ddprobe.reportjson import from_report, to_report
from ddprobe.verdicts.hypotheses import HYPOTHESES

SHORT, MIDDLE, LONG = 1024, 16384, 131072


def point(arm: str, context: int, commit: float, ms: float = 20.0, half: float = 0.1) -> CommitPoint:
    return CommitPoint(
        arm=arm,
        context_tokens=context,
        requests=4,
        prompt_tokens=context,
        cached_tokens=0,
        steps=100,
        drafted_steps=100,
        commit_mean=commit,
        commit_low=max(1.0, commit - half),
        commit_high=min(8.0, commit + half),
        ceiling=8,
        step_ms=ms,
        step_ms_low=ms * 0.95,
        step_ms_high=ms * 1.05,
        timed_steps=90,
        tok_s=commit / ms * 1000,
        copied=None if arm == "prose" else 1.0,
    )


def ladder(
    arm: str, *commits: float, ms: tuple[float, float, float] = (20, 21, 22)
) -> tuple[CommitPoint, ...]:
    contexts = (SHORT, MIDDLE, LONG)
    return tuple(point(arm, c, commit, t) for c, commit, t in zip(contexts, commits, ms, strict=True))


def check(name: str, agrees: bool) -> CommitCheck:
    return CommitCheck(
        name=name, agrees=agrees, text=f"{name}: 7.90 and 7.85", first=7.9, second=7.85, steps=64
    )


def probed(*points: CommitPoint, **other: Any) -> tuple[Fact, ...]:
    known: dict[str, Any] = {
        "engine": "sglang",
        "base": "http://127.0.0.1:30000",
        "speculating": True,
        "drafter": "model",
        "ceiling": 8,
        "window": 2048,
        "points": tuple(PlannedPoint(p.arm, p.context_tokens, 4, 4000, 1000, 2000) for p in points),
    }
    return (CommitSetup(**{**known, **other}), *points)


def ledger(
    facts: tuple[Fact, ...], findings: tuple[Finding, ...] = (), *, collected: bool = False
) -> dict[str, Hypothesis]:
    judge = verdicts.judge_collected if collected else verdicts.judge
    return {one.name: one for one in verdicts.ledger(facts, findings, judge(facts, findings))}


def statuses(found: dict[str, Hypothesis], status: str) -> set[str]:
    return {name for name, one in found.items() if one.status == status}


WHOLE = (
    *ladder("repeat", 7.9, 7.9, 7.9),
    *ladder("far-copy near", 7.5, 7.5, 7.5),
    *ladder("far-copy", 7.5, 7.4, 7.4),
    *ladder("prose", 4.0, 4.0, 4.0),
)
CONTROLS = (
    check("first-again", True),
    check("cold-cached", True),
    check("step-time-again", True),
    check("sources", True),
)


def test_there_are_nine_and_none_without_a_verdict() -> None:
    assert len(HYPOTHESES) == 9
    assert verdicts.ledger((), (), ()) == ()
    assert list(ledger((), collected=True)) == list(HYPOTHESES)


def test_nothing_known_tests_nothing() -> None:
    found = ledger((), collected=True)
    assert statuses(found, "untested") == set(HYPOTHESES)
    assert all(one.evidence == "" for one in found.values())


def test_a_sound_server_with_every_control_refutes_all_but_launches() -> None:
    found = ledger((*probed(*WHOLE), *CONTROLS))
    assert statuses(found, "untested") == {"cpu_or_launch_bound"}
    assert statuses(found, "supported") == set()
    assert "first-again: 7.90 and 7.85" not in found["kv_lost_on_cache_hit"].evidence
    assert "cold-cached: 7.90 and 7.85" in found["kv_lost_on_cache_hit"].evidence


def test_without_a_drafter_there_is_no_draft_cache_to_lose() -> None:
    """The control that compares cold and cached agrees there, too: one token a step both times."""
    single = tuple(
        replace(p, drafted_steps=0, drafted_commit_mean=None) for p in ladder("repeat", 1.0, 1.0, 1.0)
    )
    facts = (*probed(*single, speculating=False, drafter=""), *CONTROLS)
    assert [v.name for v in verdicts.judge(facts, ())] == ["not_speculating"]
    assert ledger(facts)["kv_lost_on_cache_hit"].status == "untested"


def test_easy_text_alone_refutes_neither_positions_nor_far_context() -> None:
    """The founding experiment: repeated text that holds says nothing of what stands far back."""
    found = ledger(probed(*ladder("repeat", 7.9, 7.9, 7.9)))
    assert found["positions"].status == "untested"
    assert found["positions"].evidence.startswith("a limit on positions between these lengths: repeat")
    assert "nothing that holds was copied from beyond the drafter's window (2048 tokens)" in (
        found["positions"].evidence
    )
    assert found["drafter_long_context"].status == "untested"
    assert "a far copy was not measured" in found["drafter_long_context"].evidence
    assert found["text_hard"].status == "untested"


def test_a_collapse() -> None:
    drafter = ModelConfig(role="drafter", path="config.json", max_position_embeddings=40960)
    found = ledger((*ladder("repeat", 7.9, 7.9, 1.0), drafter), collected=True)
    assert statuses(found, "supported") == {"drafter_long_context", "positions"}
    assert found["text_hard"].status == "refuted"
    assert found["text_hard"].evidence.startswith(
        "long_context_bug (rope_position): repeat commits 7.90 of 8"
    )


def test_a_dead_drafter_is_no_matter_of_length_or_text() -> None:
    found = ledger(ladder("repeat", 1.0, 1.0, 1.0), collected=True)
    assert {"drafter_long_context", "text_hard"} <= statuses(found, "refuted")


def test_hard_text() -> None:
    found = ledger((*ladder("repeat", 7.9, 7.9, 7.9), *ladder("prose", 1.9, 1.9, 1.9)), collected=True)
    assert statuses(found, "supported") == {"text_hard"}
    assert found["positions"].status == "untested"


# --- positions --------------------------------------------------------------------------------------------

YARN = ModelConfig(role="drafter", path="/d", rope=Rope(kind="yarn", factor=64.0, original_max_position=4096))
PLAIN = ModelConfig(role="drafter", path="/d")


def far_copies(*far: float) -> tuple[CommitPoint, ...]:
    near = ladder("far-copy near", 7.5, 7.5, 7.5)[: len(far)]
    places = (SHORT, MIDDLE, LONG)
    return (
        *near,
        *(point("far-copy far", place, commit) for place, commit in zip(places, far, strict=False)),
    )


@pytest.mark.parametrize(
    ("far", "window", "config", "status", "told"),
    [
        pytest.param((7.5, 7.4, 7.4), 2048, YARN, "refuted", "far-copy far commits 7.40 of 8", id="from beyond both"),
        pytest.param((7.5, 7.4, 7.4), 2048, None, "refuted", "from afar as well", id="from beyond the window"),
        pytest.param((7.5, 7.4, 7.4), None, YARN, "refuted", "from afar as well", id="from beyond the original length"),
        pytest.param((7.5, 7.4, 7.4), None, PLAIN, "refuted", "from afar as well", id="nothing to come from beyond"),
        pytest.param((7.5, 7.4, 7.4), None, None, "untested", "nor its original length is known", id="nobody knows them"),
        pytest.param((7.5, 7.4, 3.0), 2048, YARN, "untested", "original length (4096 tokens)", id="far text is lost"),
        pytest.param((), 2048, YARN, "untested", "the drafter's window (2048 tokens) and its original length", id="no far copy"),
        pytest.param((), None, PLAIN, "untested", "no far copy holds", id="no far copy, and no limits"),
        pytest.param((7.5,), 2048, None, "untested", "beyond the drafter's window", id="from within the window"),
        pytest.param((7.5, 7.4), MIDDLE, None, "untested", "beyond the drafter's window", id="from the window's end"),
        pytest.param((7.5, 7.4), MIDDLE - 1, None, "refuted", "from afar as well", id="from just beyond it"),
        pytest.param((7.5,), 512, YARN, "untested", "original length", id="from beyond the window only"),
    ],
)  # fmt: skip
def test_a_subtle_fault_of_yarn_shows_only_on_what_is_copied_from_afar(
    far: tuple[float, ...], window: int | None, config: ModelConfig | None, status: str, told: str
) -> None:
    """A limit on positions would show on repeated text; its rotations are by a few tokens only."""
    extra = () if config is None else (config,)
    facts = probed(*ladder("repeat", 7.9, 7.9, 7.9), *far_copies(*far), window=window)
    found = ledger((*facts, *extra))["positions"]
    assert found.status == status
    assert told in found.evidence
    assert "repeat commits 7.90 of 8" in found.evidence


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"sliding_window": 2048}, "refuted"),
        ({"sliding_window": 2 * LONG}, "untested"),
        ({"sliding_window": 2 * LONG, "use_sliding_window": False}, "refuted"),
        ({"sliding_window": 2 * LONG, "use_sliding_window": True}, "untested"),
    ],
)
def test_a_window_that_only_the_configuration_states(changes: dict[str, Any], status: str) -> None:
    """Copying from within the window shows no far position; one that is switched off bounds nothing."""
    facts = probed(*ladder("repeat", 7.9, 7.9, 7.9), *far_copies(7.5, 7.4, 7.4), window=None)
    assert ledger((*facts, replace(PLAIN, **changes)))["positions"].status == status


def test_far_copies_alone_refute_no_limit() -> None:
    """What is to be compared is the same text at every length; without it, nothing is."""
    assert ledger(probed(*far_copies(7.5, 7.4, 7.4)))["positions"].status == "untested"


def test_repeated_text_that_falls_elsewhere_refutes_no_limit() -> None:
    window = Limit(2048, "the drafter's sliding_window", "sliding_window_kv")
    found = ledger(probed(*ladder("repeat", 7.9, 1.2, 1.1), limits=(window,)))
    assert found["window_not_applied"].status == "supported"
    assert (found["positions"].status, found["positions"].evidence) == ("untested", "")


@pytest.mark.parametrize(
    ("id", "outcome", "status"),
    [
        ("DC39", Outcome.FAIL, "supported"), ("DC39", Outcome.WARN, "untested"), ("DC35", Outcome.FAIL, "untested"),
    ],
)  # fmt: skip
def test_a_dead_drafter_may_rotate_wrongly(id: str, outcome: Outcome, status: str) -> None:
    """A limit on length does not explain it. Wrong rotations at every length would, and a lint may say so."""
    finding = Finding(id=id, outcome=outcome, subject="drafter", summary="the drafter rotates on 10000")
    found = ledger(ladder("repeat", 1.0, 1.0, 1.0), (finding,), collected=True)["positions"]
    assert found.status == status
    if status == "supported":
        assert found.evidence == "DC39: the drafter rotates on 10000"
    else:
        assert "wrong positions at every length would do the same" in found.evidence


@pytest.mark.parametrize("drafter", ["lookup", "model"])
def test_easy_text_says_nothing_of_a_drafter_that_looks_text_up(drafter: str) -> None:
    found = ledger(probed(*WHOLE, drafter=drafter))
    status = "untested" if drafter == "lookup" else "refuted"
    assert {found[name].status for name in ("positions", "window_not_applied", "drafter_long_context")} == {
        status
    }


# --- time, window, metric ---------------------------------------------------------------------------------


def test_attention_refutes_launches() -> None:
    found = ledger(ladder("repeat", 7.9, 7.9, 7.9, ms=(20, 40, 200)), collected=True)
    assert statuses(found, "supported") == {"attention_kernel"}
    assert found["cpu_or_launch_bound"].status == "refuted"
    assert found["cpu_or_launch_bound"].evidence.startswith("launches take as long at any length")


def test_step_times_that_stay_refute_attention() -> None:
    assert ledger(ladder("repeat", 7.9, 7.9, 7.9), collected=True)["attention_kernel"].status == "refuted"
    two = ladder("repeat", 7.9, 7.9, 7.9)[:2]
    assert ledger(two, collected=True)["attention_kernel"].status == "untested"


@pytest.mark.parametrize(
    ("outcome", "status"),
    [(Outcome.FAIL, "supported"), (Outcome.PASS, "refuted"), (Outcome.UNKNOWN, "untested")],
)
def test_the_window_is_a_question_to_the_installed_source(outcome: Outcome, status: str) -> None:
    finding = Finding(
        id="DC21", outcome=outcome, subject="drafter", summary="the installed SGLang applies it or not"
    )
    assert ledger((), (finding,), collected=True)["window_not_applied"].status == status


def test_a_metric_that_contradicts_itself() -> None:
    pair = (
        Claim(what="commit length", value=1.0, origin="avg_commit_len"),
        Claim(what="accepted depth", value=3.0, origin="avg_accepted_depth"),
    )
    assert statuses(ledger(pair, collected=True), "supported") == {"metric_wrong"}


# --- which of several, and what is said --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("commits", "holds"),
    [
        pytest.param((7.9,), False, id="one length compares nothing"),
        pytest.param((7.9, 7.9), True, id="two lengths do"),
        pytest.param((7.9, 6.0), False, id="works, and falls"),
        pytest.param((3.0, 3.0), False, id="level, and weak"),
    ],
)
def test_repeated_text_holds_when_it_works_at_two_lengths_alike(
    commits: tuple[float, ...], holds: bool
) -> None:
    points = tuple(point("repeat", place, c) for place, c in zip((SHORT, MIDDLE), commits, strict=False))
    found = ledger(points, collected=True)
    assert ("for text that stays near" in found["drafter_long_context"].evidence) is holds


def test_points_of_others_hold_where_nobody_says_what_was_copied() -> None:
    points = tuple(replace(p, copied=None) for p in ladder("repeat", 7.9, 7.9, 7.9))
    found = ledger((*points, PLAIN), collected=True)["positions"]
    assert found.status == "untested"
    assert "it holds. A subtle fault of YaRN" in found.evidence


def test_each_is_cited_by_the_points_that_decide_it() -> None:
    texts = (*ladder("repeat", 7.9, 7.9, 7.9), *far_copies(7.5, 7.4, 7.4), *ladder("prose", 4.0, 4.0, 4.0))
    points = [replace(p, source=(Cite(f"{p.arm} {p.context_tokens}"),)) for p in texts]
    found = ledger((*probed(*points), *CONTROLS))
    assert found["positions"].cites == (Cite(f"far-copy far {LONG}"),)
    assert found["text_hard"].cites == (Cite(f"prose {LONG}"),)
    assert found["attention_kernel"].cites == (Cite(f"repeat {LONG}"),)
    others = ledger(tuple(replace(p, copied=None) for p in points[:3]), collected=True)
    assert others["positions"].cites == (Cite(f"repeat {SHORT}"), Cite(f"repeat {LONG}"))


def test_a_point_that_moved_by_the_end_holds_nothing_up() -> None:
    """The server's state changes what is committed: lengths measured one after another cannot be compared."""
    moved = CommitCheck(
        name="first-again", agrees=False, text="7.90 and 2.00", first=7.9, second=2.0, steps=64
    )
    again = replace(point("repeat", SHORT, 2.0), purpose="again")
    found = ledger((*ladder("repeat", 7.9, 7.9, 7.9), again, moved), collected=True)
    assert "it holds" not in found["drafter_long_context"].evidence


@pytest.mark.parametrize("outcome", [Outcome.FAIL, Outcome.PASS])
def test_the_first_lint_on_the_window_decides(outcome: Outcome) -> None:
    first, second = (
        Finding(id="DC21", outcome=outcome, subject="drafter", summary=told)
        for told in ("the first", "the second")
    )
    assert ledger((), (first, second), collected=True)["window_not_applied"].evidence == "DC21: the first"


def test_the_first_lint_on_the_metric_decides() -> None:
    first, second = (
        Finding(id="RT01", outcome=Outcome.PASS, subject="log", summary=told)
        for told in ("the first", "the second")
    )
    found = ledger((), (first, second), collected=True)["metric_wrong"]
    assert (found.status, found.evidence) == ("refuted", "RT01: the first")


def test_the_first_lint_on_rotation_decides() -> None:
    first, second = (
        Finding(id="DC39", outcome=Outcome.FAIL, subject="drafter", summary=told)
        for told in ("the first", "the second")
    )
    found = ledger(ladder("repeat", 1.0, 1.0, 1.0), (first, second), collected=True)
    assert found["positions"].evidence == "DC39: the first"


def test_prose_at_its_longest_says_that_the_text_is_not_hard() -> None:
    found = ledger(probed(*ladder("repeat", 7.9, 7.9, 7.9), *ladder("prose", 4.2, 4.1, 4.0)))["text_hard"]
    assert found.status == "refuted"
    assert found.evidence.startswith("prose commits 4.00 of 8")
    assert "4.10" not in found.evidence


@pytest.mark.parametrize(
    ("points", "status"),
    [
        pytest.param(ladder("prose", 4.0, 4.0, 4.0), "refuted", id="much in itself"),
        pytest.param(ladder("prose", 1.6, 1.6, 1.6), "untested", id="little, and nothing beside it"),
        pytest.param(
            (*ladder("repeat", 3.0, 3.0, 3.0), *ladder("prose", 1.6, 1.6, 1.6)), "refuted", id="not much less than repeated text"
        ),
        pytest.param(
            (*ladder("repeat", 3.0, 3.0, 3.0)[:2], *ladder("prose", 1.6, 1.6, 1.6)), "untested", id="nothing beside the longest"
        ),
    ],
)  # fmt: skip
def test_text_is_not_hard_that_commits_much_or_as_much_as_repeated_text(
    points: tuple[CommitPoint, ...], status: str
) -> None:
    assert ledger(probed(*points))["text_hard"].status == status


def test_a_step_takes_no_longer_at_the_longest_length() -> None:
    found = ledger(ladder("repeat", 7.9, 7.9, 7.9), collected=True)["attention_kernel"]
    assert found.evidence == "a step takes no longer at 128k"


@pytest.mark.parametrize(
    ("ms", "layers", "bandwidth", "status"),
    [
        pytest.param((20, 21, 30), 61, 1792.0, "refuted", id="as memory makes it"),
        pytest.param((20, 21, 30), 61, None, "untested", id="no bandwidth known"),
        pytest.param((20, 21, 30), None, 1792.0, "untested", id="no layers known"),
        pytest.param((20, 140, 1030), 61, 1792.0, "supported", id="far beyond memory"),
    ],
)
def test_reading_the_cache_explains_a_step_that_grows(
    ms: tuple[float, float, float], layers: int | None, bandwidth: float | None, status: str
) -> None:
    """61 layers × 576 × 2 bytes at 1792 GB/s are 0.0392 µs a token: 5 of the 10 ms from 1k to 128k."""
    target = ModelConfig(
        role="target",
        path="/t",
        num_hidden_layers=layers,
        kv_lora_rank=512,
        qk_rope_head_dim=64,
        dtype="bfloat16",
    )
    facts = probed(*ladder("repeat", 7.9, 7.9, 7.9, ms=ms))
    known = (*facts, target)
    found = verdicts.ledger(known, (), verdicts.judge(known, (), bandwidth), bandwidth)
    (attention,) = (one for one in found if one.name == "attention_kernel")
    assert attention.status == status
    assert "times as long" in attention.evidence


def test_two_lengths_beyond_memory_refute_no_kernel() -> None:
    target = ModelConfig(
        role="target",
        path="/t",
        num_hidden_layers=61,
        kv_lora_rank=512,
        qk_rope_head_dim=64,
        dtype="bfloat16",
    )
    points = (point("repeat", SHORT, 7.9, 20.0), point("repeat", LONG, 7.9, 1030.0))
    known = (*probed(*points), target)
    found = verdicts.ledger(known, (), verdicts.judge(known, (), 1792.0), 1792.0)
    (attention,) = (one for one in found if one.name == "attention_kernel")
    assert attention.status == "untested"


def test_the_first_reason_of_a_verdict_speaks_for_it() -> None:
    slow = Verdict(name="attention_kernel_bottleneck", confidence="medium", reasons=("the slope", "the rest"))
    dead = Verdict(name="drafter_dead", confidence="high", reasons=("nothing right", "the rest"))
    bare = Verdict(name="drafter_dead", confidence="low")
    facts = probed(point("repeat", SHORT, 7.9))
    told = {one.name: one for one in verdicts.ledger(facts, (), (slow, dead))}
    assert told["cpu_or_launch_bound"].evidence == "launches take as long at any length, and the slope"
    assert told["drafter_long_context"].evidence == "it is so at the shortest length: nothing right"
    assert told["text_hard"].evidence == "drafter_dead: nothing right"
    unsure = {one.name: one for one in verdicts.ledger(facts, (), (replace(slow, confidence="low"), bare))}
    assert unsure["cpu_or_launch_bound"].status == "untested"
    assert unsure["text_hard"].status == "untested"
    assert unsure["drafter_long_context"].evidence == "it is so at the shortest length: drafter_dead"


@pytest.mark.parametrize(("agrees", "status"), [(True, "refuted"), (False, "untested"), (None, "untested")])
def test_step_times_that_come_out_the_same_refute_the_machine(agrees: bool | None, status: str) -> None:
    again = CommitCheck(name="step-time-again", agrees=agrees, text="20 ms and 20 ms")
    assert ledger((*probed(*WHOLE), again))["gpu_state"].status == status


def test_clocks_held_down_are_no_proof() -> None:
    samples = tuple(GpuSample(index=0, throttled_by=why) for why in (("power",), (), ("heat", "power")))
    found = ledger((*probed(*WHOLE), *samples, check("step-time-again", True)))["gpu_state"]
    assert (found.status, found.evidence) == (
        "untested",
        "clocks are held down by heat and power; no step time says that it matters",
    )


# --- views ------------------------------------------------------------------------------------------------


def report() -> Report:
    facts = ladder("repeat", 7.9, 7.9, 7.9, ms=(20, 40, 200))
    found = verdicts.judge_collected(facts, ())
    return Report(
        name="analyse",
        version="1",
        started=1.0,
        hosts=(HostRecord(name="evidence"),),
        verdicts=tuple(Verdict(name=v.name, reasons=v.reasons, host="evidence") for v in found),
        hypotheses=verdicts.ledger(facts, (), found),
    )


def test_the_ledger_goes_through_json() -> None:
    data = from_report(report())
    assert [one["name"] for one in data["hypotheses"]] == list(HYPOTHESES)
    assert to_report(data) == report()


def test_views_show_what_is_supported_first() -> None:
    text = markdown.text(report())
    assert "## Hypotheses" in text
    assert text.index("attention kernel is slow | supported") < text.index(
        "kernel launches are waited for | refuted"
    )
    drawn = StringIO()
    terminal.show(report(), folder=None, file=drawn, width=100)
    shown = drawn.getvalue()
    assert (
        "● supported the target's attention kernel is slow: attention_kernel_bottleneck: a step takes 20 ms"
        in shown
    )
    assert "untested: " in shown
    quiet = StringIO()
    terminal.show(report(), folder=None, file=quiet, quiet=True)
    assert "Hypotheses" not in quiet.getvalue()
