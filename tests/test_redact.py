"""No secret reaches the disk, and no evidence is eaten."""

from __future__ import annotations

import base64
import json
import threading
import urllib.parse

import pytest

from ddprobe.model import Command, CommandResult, Glob, HttpRequest, HttpResult
from ddprobe.redact import Redactor, names
from tests.cputime import cpu_seconds

# Put together here so that no text of this project has the shape of a real key.
SK = "sk-" + "proj-4f9Qx2LmZ8vT1nB6"
HF = "hf_" + "QwErTyUiOpAsDfGhJk12"
GHP = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2"
PAT = "github_pat_" + "11ABCDEFG0_aBcDeFgHiJkLmNo"
AWS = "AKIA" + "IOSFODNN7EXAMPLE"
SLACK = "xoxb-" + "123456789012-abcDEF"
GITLAB = "glpat-" + "x9Y8z7W6v5U4t3S2r1Q0"
JWT = "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0NTY3ODkwIn0" + ".dozjgNryP4J3jVmNHl0w5N"
SHAPES = (SK, HF, GHP, PAT, AWS, SLACK, GITLAB, JWT)


def clean(text: str) -> str:
    return Redactor().text(text)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # JSON
        ('{"api_key": "sk-test", "port": 3}', '{"api_key": "[redacted]", "port": 3}'),
        ('{"api_key":"a","admin_api_key":"b"}', '{"api_key":"[redacted]","admin_api_key":"[redacted]"}'),
        ('{"password": "two words", "x": 1}', '{"password": "[redacted]", "x": 1}'),
        (r'{"password": "a\"b, \\", "x": 1}', '{"password": "[redacted]", "x": 1}'),
        ('{"password": 123456, "x": 1}', '{"password": "[redacted]", "x": 1}'),
        ('{"api_keys": ["one", "two"], "x": 1}', '{"api_keys": ["[redacted]"], "x": 1}'),
        ('{"api_keys": [\n  "one",\n  "two"\n ], "x": 1}', '{"api_keys": ["[redacted]"], "x": 1}'),
        ('{"credentials": {"a": "b"}, "x": 1}', '{"credentials": ["[redacted]"], "x": 1}'),
        ('{"name": "HF_TOKEN", "value": "abc"}', '{"name": "HF_TOKEN", "value": "[redacted]"}'),
        ('{"Env": ["PASSWORD=a b c", "A=1"]}', '{"Env": ["PASSWORD=[redacted]", "A=1"]}'),
        ('[["authorization", "Bearer abc"], ["date", "x"]]', '[["authorization", "[redacted]"], ["date", "x"]]'),
        (r'{"a": "{\"api_key\": \"q\\\"w e\", \"port\": 1}"}', r'{"a": "{\"api_key\": \"[redacted]\", \"port\": 1}"}'),
        # Python
        ("Args(model='m', api_key='sk', port=1)", "Args(model='m', api_key='[redacted]', port=1)"),
        ("{'api_key': 'it is \\'so\\'', 'b': 2}", "{'api_key': '[redacted]', 'b': 2}"),
        ("{'api_key': ['k1', 'k2'], 'b': 2}", "{'api_key': ['[redacted]'], 'b': 2}"),
        ("d['api_key'] = 'zzz'", "d['api_key'] = '[redacted]'"),
        ("api_key=b'zzz'", "api_key=b'[redacted]'"),
        # key=value, environment dumps, headers
        ("PASSWORD=two words\nX=1", "PASSWORD=[redacted]\nX=1"),
        ("export HF_TOKEN=abc\n", "export HF_TOKEN=[redacted]\n"),
        ("SSHPASS=abc\n", "SSHPASS=[redacted]\n"),
        ("HF_TOKEN=abc python -m sglang --port 1", "HF_TOKEN=[redacted] python -m sglang --port 1"),
        ("starting with password=abc port=3", "starting with password=[redacted] port=3"),
        ("[INFO] password: two words, port: 3", "[INFO] password: [redacted], port: 3"),
        ("> Authorization: Bearer abc\r\n> Host: x", "> Authorization: [redacted]\r\n> Host: x"),
        ('curl -H "X-Api-Key: a b" http://x', 'curl -H "X-Api-Key: [redacted]" http://x'),
        ("Set-Cookie: id=1; Path=/\nX: 1", "Set-Cookie: [redacted]\nX: 1"),
        # argv
        ("x --api-key sk-test --port 1", "x --api-key [redacted] --port 1"),
        ("x --api-key=sk-test --port 1", "x --api-key=[redacted] --port 1"),
        ("x --api-key 'two words' --port 1", "x --api-key '[redacted]' --port 1"),
        ("x --hf-token abc -hft abc --port 1", "x --hf-token [redacted] -hft [redacted] --port 1"),
        ("x\0--api-key\0two words\0--port\x001\0", "x\0--api-key\0[redacted]\0--port\x001\0"),
        ("x\0--api-key\0k1\0k2\0--port\x001\0", "x\0--api-key\0[redacted]\0[redacted]\0--port\x001\0"),
        ("x\0--ssl-keyfile-password=a b\0-x\0", "x\0--ssl-keyfile-password=[redacted]\0-x\0"),
        ("x\0--api-key\0\"'\\\0--port\x001\0", "x\0--api-key\0[redacted]\0--port\x001\0"),
        ('["--api-key", "abc", "--port", "1"]', '["--api-key", "[redacted]", "--port", "1"]'),
        (
            r'''{"launch_command": "x --api-key 'it'\"'\"'s' --port 1", "b": 2}''',
            '{"launch_command": "x --api-key [redacted] --port 1", "b": 2}',
        ),
        # URLs
        ("http://user:p@ss@host/x", "http://user:[redacted]@host/x"),
        ("http://host/x?api_key=abc&n=1", "http://host/x?api_key=[redacted]&n=1"),
        ("http://host/x?n=1&token=0123456789abcdef", "http://host/x?n=1&token=[redacted]"),
        ("q=api_key%3Dabc%26n%3D1", "q=api_key%3D[redacted]%26n%3D1"),
        # cut at the end
        ('{"port": 3, "api_key": "cut her', '{"port": 3, "api_key": "[redacted]'),
        ("x --api-key cut", "x --api-key [redacted]"),
        ("x\0--api-key\0cut", "x\0--api-key\0[redacted]"),
        # shapes
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAAKC==\n-----END RSA PRIVATE KEY-----\nx", "[redacted]\nx"),
        (r'"-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\n"', r'"[redacted]\n"'),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nMIIEow\nIBAA", "[redacted]"),
        ("sent Bearer a.b-c.d", "sent Bearer [redacted]"),
    ],
)  # fmt: skip
def test_a_secret_is_masked_and_what_stands_around_it_is_kept(given: str, expected: str) -> None:
    redactor = Redactor()
    assert redactor.text(given) == expected
    assert redactor.count >= 1


EVIDENCE = """\
vllm:generation_tokens_total 7.0
vllm:prompt_tokens_total{engine="0",model_name="m"} 1024.0
vllm:time_to_first_token_seconds_bucket{le="0.001"} 0.0
sglang:token_usage 0.12
sglang:num_used_tokens 4096
sglang:inter_token_latency_seconds_sum 1.25
Decode batch, #running-req: 1, #token: 1024, token usage: 0.12, accept len: 3.40, cuda graph: True
Prefill batch, #new-seq: 1, #new-token: 512, #cached-token: 0, token usage: 0.00
{"max_tokens": 128, "min_tokens": 0, "token_ids": [1, 2], "tokenizer": "m", "tokenizer_path": "/m"}
{"mask_token": "<|mask|>", "mask_token_id": 151669, "pad_token": "<pad>", "bos_token_id": 1, "eos_token": "</s>"}
{"speculative_num_draft_tokens": 8, "max_total_tokens": 8192, "speculative_token_map": null}
{"num_key_value_heads": 8, "key": "value", "keys": ["a", "b"], "cache_key": "abc", "primary_key": "id"}
{"api_key": null, "admin_api_key": null, "ssl_keyfile": "/etc/ssl/x.pem", "ssl_keyfile_password": null}
{"api_key": "", "use_auth_token": true, "tokenizer_mode": "auto", "added_tokens_decoder": {"1": {"special": true}}}
ServerArgs(api_key=None, admin_api_key=None, tokenizer_worker_num=1, kv_cache_dtype='auto', max_prefill_tokens=16384)
api_key=None, port=30000
python -m sglang.launch_server --tokenizer-path /m --max-total-tokens 8192 --api-key --port 30000
--api-key-file /run/secrets/key --token-bucket 5 --enable-forward-pass-metrics
if api_key == admin_api_key:
    password=args.password,
    headers = {"Authorization": f"Bearer {self.api_key}"}
Bearer token missing; the token is invalid; secret sauce; password required
PWD=/root
OLDPWD=/tmp
HF_TOKENIZER=x TOKENIZERS_PARALLELISM=false MASK_TOKEN=<|mask|> IMAGE_TOKEN=<image>
http://127.0.0.1:30000/v1/models?limit=5&tokens=12 tcp://10.0.0.1:5000 ssh://git@host:22/x
layers.0.self_attn.k_proj: key=torch.Size([8, 128]) key_cache: 1 value: 2
sk-learn, task-force, disk-by-id, hf_transfer, hf_hub_download, ghp_, eyJ, AKIA
mean accepted tokens: 3.40, tokens per second: 118.0, cost_per_token: 0.1, n_tokens=12, first_token: 5, next_token: 9
"""


@pytest.mark.parametrize("line", EVIDENCE.splitlines())
def test_evidence_survives(line: str) -> None:
    redactor = Redactor()
    if 'f"Bearer' in line:
        assert redactor.data(line.encode(), source=True).decode() == line
    else:
        assert redactor.text(line) == line
    assert redactor.count == 0


@pytest.mark.parametrize("secret", SHAPES)
@pytest.mark.parametrize(
    "around", ["{}", "x {} y", '"{}"', "a={},", "\\n{}\\n", "\x1b[32m{}\x1b[0m", "%20{}", "https://{}@host/", "({})"]
)  # fmt: skip
def test_a_key_is_known_by_its_shape(secret: str, around: str) -> None:
    assert clean(around.format(secret)) == around.format("[redacted]")


@pytest.mark.parametrize("secret", SHAPES)
def test_a_key_cut_by_the_cap_is_masked_too(secret: str) -> None:
    assert Redactor().data(f"log {secret[:13]}".encode(), cut=True) == b"log [redacted]"


def test_what_was_seen_once_is_masked_everywhere_and_in_every_spelling() -> None:
    secret = 'käse "7"/x+y z9'
    redactor = Redactor()
    redactor.data(json.dumps({"api_key": secret}).encode())
    raw = secret.encode()
    spellings = [
        raw,
        json.dumps(secret).encode(),
        json.dumps(secret, ensure_ascii=False).encode(),
        json.dumps(json.dumps(secret)).encode(),
        urllib.parse.quote(secret, safe="").encode(),
        urllib.parse.quote_plus(secret).encode(),
        base64.b64encode(raw),
        base64.urlsafe_b64encode(raw),
        base64.b64encode(b"user:" + raw),
        base64.b64encode(b"us:" + raw),
        base64.b64encode(b"u:" + raw + b"!"),
        raw.hex().encode(),
    ]
    for spelling in spellings:
        masked = redactor.data(b"before " + spelling + b" after")
        assert masked.startswith(b"before ")
        assert masked.endswith(b" after")
        assert b"[redacted]" in masked, spelling
        assert spelling not in masked


def test_a_learned_secret_cut_at_the_end_is_masked() -> None:
    redactor = Redactor()
    redactor.learn("correct-horse-42")
    assert redactor.data(b"said correct-ho", cut=True) == b"said [redacted]"
    assert redactor.data(b"said correct-ho") == b"said correct-ho"


def test_a_short_secret_is_masked_as_a_word_only() -> None:
    redactor = Redactor()
    redactor.learn("sk-test")
    assert redactor.text("key sk-test, task-tests, \\nsk-test") == "key [redacted], task-tests, \\n[redacted]"


@pytest.mark.parametrize(
    "value", ["None", "null", "true", "EMPTY", "auto", "30000", "123456789", "sglang", "default", "/models/kimi", "aaaaaa"]
)  # fmt: skip
def test_a_trivial_value_is_not_masked_elsewhere(value: str) -> None:
    redactor = Redactor()
    redactor.text(json.dumps({"api_key": value}))
    assert redactor.text(f"port {value} here") == f"port {value} here"


def test_prose_teaches_nothing() -> None:
    redactor = Redactor()
    redactor.text("use --api-key whenever the server is public")
    assert redactor.text("whenever the server is public") == "whenever the server is public"


def test_masking_twice_changes_nothing() -> None:
    redactor = Redactor()
    once = redactor.text(f'{{"api_key": "{SK}"}} --api-key abc PASSWORD=x http://u:p@h Bearer {JWT}')
    assert redactor.text(once) == once


def test_json_stays_json_and_loses_only_its_secrets() -> None:
    given = {
        "port": 30000,
        "api_key": 'a"b\\c',
        "nested": [{"admin_api_key": "x", "max_tokens": 12, "password": 5, "secret": ["a", "b"]}],
        "launch_command": "python -m sglang --api-key 'a\"b\\c' --port 30000",
        "text": 'said "hi"\n',
    }
    for indent in (None, 1):
        masked = json.loads(Redactor().text(json.dumps(given, indent=indent)))
        assert masked == {
            "port": 30000,
            "api_key": "[redacted]",
            "nested": [
                {"admin_api_key": "[redacted]", "max_tokens": 12, "password": "[redacted]", "secret": ["[redacted]"]}
            ],
            "launch_command": "python -m sglang --api-key '[redacted]' --port 30000",
            "text": 'said "hi"\n',
        }  # fmt: skip


ENVIRON = b"\0".join(
    [
        b"SGLANG_ENABLE_SPEC_V2=1",
        b"VLLM_API_KEY=abcdef1",
        b"HF_HOME=/data/hf",
        f"HF_TOKEN={HF}".encode(),
        b"PATH=/usr/bin:/bin",
        b"PGPASSWORD=two words\nand a line",
        b"MY_COMPANY=acme",
        b"http_proxy=http://me:hunter2x@proxy",
        b"NCCL_DEBUG=INFO",
        b"SGLANG_URL=http://me:hunter3x@host/",
        b"BASH_FUNC_x%%=() { :; }",
        b"no equals sign",
        b"CUDA_VISIBLE_DEVICES=0,1",
        b"HF_TOKEN_PATH=/x",
        b"",
    ]
)


def test_an_environment_keeps_what_is_allowed_and_only_names_of_the_rest() -> None:
    ask = Command(key="environ", argv=("cat", "/proc/4711/environ"))
    redactor = Redactor()
    result = redactor.result(CommandResult(question=ask, exit_code=0, stdout=ENVIRON))
    assert isinstance(result, CommandResult)
    assert result.stdout.split(b"\0") == [
        b"SGLANG_ENABLE_SPEC_V2=1",
        b"VLLM_API_KEY=[redacted]",
        b"HF_HOME=/data/hf",
        b"HF_TOKEN=[redacted]",
        b"PATH=/usr/bin:/bin",
        b"PGPASSWORD=[redacted]",
        b"MY_COMPANY=[not kept]",
        b"http_proxy=[not kept]",
        b"NCCL_DEBUG=INFO",
        b"SGLANG_URL=http://me:[redacted]@host/",
        b"[not kept]",
        b"[not kept]",
        b"CUDA_VISIBLE_DEVICES=0,1",
        b"HF_TOKEN_PATH=[not kept]",
        b"",
    ]
    assert redactor.count == 5
    assert redactor.text(f"log {HF} hunter2x") == "log [redacted] [redacted]"


def test_an_environment_cut_by_the_cap_keeps_no_half_secret() -> None:
    ask = Command(key="environ", argv=("cat", "/proc/1/environ"))
    for stdout, expected in [
        (b"A=1\0HF_TOK", b"A=[not kept]\0[not kept]"),
        (b"HF_TOKEN=hf_ab", b"HF_TOKEN=[redacted]"),
    ]:
        result = Redactor().result(CommandResult(question=ask, stdout=stdout, truncated=True))
        assert isinstance(result, CommandResult)
        assert result.stdout == expected


def test_source_text_is_left_alone_except_for_real_keys() -> None:
    source = (
        'api_key: Optional[str] = None\nself.api_key = server_args.api_key\nparser.add_argument("--api-key", type=str)\n'
        'headers = {"Authorization": f"Bearer {api_key}"}\npassword = "a plain sentence"\nSTATE_KEY = "deepep_v2_state"\n'
    )
    ask = Command(key="read", argv=("sed", "-n", "1,9p;9q", "/site-packages/sglang/srt/server_args.py"))
    result = Redactor().result(
        CommandResult(question=ask, exit_code=0, stdout=f'{source}K = "{SK}"\n'.encode())
    )
    assert isinstance(result, CommandResult)
    assert result.stdout.decode() == source + 'K = "[redacted]"\n'


def test_an_answer_is_masked_in_every_part() -> None:
    ask = Command(key="k", argv=("grep", "-e", f"--api-key={SK}", Glob("/proc/*/cmdline")), stdin=SK.encode())
    result = Redactor().result(
        CommandResult(question=ask, exit_code=0, stdout=SK.encode(), stderr=SK.encode(), failure=f"no {SK}")
    )
    assert SK not in repr(result)
    request = HttpRequest(
        key="k", method="GET", path=f"/x?api_key={SK}", base="http://u:secret99@h", headers=(("Authorization", "Bearer abc"),)
    )  # fmt: skip
    answer = Redactor().result(
        HttpResult(
            question=request,
            status=200,
            headers=(("set-cookie", "id=abc"), ("content-type", "application/json"), ("x-api-key", SK)),
            body=SK.encode(),
            failure=SK,
        )
    )
    assert isinstance(answer, HttpResult)
    assert answer.headers == (
        ("set-cookie", "[redacted]"), ("content-type", "application/json"), ("x-api-key", "[redacted]"),
    )  # fmt: skip
    assert answer.question.headers == (("Authorization", "[redacted]"),)
    assert SK not in repr(answer)
    assert "secret99" not in repr(answer)


def test_bytes_that_are_no_text_are_kept() -> None:
    data = bytes(range(256)) + b'\xff{"api_key":"\xfe\xff"}\xc3'
    assert Redactor().data(data) == bytes(range(256)) + b'\xff{"api_key":"[redacted]"}\xc3'


def test_threads_share_what_was_learned() -> None:
    redactor = Redactor()
    secrets = [f"s3cret-{number:02}-value" for number in range(32)]
    threads = [
        threading.Thread(target=redactor.text, args=(f'{{"api_key": "{secret}"}}',)) for secret in secrets
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert redactor.count == 32
    assert redactor.text(" ".join(secrets)) == " ".join(["[redacted]"] * 32)


HOSTILE = [
    b"a", b'"', b"\\", b'\\"', b"[", b"token=", b"hf_token=", b'api_key="', b"api_key='", b"api_key=[", b'"api_key":"x",',
    b"password:", b"password: a ", b"password: " + b" " * 99, b"sk-", b"eyJ", b"eyJa.", b"://", b"://a:", b"Bearer ",
    b"-----BEGIN PRIVATE KEY-----", b"-----BEGIN PRIVATE KEY-----\n", b"--api-key ", b"--api-key\0", b'"password=x ',
    b"HF_TOKEN=a --", b"\n \n", b"?key=", b"key: key: ", b'"api_key":\\', b"AKIA", b"earer", b"sk-tes", b"api_key%3D",
]  # fmt: skip


@pytest.mark.parametrize("unit", HOSTILE, ids=repr)
def test_no_input_makes_a_scan_slower_than_linear(unit: bytes) -> None:
    def seconds(size: int) -> float:
        data = (unit * (size // len(unit) + 1))[:size]
        redactor = Redactor()
        redactor.learn("sk-test")
        return cpu_seconds(lambda: redactor.data(data, cut=True), times=3)

    small, large = 32_000, 256_000
    # Eight times the input takes eight times as long; quadratic work would take sixty-four.
    assert seconds(large) < 24 * max(seconds(small), 0.004)


@pytest.mark.parametrize(
    "name",
    "api_key api-key apiKey APIKEY x-api-key admin_api_key --api-key self.api_key OPENAI_API_KEY_2 password passwd "
    "ssl_keyfile_password PGPASSWORD secret client_secret clientSecret authorization Proxy-Authorization cookie "
    "set-cookie bearer HF_TOKEN HUGGING_FACE_HUB_TOKEN access_token accessToken auth_token refresh-token hf_token "
    "aws_secret_access_key aws_session_token private_key watermark_key watermark_key_b credentials db_pass "
    "SGLANG_DIFFUSION_SLACK_TOKEN GITHUB_TOKEN -hft passphrase secret_key".split(),
)  # fmt: skip
def test_names_of_secrets(name: str) -> None:
    assert names.is_secret(name)


@pytest.mark.parametrize(
    "name",
    "token tokens max_tokens tokenizer tokenizer_path mask_token mask_token_id MASK_TOKEN pad_token bos_token "
    "eos_token_id next_token first_token time_to_first_token num_token per_token draft_tokens token_usage "
    "generation_tokens_total bot_token key keys cache_key primary_key num_key_value_heads api_key_file api_key_env "
    "ssl_keyfile password_file PWD OLDPWD pass forward_pass pwd aws_access_key_id TOKENIZERS_PARALLELISM "
    "HF_TOKEN_PATH secret_name auth".split(),
)  # fmt: skip
def test_names_of_evidence(name: str) -> None:
    assert not names.is_secret(name)


@pytest.mark.parametrize(
    "line",
    [
        "stat: cannot statx '/opt/x/etc/passwd': No such file or directory",
        "cat: /srv/password: Permission denied",
        "grep: /srv/models/secret: Is a directory",
        "cat: /srv/api_key: Input/output error",
        "grep: /opt/x/auth_token: binary file matches",
    ],
)
def test_what_programs_say_of_a_file_is_no_secret(line: str) -> None:
    assert Redactor().text(line) == line
