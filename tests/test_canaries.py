"""Canaries: many shapes of secrets in many surroundings, through a real run; and much that must come through untouched.

A core stands in every word of every secret, so that a secret masked by half is found as well.
"""

from __future__ import annotations

import base64
import io
import json
import logging
import pprint
import shlex
import threading
import urllib.parse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from ddprobe import runner, store
from ddprobe.blocks import Block, Paragraph
from ddprobe.facts import Discovered
from ddprobe.model import (
    Cite,
    Command,
    CommandResult,
    Connection,
    Conversation,
    Evidence,
    Fact,
    Finding,
    Gap,
    Host,
    HttpRequest,
    HttpResult,
    Outcome,
    Probe,
    Question,
    Result,
    Step,
)
from ddprobe.redact import Redactor
from ddprobe.render import jsonview, markdown, terminal
from ddprobe.sessions.base import Session

CORE = "Zk7"

SECRETS = {
    "word": "horseZk7battery", "spaces": "two Zk7words aZk7b", "double": 'aZk7"bZk7', "single": "aZk7'bZk7",
    "quotes": "aZk7'\"bZk7", "backslash": "aZk7\\bZk7", "ends in backslash": "aZk7bZk7\\", "dollar": "aZk7$HOME`xZk7`",
    "hash": "aZk7#bZk7", "comma": "aZk7,bZk7", "semicolon": "aZk7;bZk7", "ampersand": "aZk7&bZk7", "equals": "aZk7=bZk7==",
    "colon": "aZk7:bZk7", "at": "aZk7@bZk7", "slash": "/aZk7/bZk7", "percent": "aZk7%20bZk7", "brace": "{aZk7}bZk7",
    "bracket": "[aZk7]bZk7", "paren": "(aZk7)bZk7", "angle": "<aZk7>bZk7", "umlaut": "äZk7ö€Zk7", "emoji": "Zk7😀Zk7",
    "long": "Zk7aB" * 300, "dashes": "aZk7--bZk7", "star": "*Zk7*", "base64": "aZk7+bZk7/Zk7=", "tab": "aZk7\tbZk7",
    "pipe": "aZk7|bZk7", "bang": "!Zk7!", "question": "?Zk7?", "tilde": "~Zk7", "caret": "^Zk7^", "dot": "aZk7.bZk7",
    "number": "90Zk7", "true": "trueZk7", "none": "NoneZk7", "option": "aZk7 --bZk7 c", "pair": "aZk7 port=Zk7",
}  # fmt: skip


def dumps(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def url(secret: str) -> str:
    return urllib.parse.quote(secret, safe="")


def in_double(secret: str) -> str:
    for character in '\\"$`':
        secret = secret.replace(character, "\\" + character)
    return f'"{secret}"'


def basic(secret: str) -> str:
    return base64.b64encode(f"u:{secret}".encode()).decode()


Surround = Callable[[str], str]
SURROUNDINGS: dict[str, Surround] = {
    "json": lambda s: json.dumps({"a": 1, "api_key": s, "b": 2}),
    "json, not ascii": lambda s: dumps({"a": 1, "admin_api_key": s, "b": 2}),
    "json, indented": lambda s: json.dumps({"a": {"ssl_keyfile_password": s, "b": [1]}}, indent=2),
    "json, CRLF": lambda s: json.dumps({"x": 1, "api_key": s, "y": 2}, indent=1).replace("\n", "\r\n"),
    "json in json": lambda s: json.dumps({"m": json.dumps({"api_key": s, "b": 2})}),
    "json in json in json": lambda s: json.dumps({"m": json.dumps({"n": json.dumps({"api_key": s, "b": 2})})}),
    "json list": lambda s: json.dumps({"api_keys": [s, s + "x"], "b": 2}),
    "json nested": lambda s: json.dumps({"credentials": {"u": [s, {"x": s}]}, "b": 2}),
    "json name and value": lambda s: json.dumps({"env": [{"name": "OPENAI_API_KEY", "value": s}]}),
    "json argv": lambda s: json.dumps(["python", "--api-key", s, "--port", "1"]),
    "json argv, equals": lambda s: json.dumps(["python", "--api-key=" + s, "--port", "1"]),
    "json environment": lambda s: json.dumps({"Env": ["HF_TOKEN=" + s, "A=1"]}),
    "json command": lambda s: json.dumps({"launch_command": f"python -m x --api-key {shlex.quote(s)} --port 1"}),
    "json, escaped slashes": lambda s: json.dumps({"api_key": s}).replace("/", "\\/"),
    "json, log with newlines": lambda s: json.dumps({"log": f"a\napi_key={json.dumps(s)}\nb"}),
    "python call": lambda s: f"ServerArgs(model_path='m', api_key={s!r}, port=1)",
    "python call, lines": lambda s: f"ServerArgs(\n    model='m',\n    api_key={s!r},\n    port=1,\n)",
    "python call, double": lambda s: f"ServerArgs(model_path='m', api_key={dumps(s)}, port=1)",
    "python dict": lambda s: repr({"a": 1, "admin_api_key": s, "b": 2}),
    "python pretty": lambda s: pprint.pformat({"model": "m" * 40, "api_key": s, "other": "o" * 60}),
    "python bytes": lambda s: f"x(api_key={s.encode()!r})",
    "python list": lambda s: repr({"api_key": [s, s], "b": 2}),
    "python tuple": lambda s: f"Namespace(api_key=({s!r}, {s!r}), port=1)",
    "python in json": lambda s: json.dumps({"msg": f"server_args=ServerArgs(api_key={s!r}, port=1)"}),
    "json in python": lambda s: repr(json.dumps({"api_key": s})),
    "python log": lambda s: f"[2026-01-01] server_args=ServerArgs(m='m', api_key={s!r}, admin_api_key={s!r}, port=1)\nx",
    "traceback": lambda s: f"Traceback:\n    connect(password={s!r})\nValueError: bad api_key={s!r}\n",
    "yaml": lambda s: yaml.safe_dump({"a": 1, "password": s, "z": 2}, allow_unicode=True),
    "yaml, nested": lambda s: yaml.safe_dump({"a": {"b": [{"api_key": s}]}}, allow_unicode=True),
    "toml": lambda s: f"[x]\napi_key = {dumps(s)}\nport = 1\n",
    "ini": lambda s: f"[x]\npassword = {s}\nport = 1\n",
    "unit file": lambda s: f'Environment={in_double("HF_TOKEN=" + s)} "B=1"\n',
    "dockerfile": lambda s: f"ENV HF_TOKEN {shlex.quote(s)}\nRUN x\n",
    "shell": lambda s: f"python -m sglang --api-key {shlex.quote(s)} --port 1",
    "shell, equals": lambda s: f"python -m sglang --api-key={shlex.quote(s)} --port 1",
    "shell, double": lambda s: f"python --api-key {in_double(s)} --port 1",
    "shell, variable": lambda s: f"HF_TOKEN={shlex.quote(s)} python -m x --port 1",
    "shell, export": lambda s: f"export HF_TOKEN={shlex.quote(s)}\nx",
    "shell, declare": lambda s: f"declare -x HF_TOKEN={in_double(s)}\n",
    "docker": lambda s: f"docker run -e HF_TOKEN={shlex.quote(s)} -p 1:1 img",
    "docker, quoted": lambda s: f"docker run -e {shlex.quote('HF_TOKEN=' + s)} -p 1:1 img",
    "short options": lambda s: f"--hf-token {shlex.quote(s)}\n-hft {shlex.quote(s)}\n",
    "argv": lambda s: f"python\0-m\0x\0--api-key\0{s}\0--port\x001\0",
    "argv, equals": lambda s: f"python\0--api-key={s}\0--port\x001\0",
    "argv, several": lambda s: f"python\0--api-key\0first\0{s}\0--port\x001\0",
    "argv of a shell": lambda s: f"bash\0-c\0exec python --api-key {shlex.quote(s)} --port 1\0",
    "environ": lambda s: f"A=1\0HF_TOKEN={s}\0B=2\0",
    "env": lambda s: f"A=1\nOPENAI_API_KEY={s}\nB=2\n",
    "env, CRLF": lambda s: f"A=1\r\nOPENAI_API_KEY={s}\r\nB=2\r\n",
    "grep of a script": lambda s: f"/x/run.sh:12:python --api-key {shlex.quote(s)} --port 1\n",
    "grep of json": lambda s: f'/x/c.json:12:  "api_key": {json.dumps(s)},\n',
    "url, user": lambda s: f"see http://me:{url(s)}@host:1/x ok",
    "url, parameter": lambda s: f"GET /x?api_key={url(s)}&n=1 HTTP/1.1",
    "url, last parameter": lambda s: f"GET /x?n=1&access_token={urllib.parse.quote_plus(s)} HTTP/1.1",
    "url in url": lambda s: "to=" + url(f"http://h/?api_key={url(s)}&n=1"),
    "url, escaped by Go": lambda s: f'"/x?n=1\\u0026api_key={url(s)}"',
    "header, bearer": lambda s: f"> GET / HTTP/1.1\r\n> Authorization: Bearer {s}\r\n> Host: h\r\n",
    "header, basic": lambda s: f"Authorization: Basic {basic(s)}\r\nX: 1",
    "header, key": lambda s: f"X-Api-Key: {s}\nHost: h",
    "header, python": lambda s: repr({"Authorization": "Bearer " + s, "x": 1}),
    "header, pairs": lambda s: json.dumps([["authorization", "Bearer " + s], ["x", "y"]]),
    "header, bytes": lambda s: repr([(b"authorization", ("Bearer " + s).encode()), (b"x", b"y")]),
    "header, curl": lambda s: f"curl -H {shlex.quote('Authorization: Bearer ' + s)} http://h",
    "cookie": lambda s: f"Cookie: a=1; sid={s}\r\nX: 1",
    "log": lambda s: f"INFO api_key: {s}\nnext",
    "log, pairs": lambda s: f'level=info msg="hi" api_key={dumps(s)} port=1\n',
    "log, colours": lambda s: f"\x1b[32mapi_key\x1b[0m=\x1b[31m{s}\x1b[0m\n",
    "log, escaped colours": lambda s: json.dumps({"l": f"\x1b[1;36mapi_key\x1b[0m=\x1b[35m{url(s)}\x1b[0m"}),
    "json, colours": lambda s: f'\x1b[34;1m"api_key"\x1b[0m: \x1b[32m{json.dumps(s)}\x1b[0m',
    "not UTF-8": lambda s: '\udcff\udc80{"api_key": ' + json.dumps(s) + "}\udcc3\n",
}  # fmt: skip

# Where it cannot be told where the secret ends: `--api-key=a --b c` in one string may be a secret, or two options.
AMBIGUOUS = {
    ("json argv, equals", "option"),
    ("log", "quotes"),
    ("log", "pair"),
}


def raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def leaks(data: bytes) -> bool:
    return CORE.encode() in data or CORE.encode().hex().encode() in data.lower()


def test_there_are_enough_of_them() -> None:
    assert len(SURROUNDINGS) * len(SECRETS) - len(AMBIGUOUS) > 2500


@pytest.mark.parametrize("around", SURROUNDINGS)
def test_no_secret_is_left_in_any_surrounding(around: str) -> None:
    for kind, secret in SECRETS.items():
        masked = Redactor().data(raw(SURROUNDINGS[around](secret)))
        assert leaks(masked) is ((around, kind) in AMBIGUOUS), (kind, masked)


@pytest.mark.parametrize("around", SURROUNDINGS)
def test_no_cut_at_the_end_uncovers_a_beginning(around: str) -> None:
    for kind in ("word", "spaces", "double", "backslash", "umlaut"):
        data = raw(SURROUNDINGS[around](SECRETS[kind]))
        for end in range(1, len(data)):
            masked = Redactor().data(data[:end], cut=True)
            assert not leaks(masked), (kind, data[:end], masked)


# --- through a run -----------------------------------------------------------------------------------------

LEARNED = [
    f"{CORE}correct-horse-42", f"käse {CORE}\"7\"/x+y'z9", f"/{CORE}aB3dE5fG7hJ9kL1m+Q==", f"sk-{CORE}aB3dE5fG7hJ9kL1m",
]  # fmt: skip


def spellings(secret: str) -> list[bytes]:
    data = secret.encode()
    return [
        data, json.dumps(secret).encode(), dumps(secret).encode(), json.dumps(json.dumps(secret)).encode(),
        repr(secret).encode(), repr(data).encode(), url(secret).encode(), urllib.parse.quote_plus(secret).encode(),
        url(url(secret)).encode(), shlex.quote(secret).encode(), data.hex().encode(), base64.b64encode(data),
        base64.urlsafe_b64encode(b"user:" + data), base64.b64encode(b"u:" + data + b"!").rstrip(b"="),
        json.dumps(secret).replace("/", "\\/").encode(),
    ]  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Canaries(Probe):
    """Asks for every surrounding, and repeats what it got wherever a probe can."""

    pattern: str = LEARNED[3]

    @classmethod
    def name(cls) -> str:
        return "host.canaries"

    def collect(self, host: Host) -> Conversation:  # the answers come from `Aviary`
        for number in range(len(ANSWERS)):
            yield Command(key=f"file-{number}", argv=("cat", f"/srv/{number}"), exits=(0, 1))
            yield HttpRequest(
                key=f"http-{number}", method="GET", path="/server_info", base="http://127.0.0.1:1"
            )
        yield Command(key="grep", argv=("grep", "-e", self.pattern, "/srv/x"))
        raise ValueError(f"{host.name} has {LEARNED[0]} and {LEARNED[3]}")

    def interpret(self, evidence: Evidence) -> Iterator[Fact | Finding | Gap]:
        for result in evidence.results:
            said = result.stdout if isinstance(result, CommandResult) else result.body
            text = said.decode("utf-8", "replace")
            yield Discovered(what=result.key, value=text, origin="canary", source=(Cite(result.key),))
            yield Finding(id="canary", outcome=Outcome.WARN, subject=result.key, summary=text)
            yield Gap(result.key, result.trouble)
        yield Finding(id="own", outcome=Outcome.INFO, subject=self.pattern, summary=f"has {LEARNED[0]}")

    def show(self, facts: Sequence[Fact]) -> Iterator[Block]:
        for fact in facts:
            if isinstance(fact, Discovered):
                yield Paragraph(f"{fact.what}: {fact.value}")


ANSWERS = [
    raw(around(SECRETS[kind]))
    for name, around in SURROUNDINGS.items()
    for kind in ("word", "spaces", "double", "umlaut")
    if (name, kind) not in AMBIGUOUS
] + [
    raw(f"{first} ") + spelling + b" after"
    for secret in LEARNED
    for first in (json.dumps({"api_key": secret}),)
    for spelling in spellings(secret)
]


class Aviary(Session):
    """A host whose every answer holds a secret, in stdout, stderr, headers, bodies and failures."""

    @property
    def connection(self) -> Connection:
        said = f"the login shell prints: 'export HF_TOKEN={SECRETS['word']}'"
        return Connection(transport="aviary", notes=(said,))

    def _carry(self, questions: tuple[Question, ...]) -> Sequence[Result]:
        return [self._answer(question) for question in questions]

    def _answer(self, question: Question) -> Result:
        data = ANSWERS[int(question.key.partition("-")[2] or 0)]
        if isinstance(question, Command):
            return CommandResult(question=question, exit_code=2, stdout=data, stderr=data)
        word = SECRETS["word"]
        headers = (("set-cookie", f"sid={word}"), ("x-api-key", word), ("server", "x"))
        return HttpResult(question=question, status=500, headers=headers, body=data)


def test_no_canary_gets_out_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ddprobe import probes

    monkeypatch.setattr(probes, "load", lambda _: Canaries)
    log = io.StringIO()
    handler = logging.StreamHandler(log)
    root, ours = logging.getLogger(), logging.getLogger("ddprobe")
    monkeypatch.setattr(root, "handlers", [handler])
    monkeypatch.setattr(ours, "level", ours.level)
    ours.setLevel(logging.DEBUG)  # which forgets, too, what was off in an earlier test

    def opener(host: Host, redactor: Redactor, cancelled: threading.Event) -> Session:
        if host.name == "dead":
            raise ValueError(f"cannot read api_key={SECRETS['single']!r}")
        return Aviary(host, redactor, cancelled)

    writer = store.ReportWriter.create(tmp_path, "canaries")
    hosts = [Host(name="a"), Host(name="dead")]
    report = runner.run("canaries", hosts, [Step("look", Canaries())], writer, opener)
    assert len(report.steps[0].facts) == 2 * len(ANSWERS) + 1

    seen: dict[str, bytes] = {p.name: p.read_bytes() for p in writer.folder.rglob("*") if p.is_file()}
    assert len(seen) > 400
    seen["--json"] = jsonview.text(report).encode("utf-8", "replace")
    seen["markdown"] = markdown.text(report).encode("utf-8", "replace")
    screen = io.StringIO()
    terminal.show(report, folder=writer.folder, verbose=2, colour=False, file=screen)
    seen["screen"] = screen.getvalue().encode("utf-8", "replace")
    seen["log"] = log.getvalue().encode()
    seen["repr"] = repr(report).encode("utf-8", "replace")
    assert b"Traceback" in seen["log"]
    words = [spelling for secret in LEARNED for spelling in spellings(secret)]
    for name, data in seen.items():
        assert not leaks(data), (name, data[max(0, data.find(CORE.encode()) - 80) :][:160])
        assert not [word for word in words if word in data], name
    assert store.load(writer.folder) == report


# --- what must survive -------------------------------------------------------------------------------------

SURVIVORS = r"""
max_tokens min_tokens max_new_tokens=128 n_tokens: 12 num_tokens = 5 tokens=1024 token: 7 tokens: [1, 2, 3]
{"max_tokens": 128, "max_completion_tokens": 64, "prompt_tokens": 1024, "completion_tokens": 7, "total_tokens": 1031}
{"usage": {"prompt_tokens_details": {"cached_tokens": 512}, "reasoning_tokens": 0}}
vllm:generation_tokens_total 7.0
vllm:prompt_tokens_total{engine="0",model_name="Qwen/Qwen3-8B"} 1024.0
vllm:time_per_output_token_seconds_sum{model_name="m"} 1.25
vllm:request_params_max_tokens_bucket{le="1.0",model_name="m"} 0.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{position="0"} 12.0
sglang:num_used_tokens{model_name="m",tp_rank="0"} 4096.0
sglang:token_usage 0.12
sglang:max_total_num_tokens 524288.0
sglang:gen_throughput{engine_type="unified"} 118.0
sglang:spec_accept_length 3.40
Decode batch, #running-req: 1, #full token: 1024, full token usage: 0.12, accept len: 3.40, gen throughput (token/s): 118.0
Prefill batch, #new-seq: 1, #new-token: 512, #cached-token: 0, token usage: 0.00, #running-req: 0
Memory pool end. avail mem=12.34 GB, max_total_num_tokens=524288, chunked_prefill_size=8192
{"tokenizer_path": "/models/Kimi-K2.6", "tokenizer_mode": "auto", "tokenizer_worker_num": 1, "skip_tokenizer_init": false}
{"tokenizer_class": "PreTrainedTokenizerFast", "tokenizer_file": "tokenizer.json", "tokenizer_config": {}}
{"mask_token": "<|mask|>", "mask_token_id": 151669, "dflash_config": {"mask_token_id": 163838, "block_size": 8}}
{"bos_token": "<|im_start|>", "eos_token": "<|im_end|>", "pad_token": "<|endoftext|>", "unk_token": null}
{"bos_token_id": 163584, "eos_token_id": [163585, 163586], "pad_token_id": 163839, "decoder_start_token_id": 0}
{"eos_token": {"content": "<|im_end|>", "lstrip": false, "normalized": false, "rstrip": false, "single_word": false}}
{"added_tokens_decoder": {"151643": {"content": "<|endoftext|>", "special": true}, "151644": {"content": "<|im_start|>"}}}
{"additional_special_tokens": ["<|im_start|>", "<|im_end|>"], "special_tokens_map": {"cls_token": "[CLS]", "sep_token": "[SEP]"}}
{"image_token_id": 5, "video_token": "<|video|>", "audio_token": "<|audio|>", "vision_start_token_id": 7}
{"add_bos_token": true, "add_eos_token": false, "clean_up_tokenization_spaces": false, "use_default_system_prompt": false}
{"num_key_value_heads": 8, "num_attention_heads": 64, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128}
{"kv_lora_rank": 512, "q_lora_rank": 1536, "key_dim": 128, "key_length": 64, "kv_cache_dtype": "fp8_e4m3"}
{"speculative_token_map": null, "speculative_num_draft_tokens": 8, "speculative_draft_model_path": "z-lab/Kimi-K2.6-DFlash"}
{"speculative_token_map": "thunlp/LLaMA3-Instruct-8B-FR-Spec/freq_32768.pt", "speculative_eagle_topk": 1}
{"weight_map": {"model.layers.0.self_attn.k_proj.weight": "model-00001-of-00002.safetensors"}}
{"api_key": null, "admin_api_key": null, "ssl_keyfile": null, "ssl_keyfile_password": null, "ssl_certfile": null}
{"api_key": "", "sampling_defaults": "model", "file_storage_path": "sglang_storage", "enable_metrics": true}
{"api_key_env": "SGLANG_KEY", "use_auth_token": true, "key": "cache", "keys": [1, 2], "primary_key": "id"}
{"_commit_hash": "0123456789abcdef0123456789abcdef01234567", "sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}
{"vcs_info": {"vcs": "git", "commit_id": "9fceb02d0ae598e95dc970b74767f19372d61af8"}, "url": "https://github.com/sgl-project/sglang"}
ServerArgs(model_path='moonshotai/Kimi-K2.6', tokenizer_path='m', api_key=None, admin_api_key=None, tokenizer_mode='auto')
ServerArgs(max_total_tokens=None, max_prefill_tokens=16384, stream_interval=1, speculative_token_map=None, key=None)
python -m sglang.launch_server --model-path Qwen/Qwen3-8B --tokenizer-path Qwen/Qwen3-8B --max-total-tokens 8192
python -m vllm.entrypoints.openai.api_server --model m --max-num-batched-tokens 8192 --tokenizer-mode auto
llama-server -m /m/x.gguf --draft-max 8 --spec-draft-n-max 8 -ngl 99 -fa on --cache-type-k q8_0 --keep 0
--speculative-token-map thunlp/x.pt --speculative-num-draft-tokens 8 --tokenizer-worker-num 1 --log-requests-level 2
/root/.cache/huggingface/hub/models--moonshotai--Kimi-K2.6/snapshots/0123456789abcdef0123456789abcdef01234567/config.json
/root/.cache/huggingface/hub/models--z-lab--Kimi-K2.6-DFlash/blobs/e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
/models/task-sk-tuned-13b/model.safetensors /models/sk-small/config.json disk-by-id scikit-learn==1.5 sk-learn
hf_transfer hf_hub_download hf_overrides hf_config.json AKIA eyJ ghp_ sk- gsk_ npm_ xai- r8_ SG. hvs.
drwxr-xr-x 2 root root 4096 Jan  1 00:00 models--zai-org--GLM-4.6-FP8
lrwxrwxrwx 1 root root 64 Jan  1 00:00 /proc/4711/fd/7 -> socket:[123456789]
0: 0100007F:7530 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 123456 1 0000000000000000 100 0 0 10 0
NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.133.20  Sun Mar 30 20:18:51 UTC 2025
GPU-2f3a4b5c-6d7e-8f90-a1b2-c3d4e5f60718 00000000:01:00.0 driver 570.133.20 serial 1324021045678
PATH=/usr/local/nvidia/bin:/usr/bin LD_LIBRARY_PATH=/usr/lib SGLANG_ENABLE_SPEC_V2=1 PWD=/root OLDPWD=/tmp
HF_HOME=/data/hf HF_TOKENIZER=x TOKENIZERS_PARALLELISM=false MASK_TOKEN=<|mask|> EOS_TOKEN=</s> NUM_TOKENS=5
http://127.0.0.1:30000/v1/models?limit=5&tokens=12&token=abc https://huggingface.co/z-lab/Kimi-K2.6-DFlash
tcp://10.0.0.1:5000 ssh://git@github.com:22/x git+https://github.com/sgl-project/sglang@v0.5.12#egg=sglang
[2026-11-30 10:00:00 TP0] Load weight end. type=KimiK25ForConditionalGeneration, dtype=torch.bfloat16, avail mem=21.50 GB
[2026-11-30 10:00:00] INFO:     127.0.0.1:50000 - "POST /v1/chat/completions HTTP/1.1" 200 OK
content-type: application/json; charset=utf-8
etag: "0123456789abcdef" x-request-id: 01234567-89ab-cdef-0123-456789abcdef
the token is invalid; Bearer token missing; secret sauce; password required; key: value; keys: many; api_key: not set
accepted tokens: 3.40 per step, tokens per second: 118.0, cost_per_token: 0.1, first_token: 5, next_token: 9, token_id: 3
first token latency (ms): 12.5 | inter-token latency p99: 9.1 | output token throughput (tok/s): 118.02
key_cache[block_table, slot], value_cache; cache_key=abc123def; sort_key=name; state_key: "deepep_v2_state"; public_key: x
"""

SOURCE_SURVIVORS = r"""
api_key: Optional[str] = None
self.api_key = server_args.api_key
    api_key: Optional[str] = None,  # the key that clients must send
parser.add_argument("--api-key", type=str, default=ServerArgs.api_key, help="Set API key of the server.")
if api_key and request.headers.get("authorization") != f"Bearer {api_key}":
headers = {"Authorization": f"Bearer {self.api_key}", "Content-Type": "application/json"}
assert request.headers["authorization"] == "Bearer test-key"
items = sorted(items, key=lambda x: (x.priority, -x.tokens))
password = getpass.getpass("password: ")
token = tokenizer.convert_tokens_to_ids("<|im_end|>")
self.mask_token = self.tokenizer.mask_token
mask_token_id = getattr(config, "mask_token_id", None)
HF_TOKEN = os.environ.get("HF_TOKEN")
secret = config["secret"] if "secret" in config else None
credentials = {"a": None}
STATE_KEY = "deepep_v2_state"
key = (layer_id, forward_batch.forward_mode, num_tokens)
commit_lens = accept_lens + 1  # accepted drafts + the bonus token
logger.info(f"server_args.api_key={'set' if server_args.api_key else 'not set'}")
url = f"http://{user}:{password}@{host}:{port}/"
""".strip().splitlines()


@pytest.mark.parametrize("line", SURVIVORS.strip().splitlines())
def test_evidence_comes_through_untouched(line: str) -> None:
    redactor = Redactor()
    assert redactor.text(line) == line
    for around in ("\n{}\n", "  {}", "/var/log/x.log:12:{}\n", "x {}"):
        clean, text = Redactor(), around.replace("{}", line)
        assert clean.text(text) == text
    assert redactor.count == 0


def test_there_are_enough_survivors() -> None:
    words = {word for line in SURVIVORS.splitlines() for word in line.split()}
    assert len(words) > 300


@pytest.mark.parametrize("line", SOURCE_SURVIVORS)
def test_source_comes_through_byte_for_byte(line: str) -> None:
    path = "/venv/sglang/srt/x.py"
    asked: list[tuple[Command, str]] = [
        (Command(key="k", argv=("cat", path)), f"{line}\n"),
        (Command(key="k", argv=("sed", "-n", "1,9p;9q", path)), f"{line}\n"),
        (
            Command(key="k", argv=("grep", "-n", "-H", "-e", "x", path)),
            f"{path}:7:{line}\n{path}-8-{line}\n--\n",
        ),
        (
            Command(key="k", argv=("grep", "-n", "-H", "-e", "x", "/venv/a.json", path, "/venv/b.md")),
            f"/venv/a.json:1:{{}}\n{path}:7:{line}\n--\n{path}-8-{line}\n/venv/b.md:1:x\n",
        ),
    ]
    for question, stdout in asked:
        result = Redactor().result(CommandResult(question=question, exit_code=0, stdout=stdout.encode()))
        assert isinstance(result, CommandResult)
        assert result.stdout.decode() == stdout


def test_a_pattern_that_looks_like_a_source_file_makes_no_log_a_source() -> None:
    log = b"launch_server.py --api-key horse\n"
    for argv in (
        ("grep", "-e", "launch_server.py", "/var/log/x.log"),
        ("grep", "-H", "-e", "/x/launch_server.py", "/var/log/x.log"),
        ("grep", "-n", "-H", "-e", "x", "/srv/a.py", "/var/log/x.log"),
    ):
        stdout = b"/var/log/x.log:1:" + log if "-H" in argv else log
        result = Redactor().result(
            CommandResult(question=Command(key="k", argv=argv), exit_code=0, stdout=stdout)
        )
        assert isinstance(result, CommandResult)
        assert b"horse" not in result.stdout, argv


def test_a_private_key_that_grep_shows_line_by_line_is_masked() -> None:
    body = "\n".join(f"/srv/x.txt-{number}-{'MIIEow' * 8}" for number in range(2, 9))
    text = f"/srv/x.txt:1:-----BEGIN RSA PRIVATE KEY-----\n{body}\n/srv/x.txt-9------END RSA PRIVATE KEY-----\nnext"
    masked = Redactor().text(text)
    assert "MIIEow" not in masked
    assert masked.startswith("/srv/x.txt:1:[redacted]")
    assert masked.endswith("\nnext")


def test_every_host_may_have_its_own_keys() -> None:
    redactor = Redactor()
    keys = [f"s3cret-{number:03}-value" for number in range(200)]
    for key in keys:
        redactor.text(json.dumps({"api_key": key}))
    assert redactor.text(" ".join(keys)) == " ".join(["[redacted]"] * 200)
