"""The hosts file, and the words that name hosts."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from ddprobe import hostsfile, inventory
from ddprobe.errors import InventoryError, UsageError
from ddprobe.inventory import Inventory
from ddprobe.model import Container, Host

FILE = """\
default: gpu2
defaults: {user: bench, command_timeout: 40}
groups:
  blackwell: ["gpu[1-2]"]
  old: a100
  all: ["@blackwell", "@old"]
hosts:
  gpu1: {address: 10.0.0.5, user: root, port: 2222, identity_file: /keys/id, jump: "bench@bastion,other",
         host_key: accept-new, connect_timeout: 3, transport: openssh, tags: [no, tp8]}
  gpu2:
  a100: {container: {runtime: podman, name: vllm-1}, engine: vllm, url: "http://127.0.0.1:8000/",
         api_key_env: VLLM_KEY, gpu_bandwidth: 1597}
"""


def read(tmp_path: Path, text: str) -> Inventory:
    path = tmp_path / "hosts.yaml"
    path.write_text(text)
    return hostsfile.load(path)


def mistakes(tmp_path: Path, text: str) -> list[str]:
    with pytest.raises(InventoryError) as caught:
        read(tmp_path, text)
    return [line.removeprefix(f"{tmp_path}/hosts.yaml:") for line in caught.value.message.splitlines()]


@pytest.fixture
def known(tmp_path: Path) -> Inventory:
    return read(tmp_path, FILE)


def names(words: list[str], known: Inventory | None) -> list[str]:
    return [host.name for host in inventory.select(words, known)]


def test_a_file_becomes_hosts_with_defaults_filled_in(known: Inventory) -> None:
    assert known.hosts == (
        Host(
            name="gpu1", address="10.0.0.5", user="root", port=2222, identity_file="/keys/id",
            jump="bench@bastion,other", host_key="accept-new", connect_timeout=3, command_timeout=40,
            transport="openssh", tags=("no", "tp8"),
        ),
        Host(name="gpu2", user="bench", command_timeout=40),
        Host(
            name="a100", user="bench", command_timeout=40, container=Container(runtime="podman", name="vllm-1"),
            engine="vllm", url="http://127.0.0.1:8000", api_key_env="VLLM_KEY", gpu_bandwidth=1597,
        ),
    )  # fmt: skip
    assert known.default == "gpu2"
    assert known.warnings == ()


def test_what_a_host_does_not_say_stays_unset(tmp_path: Path) -> None:
    assert read(tmp_path, "hosts: {gpu1: }").hosts == (Host(name="gpu1"),)


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "hosts:\n"])
def test_an_empty_file_has_no_hosts(tmp_path: Path, text: str) -> None:
    assert read(tmp_path, text).hosts == ()


def test_every_mistake_at_once(tmp_path: Path) -> None:
    text = """\
default: gpu3
defaults: {adress: x}
group: {}
groups:
  a: ["@b", "gpu[1-"]
  b: ["@a"]
  c: ["@bb"]
hosts:
  gpu1: {port: 70000, prot: 22, host_key: off, engine: vlm}
  gpu1: {}
  -x: {}
  gpu2: {url: "http://h:1/v1", container: docker, connect_timeout: 0, api_key_env: sk-12345, user: "a b"}
"""
    assert mistakes(tmp_path, text) == [
        "1:10: default: there is no host 'gpu3' in this file (did you mean 'gpu2'?)",
        "2:12: unknown key 'adress'; allowed: user, port, identity_file, known_hosts, jump, host_key, connect_timeout, "
        "command_timeout, transport, container, engine, url, api_key_env, package, python, drafter, target, log, "
        "gpu_bandwidth, tags",
        "3:1: unknown key 'group' (did you mean 'groups'?); allowed: default, defaults, groups, hosts",
        "5:3: the group contains itself: @a > @b > @a",
        "5:13: 'gpu[1-' is not a node set: missing bracket: \"gpu[1-\"",
        "6:3: the group contains itself: @b > @a > @b",
        "7:7: there is no group @bb (did you mean 'b'?)",
        "9:16: port must be at most 65535, not 70000",
        "9:23: unknown key 'prot' (did you mean 'port'?); allowed: user, port, identity_file, known_hosts, jump, host_key, "
        "connect_timeout, command_timeout, transport, container, engine, url, api_key_env, package, python, drafter, "
        "target, log, gpu_bandwidth, tags, address",
        "9:43: host_key: 'off' is not one of strict, accept-new",
        "9:56: engine: 'vlm' is not one of sglang, vllm, llamacpp (did you mean 'vllm'?)",
        "10:3: the key 'gpu1' stands here a second time; the first is in line 9",
        "11:3: '-x' cannot be a name: letters, digits, '.', '_' and '-' only, and no '-' first",
        "12:15: url: a URL here is scheme, address and port as the host sees it: http://127.0.0.1:30000",
        "12:43: container must be a mapping (key: value), not 'docker'",
        "12:68: connect_timeout must be above 0, not 0",
        "12:84: api_key_env: give the name of an environment variable, never the key itself",
        "12:100: user: is empty, begins with '-' or holds a space",
    ]


def test_a_literal_secret_is_ignored_with_a_warning_that_names_the_way(tmp_path: Path) -> None:
    text = "defaults: {token: hunter2}\nhosts:\n  gpu1:\n    api_key: sk-abc\n    user: root\n"
    known = read(tmp_path, text)
    assert known.hosts == (Host(name="gpu1", user="root"),)
    assert [warning.removeprefix(f"{tmp_path}/hosts.yaml:")[:40] for warning in known.warnings] == [
        "1:12: token: a secret does not belong in",
        "4:5: api_key: a secret does not belong i",
    ]
    assert all("api_key_env" in w and "hunter2" not in w and "sk-abc" not in w for w in known.warnings)


def test_a_literal_secret_never_reaches_a_message(tmp_path: Path) -> None:
    said = mistakes(
        tmp_path, "hosts: {g: {api_key_env: sk-abc, api_key: sk-abc, url: 'http://me:sk-abc@h:1'}}"
    )
    assert len(said) == 2
    assert "sk-abc" not in "\n".join(said)


def test_no_words_mean_the_default_or_the_only_host(known: Inventory, tmp_path: Path) -> None:
    assert names([], known) == ["gpu2"]
    assert names([], read(tmp_path, "hosts: {only: {}}")) == ["only"]


def test_no_words_and_several_hosts_lists_the_names(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no `default`") as caught:
        names([], read(tmp_path, "groups: {g: a}\nhosts: {a: , b: }"))
    assert caught.value.advice == "name one or more of: a, b, @g"


def test_no_words_and_no_file_says_where_it_was_looked_for() -> None:
    with pytest.raises(UsageError, match="no HOST is given and there is no hosts file") as caught:
        names([], None)
    assert "$DDPROBE_HOSTS, ./hosts.yaml" in caught.value.advice


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("gpu1", ["gpu1"]),
        ("gpu[1-2]", ["gpu1", "gpu2"]),
        ("gpu[08-10]", ["gpu08", "gpu09", "gpu10"]),
        ("gpu1,a100", ["a100", "gpu1"]),
        ("@blackwell", ["gpu1", "gpu2"]),
        ("@all", ["a100", "gpu1", "gpu2"]),
        ("@all!gpu2", ["a100", "gpu1"]),
        ("@all,other", ["a100", "other", "gpu1", "gpu2"]),
        ("root@n[1-2]", ["root@n1", "root@n2"]),
        ("n[1-2].lab.example.com", ["n1.lab.example.com", "n2.lab.example.com"]),
    ],
)
def test_words_name_hosts(known: Inventory, word: str, expected: list[str]) -> None:
    assert sorted(names([word], known)) == sorted(expected)


def test_a_host_named_twice_is_looked_at_once_and_order_is_kept(known: Inventory) -> None:
    assert names(["gpu2", "@all", "gpu1"], known)[0] == "gpu2"
    assert sorted(names(["gpu2", "@all", "gpu1"], known)) == ["a100", "gpu1", "gpu2"]


@pytest.mark.parametrize(
    ("word", "host"),
    [
        ("gpu9", Host(name="gpu9")),
        ("10.0.0.7", Host(name="10.0.0.7")),
        ("root@gpu9", Host(name="root@gpu9", address="gpu9", user="root")),
        ("gpu9:2222", Host(name="gpu9:2222", address="gpu9", port=2222)),
        ("ssh://me@gpu9:22/", Host(name="me@gpu9:22", address="gpu9", user="me", port=22)),
        ("ssh://gpu9", Host(name="gpu9")),
        ("fe80::1", Host(name="fe80::1")),
        ("me@fe80::1", Host(name="me@fe80::1", address="fe80::1", user="me")),
        ("[::1]:2222", Host(name="[::1]:2222", address="::1", port=2222)),
        ("me@corp.example@gpu9", None),
    ],
)
def test_a_host_that_no_file_has_is_what_ssh_takes(word: str, host: Host | None) -> None:
    if host is None:
        with pytest.raises(UsageError):
            inventory.select([word], None)
    else:
        assert inventory.select([word], None) == (host,)


@pytest.mark.parametrize(
    "word",
    ["-oProxyCommand=x", "root@-x", "", "a b", "root@", ":22", "h:0", "h:99999", "gpu[1-", "gpu[a-b]", "@", "@*", "gpu1,,gpu2",
     "http://h", "h/x", "gpu[1-100000]", "gpu[1-30]x[1-30]", "@nope"],
)  # fmt: skip
def test_words_that_cannot_be_hosts(known: Inventory, word: str) -> None:
    with pytest.raises(UsageError):
        inventory.select([word], known)


def test_an_unknown_group_lists_the_groups(known: Inventory) -> None:
    with pytest.raises(UsageError, match="there is no group @blackwel") as caught:
        inventory.select(["@blackwel"], known)
    assert caught.value.advice.endswith("hosts.yaml: @blackwell, @old, @all")
    with pytest.raises(UsageError) as caught:
        inventory.select(["@x"], None)
    assert caught.value.advice == "groups stand in a hosts file, and there is none"


def test_where_the_file_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("DDPROBE_HOSTS", raising=False)
    assert inventory.find() is None
    user = inventory.places({})[-1]
    assert user.is_relative_to(tmp_path)
    user.parent.mkdir(parents=True)
    user.write_text("")
    assert inventory.find() == user
    (tmp_path / "hosts.yaml").write_text("")
    assert inventory.find() == Path("hosts.yaml")
    (tmp_path / "mine.yaml").write_text("")
    monkeypatch.setenv("DDPROBE_HOSTS", str(tmp_path / "mine.yaml"))
    assert inventory.find() == tmp_path / "mine.yaml"
    assert inventory.find(str(tmp_path / "hosts.yaml")) == tmp_path / "hosts.yaml"
    with pytest.raises(InventoryError, match="there is no such file"):
        inventory.find("gone.yaml")
    monkeypatch.setenv("DDPROBE_HOSTS", "gone.yaml")
    with pytest.raises(InventoryError, match=r"names gone\.yaml"):
        inventory.find()


def test_names_are_folded_where_they_allow_it() -> None:
    assert inventory.fold(["gpu03", "gpu01", "gpu02"]) == "gpu[01-03]"
    assert inventory.fold(["one"]) == "one"
    assert inventory.fold(["root@a", "b"]) == "root@a,b"


def test_a_host_named_on_the_command_line_costs_no_heavy_import() -> None:
    code = (
        "import sys; from ddprobe import inventory; inventory.select(['root@gpu1:22'], None); "
        "print(sorted({'yaml', 'pydantic', 'ClusterShell', 'rich', 'paramiko'} & set(sys.modules)))"
    )
    root = str(Path(__file__).parent.parent)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root)
    assert done.stdout == "[]\n"


def test_the_example_loads_and_shows_every_key() -> None:
    path = Path(__file__).parent.parent / "hosts.example.yaml"
    known = hostsfile.load(path)
    assert known.warnings == ()
    assert names([], known) == ["gpu1"]
    keys = set(re.findall(r"^\s*([a-z_]+):", path.read_text(), re.MULTILINE))
    assert keys >= {
        "default", "defaults", "groups", "hosts", "address", "user", "port", "identity_file", "known_hosts", "jump", "host_key",
        "connect_timeout", "command_timeout", "transport", "container", "runtime", "name", "engine", "url",
        "api_key_env", "package", "python", "drafter", "target", "log", "gpu_bandwidth", "tags",
    }  # fmt: skip
