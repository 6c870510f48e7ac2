"""The policy: what leaves, and what is refused before it leaves."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from ddprobe import readonly
from ddprobe.errors import Refused
from ddprobe.model import Command, CommandResult, Connection, Glob, Host, HttpRequest, Question, Result, Word
from ddprobe.redact import Redactor
from ddprobe.sessions.base import Session

ALLOWED: list[tuple[Word, ...]] = [
    ("cat", "/proc/cpuinfo"),
    ("cat", "/proc/4711/environ"),
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
]


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


@pytest.mark.parametrize(
    "base",
    [
        "file:///etc/passwd",
        "http://user:pass@127.0.0.1:1",
        "http://127.0.0.1:1/x",
        "ftp://h",
        "http://h:1\r\nX:1",
    ],
)
def test_http_base_is_scheme_address_port(base: str) -> None:
    with pytest.raises(Refused):
        readonly.check(request(base=base))


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


def test_one_refused_question_keeps_all_of_its_tuple_home() -> None:
    road = Road()
    good, bad = Command(key="a", argv=("uname", "-s")), Command(key="b", argv=("rm", "/srv"))
    with pytest.raises(Refused):
        road.ask((good, bad))
    assert road.left == []
    road.ask((good,))
    assert road.left == [good]
