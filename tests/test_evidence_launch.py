"""How servers were started, from logs, command lines, unit files, JSON and environments that somebody collected."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ddprobe.evidence import environment, launch
from ddprobe.evidence.document import of_bytes
from ddprobe.facts import ServerArgs, ServerProcess, ServerState
from ddprobe.model import Cite, Fact
from ddprobe.parsing import environment_text, launch_text, python_repr, shell_words

DATA = Path(__file__).parent / "data"


def facts(text: str) -> tuple[Fact, ...]:
    document = of_bytes("doc", text.encode())
    found = launch.recognise(document, document.sample())
    return found.facts if found else ()


def arguments(text: str) -> ServerArgs:
    (found,) = [fact for fact in facts(text) if isinstance(fact, ServerArgs)]
    return found


def process(text: str) -> ServerProcess | None:
    document = of_bytes("doc", text.encode())
    found = environment.recognise(document, document.sample())
    if found is None:
        return None
    (fact,) = found.facts
    assert isinstance(fact, ServerProcess)
    return fact


# --- Python's own notation --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{'a': 1, 'b': [None, True, -2.5e-3], 'c': (1,)}", {"a": 1, "b": [None, True, -0.0025], "c": [1]}),
        ("Args(mode=<Mode.NULL: 'null'>, n=<Level.TWO: 2>)", {"mode": "null", "n": 2}),
        ("Args(dtype=torch.bfloat16, path=PosixPath('/a b'))", {"dtype": "torch.bfloat16", "path": "/a b"}),
        ("Args(inner=Inner(a='x, y', b={}), after='it\\'s')", {"inner": {"a": "x, y", "b": {}}, "after": "it's"}),
        ("{'s': {1, 2}, 'f': frozenset(), 'x': <class 'int'>}", {"s": [1, 2], "f": [], "x": "class 'int'"}),
        ("{1: 'a', 'k': \"it's\"}", {"1": "a", "k": "it's"}),
    ],
)  # fmt: skip
def test_values_as_python_prints_them(text: str, value: Any) -> None:
    assert python_repr.read(text) == python_repr.Read(value, True)


def test_a_value_that_is_cut_off_gives_what_stands_before_the_cut() -> None:
    assert python_repr.read("Args(a=1, b='x', c='unfin") == python_repr.Read({"a": 1, "b": "x"}, False)
    assert python_repr.read("{'length': 2621") == python_repr.Read({}, False)


@pytest.mark.parametrize(
    "text", ["", "{", "(" * 4000, "{'a': " * 3000, "Args(=", "{]", "'", "<" * 5000, "a=b=c", "{:::}"]
)
def test_garbage_is_read_without_harm(text: str) -> None:
    python_repr.read(text)
    python_repr.fields(text)


# --- shell words ------------------------------------------------------------------------------------------


def test_words_of_a_line_with_quotes_braces_and_redirections() -> None:
    line = """A=1 python -m x --j '{"a": 1}' --k {"b": [1, "}"]} --l={"d": 1} "q \\"r" 2> err | tee log"""
    assert shell_words.commands(line) == (
        ("A=1", "python", "-m", "x", "--j", '{"a": 1}', "--k", '{"b": [1, "}"]}', '--l={"d": 1}', 'q "r'),
        ("err",),
        ("tee", "log"),
    )


def test_lines_are_joined_at_backslashes_and_before_indented_flags() -> None:
    lines = ["a -x \\", "  --b 1", "next", "command: serve --c", "  --d 2", "  plain"]
    assert list(shell_words.logical_lines(lines)) == [
        (1, "a -x  --b 1"),
        (3, "next"),
        (4, "command: serve --c --d 2"),
        (6, "  plain"),
    ]


# --- log lines --------------------------------------------------------------------------------------------


def test_sglang_says_its_arguments_in_two_notations() -> None:
    called = arguments(
        "[2026-09-01 09:00:00] server_args=ServerArgs(model_path='/m', speculative_algorithm='DFLASH', "
        "speculative_draft_model_path=None, tp_size=8)"
    )
    braces = arguments("[2026-11-30 15:47:10 TP0] server_args={'model_path': '/m', 'tp_size': 8}")
    assert (called.engine, called.origin, called.resolved) == ("sglang", "log (server_args)", True)
    assert dict(called.values) == {
        "model_path": "/m",
        "speculative_algorithm": "DFLASH",
        "speculative_draft_model_path": None,
        "tp_size": 8,
    }
    assert called.source == (Cite("doc", "line 1"),)
    assert dict(braces.values) == {"model_path": "/m", "tp_size": 8}


def test_vllm_says_what_was_given_and_what_it_made_of_it() -> None:
    found = facts(
        "(APIServer pid=1) INFO 09-01 09:00:00 [utils.py:233] non-default args: {'model_tag': '/m', 'max_model_len': 4096, "
        "'speculative_config': {'method': 'dflash', 'model': '/d', 'num_speculative_tokens': 7}}\n"
        "(EngineCore pid=2) INFO 09-01 09:00:05 [core.py:133] Initializing a V1 LLM engine (v0.32.0) with config: "
        "model='/m', speculative_config=SpeculativeConfig(method='dflash', model='/d', num_spec_tokens=7), "
        "dtype=torch.bfloat16, max_seq_len=4096, tensor_parallel_size=2\n"
    )
    given, resolved = found
    assert isinstance(given, ServerArgs)
    assert isinstance(resolved, ServerArgs)
    assert (given.resolved, resolved.resolved, resolved.version) == (False, True, "0.32.0")
    for args in (given, resolved):
        assert args.get("model_path") == "/m"
        assert args.get("context_length") == 4096
        assert args.get("speculative_algorithm") == "dflash"
        assert args.get("speculative_draft_model_path") == "/d"
        assert args.get("num_speculative_tokens") == 7
    assert resolved.get("tp_size") == 2


def test_vllm_without_a_drafter_says_so() -> None:
    args = arguments(
        "INFO [core.py:100] Initializing a V1 LLM engine with config: model='/opt/ml/model', speculative_config=None, "
        "max_seq_len=32768, tensor_parallel_size=1, quantization=None"
    )
    assert args.resolved
    assert ("speculative_config", None) in args.values
    assert args.get("speculative_algorithm") is None


def test_of_two_starts_in_one_log_the_last_counts() -> None:
    args = arguments("server_args=ServerArgs(model_path='/a')\nx\nserver_args=ServerArgs(model_path='/b')\n")
    assert args.get("model_path") == "/b"
    assert args.source == (Cite("doc", "line 3"),)


def test_a_line_that_was_cut_says_so() -> None:
    args = arguments("server_args=ServerArgs(model_path='/a', tp_size=2, host='127.0")
    assert args.origin == "log (server_args), cut off"
    assert dict(args.values) == {"model_path": "/a", "tp_size": 2}


@pytest.mark.parametrize(
    "line", ["server_args=None", "non-default args: none", "server_args={", "LLM engine ("]
)
def test_lines_that_say_no_arguments(line: str) -> None:
    assert launch_text.of_line(line) is None


# --- command lines ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "python -m sglang.launch_server --model-path /m --tp 8 --json-model-override-args '{\"a\": {\"b\": 1}}'",
        "$ SGL=1 nohup python3 -m sglang.launch_server \\\n  --model-path /m \\\n  --tp 8 \\\n"
        '  --json-model-override-args "{\\"a\\": {\\"b\\": 1}}" > log 2>&1 &',
        "root 41 0.0 99.1 1234 567 ? Sl 10:00 0:01 /opt/bin/python3 -m sglang.launch_server --model-path /m --tp=8 "
        '--json-model-override-args {"a": {"b": 1}}',
        "python\0-m\0sglang.launch_server\0--model-path\0/m\0--tp\x008\0--json-model-override-args\0{\"a\": {\"b\": 1}}\0",
        "[Service]\nExecStart=/opt/bin/python -m sglang.launch_server --model-path /m \\\n --tp 8 "
        "--json-model-override-args '{\"a\": {\"b\": 1}}'\n",
        "docker run --rm lmsysorg/sglang:v0.5.12 bash -c \"python -m sglang.launch_server --model-path /m --tp 8 "
        "--json-model-override-args '{\\\"a\\\": {\\\"b\\\": 1}}'\"",
        "command: >\n  python -m sglang.launch_server\n  --model-path /m\n  --tp 8\n"
        "  --json-model-override-args '{\"a\": {\"b\": 1}}'\n".replace("server\n", "server --host 0.0.0.0\n"),
    ],
)  # fmt: skip
def test_one_command_line_in_the_forms_that_people_paste(text: str) -> None:
    args = arguments(text)
    assert (args.engine, args.origin, args.resolved) == ("sglang", "command line", False)
    assert args.get("model_path") == "/m"
    assert args.get("tp_size") == 8
    assert args.get("json_model_override_args") == {"a": {"b": 1}}


def test_an_image_whose_entry_point_is_the_server() -> None:
    args = arguments(
        "docker run --gpus all -p 8000:8000 vllm/vllm-openai:v0.28.0 --model Qwen/Q "
        '--speculative-config \'{"method": "mtp", "num_speculative_tokens": 2}\''
    )
    assert (args.engine, args.get("model_path"), args.get("speculative_algorithm")) == (
        "vllm",
        "Qwen/Q",
        "mtp",
    )


def test_llama_server_takes_arguments_from_variables_in_front() -> None:
    found = facts("LLAMA_ARG_CTX_SIZE=4096 llama-server -m /a.gguf -md /d.gguf --spec-type dflash")
    args, held = found
    assert isinstance(args, ServerArgs)
    assert isinstance(held, ServerProcess)
    assert args.get("ctx_size") == 4096
    assert args.get("speculative_algorithm") == "dflash"
    assert held.environment == (("LLAMA_ARG_CTX_SIZE", "4096"),)
    assert not held.environment_seen


def test_variables_set_before_a_command_are_kept_by_name() -> None:
    found = facts(
        "#!/bin/sh\nexport SGLANG_SIMULATE_ACC_LEN=3\nexport MY_OWN=1\n"
        "HF_TOKEN=hf_x CUDA_VISIBLE_DEVICES=0 python -m sglang.launch_server --model-path /m\n"
    )
    (held,) = [fact for fact in found if isinstance(fact, ServerProcess)]
    assert held.environment == (("CUDA_VISIBLE_DEVICES", "0"), ("SGLANG_SIMULATE_ACC_LEN", "3"))
    assert (held.pid, held.name, held.engine) == (0, "", "sglang")


def test_a_file_with_further_arguments_is_said() -> None:
    args = arguments("sglang serve --model-path /m --config /etc/sglang.yaml")
    assert args.elsewhere == "/etc/sglang.yaml"


@pytest.mark.parametrize(
    "text",
    [
        "You could try vllm serve with --enforce-eager, or sglang serve --model-path <model> [options].",
        "# python -m sglang.launch_server --model-path /old",
        "'python -m sglang.launch_server' is still supported, but 'sglang serve' is the recommended entrypoint.",
        "grep -r sglang.launch_server --include=*.py",
        "pip install vllm --upgrade",
        "",
        "{}",
        "[1, 2",
    ],
)
def test_prose_about_servers_is_no_command_line(text: str) -> None:
    assert facts(text) == ()


# --- JSON -------------------------------------------------------------------------------------------------


def test_what_sglang_answers_of_itself() -> None:
    found = facts((DATA / "sglang-0.5.23" / "server_info.json").read_text(encoding="utf-8"))
    resolved, given, state = found
    assert isinstance(resolved, ServerArgs)
    assert isinstance(given, ServerArgs)
    assert isinstance(state, ServerState)
    assert (resolved.resolved, resolved.version) == (True, "0.5.23")
    assert resolved.get("speculative_algorithm") == "DFLASH"
    assert given.origin == "command line (launch_command)"
    assert given.get("speculative_draft_model_path") == "models/tiny-dflash"
    assert given.get("speculative_num_draft_tokens") is None
    assert state.draft_model == "models/tiny-dflash"


def test_what_llama_server_answers_of_itself() -> None:
    (state,) = facts((DATA / "llamacpp" / "b11434-props.json").read_text(encoding="utf-8"))
    assert isinstance(state, ServerState)
    assert state.engine == "llamacpp"
    assert state.context_length


def test_docker_inspect() -> None:
    found = facts(
        json.dumps(
            [
                {
                    "Path": "vllm",
                    "Args": ["serve", "/m", "--max-model-len", "4096"],
                    "Config": {"Env": ["PATH=/bin", "VLLM_USE_V1=1", "SECRET_THING=x"], "Cmd": None},
                }
            ]
        )
    )
    args, held = found
    assert isinstance(args, ServerArgs)
    assert isinstance(held, ServerProcess)
    assert (args.get("model_path"), args.get("context_length")) == ("/m", 4096)
    assert held.environment == (("PATH", "/bin"), ("VLLM_USE_V1", "1"))
    assert held.environment_seen


def test_a_drafter_configuration_is_no_server() -> None:
    assert facts('{"architectures": ["DFlashDraftModel"], "hidden_size": 64}') == ()


# --- environments -----------------------------------------------------------------------------------------


def test_a_whole_environment_in_its_forms() -> None:
    for text in (
        "PATH=/bin\nSGLANG_SIMULATE_ACC_LEN=3.5\nHF_TOKEN=hf_abc\nMY_OWN=1\n",
        "PATH=/bin\0SGLANG_SIMULATE_ACC_LEN=3.5\0HF_TOKEN=hf_abc\0MY_OWN=1\0",
        'declare -x PATH="/bin"\ndeclare -x SGLANG_SIMULATE_ACC_LEN="3.5"\ndeclare -x MY_OWN="1"\n',
        "export PATH=/bin\nexport SGLANG_SIMULATE_ACC_LEN='3.5'\n",
    ):
        held = process(text)
        assert held is not None
        assert held.environment == (("PATH", "/bin"), ("SGLANG_SIMULATE_ACC_LEN", "3.5"))
        assert (held.engine, held.environment_seen) == ("sglang", True)


def test_a_part_of_an_environment_says_nothing_of_the_rest() -> None:
    held = process("OPTION_ROLLING_BATCH=vllm\nOPTION_SPECULATIVE_DRAFT_MODEL=/opt/draft\n")
    assert held is not None
    assert not held.environment_seen
    assert held.engine == ""


def test_variables_of_a_unit_file() -> None:
    dump = environment_text.read('Environment="A=1" "B=2 3"\n# C=4\nEnvironment=D=5\n')
    assert dump.variables == (("A", "1"), ("B", "2 3"), ("D", "5"))
    assert not dump.whole


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a = b\nc = d\n",
        "MY_OWN=1\nOTHER=2\n",
        "the drafter\nSGLANG_X=1\nis bad\nat this\n",
        '{"CUDA_VISIBLE_DEVICES": "0"}',
        "x=1\ny=2\n",
    ],
)
def test_other_texts_are_no_environment(text: str) -> None:
    assert process(text) is None


FORGED = "SGLANG_SIMULATE_ACC_LEN"
STARTS = "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --speculative-algorithm EAGLE3"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (f"export {FORGED}=4\n{STARTS}", "4"),
        (f"$ export {FORGED}=4\n$ {STARTS}", "4"),
        (f"root@node:/# export {FORGED}=4\nroot@node:/# {STARTS}", "4"),
        (f"[root@gpu1 sglang]# export {FORGED}=4\n[root@gpu1 sglang]# {STARTS}", "4"),
        (f"(venv) me@gpu1:~/x$ export {FORGED}=4\n(venv) me@gpu1:~/x$ {STARTS}", "4"),
        (f"me@mac dir % export {FORGED}=4\nme@mac dir % {STARTS}", "4"),
        (f"export A=1 {FORGED}='4' B=2\n{STARTS}", "4"),
        (f"export {FORGED}=4 && {STARTS}", "4"),
        (f"export {FORGED}=4; {STARTS}", "4"),
        (f"set -gx {FORGED} 4\n{STARTS}", "4"),
        (f"setenv {FORGED} 4\n{STARTS}", "4"),
        (f'declare -x {FORGED}="4"\n{STARTS}', "4"),
        (f"export {FORGED}=4\nexport {FORGED}=3\n{STARTS}", "3"),
        (f"export {FORGED}=4\nunset {FORGED}\n{STARTS}", None),
        (f"# export {FORGED}=4\n{STARTS}", None),
        (f"echo ${FORGED}\n4\n{STARTS}", None),
        (f"{STARTS}\nexport {FORGED}=4\n", None),
        (f"set -x\n{STARTS}", None),
    ],
)
def test_variables_that_a_shell_was_given_before_are_those_of_the_server(
    text: str, value: str | None
) -> None:
    held = [dict(fact.environment) for fact in facts(text) if isinstance(fact, ServerProcess)]
    assert [variables.get(FORGED) for variables in held] == ([value] if value else [])


@pytest.mark.parametrize(
    "text",
    [
        "$ env | grep SGLANG\nSGLANG_ENABLE_JIT_DEEPGEMM=0\n",
        "me@gpu1:~$ cat /proc/123/environ | tr '\\0' '\\n'\nSGLANG_ENABLE_JIT_DEEPGEMM=0\n",
        "$ export SGLANG_ENABLE_JIT_DEEPGEMM=0\n",
    ],
)
def test_what_printed_an_environment_is_no_part_of_it(text: str) -> None:
    found = environment.recognise(of_bytes("a", text.encode()), text)
    assert found is not None
    (told,) = found.facts
    assert isinstance(told, ServerProcess)
    assert told.environment == (("SGLANG_ENABLE_JIT_DEEPGEMM", "0"),)
