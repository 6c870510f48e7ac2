"""What Linux says under /proc, as grep, head and ls bring it."""

from __future__ import annotations

import pytest

from ddprobe.parsing import nvidia_proc, proc, prometheus


def test_pids_are_read_from_paths_and_sorted() -> None:
    assert proc.pids("/proc/900/cmdline\n/proc/41/cmdline\n/proc/self/cmdline\nnoise\n") == (41, 900)


def test_sections_of_several_files() -> None:
    text = "==> /dev/null <==\n\n==> /proc/41/cmdline <==\npython\0x\0\n==> /proc/42/cmdline <==\nb\0"
    assert proc.sections(text, ("/proc/41/cmdline", "/proc/42/cmdline", "/proc/43/cmdline")) == {
        "/proc/41/cmdline": "python\0x\0",
        "/proc/42/cmdline": "b\0",
    }


def test_a_section_whose_heading_another_process_forged_is_left_out() -> None:
    text = "==> /proc/41/cmdline <==\na\n==> /proc/42/cmdline <==\nforged\n==> /proc/42/cmdline <==\nreal"
    assert "/proc/42/cmdline" not in proc.sections(text, ("/proc/41/cmdline", "/proc/42/cmdline"))


@pytest.mark.parametrize(
    ("cmdline", "argv"),
    [
        ("python\0-m\0sglang.launch_server\0", ("python", "-m", "sglang.launch_server")),
        ("a\0\0b\0", ("a", "", "b")),
        ("sglang::scheduler_TP0\0\0\0\0", ("sglang::scheduler_TP0",)),
        ('x\0--json\0{"a": "b c"}\0', ("x", "--json", '{"a": "b c"}')),
        ("two\nlines\0", ("two\nlines",)),
        ("", ()),
        ("\0\0", ()),
    ],
)
def test_words_keep_the_boundaries_of_arguments(cmdline: str, argv: tuple[str, ...]) -> None:
    assert proc.words(cmdline) == argv


def test_statuses() -> None:
    text = (
        "/proc/41/status:PPid:\t1\n/proc/41/status:Uid:\t1000\t1000\t1000\t1000\n"
        "/proc/42/status:PPid:\t41\n/proc/42/status:Uid:\t0\t0\t0\t0\nbroken\n"
    )
    assert proc.statuses(text) == {41: proc.Status(41, 1, 1000), 42: proc.Status(42, 41, 0)}


def test_links_and_owners() -> None:
    text = (
        "dr-xr-xr-x 9 alice users 0 Nov 30 15:48 /proc/41\n"
        "lrwxrwxrwx 1 alice users 0 Nov 30 15:48 /proc/41/cwd -> /srv/my models\n"
        "lrwxrwxrwx 1 root root 0 Nov 30 15:48 /proc/42/exe\n"
        "lrwxrwxrwx 1 root root 0 Nov 30 15:48 /proc/self/ns/mnt -> mnt:[4026531841]\n"
    )
    assert proc.links(text) == {"/proc/41/cwd": "/srv/my models", "/proc/self/ns/mnt": "mnt:[4026531841]"}
    assert proc.owners(text) == {41: "alice"}


@pytest.mark.parametrize(
    ("cgroup", "named"),
    [
        ("0::/system.slice/docker-" + "3f2a9c1b7d4e" + "0" * 52 + ".scope", "docker 3f2a9c1b7d4e"),
        ("12:devices:/docker/" + "ab" * 32, "docker abababababab"),
        ("0::/machine.slice/libpod-" + "cd" * 32 + ".scope/container", "podman cdcdcdcdcdcd"),
        (
            "0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-" + "12" * 32 + ".scope",
            "kubernetes 121212121212",
        ),
        ("0::/lxc.payload.gpu-box/init.scope", "lxc gpu-box"),
        ("0::/user.slice/user-1000.slice/session-3.scope", ""),
        ("0::/", ""),
    ],
)
def test_container_of_a_control_group(cgroup: str, named: str) -> None:
    assert proc.container((cgroup,)) == named


def test_listeners_of_both_families() -> None:
    lines = (
        "   0: 0100007F:7530 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 11 1 0 100 0 0 10 0",
        "   1: 00000000000000000000000000000000:1F40 00000000000000000000000000000000:0000 0A 0:0 0:0 0 0 0 12 1",
        "   2: 0000000000000000FFFF00000100007F:1F41 00000000000000000000000000000000:0000 0A 0:0 0:0 0 5 0 13 1",
        "   3: 00000000000000000000000001000000:1F42 00000000000000000000000000000000:0000 0A 0:0 0:0 0 5 0 14 1",
        "   4: 0100007F:7531 0100007F:0050 01 0:0 0:0 0 5 0 15 1",
        "   5: nonsense:zzzz 0:0 0A 0 0 0 0 0 0 0",
        "  sl  local_address rem_address   st",
    )
    assert proc.listeners(lines) == (
        proc.Listener("::", 8000, 0, 12),
        proc.Listener("127.0.0.1", 8001, 5, 13),
        proc.Listener("::1", 8002, 5, 14),
        proc.Listener("127.0.0.1", 30000, 1000, 11),
    )
    assert [str(listener) for listener in proc.listeners(lines)[1:3]] == ["127.0.0.1:8001", "[::1]:8002"]


def test_sockets_by_process() -> None:
    text = (
        "crw-rw-rw- 1 root root 1, 3 Nov 30 09:00 /dev/null\n\n/proc/41/fd:\ntotal 0\n"
        "lrwx------ 1 a a 64 Nov 30 15:48 3 -> socket:[11]\nlr-x------ 1 a a 64 Nov 30 15:48 4 -> pipe:[5]\n"
        "\n/proc/42/fd:\ntotal 0\n"
    )
    assert proc.sockets(text) == {41: frozenset({11}), 42: frozenset()}


def test_local_addresses_leave_loopback_out() -> None:
    lines = proc.by_pid(
        "/proc/41/net/fib_trie-           |-- 127.0.0.1\n/proc/41/net/fib_trie:              /32 host LOCAL\n--\n"
        "/proc/41/net/fib_trie-           |-- 172.17.0.2\n/proc/41/net/fib_trie:              /32 host LOCAL\n"
        "/proc/self/net/fib_trie-           |-- 10.1.2.3\n/proc/self/net/fib_trie:              /32 host LOCAL\n"
    )
    assert proc.local_addresses(lines[41]) == ("172.17.0.2",)
    assert proc.local_addresses(lines[0]) == ("10.1.2.3",)


def test_environment_is_sorted_and_splits_at_the_first_equals_sign() -> None:
    assert proc.environment("B=1\0A=x=y\0junk\0") == (("A", "x=y"), ("B", "1"))


def test_gpu_models_in_bus_order() -> None:
    text = (
        "/proc/driver/nvidia/gpus/0000:3d:00.0/information:Model: \t\t NVIDIA H200\n"
        "/proc/driver/nvidia/gpus/0000:17:00.0/information:Model: \t\t NVIDIA L4\n"
    )
    assert nvidia_proc.models(text) == ("NVIDIA L4", "NVIDIA H200")


@pytest.mark.parametrize(
    ("line", "version"),
    [
        (
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.15  Thu Jan 23 16:58:11 UTC 2026\n",
            "570.86.15",
        ),
        ("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build\n", "580.95.05"),
        ("", ""),
    ],
)
def test_driver_version(line: str, version: str) -> None:
    assert nvidia_proc.driver(line) == version


def test_metrics_are_summed_over_labels() -> None:
    text = '# TYPE a gauge\na{e="0",m="x } y"} 2.0\na{e="1"} 3\nb 1e3\nc{ nonsense\nd NaN?\n'
    assert prometheus.totals(text) == {"a": 5.0, "b": 1000.0}


def test_where_descriptors_lead() -> None:
    text = (
        "crw-rw-rw- 1 root root 1, 3 Nov 30 09:00 /dev/null\n\n/proc/41/fd:\ntotal 0\n"
        "lr-x------ 1 lab lab 64 Nov 30 12:00 0 -> /dev/null\n"
        "l-wx------ 1 lab lab 64 Nov 30 12:00 1 -> /srv/logs/a 2 -> b.log\n"
        "l-wx------ 1 lab lab 64 Nov 30 12:00 2 -> pipe:[882]\n"
        "lrwx------ 1 lab lab 64 Nov 30 12:00 17 -> socket:[48211]\n\n"
        "/proc/42/fd:\ntotal 0\n"
    )
    assert proc.open_files(text) == {
        41: {0: "/dev/null", 1: "/srv/logs/a 2 -> b.log", 2: "pipe:[882]", 17: "socket:[48211]"},
        42: {},
    }
    assert proc.open_files("1 -> /x\nls: cannot open directory '/proc/43/fd'") == {}


def test_what_processes_read() -> None:
    text = (
        "lr-x------ 1 lab lab 64 Nov 30 12:00 /proc/4690/fd/0 -> pipe:[882]\n"
        "lrwx------ 1 root root 64 Nov 30 12:00 /proc/7/fd/0 -> /dev/pts/0\n"
        "ls: cannot access '/proc/9/fd/0': No such file or directory\n"
    )
    assert proc.standard_inputs(text) == {4690: "pipe:[882]", 7: "/dev/pts/0"}
