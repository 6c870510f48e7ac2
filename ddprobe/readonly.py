"""What may be sent to a host: the whole policy on one page.

A question leaves only if it is an argv of an allow-listed program with allow-listed options, or an HTTP request for
an allow-listed path. Nothing here can write, install, signal or reconfigure; what is not on the page is refused.
Two kinds of reading are refused as well: files that hold secrets, and files under /dev that block or act when read.

First the lists, then `check`, which holds a question against them. How an argv is read is in `argv`.
"""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import urlsplit

from ddprobe.argv import NotAllowed, Options, expands_to, names_of, operands
from ddprobe.errors import Refused
from ddprobe.model import Command, Glob, HttpRequest, Question, Word

MAX_STDIN = 8 * 1024 * 1024
MAX_CAP = 64 * 1024 * 1024

# --- programs ----------------------------------------------------------------------------------------------

_ANY = re.compile(r"(?s).*\Z")
_NUMBER = re.compile(r"\d{1,9}\Z")
_UNIT = re.compile(r"[A-Za-z0-9][A-Za-z0-9@:_.\\-]{0,200}\.service\Z")

# Program → its options that may stand in the argv. An option with a value lists the value's form.
PROGRAMS: dict[str, Options] = {
    "cat": {},
    "head": {"-c": _NUMBER, "-n": _NUMBER},
    "tail": {"-c": re.compile(r"\+?\d{1,12}\Z"), "-n": re.compile(r"\+?\d{1,9}\Z")},
    "wc": {"-l": None, "-c": None},
    "sed": {"-n": re.compile(r"\d{1,9},\d{1,9}p;\d{1,9}q\Z")},
    "grep": {
        "-E": None, "-F": None, "-H": None, "-I": None, "-a": None, "-c": None, "-h": None, "-i": None,
        "-l": None, "-n": None, "-o": None, "-s": None, "-w": None, "-m": _NUMBER, "-e": _ANY,
        "-A": _NUMBER, "-B": _NUMBER, "-C": _NUMBER,
    },
    "find": {
        "-L": None, "-xdev": None, "-maxdepth": _NUMBER, "-mindepth": _NUMBER,
        "-type": re.compile(r"[fdl]\Z"), "-name": _ANY, "-path": _ANY, "-prune": None, "-o": None,
        "-not": None, "-print": None, "-size": re.compile(r"[+-]?\d{1,9}[ckMG]?\Z"),
    },
    "ls": {"-1": None, "-A": None, "-a": None, "-d": None, "-l": None, "-L": None, "-n": None},
    "readlink": {"-f": None},
    "stat": {"-L": None, "-c": re.compile(r"[%A-Za-z0-9 |:]*\Z")},
    "uname": {"-a": None, "-s": None, "-r": None, "-m": None},
    "id": {"-u": None, "-un": None},
    "hostname": {},
    "date": {"+%s.%N": None, "+%s": None},
    "journalctl": {
        "-q": None, "--no-pager": None, "-k": None, "-o": re.compile(r"short-iso\Z"), "-n": _NUMBER, "-u": _UNIT, "--user-unit": _UNIT,
    },
    "dmesg": {},
    "nvidia-smi": {},
    "dcgmi": {},
    "rocm-smi": {},
    "amd-smi": {},
    "echo": {},
    "true": {},
}  # fmt: skip
# Tools of GPU drivers can also reset cards, set clocks and limits, and clear counters. So it is no list of options that
# says what they may be asked, but whole command lines: one that is none of these is refused.
_FIELDS = r"[a-z0-9_.,]{1,2000}"
FORMS: dict[str, re.Pattern[str]] = {
    "nvidia-smi": re.compile(
        rf"(--query-(gpu|compute-apps|remapped-rows)={_FIELDS} --format=csv(,noheader)?(,nounits)?( -l \d{{1,3}}| -lms \d{{3,5}})?"
        r"|-L|--version|topo -m)\Z"
    ),
    "dcgmi": re.compile(r"(-v|discovery -l|dmon -e \d{1,4}(,\d{1,4}){0,31} -d \d{3,5}( -c \d{1,6})?)\Z"),
    "rocm-smi": re.compile(r"--show[a-z]+( --show[a-z]+| vram){0,15} --json\Z"),
    "amd-smi": re.compile(r"(version|static|metric) --json\Z"),
}
_GOES_ON = re.compile(r"nvidia-smi .* -l(ms)? |dcgmi dmon ")
"""What goes on until somebody ends it: allowed only with a timeout of its own."""
MAX_GOING_ON = 4 * 3600.0
_ON_FILES = frozenset({"cat", "head", "tail", "wc", "sed", "grep", "find", "ls", "readlink", "stat"})
"""Without a file they would read stdin, or all of the folder they are started in."""
_ON_NOTHING = frozenset({"uname", "id", "hostname", "date", "journalctl", "dmesg"})
_GLOB = re.compile(r"/[A-Za-z0-9_./*?\[\]+@,=:-]*\Z")
_BROAD = re.compile(r"/(proc(/[^/]+)?|sys|dev|run|var|home|usr|mnt|media|nfs)?\Z")
"""Where a search without `-maxdepth` would cost the host much."""

# --- files -------------------------------------------------------------------------------------------------

# Files that hold secrets, and places where reading does something or never ends. A path is judged as it is written
# and as it reads without `//`, `.` and `..`, seen from the root of every process (`/proc/1/root/etc/shadow`). A link
# elsewhere that leads to such a file cannot be told from here: redaction stands behind this page.
_SECRET_FILE = re.compile(
    r"(^|/)(\.ssh|\.gnupg|\.aws|\.azure|\.kube|\.docker|\.config/(gcloud|gh|op)|\.password-store|\.local/share/keyrings)(/|\Z)"
    r"|(^|/)\.(netrc|pgpass|my\.cnf|git-credentials|pypirc|npmrc|envrc|env|env\.[^/]*|vault-token|[a-z_]*_history)\Z"
    r"|(^|/)fish_history\Z"
    r"|(^|/)id_(rsa|dsa|ecdsa|ed25519)[^/]*\Z|(^|/)ssh_host_[^/]*_key\Z"
    r"|(^|/)etc/(g?shadow|sudoers|security/opasswd)[^/]*|(^|/)etc/(sudoers\.d|kubernetes)(/|\Z)"
    r"|(^|/)(var/)?run/secrets(/|\Z)"
    r"|(^|/)\.?(huggingface|modelscope)/(token|stored_tokens|credentials)(/|\Z)|(^|/)(kaggle|credentials)\.json\Z"
    r"|(^|/)\.cargo/credentials[^/]*\Z"
    r"|\.(pem|key|p12|pfx|keytab|jks|ppk|kdbx)\Z"
)
_LIVE_FILE = re.compile(
    r"^/dev/(?!null\Z|shm/)"
    r"|^/proc/(kcore|vmcore|kmsg|kpage\w*|sysrq-trigger|acpi/event)\Z|^/proc/bus/"
    r"|^/proc/([^/]+/)(task/[^/]+/)?((mem|pagemap|clear_refs)\Z|map_files/|fd/)"
    r"|^/sys/kernel/(debug|tracing)(/|\Z)|^/sys/.*/(resource\d+(_wc)?|rom|config|vpd|data)\Z|^/sys/firmware/efi/"
)
_ENVIRON = re.compile(r"(^|/)proc/[^/]+/(task/[^/]+/)?(cwd/|root/)?environ\Z")
# Names that a pattern may turn out to stand for, in whatever folder.
_SECRET_NAMES = (
    "shadow", "gshadow", "sudoers", "opasswd", ".netrc", ".pgpass", ".env", ".npmrc", ".git-credentials", ".bash_history",
    "id_rsa", "id_ed25519", "ssh_host_rsa_key", "x.key", "x.pem", "x.p12", "stored_tokens", "environ",
)  # fmt: skip
_SECRET_FOLDERS = (".ssh", ".aws", ".azure", ".kube", ".docker", ".gnupg", ".huggingface", ".password-store")
_BELOW_LIVE = re.compile(r"(\d+|self|thread-self|bus|acpi|fd|shm|pts|kernel|firmware|devices|class)\Z")
"""What may stand below /dev, /proc or /sys in `/*/…`; `/*/lib/python3*/…` (a server started in `/`) is none of it."""
_LIVE_NAMES = ("resource0", "rom", "config", "vpd", "data")
_LISTED = re.compile(r"/dev/null\Z|/proc/[^/]+/fd/[^/]*\Z")
"""What may be listed though not read."""
_CONTENT = frozenset({"cat", "head", "tail", "wc", "sed", "grep"})

# --- HTTP --------------------------------------------------------------------------------------------------

# A GET is not harmless by being a GET: SGLang flushes its cache on one.
HTTP_PATHS: frozenset[tuple[str, str]] = frozenset(
    {
        ("GET", "/server_info"), ("GET", "/get_server_info"),
        ("GET", "/model_info"), ("GET", "/get_model_info"),
        ("GET", "/v1/loads"), ("GET", "/v1/models"), ("GET", "/metrics"),
        ("GET", "/health"), ("GET", "/ready"), ("GET", "/ping"),
        ("GET", "/version"), ("GET", "/load"),
        ("GET", "/props"), ("GET", "/slots"),
    }
)  # fmt: skip
# What makes a server compute: path → the fields that its JSON body may have. Whatever else a server would take (LoRA
# adapters, sessions, files to load, logs to write) is refused.
_SAMPLING = frozenset({"temperature", "max_new_tokens", "ignore_eos"})
GENERATING: dict[str, frozenset[str]] = {
    "/generate": frozenset({"input_ids", "text", "sampling_params", "stream"}),
    "/completion": frozenset(
        {
            "prompt", "n_predict", "temperature", "ignore_eos", "stream", "timings_per_token", "return_tokens",
            "cache_prompt", "seed", "samplers", "response_fields",
        }
    ),
    "/v1/completions": frozenset(
        {
            "model", "prompt", "max_tokens", "min_tokens", "temperature", "repetition_penalty", "ignore_eos", "stream", "stream_options",
            "return_token_ids", "return_spec_tokens_details", "timings_per_token", "return_tokens", "cache_prompt", "seed", "samplers",
        }
    ),
    "/tokenize": frozenset(
        {
            "model", "prompt", "content", "add_special_tokens", "add_special", "parse_special", "with_pieces",
            "messages", "chat_template_kwargs",
        }
    ),
    "/apply-template": frozenset({"messages", "chat_template_kwargs"}),
}  # fmt: skip
_TELLING = frozenset({"/tokenize", "/apply-template"})
"""They compute no tokens, so there is no length to bound."""
_SWITCHES = frozenset({"enable_thinking", "thinking"})
"""What a chat template may be told. A template of one's own would be a program that runs there."""
_LENGTHS = ("max_tokens", "n_predict", "max_new_tokens")
MAX_OUTPUT = 16 * 1024
"""Tokens that one request may ask for."""
MAX_BODY = 32 * 1024 * 1024
_HTTP_BASE = re.compile(r"https?://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+)(:\d{1,5})?\Z")
_HTTP_HEADERS = frozenset({"accept", "content-type"})


# --- holding a question against the lists ------------------------------------------------------------------


def check(question: Question) -> None:
    """Raise `Refused` unless the policy allows this question. The one gate before anything leaves."""
    if isinstance(question, Command):
        _check_command(question)
    else:
        _check_http(question)


def holds_secrets(path: str) -> bool:
    """True for a file that no question may read."""
    return any(_SECRET_FILE.search(name) for name in names_of(path))


def _refuse(question: Question, why: str) -> Refused:
    return Refused(
        f"refused before it was sent: {why} ({str(question)[:200]!r})", "ddprobe only reads; see readonly.py"
    )


def _check_command(command: Command) -> None:
    if not command.argv or not isinstance(command.argv[0], str):
        raise _refuse(command, "no program is named")
    program = command.argv[0]
    if program not in PROGRAMS:
        raise _refuse(command, f"the program {program!r} is not on the list")
    if len(command.stdin) > MAX_STDIN or not 0 < command.cap <= MAX_CAP:
        raise _refuse(command, "stdin or output cap is out of bounds")
    for word in command.argv:
        if "\0" in str(word):
            raise _refuse(command, "a NUL byte in a word")
        if isinstance(word, Glob) and not _GLOB.match(word.pattern):
            raise _refuse(command, f"the pattern {word.pattern!r} is not a plain absolute path pattern")
    if program in FORMS:
        _check_form(command, program)
        return
    try:
        given = operands(command.argv, PROGRAMS[program])
    except NotAllowed as error:
        raise _refuse(command, str(error)) from None
    _check_operands(command, program, tuple(map(str, given)))
    for word in given:
        _check_path(command, word)


def _check_form(command: Command, program: str) -> None:
    """A tool of a GPU driver: the whole line is on the list, and one that goes on ends by itself."""
    words = command.argv[1:]
    plain = all(isinstance(word, str) and word and not set(word) & set(" \t\n") for word in words)
    if not plain or not FORMS[program].match(" ".join(map(str, words))):
        raise _refuse(command, f"this command line of {program} is not on the list")
    goes_on = _GOES_ON.match(str(command))
    if goes_on and (command.timeout is None or not 0 < command.timeout <= MAX_GOING_ON):
        raise _refuse(command, f"{program} would go on for ever: it needs a timeout")


def _check_operands(command: Command, program: str, given: tuple[str, ...]) -> None:
    argv = command.argv
    if program == "sed" and (argv[1:2] != ("-n",) or argv.count("-n") != 1):
        # Else sed takes its first file for the script, and a script can write and run.
        raise _refuse(command, "sed's script must come with -n, once and first")
    if program == "grep" and "-e" not in argv:
        raise _refuse(command, "grep's pattern must come with -e")
    if program in _ON_NOTHING and given:
        raise _refuse(command, f"{program} takes no operands here")
    if program == "journalctl" and not (
        {"-u", "--user-unit", "-k"} & set(argv) and {"-n", "--no-pager"} <= set(argv)
    ):
        raise _refuse(
            command, "a journal is read of one unit or the kernel, a number of lines, and without a pager"
        )
    if program in _ON_FILES and not given:
        raise _refuse(command, f"{program} without a file")
    for path in given:
        if program in _ON_FILES and not path.startswith("/"):
            raise _refuse(command, f"{path!r} is not an absolute path")
        if program == "find" and "-maxdepth" not in argv and any(map(_BROAD.match, names_of(path))):
            raise _refuse(command, f"a search through all of {path!r} would cost the host much")


def _check_path(command: Command, word: Word) -> None:
    path = str(word)
    names = names_of(path)
    content = command.argv[0] in _CONTENT
    if holds_secrets(path):
        raise _refuse(command, f"{path!r} looks like a file that holds secrets")
    if any(map(_LIVE_FILE.search, names)) and (content or not _LISTED.match(path)):
        raise _refuse(command, f"reading {path!r} can block or act")
    if any(map(_ENVIRON.search, names)) and (
        command.argv[0] != "cat" or len(command.argv) != 2 or isinstance(word, Glob)
    ):
        raise _refuse(command, "an environment is read by `cat` alone, so that redaction sees it whole")
    if isinstance(word, Glob) and content and (example := _could_name(names[2])):
        raise _refuse(command, f"the pattern {path!r} could stand for {example}")


def _could_name(path: str) -> str:
    """What the pattern may turn out to name although it must not; empty when there is nothing."""
    parts = path.split("/")[1:]
    wild = [place for place, part in enumerate(parts) if set(part) & set("*?[")]
    top = parts[0]
    if 0 in wild and (len(parts) < 4 or 1 in wild or _BELOW_LIVE.match(parts[1])):
        return "/dev, /proc and /sys"
    if top == "proc" and not path.startswith("/proc/driver/") and any(place > 1 for place in wild):
        return "what blocks or acts when read"
    if top == "sys" and any(place < 3 for place in wild):
        return "what blocks or acts when read"
    for place in wild:
        names: tuple[str, ...] = _SECRET_FOLDERS
        if place == len(parts) - 1:
            names = _SECRET_NAMES + (_LIVE_NAMES if top == "sys" else ())
        elif place == 1 and top == "proc":
            names = ()
        if found := next((name for name in names if expands_to(parts[place], name)), ""):
            return found
    return ""


def _check_http(request: HttpRequest) -> None:
    if b"\0" in request.body:
        raise _refuse(request, "a NUL byte in the body")
    if request.method == "POST" and request.path in GENERATING:
        _check_generating(request)
    elif (request.method, request.path) not in HTTP_PATHS:
        raise _refuse(request, f"{request.method} {request.path} is not on the list")
    elif request.body:
        raise _refuse(request, f"{request.method} {request.path} takes no body")
    if not _HTTP_BASE.match(request.base) or not _has_port(request.base):
        raise _refuse(request, f"{request.base!r} is not scheme://address:port")
    for name, value in request.headers:
        if name.lower() not in _HTTP_HEADERS or re.search(r"[\r\n\0]", value):
            raise _refuse(request, f"the header {name!r} is not on the list")
    if not 0 < request.cap <= MAX_CAP:
        raise _refuse(request, "the cap is out of bounds")


def _check_generating(request: HttpRequest) -> None:
    """One completion of bounded length, or the ids of a text, and nothing else that the server could be told to do."""
    if len(request.body) > MAX_BODY:
        raise _refuse(request, f"a body of {len(request.body)} bytes is too large")
    try:
        body = json.loads(request.body)
    except ValueError:
        raise _refuse(request, "its body is not JSON") from None
    if not isinstance(body, dict):
        raise _refuse(request, "its body is no JSON object")
    sampling = body.get("sampling_params", {})
    if not isinstance(sampling, dict):
        raise _refuse(request, "its sampling_params are no JSON object")
    unknown = [*(set(body) - GENERATING[request.path]), *(set(sampling) - _SAMPLING)]
    if unknown:
        raise _refuse(request, f"the field {min(unknown)!r} is not on the list")
    if not _plain_chat(body):
        raise _refuse(
            request, "a chat is one user message of text, and its template is told of thinking alone"
        )
    if request.path in _TELLING:
        return
    lengths = [scope[name] for scope in (body, sampling) for name in _LENGTHS if name in scope]
    if not lengths or not all(type(length) is int and 0 < length <= MAX_OUTPUT for length in lengths):
        raise _refuse(request, f"it must ask for 1 to {MAX_OUTPUT} tokens")


def _plain_chat(body: dict[str, Any]) -> bool:
    """Whether the chat in it, if there is one, is no more than a text and whether to think."""
    switches = body.get("chat_template_kwargs", {})
    told = isinstance(switches, dict) and all(
        name in _SWITCHES and type(switch) is bool for name, switch in switches.items()
    )
    messages = body.get("messages", [{"role": "user", "content": ""}])
    if not told or not isinstance(messages, list) or len(messages) != 1:
        return False
    (message,) = messages
    return (
        isinstance(message, dict)
        and set(message) == {"role", "content"}
        and message["role"] == "user"
        and isinstance(message["content"], str)
    )


def _has_port(base: str) -> bool:
    """Whether the address in brackets is one, and the port (or none) within bounds."""
    try:
        return urlsplit(base).port != 0
    except ValueError:
        return False
