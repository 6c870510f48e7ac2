"""The commands that people type, as processes of their own, against a real sshd with a made-up GPU host behind it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.real import gpuhost
from tests.real import sshd as real
from tests.real.conftest import StartServer
from tests.real.gpuhost import GpuHost


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str
    reports: Path

    @property
    def report(self) -> dict[str, Any]:
        return dict(json.loads(self.out))

    @property
    def folder(self) -> Path:
        (only,) = self.reports.iterdir()
        return only


class Person:
    """Somebody at a laptop with an inventory and a terminal that is a pipe."""

    def __init__(self, folder: Path, hosts: dict[str, dict[str, Any]]) -> None:
        self.folder = folder
        self.hosts = folder / "hosts.yaml"
        self.hosts.write_text(yaml.safe_dump({"default": next(iter(hosts)), "hosts": hosts}))
        self.count = 0

    def types(self, *words: str, expect: int | None = 0, limit: float = 280, **environment: str) -> Ran:
        self.count += 1
        reports = self.folder / f"reports-{self.count}"
        known = {"DDPROBE_HOSTS": str(self.hosts), "DDPROBE_REPORTS": str(reports), "COLUMNS": "120"}
        done = subprocess.run(
            [sys.executable, "-m", "ddprobe", *words],
            env={**os.environ, **known, "SGLANG_KEY": gpuhost.SECRET, **environment},
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=limit,
            check=False,
        )
        ran = Ran(done.returncode, done.stdout, done.stderr, reports)
        assert "Traceback" not in ran.out + ran.err, ran.err
        assert expect is None or ran.code == expect, f"exit {ran.code}\n{ran.out}\n{ran.err}"
        return ran


@pytest.fixture(scope="module")
def gpu() -> Iterator[GpuHost]:
    with real.folder() as root, gpuhost.gpu_host(root) as running:
        yield running


@pytest.fixture
def person(tmp_path: Path, server: real.Server, gpu: GpuHost) -> Person:  # noqa: ARG001 (the host must run)
    return Person(tmp_path, {"gpu1": address(server, api_key_env="SGLANG_KEY")})


def address(server: real.Server, **more: Any) -> dict[str, Any]:
    return {"address": "127.0.0.1", "port": server.port, "user": server.user, **more}


def facts_of(ran: Ran, gpu: GpuHost) -> list[dict[str, Any]]:
    """What is known of this host's server; the machine that runs the tests may have others."""
    facts = [fact for step in ran.report["steps"] for fact in step["facts"]]
    mine = (f"sglang pid {gpu.pid}", "", None)
    return [f for f in facts if f.get("pid", gpu.pid) == gpu.pid and f.get("server") in mine]


def lines_of(path: Path, first: int, last: int) -> str:
    """What `sed -n 'first,lastp'` prints: the source of truth for `read`."""
    return subprocess.run(
        ["sed", "-n", f"{first},{last}p", str(path)], check=True, capture_output=True, text=True
    ).stdout


# --- inspect-config ----------------------------------------------------------------------------------------


def test_inspect_config_finds_everything_by_itself(person: Person, gpu: GpuHost) -> None:
    ran = person.types("inspect-config", "--json", "--fail-on", "never")
    report = ran.report
    facts = facts_of(ran, gpu)
    drafter, target = (
        (next(f for f in facts if f["type"] == "ModelConfig" and f["role"] == role))
        for role in ("drafter", "target")
    )
    assert Path(drafter["path"]).parent == gpu.drafter
    assert (drafter["num_hidden_layers"], drafter["sliding_window"], drafter["block_size"]) == (6, 2048, 8)
    assert drafter["target_layer_ids"] == [1, 12, 24, 35, 47, 58]
    assert drafter["fc_weight_shape"] == [7168, 6 * 7168]
    assert Path(target["path"]).parent == gpu.target
    assert (target["num_hidden_layers"], target["kv_lora_rank"], target["vocab_size"]) == (61, 512, 163840)
    found = {f["what"] for f in facts if f["type"] == "Discovered"}
    assert {"package", "drafter", "target"} <= found
    assert all(f["origin"] for f in facts if f["type"] == "Discovered")

    mine = [finding for finding in report["findings"] if f"pid {gpu.pid}" in finding["subject"]]
    outcome = {finding["id"]: finding["outcome"] for finding in mine}
    # The configuration is the founding story's: sound but for YaRN's amplitude, which changed between releases.
    for sound in (
        "DC01",
        "DC02",
        "DC03",
        "DC05",
        "DC06",
        "DC07",
        "DC08",
        "DC11",
        "DC20",
        "DC22",
        "DC23",
        "DC25",
        "DC30",
    ):
        assert outcome[sound] == "pass", f"{sound}: {outcome[sound]}"
    assert outcome["DC32"] == "warn"
    assert outcome["EN02"] == "warn"
    for finding in report["findings"]:
        for cite in finding["cites"]:
            assert (ran.folder / cite["artefact"]).exists(), cite


def test_inspect_config_shows_the_three_side_by_side(person: Person) -> None:
    shown = person.types("inspect-config", "--fail-on", "never").out
    for wanted in (
        "drafter",
        "target",
        "2048",
        "yarn",
        "163838",
        "z-lab/Kimi-K2.6-DFlash",
        "moonshotai/Kimi-K2.6",
        "0.5.23",
    ):
        assert wanted in shown, f"{wanted} is not in:\n{shown}"
    assert "\x1b" not in shown, "colour went into a pipe"


def test_inspect_config_takes_a_path_and_a_hub_id(person: Person, gpu: GpuHost) -> None:
    odd = gpu.root / "odd name" / "config.json"
    odd.parent.mkdir(exist_ok=True)
    odd.write_bytes(b'\xef\xbb\xbf{"num_hidden_layers": 2, // two\n "rope_theta": NaN, "hidden_size": 7168,}')
    ran = person.types(
        "inspect-config",
        "--drafter",
        str(odd.parent),
        "--target",
        gpuhost.TARGET_ID,
        "--json",
        "--fail-on",
        "never",
    )
    read = {f["path"]: f for step in ran.report["steps"] for f in step["facts"] if f["type"] == "ModelConfig"}
    assert str(gpu.target / "config.json") in read
    drafter = read[str(odd)]
    assert (drafter["role"], drafter["num_hidden_layers"], drafter["rope"]["theta"]) == ("drafter", 2, None)


def test_inspect_config_of_a_model_that_is_not_there_names_the_nearest(person: Person) -> None:
    ran = person.types(
        "inspect-config", "--drafter", "z-lab/Kimi-K2.5-DFlash", "--fail-on", "never", expect=4
    )
    assert "z-lab/Kimi-K2.6-DFlash" in ran.out


# --- secrets -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [("server",), ("inspect-config",)], ids=" ".join)
def test_no_secret_reaches_disk_or_screen(person: Person, command: tuple[str, ...]) -> None:
    ran = person.types(*command, "-v", "--fail-on", "never", expect=None)
    files = [path for path in ran.folder.rglob("*") if path.is_file()]
    assert any(b"launch_command" in path.read_bytes() for path in files), (
        "the answer with the key was never stored"
    )
    for secret in (gpuhost.SECRET, "hf_canaryCANARY"):
        assert secret not in ran.out + ran.err
        for path in files:
            assert secret.encode() not in path.read_bytes(), path
    assert all(path.stat().st_mode & 0o077 == 0 for path in [ran.folder, *ran.folder.rglob("*")])


# --- grep and read -----------------------------------------------------------------------------------------


def test_grep_finds_what_grep_finds(person: Person, gpu: GpuHost) -> None:
    report = person.types("grep", "commit_lens|accept", "--in", "srt/speculative/*", "--json").report
    folder = gpu.package / "srt" / "speculative"
    truth = subprocess.run(
        ["grep", "-rnE", "--include=*.py", "commit_lens|accept", str(folder)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    wanted = sorted(tuple(line.removeprefix(f"{gpu.package}/").split(":", 2)[:2]) for line in truth)
    assert sorted((hit["path"], str(hit["line"])) for hit in report["hits"]) == wanted
    (search,) = (f for s in report["steps"] for f in s["facts"] if f["type"] == "SourceSearch")
    assert search["hits"] == len(truth)
    assert search["version"] == "0.5.23"
    hit = next(h for h in report["hits"] if h["path"].endswith("dflash_worker_v2.py") and h["line"] == 219)
    assert hit["within"] == "_commit_accept"


def test_grep_says_what_it_searched_and_proposes_ranges(person: Person) -> None:
    shown = person.types("grep", "def _commit_accept", "--in", "srt/speculative/*").out
    assert re.search(r"\d+ files searched", shown), shown
    assert re.search(r"ddprobe read srt/speculative/dflash_worker_v2\.py:\d+-\d+", shown), shown


def test_a_proposal_can_be_typed_as_it_stands(person: Person) -> None:
    shown = person.types("grep", "def _commit_accept", "--in", "srt/speculative/*").out
    proposal = re.search(r"ddprobe (read srt/\S+)( \S+)?", shown)
    assert proposal
    assert "def _commit_accept" in person.types(*proposal[0].split()[1:]).out


def test_read_gives_each_range_its_own_status(person: Person, gpu: GpuHost) -> None:
    report = person.types(
        "read", "dflash_worker_v2.py:212-219,2485-2500,99990-99999", "gpu1", "--json"
    ).report
    file = gpu.package / "srt" / "speculative" / "dflash_worker_v2.py"
    total = len(file.read_bytes().splitlines())
    assert [(r["first"], r["last"], r["total"], r["status"]) for r in report["ranges"]] == [
        (212, 219, total, "complete"),
        (2485, 2500, total, "complete"),
        (99990, 99999, total, "past_end"),
    ]
    assert [r["text"].rstrip("\n") for r in report["ranges"][:2]] == [
        lines_of(file, 212, 219).rstrip("\n"),
        lines_of(file, 2485, 2500).rstrip("\n"),
    ]
    assert {r["path"] for r in report["ranges"]} == {"srt/speculative/dflash_worker_v2.py"}


def test_read_a_symbol_with_its_decorators(person: Person, gpu: GpuHost) -> None:
    report = person.types(
        "read", "srt/speculative/dflash_worker_v2.py", "--symbol", "_commit_accept", "--json"
    ).report
    (found,) = report["ranges"]
    source = (gpu.package / found["path"]).read_text().splitlines()
    assert found["status"] == "complete"
    assert any("def _commit_accept(" in line for line in found["text"].splitlines()[:3])
    assert source[found["first"] - 1 : found["last"]] == found["text"].splitlines()


@pytest.mark.parametrize(
    ("file", "status", "says"),
    [
        ("srt/speculative/dflash_wroker.py", "missing", "dflash_worker_v2.py"),
        ("common.py", "ambiguous", "srt/utils/common.py"),
        ("srt/speculative", "directory", "dflash_worker_v2.py"),
        ("/etc/no/such/file.py", "missing", "no such file"),
    ],
)
def test_read_explains_a_file_it_cannot_give(person: Person, file: str, status: str, says: str) -> None:
    ran = person.types("read", f"{file}:1-5", "gpu1", "--json", expect=4)
    (found,) = ran.report["ranges"]
    assert found["status"] == status
    assert says in found["note"]


def test_read_of_a_path_that_exists_only_here_says_exactly_that(person: Person) -> None:
    local = person.folder / "dflash_worker.py"
    local.write_text("x = 1\n")
    # The "host" of this test is the same machine: a relative path is what the person sees here and the host does not.
    ran = person.types("read", "dflash_worker.py:1-5", "gpu1", "--json", expect=4)
    assert "exists on this laptop" in ran.report["ranges"][0]["note"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("read", "x.py:5-1"), "5-1"),
        (("read", "x.py:a-b"), "a-b"),
        (("grep", r"\d+"), "[0-9]"),
        (("grep", "(unbalanced"), "unbalanced"),
        (("inspect-config", "--fail-on", "sometimes"), "sometimes"),
        (("inspect-confg",), "inspect-config"),
        (("probe", "source.gerp"), "source.grep"),
    ],
    ids=lambda part: " ".join(part) if isinstance(part, tuple) else "",
)
def test_a_wrong_question_is_2_and_nothing_was_run(person: Person, words: tuple[str, ...], says: str) -> None:
    ran = person.types(*words, expect=2)
    assert says in ran.err
    assert not ran.reports.exists() or not list(ran.reports.iterdir())


# --- server and hosts --------------------------------------------------------------------------------------


def test_server_tells_what_runs(person: Person, gpu: GpuHost) -> None:
    facts = facts_of(person.types("server", "--json", "--fail-on", "never"), gpu)
    (process,) = (f for f in facts if f["type"] == "ServerProcess")
    assert (process["engine"], process["pid"], process["version"]) == ("sglang", gpu.pid, "0.5.23")
    assert sorted(process["ranks"]) == sorted(gpu.ranks)
    assert process["package"] == str(gpu.package)
    assert f"127.0.0.1:{gpu.port}" in process["listens"]
    (state,) = (f for f in facts if f["type"] == "ServerState")
    assert (state["healthy"], state["version"], state["model"]) == (True, "0.5.23", gpuhost.TARGET_ID)
    assert state["draft_model"] == gpuhost.DRAFTER_ID
    resolved = next(f for f in facts if f["type"] == "ServerArgs" and f["resolved"])
    assert dict(resolved["values"])["speculative_num_draft_tokens"] == 8


def test_server_without_the_key_names_what_is_missing(
    tmp_path: Path, server: real.Server, gpu: GpuHost
) -> None:
    shown = Person(tmp_path, {"gpu1": address(server)}).types("server", "--fail-on", "never", expect=None)
    assert "api_key_env" in shown.out
    assert str(gpu.pid) in shown.out


def test_hosts_check_tells_each_host_apart(tmp_path: Path, sshd: StartServer, gpu: GpuHost) -> None:  # noqa: ARG001
    hosts = {
        "good": address(sshd()),
        "narrow": address(sshd(max_sessions=1)),
        "forced": address(sshd(forced_command="echo This account only runs backups.")),
        "stranger": address(sshd(in_known_hosts=False)),
        "locked": address(sshd(authorized=False)),
        "dead": {"address": "127.0.0.1", "port": gpuhost.free_port(), "user": "nobody"},
    }
    ran = Person(tmp_path, hosts).types("hosts", "--check", "--json", expect=3)
    error = {host["name"]: host["error"] for host in ran.report["hosts"]}
    assert error["good"] == error["narrow"] == ""
    assert "This account only runs backups." in error["forced"]
    assert "SHA256:" in error["stranger"]
    assert error["locked"]
    assert "refused" in error["dead"].lower()
    keys = {h["name"]: (h["connection"] or {}).get("host_key", "") for h in ran.report["hosts"]}
    assert keys["good"].startswith("ssh-ed25519 SHA256:")


def test_a_forced_command_is_one_clear_sentence_and_3(tmp_path: Path, sshd: StartServer) -> None:
    ran = Person(
        tmp_path, {"gpu1": address(sshd(forced_command="echo This account only runs backups."))}
    ).types("inspect-config", expect=3)
    assert "This account only runs backups." in ran.out + ran.err


def test_max_sessions_1_serves_a_whole_look(tmp_path: Path, sshd: StartServer, gpu: GpuHost) -> None:
    person = Person(tmp_path, {"gpu1": address(sshd(max_sessions=1), api_key_env="SGLANG_KEY")})
    assert person.types("grep", "commit_lens", "--json").report["hits"]
    report = person.types("server", "--json", "--fail-on", "never").report
    assert any(
        f["type"] == "ServerProcess" and f["pid"] == gpu.pid for s in report["steps"] for f in s["facts"]
    )


def test_a_plain_user_is_told_what_could_not_be_seen(
    tmp_path: Path, sshd: StartServer, plain_user: real.Account, gpu: GpuHost
) -> None:
    person = Person(tmp_path, {"gpu1": address(sshd(who=plain_user))})
    ran = person.types("server", "--json", "--fail-on", "never", expect=None)
    (process,) = (f for f in facts_of(ran, gpu) if f["type"] == "ServerProcess")
    assert (process["pid"], process["environment"]) == (gpu.pid, {})
    shown = person.types("server", "--fail-on", "never", expect=None).out
    assert f"pid {gpu.pid} is root's" in shown
    assert "environment" in shown


# --- the host is as it was ---------------------------------------------------------------------------------


def test_the_host_is_unchanged(
    tmp_path: Path, sshd: StartServer, plain_user: real.Account, gpu: GpuHost
) -> None:
    (plain_user.home / ".bash_history").write_text("ls\n")
    person = Person(tmp_path, {"gpu1": address(sshd(who=plain_user))})
    before = tree(gpu.root), tree(plain_user.home), ours(gpu)
    others = set(running_as(plain_user.name))  # what earlier tests of this account have not ended yet
    for words in (
        ("inspect-config",),
        ("server",),
        ("grep", "commit"),
        ("read", "dflash_worker_v2.py:1-9"),
        ("hosts", "--check"),
    ):
        person.types(*words, "--fail-on", "never", expect=None)
    assert (tree(gpu.root), tree(plain_user.home), ours(gpu)) == before
    # What sshd itself runs for a connection ends a moment after it.
    limit = time.monotonic() + 0.7
    while (left := set(running_as(plain_user.name)) - others) and time.monotonic() < limit:
        time.sleep(0.05)
    assert left == set()


def tree(root: Path) -> dict[str, tuple[int, int, int]]:
    """Every file with its mode, size and time of change (not of access)."""
    found = {}
    for path in [root, *root.rglob("*")]:
        status = path.lstat()
        found[str(path)] = (status.st_mode, status.st_size, status.st_mtime_ns)
    return found


def ours(gpu: GpuHost) -> list[str]:
    """The processes of the made-up host."""
    return [Path(f"/proc/{pid}/cmdline").read_text() for pid in (gpu.pid, *gpu.ranks)]


def running_as(user: str) -> list[str]:
    """Process id and command line of every process of that user."""
    pids = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()]
    found = []
    for pid in pids:
        if owner(pid) == user and not ended(pid):
            with contextlib.suppress(OSError):  # it has ended meanwhile
                found.append(f"{pid} " + Path(f"/proc/{pid}/cmdline").read_text("utf-8", "replace"))
    return found


def ended(pid: int) -> bool:
    """A zombie: it has ended, and waits for its parent to ask how."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def owner(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}").owner()
    except (OSError, KeyError):
        return ""


# --- reports -----------------------------------------------------------------------------------------------


def test_a_report_can_be_listed_and_shown_again(person: Person) -> None:
    ran = person.types("read", "dflash_worker_v2.py:212-219", "--json")
    listed = person.types("report", "list", DDPROBE_REPORTS=str(ran.reports))
    assert ran.folder.name in listed.out
    again = person.types("report", "show", ran.folder.name, "--json", DDPROBE_REPORTS=str(ran.reports))
    assert again.report == ran.report
    subprocess.run(["sha256sum", "--quiet", "-c", "MANIFEST.sha256"], cwd=ran.folder, check=True)
