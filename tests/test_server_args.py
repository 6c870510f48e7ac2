"""Command lines of servers, read into names and values."""

from __future__ import annotations

from typing import Any

import pytest

from ddprobe import engines, lints
from ddprobe.engines import TABLE
from ddprobe.facts import ServerArgs, ServerProcess
from ddprobe.model import Outcome


def given(engine: str, *words: str, environment: tuple[tuple[str, str], ...] = ()) -> dict[str, Any]:
    start = {
        "sglang": ("python", "-m", "sglang.launch_server"),
        "vllm": ("vllm", "serve"),
        "llamacpp": ("llama-server",),
    }
    return TABLE[engine].given((*start[engine], *words), environment)


@pytest.mark.parametrize(
    ("words", "values"),
    [
        (("--speculative-num-draft-tokens", "8"), {"speculative_num_draft_tokens": 8}),
        (("--tp=8",), {"tp_size": 8}),
        (("--tp-size", "8"), {"tp_size": 8}),
        (("--tensor-parallel-size", "8"), {"tp_size": 8}),
        (("--model", "a/b"), {"model_path": "a/b"}),
        (("--model-path", "12"), {"model_path": "12"}),
        (("--speculative-draft-model", "d"), {"speculative_draft_model_path": "d"}),
        (
            ("--trust-remote-code", "--mem-fraction-static", "0.85"),
            {"trust_remote_code": True, "mem_fraction_static": 0.85},
        ),
        (("--enable-hicache",), {"enable_hierarchical_cache": True}),
        # Cut short, as documentation and people do: what tells a flag from all others is enough for argparse.
        (("--speculative-algo", "EAGLE"), {"speculative_algorithm": "EAGLE"}),
        (("--speculative-algo=NEXTN",), {"speculative_algorithm": "NEXTN"}),
        (("--speculative-draft", "d"), {"speculative_draft_model_path": "d"}),
        (("--speculative-eagle", "1"), {"speculative_eagle_topk": 1}),
        (("--speculative-num-draft", "8"), {"speculative_num_draft_tokens": 8}),
        (("--mem-fraction", "0.8"), {"mem_fraction_static": 0.8}),
        (("--context-len", "4096"), {"context_length": 4096}),
        (("--tensor-parallel", "8"), {"tp_size": 8}),
        # What tells several apart tells nothing, and what is whole is itself.
        (("--speculative-num", "8"), {"speculative_num": 8}),
        (("--spec", "8"), {"spec": 8}),
        (("--con", "8"), {"con": 8}),
        (("--cuda-graph-max-bs", "8"), {"cuda_graph_max_bs": 8}),
        (("--cuda-graph-bs", "1", "2", "4", "--port", "1"), {"cuda_graph_bs": (1, 2, 4), "port": 1}),
        (
            ("--json-model-override-args", '{"a": {"b": [1, 2]}}'),
            {"json_model_override_args": {"a": {"b": [1, 2]}}},
        ),
        (("--json-model-override-args", '{"a": tr'), {"json_model_override_args": '{"a": tr'}),
        (("--port", "1", "--port", "2"), {"port": 2}),
        (("--schedule-conservativeness", "-1"), {"schedule_conservativeness": -1}),
        (("--a-flag-of-next-year", "x y"), {"a_flag_of_next_year": "x y"}),
        (("--api-key", "[redacted]"), {"api_key": "[redacted]"}),
        (("--speculative-dflash-draft-window-size", "4096"), {"speculative_dflash_draft_window_size": 4096}),
        (("--speculative-accept-threshold-acc", "1e-3"), {"speculative_accept_threshold_acc": 0.001}),
        (("--tokenizer-path",), {"tokenizer_path": True}),
        ((), {}),
    ],
)
def test_sglang(words: tuple[str, ...], values: dict[str, Any]) -> None:
    assert given("sglang", *words) == values


def test_vllm_keeps_its_own_names_and_adds_the_shared_ones() -> None:
    config = {"method": "draft_model", "model": "d", "num_speculative_tokens": 5}
    assert given(
        "vllm", "m", "--enable-prefix-caching", "--no-enable-chunked-prefill", "-tp", "2", "--max-model-len", "32768",
        "--speculative-config", '{"method": "draft_model", "model": "d", "num_speculative_tokens": 5}',
    ) == {
        "model": "m",
        "enable_prefix_caching": True,
        "enable_chunked_prefill": False,
        "tensor_parallel_size": 2,
        "max_model_len": 32768,
        "speculative_config": config,
        "model_path": "m",
        "context_length": 32768,
        "tp_size": 2,
        "speculative_algorithm": "draft_model",
        "speculative_draft_model_path": "d",
        "num_speculative_tokens": 5,
    }  # fmt: skip


def test_vllm_finds_its_model_after_a_switch() -> None:
    assert given("vllm", "--enforce-eager", "m")["model_path"] == "m"


def test_vllm_dotted_flags_are_fields_of_one_configuration() -> None:
    values = given(
        "vllm",
        "--model=m",
        "--speculative-config.method",
        "ngram",
        "--speculative-config.num_speculative_tokens",
        "4",
    )
    assert values["speculative_config"] == {"method": "ngram", "num_speculative_tokens": 4}
    assert values["speculative_algorithm"] == "ngram"


def test_llamacpp_short_flags_and_the_share_of_a_slot() -> None:
    assert given("llamacpp", "-m", "a.gguf", "-md", "b.gguf", "-c", "1024", "-np", "2", "--spec-type", "draft-simple", "-ngl", "-1", "--metrics", "--spec-draft-n-max", "8", "-fa", "on") == {
        "model_path": "a.gguf",
        "speculative_draft_model_path": "b.gguf",
        "ctx_size": 1024,
        "parallel": 2,
        "speculative_algorithm": "draft-simple",
        "n_gpu_layers": -1,
        "metrics": True,
        "num_speculative_tokens": 8,
        "flash_attn": "on",
        "context_length": 512,
    }  # fmt: skip


def test_llamacpp_takes_flags_from_its_environment_and_the_command_line_wins() -> None:
    environment = (
        ("LLAMA_ARG_CTX_SIZE", "4096"),
        ("LLAMA_ARG_PORT", "9000"),
        ("LLAMA_ARG_MODEL", "e.gguf"),
        ("PATH", "/bin"),
    )
    assert given("llamacpp", "--port", "9001", environment=environment) == {
        "context_length": 4096,
        "ctx_size": 4096,
        "model_path": "e.gguf",
        "port": 9001,
    }


@pytest.mark.parametrize(
    ("words", "limit"),
    [
        (("-c", "8192", "-np", "2"), 4096),
        (("-c", "8192", "-np", "2", "-kvu"), 8192),
        (("-c", "8192", "-np", "2", "--kv-unified"), 8192),
        (("-c", "8192", "-np", "2", "--no-kv-unified"), 4096),
        (("-c", "8192"), 8192),
        (("-c", "8192", "-np", "-1"), 8192),
        (("-c", "0", "-np", "2"), None),
        (("-np", "2"), None),
    ],
)
def test_a_llamacpp_request_gets_its_slot_s_share_or_the_unified_cache(
    words: tuple[str, ...], limit: int | None
) -> None:
    assert given("llamacpp", *words).get("context_length") == limit


@pytest.mark.parametrize(
    ("argv", "model"),
    [
        (("/opt/venv/bin/python", "/opt/venv/bin/sglang", "serve", "org/m", "--port", "1"), "org/m"),
        (("sglang", "serve", "/models/m"), "/models/m"),
        (("sglang", "serve", "--model-path", "/models/m"), "/models/m"),
        (("sglang", "serve", "--port", "1"), None),
    ],
)
def test_sglang_serve_takes_its_model_without_a_flag(argv: tuple[str, ...], model: str | None) -> None:
    assert engines.TABLE["sglang"].given(argv).get("model_path") == model


@pytest.mark.parametrize(
    ("engine", "argv", "elsewhere"),
    [
        ("sglang", ("python", "-m", "sglang.launch_server", "--config", "/etc/s.yaml"), "/etc/s.yaml"),
        ("vllm", ("vllm", "serve", "--config=v.yaml"), "v.yaml"),
        ("vllm", ("vllm", "serve", "org/m"), ""),
        ("llamacpp", ("llama-server", "-m", "a.gguf", "--config", "x"), ""),
    ],
)
def test_a_file_of_further_arguments_is_named(engine: str, argv: tuple[str, ...], elsewhere: str) -> None:
    server = ServerProcess(engine=engine, pid=1, argv=argv)
    assert engines.command_line(server).elsewhere == elsewhere


@pytest.mark.parametrize(
    ("engine", "name", "flag"),
    [
        ("sglang", "context_length", "--context-length"),
        ("vllm", "context_length", "--max-model-len"),
        ("vllm", "enforce_eager", "--enforce-eager"),
        ("llamacpp", "speculative_algorithm", "--spec-type"),
    ],
)
def test_an_argument_is_shown_as_its_engine_spells_it(engine: str, name: str, flag: str) -> None:
    assert engines.TABLE[engine].flag(name) == flag


@pytest.mark.parametrize(
    ("engine", "argv"),
    [
        ("sglang", ("python", "-m", "sglang.launch_server", "--port", "1")),
        ("sglang", ("/opt/venv/bin/python3.12", "-u", "-X", "faulthandler", "-m", "sglang.launch_server")),
        ("sglang", ("python3", "/srv/sglang/python/sglang/launch_server.py")),
        ("sglang", ("/opt/venv/bin/python", "/opt/venv/bin/sglang", "serve", "--model-path", "m")),
        ("vllm", ("/usr/bin/python3", "/usr/local/bin/vllm", "serve", "m")),
        ("vllm", ("python", "-m", "vllm.entrypoints.openai.api_server", "--model", "m")),
        ("llamacpp", ("/opt/llama/llama-server", "-m", "a.gguf")),
        (None, ("grep", "-r", "sglang.launch_server", "/srv")),
        (None, ("vim", "/srv/sglang/launch_server.py")),
        (None, ("bash", "-c", "python -m sglang.launch_server --port 1")),
        (None, ("ssh", "gpu1", "python", "-m", "sglang.launch_server")),
        (None, ("tmux", "new", "-s", "sglang", "python -m sglang.launch_server")),
        (None, ("docker", "run", "sglang", "python3", "-m", "sglang.launch_server")),
        (None, ("tini", "--", "python3", "-m", "sglang.launch_server")),
        (None, ("python", "-c", "import sglang.launch_server")),
        (None, ("python", "-m", "sglang.bench_serving", "--port", "1")),
        (None, ("python", "-m", "sglang_router.launch_router")),
        (None, ("python", "/opt/venv/bin/sglang", "version")),
        (None, ("python", "tool.py", "-m", "sglang.launch_server")),
        (None, ("tail", "-f", "llama-server.log")),
        (None, ("python",)),
        (None, ()),
    ],
)  # fmt: skip
def test_a_server_is_known_by_its_real_argv(engine: str | None, argv: tuple[str, ...]) -> None:
    found = engines.recognise(argv)
    assert (found.name if found else None) == engine


@pytest.mark.parametrize("engine", TABLE.values(), ids=lambda engine: engine.name)
def test_a_needle_does_not_match_itself(engine: engines.Engine) -> None:
    """Else the search for servers would find its own grep."""
    import re

    for needle in filter(None, (engine.needle, engine.rank_needle)):
        assert not re.search(needle.replace("[:]", ":"), needle)


@pytest.mark.parametrize(
    ("engine", "word"),
    [
        ("sglang", "sglang.launch_server"),
        ("sglang", "/x/sglang/launch_server.py"),
        ("sglang", "/opt/venv/bin/sglang"),
        ("vllm", "/usr/local/bin/vllm"),
        ("vllm", "vllm.entrypoints.openai.api_server"),
        ("llamacpp", "./llama-server"),
    ],
)
def test_a_needle_finds_its_servers(engine: str, word: str) -> None:
    import re

    assert re.search(TABLE[engine].needle, word)


@pytest.mark.parametrize(
    ("words", "removed"),
    [
        (("-md", "d.gguf", "--draft-max", "16", "--draft-min=1"), "--draft-max, --draft-min"),
        (("-md", "d.gguf", "--draft", "16"), "--draft"),
        (("-md", "d.gguf", "--spec-draft-n-max", "16", "--draft-p-min", "0.5"), None),
        (("-md", "d.gguf"), None),
    ],
)
def test_flags_that_newer_llama_servers_refuse_are_named(words: tuple[str, ...], removed: str | None) -> None:
    assert given("llamacpp", "-m", "a.gguf", *words).get("removed_flags") == removed
    outcomes = {
        finding.outcome
        for finding in lints.judge(
            [
                ServerArgs(
                    engine="llamacpp", origin="x", values=tuple(given("llamacpp", "-m", "a", *words).items())
                )
            ]
        )
        if finding.id == "SA17"
    }
    assert outcomes == {Outcome.PASS if removed else Outcome.FAIL}
