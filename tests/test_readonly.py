"""The policy: what leaves, and what is refused before it leaves."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Sequence
from dataclasses import replace

import pytest

from ddprobe import readonly
from ddprobe.errors import Refused
from ddprobe.model import Command, CommandResult, Connection, Glob, Host, HttpRequest, Question, Result, Word
from ddprobe.redact import Redactor
from ddprobe.sessions.base import Session

ALLOWED: list[tuple[Word, ...]] = [
    ("cat", "/proc/cpuinfo"),
    ("cat", "/proc/4711/environ"),
    ("cat", "/dev/shm/models/drafter/config.json"),
    ("stat", "-L", "-c", "%F", "/opt/venv/lib/python3.11/site-packages/sglang/srt/environ"),
    ("cat", "--", "/srv/models/-odd-name/config.json"),
    ("head", "-c", "8", "/srv/model.safetensors"),
    ("sed", "-n", "1395,1450p;1450q", "/srv/x.py"),
    ("wc", "-l", "/srv/x.py"),
    ("grep", "-n", "-H", "-E", "-e", "commit_lens|accept", "/srv/x.py"),
    ("grep", "-l", "-s", "-E", "-e", "sglang", Glob("/proc/[0-9]*/cmdline")),
    ("find", "/srv/sglang", "-type", "f", "-name", "*.py"),
    ("ls", "-1", "-A", "/srv"),
    ("readlink", "-f", "/proc/4711/exe"),
    ("stat", "-L", "-c", "%F|%s", "/srv/x.py"),
    ("uname", "-s", "-r", "-m"),
    ("date", "+%s.%N"),
    ("grep", "-n", "-e", "x", Glob("/proc/41/root/opt/*/site-packages/x*.dist-info/METADATA")),
    ("grep", "-e", "x", Glob("//*/lib/python3*/site-packages/sglang/_version.py")),
    ("grep", "-e", "x", Glob("/proc/41/root/*/lib/python3*/site-packages/sglang*.dist-info/direct_url.json")),
    ("find", "/proc", "-maxdepth", "1", "-name", "[0-9]*"),
    ("ls", "-l", "/dev/null", "/proc/4711/fd"),
    ("cat", "/srv/models/tokenizer.json", "/srv/models/special_tokens_map.json", "/srv/hub/tokens.txt"),
    ("cat", "/etc/*"),
    ("echo", "no path"),
    ("journalctl", "-q", "--no-pager", "-o", "short-iso", "-n", "20000", "-u", "sglang@kimi.service"),
    ("journalctl", "--no-pager", "-n", "9", "--user-unit", "app-vllm.service"),
    ("ls", "-l", "-d", Glob("/proc/[0-9]*/fd/0")),
    ("cat", Glob("/*/lib/python3*/x")),
    ("cat", Glob("/sys/devices/system/cpu*/x")),
    ("cat", Glob("/sys/devices/system/node/node*/meminfo")),
    ("grep", "-s", "-H", "-e", "^Model:", Glob("/proc/driver/nvidia/gpus/*/information")),
    ("ls", "-1", "-d", Glob("/etc/*")),
    ("readlink", "-f", "/proc/4711/fd/7"),
    ("find", "/srv", "(", "-name", "*.py", "-o", "-name", "*.cu", ")"),
    ("dmesg",),
    ("journalctl", "-q", "--no-pager", "-o", "short-iso", "-n", "5000", "-k"),
    ("nvidia-smi", "--query-gpu=index,clocks.sm", "--format=csv,noheader,nounits"),
    ("nvidia-smi", "--query-compute-apps=gpu_uuid,pid", "--format=csv"),
    ("nvidia-smi", "--query-remapped-rows=gpu_uuid,remapped_rows.pending", "--format=csv"),
    ("nvidia-smi", "-L"),
    ("nvidia-smi", "--version"),
    ("nvidia-smi", "topo", "-m"),
    ("dcgmi", "-v"),
    ("dcgmi", "discovery", "-l"),
    ("rocm-smi", "--showproductname", "--showmeminfo", "vram", "--json"),
    ("amd-smi", "static", "--json"),
    ("grep", "-s", "-l", "-i", "-e", "0x10de", Glob("/sys/bus/pci/devices/*/vendor")),
    ("grep", "-s", "-H", "-e", "^State:.D", Glob("/proc/[0-9]*/status")),
    ("cat", "/srv/it's $(here) `now`; rm -rf ~ #.py"),
]

REFUSED: list[tuple[tuple[Word, ...], str]] = [
    ((), "no program"),
    (("rm", "-rf", "/srv"), "not on the list"),
    (("sh", "-c", "id"), "not on the list"),
    (("bash", "-c", "id"), "not on the list"),
    (("env", "cat", "/x"), "not on the list"),
    (("sudo", "cat", "/x"), "not on the list"),
    (("xargs", "rm"), "not on the list"),
    (("python3", "-c", "1"), "not on the list"),
    (("curl", "http://127.0.0.1/flush_cache"), "not on the list"),
    (("kill", "-9", "1"), "not on the list"),
    (("nvidia-smi", "-r"), "not on the list"),
    (("nvidia-smi",), "not on the list"),
    (("nvidia-smi", "-pl", "300"), "not on the list"),
    (("nvidia-smi", "-pm", "1"), "not on the list"),
    (("nvidia-smi", "-lgc", "300,900"), "not on the list"),
    (("nvidia-smi", "--gpu-reset", "-i", "0"), "not on the list"),
    (("nvidia-smi", "-L", "-r"), "not on the list"),
    (("nvidia-smi", "topo", "-m", "-r"), "not on the list"),
    (("nvidia-smi", "topo", "-p"), "not on the list"),
    (("nvidia-smi", "mig", "-dci"), "not on the list"),
    (("nvidia-smi", "nvlink", "-r", "0"), "not on the list"),
    (("nvidia-smi", "--query-gpu=index", "--format=csv", "-f", "/srv/out"), "not on the list"),
    (("nvidia-smi", "--query-gpu=index", "--format=csv", "--filename=/srv/out"), "not on the list"),
    (("nvidia-smi", "--query-gpu=index --format=csv -r"), "not on the list"),
    (("nvidia-smi", "--query-gpu=index", "--format=csv", "-l", "1"), "needs a timeout"),
    (("nvidia-smi", "--query-gpu=index", "--format=csv", "-lms", "500"), "needs a timeout"),
    (("nvidia-smi", "--query-gpu=index", "--format=csv", "-lms", "5"), "not on the list"),
    (("dcgmi", "dmon", "-e", "1002,1005", "-d", "500"), "needs a timeout"),
    (("dcgmi", "diag", "-r", "3"), "not on the list"),
    (("dcgmi", "config", "--set", "-P", "200"), "not on the list"),
    (("rocm-smi", "--setperflevel", "high"), "not on the list"),
    (("rocm-smi", "--showuse", "--gpureset", "--json"), "not on the list"),
    (("amd-smi", "reset", "--json"), "not on the list"),
    (("dmesg", "-c"), "option '-c'"),
    (("dmesg", "-C"), "option '-C'"),
    (("dmesg", "-w"), "option '-w'"),
    (("dmesg", "x"), "takes no operands"),
    (("journalctl", "--no-pager", "-k"), "a number of lines"),
    (("/bin/cat", "/x"), "not on the list"),
    ((Glob("/bin/c?t"), "/x"), "no program"),
    (("find", "/srv", "-delete"), "option '-delete'"),
    (("find", "/srv", "-exec", "rm", "{}", ";"), "option '-exec'"),
    (("find", "/srv", "-fprint", "/srv/out"), "option '-fprint'"),
    (("sed", "-i", "1,2p;2q", "/srv/x"), "option '-i'"),
    (("sed", "-n", "1e reboot", "/srv/x"), "not of an allowed form"),
    (("sed", "-n", "1,2w /srv/y", "/srv/x"), "not of an allowed form"),
    (("sed", "-n", "1,2p;2q\nw /srv/y", "/srv/x"), "not of an allowed form"),
    (("tail", "-f", "/srv/x"), "option '-f'"),
    (("grep", "-r", "-e", "x", "/"), "option '-r'"),
    (("grep", "pattern", "/srv/x"), "must come with -e"),
    (("grep", "-f", "/srv/patterns", "-e", "x", "/srv/x"), "option '-f'"),
    (("cat",), "without a file"),
    (("cat", "-"), "stdin"),
    (("cat", "relative.py"), "absolute"),
    (("cat", "/srv/a\0b"), "NUL"),
    (("date", "-s", "2020-01-01"), "option '-s'"),
    (("hostname", "evil"), "takes no operands"),
    (("journalctl", "--no-pager", "-n", "9"), "of one unit"),
    (("journalctl", "-n", "9", "-u", "x.service"), "without a pager"),
    (("journalctl", "--no-pager", "-u", "x.service"), "a number of lines"),
    (("journalctl", "--no-pager", "-n", "9", "-u", "*.service"), "not of an allowed form"),
    (("journalctl", "--no-pager", "-n", "9", "-u", "--rotate"), "not of an allowed form"),
    (("journalctl", "--no-pager", "-n", "9", "-u", "x.service", "_PID=1"), "takes no operands"),
    (
        ("journalctl", "--no-pager", "-n", "9", "-u", "x.service", "--vacuum-size=1"),
        "option '--vacuum-size=1'",
    ),
    (("journalctl", "--no-pager", "-n", "9", "-u", "x.service", "-f"), "option '-f'"),
    (("journalctl", "--no-pager", "-n", "9", "-u", "x.service", "-D", "/srv"), "option '-D'"),
    (("journalctl", "--no-pager", "-n", "9", "-u", "x.service", "-o", "export"), "not of an allowed form"),
    (("stat", "-c", "%n\n%s", "/x"), "allowed form"),
    (("cat", Glob("/srv/*; reboot")), "plain absolute path pattern"),
    (("cat", Glob("/srv/$(reboot)*")), "plain absolute path pattern"),
    (("cat", Glob("relative/*")), "plain absolute path pattern"),
    (("cat", "/root/.ssh/id_ed25519"), "holds secrets"),
    (("cat", "/home/a/.ssh/config"), "holds secrets"),
    (("cat", "/etc/shadow"), "holds secrets"),
    (("cat", "/srv/../etc/shadow"), "holds secrets"),
    (("cat", "/root/.cache/huggingface/token"), "holds secrets"),
    (("cat", "/root/.aws/credentials"), "holds secrets"),
    (("cat", "/srv/tls/server.key"), "holds secrets"),
    (("cat", "/dev/zero"), "block or act"),
    (("cat", "/dev/sda"), "block or act"),
    (("cat", "/proc/4711/mem"), "block or act"),
    (("cat", "/proc/kmsg"), "block or act"),
    (("head", "-c", "99", "/proc/1/environ"), "environment"),
    (("grep", "-e", "KEY", "/proc/1/environ"), "environment"),
    (("cat", "/proc/1/environ", "/proc/2/environ"), "environment"),
    (("cat", Glob("/proc/*/environ")), "environment"),
    (("sed", "/x/w /srv/out", "/srv/x"), "with -n"),
    (("sed", "/x/e", "/srv/x"), "with -n"),
    (("sed", "-n", "1,2p;2q", "-n", "3,4p;4q", "/srv/x"), "with -n"),
    (("sed", "--", "/x/w /srv/out", "/srv/x"), "with -n"),
    (("sed", "/srv/x", "-n", "1,2p;2q"), "with -n"),
    (("sed",), "with -n"),
    (("head", "/proc/1/environ"), "environment"),
    (("stat", "-c", "%F", "/dev/sda"), "block or act"),
    (("cat", Glob("/*/*/x/y")), "could stand for"),
    (("cat", "(", "/srv/x"), "absolute"),
    (("find", "--", "/srv", "-delete"), "absolute"),
    (("find", "/", "-name", "x"), "cost"),
    (("find", "-L", "/proc/self/root", "-name", "x"), "cost"),
    (("find", "//proc//", "-path", "*x*"), "cost"),
    (("cat", Glob("/etc/sh?dow")), "could stand for"),
    (("cat", Glob("/etc/*")), "could stand for"),
    (("cat", Glob("/root/.s*/config")), "could stand for"),
    (("cat", Glob("/d?v/zero")), "could stand for"),
    (("cat", Glob("/*/*/x")), "could stand for"),
    (("cat", Glob("/*/self/task/1/mem")), "could stand for"),
    (("cat", Glob("/*/kernel/debug/x")), "could stand for"),
    (("cat", Glob("/proc/1/m?m")), "could stand for"),
    (("cat", Glob("/proc/*/f?/7")), "could stand for"),
    (("cat", Glob("/proc/1/ro?t/etc/hostname")), "could stand for"),
    (("cat", Glob("/sys/k*/debug/x")), "could stand for"),
    (("cat", Glob("/sys/bus/pci/devices/*/res*")), "could stand for"),
    (("head", "-c", "9", Glob("/proc/*/envir[o]n")), "could stand for"),
]

SECRET = [
    "/etc/shadow", "/etc/gshadow-", "/etc/sudoers.d/admin", "/etc/security/opasswd", "/root/.ssh/authorized_keys",
    "/home/a/.netrc", "/srv/.env", "/srv/.env.local", "/root/.bash_history", "/root/.config/gh/hosts.yml",
    "/root/.huggingface/token", "/root/.cache/huggingface/stored_tokens", "/root/.modelscope/credentials/session",
    "/etc/ssh/ssh_host_ed25519_key", "/etc/kubernetes/admin.conf", "/run/secrets/hf", "/var/run/secrets/k8s/token",
    "/srv/tls.key", "/root/.vault-token", "/root/.kaggle/kaggle.json",
]  # fmt: skip
LIVE = [
    "/dev/zero", "/dev/stdin", "/dev/fd/0", "/dev/nvidia0", "/proc/kcore", "/proc/kmsg", "/proc/self/fd/0", "/proc/41/fd/5",
    "/proc/41/mem", "/proc/41/task/42/mem", "/proc/41/task/42/fd/1", "/proc/41/map_files/1-2", "/proc/41/clear_refs",
    "/proc/bus/pci/00/00.0", "/sys/kernel/debug/x", "/sys/kernel/tracing/trace_pipe",
    "/sys/bus/pci/devices/0000:00:00.0/resource0", "/sys/devices/pci0000:00/0000:00:00.0/config",
]  # fmt: skip
READERS: list[tuple[Word, ...]] = [
    ("cat",), ("head", "-c", "9"), ("tail", "-n", "3"), ("wc", "-c"), ("sed", "-n", "1,2p;2q"), ("grep", "-e", ""),
]  # fmt: skip
ROOTS = ["", "", "/proc/self/root", "/proc/1/task/1/root", "/proc/1/root/proc/2/root", "/tmp/..", "/x/./.."]


def another_name(path: str, dice: random.Random) -> str:
    """The same file under another name."""
    parts = path.split("/")[1:]
    return dice.choice(ROOTS) + "".join(
        dice.choice(["/", "//", "/./", "/y/../", "///"]) + part for part in parts
    )


@pytest.mark.parametrize("path", SECRET + LIVE)
def test_a_forbidden_file_is_read_under_none_of_its_names(path: str) -> None:
    dice = random.Random(path)
    for written in (path, *(another_name(path, dice) for _ in range(60))):
        for reader in READERS:
            for argv in ((*reader, written), (*reader, "/srv/harmless", written)):
                with pytest.raises(Refused):
                    readonly.check(Command(key="k", argv=argv))


@pytest.mark.parametrize("task", ["", "/task/41"])
def test_an_environment_is_read_alone_also_through_another_root(task: str) -> None:
    for path in (
        f"/proc/41{task}/environ",
        f"/proc/1/root/proc/41{task}/environ",
        f"//proc/41{task}/./environ",
    ):
        readonly.check(Command(key="k", argv=("cat", path)))
        for reader in READERS[1:]:
            with pytest.raises(Refused):
                readonly.check(Command(key="k", argv=(*reader, path)))


def test_no_mixture_of_words_acts() -> None:
    """Whatever is drawn: what passes is a program on the list, with its options, on absolute paths."""
    dice = random.Random(7)
    words = [
        "-n", "-e", "-c", "-i", "-r", "-exec", "-delete", "-fprint", "-o", "-f", "-w", "--", "-", "+5", "1,2p;2q", "/x/w/y",
        "/srv/x", "9", "%s", "x", "/etc/shadow", "/dev/sda", "-print", "-type", "f", "(", ")", ";", "{}", "-e/x", "--help",
    ]  # fmt: skip
    passed = 0
    for _ in range(30_000):
        argv = (dice.choice([*readonly.PROGRAMS, "rm", "sh"]), *dice.choices(words, k=dice.randint(0, 5)))
        try:
            readonly.check(Command(key="k", argv=argv))
        except Refused:
            continue
        passed += 1
        program, options = argv[0], readonly.PROGRAMS[argv[0]]
        before = argv[: argv.index("--")] if "--" in argv else argv
        values = {place + 1 for place, word in enumerate(before) if options.get(word) is not None}
        rest = [w for place, w in enumerate(argv[1:], 1) if place not in values and w not in options]
        if program not in ("echo", "true"):
            assert all(word.startswith("/") or word in ("--", "(", ")") for word in rest), argv
            assert not {"/etc/shadow", "/dev/sda"} & set(rest), argv
        if program == "sed":
            assert argv[1:3] == ("-n", "1,2p;2q"), argv
    assert passed > 100


@pytest.mark.parametrize("loop", [("-l", "1"), ("-lms", "500")], ids=" ".join)
def test_what_goes_on_has_an_end(loop: tuple[str, str]) -> None:
    argv = ("nvidia-smi", "--query-gpu=index", "--format=csv,noheader,nounits", *loop)
    readonly.check(Command(key="k", argv=argv, timeout=60.0))
    for timeout in (None, 0.0, -1.0, float("inf"), float("nan"), 1e9):
        with pytest.raises(Refused) as caught:
            readonly.check(Command(key="k", argv=argv, timeout=timeout))
        assert "needs a timeout" in caught.value.message


@pytest.mark.parametrize("argv", ALLOWED, ids=lambda argv: " ".join(map(str, argv)))
def test_allowed(argv: tuple[Word, ...]) -> None:
    readonly.check(Command(key="k", argv=argv))


@pytest.mark.parametrize(
    ("argv", "why"), REFUSED, ids=lambda part: " ".join(map(str, part)) if isinstance(part, tuple) else ""
)
def test_refused(argv: tuple[Word, ...], why: str) -> None:
    with pytest.raises(Refused) as caught:
        readonly.check(Command(key="k", argv=argv))
    assert why in caught.value.message


def request(
    method: str = "GET", path: str = "/server_info", base: str = "http://127.0.0.1:30000", **more: object
) -> HttpRequest:
    return HttpRequest(key="k", method=method, path=path, base=base, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "path", ["/server_info", "/get_server_info", "/model_info", "/v1/loads", "/v1/models", "/ready"]
)
def test_http_paths_that_only_tell(path: str) -> None:
    readonly.check(request(path=path))


@pytest.mark.parametrize(
    ("method", "path"),
    [
        # Each accepts GET in SGLang and acts on it, or changes state by POST.
        ("GET", "/flush_cache"), ("POST", "/flush_cache"), ("GET", "/release_memory_occupation"), ("GET", "/slow_down"),
        ("GET", "/start_profile"), ("GET", "/configure_logging"), ("POST", "/set_internal_state"),
        ("POST", "/abort_request"), ("POST", "/update_weights_from_disk"), ("POST", "/reset_prefix_cache"),
        ("DELETE", "/server_info"), ("POST", "/server_info"), ("GET", "/server_info/../flush_cache"),
        ("GET", "/server_info?x=1"), ("GET", "/server_info HTTP/1.1\r\nX: y\r\n\r\nGET /flush_cache"),
        ("GET", "//flush_cache"), ("GET", "/%66lush_cache"), ("get", "/server_info"), ("GET", "/slots/0?action=erase"),
    ],
)  # fmt: skip
def test_http_that_acts_is_refused(method: str, path: str) -> None:
    with pytest.raises(Refused):
        readonly.check(request(method, path))


def generating(path: str, body: object) -> HttpRequest:
    return request("POST", path, body=body if isinstance(body, bytes) else json.dumps(body).encode())


GENERATE = {
    "input_ids": [1, 2],
    "sampling_params": {"temperature": 0, "max_new_tokens": 65, "ignore_eos": True},
    "stream": True,
}
COMPLETION = {"prompt": [1, 2], "n_predict": 65, "temperature": 0, "cache_prompt": True, "stream": True}
CHAT = {"messages": [{"role": "user", "content": "amber"}]}


def told(**switches: object) -> dict[str, object]:
    """A chat whose template is told that."""
    return {**CHAT, "chat_template_kwargs": switches}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/generate", GENERATE),
        ("/completion", COMPLETION),
        ("/v1/completions", {"model": "m", "prompt": [1], "max_tokens": 9, "stream": True}),
        ("/tokenize", {"prompt": "The cat", "add_special_tokens": False}),
        ("/tokenize", {"model": "m", **CHAT}),
        ("/tokenize", told(enable_thinking=True, thinking=True)),
        ("/apply-template", CHAT),
        ("/apply-template", told(enable_thinking=False, thinking=False)),
    ],
)
def test_one_bounded_completion_may_be_asked_for(path: str, body: object) -> None:
    readonly.check(generating(path, body))


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/generate", {**GENERATE, "lora_path": "/x"}),
        ("/generate", {**GENERATE, "session_params": {}}),
        ("/generate", {**GENERATE, "sampling_params": {"max_new_tokens": 9, "regex": ".*"}}),
        ("/generate", {**GENERATE, "sampling_params": {"max_new_tokens": 10**6}}),
        ("/generate", {**GENERATE, "sampling_params": {"max_new_tokens": True}}),
        ("/generate", {**GENERATE, "sampling_params": [1]}),
        ("/generate", {"input_ids": [1]}),
        ("/completion", {**COMPLETION, "n_predict": -1}),
        ("/completion", {**COMPLETION, "id_slot": 0}),
        ("/completion", [COMPLETION]),
        ("/completion", b"{"),
        ("/v1/completions", {"model": "m", "prompt": "x", "max_tokens": 9, "logit_bias": {}}),
        ("/v1/completions", {"model": "m", "prompt": "x", "max_tokens": 9, "n": 4}),
        ("/tokenize", {"path": "/etc/passwd"}),
        ("/tokenize", {**CHAT, "tools": []}),
        ("/tokenize", {**CHAT, "chat_template": "{{ 1 }}"}),
        ("/tokenize", told(chat_template="{{ 1 }}")),
        ("/tokenize", told(enable_thinking="true")),
        ("/tokenize", told(enable_thinking=1)),
        ("/tokenize", {**CHAT, "chat_template_kwargs": [True]}),
        ("/tokenize", {**CHAT, "chat_template_kwargs": None}),
        ("/tokenize", {"messages": []}),
        ("/tokenize", {"messages": CHAT["messages"] * 2}),
        ("/tokenize", {"messages": "amber"}),
        ("/tokenize", {"messages": ["amber"]}),
        ("/tokenize", {"messages": [{"role": "system", "content": "amber"}]}),
        (
            "/tokenize",
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": "file:///x"}]}]},
        ),
        ("/tokenize", {"messages": [{"role": "user", "content": "amber", "tool_calls": []}]}),
        ("/tokenize", {"messages": [{"content": "amber"}]}),
        ("/apply-template", {**CHAT, "grammar": ""}),
        ("/apply-template", told(reasoning_effort=True)),
        ("/v1/completions", {"model": "m", "prompt": "x", "max_tokens": 9, **CHAT}),
        ("/v1/chat/completions", {"model": "m", "max_tokens": 1}),
        ("/slots/0", {"action": "erase"}),
    ],
)
def test_anything_else_a_server_could_be_told_is_refused(path: str, body: object) -> None:
    with pytest.raises(Refused):
        readonly.check(generating(path, body))


def test_a_request_that_only_tells_has_no_body() -> None:
    with pytest.raises(Refused):
        readonly.check(request(path="/server_info", body=b"{}"))


@pytest.mark.parametrize(
    "base",
    [
        "file:///etc/passwd",
        "http://user:pass@127.0.0.1:1",
        "http://127.0.0.1:1/x",
        "ftp://h",
        "http://h:1\r\nX:1",
        "http://h:0",
        "http://h:99999",
        "http://[::1",
        "http://[:::::]:1",
    ],
)
def test_http_base_is_scheme_address_port(base: str) -> None:
    with pytest.raises(Refused):
        readonly.check(request(base=base))


@pytest.mark.parametrize("cap", [-1, 0, readonly.MAX_CAP + 1])
def test_a_cap_out_of_bounds_is_refused(cap: int) -> None:
    for question in (Command(key="k", argv=("id", "-u"), cap=cap), request(cap=cap)):
        with pytest.raises(Refused):
            readonly.check(question)


def test_the_largest_stdin_and_cap_pass_and_one_byte_more_does_not() -> None:
    most = Command(key="k", argv=("id", "-u"), cap=readonly.MAX_CAP, stdin=bytes(readonly.MAX_STDIN))
    readonly.check(most)
    readonly.check(request(cap=readonly.MAX_CAP))
    with pytest.raises(Refused):
        readonly.check(replace(most, stdin=bytes(readonly.MAX_STDIN + 1)))


def test_http_headers_cannot_smuggle() -> None:
    with pytest.raises(Refused):
        readonly.check(request(headers=(("Accept", "a\r\nX-Evil: 1"),)))
    with pytest.raises(Refused):
        readonly.check(request(headers=(("Host", "elsewhere"),)))


class Road(Session):
    """Counts what would have left."""

    def __init__(self) -> None:
        super().__init__(Host(name="h"), Redactor(), threading.Event())
        self.left: list[Question] = []

    @property
    def connection(self) -> Connection:
        return Connection(transport="none")

    def _carry(self, questions: tuple[Question, ...]) -> Sequence[Result]:
        self.left += questions
        return [CommandResult(question=q, exit_code=0) for q in questions if isinstance(q, Command)]


def test_a_refused_question_never_leaves_and_costs_no_other() -> None:
    road = Road()
    good, bad = Command(key="a", argv=("uname", "-s")), Command(key="b", argv=("rm", "/srv"))
    acts = request(path="/flush_cache")
    answers = road.ask((bad, good, acts, good))
    assert road.left == [good, good]
    assert [answer.question for answer in answers] == [bad, good, acts, good]
    assert [answer.whole for answer in answers] == [False, True, False, True]
    for answer in (answers[0], answers[2]):
        assert "refused before it was sent" in answer.trouble
    assert road.ask((bad,))[0].trouble
    assert road.left == [good, good]
