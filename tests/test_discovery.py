"""Which servers run and what they run from, concluded from a transcript."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from ddprobe import readonly
from ddprobe.blocks import Pairs
from ddprobe.errors import Unanswered
from ddprobe.facts import Reach
from ddprobe.model import Command, CommandResult, Evidence, Finding, Gap, Host, Result
from ddprobe.probes.discovery import Discovery, discover, understand
from ddprobe.probes.engine.server import EngineServer as ServerProbe
from ddprobe.probes.host.reach import HostReach

SITE = "/opt/venv/lib/python3.11/site-packages"
SELF = (
    "lrwxrwxrwx 1 a a 0 Nov 30 15:48 /proc/self/ns/mnt -> mnt:[1]\n"
    "lrwxrwxrwx 1 a a 0 Nov 30 15:48 /proc/self/ns/net -> net:[1]\n"
)
SERVER = ("/opt/venv/bin/python", "-m", "sglang.launch_server", "--port", "30000")


def cmdline(*argv: str) -> str:
    return "".join(f"{word}\0" for word in argv)


def links(pid: int, exe: str = "/usr/bin/python3.11", cwd: str = "/srv") -> str:
    return f"dr-xr-xr-x 9 alice a 0 Nov 30 15:48 /proc/{pid}\n" + "".join(
        f"lrwxrwxrwx 1 alice a 0 Nov 30 15:48 /proc/{pid}/{name} -> {target}\n"
        for name, target in (
            ("exe", exe),
            ("cwd", cwd),
            ("root", "/"),
            ("ns/mnt", "mnt:[1]"),
            ("ns/net", "net:[1]"),
        )
    )


def status(*rows: tuple[int, int]) -> str:
    return "".join(
        f"/proc/{pid}/status:PPid:\t{up}\n/proc/{pid}/status:Uid:\t1000\t1000\n" for pid, up in rows
    )


def listening(pid: int, address: str, inode: int) -> str:
    return f"/proc/{pid}/net/tcp:  0: {address} 00000000:0000 0A 0:0 00:0 0 1000 0 {inode} 1 0\n"


def fds(*held: tuple[int, int]) -> str:
    return "".join(
        f"\n/proc/{pid}/fd:\ntotal 0\nlrwx------ 1 a a 64 Nov 30 15:48 3 -> socket:[{i}]\n" for pid, i in held
    )


def ask(answers: Mapping[str, str], host: Host | None = None) -> tuple[Discovery, list[Command]]:
    """Hold the conversation with a host that answers by key, and nothing (exit 1) where no answer is given."""
    host = host or Host(name="gpu1")
    conversation = discover(host)
    asked: list[Command] = []
    results: list[CommandResult] = []
    try:
        questions = next(conversation)
        while True:
            assert isinstance(questions, tuple)
            batch = []
            for question in questions:
                assert isinstance(question, Command)
                readonly.check(question)
                told = answers.get(question.key)
                batch.append(
                    CommandResult(
                        question=question, exit_code=1 if told is None else 0, stdout=(told or "").encode()
                    )
                )
            asked += [result.question for result in batch]
            results += batch
            questions = conversation.send(tuple(batch))
    except StopIteration as end:
        found = end.value
    assert isinstance(found, Discovery)
    assert understand(Evidence(host, tuple(results))) == found
    return found, asked


ONE = {
    "candidates": "/proc/41/cmdline\n",
    "cmdline-41": cmdline(*SERVER),
    "status": status((41, 1)),
    "links": links(41) + SELF,
    "listeners": listening(41, "0100007F:7530", 11),
    "fd": fds((41, 11)),
    "environ-41": "",
    "near-sglang": f"{SITE}/sglang/__init__.py\n{SITE}/sglang-0.5.23.dist-info\n",
    "near-sglang-version": f"{SITE}/sglang/_version.py:__version__ = version = '0.5.23'\n",
}


def test_one_server_and_its_package() -> None:
    found, asked = ask(ONE)
    (server,) = found.servers
    assert (server.pid, server.base, server.package, server.version) == (
        41, "http://127.0.0.1:30000", f"{SITE}/sglang", "0.5.23",
    )  # fmt: skip
    assert [(package.path, package.version) for package in found.packages] == [(f"{SITE}/sglang", "0.5.23")]
    assert found.notes == ()
    assert len(asked) <= 18


def test_the_search_fails_rather_than_finding_nothing() -> None:
    question = Command(key="candidates", argv=("grep",))
    late = CommandResult(question=question, timed_out=True, seconds=25.0)
    with pytest.raises(Unanswered, match=r"timed out after 25\.0 s"):
        understand(Evidence(Host(name="gpu1"), (late,)))


def test_a_fork_of_a_server_is_no_second_server() -> None:
    found, _ = ask(
        ONE
        | {
            "candidates": "/proc/41/cmdline\n/proc/45/cmdline\n",
            "cmdline-45": cmdline(*SERVER),
            "status": status((41, 1), (45, 41)),
            "environ-45": "",
        }
    )
    assert [server.pid for server in found.servers] == [41]


def test_two_servers_each_with_its_ranks_through_a_controller() -> None:
    titles = "".join(
        f"==> /proc/{pid}/cmdline <==\n{title}\0\0\n"
        for pid, title in (
            (51, "sglang::data_parallel_controller"),
            (52, "sglang::scheduler_DP0_TP0"),
            (61, "sglang::scheduler"),
            (62, "sglang::detokenizer"),
        )
    )
    found, _ = ask(
        ONE
        | {
            "candidates": "/proc/41/cmdline\n/proc/42/cmdline\n",
            "workers": "".join(f"/proc/{pid}/cmdline\n" for pid in (51, 52, 61, 62)),
            "cmdline-42": cmdline("/opt/venv/bin/python", "-m", "sglang.launch_server", "--port", "30001"),
            "titles": titles,
            "status": status((41, 1), (42, 1), (51, 41), (52, 51), (61, 42), (62, 42)),
            "links": links(41) + links(42) + SELF,
            "listeners": "".join(
                listening(pid, address, inode)
                for pid in (41, 42)
                for address, inode in (("0100007F:7530", 11), ("00000000:7531", 12))
            ),
            "fd": fds((41, 11), (42, 12)),
            "environ-42": "",
        }
    )
    assert [(s.pid, s.ranks, s.base) for s in found.servers] == [
        (41, (52,), "http://127.0.0.1:30000"),
        (42, (61,), "http://127.0.0.1:30001"),
    ]
    assert found.strays == ()


def test_a_port_of_its_own_wins_over_the_default_only_when_it_listens_there() -> None:
    found, _ = ask(ONE | {"listeners": listening(41, "0100007F:7777", 11)})
    assert found.servers[0].base == "http://127.0.0.1:30583"
    found, _ = ask(ONE | {"listeners": "", "fd": fds((41, 99))})
    assert (found.servers[0].base, found.servers[0].listens) == ("", ())


def test_loopback_inside_a_network_of_its_own_cannot_be_asked() -> None:
    away = links(41).replace("net:[1]", "net:[2]")
    found, _ = ask(ONE | {"links": away + SELF})
    assert found.servers[0].base == ""
    assert found.servers[0].listens == ("127.0.0.1:30000",)
    assert "inside its own network" in " ".join(found.notes)


def test_a_certificate_makes_it_https() -> None:
    found, _ = ask(ONE | {"cmdline-41": cmdline(*SERVER, "--ssl-certfile", "c.crt")})
    assert found.servers[0].base == "https://127.0.0.1:30000"


def test_what_another_user_hides_is_said_and_not_guessed() -> None:
    found, _ = ask({key: ONE[key] for key in ("candidates", "cmdline-41", "status")} | {"links": SELF})
    (server,) = found.servers
    assert (server.package, server.version, server.environment_seen, server.cwd) == ("", "", False, "")
    assert found.packages == ()
    notes = " ".join(found.notes)
    assert "environment of pid 41 cannot be seen" in notes
    assert "the sglang that pid 41 runs from was not found" in notes


def test_variables_that_were_not_kept_are_left_out() -> None:
    found, _ = ask(ONE | {"environ-41": cmdline("SGLANG_SIMULATE_ACC_LEN=3", "EDITOR=[not kept]")})
    assert found.servers[0].environment == (("SGLANG_SIMULATE_ACC_LEN", "3"),)


def test_the_start_folder_wins_over_site_packages_as_it_does_for_python() -> None:
    listing = f"/srv/sglang/__init__.py\n{ONE['near-sglang']}"
    found, _ = ask(
        ONE
        | {"near-sglang": listing, "near-sglang-version": '/srv/sglang/version.py:__version__ = "0.4.10"\n'}
    )
    assert (found.servers[0].package, found.servers[0].version) == ("/srv/sglang", "0.4.10")


@pytest.mark.parametrize(
    ("said", "path"),
    [
        (f"{SITE}/__editable__.sglang-0.5.9.pth:/code/sglang/python", "/code/sglang/python/sglang"),
        (f"{SITE}/__editable___sglang_0_5_9_finder.py:MAPPING: dict[str, str] = {{'sglang': '/code/py/sglang'}}", "/code/py/sglang"),
        (f'{SITE}/sglang-0.5.9.dist-info/direct_url.json:{{"dir_info": {{"editable": true}}, "url": "file:///code/sglang"}}', "/code/sglang/python/sglang"),
        (f'{SITE}/sglang-0.5.9.dist-info/direct_url.json:{{"url": "file:///code/sglang/python", "dir_info": {{"editable": true}}}}', "/code/sglang/python/sglang"),
        (f'{SITE}/sglang-0.5.9.dist-info/direct_url.json:{{"url": "file:///old", "dir_info": {{"editable": true}}}}\n{SITE}/__editable__.sglang-0.5.9.pth:/new/python', "/new/python/sglang"),
    ],
)  # fmt: skip
def test_editable_installs(said: str, path: str) -> None:
    listing = f"{SITE}/__editable__.sglang-0.5.9.pth\n{SITE}/sglang-0.5.9.dist-info\n"
    found, _ = ask(ONE | {"near-sglang": listing, "near-sglang-version": f"{said}\n"})
    assert (found.servers[0].package, found.servers[0].version) == (path, "0.5.9")


def test_an_editable_neighbour_is_not_taken_for_the_package() -> None:
    listing = f"{SITE}/__editable__.sglang_router-0.2.pth\n{SITE}/sglang_router-0.2.dist-info\n"
    said = f"{SITE}/__editable__.sglang_router-0.2.pth:/code/router\n"
    found, _ = ask(ONE | {"near-sglang": listing, "near-sglang-version": said})
    assert found.servers[0].package == ""


def test_a_bare_python_is_found_by_what_it_has_loaded() -> None:
    site = "/data/envs/a/lib/python3.11/site-packages"
    found, _ = ask(
        ONE
        | {
            "cmdline-41": cmdline("python3", "-m", "sglang.launch_server"),
            "libraries": f"/proc/41/maps:{site}/\n/proc/41/maps:{site}/\n",
            "near-sglang": f"{site}/sglang/__init__.py\n{site}/sglang-0.5.20.dist-info\n",
            "near-sglang-version": "",
        }
    )
    assert (found.servers[0].package, found.servers[0].version) == (f"{site}/sglang", "0.5.20")
    assert found.packages[0].origin == "libraries loaded of pid 41"


def test_the_running_servers_release_wins_and_the_others_are_listed() -> None:
    old = "/opt/old/lib/python3.11/site-packages"
    found, _ = ask(
        ONE
        | {
            "elsewhere-sglang": f"{old}/sglang/__init__.py\n{old}/sglang-0.5.12.dist-info\n",
            "elsewhere-sglang-version": f"{old}/sglang/_version.py:__version__ = version = '0.5.12'\n",
        }
    )
    assert [package.version for package in found.packages] == ["0.5.23"]
    assert [f.value for f in found.found if f.origin == "also installed"] == [f"{old}/sglang 0.5.12"]


def test_without_a_server_the_newest_installed_comes_first() -> None:
    listing = "".join(f"/opt/{name}/lib/python3.11/site-packages/sglang/__init__.py\n" for name in ("a", "b"))
    said = "".join(
        f"/opt/{name}/lib/python3.11/site-packages/sglang/_version.py:__version__ = version = '{version}'\n"
        for name, version in (("a", "0.5.9"), ("b", "0.5.23"))
    )
    found, _ = ask({"candidates": "", "elsewhere-sglang": listing, "elsewhere-sglang-version": said})
    assert [package.version for package in found.packages] == ["0.5.23", "0.5.9"]
    assert found.servers == ()


def test_the_inventory_comes_first() -> None:
    folder = "/data/fork/python/sglang"
    listing = f"{folder}/__init__.py\n{ONE['near-sglang']}"
    found, _ = ask(ONE | {"near-sglang": listing}, Host(name="gpu1", package=folder))
    assert [package.path for package in found.packages] == [folder, f"{SITE}/sglang"]


def test_the_inventorys_url_is_where_the_only_server_is_asked() -> None:
    found, _ = ask(ONE, Host(name="gpu1", url="http://10.0.0.5:8443/"))
    assert found.servers[0].base == "http://10.0.0.5:8443"


def test_a_container_is_looked_into_through_its_root() -> None:
    root = "/proc/41/root"
    site = "/usr/local/lib/python3.11/dist-packages"
    found, asked = ask(
        ONE
        | {
            "cmdline-41": cmdline("python3", "-m", "sglang.launch_server"),
            "links": links(41).replace("mnt:[1]", "mnt:[2]") + SELF,
            "cgroup": f"/proc/41/cgroup:0::/docker/{'ab' * 32}\n",
            "near-sglang": f"{root}{site}/sglang/__init__.py\n",
            "near-sglang-version": f"{root}{site}/sglang/_version.py:__version__ = version = '0.5.22'\n",
        }
    )
    (server,) = found.servers
    assert (server.container, server.root) == ("docker abababababab", root)
    assert (server.package, found.packages[0].path) == (f"{site}/sglang", f"{root}{site}/sglang")
    near = next(question for question in asked if question.key == "near-sglang")
    assert all(str(word).startswith(root) for word in near.argv[3:])


def test_more_candidates_than_are_looked_at_are_said() -> None:
    many = "".join(f"/proc/{pid}/cmdline\n" for pid in range(100, 180))
    found, asked = ask({"candidates": many})
    assert sum(question.key.startswith("cmdline-") for question in asked) == 64
    assert "16 further processes" in found.notes[0]


def test_workers_without_a_server_are_strays() -> None:
    found, _ = ask(
        {
            "candidates": "",
            "workers": "/proc/70/cmdline\n/proc/71/cmdline\n",
            "titles": "==> /proc/70/cmdline <==\nsglang::scheduler_TP0\0\n==> /proc/71/cmdline <==\nvim\0sglang::x\0",
            "status": status((70, 1), (71, 1)),
        }
    )
    assert found.strays == ((70, 1),)


def test_hidden_processes_are_mentioned() -> None:
    found, _ = ask({"candidates": "", "proc-mount": "proc /proc proc rw,relatime,hidepid=invisible 0 0\n"})
    assert "hidepid" in found.notes[0]


@pytest.mark.parametrize("engine", ["sglang", "vllm", "llamacpp", None])
def test_every_first_question_passes_the_policy(engine: str | None) -> None:
    questions = next(discover(Host(name="gpu1", engine=engine)))
    assert isinstance(questions, tuple)
    for question in questions:
        readonly.check(question)


@pytest.mark.parametrize("root", ["/", "/proc/41/root"])
@pytest.mark.parametrize(
    "python",
    [
        "/venv/bin/python",
        "/dev/shm/v/bin/python",
        "/bin/python3",
        "/python",
        "/usr/bin/python3",
        "/opt/venv/bin/python",
        "/home/a b/v/bin/python",
    ],
)
def test_wherever_a_server_s_python_lies_the_look_is_allowed(python: str, root: str) -> None:
    apart = "mnt:[2]" if root != "/" else "mnt:[1]"
    known = links(41, exe=python, cwd="/").replace("ns/mnt -> mnt:[1]", f"ns/mnt -> {apart}") + SELF
    started = cmdline(python, "-m", "sglang.launch_server", "--port", "30000")
    found, asked = ask(ONE | {"links": known, "cmdline-41": started})
    assert [server.pid for server in found.servers] == [41]
    assert any(question.key == "elsewhere-sglang" for question in asked)


def test_a_package_in_the_root_folder_is_found_from_there() -> None:
    near = {
        "near-sglang": "/sglang/__init__.py\n",
        "near-sglang-version": "/sglang/version.py:__version__ = '0.5.9'\n",
    }
    found, _ = ask(ONE | near | {"links": links(41, cwd="/") + SELF})
    assert (found.servers[0].package, found.servers[0].version) == ("/sglang", "0.5.9")


PROCESS_TABLE = ("candidates", "workers", "proc-mount")


def looked(mounts: CommandResult | None = None, **candidate: Any) -> Evidence:
    """What engine.server asked first; with a candidate, how reading its command line went."""
    first = next(ServerProbe().collect(Host(name="gpu1")))
    assert isinstance(first, tuple)
    results: list[Result] = []
    for question in first:
        assert isinstance(question, Command)
        found = b"/proc/42/cmdline\n" if candidate and question.key == "candidates" else b""
        mounted = b"proc /proc proc rw 0 0\n" if question.key == "proc-mount" else found
        results.append(CommandResult(question=question, exit_code=0 if mounted else 1, stdout=mounted))
    assert [result.key for result in results] == list(PROCESS_TABLE)
    if mounts is not None:
        results[-1] = mounts
    if candidate:
        results += [
            CommandResult(question=Command(key=key, argv=("cat", "/x"), exits=(0, 1, 2)), exit_code=0)
            for key in ("status", "links", "cgroup", "listeners", "addresses", "fd", "libraries")
        ]
        line = Command(key="cmdline-42", argv=("cat", "/proc/42/cmdline"))
        results.append(CommandResult(question=line, **candidate))
    return Evidence(Host(name="gpu1"), tuple(results))


def test_nothing_runs_is_said_only_where_all_was_seen() -> None:
    told = list(ServerProbe().interpret(looked()))
    assert [item.id for item in told if isinstance(item, Finding)] == ["server.none"]
    assert not [item for item in told if isinstance(item, Gap)]


def test_a_candidate_that_could_not_be_read_is_no_proof_that_nothing_runs() -> None:
    told = list(ServerProbe().interpret(looked(timed_out=True, seconds=25.0)))
    assert [item.id for item in told if isinstance(item, Finding)] == ["server.unseen"]
    (gap,) = (item for item in told if isinstance(item, Gap))
    assert "pid 42" in gap.reason


def test_hidden_processes_are_no_proof_that_nothing_runs() -> None:
    question = Command(key="proc-mount", argv=("grep", "-e", "x", "/proc/mounts"), exits=(0, 1, 2))
    mounts = CommandResult(question=question, exit_code=0, stdout=b"proc /proc proc rw,hidepid=2 0 0\n")
    told = list(ServerProbe().interpret(looked(mounts)))
    assert [type(item) for item in told] == [Finding, Gap]
    assert "hidepid" in told[1].reason  # type: ignore[union-attr]


def test_without_proc_nothing_is_known_of_what_runs() -> None:
    question = Command(key="proc-mount", argv=("grep", "-e", "x", "/proc/mounts"), exits=(0, 1, 2))
    with pytest.raises(Unanswered, match="/proc cannot be read"):
        list(ServerProbe().interpret(looked(CommandResult(question=question, exit_code=2))))


@pytest.mark.parametrize(
    ("seconds", "round_trip", "said"),
    [
        (-0.001, 5.0, "+0.00 s to this computer's (± 2 ms)"),
        (3600.2, 12.0, "+3600.20 s to this computer's (± 6 ms)"),
        (-1.5, 80.0, "-1.50 s to this computer's (± 40 ms)"),
        (None, None, "unknown"),
    ],
)
def test_a_clock_is_told_with_how_sure_that_is(
    seconds: float | None, round_trip: float | None, said: str
) -> None:
    reach = Reach(
        system="Linux", user="a", hostname="h", clock_offset_seconds=seconds, round_trip_ms=round_trip
    )
    (pairs,) = HostReach().show([reach])
    assert isinstance(pairs, Pairs)
    assert dict(pairs.rows)["clock"] == said
