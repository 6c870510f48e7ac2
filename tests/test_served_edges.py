"""What lints judge, put together from facts: which arguments, files and measurements belong to which server."""

from __future__ import annotations

from typing import Any

import pytest

from ddprobe import gpu_cards, lints
from ddprobe.facts import (
    CommitPoint,
    CommitSetup,
    Discovered,
    Gpu,
    GpuSample,
    ModelConfig,
    Reach,
    Rope,
    ServerArgs,
    ServerProcess,
    ServerState,
    SourceHit,
    SourcePackage,
)
from ddprobe.lints.measured import Measured
from ddprobe.lints.served import Served, beside_cite, config_cite, newer_than_read, put_together
from ddprobe.model import Cite, Fact, Outcome
from ddprobe.verdicts.case import Case


def arguments(
    values: dict[str, Any], *, resolved: bool = False, cite: str = "cmdline", **known: Any
) -> ServerArgs:
    known = {
        "engine": "sglang",
        "origin": "command line",
        "source": (Cite(cite, "whole"), Cite("beside")),
        **known,
    }
    return ServerArgs(values=tuple(values.items()), resolved=resolved, **known)


def config(role: str = "drafter", **fields: Any) -> ModelConfig:
    return ModelConfig(role=role, path=f"/models/{role}/config.json", **fields)


def process(pid: int, **known: Any) -> ServerProcess:
    return ServerProcess(**{"engine": "sglang", "pid": pid, "argv": ("python",), **known})


# --- one argument -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "resolved", "value"),
    [
        ({"tp_size": 2}, {"tp_size": 4}, 4),
        ({"tp_size": 2}, {}, 2),
        ({"tp_size": 2}, {"tp_size": None}, 2),
        ({"tp_size": 2}, {"tp_size": 0}, 0),
        ({}, {}, None),
    ],
)
def test_what_the_server_resolved_is_in_force(
    given: dict[str, Any], resolved: dict[str, Any], value: Any
) -> None:
    served = Served(given=arguments(given), resolved=arguments(resolved, resolved=True))
    assert served.arg("tp_size") == value


@pytest.mark.parametrize(
    ("value", "number"), [(16, 16), (0, 0), (-1, -1), (True, None), ("16", None), (1.5, None), (None, None)]
)
def test_only_a_whole_number_is_a_number(value: Any, number: int | None) -> None:
    assert Served(given=arguments({"tp_size": value})).number("tp_size") == number


def test_an_argument_is_cited_where_it_stands() -> None:
    given, resolved = arguments({"a": 1, "b_c": 2}), arguments({"a": 3}, resolved=True, cite="info")
    both = Served(given=given, resolved=resolved)
    assert both.arg_cite("a") == (Cite("info", "$.a"),)
    assert both.arg_cite("b_c") == (Cite("cmdline", "--b-c"),)
    assert both.arg_cite("d") == (Cite("cmdline", "whole"),)
    assert Served(resolved=resolved).arg_cite("d") == (Cite("info", "whole"),)
    assert Served(given=ServerArgs(engine="", origin="")).arg_cite("a") == ()
    assert Served().arg_cite("a") == ()


# --- what speculates --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "engine", "algorithm"),
    [
        ({"speculative_algorithm": "dflash"}, "sglang", "DFLASH"),
        ({"speculative_algorithm": "None"}, "sglang", ""),
        ({"speculative_algorithm": "null"}, "sglang", ""),
        ({"speculative_algorithm": ""}, "sglang", ""),
        ({}, "sglang", ""),
        ({"speculative_draft_model_path": "/draft"}, "sglang", ""),
        ({"speculative_draft_model_path": "/draft"}, "llamacpp", "DRAFT"),
        ({}, "llamacpp", ""),
    ],
)
def test_the_algorithm(values: dict[str, Any], engine: str, algorithm: str) -> None:
    assert Served(engine=engine, given=arguments(values)).algorithm == algorithm


@pytest.mark.parametrize(
    ("names", "taps", "family"),
    [
        ("DFlashDraftModel", (1,), "dflash"),
        ("DFlashDraftModel", None, "dflash"),
        ("MuseGlimmerAssistantModel", None, "dflash"),
        ("Qwen3DSparkModel", (1,), "dspark"),
        ("Qwen3DSparkModel", None, "dspark"),
        ("LlamaForCausalLMEagle3", (1,), "eagle"),
        ("LlamaForCausalLMEagle3", None, "eagle"),
        ("DeepseekV3ForCausalLMNextN", None, "eagle"),
        ("SomethingElse", (1,), "dflash"),
        ("SomethingElse", (), "dflash"),
        ("SomethingElse", None, "other"),
    ],
)
def test_a_drafter_without_a_server_is_of_the_family_that_its_file_names(
    names: str, taps: tuple[int, ...] | None, family: str
) -> None:
    assert Served(drafter=config(architectures=(names,), target_layer_ids=taps)).family == family


def test_what_a_server_does_counts_before_what_its_drafter_is_called() -> None:
    drafter = config(architectures=("DFlashDraftModel",))
    assert Served(drafter=drafter, given=arguments({"speculative_algorithm": "EAGLE3"})).family == "eagle"
    assert Served(drafter=drafter, given=arguments({})).family == ""
    assert Served(drafter=drafter, resolved=arguments({}, resolved=True)).family == ""
    assert Served().family == ""


@pytest.mark.parametrize(
    ("engine", "values", "own"),
    [
        ("sglang", {"speculative_algorithm": "EAGLE"}, True),
        ("sglang", {"speculative_algorithm": "NEXTN"}, True),
        ("sglang", {"speculative_algorithm": "EAGLE3"}, False),
        ("sglang", {"speculative_algorithm": "DFLASH"}, False),
        ("sglang", {}, False),
        (
            "sglang",
            {"speculative_algorithm": "EAGLE", "speculative_draft_model_path": "/m", "model_path": "/m"},
            True,
        ),
        (
            "sglang",
            {"speculative_algorithm": "EAGLE", "speculative_draft_model_path": "/d", "model_path": "/m"},
            False,
        ),
        ("vllm", {"speculative_algorithm": "mtp"}, True),
        ("vllm", {"speculative_algorithm": "deepseek_mtp"}, True),
        ("vllm", {"speculative_algorithm": "nextn"}, True),
        ("vllm", {"speculative_algorithm": "eagle"}, False),
        ("vllm", {"speculative_algorithm": "ngram"}, False),
    ],
)
def test_a_target_drafts_with_its_own_layers(engine: str, values: dict[str, Any], own: bool) -> None:
    assert Served(engine=engine, given=arguments(values)).drafts_with_own_layers is own
    assert not Served(engine=engine, given=arguments(values), drafter=config()).drafts_with_own_layers


# --- lengths ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "length", "said"),
    [
        (8192, 8192, "the server's context_length 8192"),
        (1, 1, "the server's context_length 1"),
        (0, 40960, "the target's own length 40960"),
        (-1, 40960, "the target's own length 40960"),
        (None, 40960, "the target's own length 40960"),
    ],
)
def test_the_context_served(given: int | None, length: int, said: str) -> None:
    served = Served(given=arguments({"context_length": given}), target=config("target", context_length=40960))
    assert served.context()[:2] == (length, said)


def test_without_a_length_the_context_is_not_known() -> None:
    assert Served(given=arguments({}), target=config("target")).context() == (None, "", ())
    assert Served(given=arguments({"context_length": 0})).context() == (None, "", ())


@pytest.mark.parametrize(
    ("engine", "values", "trained", "block"),
    [
        ("sglang", {"speculative_num_draft_tokens": 8}, 16, 8),
        ("sglang", {"speculative_num_draft_tokens": 8, "speculative_dflash_block_size": 4}, 16, 8),
        ("sglang", {"speculative_dflash_block_size": 4}, 16, 4),
        ("sglang", {}, 16, 16),
        ("sglang", {}, None, None),
        ("vllm", {"speculative_num_draft_tokens": 8}, 16, 16),
    ],
)
def test_the_block_size_asked_for_counts_before_the_one_trained(
    engine: str, values: dict[str, Any], trained: int | None, block: int | None
) -> None:
    served = Served(engine=engine, given=arguments(values), drafter=config(block_size=trained))
    assert served.block_size() == block


def test_a_block_size_needs_no_drafter_to_be_asked_for() -> None:
    asked = Served(engine="sglang", given=arguments({"speculative_num_draft_tokens": 8}))
    assert (asked.block_size(), Served(engine="sglang").block_size()) == (8, None)


@pytest.mark.parametrize(
    ("engine", "values", "trained", "ceiling"),
    [
        ("sglang", {"speculative_algorithm": "DFLASH", "speculative_num_draft_tokens": 8}, {}, 8),
        ("sglang", {"speculative_algorithm": "DFLASH"}, {"block_size": 16}, 16),
        ("sglang", {"speculative_algorithm": "DFLASH"}, {}, None),
        (
            "sglang",
            {"speculative_algorithm": "DFLASH", "speculative_dspark_block_size": 4},
            {"block_size": 16},
            16,
        ),
        ("sglang", {"speculative_algorithm": "DFLASH", "speculative_num_draft_tokens": 2}, {}, 2),
        ("sglang", {"speculative_algorithm": "DFLASH", "speculative_num_draft_tokens": 1}, {}, None),
        ("sglang", {"speculative_num_draft_tokens": 8}, {"block_size": 16}, None),
        # A tree of 16 nodes, three steps deep, commits four tokens at most.
        (
            "sglang",
            {
                "speculative_algorithm": "EAGLE3",
                "speculative_num_steps": 3,
                "speculative_num_draft_tokens": 16,
            },
            {},
            4,
        ),
        ("sglang", {"speculative_algorithm": "EAGLE3", "speculative_num_draft_tokens": 4}, {}, 4),
        (
            "sglang",
            {
                "speculative_algorithm": "DFLASH",
                "speculative_num_steps": 1,
                "speculative_num_draft_tokens": 8,
            },
            {},
            8,
        ),
        # DSpark verifies gamma + 1 tokens.
        ("sglang", {"speculative_algorithm": "DSPARK"}, {"block_size": 7, "dspark_gamma": 7}, 8),
        (
            "sglang",
            {"speculative_algorithm": "DSPARK", "speculative_dspark_block_size": 4},
            {"dspark_gamma": 7},
            5,
        ),
        (
            "sglang",
            {"speculative_algorithm": "DSPARK", "speculative_num_draft_tokens": 8},
            {"dspark_gamma": 7},
            8,
        ),
        ("sglang", {"speculative_algorithm": "DSPARK"}, {}, None),
        ("vllm", {"num_speculative_tokens": 7}, {}, 8),
        ("vllm", {"num_speculative_tokens": 0}, {}, None),
        ("vllm", {"speculative_num_draft_tokens": 7}, {"block_size": 16}, None),
        ("llamacpp", {"num_speculative_tokens": 7}, {}, 8),
    ],
)
def test_the_ceiling_of_a_step_by_its_arguments(
    engine: str, values: dict[str, Any], trained: dict[str, Any], ceiling: int | None
) -> None:
    served = Served(engine=engine, given=arguments(values), drafter=config(**trained))
    assert served.ceiling() == ceiling


def test_a_gamma_needs_no_drafter_to_be_asked_for() -> None:
    asked = arguments({"speculative_algorithm": "DSPARK", "speculative_dspark_block_size": 4})
    assert Served(engine="sglang", given=asked).ceiling() == 5
    assert Served(engine="sglang", given=arguments({"speculative_algorithm": "DSPARK"})).ceiling() is None


def test_the_ceiling_of_what_was_measured_is_its_own_before_that_of_the_server() -> None:
    server: list[Fact] = [
        process(41),
        arguments({"speculative_algorithm": "DFLASH", "speculative_num_draft_tokens": 8}),
    ]
    silent, told = (CommitPoint(arm="repeat", context_tokens=1, ceiling=ceiling) for ceiling in (None, 4))

    def ceiling(*facts: Fact) -> int | None:
        measured = Measured.of_facts(facts)
        assert measured is not None
        return measured.ceiling

    def setup(most: int | None) -> CommitSetup:
        return CommitSetup(engine="sglang", base="http://127.0.0.1:30000", ceiling=most)

    assert ceiling(*server, setup(6), silent, told) == 6
    assert ceiling(*server, setup(None), silent, told) == 4
    assert ceiling(*server, silent, told) == 4
    assert ceiling(*server, silent) == 8
    assert ceiling(silent, told) == 4
    assert ceiling(silent) is None
    assert ceiling(process(41), silent) is None


def test_of_two_servers_none_is_meant() -> None:
    block = {"speculative_algorithm": "DFLASH", "speculative_num_draft_tokens": 8}
    point = CommitPoint(arm="repeat", context_tokens=1)
    mine, other = (arguments(block, server=f"sglang pid {pid}") for pid in (41, 42))
    both = Measured.of_facts([process(41), process(42), mine, other, point])
    beside_a_pair = Measured.of_facts([process(41), mine, config(), point])
    assert (both and both.ceiling, beside_a_pair and beside_a_pair.ceiling) == (None, 8)


def test_each_pass_of_a_looped_target_has_layers_of_its_own() -> None:
    assert Served(target=config("target", num_hidden_layers=18)).target_layers() == 18
    assert Served(target=config("target", num_hidden_layers=18, num_loops=2)).target_layers() == 36
    assert Served(target=config("target")).target_layers() is None
    assert Served().target_layers() is None


# --- where it stands --------------------------------------------------------------------------------------


def test_a_configuration_is_cited_by_its_own_file_and_what_lies_beside_it_by_its_own() -> None:
    sources = (Cite("config", "$"), Cite("listing", "files"), Cite("weights", "header"))
    known = config(source=sources, places=(("hidden_size", "$.text_config.hidden_size"),))
    assert config_cite(known, "hidden_size", "rope.theta") == (
        Cite("config", "$.text_config.hidden_size"), Cite("config", "$.rope_scaling.theta"),
    )  # fmt: skip
    assert config_cite(config(), "hidden_size") == ()
    assert config_cite(None, "hidden_size") == ()
    assert beside_cite(known, "header") == (Cite("weights", "header"),)
    assert beside_cite(None, "header") == ()


# --- put together -----------------------------------------------------------------------------------------


def names(facts: list[Fact]) -> list[str]:
    return [served.name for served in put_together(facts)]


def test_configurations_without_a_server_are_one_pair() -> None:
    (both,) = put_together([config(), config("target")])
    assert both.drafter is not None
    assert both.target is not None
    assert [served.target for served in put_together([config()])] == [None]
    assert [served.drafter for served in put_together([config("target")])] == [None]
    assert put_together([]) == ()


def test_a_pair_without_a_server_stands_beside_a_server() -> None:
    assert names([process(41), config()]) == ["sglang pid 41", ""]
    assert names([process(41), config(server="sglang pid 41")]) == ["sglang pid 41"]
    assert names([arguments({}), config()]) == [""]


def test_a_pair_without_a_server_is_read_as_the_only_sglang_installed_reads_it() -> None:
    def installed(engine: str, version: str) -> SourcePackage:
        return SourcePackage(engine=engine, path=f"/opt/{version}", version=version, origin="")

    def version(*packages: SourcePackage) -> str:
        return put_together([config(), *packages])[0].version

    assert version() == ""
    assert version(installed("vllm", "0.32.0")) == ""
    assert version(installed("sglang", "0.5.23"), installed("vllm", "0.32.0")) == "0.5.23"
    assert version(installed("sglang", "0.5.23"), installed("sglang", "0.5.12")) == ""


def test_what_was_measured_belongs_to_the_only_server() -> None:
    point = CommitPoint(arm="repeat", context_tokens=1024)
    hit = SourceHit(path="a.py", line=1, text="", within="")
    (one,) = put_together([process(41), point, hit])
    assert (one.points, one.source_lines) == ((point,), (hit,))
    both = put_together([process(41), process(42), point, hit])
    assert [(served.points, served.source_lines) for served in both] == [((), (hit,))] * 2


def test_gpus_are_those_of_the_host_however_they_were_found() -> None:
    reach = Reach(system="Linux", user="me", hostname="gpu1", gpus=("H100", "L40S"))
    facts: list[Fact] = [
        process(41),
        Discovered(what="gpu", value="H100", origin=""),
        Discovered(what="port", value="30000", origin=""),
        reach,
        GpuSample(index=0, name="A100"),
        Gpu(index=0, name="L40S"),
        Gpu(index=1, name="RTX PRO 6000"),
        Gpu(index=2),
    ]
    assert put_together(facts)[0].gpus == ("H100", "L40S", "A100", "RTX PRO 6000")


@pytest.mark.parametrize(
    ("mig", "told"),
    [(True, "NVIDIA H100 80GB HBM3 MIG"), (False, "NVIDIA H100 80GB HBM3"), (None, "NVIDIA H100 80GB HBM3")],
)
def test_a_card_cut_up_by_mig_is_no_whole_card_to_whoever_asks(mig: bool | None, told: str) -> None:
    facts = (
        ServerArgs(engine="sglang", server="s", origin="x"),
        Gpu(index=0, name="NVIDIA H100 80GB HBM3", mig=mig),
    )
    assert put_together(facts)[0].gpus == (told,)
    assert Case(facts).gpus == (told,)
    assert (gpu_cards.card(told) is None) is bool(mig)
    assert Case((Gpu(index=0, mig=True),)).gpus == ()


def test_the_kernel_is_judged_by_the_card_that_the_driver_names() -> None:
    """However the card became known: a workstation Blackwell defaults to triton for MLA, an H100 does not."""

    def outcome(*more: Fact) -> Outcome:
        target = config("target", kv_lora_rank=512, context_length=262144, server="sglang pid 41")
        told = lints.judge([process(41), arguments({"speculative_algorithm": "DFLASH"}), target, *more])
        return next(finding.outcome for finding in told if finding.id == "SA01")

    workstation, hopper = "NVIDIA RTX PRO 6000 Blackwell Server Edition", "NVIDIA H100 80GB HBM3"
    assert outcome() is Outcome.UNKNOWN
    for name, found in ((workstation, Outcome.FAIL), (hopper, Outcome.PASS)):
        assert outcome(Gpu(index=0, name=name)) is found
        assert outcome(GpuSample(index=0, name=name)) is found
        assert outcome(Discovered(what="gpu", value=name, origin="")) is found


def test_arguments_belong_to_the_server_that_they_name_or_whose_process_they_are_from() -> None:
    named = arguments({"tp_size": 1}, server="sglang pid 41")
    from_its_process = arguments({"tp_size": 2}, source=(Cite("cmdline-42", "pid 42"),))
    of_nobody = arguments({"tp_size": 3})
    facts: list[Fact] = [process(41), process(42), named, from_its_process, of_nobody]
    assert [served.number("tp_size") for served in put_together(facts)] == [1, 2]


def test_arguments_of_nobody_belong_to_the_only_server() -> None:
    assert put_together([process(41), arguments({"tp_size": 3})])[0].number("tp_size") == 3
    both = put_together([process(41), process(42), arguments({"tp_size": 3})])
    assert [served.number("tp_size") for served in both] == [None, None]
    assert put_together([process(41), arguments({"tp_size": 3}, server="sglang pid 7")])[0].given is None


def test_the_version_is_the_servers_own_word_before_its_packages() -> None:
    state = ServerState(engine="sglang", base="http://127.0.0.1:30000", version="0.5.12")
    resolved = arguments({}, resolved=True, version="0.5.23")

    def version(*facts: Fact) -> str:
        return put_together(facts)[0].version

    assert version(process(41, version="0.5.14"), state, resolved) == "0.5.23"
    assert version(process(41, version="0.5.14"), state) == "0.5.14"
    assert version(process(41), state) == "0.5.12"
    assert version(process(41)) == ""


def test_the_engine_of_a_process_is_its_own_or_that_of_its_arguments() -> None:
    told = arguments({}, engine="vllm")
    assert put_together([process(41), told])[0].engine == "sglang"
    assert put_together([process(0, engine=""), told])[0].engine == "vllm"
    assert put_together([process(0, engine="")])[0].engine == ""


def test_a_command_line_that_is_not_all_is_none() -> None:
    part = arguments({"tp_size": 2}, elsewhere="/etc/sglang.yaml")
    (alone,) = put_together([process(41), part])
    assert (alone.given, alone.elsewhere, alone.arguments_known) == (None, "/etc/sglang.yaml", False)
    (told,) = put_together([process(41), part, arguments({"tp_size": 4}, resolved=True)])
    assert (told.given, told.elsewhere, told.number("tp_size")) == (None, "", 4)
    (whole,) = put_together([process(41), arguments({"tp_size": 2})])
    assert (whole.elsewhere, whole.number("tp_size")) == ("", 2)


def test_what_was_collected_of_an_unknown_process_is_one() -> None:
    facts: list[Fact] = [
        process(41),
        process(0, engine="", argv=(), cwd="/first", environment=(("B", "1"), ("A", "0")), environment_seen=False,
                source=(Cite("one"),)),
        process(0, engine="vllm", cwd="/second", environment=(("B", "2"),), source=(Cite("two"),)),
    ]  # fmt: skip
    known, one = put_together(facts)
    assert known.process == facts[0]
    assert one.process == process(
        0, engine="vllm", argv=("python",), cwd="/first", environment=(("A", "0"), ("B", "2")), environment_seen=True,
        source=(Cite("one"), Cite("two")),
    )  # fmt: skip


def test_one_part_of_an_unknown_process_stays_as_it_is() -> None:
    alone = process(0, environment=(("B", "1"), ("A", "1")))
    assert put_together([alone])[0].process is alone


def test_servers_that_only_their_arguments_tell_of_stay_apart() -> None:
    facts: list[Fact] = [
        arguments({"tp_size": 1}, server="a"),
        arguments({"tp_size": 2}, server="b", engine="vllm"),
        arguments({"tp_size": 4}, server="b", engine="vllm", resolved=True, version="0.32.0"),
        config(server="b", rope=Rope(theta=1.0)),
    ]
    first, second = put_together(facts)
    assert (first.name, first.engine, first.version, first.number("tp_size")) == ("a", "sglang", "", 1)
    assert (second.name, second.engine, second.version, second.number("tp_size")) == (
        "b",
        "vllm",
        "0.32.0",
        4,
    )
    assert (first.drafter, second.drafter) == (None, facts[3])


@pytest.mark.parametrize(
    ("version", "newer"),
    [("0.5.23", False), ("0.5.24", True), ("0.6", True), ("0.5.22", False), ("main", False), ("", False)],
)
def test_a_release_after_the_last_one_read(version: str, newer: bool) -> None:
    assert newer_than_read(version) is newer
