"""What a file or a glob means in the installed package, by the real find and by name."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ddprobe import readonly
from ddprobe.errors import UsageError
from ddprobe.model import Command
from ddprobe.parsing import source_paths

FINDS = pytest.mark.parametrize("find", [["find"], ["busybox", "find"]], ids=["gnu", "busybox"])

TREE = [
    "__init__.py",
    "launch_server.py",
    "srt/server_args.py",
    "srt/utils.py",
    "srt/lora/utils.py",
    "srt/speculative/dflash_worker_v2.py",
    "srt/speculative/cpp_ngram/ngram.cpp",
    "srt/speculative/__pycache__/dflash_worker_v2.cpython-311.pyc",
    "srt/speculative/__pycache__/odd.py",
    "srt/layers/kernel.cu",
    "srt/layers/fast.so",
    "srt/configs/tuned.json",
    "srt/chat/template.jinja",
    "notes.md",
    "srt/with space/a[1].py",
]


@pytest.fixture
def package(tmp_path: Path) -> Path:
    root = tmp_path / "odd [x] *" / "sglang"
    for name in TREE:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x\n")
    # Some installers link every file.
    (root / "srt/speculative/linked.py").symlink_to(root / "srt/utils.py")
    (root / "srt/speculative/broken.py").symlink_to(root / "nowhere.py")
    return root


@FINDS
@pytest.mark.parametrize(
    ("glob", "expected"),
    [
        (
            "*",
            [
                "__init__.py", "launch_server.py", "srt/chat/template.jinja", "srt/layers/kernel.cu", "srt/lora/utils.py",
                "srt/server_args.py", "srt/speculative/cpp_ngram/ngram.cpp", "srt/speculative/dflash_worker_v2.py",
                "srt/speculative/linked.py", "srt/utils.py", "srt/with space/a[1].py",
            ],
        ),
        (
            "srt/speculative/*",
            ["srt/speculative/cpp_ngram/ngram.cpp", "srt/speculative/dflash_worker_v2.py", "srt/speculative/linked.py"],
        ),
        ("srt/speculative/", ["srt/speculative/cpp_ngram/ngram.cpp", "srt/speculative/dflash_worker_v2.py", "srt/speculative/linked.py"]),
        ("speculative", ["srt/speculative/cpp_ngram/ngram.cpp", "srt/speculative/dflash_worker_v2.py", "srt/speculative/linked.py"]),
        ("./srt/speculative/*.py", ["srt/speculative/dflash_worker_v2.py", "srt/speculative/linked.py"]),
        ("srt/**/utils.py", ["srt/lora/utils.py", "srt/utils.py"]),
        ("utils.py", ["srt/lora/utils.py", "srt/utils.py"]),
        ("*.json", ["srt/configs/tuned.json"]),
        ("srt/layers", ["srt/layers/kernel.cu"]),
        ("srt/server_args.py", ["srt/server_args.py"]),
        ("nothing/*", []),
    ],
)  # fmt: skip
def test_a_glob_lists_what_it_says(find: list[str], package: Path, glob: str, expected: list[str]) -> None:
    source_paths.check_glob(glob)
    words = source_paths.find_words(str(package), glob)
    readonly.check(Command(key="files", argv=words))
    done = subprocess.run([*find, *words[1:]], capture_output=True, text=True, check=True)
    listed = source_paths.listed(done.stdout, str(package))
    assert [source_paths.relative(path, str(package)) for path in listed] == expected


@pytest.mark.parametrize("glob", ["", "/", "/etc/*", "../*", "srt/../../x", "a\nb"])
def test_a_glob_stays_in_the_package(glob: str) -> None:
    with pytest.raises(UsageError):
        source_paths.check_glob(glob)


@FINDS
def test_names_of_all_python_files_and_of_one_more(find: list[str], package: Path) -> None:
    words = source_paths.names_words(str(package), "template.jinja")
    readonly.check(Command(key="names", argv=words))
    done = subprocess.run([*find, *words[1:]], capture_output=True, text=True, check=True)
    listed = source_paths.listed(done.stdout, str(package))
    names = [source_paths.relative(path, str(package)) for path in listed]
    assert "srt/chat/template.jinja" in names
    assert "srt/speculative/dflash_worker_v2.py" in names
    assert "notes.md" not in names
    assert not any("__pycache__" in name for name in names)


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("srt/utils.py", ["/v/sglang/srt/utils.py"]),
        ("./srt//utils.py", ["/v/sglang/srt/utils.py"]),
        ("sglang/srt/utils.py", ["/v/sglang/sglang/srt/utils.py", "/v/sglang/srt/utils.py"]),
        ("utils.py", ["/v/sglang/utils.py"]),
        (
            "sglang.srt.utils",
            ["/v/sglang/sglang.srt.utils", "/v/sglang/srt/utils.py", "/v/sglang/srt/utils/__init__.py", "/v/sglang/srt/utils"],
        ),
        ("/etc/hosts", ["/etc/hosts"]),
        ("../torch/version.py", ["/v/torch/version.py"]),
    ],
)  # fmt: skip
def test_guesses(file: str, expected: list[str]) -> None:
    assert list(source_paths.guesses(file, "/v/sglang")) == expected


def test_guesses_in_a_container_and_without_a_package() -> None:
    inside = source_paths.guesses("/etc/hosts", "/proc/77/root/v/sglang")
    assert inside == ("/proc/77/root/etc/hosts", "/etc/hosts")
    assert source_paths.guesses("/proc/77/root/etc/hosts", "/proc/77/root/v/sglang") == (
        "/proc/77/root/etc/hosts",
    )
    assert source_paths.guesses("utils.py", "") == ()
    assert source_paths.guesses("/etc/hosts", "") == ("/etc/hosts",)


@pytest.mark.parametrize("file", ["", "  ", "a\nb", "a\0b", "~/x.py"])
def test_what_names_no_file(file: str) -> None:
    with pytest.raises(UsageError):
        source_paths.check_file(file)


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("utils.py", ["/v/sglang/srt/lora/utils.py", "/v/sglang/srt/utils.py"]),
        ("utils", ["/v/sglang/srt/lora/utils.py", "/v/sglang/srt/utils.py"]),
        ("lora/utils.py", ["/v/sglang/srt/lora/utils.py"]),
        ("lora.utils", ["/v/sglang/srt/lora/utils.py"]),
        ("tils.py", []),
        ("/x/utils.py", []),
    ],
)
def test_ending_in(file: str, expected: list[str]) -> None:
    paths = ["/v/sglang/srt/lora/utils.py", "/v/sglang/srt/utils.py", "/v/sglang/srt/my_utils.py"]
    assert list(source_paths.ending_in(file, paths, "/v/sglang")) == expected


@pytest.mark.parametrize(
    ("file", "first"),
    [
        ("dflash_worker.py", "srt/speculative/dflash_worker_v2.py"),
        ("srt/speculative/dflsh_worker_v2.py", "srt/speculative/dflash_worker_v2.py"),
        ("sglang.srt.speculative.dflash_worker", "srt/speculative/dflash_worker_v2.py"),
        ("/home/me/sglang/srt/lora/utils.py", "srt/lora/utils.py"),
        ("srt/server_arg.py", "srt/server_args.py"),
        ("launch", "launch_server.py"),
    ],
)
def test_near(file: str, first: str) -> None:
    assert source_paths.near(file, TREE)[0] == first


def test_nothing_is_near_nonsense() -> None:
    assert source_paths.near("qqqqqqqq.rb", TREE) == ()


def test_language() -> None:
    assert source_paths.language("a/b.py") == "python"
    assert source_paths.language("a/b.CU") == "cuda"
    assert source_paths.language("Makefile") == "text"


FILES = (
    "srt/speculative/dflash_worker_v2.py",
    "srt/speculative/cpp_ngram/ngram.py",
    "srt/managers/scheduler.py",
    "kernels/ops/speculative/dflash.py",
    "srt/models/olmo.py",
    "srt/entrypoints/tool.py",
)


@pytest.mark.parametrize(
    ("glob", "expected"),
    [
        ("srt/specultive/*", "srt/speculative"),
        ("speculative/*", "srt/speculative"),
        ("managers", "srt/managers"),
        ("srt/managers/*.cu", "srt/managers"),
        ("srt/speculative/", "srt/speculative"),
        ("srt/specultive", "srt/speculative"),
        ("srt/specultive/dflash.py", "srt/speculative"),
    ],
)
def test_the_nearest_folders_of_a_glob(glob: str, expected: str) -> None:
    assert source_paths.near_folders(glob, FILES)[0] == expected


@pytest.mark.parametrize("glob", ["zzz/*", "*.zig", "[ab]*", "**/x?"])
def test_no_folder_is_near_nonsense(glob: str) -> None:
    assert source_paths.near_folders(glob, FILES) == ()


def test_an_ending_alone_makes_no_names_alike() -> None:
    assert source_paths.near("foo.py", FILES) == ()
    assert source_paths.near("dflash_wrker.py", FILES)[0] == "srt/speculative/dflash_worker_v2.py"


def test_folders_above() -> None:
    assert source_paths.folders_above("/etc/a//b/../c.py") == ("/etc/a", "/etc", "/")
    assert source_paths.folders_above("/c.py") == ("/",)
    assert len(source_paths.folders_above("/x" * 100)) == 41


def test_near_names() -> None:
    assert source_paths.near_names("hostnam", ["passwd", "hostname", "hosts", "group"])[0] == "hostname"
    assert source_paths.near_names("zq", ["passwd", "hostname"]) == ()
